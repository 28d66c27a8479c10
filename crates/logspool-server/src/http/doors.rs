//! Paths at which senders of other services deliver records: each door is one file and its line in the table.
//!
//! A door reads the body of its protocol and answers in its form. Limits, tokens, decompression, storing, and the
//! check that no web page sends the request are the same for all (`receive.rs`).

mod door;
mod receive;

pub(super) use elastic::greeting as elastic_greeting;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::Response;

use door::Door;

use super::context::Context;
use super::error::ErrorReason;
use super::guard;

table! {
    /// All doors.
    const ALL: &[&Door];
    mod otlp_grpc; use otlp_grpc::OTLP_GRPC;
    mod loki; use loki::LOKI;
    mod elastic; use elastic::ELASTIC;
    mod gelf; use gelf::GELF;
    mod seq; use seq::SEQ;
    mod splunk; use splunk::SPLUNK;
    mod journal; use journal::JOURNAL;
}

/// The paths of all doors.
pub(super) fn routes(context: &Context) -> Router<Context> {
    ALL.iter().fold(Router::new(), |all, door| {
        let failure = door.failure;
        let answered = move |response: Response| async move { in_form_of(failure, response) };
        let routes = (door.routes)(Router::new())
            .layer(middleware::from_fn(guard::check_page))
            .layer(middleware::from_fn_with_state(context.clone(), guard::check_token))
            .layer(middleware::map_response(answered));
        all.merge(routes)
    })
}

/// Converts an error answer to the form of a protocol.
fn in_form_of(failure: fn(StatusCode, &str) -> Response, response: Response) -> Response {
    let Some(ErrorReason(why)) = response.extensions().get::<ErrorReason>() else { return response };
    let mut converted = failure(response.status(), why);
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = response.headers().get(&name) {
            converted.headers_mut().insert(name, value.clone());
        }
    }
    converted
}
