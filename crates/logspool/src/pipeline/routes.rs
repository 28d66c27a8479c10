//! The routes of the process: which sinks each of them leads to, and which are retired.
//!
//! A route whose sink was closed is never used again. Its slot is reused when no lane holds a record that names it, so
//! that a recoverer finds the right definition for each record.

use std::collections::{HashMap, VecDeque};

use logspool_lanes::segment::Segment;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) by_sink: HashMap<u32, Vec<u32>>,
    pub(super) retired: VecDeque<RetiredRoutes>,
}

/// Routes that calls use no more.
#[derive(Debug)]
pub(super) struct RetiredRoutes {
    pub(super) ids: Vec<u32>,
    /// Published position of each lane when the routes were last in use.
    pub(super) heads: Vec<u64>,
}

impl RetiredRoutes {
    /// Whether no lane still holds a record that names these routes.
    pub(super) fn are_unused(&self, segment: &Segment) -> bool {
        let passed = |(lane, head): (usize, &u64)| segment.lane(lane).consumer.released() >= *head;
        self.heads.iter().enumerate().all(passed)
    }
}
