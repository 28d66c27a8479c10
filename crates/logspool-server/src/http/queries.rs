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

use super::answer::{self, AnswerWriter, WriteAnswer};
use super::context::Context;
use super::error::HttpError;
use super::interrupted;
use super::parameters::{Parameters as Asked, number};
use crate::cancel::CancelToken;
use crate::clock::{now_ns, rfc3339};
use crate::decoders::convert;
use crate::peer::Peer;
use crate::pipeline::{PipelineError, RunningQuery};
use crate::query::time::{parse_duration, parse_time};
use crate::query::{self, Comparison, Expression, Field, Filter, Literal, Query, Stage};
use crate::query_memory::CountMemory;
use crate::remarks::{AskedQuery, Remarks};
use crate::show::{Colour, Format, Output, TextStyle};
use crate::stores::{AnswerProgress, AnswerRow, QueryReader, RowFlow, StoreError};

/// Default number of rows.
const DEFAULT_ROWS: u64 = 100;

/// Width of a histogram as text, in columns.
const COLUMNS: usize = 100;

/// Number of newest records whose field names are collected.
const SAMPLE_RECORDS: u64 = 1_000;

/// Maximum size of all collected field names in bytes.
const MAX_NAME_BYTES: usize = 256 * 1024;

/// Maximum number of intervals of a histogram, summed over all levels, because they are kept in memory. Chosen: two
/// months have fewer minutes than this.
const MAX_BARS: usize = 100_000;

/// Lower bounds of the levels in a histogram, as in Python's `logging`. A level number between two bounds counts as the
/// lower one. A number below all bounds counts as the first level.
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

fn bad_request(why: impl ToString) -> HttpError {
    HttpError(StatusCode::BAD_REQUEST, why.to_string())
}

/// Parses a query. With `level`, only records of this level and above match.
pub(super) fn expression(text: &str, level: Option<&str>, now_ns: i64) -> Result<Expression, HttpError> {
    let mut expression = query::parse(text, now_ns).map_err(bad_request)?;
    if let Some(name) = level {
        let number = name.parse().ok().or_else(|| convert::level(name).map(i64::from));
        let number = number
            .ok_or_else(|| bad_request(format!("unknown level {name:?}: write debug to critical, or a number")))?;
        expression.filter = and_level(Comparison::GreaterOrEqual, number, expression.filter);
    }
    Ok(expression)
}

fn and_level(comparison: Comparison, level: i64, filter: Filter) -> Filter {
    Filter::And(vec![Filter::Compare(Field::Level, comparison, Literal::Int(level)), filter])
}

impl QueryParameters {
    fn query(&self) -> Result<AskedQuery, HttpError> {
        let now = now_ns();
        let expression = expression(&self.q, self.level.as_deref(), now)?;
        let time = |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
        let is_list = expression.has_records();
        let query = Query {
            filter: expression.filter,
            stage: expression.stage,
            since_ns: time(&self.since).map_err(bad_request)?,
            until_ns: time(&self.until).map_err(bad_request)?,
            limit: match self.limit {
                None => is_list.then_some(DEFAULT_ROWS),
                Some(0) => None,
                limit => limit,
            },
        };
        Ok(AskedQuery::new(query, now).with_pipeline(expression.pipeline))
    }
}

/// `GET /api/query`: sends the rows as they are found.
pub(super) async fn query(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Asked(asked): Asked<QueryParameters>,
) -> Result<Response, HttpError> {
    let format = match asked.format.as_deref() {
        None => Format::Ndjson,
        Some(name) => Format::from_str(name, false)
            .map_err(|_| bad_request(format!("unknown format {name:?}: use text, ndjson or csv")))?,
    };
    if asked.interval.is_some() || asked.by.is_some() {
        return Err(bad_request("`interval` and `by` are for /api/histogram"));
    }
    let body =
        answer::start(&context, &peer, write_rows(reader(&context)?, asked.query()?, format, context.memory.clone()))
            .await?;
    let body = interrupted::with_reason(body, format);
    Ok(([(header::CONTENT_TYPE, content_type(format))], body).into_response())
}

