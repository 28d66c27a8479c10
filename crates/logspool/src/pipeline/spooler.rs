//! Spool state of a pipeline.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: flags of the spool thread, which callers
//! of `before_fork` and the collector read.

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
    /// Asks the spool thread to end, at the end of the process. Before a fork, the pipeline's `leave` does this.
    pub(super) leave: AtomicBool,
    /// Set while there may be spool files.
    pub(super) has_files: AtomicBool,
}

impl Spooler {
    /// A spooler for `folder`. Returns `None` if the segment does not survive the process, since the spools could not
    /// be recovered then.
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

    /// Whether spools may exist. If so, the segment must stay until the spools are removed.
    pub(super) fn has_files(&self) -> bool {
        self.has_files.observe()
    }
}
