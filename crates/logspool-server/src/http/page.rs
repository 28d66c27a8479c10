//! The web page at `/`: a few files that are compiled into the program.
//!
//! The files contain no records, so they need no token. The page asks its user for the token and sends it with every
//! query. Only a GET or HEAD request without a query string gets a file. Every other request to these paths may be a
//! record from `HTTPHandler`.

use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::doors::elastic_greeting;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Path, content type and text of each file.
static FILES: [(&str, &str, &str); 10] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page/style.css", CSS, include_str!("page/style.css")),
    ("/page/icon.svg", SVG, include_str!("page/icon.svg")),
    ("/page/main.js", SCRIPT, include_str!("page/main.js")),
    ("/page/service.js", SCRIPT, include_str!("page/service.js")),
    ("/page/live.js", SCRIPT, include_str!("page/live.js")),
    ("/page/records.js", SCRIPT, include_str!("page/records.js")),
    ("/page/histogram.js", SCRIPT, include_str!("page/histogram.js")),
    ("/page/times.js", SCRIPT, include_str!("page/times.js")),
    ("/page/text.js", SCRIPT, include_str!("page/text.js")),
];

/// The content security policy of the page. The page may only run its own scripts, use its own style and query this
/// service. The policy uses trusted types: a script cannot turn the text of a record into markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// Answers requests to the paths of the page, and passes all other requests on to `next`.
pub(super) async fn serve(request: Request, next: Next) -> Response {
    if let Some(greeting) = elastic_greeting(&request) {
        return greeting;
    }
    match file(request.method(), request.uri().path(), request.uri().query()) {
        Some((kind, text)) => answer(kind, text),
        None => next.run(request).await,
    }
}

fn file(method: &Method, path: &str, query: Option<&str>) -> Option<(&'static str, &'static str)> {
    let is_plain = matches!(*method, Method::GET | Method::HEAD) && query.is_none();
    let found = FILES.iter().find(|(name, ..)| is_plain && *name == path);
    found.map(|(_, kind, text)| (*kind, *text))
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A newer version of the service has a newer page, so browsers must not use an old copy.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let mut response = text.into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let same_origin = HeaderValue::from_static("same-origin");
    response.headers_mut().insert("cross-origin-opener-policy", same_origin.clone());
    response.headers_mut().insert("cross-origin-resource-policy", same_origin);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(path: &str) -> Option<&'static str> {
        file(&Method::GET, path, None).map(|(_, text)| text)
    }

    #[test]
    fn records_sent_to_paths_of_the_page_are_not_answered_with_the_page() {
        assert!(file(&Method::GET, "/", None).is_some());
        assert!(file(&Method::HEAD, "/", None).is_some());
        for (method, path, query) in
            [(Method::POST, "/", None), (Method::GET, "/", Some("msg=x&levelno=20")), (Method::GET, "/page", None)]
        {
            assert_eq!(None, file(&method, path, query), "{method} {path}");
        }
    }

    #[test]
    fn the_page_is_complete_and_loads_nothing_from_elsewhere() {
        for (path, _, text) in FILES {
            for named in text.split(['"', '\'']).filter(|part| part.starts_with("/page/") || part.starts_with("./")) {
                let named = named.replacen("./", "/page/", 1);
                assert!(text_of(&named).is_some(), "{path} names {named}, which is not there");
            }
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for elsewhere in ["http:", "https:", "=\"//", "url(", "@import", "wss:"] {
                assert!(!text.contains(elsewhere), "{path} has {elsewhere}");
            }
        }
    }

    #[test]
    fn the_markup_has_no_inline_scripts_or_styles() {
        let html = text_of("/").unwrap();

        assert!(!html.contains(" style=") && !html.contains("<style"));
        for part in html.split("<script").skip(1) {
            assert!(part.contains(" src=\"/page/") && part.contains("></script>"), "a script in the page: {part}");
        }
        assert!(!html.split_ascii_whitespace().any(|word| word.starts_with("on") && word.contains('=')));
    }

    #[test]
    fn no_script_inserts_text_as_markup() {
        for (path, kind, text) in FILES {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(kind != SCRIPT || !text.contains(way), "{path} has {way}");
            }
        }
    }

    #[test]
    fn the_answer_forbids_everything_that_the_page_does_not_need() {
        let answer = answer(HTML, "x");

        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(HTML, answer.headers()[header::CONTENT_TYPE]);
    }
}
