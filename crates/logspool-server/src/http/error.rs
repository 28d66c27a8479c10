//! Errors that are sent as the answer to a request.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// An error answer: its status, and a text with the reason and the fix.
#[derive(Debug)]
pub(crate) struct HttpError(pub StatusCode, pub String);

/// The reason of an error answer. Middleware that sends the error in another format reads it from the response
/// extensions.
#[derive(Debug, Clone)]
pub(super) struct ErrorReason(pub String);

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.1 }).to_string();
        let mut response = (self.0, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        response.extensions_mut().insert(ErrorReason(self.1));
        if self.0 == StatusCode::SERVICE_UNAVAILABLE || self.0 == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        if self.0 == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        response
    }
}
