//! Writes rows as a table for a terminal.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::SecondsFormat;
use unicode_width::UnicodeWidthStr;

use crate::clock::rfc3339;
use crate::decoders::convert;
use crate::query::{ColumnKind, RowColumn};
use crate::stores::RowValues;
use crate::value::Value;
use crate::visible::visible;

/// Number of rows that decide the widths of the columns. Further rows are written at once.
const MEASURED_ROWS: usize = 1_000;

/// Maximum width of a column that is not the last one.
const MAX_COLUMNS: usize = 60;

/// The kind of a column.
pub(super) fn kind_of(columns: &[RowColumn], name: &str) -> ColumnKind {
    columns.iter().find(|column| column.name == name).map_or(ColumnKind::Other, |column| column.kind)
}

/// A value as text. `None`: there is no value.
pub(super) fn shown<'v>(value: &'v Value<'_>, kind: ColumnKind) -> Option<Cow<'v, str>> {
    Some(match (kind, value) {
        (_, Value::Null) => return None,
        (ColumnKind::Time, Value::Int(time)) => Cow::Owned(rfc3339(*time, SecondsFormat::AutoSi)),
        (ColumnKind::Level, Value::Int(number)) => {
            let name = u16::try_from(*number).ok().and_then(convert::level_name);
            name.map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
        }
        (_, Value::Text(text)) => Cow::Borrowed(text),
        (_, other) => Cow::Owned(serde_json::to_string(other).unwrap_or_default()),
    })
}

/// A table whose columns are as wide as its first rows need.
#[derive(Default)]
pub(super) struct TableWriter {
    /// The rows that are not written yet.
    waiting: Vec<Vec<TableCell>>,
    widths: Vec<usize>,
}

struct TableCell {
    text: String,
    is_number: bool,
}

impl TableWriter {
    /// Appends a row.
    pub fn row(&mut self, values: &RowValues, columns: &[RowColumn], to: &mut String) {
        if self.widths.is_empty() && self.waiting.is_empty() {
            let heading = |(name, value): &(Arc<str>, Value<'_>)| TableCell {
                text: visible(name).into_owned(),
                is_number: is_number(value, kind_of(columns, name)),
            };
            self.waiting.push(values.iter().map(heading).collect());
        }
        let cell = |(name, value): &(Arc<str>, Value<'_>)| {
            let kind = kind_of(columns, name);
            let text = match (shown(value, kind), value) {
                (None, _) => "-".to_owned(),
                (Some(_), Value::Float(number)) => rounded(*number),
                (Some(text), _) => visible(&text).into_owned(),
            };
            TableCell { text, is_number: is_number(value, kind) }
        };
        self.waiting.push(values.iter().map(cell).collect());
        if !self.widths.is_empty() || self.waiting.len() > MEASURED_ROWS {
            self.finish(to);
        }
    }

    /// Appends the rows that are not written yet.
    pub fn finish(&mut self, to: &mut String) {
        let rows = std::mem::take(&mut self.waiting);
        if self.widths.is_empty() {
            let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
            let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width()).max();
            self.widths = (0..columns).map(|at| width(at).unwrap_or_default().min(MAX_COLUMNS)).collect();
        }
        for row in rows {
            let begin = to.len();
            for (at, cell) in row.iter().enumerate() {
                let width = self.widths.get(at).copied().unwrap_or_default();
                let padding = width.saturating_sub(cell.text.width());
                if cell.is_number {
                    to.extend(std::iter::repeat_n(' ', padding));
                }
                to.push_str(&cell.text);
                if !cell.is_number {
                    to.extend(std::iter::repeat_n(' ', padding));
                }
                to.push_str("  ");
            }
            to.truncate(begin + to[begin..].trim_end_matches(' ').len());
            to.push('\n');
        }
    }
}

fn is_number(value: &Value<'_>, kind: ColumnKind) -> bool {
    kind == ColumnKind::Other && matches!(value, Value::Int(_) | Value::Float(_))
}

/// A double with at most three decimals, unless it is very small or large.
fn rounded(number: f64) -> String {
    if number != 0.0 && !(0.001..1e15).contains(&number.abs()) {
        return format!("{number:e}");
    }
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
