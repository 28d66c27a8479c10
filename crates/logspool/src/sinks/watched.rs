//! A file that others move away: `logging.handlers.WatchedFileHandler`.
//!
//! Before a write the path is looked at; where it names another file, or none, it is opened again. Stock does
//! this with every record, this sink with every write: the records of a chunk are written in one go and are
//! milliseconds old, so a file moved between two of them shows one chunk later. A record that a full disk has
//! cut is finished in the file where it began. Where that was removed meanwhile the rest goes to the new one: the
//! disk gets the room back when nobody has the removed file open.
//! The new file is opened in append mode, whatever the mode of the first one was.

use std::io;

use logspool_record::definition::Descriptor;

use super::named::NamedFile;
use super::torn::Torn;
use crate::sink::{Lines, SharedLog, Sink, SinkError, SyncError};

/// See the file head.
#[derive(Debug)]
pub struct WatchedFileSink {
    file: NamedFile,
    torn: Torn,
}

impl WatchedFileSink {
    /// Opens `path` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// What open(2) or fcntl(2) said.
    pub fn open(path: &str, descriptor: Descriptor) -> io::Result<Self> {
        Ok(Self { file: NamedFile::open(path, descriptor)?, torn: Torn::default() })
    }
}

impl Sink for WatchedFileSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let mut part = lines.bytes.len();
        if self.torn.continues(&lines) && self.file.has_name().map_err(SinkError::Retry)? {
            part = lines.marks.first().map_or(part, |mark| mark.end as usize - lines.before);
        } else if self.file.has_moved().map_err(SinkError::Retry)? {
            self.file.reopen().map_err(SinkError::Retry)?;
        }
        self.file.enter()?;
        let count = self.file.append(&lines, part)?;
        self.torn.note(&lines, count);
        Ok(count)
    }

    fn turns(&self) -> u64 {
        self.file.turns()
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        self.file.sync()
    }

    fn keep_unsynced(&mut self) {
        self.file.keep_unsynced();
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(self.file.shared())
    }
}
