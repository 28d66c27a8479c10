//! A regular file that is appended to, the most common sink; or a named pipe or device.
//!
//! The descriptor is either opened here or duplicated from the handler's stream: the sink writes to the file that the
//! program opened. A duplicate shares offset and flags with the original. O_APPEND stays as the program chose it, and
//! O_NONBLOCK is never set. Only if the program closes both descriptors, the path is opened again (`log_stream.rs`).
//! `sidecar.rs` handles other processes that append to the same file.
//!
//! A named pipe whose reader is gone waits for the next reader, as long as the path names the pipe.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use logspool_record::definition::Descriptor;

use super::log_stream::{LogStream, RestoreOutcome};
use super::unsynced::UnsyncedBytes;
use super::{Place, SinkOptions, Traits};
use crate::sidecar::{Identity, SharedFile};
use crate::sink::{Lines, SharedLog, Sink, SinkError, SyncError};

crate::options! {
    /// Appends lines to a file, a named pipe or a device.
    pub struct FileOptions {
        /// Path of the file. It is created where it is missing.
        pub path: String as Path,
    }
}

impl SinkOptions for FileOptions {
    const KIND: &'static str = "file";
    const TRAITS: Traits = Traits::FILE;

    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(FileSink::open(&self.path, descriptor)?))
    }

    fn place(&self) -> Place {
        Place::File(self.path.clone())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![Self { path: path.to_owned() }]
    }
}

/// The sink for one file; see the module documentation.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    stream: LogStream,
    is_pipe: bool,
    shared: SharedFile,
    unsynced: UnsyncedBytes,
}

impl FileSink {
    /// Opens `path` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// The error of open(2) or fcntl(2).
    pub fn open(path: &str, descriptor: Descriptor) -> io::Result<Self> {
        let stream = LogStream::open(path, descriptor)?;
        let is_pipe = stream.file()?.metadata()?.file_type().is_fifo();
        Ok(Self {
            path: path.into(),
            stream,
            is_pipe,
            shared: SharedFile::default(),
            unsynced: UnsyncedBytes::default(),
        })
    }

    /// Opens the file again if the program has closed its descriptor.
    fn restore(&mut self) -> io::Result<()> {
        if self.stream.restore()? == RestoreOutcome::Other {
            self.shared.note_switch();
            self.unsynced.leave_unopened();
            self.is_pipe = self.stream.file()?.metadata()?.file_type().is_fifo();
        }
        Ok(())
    }

    /// Whether a failed write can succeed later because a named pipe may get a new reader.
    fn awaits_reader(&self, error: &io::Error) -> bool {
        let identity = |metadata: io::Result<fs::Metadata>| metadata.ok().map(|metadata| Identity::of(&metadata));
        self.is_pipe
            && error.raw_os_error() == Some(libc::EPIPE)
            && identity(fs::metadata(&self.path)) == identity(self.stream.file().and_then(fs::File::metadata))
    }
}

impl Sink for FileSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        self.restore().map_err(SinkError::from_write)?;
        let file = self.stream.file_mut().map_err(SinkError::Retry)?;
        self.shared.enter(file)?;
        let part = if self.is_pipe { lines.for_pipe().len() } else { lines.bytes.len() };
        let appended = self.shared.append(file, &lines, part);
        if let Ok(count) = appended {
            self.unsynced.note(file, &lines.bytes[..count]);
        }
        match appended {
            Err(SinkError::Fatal(error)) if self.awaits_reader(&error) => Err(SinkError::Retry(error)),
            appended => appended,
        }
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        let fail = |error| SyncError { error, is_final: true };
        self.restore().map_err(fail)?;
        self.unsynced.sync(self.stream.file().map_err(fail)?, &self.path)
    }

    fn keep_unsynced(&mut self) {
        self.unsynced.keep();
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(&mut self.shared)
    }
}