/// `GET /api/facets`: the most frequent values of the most frequent fields of the records that match, as rows.
pub(super) async fn facets(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Asked(mut asked): Asked<QueryParameters>,
) -> Result<Response, HttpError> {
    if asked.format.is_some() || asked.interval.is_some() || asked.by.is_some() {
        return Err(bad_request("facets are lines of JSON: remove `format`, `interval` and `by`"));
    }
    asked.q.push_str(" | facets");
    let rows = write_rows(reader(&context)?, asked.query()?, Format::Ndjson, context.memory.clone());
    let body = answer::start(&context, &peer, rows).await?;
    let body = interrupted::with_reason(body, Format::Ndjson);
    Ok(([(header::CONTENT_TYPE, content_type(Format::Ndjson))], body).into_response())
}

/// Returns a function that writes the rows of an answer.
fn write_rows(answers: Arc<dyn QueryReader>, asked: AskedQuery, format: Format, memory: CountMemory) -> WriteAnswer {
    let mut answer = None;
    let mut shown = 0;
    let look = TextStyle { colour: Colour::Off, columns: COLUMNS };
    let output = Output::new(Vec::new(), format, asked.query.stage.as_ref(), look);
    let mut output = Some(output.with_columns(&asked.pipeline));
    Box::new(move |cancel, pieces| {
        let answer = match &mut answer {
            Some(answer) => answer,
            none => none.insert({
                let begun = RunningQuery::begin(&*answers, &asked, &memory, cancel);
                begun.map_err(failed)?
            }),
        };
        let Some(writing) = &mut output else { return Ok(AnswerProgress::Ended) };
        let mut each = |found: AnswerRow<'_>| {
            shown += 1;
            match writing.row(&found).and_then(|()| hand_over(writing.writer(), pieces)) {
                Ok(()) if pieces.is_full() => RowFlow::Pause,
                Ok(()) => RowFlow::Continue,
                // Writing to memory cannot fail.
                Err(_) => RowFlow::Stop,
            }
        };
        let resumed = answer.resume(&mut each);
        if let Err(PipelineError::Store(StoreError::Fatal(_))) = resumed
            && shown > 0
        {
            // A file is damaged. The client gets the rows of the other files, and then the reason.
            // Writing to memory cannot fail.
            if let Some(mut rest) = output.take().and_then(|output| output.finish().ok()) {
                _ = hand_over(&mut rest, pieces);
            }
            _ = pieces.flush();
        }
        let progress = resumed.map_err(failed)?;
        if progress == AnswerProgress::Ended
            && let Some(output) = output.take()
        {
            let rest = output.finish().and_then(|mut rest| {
                hand_over(&mut rest, pieces)?;
                // The client gets the rows before the remarks, which may take a second.
                pieces.flush()
            });
            rest.map_err(|error| HttpError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
            let remarks = answer.remarks(&*answers, &asked, shown, cancel);
            write_remarks(&remarks, format, &asked, shown, pieces);
        }
        Ok(progress)
    })
}

/// Writes the remarks as the last lines of an answer. CSV has no place for them.
fn write_remarks(remarks: &Remarks, format: Format, asked: &AskedQuery, shown: u64, to: &mut AnswerWriter) {
    let lines = match format {
        Format::Ndjson => remarks.to_json().into_iter().collect(),
        Format::Text => remarks.sentences(asked.query.stage.as_ref(), &asked.pipeline, shown, "limit=0"),
        Format::Csv => Vec::new(),
    };
    for line in lines {
        // Writing to memory cannot fail.
        let _ = writeln!(to, "{line}");
    }
}

fn hand_over(from: &mut Vec<u8>, to: &mut AnswerWriter) -> io::Result<()> {
    to.write_all(from)?;
    from.clear();
    Ok(())
}

