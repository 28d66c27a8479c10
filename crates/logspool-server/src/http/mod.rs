//! HTTP: questions, live tails, metrics, the web page, and records from those who send them by HTTP.
//!
//! A page in a browser of this machine must not be able to ask or to write: requests are taken only under a known name
//! (`guard`), and records only with a content type that a form of a foreign page cannot have, or without the words that
//! only browsers say.

mod answer;
mod body;
mod guard;
mod ingest;
mod otlp;
mod page;
mod questions;
mod state;
mod tail;

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service as _;

pub use guard::Access;
pub use state::Stats;

use crate::config::Limits;
use crate::intake::Intake;
use crate::questions::{Questions, Sizes};
use crate::sources::reading::Peer;
use crate::sources::streams::{Shared, Stop, ended};
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

/// Serves the requests of a connection.
pub async fn connection<S>(stream: S, peer: &Peer, shared: &Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(shared.limits.header_time()).max_buf_size(64 * 1024);
    let (router, peer) = (shared.http.0.clone(), peer.clone());
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let mut router = router.clone();
        async move { router.call(request).await }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stop = shared.stop.clone();
    let result = tokio::select! {
        result = connection.as_mut() => result,
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
