//! A file that other programs may move: `logging.handlers.WatchedFileHandler`.
//!
//! Each write first checks whether the path names the open file. If it does not, the sink opens the path again. The
//! standard library checks for each record, this sink for each write. The records of a chunk are written together,
//! milliseconds after the calls. If the file is moved between two calls, the sink notices it one chunk later.
//!
//! A record that a full disk has cut is finished in the file in which it began. If that file was removed meanwhile, the
//! rest is written to the new file. The disk gets its space back only when no process has the removed file open. The
//! new file is opened in append mode, whatever the mode of the first file was.

use std::io;

use logspool_record::definition::Descriptor;

use super::named::NamedFile;
use super::torn::TornRecord;
use super::{Place, SinkOptions, Traits};
use crate::sink::{Lines, SharedLog, Sink, SinkError, SyncError};

crate::options! {
    /// Appends lines to a file, and opens the path again when it names another file.
    pub struct WatchedFileOptions {
        /// Path of the file. It is created where it is missing.
        pub path: String as Path,
    }
}

impl SinkOptions for WatchedFileOptions {
    const KIND: &'static str = "watched";
    const TRAITS: Traits = Traits { rotates: true, ..Traits::FILE };

    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(WatchedFileSink::open(&self.path, descriptor)?))
    }

    fn place(&self) -> Place {
        Place::File(self.path.clone())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![Self { path: path.to_owned() }]
    }
}

/// A file sink that opens its path again when the path names another file.
#[derive(Debug)]
pub struct WatchedFileSink {
    file: NamedFile,
    torn: TornRecord,
}

impl WatchedFileSink {
    /// Opens `path` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// The error of open(2) or fcntl(2).
    pub fn open(path: &str, descriptor: Descriptor) -> io::Result<Self> {
        Ok(Self { file: NamedFile::open(path, descriptor)?, torn: TornRecord::default() })
    }
}

impl Sink for WatchedFileSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        self.file.restore().map_err(SinkError::from_write)?;
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

    fn rotation_count(&self) -> u64 {
        self.file.rotation_count()
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
