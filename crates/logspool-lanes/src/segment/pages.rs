//! Which parts of a segment have memory.
//!
//! A segment is a sparse file: what nobody needs yet takes no memory. Every byte that is loaded or stored through the
//! mapping must have memory before. Else the access itself would have to find a page, and where tmpfs is full it
//! would end the process with SIGBUS. So each table of the fixed part gets its next page before its next entry is
//! taken, and each lane its ring before a record goes there. Without room the entry or the lane is refused.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::layout;

/// Bytes of one bit of `Pages`. On kernels with larger pages several bits stand for one page.
pub const PAGE: u64 = 4096;

/// Step in which definitions get memory: some 100 call sites.
///
/// Chosen: half asks the kernel twice as often, double is an eighth of what a small program takes in all.
pub const DEFINITION_STEP: u64 = 16 * 1024;

const WORDS: usize = (layout::RINGS / PAGE).div_ceil(64) as usize;

/// What a new segment has memory for besides its first rings: the first entries of each table, as offset and bytes.
const FIRST: [(u64, u64); 9] = [
    (0, PAGE),
    (layout::POINTS, PAGE),
    (layout::LANES, PAGE),
    (layout::SINKS, PAGE),
    (layout::Table::Sites.index_offset(), PAGE),
    (layout::Table::Routes.index_offset(), PAGE),
    // With that of the sinks.
    (layout::Table::Formats.index_offset(), PAGE),
    // The longest manifest fits, so that a batch can be published where no more memory is to be had.
    (layout::MANIFESTS, layout::FIRST_MANIFEST_BYTES),
    (layout::DEFINITIONS, 2 * PAGE),
];

/// The pages of the fixed part that have memory, a bit for each.
#[derive(Debug, Default)]
pub struct Pages {
    words: [AtomicU64; WORDS],
    /// Held while memory is taken.
    changing: Mutex<()>,
    /// Takes no memory any more, as if tmpfs were full.
    #[cfg(test)]
    pub full: std::sync::atomic::AtomicBool,
}

impl Pages {
    /// Gives a new segment its first memory.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn begin(&self, file: &File) -> io::Result<()> {
        FIRST.iter().try_for_each(|(offset, bytes)| self.take(file, *offset, *bytes))
    }

    /// Whether all pages of a range of the fixed part have memory.
    #[inline]
    pub fn has(&self, offset: u64, bytes: u64) -> bool {
        // Acquire pairs with the Release in `take`: whoever sees the bit may use the page.
        pages(offset, bytes).all(|page| self.words[page / 64].load(Ordering::Acquire) & 1 << (page % 64) != 0)
    }

    /// Gives a range of the fixed part memory, as far as it has none.
    ///
    /// # Errors
    ///
    /// What the system said: mostly that tmpfs is full.
    pub fn take(&self, file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        if self.has(offset, bytes) {
            return Ok(());
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Page by page, and none twice: a call that fails frees every page of its range that was not written yet,
        // also one that an earlier call had taken.
        for page in pages(offset, bytes) {
            let place = page as u64 * PAGE;
            if !self.has(place, PAGE) {
                self.allocate(file, place, PAGE)?;
                self.words[page / 64].fetch_or(1 << (page % 64), Ordering::Release);
            }
        }
        Ok(())
    }

    /// Gives a ring memory.
    ///
    /// # Errors
    ///
    /// As [`Pages::take`].
    pub fn take_ring(&self, file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.allocate(file, offset, bytes)
    }

    fn allocate(&self, file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        #[cfg(test)]
        if self.full.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        loop {
            // SAFETY: a plain system call on a descriptor that is open.
            if unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as i64, bytes as i64) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

/// Gives the memory of a range of a file back; the range then reads as zeros. Where the system cannot, it stays.
pub fn punch(file: &File, offset: u64, bytes: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: a plain system call on a descriptor that is open.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) };
}

fn pages(offset: u64, bytes: u64) -> std::ops::Range<usize> {
    (offset / PAGE) as usize..(offset + bytes).div_ceil(PAGE) as usize
}
