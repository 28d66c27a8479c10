//! If tmpfs is short of space at a start, the process first delivers the records of dead processes on it, for any file.
//!
//! Otherwise orphans would fill tmpfs one by one, if each logs to its own file and no process is started again for that
//! file. In the end a new process would find no room for its queue.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use logspool_sys::folder::Folder;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;
use logspool_sys::threads::spawn;

use super::relatives;
use crate::recover::Deliver;

/// Tmpfs is short of space if less than one part in `FREE_SHARE` is free. This limit is clamped to `BOUNDS`, in bytes.
///
/// Chosen: a needless check costs a start one millisecond, while a missing check may cost the process its queue. Below
/// the lower bound a busy process may lack room for its lanes; above the upper one its overflow files get their full
/// budget.
const FREE_SHARE: u64 = 4;
const BOUNDS: (u64, u64) = (4 * 1024 * 1024, 256 * 1024 * 1024);

/// How long a start waits for these deliveries. The first record waits as long.
///
/// Chosen: the records of a hundred dead processes are delivered in less time. A hanging file must not delay a start
/// for longer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// If tmpfs is short of space, delivers the records of dead processes of this pid namespace. The delivery runs on its
/// own thread, since a file may hang. The caller waits at most one second for that thread.
pub(super) fn relieve(path: &Path) {
    // The queue folder of this user may be missing. Then there are no orphans.
    let Ok(folder) = Folder::open_existing(path) else { return };
    if !is_short(&folder) {
        return;
    }
    let end = Instant::now() + TIMEOUT;
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    let deliver = move || {
        // If the delivery fails, the files stay, and `orphans` lists them.
        let _ = relatives::deliver_relatives(&folder, Deliver::All, || Instant::now() >= end);
        // Pairs with `observe` below: when the waiting thread sees `is_done`, the space is released.
        is_done.publish(true);
    };
    if spawn("logspool-relief", deliver) {
        while !done.observe() && Instant::now() < end {
            sleep_interruptibly(Duration::from_micros(200));
        }
    }
}

fn is_short(folder: &Folder) -> bool {
    let (Ok(free), Ok(total)) = (folder.free_bytes(), folder.total_bytes()) else { return false };
    free < (total / FREE_SHARE).clamp(BOUNDS.0, BOUNDS.1)
}
