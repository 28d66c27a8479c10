//! Location of the spools, the bell of their thread, and the spool state of an outlet and of that thread.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use logspool_lanes::segment::Segment;

use super::sink_spool::SinkSpool;

/// A spool that has stored nothing for this long, while overflow files are full, hangs on its disk.
///
/// Chosen: ten segments filled with zeros on a slow disk; a queue that is full for longer refuses records anyway.
const TIMEOUT_NS: u64 = 500_000_000;

/// Location and size limit of the spools of a process.
#[derive(Debug)]
pub struct SpoolHome {
    /// The folder that the user chose.
    pub folder: PathBuf,
    /// Name of the process, and of its folder below `folder`.
    pub name: String,
    /// Most bytes of one sink's spool.
    pub max_bytes: u64,
    /// Tells a recoverer where the spools are.
    pub segment: Arc<Segment>,
}

impl SpoolHome {
    /// The folder of this process.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Makes the folders, and a file next to the segment that names them.
    pub(super) fn make(&self) -> Result<(), std::io::Error> {
        std::fs::create_dir_all(&self.folder)?;
        drop(logspool_sys::folder::Folder::open(&self.path())?);
        match self.segment.home() {
            Some((folder, name)) => logspool_spool::pointer::write(folder, name, &self.path()),
            None => Ok(()),
        }
    }
}

/// Wakes the spool's thread.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Rings the bell.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits for the bell, at most for `longest`.
    pub fn wait(&self, longest: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, longest, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Spool state of an outlet, under the outlet's lock.
#[derive(Debug, Default)]
pub(super) struct SpoolState {
    /// The number after the last written chunk of the spool.
    pub(super) acked: u64,
    /// Set when the sink was abandoned, so that its spool is removed.
    pub(super) is_over: bool,
    /// Bytes of the spool's files.
    pub(super) bytes: u64,
    /// Why the spool accepts no records; empty if it does.
    pub(super) error: String,
    /// When the overflow files were found full (0 while they are not), and when a chunk was last moved out of them.
    pub(super) full_since: u64,
    pub(super) stored_at: u64,
}

impl SpoolState {
    /// Whether the spool is expected to empty full overflow files: it works, or has not had enough time to hang.
    pub(super) fn is_making_room(&mut self, is_full: bool, now: u64) -> bool {
        if !is_full {
            self.full_since = 0;
            return false;
        }
        if self.full_since == 0 {
            self.full_since = now;
        }
        self.error.is_empty() && now.saturating_sub(self.full_since.max(self.stored_at)) < TIMEOUT_NS
    }
}

/// State of an outlet that only the spool's thread uses.
#[derive(Debug, Default)]
pub(super) struct SpoolSlot {
    pub(super) open: Option<SinkSpool>,
    /// When the disk may be tried again, and the last pause between tries.
    pub(super) try_at: u64,
    pub(super) pause: u64,
    pub(super) saved_at: u64,
    pub(super) used_at: u64,
}

/// Result of a turn at one outlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpoolTurn {
    /// There is no spool, and it is not needed.
    Idle,
    /// There is a spool, but nothing to do now.
    Waits,
    /// There may be more to do at once.
    Worked,
}
