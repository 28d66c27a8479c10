//! `logspool query`.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use chrono::SecondsFormat;

use super::buffered_stdout::BufferedStdout;
use super::client;
use super::colour::ColourChoice;
use super::failure::CommandFailure;
use crate::cancel::CancelToken;
use crate::clock::{now_ns, rfc3339};
use crate::http;
use crate::limits::Limits;
use crate::opening;
use crate::pipeline::{PipelineError, RunningQuery};
use crate::query::time::parse_time;
use crate::query::{self, Expression, Pipeline, Query, StepWork};
use crate::query_memory::CountMemory;
use crate::record::Record;
use crate::remarks::{AskedQuery, Remarks};
use crate::show::{Colour, Format, Output};
use crate::stores::{AnswerProgress, AnswerRow, RowFlow, StoreAddress};
use crate::value::Value;
use crate::visible::visible;

/// Default number of rows.
const DEFAULT_ROWS: u64 = 100;

/// Find records, the newest first.
///
/// EXPRESSION: words and "phrases" match the message; FIELD=VALUE, !=, <, <=, >, >=, FIELD~"regex"; and (between terms
/// by itself), or, not, parentheses. Fields: level, logger, message, host, pid, thread, trace_id, time, and any other
/// key of the records. Then stages: `| count by FIELD`, `| last by FIELD`, `| histogram 1m`, `| stats p95(FIELD) by FIELD`,
/// `| where`, `| sort`, `| top`, `| limit`, `| fields`, `| let`, `| parse`.
///
/// Examples: `logspool query 'level>=error payment' --since 1h`, `logspool query 'logger=shop | count by level'`.
#[derive(Debug, clap::Args)]
pub(super) struct QueryArguments {
    /// The query; default: all records.
    #[arg(default_value = "")]
    expression: String,
    #[command(flatten)]
    options: QueryOptions,
}

/// The options of queries.
#[derive(Debug, clap::Args)]
pub(super) struct QueryOptions {
    #[command(flatten)]
    service: client::ServiceArguments,
    /// Read a store directly, without a service: sqlite:FOLDER or postgres://...
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    store: Option<StoreAddress>,
    /// Only records from this time on: 15m, 1.5h, 2d, 1w (ago), yesterday, or a time as 2026-11-22T10:00:00Z (UTC).
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only records before this time; default: now.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Maximum number of rows; 0: all. Default: 100 records; all rows of a count or histogram.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// When to colour text.
    #[arg(long, value_enum, default_value = "auto")]
    color: ColourChoice,
}

pub(super) fn run(arguments: &QueryArguments) -> Result<(), CommandFailure> {
    ask(&arguments.expression, &arguments.options)
}

/// Asks a query, and prints its answer.
pub(super) fn ask(expression: &str, arguments: &QueryOptions) -> Result<(), CommandFailure> {
    let now = now_ns();
    let expression = query::parse(expression, now).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    let time = |option: &str, text: &Option<String>| {
        let read = |text: &String| {
            parse_time(text, now).map_err(|error| CommandFailure::Usage(format!("--{option}: {error}")))
        };
        text.as_ref().map(read).transpose()
    };
    let (since_ns, until_ns) = (time("since", &arguments.since)?, time("until", &arguments.until)?);
    let limit = match arguments.limit {
        None => expression.has_records().then_some(DEFAULT_ROWS),
        Some(0) => None,
        limit => limit,
    };
    let look = arguments.color.text_style();
    let Some(store) = &arguments.store else {
        let out = BufWriter::new(io::stdout().lock());
        let output = Output::new(out, arguments.format, expression.stage.as_ref(), look);
        let mut output = output.with_columns(&expression.pipeline);
        let asked = query_service(arguments, since_ns, until_ns, limit, &expression, &mut output);
        // Write the rows that came also if the answer broke off.
        let written = output.finish();
        let (remarks, shown) = asked?;
        written?;
        print_remarks(&remarks, expression.stage.as_ref(), &expression.pipeline, shown, arguments.color);
        return Ok(());
    };
    let out = BufferedStdout::stdout(Instant::now() + Limits::default().query_time())?;
    let output = Output::new(out, arguments.format, expression.stage.as_ref(), look);
    let mut output = output.with_columns(&expression.pipeline);
    let Expression { filter, stage, pipeline } = expression;
    let query = AskedQuery::new(Query { filter, stage, since_ns, until_ns, limit }, now).with_pipeline(pipeline);
    let asked = query_store(store, &query, &mut output);
    // Write the rows that came also if the answer broke off.
    let written = output.finish();
    let (remarks, shown) = asked?;
    written?;
    print_remarks(&remarks, query.query.stage.as_ref(), &query.pipeline, shown, arguments.color);
    Ok(())
}

