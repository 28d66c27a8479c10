//! The parts of a segment that have memory.
//!
//! A segment is a sparse file: unused parts take no memory. Every byte must have memory before it is loaded or stored
//! through the mapping. Otherwise the access itself would have to find a page, and on a full tmpfs it would end the
//! process with SIGBUS. So each table of the fixed part gets its next page before its next entry is taken, and each
//! lane its ring before a record is written to it. Without room the entry or the lane is refused.
//!
//! Memory is taken and freed through the mapping. So a segment needs no descriptor, which the program might close or
//! reuse. Kernels before Linux 5.14 cannot take memory this way; there the file is opened by its name for each call.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
#[cfg(test)]
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use logspool_sys::published::{Counted, Published};

use super::layout;

/// Bytes that one bit of `Pages` covers. On kernels with larger pages several bits belong to one page.
pub const PAGE: u64 = 4096;

/// Number of bytes of memory that the area for definitions gets at once: enough for about 100 call sites.
///
/// Chosen: halving it would double the number of system calls. Doubling it would add an eighth to the memory of a small
/// program.
pub const DEFINITION_STEP: u64 = 16 * 1024;

const WORDS: usize = (layout::RINGS / PAGE).div_ceil(64) as usize;

/// Ranges that have memory in a new segment, in addition to its first rings. They hold the first entries of each table.
/// Each range is an offset and a number of bytes.
const FIRST_PAGES: [(u64, u64); 9] = [
    (0, PAGE),
    (layout::POINTS_OFFSET, PAGE),
    (layout::LANES_OFFSET, PAGE),
    (layout::SINKS_OFFSET, PAGE),
    (layout::Table::Sites.index_offset(), PAGE),
    (layout::Table::Routes.index_offset(), PAGE),
    // This page also contains the index of the sinks.
    (layout::Table::Formats.index_offset(), PAGE),
    // The longest manifest fits, so that a batch can be published even if no more memory is available.
    (layout::MANIFESTS, layout::FIRST_MANIFEST_BYTES),
    (layout::DEFINITIONS, 2 * PAGE),
];

/// The pages of the fixed part that have memory, one bit for each.
#[derive(Debug, Default)]
pub struct Pages {
    words: [AtomicU64; WORDS],
    /// Held while pages get memory.
    changing: Mutex<()>,
    /// Refuses further memory, as if tmpfs were full.
    #[cfg(test)]
    pub full: std::sync::atomic::AtomicBool,
}

impl Pages {
    /// Gives a new segment its first memory.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn begin(&self, mapping: &MappedPart<'_>) -> io::Result<()> {
        FIRST_PAGES.iter().try_for_each(|(offset, bytes)| self.take(mapping, *offset, *bytes))
    }

    /// Whether all pages of a range of the fixed part have memory.
    #[inline]
    pub fn has(&self, offset: u64, bytes: u64) -> bool {
        // Pairs with `add_bits` in `take`: a thread that sees the bit may use the page.
        pages(offset, bytes).all(|page| self.words[page / 64].observe() & 1 << (page % 64) != 0)
    }

    /// Gives memory to the pages of a range of the fixed part that have none.
    ///
    /// # Errors
    ///
    /// The error of the system call, usually that tmpfs is full.
    pub fn take(&self, mapping: &MappedPart<'_>, offset: u64, bytes: u64) -> io::Result<()> {
        if self.has(offset, bytes) {
            return Ok(());
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Allocates page by page, and no page twice. On an old kernel a call that fails frees every page of its range
        // that was not written yet, even a page of an earlier call.
        for page in pages(offset, bytes) {
            let place = page as u64 * PAGE;
            if !self.has(place, PAGE) {
                self.allocate(mapping, place, PAGE)?;
                self.words[page / 64].add_bits(1 << (page % 64));
            }
        }
        Ok(())
    }

    /// Gives a ring memory. If there is not enough, the ring has none.
    ///
    /// # Errors
    ///
    /// As [`Pages::take`].
    pub fn take_ring(&self, mapping: &MappedPart<'_>, offset: u64, bytes: u64) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.allocate(mapping, offset, bytes).inspect_err(|_| mapping.free(offset, bytes))
    }

    fn allocate(&self, mapping: &MappedPart<'_>, offset: u64, bytes: u64) -> io::Result<()> {
        #[cfg(test)]
        if self.full.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        mapping.populate(offset, bytes)
    }
}

/// Makes the pages of a range present and writable (since Linux 5.14).
pub const MADV_POPULATE_WRITE: i32 = 23;

/// The mapping of a segment's file.
pub struct MappedPart<'a> {
    base: NonNull<u8>,
    /// Opens the file, see the module documentation.
    open: &'a dyn Fn() -> io::Result<File>,
}

impl<'a> MappedPart<'a> {
    /// The mapping that begins at `base`. It must be longer than each offset that is passed to the methods, and stay
    /// mapped as long as this value.
    pub fn new(base: NonNull<u8>, open: &'a dyn Fn() -> io::Result<File>) -> Self {
        Self { base, open }
    }

    /// Gives the pages of a range memory.
    fn populate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        // A page of the kernel may be larger.
        // SAFETY: no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        let (from, to) = (offset / page * page, (offset + bytes).next_multiple_of(page));
        loop {
            // SAFETY: the range is inside the mapping. The call changes no byte.
            let done = unsafe {
                libc::madvise(self.base.as_ptr().add(from as usize).cast(), (to - from) as usize, MADV_POPULATE_WRITE)
            };
            if done == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => {}
                // The kernel's answer for a range whose pages would raise SIGBUS: the file system is full.
                Some(libc::EFAULT) => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                Some(libc::EINVAL) => return allocate_in_file(&(self.open)()?, offset, bytes),
                _ => return Err(error),
            }
        }
    }

    /// Frees the memory of a range, which then reads as zeros. Systems without this call keep the memory.
    pub fn free(&self, offset: u64, bytes: u64) {
        // SAFETY: the range is inside the mapping, and the caller no longer uses its bytes.
        unsafe {
            libc::madvise(self.base.as_ptr().add(offset as usize).cast(), bytes as usize, libc::MADV_REMOVE);
        }
    }
}

fn allocate_in_file(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    loop {
        // SAFETY: a plain system call on a descriptor that was just opened.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, bytes as i64) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Frees the memory of a range of a file; the range then reads as zeros. Systems without this call keep the memory.
pub fn punch(file: &File, offset: u64, bytes: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a plain system call on a descriptor that is open.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) };
}

fn pages(offset: u64, bytes: u64) -> std::ops::Range<usize> {
    (offset / PAGE) as usize..(offset + bytes).div_ceil(PAGE) as usize
}
