//! Counts records now and a while before, beside each other.

use std::collections::HashMap;
use std::sync::Arc;

use super::item::{self, Item};
use super::memory::StepContext;
use super::order::compare_optional;
use super::step::{RunningStep, StepFlow};
use crate::identity::identity;
use crate::query::plan::TimeRange;
use crate::query::{Field, QueryError};
use crate::value::Value;

/// Maximum number of groups.
const MAX_GROUPS: usize = 10_000;

/// Bytes of a group besides its texts.
const GROUP_BYTES: usize = 128;

/// The counts until now.
pub(super) struct CompareStep {
    length_ns: i64,
    by: Option<Field>,
    /// The later of the two time ranges.
    range: TimeRange,
    groups: HashMap<Option<String>, (Option<Value<'static>>, [i64; 2])>,
}

impl CompareStep {
    pub fn new(length_ns: i64, by: Option<Field>, range: TimeRange) -> Self {
        let mut groups = HashMap::new();
        if by.is_none() {
            groups.insert(None, (None, [0, 0]));
        }
        Self { length_ns, by, range, groups }
    }
}

impl RunningStep for CompareStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        let Some(time) = row.time_ns() else { return Ok(StepFlow::Continue) };
        let is_in = |time: i64| {
            self.range.since_ns.is_none_or(|since| time >= since)
                && self.range.until_ns.is_none_or(|until| time < until)
        };
        let counted = [is_in(time), is_in(time.saturating_add(self.length_ns))].map(i64::from);
        let value = self.by.as_ref().and_then(|by| row.value(by));
        let key = value.as_ref().map(identity);
        if !self.groups.contains_key(&key) {
            if self.groups.len() >= MAX_GROUPS {
                return Err(context.error(format!("more than {MAX_GROUPS} groups: use another field, or a filter")));
            }
            let bytes = GROUP_BYTES + 2 * value.as_ref().map_or(0, item::bytes);
            context.take(bytes, "use another field, or a shorter time range")?;
        }
        let (_, counts) = self.groups.entry(key).or_insert((value, [0, 0]));
        counts[0] += counted[0];
        counts[1] += counted[1];
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, _: &mut StepContext) -> Result<(), QueryError> {
        let mut groups: Vec<_> = self.groups.drain().map(|(_, group)| group).collect();
        groups.sort_by(|(one, counts), (two, others)| {
            others.cmp(counts).then_with(|| compare_optional(one.as_ref(), two.as_ref()))
        });
        let name: Option<Arc<str>> = self.by.as_ref().map(|by| by.name().into());
        let names: [Arc<str>; 3] = ["now", "before", "change"].map(Arc::from);
        to.extend(groups.into_iter().map(|(value, [now, before])| {
            let mut row: Vec<_> =
                name.iter().map(|name| (name.clone(), value.clone().unwrap_or(Value::Null))).collect();
            row.extend(names.iter().cloned().zip([now, before, now - before].map(Value::Int)));
            Item::Row(row)
        }));
        Ok(())
    }
}
