//! Replaces rows by a row for each group.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::accumulator::Accumulator;
use super::item::{self, Item};
use super::memory::StepContext;
use super::order::{compare_optional, number};
use super::step::{RunningStep, StepFlow};
use crate::identity::{identity, whole};
use crate::query::{Bucket, GroupKey, Grouping, QueryError};
use crate::value::Value;

/// Maximum number of groups. Chosen: a person reads far fewer.
const MAX_GROUPS: usize = 10_000;

/// Bytes of a group and of an accumulator besides their texts.
const GROUP_BYTES: usize = 128;
const ACCUMULATOR_BYTES: usize = size_of::<Accumulator>();

/// The groups until now.
pub(super) struct GroupStep {
    grouping: Grouping,
    groups: HashMap<String, RunningGroup>,
}

struct RunningGroup {
    keys: Vec<Option<Value<'static>>>,
    accumulators: Vec<Accumulator>,
}

impl GroupStep {
    pub fn new(grouping: Grouping) -> Self {
        let mut groups = HashMap::new();
        if grouping.keys.is_empty() {
            // Without keys there is one group, even without rows.
            groups.insert(String::new(), RunningGroup::new(&grouping, Vec::new()));
        }
        Self { grouping, groups }
    }

    fn order(&self, one: &RunningGroup, two: &RunningGroup) -> Ordering {
        let key = |at: usize| compare_optional(one.keys[at].as_ref(), two.keys[at].as_ref());
        let keys = || (0..self.grouping.keys.len()).fold(Ordering::Equal, |order, at| order.then_with(|| key(at)));
        let is_time = |key: &GroupKey| matches!(key.bucket, Some(Bucket::Time(_)));
        match self.grouping.keys.iter().position(is_time) {
            Some(time) => key(time).then_with(keys),
            None => keys(),
        }
    }
}

impl RunningGroup {
    fn new(grouping: &Grouping, keys: Vec<Option<Value<'static>>>) -> Self {
        let accumulators = grouping.aggregates.iter().map(|aggregate| Accumulator::new(&aggregate.function)).collect();
        Self { keys, accumulators }
    }
}

/// The value of a key for a row.
fn key_value(key: &GroupKey, row: &Item) -> Option<Value<'static>> {
    let value = row.value(&key.field)?;
    match (key.bucket, number(&value)) {
        (None, _) => Some(match value {
            Value::Float(number) => whole(number).map_or(Value::Float(number), Value::Int),
            value => value,
        }),
        (Some(Bucket::Time(length)), Some(Value::Int(time))) => {
            Some(Value::Int(time.div_euclid(length).saturating_mul(length)))
        }
        (Some(Bucket::Number(length)), Some(Value::Int(number))) if whole(length).is_some() => {
            let length = whole(length).unwrap_or(1);
            Some(Value::Int(number.div_euclid(length).saturating_mul(length)))
        }
        (Some(Bucket::Number(length)), Some(number)) => {
            let number = match number {
                Value::Int(number) => number as f64,
                Value::Float(number) => number,
                _ => return None,
            };
            let begin = (number / length).floor() * length;
            Some(whole(begin).map_or(Value::Float(begin), Value::Int))
        }
        _ => None,
    }
}

impl RunningStep for GroupStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        let keys: Vec<_> = self.grouping.keys.iter().map(|key| key_value(key, &row)).collect();
        let mut name = String::new();
        for key in &keys {
            let part = key.as_ref().map_or_else(String::new, identity);
            name += &format!("{}:{part}", part.len());
        }
        let count = self.groups.len();
        let mut bytes = 0;
        let group = match self.groups.entry(name) {
            std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                if count >= MAX_GROUPS {
                    return Err(context.error(format!(
                        "more than {MAX_GROUPS} groups: use fewer fields, longer intervals, or a filter"
                    )));
                }
                bytes += GROUP_BYTES
                    + place.key().len()
                    + keys.iter().flatten().map(item::bytes).sum::<usize>()
                    + ACCUMULATOR_BYTES * self.grouping.aggregates.len();
                place.insert(RunningGroup::new(&self.grouping, keys))
            }
        };
        for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&self.grouping.aggregates) {
            bytes += accumulator.add(&aggregate.function, &row);
        }
        context.take(bytes, "use fewer groups or functions, or a shorter time range")?;
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, context: &mut StepContext) -> Result<(), QueryError> {
        let mut groups: Vec<_> = std::mem::take(&mut self.groups).into_values().collect();
        groups.sort_by(|one, two| self.order(one, two));
        let key_names = self.grouping.keys.iter().map(|key| key.field.name());
        let value_names = self.grouping.aggregates.iter().map(|aggregate| &*aggregate.name);
        let names: Vec<Arc<str>> = key_names.chain(value_names).map(Arc::from).collect();
        let has_time = self.grouping.keys.iter().any(|key| matches!(key.bucket, Some(Bucket::Time(_))));
        let mut rows: Vec<Vec<Value<'static>>> = Vec::with_capacity(groups.len());
        for group in groups {
            let mut values: Vec<_> = group.keys.into_iter().map(|key| key.unwrap_or(Value::Null)).collect();
            for (accumulator, aggregate) in group.accumulators.into_iter().zip(&self.grouping.aggregates) {
                let function = &aggregate.function;
                let name = crate::query::default_name(function);
                if accumulator.is_estimate() {
                    context.remark(
                        format!("{name} is an estimate within 3 % for the groups with more than 100000 values"),
                        1,
                    );
                }
                let (value, left_out) = accumulator.finish();
                context.remark(format!("{name} leaves out values that are not numbers"), left_out);
                values.push(value);
            }
            rows.push(values);
        }
        if self.grouping.is_count && !has_time {
            let count = |values: &Vec<Value<'_>>| match values.last() {
                Some(Value::Int(count)) => -*count,
                _ => 0,
            };
            rows.sort_by_key(count);
        }
        to.extend(rows.into_iter().map(|values| Item::Row(names.iter().cloned().zip(values).collect())));
        Ok(())
    }
}
