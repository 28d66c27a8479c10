//! Adds the intervals of time that have no rows.

use std::collections::HashMap;
use std::sync::Arc;

use super::item::Item;
use super::memory::StepContext;
use super::order::compare_optional;
use super::step::{RunningStep, StepFlow};
use crate::identity::identity;
use crate::query::plan::TimeRange;
use crate::query::{Field, QueryError};
use crate::value::Value;

/// Maximum number of rows with the empty intervals. Chosen: two months have fewer minutes.
const MAX_ROWS: i128 = 100_000;

/// The rows until now.
pub(super) struct FillStep {
    interval_ns: i64,
    by: Option<Field>,
    range: TimeRange,
    rows: Vec<Item>,
}

impl FillStep {
    pub fn new(interval_ns: i64, by: Option<Field>, range: TimeRange) -> Self {
        Self { interval_ns: interval_ns.max(1), by, range, rows: Vec::new() }
    }

    /// The first and the last interval of the answer.
    fn bounds(&self) -> Option<(i64, i64)> {
        let begin = |time: i64| time.div_euclid(self.interval_ns).saturating_mul(self.interval_ns);
        let first = self.rows.first()?.time_ns()?;
        let last = self.rows.last()?.time_ns()?;
        let since = self.range.since_ns.map_or(first, begin).min(first);
        let until = self.range.until_ns.map_or(last, |until| begin(until.saturating_sub(1))).max(last);
        Some((since, until))
    }

    /// The values of the column that splits the series, in order.
    fn series(&self) -> Vec<Option<Value<'static>>> {
        let Some(by) = &self.by else { return vec![None] };
        let values = self.rows.iter().map(|row| row.value(by));
        let known: HashMap<_, _> = values.map(|value| (value.as_ref().map(identity), value)).collect();
        let mut series: Vec<_> = known.into_values().collect();
        series.sort_by(|one, two| compare_optional(one.as_ref(), two.as_ref()));
        series
    }
}

impl RunningStep for FillStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        context.take(row.bytes(), "use longer intervals, or a shorter time range")?;
        self.rows.push(row);
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, context: &mut StepContext) -> Result<(), QueryError> {
        // Records without a time have no place in a series.
        self.rows.retain(|row| row.time_ns().is_some());
        let Some((since, until)) = self.bounds() else {
            to.append(&mut self.rows);
            return Ok(());
        };
        let series = self.series();
        let intervals = (i128::from(until) - i128::from(since)) / i128::from(self.interval_ns) + 1;
        let rows = intervals.saturating_mul(series.len() as i128);
        if rows > MAX_ROWS {
            let empty = rows - self.rows.len() as i128;
            let empty = u64::try_from(empty).unwrap_or(u64::MAX);
            context.remark(
                "empty intervals are left out: use longer intervals, or a shorter time range".to_owned(),
                empty,
            );
            to.append(&mut self.rows);
            return Ok(());
        }
        let by = self.by.clone();
        let key = |row: &Item| (row.time_ns(), by.as_ref().and_then(|by| row.value(by)).as_ref().map(identity));
        let mut known: HashMap<_, _> = std::mem::take(&mut self.rows).into_iter().map(|row| (key(&row), row)).collect();
        let (time_name, count_name): (Arc<str>, Arc<str>) = ("time".into(), "count".into());
        let by_name: Option<Arc<str>> = self.by.as_ref().map(|by| by.name().into());
        let mut time = since;
        while time <= until {
            for value in &series {
                to.push(known.remove(&(Some(time), value.as_ref().map(identity))).unwrap_or_else(|| {
                    let mut row = vec![(time_name.clone(), Value::Int(time))];
                    row.extend(by_name.iter().map(|name| (name.clone(), value.clone().unwrap_or(Value::Null))));
                    row.push((count_name.clone(), Value::Int(0)));
                    Item::Row(row)
                }));
            }
            let Some(next) = time.checked_add(self.interval_ns) else { break };
            time = next;
        }
        Ok(())
    }
}
