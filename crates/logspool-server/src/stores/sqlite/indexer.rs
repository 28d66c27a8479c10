//! The thread that makes the indexes, behind the writer and with connections of its own: it waits for nobody, and
//! nobody waits for it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::catalog::{Catalog, Entry};
use super::failure::failed_io;
use super::index::{Index, Progress};
use crate::stores::StoreError;

/// How often it looks for new records. Chosen: what it has not reached is found without it, so all that matters is that
/// its steps are not too small.
const ROUND: Duration = Duration::from_secs(1);

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
    pub fn start(folder: &Path) -> Result<Self, StoreError> {
        let (stop, stopped) = channel();
        let mut work = Work {
            folder: folder.to_owned(),
            stopped,
            open: HashMap::new(),
            finished: HashSet::new(),
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
    stopped: Receiver<()>,
    /// By the sequence of the file.
    open: HashMap<i64, Index>,
    /// Files of which there is no more to do: a damaged one is looked at again by the next service.
    finished: HashSet<i64>,
    last_error: String,
}

impl Work {
    fn run(&mut self) {
        // The writer and the sources go first. On Linux this holds for the calling thread alone.
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::debug!("the index is made at the usual priority: {error}");
        }
        loop {
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
            if self.is_stopped_after(ROUND) {
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
            if !self.finished.contains(&entry.sequence) {
                result = self.go_on(&entry).and(result);
            }
        }
        result
    }

    fn go_on(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let open = match self.open.remove(&entry.sequence) {
            None => Index::open(&self.folder, entry)?,
            open => open,
        };
        let Some(mut index) = open else {
            self.finished.insert(entry.sequence);
            return Ok(());
        };
        loop {
            let began = Instant::now();
            let is_finished = match index.step()? {
                // Where there is one processor, the writer gets its part of it.
                Progress::More if self.is_stopped_after(began.elapsed() / 4) => return Ok(()),
                Progress::More => continue,
                Progress::UpToDate => false,
                Progress::Finished => index.finish()?,
                Progress::Damaged => true,
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
