//! A regular file that is appended to, the most common sink; or a named pipe or device.
//!
//! The descriptor is either opened here or duplicated from the handler's stream. The stream's file is never opened
//! again by its path: the sink writes to the file that the program opened. A duplicate shares offset and flags with the
//! original. O_APPEND stays as the program chose it, and O_NONBLOCK is never set. `sidecar.rs` handles other processes
//! that append to the same file.
//!
//! A named pipe whose reader is gone waits for the next reader, as long as the path names the pipe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use logspool_record::definition::Descriptor;

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
    file: File,
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
        let file = open_or_duplicate(path, descriptor)?;
        let is_pipe = file.metadata()?.file_type().is_fifo();
        Ok(Self { path: path.into(), file, is_pipe, shared: SharedFile::default(), unsynced: UnsyncedBytes::default() })
    }

    /// Whether a failed write can succeed later because a named pipe may get a new reader.
    fn awaits_reader(&self, error: &io::Error) -> bool {
        let identity = |metadata: io::Result<fs::Metadata>| metadata.ok().map(|metadata| Identity::of(&metadata));
        self.is_pipe
            && error.raw_os_error() == Some(libc::EPIPE)
            && identity(fs::metadata(&self.path)) == identity(self.file.metadata())
    }
}

/// Opens the file of a definition in append mode, or duplicates the program's descriptor.
pub(super) fn open_or_duplicate(path: &str, descriptor: Descriptor) -> io::Result<File> {
    match descriptor {
        Descriptor::Open => open_to_append(path),
        Descriptor::Duplicate(number) => duplicate(number),
    }
}

/// Opens as `open(path, "a")` does in Python. A missing file is created, with mode 0666 minus the umask. The position
/// is the end of the file.
pub(super) fn open_to_append(path: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    match file.seek(SeekFrom::End(0)) {
        Err(error) if error.raw_os_error() != Some(libc::ESPIPE) => Err(error),
        _ => Ok(file),
    }
}

/// Duplicates a descriptor, with close-on-exec and a number above the three standard ones.
pub(super) fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: fcntl checks the descriptor itself.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fcntl has just created the descriptor, so it has no other owner.
    Ok(unsafe { File::from_raw_fd(copy) })
}

impl Sink for FileSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        self.shared.enter(&self.file)?;
        let part = if self.is_pipe { lines.for_pipe().len() } else { lines.bytes.len() };
        let count = match self.shared.append(&mut self.file, &lines, part) {
            Err(SinkError::Fatal(error)) if self.awaits_reader(&error) => return Err(SinkError::Retry(error)),
            appended => appended?,
        };
        self.unsynced.note(&mut self.file, &lines.bytes[..count]);
        Ok(count)
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        self.unsynced.sync(&self.file, &self.path)
    }

    fn keep_unsynced(&mut self) {
        self.unsynced.keep();
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(&mut self.shared)
    }
}
