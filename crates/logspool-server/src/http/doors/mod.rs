//! Paths at which senders of other services deliver records: each door is one file and its line in the table.
//!
//! A door reads the body of its protocol and answers in its form. Limits, tokens, decompression, storing, and the
//! check that no web page sends the request are the same for all (`receive.rs`).

mod elastic;
mod gelf;
mod journal;
mod loki;
mod otlp_grpc;
mod receive;
mod seq;
mod splunk;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::Response;

use super::context::Context;
use super::error::ErrorReason;
use super::guard;
pub(super) use elastic::greeting as elastic_greeting;

/// All doors. A new door needs a file in this folder and a line in this table.
const ALL: &[&Door] = &[
    &otlp_grpc::OTLP_GRPC,
    &loki::LOKI,
    &elastic::ELASTIC,
    &gelf::GELF,
    &seq::SEQ,
    &splunk::SPLUNK,
    &journal::JOURNAL,
];

/// The declaration of a door.
struct Door {
    /// Adds its paths, each with the function that answers it.
    routes: fn(Router<Context>) -> Router<Context>,
    /// The answer to a request that is refused, in the form of the protocol.
    failure: fn(StatusCode, &str) -> Response,
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

/// An answer of JSON.
fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    use axum::response::IntoResponse as _;
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// An answer of text.
fn text(status: StatusCode, why: &str) -> Response {
    use axum::response::IntoResponse as _;
    (status, format!("{why}\n")).into_response()
}
