//! Writes rows as text for a person at a terminal.

use std::borrow::Cow;
use std::fmt::Write;

use chrono::SecondsFormat;
use unicode_width::UnicodeWidthStr;

use super::table::TableWriter;
use super::{Colour, TextStyle, histogram};
use crate::clock::rfc3339;
use crate::decoders::convert;
use crate::query::{Field, RowColumn, quoted_value};
use crate::record::Record;
use crate::stores::AnswerRow;
use crate::value::Value;
use crate::visible::visible;

/// Width of a time with milliseconds (RFC 3339), in columns.
const TIME_COLUMNS: usize = 24;

/// Width of a level, in columns.
const LEVEL_COLUMNS: usize = 8;

/// The time of arrival is shown if it differs by more than this from the time of the record. Chosen: senders deliver
/// within a minute, so the time of arrival would only repeat the time.
const SHOWN_DELAY_NS: u64 = 60_000_000_000;

/// Number of nanoseconds in a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Maximum number of pairs (name and value) of a record that are cached, and the maximum size of a cached pair in
/// bytes.
const KEPT_PAIRS: usize = 16;
const KEPT_BYTES: usize = 256;

/// Maximum width of the column for logger names. The column grows up to it when a longer name is written.
const MAX_LOGGER: usize = 32;

/// Writes rows as text. The width of a column depends on the rows written before.
pub(super) struct TextWriter {
    style: TextStyle,
    logger_columns: usize,
    /// The time of the last record in whole seconds, and its text up to and including the decimal point.
    second: Option<(i64, String)>,
    /// The pairs (name and value) written last at each position of a record. The next record often has the same pairs.
    pairs: Vec<CachedPair>,
    /// Width of the column for counts. The first count decides it, because it is the largest.
    digits: Option<usize>,
    intervals: Vec<(i64, u64)>,
    table: TableWriter,
}

/// A name, its value, and the text that was written for both.
#[derive(Default)]
struct CachedPair {
    source: PairSource,
    name: String,
    text: String,
    shown: String,
}

/// Says whether a name belongs to the record itself or to an extra field. An extra field may have the same name as a
/// part of the record; then its name is written differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum PairSource {
    #[default]
    Record,
    Fields,
}

impl TextWriter {
    pub fn new(style: TextStyle) -> Self {
        Self {
            style,
            logger_columns: 0,
            second: None,
            pairs: Vec::new(),
            digits: None,
            intervals: Vec::new(),
            table: TableWriter::default(),
        }
    }

    /// Appends a row.
    pub fn row(&mut self, row: &AnswerRow<'_>, field: &Field, columns: &[RowColumn], to: &mut String) {
        match row {
            AnswerRow::Record(record) => self.record(record, to),
            AnswerRow::Count(value, count) => self.count(*value, *count, field, to),
            AnswerRow::Interval(begins, count) => self.intervals.push((*begins, *count)),
            AnswerRow::Row(values) => self.table.row(values, columns, to),
        }
    }

    /// Appends the rest of a table, or the bars of a histogram.
    pub fn finish(&mut self, to: &mut String) {
        self.table.finish(to);
        histogram::draw(&self.intervals, self.style.columns, to);
    }

