//! The thread that builds the indexes after the writer has committed the records. It has its own connections, so the
//! thread and the writer do not wait for each other.

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

/// Pause between two rounds while few records arrive. Chosen: queries also find records that are not indexed yet, so
/// the index need not be current. The pause only has to be long enough that a round has enough records to be
/// worthwhile.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a round with several steps. Chosen: at the highest rate that the indexer can keep up with, a step or two
/// of records arrive meanwhile. A query for words has to read these records without the index.
const BUSY_ROUND_INTERVAL: Duration = Duration::from_millis(100);

/// Niceness of the thread. Chosen: on a busy machine the thread gets about a tenth of a processor, so it never stops
/// completely.
const NICE: i32 = 10;

/// The indexer thread. It stops when this value is dropped, after its current step.
#[derive(Debug)]
pub(super) struct Indexer {
    /// Dropping this sender stops the thread.
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
        // If the thread panicked, it has reported the panic. Records are safe without the index.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct IndexerWork {
    folder: PathBuf,
    recent: RecentTraces,
    damages: DamageNotes,
    stopped: Receiver<()>,
    /// The open indexes, by the sequence number of their file.
    open: HashMap<i64, DayIndex>,
    /// The sequence numbers of files that have no more records to index. A damaged file is tried again when the service
    /// restarts.
    finished: HashSet<i64>,
    /// True if the last round had several steps.
    is_busy: bool,
    last_error: String,
}

impl IndexerWork {
    fn run(&mut self) {
        // The writer and the sources have priority. On Linux nice(2) affects only the calling thread.
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
            // A damaged file has been reported. Reading it would report it again.
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
                // On a machine with a single processor this pause lets the writer run.
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
