//! The thread that makes the indexes after the writer has committed. It has its own connections, and neither waits for
//! the other.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::catalog::{Catalog, CatalogEntry};
use super::damage::DamageNotes;
use super::failure::failed_io;
use super::index::{DayIndex, IndexProgress};
use super::recent::RecentTraces;
use crate::stores::StoreError;

/// Interval of rounds while few records arrive. Chosen: records after the end of the index are found without it, so a
/// round only has to be long enough to make its steps worthwhile.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of rounds while the last round had several steps. Chosen: a step or two at the highest rate that it keeps
/// up with. A query for words has to read that many more records without the index.
const BUSY_ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// Niceness of the thread. Chosen: under load it gets about a tenth of a processor, so it never stops completely.
const NICE: i32 = 10;

/// The indexer thread. It stops when this value is dropped, after its current step.
#[derive(Debug)]
pub(super) struct Indexer {
    /// Dropped to stop the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    /// Starts the thread for a folder.
    pub fn start(folder: &Path, recent: RecentTraces, damages: DamageNotes) -> Result<Self, StoreError> {
        let (stop, stopped) = channel();
        let mut work = IndexerWork {
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
        // The thread has reported its own panic; records are safe without the index.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct IndexerWork {
    folder: PathBuf,
    recent: RecentTraces,
    damages: DamageNotes,
    stopped: Receiver<()>,
    /// Open indexes by the sequence of their file.
    open: HashMap<i64, DayIndex>,
    /// Files with nothing more to index. A damaged one is tried again when the service restarts.
    finished: HashSet<i64>,
    /// True if the last round had several steps.
    is_busy: bool,
    last_error: String,
}

impl IndexerWork {
    fn run(&mut self) {
        // The writer and the sources have priority. On Linux this affects only the calling thread.
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::debug!("the indexer runs at normal priority: {error}");
        }
        loop {
            self.is_busy = false;
            match self.run_round() {
                Ok(()) => self.last_error.clear(),
                Err(error) => {
                    let error = error.to_string();
                    if error != self.last_error {
                        tracing::warn!("{error}; retrying");
                        self.last_error = error;
                    }
                }
            }
            if self.is_stopped_after(if self.is_busy { BUSY_ROUND_INTERVAL } else { ROUND_INTERVAL }) {
                return;
            }
        }
    }

    /// Indexes new records of all files. A failure of one file does not stop the others.
    fn run_round(&mut self) -> Result<(), StoreError> {
        let entries = Catalog::open_read(&self.folder)?.entries()?;
        self.open.retain(|sequence, _| entries.iter().any(|entry| entry.sequence == *sequence));
        let mut result = Ok(());
        for entry in entries {
            // A damaged file is reported already, and reading it would report it again.
            if !self.finished.contains(&entry.sequence) && !self.damages.has(&entry.name) {
                result = self.index_file(&entry).and(result);
            }
        }
        result
    }

    fn index_file(&mut self, entry: &CatalogEntry) -> Result<(), StoreError> {
        let open = match self.open.remove(&entry.sequence) {
            None => DayIndex::open(&self.folder, entry, &self.damages)?,
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
                // On a single processor the pause lets the writer run.
                IndexProgress::More if self.is_stopped_after(began.elapsed() / 16) => return Ok(()),
                IndexProgress::More => {
                    self.is_busy = true;
                    continue;
                }
                IndexProgress::UpToDate => false,
                IndexProgress::Finished => index.finish()?,
                IndexProgress::Damaged(why) => {
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
