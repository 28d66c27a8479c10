//! Checks host name and token of a request.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::context::Context;
use super::error::HttpError;

/// Refuses requests for a host name that is not this service's. Otherwise a web page of a foreign name that resolves to
/// this machine could send requests.
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

/// Refuses requests without a valid token if tokens are configured.
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

/// The value of a header, if it is visible ASCII.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
