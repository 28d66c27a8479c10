//! Live tails: new records as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::context::Context;
use super::error::HttpError;
use super::parameters::Parameters;
use super::queries::expression;

use crate::clock::now_ns;
use crate::metrics::GaugeGuard;
use crate::peer::Peer;
use crate::stop::{StopSignal, stopped};
use crate::tails::Tail;

/// Interval between empty events while no records arrive. They prevent proxies from closing the connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// An empty event, which clients ignore.
const EMPTY_EVENT: &[u8] = b":\n\n";

/// Maximum delay of the report of missed records while no further records arrive.
const MISSED_REPORT_DELAY: Duration = Duration::from_secs(1);

/// Parameters of `/api/tail`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TailParameters {
    #[serde(default)]
    q: String,
    level: Option<String>,
}

/// Sends each record that matches the filter as a server-sent event with the record as JSON. A client that reads too
/// slowly gets an event `missed` with the number of missed records.
pub(super) async fn tail(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Parameters(asked): Parameters<TailParameters>,
) -> Result<Response, HttpError> {
    let expression = expression(&asked.q, asked.level.as_deref(), now_ns())?;
    if expression.stage.is_some() || !expression.pipeline.steps.is_empty() {
        let why = "a tail follows records: remove | and the stage after it".to_owned();
        return Err(HttpError(StatusCode::BAD_REQUEST, why));
    }
    let metrics = &context.intake.metrics;
    let tail = context.intake.tails.follow(&expression.filter, peer.origin(), context.limits.tails);
    let tail = tail.map_err(|refusal| {
        metrics.refuse_tail(refusal.reason());
        let why = format!("too many live tails: {refusal}; retry later (limits.tails)");
        HttpError(StatusCode::TOO_MANY_REQUESTS, why)
    })?;
    let (stop, open) = (context.stop.clone(), metrics.tail());
    let following = TailStream { tail, stop, next: None, alive: Instant::now() + KEEPALIVE_INTERVAL, _open: open };
    let events = futures_util::stream::unfold(following, |mut following| async move {
        let events = following.events().await?;
        Some((Ok::<_, Infallible>(events), following))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, Body::from_stream(events)).into_response())
}

/// A live tail and the state of its connection.
struct TailStream {
    tail: Tail,
    stop: StopSignal,
    /// Events that are sent after the report of the records that were missed before them.
    next: Option<Bytes>,
    /// Time when an empty event has to be sent if no other event is sent before.
    alive: Instant,
    _open: GaugeGuard,
}

impl TailStream {
    /// Waits for the next events. `None`: the service ends.
    async fn events(&mut self) -> Option<Bytes> {
        let events = self.wait().await?;
        self.alive = Instant::now() + KEEPALIVE_INTERVAL;
        Some(events)
    }

    async fn wait(&mut self) -> Option<Bytes> {
        loop {
            if let Some(next) = self.next.take() {
                return Some(next);
            }
            let came = tokio::select! {
                came = timeout(MISSED_REPORT_DELAY, self.tail.next()) => came,
                () = stopped(&mut self.stop) => return None,
            };
            if let Ok(events) = came {
                self.next = Some(events?);
            }
            let missed = self.tail.missed();
            if missed > 0 {
                return Some(format!("event: missed\ndata: {missed}\n\n").into());
            }
            if self.next.is_none() && Instant::now() >= self.alive {
                return Some(Bytes::from_static(EMPTY_EVENT));
            }
        }
    }
}
