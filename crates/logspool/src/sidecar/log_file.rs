//! Queries of an open log file, and a function that writes to it once.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::time::UNIX_EPOCH;

use crate::sink::SinkError;

/// Birth time of a file, in nanoseconds since the epoch; 0 if the file system does not record it.
pub(super) fn birth_ns(metadata: &std::fs::Metadata) -> u64 {
    let since = metadata.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Whether a descriptor has `O_APPEND`.
pub(super) fn is_appending(file: &File) -> bool {
    // SAFETY: only reads the flags of an open descriptor.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) & libc::O_APPEND != 0 }
}

/// Size of a file in bytes. Uses fstat(2), which is cheaper than `File::metadata`: every append needs the size.
pub(super) fn size_of(file: &File) -> io::Result<u64> {
    // SAFETY: an all-zero stat is a valid value of that plain struct.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and `status` is a valid buffer.
    if unsafe { libc::fstat(file.as_raw_fd(), &mut status) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(status.st_size as u64)
}

/// Writes `bytes` with one system call. Returns the number of bytes accepted, at least one.
///
/// # Errors
///
/// Errors are classified by [`SinkError::from_write`].
pub(super) fn write_once(file: &mut File, bytes: &[u8]) -> Result<usize, SinkError> {
    match file.write(bytes) {
        Ok(0) => Err(SinkError::Retry(io::Error::from(io::ErrorKind::WriteZero))),
        Ok(count) => Ok(count),
        Err(error) => Err(SinkError::from_write(error)),
    }
}

/// Moves the position of a descriptor without `O_APPEND` to the end of the file, after bytes that other processes
/// appended.
pub(super) fn seek_after(mut file: &File) -> io::Result<()> {
    if !is_appending(file) {
        file.seek(SeekFrom::End(0))?;
    }
    Ok(())
}
