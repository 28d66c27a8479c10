//! Duplicates of descriptors that belong to the program. A forked child has them too, and a pipe has no end as long as
//! somebody can write to it: so they are listed here, and a child closes those of its parent.
//!
//! Atomics outside `queue` and `stats`: the places of the list, which a child reads whatever its parent's threads were
//! doing.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::MAX_SINKS;

/// Descriptors, each with the process that made it in the upper half; 0 is a free place.
static PLACES: [AtomicU64; MAX_SINKS] = [const { AtomicU64::new(0) }; MAX_SINKS];

/// A duplicate; the drop closes it.
#[derive(Debug)]
pub struct Duplicate {
    file: File,
    /// `None`: the list was full, and a child keeps what it has of it.
    place: Option<&'static AtomicU64>,
}

impl Duplicate {
    /// Lists a duplicate that was just made.
    pub fn new(file: File) -> Self {
        let word = u64::from(std::process::id()) << 32 | u64::from(file.as_raw_fd() as u32);
        let take = |place: &&AtomicU64| place.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        Self { place: PLACES.iter().find(take), file }
    }

    /// Its number.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for Duplicate {
    fn drop(&mut self) {
        // Before it is closed: the number may stand for another file right after. Relaxed: a child
        // without this store does not have the close either, because both calls take the kernel's lock of the table.
        if let Some(place) = self.place {
            place.store(0, Ordering::Relaxed);
        }
    }
}

/// In a forked child: closes those of its parent. Not those of that one's parent, which are closed already, unless it
/// knows nothing of its own fork: then the numbers may stand for other files by now.
pub fn close_inherited() {
    let parent = u64::from(std::os::unix::process::parent_id());
    for place in &PLACES {
        let word = place.load(Ordering::Relaxed);
        if word != 0 && word >> 32 == parent {
            place.store(0, Ordering::Relaxed);
            // SAFETY: this child's copy; the sink that it belongs to is never looked at again here.
            unsafe { libc::close(word as u32 as RawFd) };
        }
    }
}