    fn record(&mut self, record: &Record<'_>, to: &mut String) {
        let logger = visible(&record.logger);
        let columns = if logger.is_ascii() { logger.len() } else { logger.width() };
        self.logger_columns = self.logger_columns.max(columns.min(MAX_LOGGER));
        let level = level(record.level);
        let (begin, end) = match self.style.colour {
            Colour::On => (colour(record.level), "\x1b[0m"),
            Colour::Off => ("", ""),
        };
        match record.time_ns {
            Some(time_ns) => self.time(time_ns, to),
            None => push_padded("-", TIME_COLUMNS, to),
        }
        to.push(' ');
        to.push_str(begin);
        push_padded(&level, LEVEL_COLUMNS, to);
        to.push_str(end);
        to.push(' ');
        to.push_str(&logger);
        to.extend(std::iter::repeat_n(' ', self.logger_columns.saturating_sub(columns) + 1));
        to.push_str(&visible(&record.message));
        to.push(' ');
        self.pairs(record, to);
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

    /// Appends a time in RFC 3339 with milliseconds. The text of the last whole second is cached.
    fn time(&mut self, time_ns: i64, to: &mut String) {
        let second = time_ns.div_euclid(SECOND_NS);
        if self.second.as_ref().is_none_or(|(known, _)| *known != second) {
            let mut text = rfc3339(time_ns, SecondsFormat::Millis);
            text.truncate(text.len() - "000Z".len());
            self.second = Some((second, text));
        }
        to.push_str(self.second.as_ref().map_or("", |(_, text)| text));
        let milliseconds = time_ns.rem_euclid(SECOND_NS) / (SECOND_NS / 1000);
        for unit in [100, 10, 1] {
            to.push(char::from(b'0' + (milliseconds / unit % 10) as u8));
        }
        to.push('Z');
    }

    /// Appends the other values of a record as pairs. A query with the text of a pair finds the record.
    fn pairs(&mut self, record: &Record<'_>, to: &mut String) {
        let known = [
            (Field::Host, &record.host),
            (Field::Task, &record.task),
            (Field::TraceId, &record.trace_id),
            (Field::SpanId, &record.span_id),
        ];
        let mut place = 0;
        for (field, text) in known {
            if let Some(text) = text {
                self.pair(place, field.name(), PairSource::Record, text, to);
                place += 1;
            }
        }
        if let (Some(time_ns), Some(arrived_ns)) = (record.time_ns, record.arrived_ns)
            && time_ns.abs_diff(arrived_ns) > SHOWN_DELAY_NS
        {
            let arrived = rfc3339(arrived_ns, SecondsFormat::AutoSi);
            push_pair(Field::Arrived.name(), PairSource::Record, &arrived, to);
        }
        for (key, value) in &record.fields {
            match value {
                Value::Text(text) => self.pair(place, key, PairSource::Fields, text, to),
                other => {
                    push_pair(key, PairSource::Fields, &serde_json::to_string(other).unwrap_or_default(), to);
                    continue;
                }
            }
            place += 1;
        }
    }

    /// Appends a name and its value. If the same pair was written last at this position, its cached text is used.
    fn pair(&mut self, place: usize, name: &str, of: PairSource, text: &str, to: &mut String) {
        if let Some(pair) =
            self.pairs.get(place).filter(|pair| pair.source == of && pair.name == name && pair.text == text)
        {
            return to.push_str(&pair.shown);
        }
        let begin = to.len();
        push_pair(name, of, &quoted_value(text), to);
        let shown = &to[begin..];
        if place >= KEPT_PAIRS || text.len() + shown.len() > KEPT_BYTES {
            return;
        }
        if place == self.pairs.len() {
            self.pairs.push(CachedPair::default());
        }
        if let Some(pair) = self.pairs.get_mut(place) {
            pair.source = of;
            for (kept, new) in [(&mut pair.name, name), (&mut pair.text, text), (&mut pair.shown, shown)] {
                kept.clear();
                kept.push_str(new);
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
    convert::level_name(number).map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
}

/// Returns the colour sequence of a level: bold red for critical, red for error, yellow for warning, dim for debug.
fn colour(level: u16) -> &'static str {
    match level {
        50.. => "\x1b[1;31m",
        40.. => "\x1b[31m",
        30.. => "\x1b[33m",
        20.. => "",
        _ => "\x1b[2m",
    }
}

/// Appends text, padded with spaces to `columns`. Every character of the text must be one column wide.
fn push_padded(text: &str, columns: usize, to: &mut String) {
    to.push_str(text);
    to.extend(std::iter::repeat_n(' ', columns.saturating_sub(text.chars().count())));
}

fn push_pair(name: &str, of: PairSource, value: &str, to: &mut String) {
    let name = match of {
        PairSource::Record => Cow::Borrowed(name),
        PairSource::Fields => Cow::Owned(Field::Extra(name.to_owned()).to_string()),
    };
    to.push(' ');
    to.push_str(&visible(&name));
    to.push('=');
    to.push_str(&visible(value));
}
