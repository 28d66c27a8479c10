//! Queries to the store.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::SecondsFormat;
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Pieces, Produce};
use super::broken_off;
use super::context::Context;
use super::parameters::{Parameters as Asked, number};
use super::problem::Problem;
use crate::cancel::Cancel;
use crate::clock::{now_ns, rfc3339};
use crate::decoders::words;
use crate::peer::Peer;
use crate::query::time::{length, moment};
use crate::query::{self, Comparison, Expression, Field, Filter, Literal, Query, Stage};
use crate::show::{Colour, Format, Look, Output};
use crate::stores::{Answers, Found, Next, Progress, StoreError};

/// Default number of rows.
const ROWS: u64 = 100;

/// Width of a histogram as text, in columns.
const COLUMNS: usize = 100;

/// Number of records whose field names are collected.
const SAMPLE: u64 = 1_000;

/// Maximum size of the collected names in bytes.
const NAME_BYTES: usize = 256 * 1024;

/// Maximum number of intervals of a histogram over all levels; they are kept in memory. Chosen: the minutes of two
/// months.
const MOST_BARS: usize = 100_000;

/// Lower bounds of the levels in a histogram, as in Python's `logging`. A number between two bounds counts as the lower
/// level, a number below all bounds as the first level.
const LEVELS: [i64; 5] = [10, 20, 30, 40, 50];

/// Parameters of `/api/query`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryParameters {
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

/// Parses a query. With `level`, only records of this level and above match.
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

