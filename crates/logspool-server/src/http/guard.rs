//! Checks the host name and the token of a request.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::context::Context;
use super::error::HttpError;

/// Refuses requests for a host name that does not belong to this service, and requests from pages of another origin.
/// Otherwise a foreign web page could send requests, if its host name resolves to this machine.
pub(super) async fn check_host(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    let host = header_text(request.headers(), &header::HOST).unwrap_or_default();
    if !context.access.knows_host(host) {
        let why =
            format!("{host:?} is not a host name of this service: use its IP address, or add the name to access.hosts");
        return Err(HttpError(StatusCode::FORBIDDEN, why));
    }
    if let Some(origin) = header_text(request.headers(), &header::ORIGIN)
        && origin.split_once("://").is_none_or(|(_, name)| name != host)
    {
        return Err(HttpError(
            StatusCode::FORBIDDEN,
            format!("requests from web pages of {origin:?} are not accepted"),
        ));
    }
    Ok(next.run(request).await)
}

/// If tokens are configured, refuses requests without a valid token.
pub(super) async fn check_token(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    if context.access.allows(header_text(request.headers(), &header::AUTHORIZATION)) {
        return Ok(next.run(request).await);
    }
    let why = "a token is required: send it as `Authorization: Bearer TOKEN`".to_owned();
    Err(HttpError(StatusCode::UNAUTHORIZED, why))
}

/// Returns the value of a header, if the value is visible ASCII.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
