//! The routes of the process: the routes to each sink, and the routes that are retired.
//!
//! A route whose sink was closed is never used again. Its slot is reused only when no lane holds a record that names
//! the route. So a recoverer finds the right definition for each record.

use std::collections::{HashMap, VecDeque};

use logspool_lanes::segment::Segment;

/// The routes to each sink, and the retired routes.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) by_sink: HashMap<u32, Vec<u32>>,
    pub(super) retired: VecDeque<RetiredRoutes>,
    /// Routes that no call begins to use any more. Calls that began before may still be on their way.
    pub(super) released: Vec<u32>,
}

impl Routes {
    /// Removes routes that are about to be retired from every other list, so that no place is given back twice. `ids`
    /// is sorted.
    pub(super) fn forget(&mut self, ids: &[u32]) {
        let stays = |id: &u32| ids.binary_search(id).is_err();
        self.released.retain(stays);
        self.by_sink.values_mut().for_each(|others| others.retain(stays));
        self.by_sink.retain(|_, others| !others.is_empty());
    }
}

/// Routes that no logging call uses any more.
#[derive(Debug)]
pub(super) struct RetiredRoutes {
    pub(super) ids: Vec<u32>,
    /// For each lane, the published position when the routes were last in use.
    pub(super) heads: Vec<u64>,
}

impl RetiredRoutes {
    /// Whether no lane still holds a record that names these routes.
    pub(super) fn are_unused(&self, segment: &Segment) -> bool {
        let passed = |(lane, head): (usize, &u64)| segment.lane(lane).consumer.released() >= *head;
        self.heads.iter().enumerate().all(passed)
    }
}
