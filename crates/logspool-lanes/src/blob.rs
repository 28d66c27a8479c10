//! Large records: values that do not fit a lane are stored in a separate file next to the segment file.
//!
//! The file is made and mapped before the record is pushed, so that the push itself only stores. It is removed when
//! every sink has passed the record's batch. All files together take a bounded number of bytes, because a lane has room
//! for thousands of references. If tmpfs has no room for a record even while no other large record is queued, its
//! values are in plain memory instead. Such a record is written, but does not survive the process.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::kernel;
use logspool_sys::opening::again_while_gone;
use logspool_sys::published::{Counted, Published};

use crate::queue::producer::LargeRecord;
use crate::segment::Segment;

#[derive(Debug)]
struct BlobMapping {
    address: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct BlobTable {
    mapped: HashMap<u64, BlobMapping>,
    /// Bytes of all blobs that are mapped or about to be mapped.
    bytes: u64,
}

/// The large records of one process that at least one sink has not written yet.
#[derive(Debug, Default)]
pub struct Blobs {
    table: Mutex<BlobTable>,
    /// Number of removed blobs; while it grows, sinks make progress with large records.
    removed: AtomicU64,
    /// Monotonic time in nanoseconds until which the collector may work on the last large record that it read.
    formatted_until: AtomicU64,
    /// Whether a record was ever put into plain memory.
    warned: AtomicBool,
    /// Warning for the user that nobody has taken yet, see [`Blobs::take_warning`].
    warning: Mutex<Option<String>>,
}

/// Why there is no room for a large record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobRefusal {
    /// Other large records use the whole limit, or all free space on tmpfs. Try again: sinks free the space when they
    /// have written those records.
    Retry,
    /// There is no memory left, or the record is longer than [`MAX_BLOB_BYTES`].
    TooLarge,
}

/// Maximum number of bytes of the values of one record.
///
/// Chosen: a record larger than 64 MiB is an accident. The limit is checked before memory is allocated.
pub const MAX_BLOB_BYTES: usize = 64 * 1024 * 1024;

/// Time that a thread may work on a large record: these nanoseconds, plus [`LARGE_NS_PER_BYTE`] for each byte.
///
/// Chosen: a slow disk takes 16 MiB a second, and the page cache takes a hundred times as much. In addition, a busy
/// machine may keep a thread from the processor for tens of milliseconds.
const LARGE_NS: u64 = 100_000_000;
/// Nanoseconds for each byte of a large record, see [`LARGE_NS`].
const LARGE_NS_PER_BYTE: u64 = 60;

/// Monotonic time in nanoseconds until which the caller may work on a large record of `bytes`.
pub fn large_until(bytes: usize) -> u64 {
    monotonic_ns() + LARGE_NS + bytes as u64 * LARGE_NS_PER_BYTE
}

impl Blobs {
    fn table(&self) -> MutexGuard<'_, BlobTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a record of `bytes` fits when all large records together may take `limit` bytes. A single one always
    /// fits.
    pub fn has_room(&self, segment: &Segment, bytes: usize, limit: u64) -> bool {
        let taken = self.table().bytes;
        let is_free = |free: u64| free >= bytes as u64;
        taken == 0 || taken + bytes as u64 <= limit && free_bytes(segment).is_none_or(is_free)
    }

    /// Whether the collector is formatting a large record and is still within the time allowed for it.
    pub fn is_formatted(&self, now: u64) -> bool {
        now < self.formatted_until.load(Ordering::Relaxed)
    }

    /// Number of blobs removed by now.
    pub fn removed(&self) -> u64 {
        self.removed.observe()
    }

    /// Makes room for `bytes` of values, when all large records together may take `limit` bytes.
    ///
    /// # Errors
    ///
    /// See [`BlobRefusal`].
    pub fn make(&self, segment: &Segment, bytes: usize, limit: u64) -> Result<LargeRecord, BlobRefusal> {
        if bytes > MAX_BLOB_BYTES {
            return Err(BlobRefusal::TooLarge);
        }
        {
            let mut table = self.table();
            if table.bytes > 0 && table.bytes + bytes as u64 > limit {
                return Err(BlobRefusal::Retry);
            }
            table.bytes += bytes as u64;
        }
        let number = segment.header().blobs.fetch_add(1, Ordering::Relaxed) + 1;
        let made = make_file(segment, number, bytes).or_else(|error| {
            let others = self.table().bytes > bytes as u64;
            if others && is_full(&error) && free_bytes(segment).is_some_and(|free| free < bytes as u64) {
                // There is room on tmpfs after the other blobs are removed.
                return Err(BlobRefusal::Retry);
            }
            self.in_plain_memory(segment, bytes, &error)
        });
        let mut table = self.table();
        match made {
            Ok(place) => {
                table.mapped.insert(number, BlobMapping { address: place as usize, bytes });
                Ok(LargeRecord { number, place, bytes })
            }
            Err(no_room) => {
                table.bytes -= bytes as u64;
                Err(no_room)
            }
        }
    }

    /// The warning for the user after [`Blobs::make`] put a record into plain memory: only the first time.
    pub fn take_warning(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Makes room in plain memory for a record for which tmpfs has no room. The first time, stores a warning about the
    /// consequence for [`Blobs::take_warning`].
    fn in_plain_memory(&self, segment: &Segment, bytes: usize, error: &io::Error) -> Result<*mut u8, BlobRefusal> {
        let place = map(None, bytes).map_err(|_| BlobRefusal::TooLarge)?;
        if let Some((folder, _)) = segment.home()
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            let warning = format!(
                "logspool: cannot keep a record of {bytes} bytes in {}: {error}; it is in plain memory until it is \
                 written, and lost when the process is killed before (fix: {})\n",
                folder.path().display(),
                // A process that has given up its user's rights cannot make files in its folder any more.
                if error.kind() == io::ErrorKind::PermissionDenied {
                    "change the user before the first record"
                } else {
                    "a larger tmpfs"
                }
            );
            *self.warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(warning);
        }
        Ok(place)
    }

    /// A copy of the values of blob `number`.
    pub fn read(&self, number: u64) -> Option<Vec<u8>> {
        let table = self.table();
        let mapped = table.mapped.get(&number)?;
        self.formatted_until.store(large_until(mapped.bytes), Ordering::Relaxed);
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
            // Last step; pairs with `observe` in `removed`. A thread that sees the new count also finds the freed room.
            self.removed.advance();
        }
    }
}

/// Free bytes of the file system that holds the large records; `None` if they are in memory, or the number is unknown.
fn free_bytes(segment: &Segment) -> Option<u64> {
    segment.home().and_then(|(folder, _)| folder.free_bytes().ok())
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn make_file(segment: &Segment, number: u64, bytes: usize) -> io::Result<*mut u8> {
    let Some((folder, name)) = segment.home() else { return map(None, bytes) };
    again_while_gone(|| {
        let file = KeptDescriptor::new(folder.create_once(&format!("{name}.blob-{number}"))?);
        let mapped = file.get().and_then(|file| map(Some(file), bytes));
        if mapped.is_err() {
            remove_file(segment, number);
        }
        mapped
    })
}

fn remove_file(segment: &Segment, number: u64) {
    if let Some((folder, name)) = segment.home() {
        // A file that cannot be removed now is removed with the segment.
        let _ = folder.remove(&format!("{name}.blob-{number}"));
    }
}

fn map(file: Option<&File>, bytes: usize) -> io::Result<*mut u8> {
    let (flags, descriptor) = match file {
        Some(file) => {
            if bytes as u64 > kernel::max_file_bytes() {
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
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
