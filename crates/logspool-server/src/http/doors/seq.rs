//! Seq's `/api/events/raw` and `/ingest/clef`: Serilog and other senders of Seq, in CLEF or in the envelope `Events`.

use axum::Router;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::door::{Door, json};
use super::receive::{DoorReader, receive};
use crate::decoders::{json_list, seq};
use crate::http::body::RequestBody;
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::guard::content_type;
use crate::http::ingest;
use crate::peer::Peer;

/// The declaration of Seq's paths; see the module documentation.
pub(super) const SEQ: Door = Door { routes, failure };

fn routes(router: Router<Context>) -> Router<Context> {
    // Senders ask for the path `/api` before they send.
    router
        .route("/api/events/raw", post(events))
        .route("/ingest/clef", post(events))
        .route("/api", get(|| async { json(StatusCode::OK, &json!({ "Product": "logspool", "Links": {} })) }))
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "Events", alias = "events")]
    events: &'a RawValue,
}

async fn events(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    uri: Uri,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    let limits = context.limits.clone();
    let is_clef = uri.path() == "/ingest/clef"
        || content_type(&headers).eq_ignore_ascii_case("application/vnd.serilog.clef")
        || query.is_some_and(|query| query.split('&').any(|part| part == "clef" || part.starts_with("clef=")));
    receive(&context, peer, &headers, sent?, |body, reader: &mut DoorReader<'_>| {
        if is_clef {
            return ingest::each_object(body, &limits, |event| reader.add(event, seq::read_clef(event)));
        }
        let bad = |error: &dyn std::fmt::Display| {
            HttpError(StatusCode::BAD_REQUEST, format!("the body is not JSON with a list `Events`: {error}"))
        };
        let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| bad(&error))?;
        json_list::read(envelope.events.get().as_bytes(), |event| reader.add(event, seq::read_raw(event)))
            .map_err(|error| bad(&error))
    })
    .await?;
    // No minimum level is asked for: the sender continues to send all levels.
    Ok(json(StatusCode::CREATED, &json!({ "MinimumLevelAccepted": null })))
}

fn failure(status: StatusCode, why: &str) -> Response {
    json(status, &json!({ "Error": why }))
}
