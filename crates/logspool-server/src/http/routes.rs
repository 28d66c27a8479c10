//! Every path, and the function that answers it.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::middleware;
use axum::routing::{get, post};

use super::access::RequestAccess;
use super::context::Context;
use super::{guard, ingest, otlp, page, paths, questions, state, tail};
use crate::config::Limits;
use crate::intake::Intake;
use crate::questions::{Questions, TurnSizes};
use crate::stop::Stop;
use crate::stores::Answers;

/// Creates the router, whose handlers use these parts.
pub fn router(
    intake: Arc<Intake>,
    answers: Option<Arc<dyn Answers>>,
    limits: Limits,
    access: RequestAccess,
    stop: Stop,
) -> Router {
    let threads = answers.as_ref().map_or(1, |answers| answers.at_once(limits.query_threads));
    let sizes = TurnSizes { threads, places: limits.queries };
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
        .route(paths::OBJECTS, post(ingest::objects))
        .route(paths::OTLP, post(otlp::logs))
        // `HTTPHandler` sends to any path that its user chooses.
        .fallback(ingest::form)
        .layer(middleware::from_fn_with_state(context.clone(), guard::token));
    let all = open.merge(guarded).layer(middleware::from_fn(page::serve));
    let all = all.layer(middleware::from_fn_with_state(context.clone(), guard::host));
    let all = all.layer(middleware::from_fn(otlp::errors));
    all.with_state(context)
}

/// The OpenAPI description of the routes.
const OPENAPI: &str = include_str!("openapi.json");
