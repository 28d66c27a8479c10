//! Spool state of a pipeline.
//!
//! Atomics outside `queue` and `stats`: whether the thread runs, read by callers of `before_fork` and by the collector.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use logspool_lanes::segment::Segment;

use crate::writer::{Bell, SpoolHome};
use logspool_sys::crossing::RunningFlag;
use logspool_sys::published::Published;

/// Spool state of a pipeline.
#[derive(Debug)]
pub(super) struct Spooler {
    pub(super) home: SpoolHome,
    pub(super) bell: Arc<Bell>,
    pub(super) runs: RunningFlag,
    /// Asks the thread to leave at the end of the process. For a fork, the pipeline's `leave` does.
    pub(super) leave: AtomicBool,
    /// Set when there may be files.
    pub(super) has_files: AtomicBool,
}

impl Spooler {
    /// A spooler for `folder`. `None` if the segment does not outlive the process, since spools cannot be recovered
    /// then.
    pub(super) fn new(folder: PathBuf, max_bytes: u64, segment: &Arc<Segment>) -> Option<Self> {
        let name = segment.home()?.1.to_owned();
        let home = SpoolHome { folder, name, max_bytes, segment: segment.clone() };
        let no = || AtomicBool::new(false);
        Some(Self { home, bell: Arc::default(), runs: RunningFlag::new(), leave: no(), has_files: no() })
    }

    /// Whether the spool thread runs.
    pub(super) fn runs(&self) -> bool {
        self.runs.is_running()
    }

    /// Whether spools may exist: then the segment stays until they are removed.
    pub(super) fn has_files(&self) -> bool {
        self.has_files.observe()
    }
}