/// `GET /api/histogram`: the number of records by interval, or by interval and level.
pub(super) async fn histogram(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    Asked(asked): Asked<QueryParameters>,
) -> Result<Response, HttpError> {
    let AskedQuery { mut query, pipeline, .. } = asked.query()?;
    if query.stage.is_some() || !pipeline.steps.is_empty() {
        return Err(bad_request("a histogram counts records: remove | and the stage after it"));
    }
    if asked.format.is_some() {
        return Err(bad_request("a histogram is always JSON: remove `format`"));
    }
    let interval = asked.interval.as_deref().unwrap_or("1m");
    let interval_ns = parse_duration(interval)
        .ok_or_else(|| bad_request(format!("invalid interval {interval:?}: write 30s, 1m, 1h or 1d")))?;
    query.stage = Some(Stage::Histogram { interval_ns });
    query.limit = asked.limit.filter(|limit| *limit > 0);
    let levels = match asked.by.as_deref() {
        None => &[][..],
        Some("level") => &LEVELS,
        Some(other) => return Err(bad_request(format!("unknown grouping {other:?}: use by=level"))),
    };
    let body = answer::start(&context, &peer, write_bars(reader(&context)?, query, levels)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Returns a function that writes the intervals of a histogram, separately for each level if `levels` is not empty.
fn write_bars(answers: Arc<dyn QueryReader>, query: Query, levels: &'static [i64]) -> WriteAnswer {
    let mut left: Option<std::vec::IntoIter<Value>> = None;
    let mut sign = "[";
    Box::new(move |cancel, pieces| {
        let left = match &mut left {
            Some(left) => left,
            none => none.insert(bars(&*answers, &query, levels, cancel)?.into_iter()),
        };
        for bar in left {
            // Writing to memory cannot fail.
            let _ = write!(pieces, "{}{bar}", std::mem::replace(&mut sign, ","));
            if pieces.is_full() {
                return Ok(AnswerProgress::Paused);
            }
        }
        let _ = pieces.write_all(if sign == "[" { b"[]" } else { b"]" });
        Ok(AnswerProgress::Ended)
    })
}

/// Start of an interval, its level if there is one, and the number of records.
type Bar = (i64, Option<i64>, u64);

/// The rows of a histogram. If the limit cut some off, a further row has their number: `{"left_out": number}`. If a file
/// is damaged, the last row names it: `{"error": text}`.
fn bars(
    answers: &dyn QueryReader,
    query: &Query,
    levels: &'static [i64],
    cancel: &CancelToken,
) -> Result<Vec<Value>, HttpError> {
    let mut damage = None;
    let (counts, cut) = count(answers, query, levels, cancel, &mut damage)?;
    let mut bars: Vec<_> = counts.into_iter().map(|(time, level, count)| bar(time, level, count)).collect();
    if cut > 0 {
        bars.push(json!({ "left_out": cut }));
    }
    match damage {
        Some(damage) if bars.is_empty() => return Err(unavailable(&damage)),
        damage => bars.extend(damage.map(|damage| json!({ "error": damage.to_string() }))),
    }
    Ok(bars)
}

/// Runs one histogram query per level. So SQLite can use its stored counts by minute, unless the filter needs more than
/// loggers and levels.
fn count(
    answers: &dyn QueryReader,
    query: &Query,
    levels: &'static [i64],
    cancel: &CancelToken,
    damage: &mut Option<StoreError>,
) -> Result<(Vec<Bar>, usize), HttpError> {
    let limit = query.limit;
    let query = &Query { limit: None, ..query.clone() };
    let mut counts = Vec::new();
    if levels.is_empty() {
        intervals(answers, query, None, cancel, &mut counts, damage)?;
    }
    for (at, level) in levels.iter().enumerate() {
        let mut filter = query.filter.clone();
        if at > 0 {
            filter = and_level(Comparison::GreaterOrEqual, *level, filter);
        }
        if let Some(above) = levels.get(at + 1) {
            filter = and_level(Comparison::Less, *above, filter);
        }
        intervals(answers, &Query { filter, ..query.clone() }, Some(*level), cancel, &mut counts, damage)?;
    }
    counts.sort_unstable();
    let cut = limit.map_or(0, |limit| counts.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX)));
    counts.drain(..cut);
    Ok((counts, cut))
}

