//! HTTP: questions, live tails, metrics, the web page, and records from those who send them by HTTP.
//!
//! A page in a browser of this machine must not be able to ask or to write: requests are taken only under a known name
//! (`guard`), and records only with a content type that a form of a foreign page cannot have, or without the words that
//! only browsers say.

mod answer;
mod body;
mod broken_off;
mod guard;
mod ingest;
mod otlp;
mod page;
mod parameters;
mod questions;
mod state;
mod tail;
mod two_lengths;

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tower_service::Service as _;

pub use broken_off::reason;
pub use guard::Access;
pub use state::Stats;
use two_lengths::Watched;

use crate::config::Limits;
use crate::intake::Intake;
use crate::questions::{Questions, Sizes};
use crate::sources::admission::Slot;
use crate::sources::reading::Peer;
use crate::sources::streams::{Shared, Stop, ended, sleep_until};
use crate::stores::Answers;

/// What requests are answered from.
#[derive(Clone)]
pub(crate) struct Context {
    pub intake: Arc<Intake>,
    /// The store that answers questions: the first one.
    pub answers: Option<Arc<dyn Answers>>,
    /// Has questions answered.
    pub questions: Questions,
    pub limits: Limits,
    pub access: Access,
    pub stop: Stop,
}

/// Answers requests.
#[derive(Clone)]
pub struct Service(Router);

impl std::fmt::Debug for Service {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Service")
    }
}

impl Service {
    /// Answers from these parts.
    pub fn new(
        intake: Arc<Intake>,
        answers: Option<Arc<dyn Answers>>,
        limits: Limits,
        access: Access,
        stop: Stop,
    ) -> Self {
        let threads = answers.as_ref().map_or(1, |answers| answers.at_once(limits.query_threads));
        let sizes = Sizes { threads, places: limits.queries };
        let questions = Questions::new(sizes, intake.metrics.clone());
        let context = Context { intake, answers, questions, limits, access, stop };
        let open = Router::new().route("/livez", get(state::live)).route("/readyz", get(state::ready));
        let guarded = Router::new()
            .route("/api/query", get(questions::query))
            .route("/api/histogram", get(questions::histogram))
            .route("/api/fields", get(questions::fields))
            .route("/api/stats", get(state::stats))
            .route("/api/tail", get(tail::tail))
            .route("/metrics", get(state::metrics))
            .route("/openapi.json", get(|| async { ([(header::CONTENT_TYPE, "application/json")], OPENAPI) }))
            .route(ingest::PATH, post(ingest::objects))
            .route(otlp::PATH, post(otlp::logs))
            // `HTTPHandler` sends to any path its user likes.
            .fallback(ingest::form)
            .layer(middleware::from_fn_with_state(context.clone(), guard::token));
        let all = open.merge(guarded).layer(middleware::from_fn(page::serve));
        let all = all.layer(middleware::from_fn_with_state(context.clone(), guard::host));
        let all = all.layer(middleware::from_fn(otlp::errors));
        Self(all.with_state(context))
    }
}

/// The description of all this for programs.
const OPENAPI: &str = include_str!("openapi.json");

/// Serves the requests of a connection; where its slot is one of a reserve, a single one.
pub async fn connection<R, W>((read, write): (R, W), peer: &Peer, slot: &Slot, shared: &Shared)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).max_buf_size(64 * 1024);
    // Holds between requests too: a connection that is kept alive and silent is closed after this time.
    builder.header_read_timeout(slot.header_time(shared.limits.header_time()));
    builder.keep_alive(!slot.is_reserved());
    let (router, peer) = (shared.http.0.clone(), peer.clone());
    let (read, lengths) = Watched::new(read);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let mut router = router.clone();
        let is_refused = lengths.found();
        async move {
            match is_refused {
                true => Ok(two_lengths::refuse()),
                false => router.call(request).await,
            }
        }
    });
    let stream = TokioIo::new(tokio::io::join(read, write));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    let mut stop = shared.stop.clone();
    let until = slot.is_reserved().then(|| Instant::now() + shared.limits.header_time());
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = sleep_until(until) => return shared.intake.metrics.close("slow"),
        () = ended(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!("HTTP connection ended: {error}");
    }
}

/// An answer that says what is wrong, and the mend.
#[derive(Debug)]
pub(crate) struct Problem(pub StatusCode, pub String);

/// What an answer says, for those who say it in another form.
#[derive(Debug, Clone)]
struct Why(String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.1 }).to_string();
        let mut response = (self.0, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        response.extensions_mut().insert(Why(self.1));
        if self.0 == StatusCode::SERVICE_UNAVAILABLE || self.0 == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        if self.0 == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        response
    }
}
