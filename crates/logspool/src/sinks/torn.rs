//! Writes that end inside a record: a disk that fills up takes half a line, and the rest follows later.
//!
//! The rest belongs where the beginning went. So a sink that goes over to another file asks here first, and
//! goes over only in front of a record.

use crate::sink::Lines;

/// Remembers whether the last write ended inside a record.
#[derive(Debug, Default)]
pub struct Torn {
    inside: bool,
}

impl Torn {
    /// Whether `lines` begins with the rest of a record. A chunk from its start never does: if the last one was
    /// given up in the middle, nothing of that record will follow.
    pub fn continues(&self, lines: &Lines<'_>) -> bool {
        self.inside && lines.before > 0
    }

    /// Takes note that `count` bytes of `lines` were written.
    pub fn note(&mut self, lines: &Lines<'_>, count: usize) {
        let reached = lines.before + count;
        self.inside = lines.marks.binary_search_by_key(&reached, |mark| mark.end as usize).is_err();
    }
}
