//! The interface of a running step.

use super::item::Item;
use super::memory::StepContext;
use crate::query::QueryError;

/// Whether a step takes more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepFlow {
    Continue,
    /// Further rows would not change the result.
    Full,
}

/// A running step.
pub(super) trait RunningStep: Send {
    /// Takes a row, and appends the resulting rows to `to`.
    fn take(&mut self, row: Item, to: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError>;

    /// Appends the remaining rows after the last row was taken.
    fn finish(&mut self, _to: &mut Vec<Item>, _context: &mut StepContext) -> Result<(), QueryError> {
        Ok(())
    }
}
