//! The steps that keep rows until they have all of them: sorting, the largest numbers, and the newest records.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::item::Item;
use super::memory::StepContext;
use super::order::{compare, number};
use super::step::{RunningStep, StepFlow};
use crate::identity::identity;
use crate::query::{Field, QueryError, SortKey};
use crate::value::Value;

/// Sorts rows.
pub(super) struct SortStep {
    keys: Vec<SortKey>,
    /// Maximum number of rows that are needed.
    most: Option<usize>,
    /// True if the answer lacks the rows beyond the maximum.
    is_cut: bool,
    rows: Vec<SortedRow>,
}

struct SortedRow {
    keys: Vec<Option<Value<'static>>>,
    row: Item,
    bytes: usize,
}

impl SortStep {
    pub fn new(keys: Vec<SortKey>, most: Option<u64>, is_cut: bool) -> Self {
        let most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        Self { keys, most, is_cut, rows: Vec::new() }
    }

    fn sort(&mut self, context: &mut StepContext) {
        let order = |one: &SortedRow, two: &SortedRow| {
            let of_key = |(at, key): (usize, &SortKey)| match (&one.keys[at], &two.keys[at]) {
                (Some(one), Some(two)) if key.is_descending => compare(two, one),
                (Some(one), Some(two)) => compare(one, two),
                // A missing value comes last.
                (one, two) => two.is_some().cmp(&one.is_some()),
            };
            self.keys.iter().enumerate().map(of_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        self.rows.sort_by(order);
        let most = self.most.unwrap_or(usize::MAX).min(self.rows.len());
        for row in self.rows.drain(most..) {
            context.memory.release(row.bytes);
            context.cut += u64::from(self.is_cut);
        }
    }
}

impl RunningStep for SortStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        let bytes = row.bytes() + size_of::<SortedRow>() + self.keys.len() * size_of::<Value<'_>>();
        context.take(bytes, "write | limit N after it, use a shorter time range, or | fields before it")?;
        let keys = self.keys.iter().map(|key| row.value(&key.field)).collect();
        self.rows.push(SortedRow { keys, row, bytes });
        if self.most.is_some_and(|most| self.rows.len() > most.saturating_mul(2).max(1_000)) {
            self.sort(context);
        }
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, context: &mut StepContext) -> Result<(), QueryError> {
        self.sort(context);
        to.extend(self.rows.drain(..).map(|sorted| sorted.row));
        Ok(())
    }
}

/// Keeps the rows with the largest numbers of each group.
pub(super) struct TopStep {
    most: usize,
    field: Field,
    by: Option<Field>,
    groups: HashMap<Option<String>, Vec<(Value<'static>, u64, Item)>>,
    seen: u64,
}

impl TopStep {
    pub fn new(most: usize, field: Field, by: Option<Field>) -> Self {
        Self { most, field, by, groups: HashMap::new(), seen: 0 }
    }
}

impl RunningStep for TopStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        let Some(number) = row.value(&self.field).as_ref().and_then(number) else {
            let name = self.field.name();
            context.remark(
                format!(
                    "`top` takes the largest numbers and leaves out rows without a number in `{name}` (for the most \
                     frequent values: | count by {name} | limit 10)"
                ),
                1,
            );
            return Ok(StepFlow::Continue);
        };
        let group = self.by.as_ref().and_then(|by| row.value(by)).as_ref().map(identity);
        self.seen += 1;
        let bytes = row.bytes() + size_of::<Item>();
        let rows = self.groups.entry(group).or_default();
        // Of equal numbers the row that came first is kept.
        let place = rows.partition_point(|(other, ..)| compare(other, &number).is_ge());
        if place >= self.most {
            return Ok(StepFlow::Continue);
        }
        rows.insert(place, (number, self.seen, row));
        if rows.len() > self.most
            && let Some((_, _, dropped)) = rows.pop()
        {
            context.memory.release(dropped.bytes() + size_of::<Item>());
        }
        context.take(bytes, "keep fewer rows, or use a shorter time range")?;
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, _: &mut StepContext) -> Result<(), QueryError> {
        let mut rows: Vec<_> = self.groups.drain().flat_map(|(_, rows)| rows).collect();
        rows.sort_by(|(one, first, _), (two, second, _)| compare(two, one).then(first.cmp(second)));
        to.extend(rows.into_iter().map(|(_, _, row)| row));
        Ok(())
    }
}

/// Keeps the newest record of each value.
pub(super) struct LastStep {
    field: Field,
    newest: HashMap<Option<String>, Item>,
}

impl LastStep {
    pub fn new(field: Field) -> Self {
        Self { field, newest: HashMap::new() }
    }
}

impl RunningStep for LastStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        let key = row.value(&self.field).as_ref().map(identity);
        let bytes = row.bytes() + key.as_ref().map_or(0, String::len);
        let known = self.newest.get(&key);
        if known.is_none_or(|known| known.time_ns() < row.time_ns()) {
            let before = self.newest.insert(key, row).map_or(0, |old| old.bytes());
            context.take(bytes.saturating_sub(before), "choose a field with fewer values, or a shorter time range")?;
        }
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, _: &mut StepContext) -> Result<(), QueryError> {
        let mut rows: Vec<_> = self.newest.drain().collect();
        rows.sort_by(|(key, one), (other, two)| two.time_ns().cmp(&one.time_ns()).then_with(|| key.cmp(other)));
        to.extend(rows.into_iter().map(|(_, row)| row));
        Ok(())
    }
}
