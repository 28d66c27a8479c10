//! The thread that makes the indexes, behind the writer and with connections of its own: it waits for nobody, and
//! nobody waits for it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::catalog::{Catalog, Entry};
use super::damage::Damages;
use super::failure::failed_io;
use super::index::{Index, Progress};
use super::recent::Recent;
use crate::stores::StoreError;

/// How often it looks for new records while few come. Chosen: what it has not reached is found without it, so all that
/// matters is that its steps are not too small.
const ROUND: Duration = Duration::from_secs(1);

/// The same while so many come that the last round had several steps. Chosen: a step or two at the rates where it still
/// keeps up; what a query for words has to read grows by as many.
const BUSY_ROUND: Duration = Duration::from_millis(100);

/// How far the thread stands back. Chosen: it gets a tenth of a processor that others want, so that it never stands.
const NICE: i32 = 10;

/// The thread; it ends with this, after its step.
#[derive(Debug)]
pub(super) struct Indexer {
    /// Dropped to stop it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Starts it for a folder.
    pub fn start(folder: &Path, recent: Recent, damages: Damages) -> Result<Self, StoreError> {
        let (stop, stopped) = channel();
        let mut work = Work {
            folder: folder.to_owned(),
            recent,
            damages,
            stopped,
            open: HashMap::new(),
            finished: HashSet::new(),
            is_busy: false,
            last_error: String::new(),
        };
        let thread = thread::Builder::new()
            .name("logspool-index".to_owned())
            .spawn(move || work.run())
            .map_err(|error| failed_io("start a thread that indexes", folder, &error))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stop = None;
        // A panic was told by the thread itself; records are safe without it.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    folder: PathBuf,
    recent: Recent,
    damages: Damages,
    stopped: Receiver<()>,
    /// By the sequence of the file.
    open: HashMap<i64, Index>,
    /// Files of which there is no more to do: a damaged one is looked at again by the next service.
    finished: HashSet<i64>,
    /// Whether the last round had several steps.
    is_busy: bool,
    last_error: String,
}

impl Work {
    fn run(&mut self) {
        // The writer and the sources go first. On Linux this holds for the calling thread alone.
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::debug!("the index is made at the usual priority: {error}");
        }
        loop {
            self.is_busy = false;
            match self.round() {
                Ok(()) => self.last_error.clear(),
                Err(error) => {
                    let error = error.to_string();
                    if error != self.last_error {
                        tracing::warn!("{error}; it is tried again");
                        self.last_error = error;
                    }
                }
            }
            if self.is_stopped_after(if self.is_busy { BUSY_ROUND } else { ROUND }) {
                return;
            }
        }
    }

    /// Goes on with all files. One that fails does not keep the others.
    fn round(&mut self) -> Result<(), StoreError> {
        let entries = Catalog::open_read(&self.folder)?.entries()?;
        self.open.retain(|sequence, _| entries.iter().any(|entry| entry.sequence == *sequence));
        let mut result = Ok(());
        for entry in entries {
            // A damaged file is named already, and an index of it would be too.
            if !self.finished.contains(&entry.sequence) && !self.damages.has(&entry.name) {
                result = self.go_on(&entry).and(result);
            }
        }
        result
    }

    fn go_on(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let open = match self.open.remove(&entry.sequence) {
            None => Index::open(&self.folder, entry, &self.damages)?,
            open => open,
        };
        let Some(mut index) = open else {
            self.finished.insert(entry.sequence);
            return Ok(());
        };
        loop {
            let began = Instant::now();
            let progress = index.step()?;
            self.recent.forget(entry.sequence, index.reached());
            let is_finished = match progress {
                // Where there is one processor, the writer gets its part of it.
                Progress::More if self.is_stopped_after(began.elapsed() / 16) => return Ok(()),
                Progress::More => {
                    self.is_busy = true;
                    continue;
                }
                Progress::UpToDate => false,
                Progress::Finished => index.finish()?,
                Progress::Damaged(why) => {
                    self.damages.note(&self.folder, &entry.name, &why);
                    true
                }
            };
            if is_finished {
                self.finished.insert(entry.sequence);
            } else {
                self.open.insert(entry.sequence, index);
            }
            return Ok(());
        }
    }

    fn is_stopped_after(&self, time: Duration) -> bool {
        matches!(self.stopped.recv_timeout(time), Err(RecvTimeoutError::Disconnected))
    }
}
