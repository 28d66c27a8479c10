//! Compresses the backups of a rotated file to `.gz` or `.zst`. This is not a pipeline stage: it runs in a thread of
//! its own, with the lowest priority.
//!
//! Only with `RotationRules::Together`. A sink requests it with its first write, for backups of earlier processes, and
//! after every rotation. The thread ends when no work is left. Before a fork the thread ends too, and keeps its
//! unfinished job.
//!
//! The life of a backup, `app.log.1` with the inode 2a:
//!
//! 1. `app.log.2a.gz.part` is created and locked. The holder of the lock compresses that inode, whatever its name is by
//!    now. A record lock is not inherited by a fork and ends with its process.
//! 2. The file is written in pieces, gets the mode, owner and times of the backup, and is synced.
//! 3. The lock of the live file's sidecar is taken, as every rotation does. Under it the backup is found by its inode,
//!    and the compressed file is renamed to that name plus its ending. The folder is synced.
//! 4. Under that lock again, the plain file is removed.
//!
//! A kill before step 3 leaves a `.part` file, which does not count as a backup. The next process that compresses that
//! inode starts it again; a `.part` file whose inode is gone is removed. Between steps 3 and 4 both forms exist. The
//! compressed one stores inode, size and time of the plain one (`forms.rs`), so every process can tell that it is a
//! copy. The next rotation or process then removes the plain file. Two forms that are not copies of each other both
//! stay, under one number.
//!
//! A backup that cannot be compressed stays as it is. This counts as an error of the sink, and is tried again after the
//! next rotation. Without sidecars the sinks of one process exclude each other, but processes do not.

pub mod forms;
mod job;
mod live;
mod scan;
mod task;
mod thread;

use std::io;
use std::sync::{MutexGuard, PoisonError};

use super::Compression;
use crate::sink::Origin;
pub use task::Naming;
use task::Task;
pub use thread::{close_inherited, end, resume_after_fork, stop_before_fork};

/// A sink's handle to the compression of its backups.
#[derive(Debug)]
pub struct CompressionHandle {
    task: Task,
    /// The sink's number of rotations at the last request.
    seen: Option<u64>,
}

impl CompressionHandle {
    /// Creates a handle for the file at `path`.
    pub fn new(path: &str, how: Compression, naming: Naming) -> Self {
        let (alone, trouble) = Default::default();
        Self { task: Task { path: path.to_owned(), how, naming, origin: None, alone, trouble }, seen: None }
    }

    /// Call it after a write, with the sink's number of rotations. Requests compression if there may be new backups.
    pub fn note_rotations(&mut self, rotation_count: u64, origin: impl FnOnce() -> Option<Origin>) {
        if self.seen.replace(rotation_count) != Some(rotation_count) {
            self.task.origin = origin();
            thread::request(self.task.clone());
        }
    }

    /// While the guard is held, no other code of this process renames backups.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.task.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns and clears the last error of the compression.
    pub fn trouble(&self) -> Option<io::Error> {
        self.task.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
