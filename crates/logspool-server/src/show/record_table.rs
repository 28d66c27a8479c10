//! Writes records as comma-separated values with a column for each field.

use super::csv::{field_text, next, next_text, record_before_fields};
use super::table;
use crate::clock::rfc3339;
use crate::query::{ColumnKind, Field};
use crate::record::Record;
use crate::record_id::RecordId;
use crate::value::Value;
use chrono::SecondsFormat;

/// Number of records whose fields become columns. Other fields of later records are in the last column, as JSON.
const MEASURED_RECORDS: usize = 1_000;

/// Maximum number of columns for fields.
const MAX_COLUMNS: usize = 500;

/// The records that decide the columns, and the columns once they are known.
#[derive(Default)]
pub(super) struct RecordTable {
    waiting: Vec<Record<'static>>,
    columns: Option<Vec<String>>,
}

impl RecordTable {
    /// Appends a record.
    pub fn row(&mut self, record: &Record<'_>, to: &mut String) {
        if let Some(columns) = &self.columns {
            return write(record, columns, to);
        }
        self.waiting.push(record.clone().into_owned());
        if self.waiting.len() >= MEASURED_RECORDS {
            self.finish(to);
        }
    }

    /// Appends the header and the records that are not written yet.
    pub fn finish(&mut self, to: &mut String) {
        if self.columns.is_some() {
            return;
        }
        let mut columns: Vec<String> = Vec::new();
        for (name, _) in self.waiting.iter().flat_map(|record| &record.fields) {
            if columns.len() < MAX_COLUMNS && !columns.iter().any(|known| *known == **name) {
                columns.push(name.to_string());
            }
        }
        to.push_str("id,");
        to.push_str(super::csv::BEFORE_FIELDS);
        to.push_str(",arrived");
        for name in &columns {
            // A key may have the name of a part of the record.
            let is_known =
                Field::named(name) != Field::Extra(name.clone()) || ["id", "process", "fields"].contains(&&**name);
            next_text(Some(&if is_known { format!("fields.{name}") } else { name.clone() }), to);
        }
        to.push_str(",fields\r\n");
        for record in std::mem::take(&mut self.waiting) {
            write(&record, &columns, to);
        }
        self.columns = Some(columns);
    }
}

fn write(record: &Record<'_>, columns: &[String], to: &mut String) {
    to.push_str(&RecordId::of(record).to_string());
    to.push(',');
    let level = Value::Int(record.level.into());
    record_before_fields(record, table::shown(&level, ColumnKind::Level).unwrap_or_default(), to);
    next(record.arrived_ns.map(|time_ns| rfc3339(time_ns, SecondsFormat::Nanos)), to);
    for column in columns {
        let value = record.fields.iter().find(|(name, _)| **name == **column).map(|(_, value)| value);
        to.push(',');
        if let Some(shown) = value.and_then(|value| table::shown(value, ColumnKind::Other)) {
            field_text(&shown, to);
        }
    }
    let rest: Vec<_> = record.fields.iter().filter(|(name, _)| !columns.iter().any(|known| *known == **name)).collect();
    let rest = (!rest.is_empty()).then(|| {
        let fields = rest.into_iter().cloned().collect();
        Record { fields, ..Record::default() }.fields_as_json()
    });
    next_text(rest.as_deref(), to);
    to.push_str("\r\n");
}
