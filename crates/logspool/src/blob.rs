//! Large records: values that do not fit a lane lie in a file of their own beside the segment.
//!
//! The file is made and mapped before the record is pushed, so that the push itself only stores. It is
//! removed when every sink has passed the record's batch.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::queue::producer::LargeRecord;
use crate::segment::Segment;

#[derive(Debug)]
struct Mapped {
    address: usize,
    bytes: usize,
}

/// The large records of one process that are not yet written everywhere.
#[derive(Debug, Default)]
pub struct Blobs {
    mapped: Mutex<HashMap<u64, Mapped>>,
}

/// Longest values of one record.
///
/// Chosen: a record beyond 64 MiB is an accident; the limit is checked before memory is taken.
pub const MAX_BLOB_BYTES: usize = 64 * 1024 * 1024;

impl Blobs {
    /// Makes room for `bytes` of values.
    ///
    /// # Errors
    ///
    /// When tmpfs or memory has no room, or the record is longer than [`MAX_BLOB_BYTES`].
    pub fn make(&self, segment: &Segment, bytes: usize) -> io::Result<LargeRecord> {
        if bytes > MAX_BLOB_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let number = segment.header().blobs.fetch_add(1, Ordering::Relaxed) + 1;
        let file = match segment.home() {
            Some((folder, name)) => Some(folder.create(&format!("{name}.blob-{number}"))?),
            None => None,
        };
        let mapped = map(file.as_ref(), bytes);
        if mapped.is_err() {
            remove_file(segment, number);
        }
        let address = mapped?;
        let mapped = Mapped { address: address as usize, bytes };
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner).insert(number, mapped);
        Ok(LargeRecord { number, place: address, bytes })
    }

    /// The values of blob `number`, copied.
    pub fn read(&self, number: u64) -> Option<Vec<u8>> {
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let mapped = mapped.get(&number)?;
        // SAFETY: mapped by `make`, filled before its record was published, unmapped only by `remove`.
        Some(unsafe { std::slice::from_raw_parts(mapped.address as *const u8, mapped.bytes) }.to_vec())
    }

    /// Forgets a blob and removes its file.
    pub fn remove(&self, segment: &Segment, number: u64) {
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(mapped) = mapped {
            // SAFETY: mapped by `make` with this length; no record refers to it any more.
            unsafe { libc::munmap(mapped.address as *mut libc::c_void, mapped.bytes) };
            remove_file(segment, number);
        }
    }
}

fn remove_file(segment: &Segment, number: u64) {
    if let Some((folder, name)) = segment.home() {
        // A file that stays is removed with the segment.
        let _ = folder.remove(&format!("{name}.blob-{number}"));
    }
}

fn map(file: Option<&File>, bytes: usize) -> io::Result<*mut u8> {
    let (flags, descriptor) = match file {
        Some(file) => {
            // SAFETY: a plain system call on an open descriptor.
            if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as i64) } != 0 {
                return Err(io::Error::last_os_error());
            }
            (libc::MAP_SHARED, file.as_raw_fd())
        }
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice; `bytes` is not zero for a large record.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor, 0) };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
}
