//! The interface to the disk: one folder, its files, and the calls whose order makes the spool's promises true.
//!
//! [`RealDisk`](super::RealDisk) calls Linux; the tests have a simulated disk that crashes at every call. Every error
//! names the file and the operation.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The operation that the disk refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reading the names of a folder.
    List,
    /// Making a file.
    Create,
    /// Opening a file or folder.
    Open,
    /// Reading the length of a file.
    Measure,
    /// pread(2).
    Read,
    /// pwrite(2).
    Write,
    /// fdatasync(2) of a file.
    Sync,
    /// rename(2).
    Rename,
    /// unlink(2).
    Remove,
    /// fsync(2) of a folder.
    SyncFolder,
}

impl Operation {
    fn verb(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::Open => "open",
            Self::Measure => "measure",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::SyncFolder => "sync folder",
        }
    }
}

/// A disk call that failed.
#[derive(Debug)]
pub struct DiskError {
    /// The failed operation.
    pub operation: Operation,
    /// The file or folder on which the operation failed.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl DiskError {
    /// Whether the disk, the quota or the limit on file size is exhausted.
    pub fn is_full(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {} {}: {}", self.operation.verb(), self.path.display(), self.source)
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// One folder of files. A name is a single path component; [`Disk::child`] opens the only subfolders.
///
/// A crash may undo writes to a file since its last `sync_data`, each by itself and in any order. It may also undo
/// creations, renames and removals since the last `sync_folder`, the later ones first.
pub trait Disk: Sized + fmt::Debug {
    /// An open file.
    type File: fmt::Debug;

    /// Names of the files in the folder, in any order.
    ///
    /// # Errors
    ///
    /// The operating system's error. All methods below return it, too.
    fn names(&self) -> Result<Vec<String>, DiskError>;

    /// Makes a file; fails if it exists.
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Opens a file for reading and writing; never follows a link.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Bytes of a file.
    fn bytes(&self, file: &Self::File) -> Result<u64, DiskError>;

    /// Reads from `offset` until the buffer is full or the file ends; returns the number of bytes read.
    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError>;

    /// Writes all bytes at `offset`. After an error any part of the bytes may be written.
    fn write_at(&self, file: &Self::File, bytes: &[u8], offset: u64) -> Result<(), DiskError>;

    /// Makes all writes to the file durable. After an error, writes that were not durable before may be gone. A second
    /// call on the same file may then succeed, although these writes are gone.
    fn sync_data(&self, file: &Self::File) -> Result<(), DiskError>;

    /// Renames a file, replacing a file that has the name `to`.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file; a missing file is no error.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// Makes the names in the folder durable.
    fn sync_folder(&self) -> Result<(), DiskError>;

    /// Opens the subfolder `name`; makes it if it is missing.
    fn child(&self, name: &str) -> Result<Self, DiskError>;

    /// 128 random bits.
    fn random_id(&self) -> [u8; 16];
}

/// Number of times that a read is tried.
///
/// Chosen: a loose cable answers by the fifth time, a bad sector never does.
const READ_TRIES: usize = 5;

/// Calls [`Disk::read_at`] again after an error, [`READ_TRIES`] times in all.
pub(super) fn read_patiently<D: Disk>(
    disk: &D,
    file: &D::File,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, DiskError> {
    let mut read = disk.read_at(file, buffer, offset);
    for _ in 1..READ_TRIES {
        if read.is_ok() {
            break;
        }
        read = disk.read_at(file, buffer, offset);
    }
    read
}
