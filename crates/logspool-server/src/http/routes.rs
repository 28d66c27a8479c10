//! The table of paths, each with the function that answers it.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::middleware;
use axum::routing::{get, post};

use super::access::AccessControl;
use super::context::Context;
use super::{doors, guard, ingest, otlp, page, paths, queries, state, tail};
use crate::intake::Intake;
use crate::limits::Limits;
use crate::query_memory::CountMemory;
use crate::scheduler::{QueryScheduler, SchedulerSizes};
use crate::stop::StopSignal;
use crate::stores::QueryReader;

/// Creates the router. Its handlers use the given parts of the service.
pub fn router(
    intake: Arc<Intake>,
    reader: Option<Arc<dyn QueryReader>>,
    limits: Limits,
    access: AccessControl,
    stop: StopSignal,
) -> Router {
    let threads = reader.as_ref().map_or(1, |reader| reader.max_parallel(limits.query_threads));
    let sizes = SchedulerSizes { threads, places: limits.queries };
    let scheduler = QueryScheduler::new(sizes, intake.metrics.clone());
    let memory = CountMemory::default();
    let context = Context { intake, reader, scheduler, memory, limits, access, stop };
    let open = Router::new().route("/livez", get(state::live)).route("/readyz", get(state::ready));
    let guarded = Router::new()
        .route("/api/query", get(queries::query))
        .route("/api/histogram", get(queries::histogram))
        .route("/api/facets", get(queries::facets))
        .route("/api/fields", get(queries::fields))
        .route("/api/stats", get(state::stats))
        .route("/api/tail", get(tail::tail))
        .route("/metrics", get(state::metrics))
        .route("/openapi.json", get(|| async { ([(header::CONTENT_TYPE, "application/json")], OPENAPI) }))
        .route(paths::OBJECTS, post(ingest::objects).layer(middleware::from_fn(guard::check_page)))
        .route(paths::OTLP, post(otlp::logs))
        // `HTTPHandler` sends to a path that its user chooses, so every other path receives records.
        .fallback(ingest::form)
        .layer(middleware::from_fn_with_state(context.clone(), guard::check_token));
    let all = guarded.merge(doors::routes(&context)).layer(middleware::from_fn(page::serve));
    let all = all.layer(middleware::from_fn_with_state(context.clone(), guard::check_host));
    // Load balancers ask for the state of the service by any name.
    let all = all.merge(open).layer(middleware::from_fn(otlp::errors));
    let all = all.layer(middleware::map_response(guard::no_sniffing));
    all.with_state(context)
}

/// The OpenAPI description of the routes.
const OPENAPI: &str = include_str!("openapi.json");
