//! Backups of a rotated file become `.gz` or `.zst`, beside the line: a thread of its own, of the lowest priority.
//!
//! Only with `RotationRules::Together`. A sink asks with its first write, for what earlier processes left, and behind
//! every turn. The thread ends when nothing is left to do, and leaves for a fork, with what it has begun put aside.
//!
//! The life of a backup, `app.log.1` with the inode 2a:
//!
//! 1. `app.log.2a.gz.part` is made and locked: whoever has the lock compresses that inode, whatever it is called by
//!    now. A record lock is not inherited by a fork and ends with its process.
//! 2. It is written in pieces, gets the mode, owner and times of the backup, and is synced.
//! 3. Under the lock of the live file's sidecar, which every rotation takes too, the backup is looked for by its inode,
//!    and the compressed file is renamed to that name and its ending. The folder is synced.
//! 4. Under that lock again, the plain file is removed.
//!
//! A kill in front of 3 leaves a `.part`, which nobody counts: whoever compresses that inode next begins it anew, and
//! one whose inode is gone is removed. Between 3 and 4 both forms are there. The compressed one holds inode, bytes and
//! time of the plain one (`forms.rs`), so everybody can tell that it is a copy, and the next rotation or the next
//! process removes the plain one. Two forms that are no copies of each other stay both, under one number.
//!
//! What cannot be compressed stays as it is, is counted as an error of the sink, and is tried again behind the next
//! turn. Without sidecars the sinks of one process exclude each other, and processes do not.

pub mod forms;
mod job;
mod live;
mod scan;
mod thread;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Compression;
use super::calendar::Precision;
use crate::sidecar::Origin;
pub use thread::{come_back, end, forget, leave};

/// How the backups of a file are called.
#[derive(Debug, Clone, Copy)]
pub enum Naming {
    /// `path.1`, `path.2`, ...; the highest is the oldest.
    Numbers,
    /// `path.2026-11-22`, so precise.
    Stamps(Precision),
}

/// What is to be done for one log file.
#[derive(Debug, Clone)]
struct Task {
    path: String,
    how: Compression,
    naming: Naming,
    origin: Option<Origin>,
    alone: Arc<Mutex<()>>,
    trouble: Arc<Mutex<Option<io::Error>>>,
}

/// A sink's side of it.
#[derive(Debug)]
pub struct Compressing {
    task: Task,
    /// Turns of the sink at the last request.
    seen: Option<u64>,
}

impl Compressing {
    /// For the file at `path`.
    pub fn new(path: &str, how: Compression, naming: Naming) -> Self {
        let (alone, trouble) = Default::default();
        Self { task: Task { path: path.to_owned(), how, naming, origin: None, alone, trouble }, seen: None }
    }

    /// The sink has written, after so many turns. Has backups compressed where there may be new ones.
    pub fn see(&mut self, turns: u64, origin: impl FnOnce() -> Option<Origin>) {
        if self.seen.replace(turns) != Some(turns) {
            self.task.origin = origin();
            thread::request(self.task.clone());
        }
    }

    /// Nobody of this process gives backups other names as long as this is held.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.task.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What went wrong since the last question.
    pub fn trouble(&self) -> Option<io::Error> {
        self.task.trouble.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Task {
    fn note(&self, error: io::Error) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
