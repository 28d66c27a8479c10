//! A file in append mode and the path it was opened by: the output of rotating and watching sinks.
//!
//! Invariant: the open file is closed only after its successor is open, so that a failure of any step leaves a writable
//! file. It is identified by device and inode; if the path names another file, the open file has moved.

use std::fs;
use std::io::{self, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use logspool_record::definition::Descriptor;

use super::log_stream::{LogStream, RestoreOutcome, open_to_append};
use super::unsynced::UnsyncedBytes;
use crate::sidecar::{Identity, SharedFile};
use crate::sink::{Lines, Origin, SinkError, SyncError};

/// An open file and its path.
#[derive(Debug)]
pub struct NamedFile {
    path: String,
    stream: LogStream,
    identity: Identity,
    is_regular: bool,
    rotation_count: u64,
    shared: SharedFile,
    unsynced: UnsyncedBytes,
}

impl NamedFile {
    /// Opens `path` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn open(path: &str, descriptor: Descriptor) -> io::Result<Self> {
        let stream = LogStream::open(path, descriptor)?;
        let metadata = stream.file()?.metadata()?;
        let (identity, is_regular) = (Identity::of(&metadata), metadata.is_file());
        let shared = SharedFile::default();
        let unsynced = UnsyncedBytes::default();
        Ok(Self { path: path.to_owned(), stream, identity, is_regular, rotation_count: 0, shared, unsynced })
    }

    /// The path that the file was opened by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of times that the sink has switched to another file.
    pub fn rotation_count(&self) -> u64 {
        self.rotation_count
    }

    /// The state of the open file that is shared with other processes.
    pub fn shared(&mut self) -> &mut SharedFile {
        &mut self.shared
    }

    /// The source of the records; `None` until it is known.
    pub fn origin(&self) -> Option<Origin> {
        self.shared.origin()
    }

    /// Waits until no other process writes to the open file, and takes its lock.
    ///
    /// # Errors
    ///
    /// See [`SharedFile::enter`].
    pub fn enter(&mut self) -> Result<(), SinkError> {
        self.restore().map_err(SinkError::from_write)?;
        self.shared.enter(self.stream.file().map_err(SinkError::Retry)?)
    }

    /// Opens the file again if the program has closed its descriptor.
    ///
    /// # Errors
    ///
    /// EBADF if it cannot be opened again; the error of open(2) if that may succeed later.
    pub fn restore(&mut self) -> io::Result<()> {
        if self.stream.restore()? == RestoreOutcome::Other {
            let metadata = self.stream.file()?.metadata()?;
            (self.identity, self.is_regular) = (Identity::of(&metadata), metadata.is_file());
            self.shared.note_switch();
            self.unsynced.leave_unopened();
        }
        Ok(())
    }

    /// Whether `lines` are the rest of a partly written piece. Until the rest is written, no other process may write to
    /// the open file.
    pub fn continues(&self, lines: &Lines<'_>) -> bool {
        self.shared.continues(lines)
    }

    /// Writes some of the first `part` bytes with one call. Returns how many bytes were accepted, at least one.
    ///
    /// # Errors
    ///
    /// The error, classified by [`SinkError::from_write`].
    pub fn append(&mut self, lines: &Lines<'_>, part: usize) -> Result<usize, SinkError> {
        self.restore().map_err(SinkError::from_write)?;
        let file = self.stream.file_mut().map_err(SinkError::Retry)?;
        let count = self.shared.append(file, lines, part)?;
        self.unsynced.note(file, &lines.bytes[..count]);
        Ok(count)
    }

    /// Like [`crate::sink::Sink::sync`].
    ///
    /// # Errors
    ///
    /// See [`crate::sink::Sink::sync`].
    pub fn sync(&mut self) -> Result<(), SyncError> {
        let fail = |error| SyncError { error, is_final: true };
        self.restore().map_err(fail)?;
        self.unsynced.sync(self.stream.file().map_err(fail)?, Path::new(&self.path))
    }

    /// Like [`crate::sink::Sink::keep_unsynced`].
    pub fn keep_unsynced(&mut self) {
        self.unsynced.keep();
    }

    /// Length of the file, including bytes that other processes wrote.
    pub fn end(&self) -> io::Result<u64> {
        Ok(self.stream.file()?.metadata()?.len())
    }

    /// Position of this descriptor, which is the end of its own last write.
    pub fn position(&mut self) -> io::Result<u64> {
        self.stream.file_mut()?.stream_position()
    }

    /// Whether the path now names another file, or no file.
    ///
    /// # Errors
    ///
    /// The error of stat(2), unless no file exists at the path.
    pub fn has_moved(&self) -> io::Result<bool> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(Identity::of(&metadata) != self.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether the open file still has a name. A removed file exists only as long as a process has it open.
    ///
    /// # Errors
    ///
    /// The error of fstat(2).
    pub fn has_name(&self) -> io::Result<bool> {
        Ok(self.stream.file()?.metadata()?.nlink() > 0)
    }

    /// Whether the open file is a regular one.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Whether the path may be rotated: it names a regular file or nothing.
    pub fn may_rotate(&self) -> bool {
        fs::metadata(&self.path).map_or(true, |metadata| metadata.is_file())
    }

    /// Opens the path again and closes the old file.
    ///
    /// # Errors
    ///
    /// The error of open(2); the old file then stays open.
    pub fn reopen(&mut self) -> io::Result<()> {
        let file = open_to_append(&self.path)?;
        let metadata = file.metadata()?;
        let identity = Identity::of(&metadata);
        // The old file is still open, so the new file cannot get its inode.
        if identity != self.identity {
            match self.stream.file() {
                Ok(old) => self.unsynced.leave(old, Path::new(&self.path)),
                Err(_) => self.unsynced.leave_unopened(),
            }
            self.rotation_count += 1;
            self.shared.note_switch();
        }
        self.stream.replace(file);
        self.identity = identity;
        self.is_regular = metadata.is_file();
        Ok(())
    }
}

/// Removes the file at `path`, if there is one.
///
/// # Errors
///
/// The error of unlink(2). A folder is not removed and is an error.
pub fn remove_existing(path: &str) -> io::Result<()> {
    if Path::new(path).exists() { fs::remove_file(path) } else { Ok(()) }
}

/// Renames `source`, if it exists.
///
/// # Errors
///
/// The error of rename(2).
pub fn rename_existing(source: &str, target: &str) -> io::Result<()> {
    if Path::new(source).exists() { fs::rename(source, target) } else { Ok(()) }
}
