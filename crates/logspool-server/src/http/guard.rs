//! Checks the host name and the token of a request.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
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
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let named = hosts.next();
    if hosts.next().is_some() {
        let why = "the request has two headers Host: send one of them".to_owned();
        return Err(HttpError(StatusCode::BAD_REQUEST, why));
    }
    // HTTP/2 has the host name in its pseudo-header `:authority`. A request without a host name comes from HTTP/1.0,
    // never from a browser.
    let named = named.map(|host| host.to_str().unwrap_or("?"));
    let authority = request.uri().authority().map(Authority::as_str);
    let host = authority.or(named).unwrap_or_default();
    if let Some(host) = [named, authority].into_iter().flatten().find(|host| !context.access.knows_host(host)) {
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
    if context.access.allows(request.headers()) {
        return Ok(next.run(request).await);
    }
    let why = "a token is required: send it as `Authorization: Bearer TOKEN`".to_owned();
    Err(HttpError(StatusCode::UNAUTHORIZED, why))
}

/// Refuses requests with records that a page of another origin could send from a browser.
pub(super) async fn check_page(request: Request, next: Next) -> Result<Response, HttpError> {
    let writes = !request.method().is_safe();
    if writes && may_come_from_a_form(content_type(request.headers())) && is_from_browser(request.headers()) {
        return Err(HttpError(StatusCode::FORBIDDEN, "records from web pages are not accepted".to_owned()));
    }
    Ok(next.run(request).await)
}

/// True for the content types that a page may send to another origin without asking it first.
fn may_come_from_a_form(content_type: &str) -> bool {
    let simple = ["", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"];
    simple.iter().any(|known| known.eq_ignore_ascii_case(content_type))
}

/// True if a browser sent the request. A page of any origin can load an image whose query string has a record, and this
/// request has no header `Origin`. Only browsers send the headers checked here. Several headers are checked, because
/// browsers omit `Sec-Fetch-Site` in requests to other machines.
pub(super) fn is_from_browser(headers: &HeaderMap) -> bool {
    let has = |name: &str| headers.contains_key(name);
    let is_foreign = match headers.get("sec-fetch-site") {
        Some(site) => site != "none",
        None => has("accept-language"),
    };
    is_foreign || has("origin") || has("referer") || has("cookie")
}

/// Lets no browser guess another content type than the answer names.
pub(super) async fn no_sniffing(mut response: Response) -> Response {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}

/// Returns the content type without its parameters.
pub(super) fn content_type(headers: &HeaderMap) -> &str {
    let whole = header_text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    whole.split(';').next().unwrap_or_default().trim()
}

/// Returns the value of a header, if the value is visible ASCII.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
