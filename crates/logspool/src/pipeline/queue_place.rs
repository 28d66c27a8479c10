//! Chooses the place of the process's queue: its folder, else memory that a keeper process also holds, else plain
//! memory.
//!
//! A folder on tmpfs is best: the next start finds the records of a killed process, and processes that log to one file
//! find each other there. Without such a folder, a keeper delivers the records that a killed process leaves. Without a
//! keeper, a kill loses the queued records. A folder on disk is used only if the user names one, since a store into a
//! mapped page may wait for the disk.

use std::io::{self, ErrorKind};
use std::path::Path;

use logspool_lanes::segment::Segment;
use logspool_sys::folder::Folder;
use logspool_sys::kernel;
use logspool_sys::memory_files::MemoryFiles;

use super::options::{Durability, Options};
use super::relief;
use super::state::ChosenPlace;
use crate::copies;
use crate::keeper;
use crate::stats::QueuePlace;

/// Minimum number of free bytes that a folder must have to be used.
///
/// Chosen: the initial size of a process's queue, one grown lane, and a little overflow. With half as many bytes, the
/// queue would soon refuse records that a queue in memory would accept.
pub const MIN_FREE_BYTES: u64 = 1024 * 1024;

/// Makes the segment of this process. Returns `None` if another copy of this library has a segment in this process, or
/// if there is not even plain memory.
pub(super) fn begin(options: &Options, path: &Path) -> Option<(Segment, ChosenPlace)> {
    let ring_limit = options.queue_total_bytes.map(|bytes| bytes as u64);
    let in_memory = |reason| {
        let segment = Segment::in_memory(ring_limit).ok()?;
        Some((segment, ChosenPlace { place: QueuePlace::Memory, reason }))
    };
    if options.durability == Durability::Memory {
        return in_memory(String::new());
    }
    relief::relieve(path);
    let in_folder = match in_folder(path, options.queue_dir.is_some(), ring_limit) {
        Ok((segment, place)) => return Some((segment, ChosenPlace { place, reason: String::new() })),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            copies::refuse_for(path);
            copies::report_once();
            return None;
        }
        Err(error) => format!("{}: {error}", path.display()),
    };
    match in_held_memory(ring_limit) {
        Ok(segment) => Some((segment, ChosenPlace { place: QueuePlace::Memfd, reason: in_folder })),
        Err(error) => {
            let reason = format!("{in_folder}; no keeper for a queue in memory: {error}");
            warn_of_memory(&reason);
            in_memory(reason)
        }
    }
}

fn in_folder(path: &Path, is_named: bool, ring_limit: Option<u64>) -> io::Result<(Segment, QueuePlace)> {
    let folder = Folder::open(path)?;
    let refuse = |kind, text: String| {
        folder.remove_if_empty();
        Err(io::Error::new(kind, text))
    };
    let is_memory = folder.is_memory()?;
    if !is_memory && !is_named {
        return refuse(ErrorKind::Unsupported, "it is not on a tmpfs, and a hung disk would hang callers".to_owned());
    }
    let free = folder.free_bytes()?;
    if free < MIN_FREE_BYTES {
        let text = format!("{} KiB are free there, {} are needed", free / 1024, MIN_FREE_BYTES / 1024);
        return refuse(ErrorKind::StorageFull, text);
    }
    let place = if is_memory { QueuePlace::Tmpfs } else { QueuePlace::Disk };
    Ok((Segment::create_in(folder, ring_limit)?, place))
}

/// Makes the segment in memory files (memfd), shared with a keeper process.
fn in_held_memory(ring_limit: Option<u64>) -> io::Result<Segment> {
    // Check this first, so that no keeper process is started in vain.
    if !kernel::has_record_locks() || !kernel::has_memfd() {
        return Err(io::Error::new(ErrorKind::Unsupported, "the system refuses record locks or memfd_create"));
    }
    let segment = Segment::create_in(Folder::in_memory(MemoryFiles::with_keeper(keeper::start()?)), ring_limit)?;
    if let Some(keeper) = segment.home().and_then(|(folder, _)| folder.memory_files()?.keeper()) {
        keeper.note_for_children();
    }
    Ok(segment)
}

fn warn_of_memory(reason: &str) {
    let fix = if kernel::has_record_locks() {
        "give queue_dir or LOGSPOOL_QUEUE_DIR a folder on tmpfs with free space"
    } else {
        "see python -m logspool doctor"
    };
    let text = format!(
        "logspool: cannot keep the queue in {reason}; it is in memory now, so a killed process loses what is queued \
         (fix: {fix})\n"
    );
    crate::fallback::report(&text);
}
