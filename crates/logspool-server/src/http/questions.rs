//! Questions to the store.

use std::io::{self, Write};
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query as Asked, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::SecondsFormat;
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Context, Problem};
use crate::clock::{now_ns, rfc3339};
use crate::query::time::{length, moment};
use crate::query::{self, Field, Query, Stage};
use crate::show::{Colour, Format, Look, Output};
use crate::stores::{Answers, Found, Next, StoreError};

/// Rows of an answer where no limit is given.
const ROWS: u64 = 100;

/// Bytes of an answer that are sent at once.
const PIECE_BYTES: usize = 32 * 1024;

/// Columns of a histogram as text.
const COLUMNS: usize = 100;

/// Records that are looked at for the names of their fields.
const SAMPLE: u64 = 1_000;

/// What is asked of `/api/query`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    #[serde(default)]
    q: String,
    since: Option<String>,
    until: Option<String>,
    limit: Option<u64>,
    format: Option<String>,
    interval: Option<String>,
}

impl Question {
    fn query(&self) -> Result<Query, Problem> {
        let bad = |why: String| Problem(StatusCode::BAD_REQUEST, why);
        let now = now_ns();
        let expression = query::parse(&self.q, now).map_err(|error| bad(error.to_string()))?;
        let time = |text: &Option<String>| text.as_deref().map(|text| moment(text, now)).transpose();
        let is_list = expression.stage.is_none();
        Ok(Query {
            filter: expression.filter,
            stage: expression.stage,
            since_ns: time(&self.since).map_err(|why| bad(why.to_string()))?,
            until_ns: time(&self.until).map_err(|why| bad(why.to_string()))?,
            limit: self.limit.or(is_list.then_some(ROWS)),
        })
    }
}

/// `GET /api/query`: the rows, as they are found.
pub(super) async fn query(State(context): State<Context>, Asked(asked): Asked<Question>) -> Result<Response, Problem> {
    let format = match asked.format.as_deref() {
        None => Format::Ndjson,
        Some(name) => Format::from_str(name, false).map_err(|_| {
            Problem(StatusCode::BAD_REQUEST, format!("format {name:?} is not known: text, ndjson or csv"))
        })?,
    };
    let query = asked.query()?;
    let answers = store(&context)?;
    let (to, mut from) = mpsc::channel::<Result<Bytes, StoreError>>(4);
    tokio::task::spawn_blocking(move || print(&*answers, &query, format, &to));
    // The first piece tells whether the store can answer at all.
    let first = match from.recv().await {
        Some(Err(error)) => return Err(broken(&error)),
        Some(Ok(first)) => first,
        None => Bytes::new(),
    };
    let pieces = futures_util::stream::unfold((Some(first), from), |(first, mut from)| async move {
        let next = match first {
            Some(first) => Ok(first),
            None => from.recv().await?.map_err(|error| io::Error::other(error.to_string())),
        };
        Some((next, (None, from)))
    });
    Ok(([(header::CONTENT_TYPE, content_type(format))], Body::from_stream(pieces)).into_response())
}

/// Writes the answer, and sends it in pieces.
fn print(answers: &dyn Answers, query: &Query, format: Format, to: &mpsc::Sender<Result<Bytes, StoreError>>) {
    let look = Look { colour: Colour::Off, columns: COLUMNS };
    let mut output = Output::new(Pieces { to, piece: Vec::new() }, format, query.stage.as_ref(), look);
    let answered = answers.answer(query, &mut |found| match output.row(&found) {
        Ok(()) => Next::More,
        Err(_) => Next::Enough,
    });
    match answered {
        // Who asked has gone, or hears it.
        Ok(()) => drop(output.finish()),
        Err(error) => drop(to.blocking_send(Err(error))),
    }
}

/// Sends what is written.
struct Pieces<'a> {
    to: &'a mpsc::Sender<Result<Bytes, StoreError>>,
    piece: Vec<u8>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.to.blocking_send(Ok(piece)).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

/// `GET /api/histogram`: how many records there are in each interval.
pub(super) async fn histogram(
    State(context): State<Context>,
    Asked(asked): Asked<Question>,
) -> Result<Json<Value>, Problem> {
    let bad = |why: String| Problem(StatusCode::BAD_REQUEST, why);
    let mut query = asked.query()?;
    if query.stage.is_some() {
        return Err(bad("a histogram is made of records: leave out what stands behind |".to_owned()));
    }
    let interval = asked.interval.as_deref().unwrap_or("1m");
    let interval_ns =
        length(interval).ok_or_else(|| bad(format!("interval {interval:?} is none: write 30s, 1m, 1h or 1d")))?;
    query.stage = Some(Stage::Histogram { interval_ns });
    query.limit = asked.limit;
    let rows = collect(store(&context)?, query, |found| match found {
        Found::Interval(time, count) => Some(json!({ "time": rfc3339(time, SecondsFormat::AutoSi), "count": count })),
        _ => None,
    });
    Ok(Json(Value::Array(rows.await?)))
}

/// `GET /api/fields`: the fields that may be asked for: those that every record may have, and the other ones of the
/// newest records.
pub(super) async fn fields(State(context): State<Context>) -> Result<Json<Value>, Problem> {
    let query = Query { filter: query::Filter::All, stage: None, since_ns: None, until_ns: None, limit: Some(SAMPLE) };
    let rows = collect(store(&context)?, query, |found| match found {
        Found::Record(record) => Some(record.fields.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()),
        _ => None,
    });
    let extra: std::collections::BTreeSet<_> = rows.await?.into_iter().flatten().collect();
    Ok(Json(json!({ "fields": Field::known().iter().map(Field::name).collect::<Vec<_>>(), "extra": extra })))
}

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; charset=utf-8",
        Format::Ndjson => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8",
    }
}

async fn collect<T: Send + 'static>(
    answers: Arc<dyn Answers>,
    query: Query,
    one: impl Fn(Found<'_>) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, Problem> {
    let answered = tokio::task::spawn_blocking(move || {
        let mut rows = Vec::new();
        let each = &mut |found: Found<'_>| {
            rows.extend(one(found));
            Next::More
        };
        answers.answer(&query, each).map(|()| rows)
    });
    match answered.await {
        Ok(rows) => rows.map_err(|error| broken(&error)),
        Err(error) => Err(Problem(StatusCode::INTERNAL_SERVER_ERROR, format!("the query failed: {error}"))),
    }
}

fn store(context: &Context) -> Result<Arc<dyn Answers>, Problem> {
    let none = || {
        Problem(StatusCode::NOT_FOUND, "this service keeps no records that can be asked for: give `store`".to_owned())
    };
    context.answers.clone().ok_or_else(none)
}

fn broken(error: &StoreError) -> Problem {
    Problem(StatusCode::SERVICE_UNAVAILABLE, format!("the store cannot answer: {error}"))
}