fn intervals(
    answers: &dyn QueryReader,
    query: &Query,
    level: Option<i64>,
    cancel: &CancelToken,
    counts: &mut Vec<Bar>,
    damage: &mut Option<StoreError>,
) -> Result<(), HttpError> {
    let mut answer = answers.begin(query, cancel).map_err(|error| unavailable(&error))?;
    let mut each = |found: AnswerRow<'_>| {
        if let AnswerRow::Interval(time, count) = found {
            counts.push((time, level, count));
        }
        if counts.len() > MAX_BARS { RowFlow::Stop } else { RowFlow::Continue }
    };
    match answer.resume(&mut each) {
        // A file is damaged. The intervals of the others are complete.
        Err(error @ StoreError::Fatal(_)) => drop(damage.get_or_insert(error)),
        resumed => drop(resumed.map_err(|error| unavailable(&error))?),
    }
    if counts.len() > MAX_BARS {
        return Err(bad_request(format!("more than {MAX_BARS} intervals: use longer ones, or a shorter time range")));
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

/// `GET /api/fields`: the fields for queries. These are the fields that every record has, and the extra keys of the
/// newest records.
pub(super) async fn fields(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
) -> Result<Response, HttpError> {
    let body = answer::start(&context, &peer, field_names(reader(&context)?)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn field_names(answers: Arc<dyn QueryReader>) -> WriteAnswer {
    let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: Some(SAMPLE_RECORDS) };
    Box::new(move |cancel, pieces| {
        let mut extra = BTreeSet::new();
        let mut bytes = 0;
        let mut each = |found: AnswerRow<'_>| {
            if let AnswerRow::Record(record) = found {
                for (name, _) in record.fields {
                    if bytes < MAX_NAME_BYTES && !extra.contains(&*name) {
                        bytes += name.len();
                        extra.insert(name.into_owned());
                    }
                }
            }
            RowFlow::Continue
        };
        let answered = answers.begin(&query, cancel).and_then(|mut answer| answer.resume(&mut each));
        answered.map_err(|error| unavailable(&error))?;
        let known = Field::known().iter().map(Field::name).collect::<Vec<_>>();
        // Writing to memory cannot fail.
        let _ = write!(pieces, "{}", json!({ "fields": known, "extra": extra }));
        Ok(AnswerProgress::Ended)
    })
}

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Text => "text/plain; charset=utf-8",
        Format::Ndjson => "application/x-ndjson",
        Format::Csv => "text/csv; charset=utf-8",
    }
}

fn reader(context: &Context) -> Result<Arc<dyn QueryReader>, HttpError> {
    let none = || HttpError(StatusCode::NOT_FOUND, "this service has no store for queries: set `store`".to_owned());
    context.reader.clone().ok_or_else(none)
}

fn failed(error: PipelineError) -> HttpError {
    match error {
        PipelineError::Store(error) => unavailable(&error),
        PipelineError::Query(error) => bad_request(error),
    }
}

fn unavailable(error: &StoreError) -> HttpError {
    HttpError(StatusCode::SERVICE_UNAVAILABLE, format!("the store cannot answer: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Record;
    use crate::stores::{QueryAnswer, StoreError};

    /// A reader whose answers have numbered records without end.
    struct Endless(u32);

    impl QueryReader for Endless {
        fn begin(&self, _: &Query, _: &CancelToken) -> Result<Box<dyn QueryAnswer>, StoreError> {
            Ok(Box::new(Self(0)))
        }

        fn begin_within(
            &self,
            query: &Query,
            _: Duration,
            cancel: &CancelToken,
        ) -> Result<Box<dyn QueryAnswer>, StoreError> {
            self.begin(query, cancel)
        }
    }

    impl QueryAnswer for Endless {
        fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
            loop {
                self.0 += 1;
                let record = Record { line: Some(self.0), ..Record::default() };
                match each(AnswerRow::Record(record)) {
                    RowFlow::Continue => {}
                    RowFlow::Stop => return Ok(AnswerProgress::Ended),
                    RowFlow::Pause => return Ok(AnswerProgress::Paused),
                }
            }
        }
    }

    #[test]
    fn an_unread_answer_pauses_and_resumes_with_the_next_row() {
        let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: None };
        let mut produce =
            write_rows(Arc::new(Endless(0)), AskedQuery::new(query, 0), Format::Ndjson, CountMemory::default());
        let mut text = Vec::new();
        for _ in 0..3 {
            let mut pieces = AnswerWriter::unread();
            assert_eq!(AnswerProgress::Paused, produce(&CancelToken::default(), &mut pieces).unwrap());
            text.extend(pieces.take());
        }

        let text = String::from_utf8(text).unwrap();
        let lines = text.lines().map(|line| Record::from_json(line).unwrap().line.unwrap());
        assert!(lines.clone().eq(1..=u32::try_from(lines.count()).unwrap()));
        assert!(text.len() > 3 * 128 * 1024 && text.len() < 4 * 128 * 1024);
    }
}