/// Prints the remarks on an answer with `shown` rows to stderr, below the rows.
fn print_remarks(
    remarks: &Remarks,
    stage: Option<&query::Stage>,
    pipeline: &Pipeline,
    shown: u64,
    color: ColourChoice,
) {
    for sentence in remarks.sentences(stage, pipeline, shown, "--limit 0") {
        let sentence = visible(&sentence);
        match color.of_messages() {
            Colour::On => eprintln!("\x1b[33m{sentence}\x1b[0m"),
            Colour::Off => eprintln!("{sentence}"),
        }
    }
}

/// Returns the remarks on the answer and the number of its rows.
fn query_store(
    store: &StoreAddress,
    asked: &AskedQuery,
    output: &mut Output<impl Write>,
) -> Result<(Remarks, u64), CommandFailure> {
    let answers = opening::open_for_queries(store).map_err(|error| CommandFailure::Failed(error.to_string()))?;
    store.warnings().iter().for_each(|why| eprintln!("warning: {why}"));
    let (mut unwritten, mut shown) = (None, 0);
    let mut each = |found: AnswerRow<'_>| {
        shown += 1;
        match output.row(&found) {
            Ok(()) => RowFlow::Continue,
            Err(error) => {
                unwritten = Some(error);
                RowFlow::Stop
            }
        }
    };
    let cancel = CancelToken::default();
    let mut run = || {
        let begun = RunningQuery::begin(&*answers, asked, &CountMemory::default(), &cancel);
        let mut answer = begun?;
        while answer.resume(&mut each)? == AnswerProgress::Paused {}
        Ok(answer)
    };
    let answered = run().map_err(|error| match error {
        PipelineError::Store(error) => CommandFailure::Failed(error.to_string()),
        PipelineError::Query(error) => CommandFailure::Usage(error.to_string()),
    });
    if let Some(error) = unwritten {
        return Err(error.into());
    }
    Ok((answered?.remarks(&*answers, asked, shown, &cancel), shown))
}

/// Asks the service for lines of JSON and formats the rows in this process, because only this process knows the
/// terminal. Returns the remarks on the answer and the number of its rows.
fn query_service(
    arguments: &QueryOptions,
    since_ns: Option<i64>,
    until_ns: Option<i64>,
    limit: Option<u64>,
    expression: &Expression,
    output: &mut Output<impl Write>,
) -> Result<(Remarks, u64), CommandFailure> {
    let text = |time_ns: Option<i64>| time_ns.map(|time_ns| rfc3339(time_ns, SecondsFormat::AutoSi));
    let mut parameters = vec![("q", expression.to_string())];
    parameters.extend(text(since_ns).map(|time| ("since", time)));
    parameters.extend(text(until_ns).map(|time| ("until", time)));
    parameters.push(("limit", limit.unwrap_or(0).to_string()));
    let parameters: Vec<_> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let body = client::get_body(&arguments.service, "/api/query", &parameters)?;
    let (mut remarks, mut shown) = (Remarks::default(), 0);
    for line in BufReader::new(body).lines() {
        let line = line.map_err(|error| CommandFailure::Failed(format!("the answer was interrupted: {error}")))?;
        if let Some(why) = http::reason(&line) {
            return Err(CommandFailure::Failed(format!("the answer is not complete: {why}")));
        }
        if let Some(read) = Remarks::from_json(&line) {
            remarks = read;
            continue;
        }
        shown += 1;
        write_row(&line, expression, output)?;
    }
    Ok((remarks, shown))
}

