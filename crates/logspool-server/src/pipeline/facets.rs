//! Counts the most frequent values of the most frequent fields.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::item::{self, Item};
use super::memory::StepContext;
use super::order::compare;
use super::step::{RunningStep, StepFlow};
use crate::identity::identity;
use crate::query::{FACET_COLUMNS, Field, FieldKind, QueryError};
use crate::value::Value;

/// Number of records that are read. Those of the rest of an answer are not counted.
const MAX_RECORDS: u64 = 1_000_000;

/// Maximum number of fields that are counted, and of fields in the result.
const MAX_FIELDS: usize = 500;
const SHOWN_FIELDS: usize = 20;

/// Maximum number of different values of a field that are counted, and of values in the result.
const MAX_VALUES: usize = 10_000;
const SHOWN_VALUES: usize = 10;

/// Bytes of a value besides its text.
const VALUE_BYTES: usize = 128;

/// The values until now.
#[derive(Default)]
pub(super) struct FacetsStep {
    records: u64,
    fields: BTreeMap<String, FieldCounts>,
}

#[derive(Default)]
struct FieldCounts {
    records: i64,
    values: HashMap<String, (Value<'static>, i64)>,
    /// True if there were more values than are counted.
    has_more: bool,
}

/// The fields of a record whose values are counted: no texts that are different for each record.
fn counted() -> impl Iterator<Item = &'static Field> {
    let is_counted = |field: &&Field| {
        let is_text = !matches!(field, Field::Message | Field::Exception | Field::Stack | Field::SpanId);
        is_text && field.kind() == FieldKind::Text || matches!(field, Field::Level | Field::Process)
    };
    Field::known().iter().filter(is_counted)
}

impl FacetsStep {
    fn add(&mut self, name: &str, value: Value<'static>, context: &mut StepContext) -> Result<(), QueryError> {
        if matches!(value, Value::Null | Value::List(_) | Value::Map(_)) {
            return Ok(());
        }
        if !self.fields.contains_key(name) {
            if self.fields.len() >= MAX_FIELDS {
                context.remark(format!("fields beyond {MAX_FIELDS} are left out"), 1);
                return Ok(());
            }
            self.fields.insert(name.to_owned(), FieldCounts::default());
        }
        let Some(field) = self.fields.get_mut(name) else { return Ok(()) };
        field.records += 1;
        let key = identity(&value);
        if let Some((_, count)) = field.values.get_mut(&key) {
            *count += 1;
        } else if field.values.len() >= MAX_VALUES {
            field.has_more = true;
        } else {
            context.take(VALUE_BYTES + key.len() + item::bytes(&value), "use a shorter time range, or a filter")?;
            field.values.insert(key, (value, 1));
        }
        Ok(())
    }
}

impl RunningStep for FacetsStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        if self.records >= MAX_RECORDS {
            context.remark("these are the values of the newest records only, and of so many".to_owned(), MAX_RECORDS);
            return Ok(StepFlow::Full);
        }
        self.records += 1;
        for field in counted() {
            if let Some(value) = row.value(field) {
                self.add(field.name(), value, context)?;
            }
        }
        if let Item::Record(record) = row {
            for (name, value) in record.fields {
                let name = Field::Extra(name.into_owned());
                // A key with the name of a field of the record.
                let name = if Field::named(name.name()) == name { name.name().to_owned() } else { name.to_string() };
                self.add(&name, value, context)?;
            }
        }
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, context: &mut StepContext) -> Result<(), QueryError> {
        let mut fields: Vec<_> = std::mem::take(&mut self.fields).into_iter().collect();
        // A field with a different value in each record is no facet.
        fields.retain(|(_, field)| field.records <= 2 || (field.values.len() as i64) < field.records);
        fields.sort_by_key(|(_, field)| -field.records);
        if fields.len() > SHOWN_FIELDS {
            let count = (fields.len() - SHOWN_FIELDS) as u64;
            context.remark(format!("the {SHOWN_FIELDS} most frequent fields are shown, and others left out"), count);
        }
        fields.truncate(SHOWN_FIELDS);
        let names = FACET_COLUMNS.map(Arc::<str>::from);
        for (name, field) in fields {
            if field.has_more {
                context.remark(format!("`{name}` has more values than are counted"), MAX_VALUES as u64);
            }
            let different = Value::Int(field.values.len() as i64);
            let mut values: Vec<_> = field.values.into_values().collect();
            values.sort_by(|(one, count), (two, other)| other.cmp(count).then_with(|| compare(one, two)));
            values.truncate(SHOWN_VALUES);
            to.extend(values.into_iter().map(|(value, count)| {
                let row =
                    [Value::text(name.clone()), Value::Int(field.records), different.clone(), value, Value::Int(count)];
                Item::Row(names.iter().cloned().zip(row).collect())
            }));
        }
        Ok(())
    }
}
