//! How a door is declared, and the answers that several doors give.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::context::Context;

/// The declaration of a door.
pub(super) struct Door {
    /// Adds its paths, each with the function that answers it.
    pub routes: fn(Router<Context>) -> Router<Context>,
    /// The answer to a request that is refused, in the form of the protocol.
    pub failure: fn(StatusCode, &str) -> Response,
}

/// An answer of JSON.
pub(super) fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// An answer of text.
pub(super) fn text(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}
