//! Loki's `/loki/api/v1/push`: the door of Promtail, Grafana Alloy, Docker's plugin and others.

use axum::Router;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};

use super::door::{Door, text};
use super::receive::{DoorReader, receive};
use crate::decoders::loki::{self, LokiError};
use crate::http::body::RequestBody;
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::guard::content_type;
use crate::peer::Peer;

/// The declaration of Loki's path; see the module documentation.
pub(super) const LOKI: Door = Door { routes, failure: text };

fn routes(router: Router<Context>) -> Router<Context> {
    // The first path is Loki's before 1.0. Some agents wait for `/ready`.
    router
        .route("/api/prom/push", post(push))
        .route("/loki/api/v1/push", post(push))
        .route("/ready", get(|| async { "ready\n" }))
}

async fn push(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    mut headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<StatusCode, HttpError> {
    let limit = context.limits.body_bytes();
    // As in Loki: a body that is not named as JSON is protobuf.
    let is_json = content_type(&headers).eq_ignore_ascii_case("application/json");
    if !is_json && headers.get("content-encoding").is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"snappy")) {
        // A body of protobuf is always compressed by snappy. Only some agents name it.
        headers.remove("content-encoding");
    }
    receive(&context, peer, &headers, sent?, |body, reader: &mut DoorReader<'_>| {
        let each: loki::EachEntry<'_> = &mut |found| match found {
            Ok(record) => reader.push(record),
            Err((bytes, error)) => reader.reject(bytes, &error.to_string()),
        };
        let read = if is_json { loki::read_json(body, each) } else { loki::read_protobuf(body, limit, each) };
        read.map_err(|error| {
            let is_too_large = matches!(error, LokiError::TooLarge(_));
            let status = if is_too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
            HttpError(status, error.to_string())
        })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
