//! The location of the spools, the bell of their thread, and the spool state of an outlet and of that thread.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use logspool_lanes::segment::Segment;

use super::sink_spool::SinkSpool;

/// If overflow files are full and a spool has stored nothing for this long, the spool hangs on its disk.
///
/// Chosen: in this time a slow disk fills ten segments with zeros. A queue that is full for longer refuses records
/// anyway.
const TIMEOUT_NS: u64 = 500_000_000;

/// Location and size limit of all spools of a process.
#[derive(Debug)]
pub struct SpoolHome {
    /// The spool folder that the user chose.
    pub folder: PathBuf,
    /// Name of the process. The folder of this process below `folder` has the same name.
    pub name: String,
    /// Maximum number of bytes of one sink's spool.
    pub max_bytes: u64,
    /// The segment of this process. A file next to it tells a recoverer where the spools are.
    pub segment: Arc<Segment>,
}

impl SpoolHome {
    /// Path of the folder that holds the spools of this process.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Makes the folders, and writes a file next to the segment that names the spool folder.
    pub(super) fn make(&self) -> Result<(), std::io::Error> {
        std::fs::create_dir_all(&self.folder)?;
        drop(logspool_sys::folder::Folder::open(&self.path())?);
        match self.segment.home() {
            Some((folder, name)) => logspool_spool::pointer::write(folder, name, &self.path()),
            None => Ok(()),
        }
    }
}

/// A flag that wakes the spool's thread.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Wakes the thread that waits in [`Bell::wait`]. If no thread waits, the next `wait` returns at once.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits until [`Bell::ring`] is called, for at most `longest`, and clears the flag.
    pub fn wait(&self, longest: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, longest, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Spool state of an outlet, which is protected by the outlet's lock.
#[derive(Debug, Default)]
pub(super) struct SpoolState {
    /// Record number after the last chunk of the spool that was written to the sink.
    pub(super) acked: u64,
    /// Whether the sink was abandoned, so that the spool's thread must remove its spool.
    pub(super) is_over: bool,
    /// Number of bytes of the spool's files.
    pub(super) bytes: u64,
    /// Text of the error due to which the spool accepts no records; empty if it accepts records.
    pub(super) error: String,
    /// Two times. `full_since`: when the overflow files were found full, 0 while they are not. `stored_at`: when a
    /// chunk was last moved to disk.
    pub(super) full_since: u64,
    pub(super) stored_at: u64,
}

impl SpoolState {
    /// Whether the spool is expected to empty full overflow files. It is not if it has an error, or has stored nothing
    /// for [`TIMEOUT_NS`].
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

/// State of an outlet's spool that only the spool's thread uses.
#[derive(Debug, Default)]
pub(super) struct SpoolSlot {
    pub(super) open: Option<SinkSpool>,
    /// Two times. `try_at`: when the disk may be tried again. `pause`: the last pause between two tries, in
    /// nanoseconds.
    pub(super) try_at: u64,
    pub(super) pause: u64,
    pub(super) saved_at: u64,
    pub(super) used_at: u64,
}

/// Result of one turn of the spool's thread at one outlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpoolTurn {
    /// The outlet has no spool, and needs none.
    Idle,
    /// The outlet has a spool, or needs one, but there is nothing to do now.
    Waits,
    /// The turn did some work, and there may be more to do at once.
    Worked,
}
