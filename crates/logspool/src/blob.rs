//! Large records: values that do not fit a lane lie in a file of their own beside the segment.
//!
//! The file is made and mapped before the record is pushed, so that the push itself only stores. It is
//! removed when every sink has passed the record's batch. All of them take a bounded number of bytes: a lane has room for
//! thousands of references.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::queue::producer::LargeRecord;
use crate::segment::Segment;

#[derive(Debug)]
struct Mapped {
    address: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Table {
    mapped: HashMap<u64, Mapped>,
    /// Bytes of those that are mapped or about to be.
    bytes: u64,
}

/// The large records of one process that are not yet written everywhere.
#[derive(Debug, Default)]
pub struct Blobs {
    table: Mutex<Table>,
}

/// Why there is no room for a large record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// Others take all that they may: there will be, once sinks have passed them.
    Now,
    /// tmpfs or memory has none, or the record is longer than [`MAX_BLOB_BYTES`].
    Ever,
}

/// Longest values of one record.
///
/// Chosen: a record beyond 64 MiB is an accident; the limit is checked before memory is taken.
pub const MAX_BLOB_BYTES: usize = 64 * 1024 * 1024;

impl Blobs {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a record of `bytes` fits while all take `limit` at most. One alone always does.
    pub fn has_room(&self, bytes: usize, limit: u64) -> bool {
        let taken = self.table().bytes;
        taken == 0 || taken + bytes as u64 <= limit
    }

    /// Makes room for `bytes` of values, while all take `limit` at most.
    ///
    /// # Errors
    ///
    /// See [`NoRoom`].
    pub fn make(&self, segment: &Segment, bytes: usize, limit: u64) -> Result<LargeRecord, NoRoom> {
        if bytes > MAX_BLOB_BYTES {
            return Err(NoRoom::Ever);
        }
        {
            let mut table = self.table();
            if table.bytes > 0 && table.bytes + bytes as u64 > limit {
                return Err(NoRoom::Now);
            }
            table.bytes += bytes as u64;
        }
        let number = segment.header().blobs.fetch_add(1, Ordering::Relaxed) + 1;
        let made = make_file(segment, number, bytes);
        let mut table = self.table();
        match made {
            Ok(place) => {
                table.mapped.insert(number, Mapped { address: place as usize, bytes });
                Ok(LargeRecord { number, place, bytes })
            }
            Err(_) => {
                table.bytes -= bytes as u64;
                Err(NoRoom::Ever)
            }
        }
    }

    /// The values of blob `number`, copied.
    pub fn read(&self, number: u64) -> Option<Vec<u8>> {
        let table = self.table();
        let mapped = table.mapped.get(&number)?;
        // SAFETY: mapped by `make`, filled before its record was published, unmapped only by `remove`.
        Some(unsafe { std::slice::from_raw_parts(mapped.address as *const u8, mapped.bytes) }.to_vec())
    }

    /// Forgets a blob and removes its file.
    pub fn remove(&self, segment: &Segment, number: u64) {
        let mapped = {
            let mut table = self.table();
            let mapped = table.mapped.remove(&number);
            table.bytes -= mapped.as_ref().map_or(0, |mapped| mapped.bytes as u64);
            mapped
        };
        if let Some(mapped) = mapped {
            // SAFETY: mapped by `make` with this length; no record refers to it any more.
            unsafe { libc::munmap(mapped.address as *mut libc::c_void, mapped.bytes) };
            remove_file(segment, number);
        }
    }
}

fn make_file(segment: &Segment, number: u64, bytes: usize) -> io::Result<*mut u8> {
    let file = match segment.home() {
        Some((folder, name)) => Some(folder.create_once(&format!("{name}.blob-{number}"))?),
        None => None,
    };
    let mapped = map(file.as_ref(), bytes);
    if mapped.is_err() {
        remove_file(segment, number);
    }
    mapped
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
