//! Checks host name and token of a request.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::context::Context;
use super::problem::Problem;

/// Refuses requests for a host name that is not this service's. Otherwise a web page of a foreign name that resolves to
/// this machine could send requests.
pub(super) async fn host(State(context): State<Context>, request: Request, next: Next) -> Result<Response, Problem> {
    let host = text(request.headers(), &header::HOST).unwrap_or_default();
    if !context.access.knows_host(host) {
        let why = format!("this service is not called {host:?}: use its IP address, or add the name to access.hosts");
        return Err(Problem(StatusCode::FORBIDDEN, why));
    }
    if let Some(origin) = text(request.headers(), &header::ORIGIN)
        && origin.split_once("://").is_none_or(|(_, name)| name != host)
    {
        return Err(Problem(StatusCode::FORBIDDEN, format!("requests of pages of {origin:?} are not taken")));
    }
    Ok(next.run(request).await)
}

/// Refuses requests without a valid token if tokens are configured.
pub(super) async fn token(State(context): State<Context>, request: Request, next: Next) -> Result<Response, Problem> {
    if context.access.lets(text(request.headers(), &header::AUTHORIZATION)) {
        return Ok(next.run(request).await);
    }
    let why = "a token is asked for: send it as `Authorization: Bearer TOKEN`".to_owned();
    Err(Problem(StatusCode::UNAUTHORIZED, why))
}

/// The value of a header, if it is visible ASCII.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
