//! `/gelf`: GELF over HTTP, as Graylog receives it. A body is one message, or one message per line.

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;

use super::door::{Door, text};
use super::receive::{DoorReader, receive};
use crate::decoders::gelf;
use crate::http::body::RequestBody;
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::ingest;
use crate::peer::Peer;

/// The declaration of GELF over HTTP; see the module documentation.
pub(super) const GELF: Door = Door { routes, failure: text };

fn routes(router: Router<Context>) -> Router<Context> {
    router.route("/gelf", post(messages))
}

async fn messages(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<StatusCode, HttpError> {
    let limits = context.limits.clone();
    receive(&context, peer, &headers, sent?, |body, reader: &mut DoorReader<'_>| {
        ingest::each_object(body, &limits, |message| reader.add(message, gelf::read(message)))
    })
    .await?;
    Ok(StatusCode::ACCEPTED)
}
