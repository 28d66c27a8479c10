//! What comes just now, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use serde::Deserialize;

use super::parameters::Parameters;
use super::questions::expression;
use super::{Context, Problem};
use crate::clock::now_ns;
use crate::query::Matcher;
use crate::show::{Colour, Format, Look, Output};
use crate::sources::streams::{Stop, ended};
use crate::stores::Found;

/// How often a line is sent when nothing comes, so that proxies keep the connection.
const ALIVE: Duration = Duration::from_secs(15);

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    #[serde(default)]
    q: String,
    level: Option<String>,
}

/// Sends each record that the filter lets through as an event with its JSON; who does not keep up gets an event `missed`
/// with the number of records.
pub(super) async fn tail(
    State(context): State<Context>,
    Parameters(asked): Parameters<Asked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let expression = expression(&asked.q, asked.level.as_deref(), now_ns())?;
    if expression.stage.is_some() {
        let why = "a tail follows records: leave out what stands behind |".to_owned();
        return Err(Problem(StatusCode::BAD_REQUEST, why));
    }
    let matcher = Matcher::new(&expression.filter);
    let tail = context.intake.tails.follow();
    let (to, from) = tokio::sync::mpsc::channel(16);
    tokio::spawn(follow(tail, matcher, to, context.stop.clone()));
    let events = futures_util::stream::unfold(from, |mut from| async move { Some((Ok(from.recv().await?), from)) });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)))
}

async fn follow(mut tail: crate::tails::Tail, matcher: Matcher, to: tokio::sync::mpsc::Sender<Event>, mut stop: Stop) {
    loop {
        let batch = tokio::select! {
            batch = tail.next() => batch,
            () = to.closed() => return,
            () = ended(&mut stop) => return,
        };
        let Some(batch) = batch else { return };
        for row in batch.rows().filter(|row| matcher.holds(row)) {
            let Ok(json) = json(&Found::Record(row.record())) else { continue };
            if to.send(Event::default().data(json)).await.is_err() {
                return;
            }
        }
        let missed = tail.missed();
        if missed > 0 && to.send(Event::default().event("missed").data(missed.to_string())).await.is_err() {
            return;
        }
    }
}

/// A row as lines of JSON have it.
fn json(found: &Found<'_>) -> std::io::Result<String> {
    let mut output = Output::new(Vec::new(), Format::Ndjson, None, Look { colour: Colour::Off, columns: 0 });
    output.row(found)?;
    let line = String::from_utf8(output.finish()?).map_err(std::io::Error::other)?;
    Ok(line.trim_end().to_owned())
}
