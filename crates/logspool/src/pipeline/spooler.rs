//! What a pipeline has of its spools.
//!
//! Atomics outside `queue` and `stats`: whether the thread runs, which callers of `before_fork` and the collector look at.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logspool_lanes::segment::Segment;

use crate::writer::{Bell, SpoolHome};

/// What a pipeline has of its spools.
#[derive(Debug)]
pub(super) struct Spooler {
    pub(super) home: SpoolHome,
    pub(super) bell: Arc<Bell>,
    pub(super) runs: AtomicBool,
    /// Asks the thread to leave at the end; for a fork the pipeline does.
    pub(super) leave: AtomicBool,
    /// Set once there are files.
    pub(super) has_files: AtomicBool,
}

impl Spooler {
    /// For spools in `folder`. `None`: without a segment that outlives the process nobody could tell what they hold.
    pub(super) fn new(folder: PathBuf, max_bytes: u64, segment: &Arc<Segment>) -> Option<Self> {
        let name = segment.home()?.1.to_owned();
        let home = SpoolHome { folder, name, max_bytes, segment: segment.clone() };
        let no = || AtomicBool::new(false);
        Some(Self { home, bell: Arc::default(), runs: no(), leave: no(), has_files: no() })
    }

    /// Whether its thread runs.
    pub(super) fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    /// Whether spools were begun: then the segment stays until they are removed.
    pub(super) fn has_files(&self) -> bool {
        self.has_files.load(Ordering::Acquire)
    }
}
