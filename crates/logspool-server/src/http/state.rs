//! How the service does.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::context::Context;
use crate::metrics::Summary;

/// Part of the budget of waiting bytes from which on the service is not ready for more.
const FULL: f64 = 0.9;

/// It runs.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// It takes records: the stores work, and there is room for what comes. What is wrong with records of the past is said
/// too, and does not keep it from being ready.
pub(super) async fn ready(State(context): State<Context>) -> (StatusCode, String) {
    let mut problems: Vec<String> = context
        .intake
        .metrics
        .troubles()
        .into_iter()
        .map(|(store, trouble)| format!("store {store}: {}", trouble.why))
        .collect();
    let filling = context.intake.budget.filling();
    if filling > FULL {
        problems.push(format!("{:.0} % of limits.waiting_bytes wait for the stores", filling * 100.0));
    }
    if context.stop.borrow().is_some() {
        problems.push("the service ends".to_owned());
    }
    let status = if problems.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if status == StatusCode::OK {
        problems.push("ok".to_owned());
    }
    for store in context.intake.metrics.summaries() {
        problems.extend(store.problems.iter().map(|problem| format!("store {}: {problem}", store.store)));
    }
    (status, problems.join("\n") + "\n")
}

/// Everything that is counted, for monitoring systems.
pub(super) async fn metrics(State(context): State<Context>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], context.intake.metrics.text())
}

/// The most important of it, for people and programs.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Stats {
    pub version: String,
    pub connections: u64,
    pub tails: usize,
    pub records_accepted: u64,
    pub records_dropped: u64,
    pub datagrams_lost: u64,
    pub frames_rejected: u64,
    /// Part of limits.waiting_bytes that waits for the stores, from 0 to 1.
    pub waiting: f64,
    pub stores: Vec<Summary>,
}

/// The most important of it.
pub(super) async fn stats(State(context): State<Context>) -> Json<Stats> {
    let metrics = &context.intake.metrics;
    Json(Stats {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        connections: metrics.connections(),
        tails: context.intake.tails.len(),
        records_accepted: metrics.accepted.get(),
        records_dropped: metrics.records_dropped.get(),
        datagrams_lost: metrics.datagrams_lost(),
        frames_rejected: metrics.frames_rejected.get(),
        waiting: context.intake.budget.filling(),
        stores: metrics.summaries(),
    })
}
