//! Handles writes that end inside a record. A full disk accepts part of a line, and the rest is written later.
//!
//! The rest must be written to the same file. So a sink that switches to another file checks this first, and switches
//! only between records.

use crate::sink::Lines;

/// Remembers whether the last write ended inside a record.
#[derive(Debug, Default)]
pub struct TornRecord {
    inside: bool,
}

impl TornRecord {
    /// Whether `lines` begins with the rest of a record. The start of a chunk never does. If the previous chunk was
    /// dropped in the middle of a record, the rest of that record is never written.
    pub fn continues(&self, lines: &Lines<'_>) -> bool {
        self.inside && lines.before > 0
    }

    /// Records that `count` bytes of `lines` were written.
    pub fn note(&mut self, lines: &Lines<'_>, count: usize) {
        let reached = lines.before + count;
        self.inside = lines.marks.binary_search_by_key(&reached, |mark| mark.end as usize).is_err();
    }
}
