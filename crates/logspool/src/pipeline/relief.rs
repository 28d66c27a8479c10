//! A start that finds tmpfs short first delivers what dead processes left there, for any file.
//!
//! Else they fill it one by one, where each logs to a file of its own and none is started again for that file, until a
//! new process finds no room for its queue.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use logspool_sys::folder::Folder;
use logspool_sys::nap::nap;
use logspool_sys::threads::spawn;

use super::relatives;
use crate::recover::Deliver;

/// Tmpfs is short when less than this share of it is free, within these bounds in bytes.
///
/// Chosen: a look too many costs a start a millisecond, one too few its queue. Below the lower bound a busy process may
/// not find what its lanes take; above the upper one its overflow files get all that they may have.
const SHARE: u64 = 4;
const BOUNDS: (u64, u64) = (4 * 1024 * 1024, 256 * 1024 * 1024);

/// How long a start waits, a first record among them.
///
/// Chosen: what a hundred dead processes left is delivered in less. A file that hangs must not hold up a start for
/// longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Has what dead processes of this pid namespace left in the folder delivered, where tmpfs is short. On a thread of its
/// own, since a file may hang; waits for it a second at most.
pub(super) fn relieve(path: &Path) {
    // The folder of this user may be missing: then nothing of it is there.
    let Ok(folder) = Folder::open_existing(path) else { return };
    if !is_short(&folder) {
        return;
    }
    let end = Instant::now() + PATIENCE;
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    let deliver = move || {
        // What goes wrong stays, and `orphans` tells about it.
        let _ = relatives::deliver_relatives(&folder, Deliver::All, || Instant::now() >= end);
        // Release pairs with the Acquire below: the room is there.
        is_done.store(true, Ordering::Release);
    };
    if spawn("logspool-relief", deliver) {
        while !done.load(Ordering::Acquire) && Instant::now() < end {
            nap(Duration::from_micros(200));
        }
    }
}

fn is_short(folder: &Folder) -> bool {
    let (Ok(free), Ok(total)) = (folder.free_bytes(), folder.total_bytes()) else { return false };
    free < (total / SHARE).clamp(BOUNDS.0, BOUNDS.1)
}
