//! The routes of the process: what leads to which sink, and which of them are done with.
//!
//! A route whose sink was closed is never taken again. Its place is used again once no record that names it lies in
//! a lane, so that whoever recovers finds the right definition for each.

use std::collections::{HashMap, VecDeque};

use logspool_lanes::segment::Segment;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) by_sink: HashMap<u32, Vec<u32>>,
    pub(super) retired: VecDeque<Retired>,
}

/// Routes that no call takes any more.
#[derive(Debug)]
pub(super) struct Retired {
    pub(super) ids: Vec<u32>,
    /// How far each lane was written when they were taken last.
    pub(super) heads: Vec<u64>,
}

impl Retired {
    /// Whether no record that names them is left.
    pub(super) fn are_passed(&self, segment: &Segment) -> bool {
        let passed = |(lane, head): (usize, &u64)| segment.lane(lane).consumer.released() >= *head;
        self.heads.iter().enumerate().all(passed)
    }
}
