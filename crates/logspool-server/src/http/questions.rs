//! Questions to the store.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::SecondsFormat;
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::parameters::{Parameters as Asked, number};
use super::{Context, Problem, broken_off};
use crate::clock::{now_ns, rfc3339};
use crate::decoders::words;
use crate::query::time::{length, moment};
use crate::query::{self, Comparison, Expression, Field, Filter, Literal, Query, Stage};
use crate::show::{Colour, Format, Look, Output};
use crate::sources::streams::ended;
use crate::stores::{Answers, Found, Next, StoreError, UNREAD};

/// Rows of an answer where no limit is given.
const ROWS: u64 = 100;

/// Bytes of an answer that are sent at once.
const PIECE_BYTES: usize = 32 * 1024;

/// Pieces of an answer that wait for who reads it.
const WAITING_PIECES: usize = 4;

/// Columns of a histogram as text.
const COLUMNS: usize = 100;

/// Records that are looked at for the names of their fields.
const SAMPLE: u64 = 1_000;

/// Where the levels begin that a histogram tells apart: those of Python's `logging`. What lies between two counts with
/// the lower one, what lies below with the first.
const LEVELS: [i64; 5] = [10, 20, 30, 40, 50];

/// What is asked of `/api/query`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    #[serde(default)]
    q: String,
    level: Option<String>,
    since: Option<String>,
    until: Option<String>,
    #[serde(default, deserialize_with = "number")]
    limit: Option<u64>,
    format: Option<String>,
    interval: Option<String>,
    by: Option<String>,
}

fn bad(why: impl ToString) -> Problem {
    Problem(StatusCode::BAD_REQUEST, why.to_string())
}

/// A query as it is written, of this level and above where one is given.
pub(super) fn expression(text: &str, level: Option<&str>, now_ns: i64) -> Result<Expression, Problem> {
    let mut expression = query::parse(text, now_ns).map_err(bad)?;
    if let Some(name) = level {
        let number = name.parse().ok().or_else(|| words::level(name).map(i64::from));
        let number =
            number.ok_or_else(|| bad(format!("no level is called {name:?}: debug to critical, or a number")))?;
        expression.filter = and_level(Comparison::GreaterOrEqual, number, expression.filter);
    }
    Ok(expression)
}

fn and_level(comparison: Comparison, level: i64, filter: Filter) -> Filter {
    Filter::And(vec![Filter::Compare(Field::Level, comparison, Literal::Int(level)), filter])
}

impl Question {
    fn query(&self) -> Result<Query, Problem> {
        let now = now_ns();
        let expression = expression(&self.q, self.level.as_deref(), now)?;
        let time = |text: &Option<String>| text.as_deref().map(|text| moment(text, now)).transpose();
        let is_list = expression.stage.is_none();
        Ok(Query {
            filter: expression.filter,
            stage: expression.stage,
            since_ns: time(&self.since).map_err(bad)?,
            until_ns: time(&self.until).map_err(bad)?,
            limit: self.limit.or(is_list.then_some(ROWS)),
        })
    }
}

/// `GET /api/query`: the rows, as they are found.
pub(super) async fn query(State(context): State<Context>, Asked(asked): Asked<Question>) -> Result<Response, Problem> {
    let format = match asked.format.as_deref() {
        None => Format::Ndjson,
        Some(name) => Format::from_str(name, false)
            .map_err(|_| bad(format!("format {name:?} is not known: text, ndjson or csv")))?,
    };
    if asked.interval.is_some() || asked.by.is_some() {
        return Err(bad("`interval` and `by` are for /api/histogram"));
    }
    let query = asked.query()?;
    let answers = store(&context)?;
    let (to, mut from) = mpsc::channel(WAITING_PIECES);
    let unread = unread(&context);
    let answering = tokio::task::spawn_blocking(move || print(&*answers, &query, format, Pieces::new(to, unread)));
    // The first piece tells whether the store can answer at all.
    let Some(first) = from.recv().await else {
        return match answering.await {
            Ok(Err(error)) => Err(broken(&error)),
            Ok(Ok(())) | Err(_) => Err(Problem(StatusCode::INTERNAL_SERVER_ERROR, "the query failed".to_owned())),
        };
    };
    let begun = (Some(first), from, Some(answering));
    let pieces = futures_util::stream::unfold(begun, |(first, mut from, mut answering)| async move {
        let next = match first {
            Some(first) => Ok(first),
            None => match from.recv().await {
                Some(piece) => Ok(piece),
                // An answer that broke off is not one that is complete.
                None => match answering.take()?.await {
                    Ok(Ok(())) => return None,
                    Ok(Err(error)) => Err(io::Error::other(error.to_string())),
                    Err(error) => Err(io::Error::other(error)),
                },
            },
        };
        Some((next, (None, from, answering)))
    });
    let body = broken_off::told(Body::from_stream(pieces), format);
    Ok(([(header::CONTENT_TYPE, content_type(format))], body).into_response())
}

/// Writes the answer, and sends it in pieces.
fn print(answers: &dyn Answers, query: &Query, format: Format, to: Pieces) -> Result<(), StoreError> {
    let look = Look { colour: Colour::Off, columns: COLUMNS };
    let mut output = Output::new(to, format, query.stage.as_ref(), look);
    let mut unwritten = None;
    let answered = answers.answer(query, &mut |found| match output.row(&found) {
        Ok(()) => Next::More,
        Err(error) => {
            unwritten = Some(error);
            Next::Enough
        }
    });
    answered?;
    // Where who asked has gone, nobody hears it.
    let written = unwritten.map_or_else(|| output.finish().map(drop), Err);
    written.map_err(|error| StoreError::Retry(error.to_string()))
}