fn write_row(line: &str, expression: &Expression, output: &mut Output<impl Write>) -> Result<(), CommandFailure> {
    let other = |why: &str| {
        CommandFailure::Failed(format!("the service sent a row that this version of logspool cannot read: {why}"))
    };
    if expression.has_records() {
        let record = Record::from_json(line).ok_or_else(|| other(line))?;
        return Ok(output.row(&AnswerRow::Record(record))?);
    }
    if let (Some(_), false) = (&expression.pipeline.columns, draws_intervals(expression)) {
        let Ok(Value::Map(row)) = serde_json::from_str(line) else { return Err(other(line)) };
        let row = row.into_iter().map(|(name, value)| (Arc::from(&*name), value.into_owned())).collect();
        return Ok(output.row(&AnswerRow::Row(&row))?);
    }
    // Parse the row as a list of pairs, not as a map: the counted field may also be called `count`.
    let Ok(Value::Map(row)) = serde_json::from_str(line) else { return Err(other(line)) };
    let [(name, first), (_, Value::Int(count))] = &row[..] else { return Err(other(line)) };
    let count = count.cast_unsigned();
    let found = match (&expression.stage, first) {
        (Some(query::Stage::CountBy(field)), value) if field.name() == name => {
            return Ok(output.row(&AnswerRow::Count(value_text(value).as_deref(), count))?);
        }
        (Some(query::Stage::Histogram { .. }), Value::Text(time)) if name == "time" => {
            AnswerRow::Interval(parse_time(time, 0).map_err(|error| other(&error.to_string()))?, count)
        }
        _ => return Err(other(line)),
    };
    Ok(output.row(&found)?)
}

/// True if the rows are those of a store that counts.
fn draws_intervals(expression: &Expression) -> bool {
    expression.pipeline.steps.iter().all(|step| matches!(step.work, StepWork::Fill { by: None, .. }))
}

/// Formats a counted value: text is unchanged, other values are written as JSON.
fn value_text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.to_string()),
        other => serde_json::to_string(other).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::TextStyle;

    fn shown(query: &str, line: &str) -> Result<String, CommandFailure> {
        let expression = query::parse(query, 0).unwrap();
        let look = TextStyle { colour: Colour::Off, columns: 80 };
        let mut output = Output::new(Vec::new(), Format::Csv, expression.stage.as_ref(), look);
        write_row(line, &expression, &mut output)?;
        Ok(String::from_utf8(output.finish()?).unwrap())
    }

    #[test]
    fn a_field_named_count_is_counted() {
        for (expected, line) in [
            ("count,count\r\na,5\r\n", r#"{"count":"a","count":5}"#),
            ("count,count\r\n,7\r\n", r#"{"count":null,"count":7}"#),
        ] {
            assert_eq!(expected, shown("| count by count", line).unwrap());
        }
        assert_eq!("level,count\r\n30,2\r\n", shown("| count by level", r#"{"level":30,"count":2}"#).unwrap());
        assert!(shown("| histogram 1m", r#"{"time":"2026-11-22T10:00:00Z","count":2}"#).is_ok());
    }

    #[test]
    fn a_row_of_another_kind_is_an_error() {
        for line in ["", "[]", "{}", r#"{"count":5}"#, r#"{"logger":"a","count":5}"#, r#"{"level":30,"count":"5"}"#] {
            assert!(matches!(shown("| count by level", line), Err(CommandFailure::Failed(_))), "{line}");
        }
    }
}