impl QueryParameters {
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

/// `GET /api/query`: sends the rows as they are found.
pub(super) async fn query(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Asked(asked): Asked<QueryParameters>,
) -> Result<Response, Problem> {
    let format = match asked.format.as_deref() {
        None => Format::Ndjson,
        Some(name) => Format::from_str(name, false)
            .map_err(|_| bad(format!("format {name:?} is not known: text, ndjson or csv")))?,
    };
    if asked.interval.is_some() || asked.by.is_some() {
        return Err(bad("`interval` and `by` are for /api/histogram"));
    }
    let body = answer::ask(&context, &peer, rows(store(&context)?, asked.query()?, format)).await?;
    let body = broken_off::told(body, format);
    Ok(([(header::CONTENT_TYPE, content_type(format))], body).into_response())
}

/// Writes the rows of an answer.
fn rows(answers: Arc<dyn Answers>, query: Query, format: Format) -> Produce {
    let mut answer = None;
    let mut output =
        Some(Output::new(Vec::new(), format, query.stage.as_ref(), Look { colour: Colour::Off, columns: COLUMNS }));
    Box::new(move |cancel, pieces| {
        let answer = match &mut answer {
            Some(answer) => answer,
            none => none.insert(answers.ask(&query, cancel).map_err(|error| broken(&error))?),
        };
        let Some(writing) = &mut output else { return Ok(Progress::Ended) };
        let mut each = |found: Found<'_>| match writing.row(&found).and_then(|()| hand_over(writing.writer(), pieces)) {
            Ok(()) if pieces.are_full() => Next::Pause,
            Ok(()) => Next::More,
            // Writing to memory cannot fail.
            Err(_) => Next::Enough,
        };
        let progress = answer.go_on(&mut each).map_err(|error| broken(&error))?;
        if progress == Progress::Ended
            && let Some(output) = output.take()
        {
            let rest = output.finish().and_then(|mut rest| hand_over(&mut rest, pieces));
            rest.map_err(|error| Problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        }
        Ok(progress)
    })
}

fn hand_over(from: &mut Vec<u8>, to: &mut Pieces) -> io::Result<()> {
    to.write_all(from)?;
    from.clear();
    Ok(())
}

/// `GET /api/histogram`: the number of records by interval, or by interval and level.
pub(super) async fn histogram(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Asked(asked): Asked<QueryParameters>,
) -> Result<Response, Problem> {
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
    let levels = match asked.by.as_deref() {
        None => &[][..],
        Some("level") => &LEVELS,
        Some(other) => return Err(bad(format!("a histogram by {other:?} is not known: by=level"))),
    };
    let body = answer::ask(&context, &peer, bars(store(&context)?, query, levels)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Writes the intervals of a histogram, for each level if levels are given.
fn bars(answers: Arc<dyn Answers>, query: Query, levels: &'static [i64]) -> Produce {
    let mut left: Option<std::vec::IntoIter<Bar>> = None;
    let mut sign = "[";
    Box::new(move |cancel, pieces| {
        let left = match &mut left {
            Some(left) => left,
            none => none.insert(count(&*answers, &query, levels, cancel)?.into_iter()),
        };
        for (time, level, count) in left {
            // Writing to memory cannot fail.
            let _ = write!(pieces, "{}{}", std::mem::replace(&mut sign, ","), bar(time, level, count));
            if pieces.are_full() {
                return Ok(Progress::Paused);
            }
        }
        let _ = pieces.write_all(if sign == "[" { b"[]" } else { b"]" });
        Ok(Progress::Ended)
    })
}

/// Start of an interval, its level if there is one, and the number of records.
type Bar = (i64, Option<i64>, u64);

/// Counts level by level. SQLite then uses its counts by minute, unless the filter needs more than loggers and levels.
fn count(answers: &dyn Answers, query: &Query, levels: &'static [i64], cancel: &Cancel) -> Result<Vec<Bar>, Problem> {
    let mut counts = Vec::new();
    if levels.is_empty() {
        intervals(answers, query, None, cancel, &mut counts)?;
    }
    for (at, level) in levels.iter().enumerate() {
        let mut filter = query.filter.clone();
        if at > 0 {
            filter = and_level(Comparison::GreaterOrEqual, *level, filter);
        }
        if let Some(above) = levels.get(at + 1) {
            filter = and_level(Comparison::Less, *above, filter);
        }
        intervals(answers, &Query { filter, ..query.clone() }, Some(*level), cancel, &mut counts)?;
    }
    counts.sort_unstable();
    counts.truncate(query.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
    Ok(counts)
}

fn intervals(
    answers: &dyn Answers,
    query: &Query,
    level: Option<i64>,
    cancel: &Cancel,
    counts: &mut Vec<Bar>,
) -> Result<(), Problem> {
    let mut answer = answers.ask(query, cancel).map_err(|error| broken(&error))?;
    let mut each = |found: Found<'_>| {
        if let Found::Interval(time, count) = found {
            counts.push((time, level, count));
        }
        if counts.len() > MOST_BARS { Next::Enough } else { Next::More }
    };
    answer.go_on(&mut each).map_err(|error| broken(&error))?;
    if counts.len() > MOST_BARS {
        return Err(bad(format!("more than {MOST_BARS} intervals: ask for longer ones, or for less time")));
    }
    Ok(())
}

fn bar(time: i64, level: Option<i64>, count: u64) -> Value {
    let mut row = json!({ "time": rfc3339(time, SecondsFormat::AutoSi), "count": count });
    if let Some(level) = level {
        row["level"] = level.into();
    }
    row
}

/// `GET /api/fields`: the fields for queries. These are the fields of every record, and the extra keys of the newest
/// records.
pub(super) async fn fields(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
) -> Result<Response, Problem> {
    let body = answer::ask(&context, &peer, names(store(&context)?)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn names(answers: Arc<dyn Answers>) -> Produce {
    let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: Some(SAMPLE) };
    Box::new(move |cancel, pieces| {
        let mut extra = BTreeSet::new();
        let mut bytes = 0;
        let mut each = |found: Found<'_>| {
            if let Found::Record(record) = found {
                for (name, _) in record.fields {
                    if bytes < NAME_BYTES && !extra.contains(&*name) {
                        bytes += name.len();
                        extra.insert(name.into_owned());
                    }
                }
            }
            Next::More
        };
        let answered = answers.ask(&query, cancel).and_then(|mut answer| answer.go_on(&mut each));
        answered.map_err(|error| broken(&error))?;
        let known = Field::known().iter().map(Field::name).collect::<Vec<_>>();
        // Writing to memory cannot fail.
        let _ = write!(pieces, "{}", json!({ "fields": known, "extra": extra }));
        Ok(Progress::Ended)
    })
}

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; charset=utf-8",
        Format::Ndjson => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8",
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
    use super::*;
    use crate::record::Record;
    use crate::stores::{Answer, StoreError};

    /// Has numbered records until the reader stops.
    struct Endless(u32);

    impl Answers for Endless {
        fn ask(&self, _: &Query, _: &Cancel) -> Result<Box<dyn Answer>, StoreError> {
            Ok(Box::new(Self(0)))
        }
    }

    impl Answer for Endless {
        fn go_on(&mut self, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<Progress, StoreError> {
            loop {
                self.0 += 1;
                let record = Record { line: Some(self.0), ..Record::default() };
                match each(Found::Record(record)) {
                    Next::More => {}
                    Next::Enough => return Ok(Progress::Ended),
                    Next::Pause => return Ok(Progress::Paused),
                }
            }
        }
    }

    #[test]
    fn an_answer_pauses_where_it_is_not_read_and_goes_on_with_the_next_row() {
        let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: None };
        let mut produce = rows(Arc::new(Endless(0)), query, Format::Ndjson);
        let mut text = Vec::new();
        for _ in 0..3 {
            let mut pieces = Pieces::unread();
            assert_eq!(Progress::Paused, produce(&Cancel::default(), &mut pieces).unwrap());
            text.extend(pieces.take());
        }

        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().map(|line| Record::from_json(line).unwrap().line.unwrap());
        assert!(lines.clone().eq(1..=u32::try_from(lines.count()).unwrap()));
        assert!(text.len() > 3 * 128 * 1024 && text.len() < 4 * 128 * 1024);
    }
}
