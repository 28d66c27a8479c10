//! A file in append mode together with the path it was opened by: what rotating and watching sinks write to.
//!
//! Invariant: the open file is let go only when its successor is open, so a failure of any step leaves a file
//! that can be written. It is known by device and inode; a path that names another file is not it.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use logspool_record::definition::Descriptor;

use super::file;
use super::unsynced::Unsynced;
use crate::sidecar::{Identity, SharedFile};
use crate::sink::{Lines, Origin, SinkError, SyncError};

/// See the file head.
#[derive(Debug)]
pub struct NamedFile {
    path: String,
    file: File,
    identity: Identity,
    is_regular: bool,
    turns: u64,
    shared: SharedFile,
    unsynced: Unsynced,
}

impl NamedFile {
    /// Opens `path` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn open(path: &str, descriptor: Descriptor) -> io::Result<Self> {
        let file = file::open_or_duplicate(path, descriptor)?;
        let metadata = file.metadata()?;
        let (identity, is_regular) = (Identity::of(&metadata), metadata.is_file());
        let shared = SharedFile::default();
        let unsynced = Unsynced::default();
        Ok(Self { path: path.to_owned(), file, identity, is_regular, turns: 0, shared, unsynced })
    }

    /// Where the file was opened.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How often another file was gone over to.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// What other processes know of the open file.
    pub fn shared(&mut self) -> &mut SharedFile {
        &mut self.shared
    }

    /// Whose records come, once that is known.
    pub fn origin(&self) -> Option<Origin> {
        self.shared.origin()
    }

    /// Waits until nobody else writes to the open file.
    ///
    /// # Errors
    ///
    /// As [`SharedFile::enter`].
    pub fn enter(&mut self) -> Result<(), SinkError> {
        self.shared.enter(&self.file)
    }

    /// Whether `lines` are the rest of what the open file took in part, while nobody else may write to it.
    pub fn continues(&self, lines: &Lines<'_>) -> bool {
        self.shared.continues(lines)
    }

    /// Writes some of the first `part` bytes once. Returns how many bytes were taken, at least one.
    ///
    /// # Errors
    ///
    /// As [`SinkError::from_write`] sorts them.
    pub fn append(&mut self, lines: &Lines<'_>, part: usize) -> Result<usize, SinkError> {
        let count = self.shared.append(&mut self.file, lines, part)?;
        self.unsynced.note(&mut self.file, &lines.bytes[..count]);
        Ok(count)
    }

    /// As [`crate::sink::Sink::sync`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn sync(&mut self) -> Result<(), SyncError> {
        self.unsynced.sync(&self.file, Path::new(&self.path))
    }

    /// As [`crate::sink::Sink::keep_unsynced`].
    pub fn keep_unsynced(&mut self) {
        self.unsynced.keep();
    }

    /// Bytes in the file, whoever wrote them.
    pub fn end(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Where this descriptor stands: behind its own last write.
    pub fn position(&mut self) -> io::Result<u64> {
        self.file.stream_position()
    }

    /// Whether the path names another file by now, or none.
    ///
    /// # Errors
    ///
    /// When the path cannot be looked at for another reason than that nothing is there.
    pub fn has_moved(&self) -> io::Result<bool> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(Identity::of(&metadata) != self.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether the open file has a name: one that was removed is there only as long as somebody has it open.
    ///
    /// # Errors
    ///
    /// What fstat(2) said.
    pub fn has_name(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() > 0)
    }

    /// Whether the open file is a regular one.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Whether the path may be rotated: a regular file is there, or nothing.
    pub fn may_rotate(&self) -> bool {
        fs::metadata(&self.path).map_or(true, |metadata| metadata.is_file())
    }

    /// Opens the path again and lets the old file go.
    ///
    /// # Errors
    ///
    /// What open(2) said; the old file is still open then.
    pub fn reopen(&mut self) -> io::Result<()> {
        let file = file::open_to_append(&self.path)?;
        let metadata = file.metadata()?;
        let identity = Identity::of(&metadata);
        // The old file is open until here, so its inode cannot have been given to the new one.
        if identity != self.identity {
            self.unsynced.leave(&self.file, Path::new(&self.path));
            self.turns += 1;
            self.shared.follow();
        }
        self.file = file;
        self.identity = identity;
        self.is_regular = metadata.is_file();
        Ok(())
    }
}

/// Removes what stands at `path`, if something does.
///
/// # Errors
///
/// What unlink(2) said: a folder stays, and is an error.
pub fn make_way(path: &str) -> io::Result<()> {
    if Path::new(path).exists() { fs::remove_file(path) } else { Ok(()) }
}

/// Renames `source`, if it is there.
///
/// # Errors
///
/// What rename(2) said.
pub fn rename_existing(source: &str, target: &str) -> io::Result<()> {
    if Path::new(source).exists() { fs::rename(source, target) } else { Ok(()) }
}
