//! Rows for a person at a terminal.

use std::borrow::Cow;
use std::fmt::Write;

use chrono::SecondsFormat;
use unicode_width::UnicodeWidthStr;

use super::{Colour, Look, histogram};
use crate::clock::rfc3339;
use crate::decoders::words;
use crate::query::{Field, written};
use crate::record::Record;
use crate::stores::Found;
use crate::value::Value;
use crate::visible::visible;

/// The loggers' column grows with their names, but not beyond this.
const MAX_LOGGER: usize = 32;

/// What the columns of earlier rows say about the next one.
pub(super) struct Text {
    look: Look,
    logger_columns: usize,
    /// Digits of the first count, which is the largest.
    digits: Option<usize>,
    intervals: Vec<(i64, u64)>,
}

impl Text {
    pub fn new(look: Look) -> Self {
        Self { look, logger_columns: 0, digits: None, intervals: Vec::new() }
    }

    /// Appends a row.
    pub fn row(&mut self, row: &Found<'_>, field: &Field, to: &mut String) {
        match row {
            Found::Record(record) => self.record(record, to),
            Found::Count(value, count) => self.count(*value, *count, field, to),
            Found::Interval(begins, count) => self.intervals.push((*begins, *count)),
        }
    }

    /// Appends the bars.
    pub fn finish(&mut self, to: &mut String) {
        histogram::draw(&self.intervals, self.look.columns, to);
    }

    fn record(&mut self, record: &Record<'_>, to: &mut String) {
        let logger = visible(&record.logger);
        let columns = logger.width();
        self.logger_columns = self.logger_columns.max(columns.min(MAX_LOGGER));
        let time = record.time_ns.map_or_else(|| "-".to_owned(), |time_ns| rfc3339(time_ns, SecondsFormat::Millis));
        let level = level(record.level);
        let (begin, end) = match self.look.colour {
            Colour::On => (colour(record.level), "\x1b[0m"),
            Colour::Off => ("", ""),
        };
        let space = self.logger_columns.saturating_sub(columns);
        // Writing to a string cannot fail.
        let _ = write!(to, "{time:24} {begin}{level:8}{end} {logger}{:space$} {} ", "", visible(&record.message));
        pairs(record, to);
        to.truncate(to.trim_end_matches(' ').len());
        to.push('\n');
        for block in [&record.exception, &record.stack].into_iter().flatten() {
            for line in block.lines() {
                to.push_str("    ");
                to.push_str(&visible(line));
                to.push('\n');
            }
        }
    }

    fn count(&mut self, value: Option<&str>, count: u64, field: &Field, to: &mut String) {
        const HEADING: &str = "count";
        let digits = *self.digits.get_or_insert_with(|| {
            let digits = count.to_string().len().max(HEADING.len());
            let _ = writeln!(to, "{HEADING:>digits$}  {}", visible(field.name()));
            digits
        });
        let value = match (field, value) {
            (Field::Level, Some(number)) => number.parse().map_or_else(|_| visible(number), |number| level(number)),
            (_, Some(text)) => visible(text),
            (_, None) => Cow::Borrowed("-"),
        };
        let _ = writeln!(to, "{count:>digits$}  {value}");
    }
}

fn level(number: u16) -> Cow<'static, str> {
    words::level_name(number).map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
}

/// Critical is bold red, error red, warning yellow, debug dim.
fn colour(level: u16) -> &'static str {
    match level {
        50.. => "\x1b[1;31m",
        40.. => "\x1b[31m",
        30.. => "\x1b[33m",
        20.. => "",
        _ => "\x1b[2m",
    }
}

/// Appends what a record says besides, written so that a query finds it.
fn pairs(record: &Record<'_>, to: &mut String) {
    let known = [
        (Field::Host, &record.host),
        (Field::Task, &record.task),
        (Field::TraceId, &record.trace_id),
        (Field::SpanId, &record.span_id),
    ];
    for (field, text) in known {
        if let Some(text) = text {
            pair(&field, &written(text), to);
        }
    }
    for (key, value) in &record.fields {
        let value = match value {
            Value::Text(text) => written(text),
            other => Cow::Owned(serde_json::to_string(other).unwrap_or_default()),
        };
        pair(&Field::Extra(key.clone().into_owned()), &value, to);
    }
}

fn pair(field: &Field, value: &str, to: &mut String) {
    let _ = write!(to, " {}={}", visible(&field.to_string()), visible(value));
}
