//! Writes comma-separated values (RFC 4180). Text is unchanged, and is quoted if needed. A missing value is written as
//! nothing, and empty text as a pair of quotes.

use std::fmt::Display;

use chrono::SecondsFormat;

use super::table;
use crate::clock::rfc3339;
use crate::query::{RowColumn, Stage};
use crate::record::Record;
use crate::stores::AnswerRow;

/// The columns of a record before its fields.
pub(super) const BEFORE_FIELDS: &str = "time,level,logger,message,file,line,function,host,process,process_name,thread,thread_name,\
    task,trace_id,span_id,exception,stack";

/// Appends the header line for the rows of a query with this stage.
pub(super) fn header(stage: Option<&Stage>, to: &mut String) {
    match stage {
        None | Some(Stage::LastBy(_)) => {
            to.push_str(BEFORE_FIELDS);
            to.push_str(",fields,arrived");
        }
        Some(Stage::CountBy(field)) => {
            field_text(field.name(), to);
            to.push_str(",count");
        }
        Some(Stage::Histogram { .. }) => to.push_str("time,count"),
    }
    to.push_str("\r\n");
}

/// Appends the header line for these columns.
pub(super) fn columns(columns: &[RowColumn], to: &mut String) {
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            to.push(',');
        }
        field_text(&column.name, to);
    }
    to.push_str("\r\n");
}

/// Appends a row.
pub(super) fn row(row: &AnswerRow<'_>, columns: &[RowColumn], to: &mut String) {
    match row {
        AnswerRow::Record(found) => record(found, to),
        AnswerRow::Count(value, count) => {
            if let Some(value) = value {
                field_text(value, to);
            }
            next(Some(count), to);
        }
        AnswerRow::Row(values) => {
            for (at, (name, value)) in values.iter().enumerate() {
                if at > 0 {
                    to.push(',');
                }
                if let Some(shown) = table::shown(value, table::kind_of(columns, name)) {
                    field_text(&shown, to);
                }
            }
        }
        AnswerRow::Interval(begins, count) => {
            to.push_str(&rfc3339(*begins, SecondsFormat::AutoSi));
            next(Some(count), to);
        }
    }
    to.push_str("\r\n");
}

fn record(record: &Record<'_>, to: &mut String) {
    record_before_fields(record, record.level, to);
    let fields = (!record.fields.is_empty()).then(|| record.fields_as_json());
    next_text(fields.as_deref(), to);
    next(record.arrived_ns.map(|time_ns| rfc3339(time_ns, SecondsFormat::Nanos)), to);
}

/// Appends the columns of [`BEFORE_FIELDS`].
pub(super) fn record_before_fields(record: &Record<'_>, level: impl Display, to: &mut String) {
    if let Some(time_ns) = record.time_ns {
        to.push_str(&rfc3339(time_ns, SecondsFormat::Nanos));
    }
    next(Some(level), to);
    next_text(Some(&record.logger), to);
    next_text(Some(&record.message), to);
    next_text(record.file.as_deref(), to);
    next(record.line, to);
    next_text(record.function.as_deref(), to);
    next_text(record.host.as_deref(), to);
    next(record.process, to);
    next_text(record.process_name.as_deref(), to);
    next(record.thread, to);
    next_text(record.thread_name.as_deref(), to);
    let rest = [&record.task, &record.trace_id, &record.span_id, &record.exception, &record.stack];
    for value in rest {
        next_text(value.as_deref(), to);
    }
}

/// Appends a comma and a number, if there is one.
pub(super) fn next(number: Option<impl Display>, to: &mut String) {
    to.push(',');
    if let Some(number) = number {
        to.push_str(&number.to_string());
    }
}

/// Appends a comma and text, if there is one.
pub(super) fn next_text(value: Option<&str>, to: &mut String) {
    to.push(',');
    if let Some(value) = value {
        field_text(value, to);
    }
}

/// Appends text. It is quoted unless every CSV reader understands the bare text in the same way.
pub(super) fn field_text(value: &str, to: &mut String) {
    let is_plain = |character: char| !character.is_control() && !matches!(character, ',' | '"');
    let is_bare = !value.is_empty() && value.chars().all(is_plain) && value.trim() == value;
    if is_bare {
        to.push_str(value);
    } else {
        to.push('"');
        to.push_str(&value.replace('"', "\"\""));
        to.push('"');
    }
}