/// Comes when nobody may be waited for any more who does not read: until then the store keeps what is old for the
/// answer, and cannot clear it away.
fn unread(context: &Context) -> Unread {
    // Made here, where the runtime is that tells the time; see `wait`.
    let late = tokio::time::sleep(context.limits.query_time());
    let mut stop = context.stop.clone();
    Box::pin(async move {
        tokio::select! { () = late => {}, () = ended(&mut stop) => {} }
    })
}

type Unread = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits on this thread. It may be driving a runtime of its own, that of a connection to a database which hands over
/// its rows: there tokio's own ways to wait panic, and a future that is not unconstrained may never be woken.
fn wait<T>(future: impl Future<Output = T>) -> T {
    futures_executor::block_on(tokio::task::unconstrained(future))
}

/// Sends what is written.
struct Pieces {
    to: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
    unread: Unread,
}

impl Pieces {
    fn new(to: mpsc::Sender<Bytes>, unread: Unread) -> Self {
        Self { to, piece: Vec::new(), unread }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        wait(async {
            tokio::select! {
                // First: what there is room for goes on.
                biased;
                sent = self.to.send(piece) => sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe)),
                () = &mut self.unread => Err(io::Error::new(io::ErrorKind::TimedOut, UNREAD)),
            }
        })
    }
}

/// `GET /api/histogram`: how many records there are in each interval, or in each interval and level.
pub(super) async fn histogram(
    State(context): State<Context>,
    Asked(asked): Asked<Question>,
) -> Result<Json<Value>, Problem> {
    let mut query = asked.query()?;
    if query.stage.is_some() {
        return Err(bad("a histogram is made of records: leave out what stands behind |"));
    }
    if asked.format.is_some() {
        return Err(bad("a histogram is JSON: leave out `format`"));
    }
    let interval = asked.interval.as_deref().unwrap_or("1m");
    let interval_ns =
        length(interval).ok_or_else(|| bad(format!("interval {interval:?} is none: write 30s, 1m, 1h or 1d")))?;
    query.stage = Some(Stage::Histogram { interval_ns });
    query.limit = asked.limit;
    let answers = store(&context)?;
    let rows = match asked.by.as_deref() {
        None => intervals(answers, query).await?.into_iter().map(|(time, count)| row(time, None, count)).collect(),
        Some("level") => by_level(&answers, &query).await?,
        Some(other) => return Err(bad(format!("a histogram by {other:?} is not known: by=level"))),
    };
    Ok(Json(Value::Array(rows)))
}

async fn intervals(answers: Arc<dyn Answers>, query: Query) -> Result<Vec<(i64, u64)>, Problem> {
    collect(answers, query, |found| match found {
        Found::Interval(time, count) => Some((time, count)),
        _ => None,
    })
    .await
}

/// Asked of the store level by level: without a filter for more than loggers and levels, SQLite answers each from its
/// counts of minutes.
async fn by_level(answers: &Arc<dyn Answers>, query: &Query) -> Result<Vec<Value>, Problem> {
    let mut counts = Vec::new();
    for (at, level) in LEVELS.into_iter().enumerate() {
        let mut filter = query.filter.clone();
        if at > 0 {
            filter = and_level(Comparison::GreaterOrEqual, level, filter);
        }
        if let Some(above) = LEVELS.get(at + 1) {
            filter = and_level(Comparison::Less, *above, filter);
        }
        let found = intervals(answers.clone(), Query { filter, ..query.clone() }).await?;
        counts.extend(found.into_iter().map(|(time, count)| (time, level, count)));
    }
    counts.sort_unstable();
    let most = query.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(counts.into_iter().take(most).map(|(time, level, count)| row(time, Some(level), count)).collect())
}

fn row(time: i64, level: Option<i64>, count: u64) -> Value {
    let mut row = json!({ "time": rfc3339(time, SecondsFormat::AutoSi), "count": count });
    if let Some(level) = level {
        row["level"] = level.into();
    }
    row
}

/// `GET /api/fields`: the fields that may be asked for: those that every record may have, and the other ones of the
/// newest records.
pub(super) async fn fields(State(context): State<Context>) -> Result<Json<Value>, Problem> {
    let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: Some(SAMPLE) };
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Record;

    /// Has records for as long as somebody wants them.
    struct Endless;

    impl Answers for Endless {
        fn answer(&self, _: &Query, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<(), StoreError> {
            while each(Found::Record(Record::default())) == Next::More {}
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_not_read_lets_the_store_go_when_it_is_told() {
        let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: None };
        let (to, mut from) = mpsc::channel(WAITING_PIECES);
        let late: Unread = Box::pin(tokio::time::sleep(Duration::from_millis(20)));
        // With a runtime of its own around, as where a database hands over its rows.
        let answering = tokio::task::spawn_blocking(move || {
            let own = tokio::runtime::Builder::new_current_thread().build().unwrap();
            own.block_on(async { print(&Endless, &query, Format::Ndjson, Pieces::new(to, late)) })
        });

        assert_eq!(UNREAD, answering.await.unwrap().unwrap_err().to_string());
        let mut pieces = 0;
        while from.recv().await.is_some() {
            pieces += 1;
        }
        assert_eq!(WAITING_PIECES, pieces);
    }
}
