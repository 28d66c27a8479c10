//! Keeps the rows before and after a record.

use super::item::Item;
use super::memory::StepContext;
use super::step::{RunningStep, StepFlow};
use crate::query::QueryError;
use crate::record_id::RecordId;

/// Keeps a number of rows before and after a record. The rows come in the order of time.
pub(super) struct NeighboursStep {
    id: RecordId,
    /// Number of rows on each side. `None`: all rows.
    most: Option<usize>,
    rows: Vec<Item>,
}

impl NeighboursStep {
    pub fn new(id: RecordId, most: Option<usize>) -> Self {
        Self { id, most, rows: Vec::new() }
    }
}

impl RunningStep for NeighboursStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        context.take(row.bytes(), "ask for fewer neighbours")?;
        self.rows.push(row);
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, _: &mut StepContext) -> Result<(), QueryError> {
        let mut rows = std::mem::take(&mut self.rows);
        // Rows come newest first, and of the same time the row that was stored last comes first.
        rows.reverse();
        rows.sort_by_key(Item::time_ns);
        let is_it = |row: &Item| matches!(row, Item::Record(record) if RecordId::of(record) == self.id);
        // The filter may exclude the record itself.
        let (before, after) = match rows.iter().position(is_it) {
            Some(at) => (at, at + 1),
            None => {
                let at = rows.partition_point(|row| row.time_ns() < Some(self.id.time_ns));
                (at, at)
            }
        };
        let (first, end) = match self.most {
            Some(most) => (before.saturating_sub(most), (after + most).min(rows.len())),
            None => (0, rows.len()),
        };
        to.extend(rows.drain(first..end));
        Ok(())
    }
}
