//! The watcher: a thread that delivers the records of dead relatives while this process lives, for any file.
//!
//! Relatives are the processes of the same user with the same queue folder. Examples are killed workers of this
//! program, a child that logged between fork and exec, and other programs.
//!
//! Each process with a pipeline has a watcher. In each period the first watcher that wakes looks on behalf of all
//! processes, and notes this in the folder's access time. So there is no lock whose holder could be stopped or hang,
//! and 200 processes do not check 200 lock files each. A process that is alone in its folder looks only after a name in
//! the folder changed.
//!
//! The watcher ends for a fork like the other native threads. It starts again even if the process logs no more, since
//! the child may be killed. At the end of the process, the drain waits for the watcher for at most 50 ms.

use std::io;
use std::time::Duration;

use logspool_sys::barrier;
use logspool_sys::clock::{monotonic_ns, wall_ns};
use logspool_sys::folder::{CLOCK_TICK_NS, Folder};
use logspool_sys::published::Published;
use logspool_sys::threads::spawn;

use super::options::Durability;
use super::relatives;
use super::settings::{options, queue_folder};
use super::state::Pipeline;
use crate::recover::Deliver;

/// Time between two looks of one process into the folder.
///
/// Chosen: the records of a killed process are in their file within a second. A look takes some 5 us for each relative,
/// and all processes share one look per period.
pub(super) const TURN: Duration = Duration::from_millis(500);

/// If another process has looked within this many nanoseconds, this process skips its own look. The time is less than a
/// period, since otherwise two processes that wake alternately would both skip every second look.
const RECENT_LOOK_NS: i64 = 450_000_000;

/// Result of the last look.
#[derive(Default)]
struct LastLook {
    /// Time of the look, and the folder's modification time before it, in nanoseconds.
    looked_ns: i64,
    modified_ns: i64,
    has_others: bool,
}

impl LastLook {
    /// Whether no other process can have left records in the folder since the last look.
    fn is_alone(&self, modified_ns: i64) -> bool {
        !self.has_others && modified_ns == self.modified_ns && self.looked_ns > modified_ns + CLOCK_TICK_NS
    }
}

impl Pipeline {
    /// Starts the watcher if it does not run and the queue survives the process.
    pub(super) fn ensure_watcher(&'static self) {
        if self.is_to_leave() || options().durability == Durability::Memory {
            return;
        }
        if self.watcher.runs.try_start() && !spawn("logspool-watch", || self.watch()) {
            self.watcher.runs.end();
        }
    }

    /// Body of the watcher thread.
    fn watch(&self) {
        barrier::register();
        let watcher = &self.watcher;
        let mut seen = LastLook::default();
        loop {
            while !self.is_to_leave() {
                watcher.bell.wait(TURN);
                let look = || self.look(&mut seen);
                if watcher.looks.begin_work(monotonic_ns()) {
                    // Errors are ignored: the code that needs the folder reports that it is unreadable.
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
                }
                watcher.looks.end_work();
            }
            // As in the collector, a thread that resumes the native threads clears `leave` and then starts the watcher
            // if none runs.
            if !watcher.runs.stop_unless(|| self.is_to_leave()) {
                return;
            }
        }
    }

    fn is_to_leave(&self) -> bool {
        self.leave.observe() || self.is_past.observe()
    }

    /// Delivers the records of dead relatives, unless there can be none or another process has just looked.
    fn look(&self, seen: &mut LastLook) -> io::Result<()> {
        let stop = || self.is_to_leave() || self.watcher.is_paused();
        if stop() {
            return Ok(());
        }
        let folder = Folder::open_existing(&queue_folder())?;
        let (now, times) = (wall_ns(), folder.times()?);
        if seen.is_alone(times.modified) || now.abs_diff(times.accessed) < RECENT_LOOK_NS as u64 {
            return Ok(());
        }
        folder.touch()?;
        let has_others = relatives::deliver_relatives(&folder, Deliver::Due, stop)?;
        *seen = LastLook { looked_ns: now, modified_ns: times.modified, has_others };
        Ok(())
    }
}
