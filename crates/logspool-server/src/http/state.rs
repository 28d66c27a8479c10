//! Reports the state of the service: health, readiness, and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::context::Context;
use crate::metrics::StoreSummary;

/// If a larger share of `limits.waiting_bytes` is in use, the service is not ready.
const NOT_READY_LEVEL: f64 = 0.9;

/// Liveness check: the service runs if it answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Readiness check: the service is ready if all stores work and there is room for new records. Problems with stored
/// records are reported too, but do not affect readiness.
pub(super) async fn ready(State(context): State<Context>) -> (StatusCode, String) {
    let mut problems: Vec<String> = context
        .intake
        .metrics
        .failing_stores()
        .into_iter()
        .map(|(store, trouble)| format!("store {store}: {}", trouble.why))
        .collect();
    let filling = context.intake.budget.fill_level();
    if filling > NOT_READY_LEVEL {
        problems.push(format!("{:.0} % of limits.waiting_bytes wait for the stores", filling * 100.0));
    }
    if context.stop.borrow().is_some() {
        problems.push("the service is shutting down".to_owned());
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

/// All metrics, for monitoring systems.
pub(super) async fn metrics(State(context): State<Context>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], context.intake.metrics.text())
}

/// The most important metrics, for people and programs.
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
    /// Data that waits for the stores, as a share of `limits.waiting_bytes` from 0 to 1.
    pub waiting: f64,
    pub stores: Vec<StoreSummary>,
}

/// Collects the most important metrics.
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
        waiting: context.intake.budget.fill_level(),
        stores: metrics.summaries(),
    })
}
