//! What all steps of a running pipeline share: the memory, and remarks on the answer.

use std::collections::BTreeMap;

use crate::query::QueryError;
use crate::query_memory::QueryMemory;

/// Maximum bytes of the rows and groups that a query keeps.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// The shared state of the steps.
#[derive(Debug)]
pub(super) struct StepContext {
    pub memory: QueryMemory,
    /// The text of the query.
    pub text: String,
    /// Position of the running step in the text.
    pub position: usize,
    /// Remarks, with a number for each.
    pub remarks: BTreeMap<String, u64>,
    /// Number of rows that the last step dropped because of the limit of the query.
    pub cut: u64,
}

impl StepContext {
    /// An error of the running step.
    pub fn error(&self, message: impl Into<String>) -> QueryError {
        QueryError::while_running(&self.text, self.position, message)
    }

    /// Counts memory that a step takes.
    pub fn take(&mut self, bytes: usize, advice: &str) -> Result<(), QueryError> {
        let has_room = self.memory.take(bytes);
        if self.memory.bytes() > MAX_BYTES {
            return Err(self.error(format!("this stage needs more than {} MiB: {advice}", MAX_BYTES >> 20)));
        }
        if !has_room {
            return Err(self.error("other queries need too much memory now: retry later"));
        }
        Ok(())
    }

    /// Counts rows for a remark.
    pub fn remark(&mut self, text: String, count: u64) {
        if count > 0 {
            *self.remarks.entry(text).or_default() += count;
        }
    }
}
