//! The watcher: a thread that delivers what dead relatives left while this process lives, for any file.
//!
//! Relatives are the processes of the same user with the same queue folder: killed workers of this program, a child that
//! logged between its fork and the execution of another program, other programs.
//!
//! Each process with a pipeline has one, and the first that wakes in each turn looks for all: it notes that in the
//! folder's time of access. So there is no lock whose holder could be stopped or hang, and 200 processes do not look at
//! 200 lock files each. A process that is alone in its folder does not look until a name in it changes.
//!
//! It leaves for a fork as the other native threads do, and is back after it even where the process logs no more: the
//! child may be the one that is killed. An end of the process waits for it 50 ms at most.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use logspool_sys::clock::wall_ns;
use logspool_sys::folder::{CLOCK_TICK_NS, Folder};
use logspool_sys::threads::spawn;

use super::options::Durability;
use super::relatives;
use super::settings::{options, queue_folder};
use super::state::Pipeline;
use crate::recover::Deliver;

/// Time between two looks of one process.
///
/// Chosen: the records of a killed process are in their file within a second; a look of a process that is not alone
/// takes some 5 us for each relative, shared by all.
pub(super) const TURN: Duration = Duration::from_millis(500);

/// A look of another process within this time counts, in nanoseconds. Less than a turn: else two processes that wake by
/// turns would both pass over every second one.
const LOOKED_NS: i64 = 450_000_000;

/// What the last look found.
#[derive(Default)]
struct Seen {
    /// When it was, and when the folder had changed before.
    looked_ns: i64,
    modified_ns: i64,
    has_others: bool,
}

impl Seen {
    /// Whether there is nobody from whom something could have come since.
    fn is_alone(&self, modified_ns: i64) -> bool {
        !self.has_others && modified_ns == self.modified_ns && self.looked_ns > modified_ns + CLOCK_TICK_NS
    }
}

impl Pipeline {
    /// Starts the watcher, if it does not run and what is queued is to survive a process at all.
    pub(super) fn ensure_watcher(&'static self) {
        if self.is_to_leave() || options().durability == Durability::Memory {
            return;
        }
        if !self.watcher.runs.swap(true, Ordering::SeqCst) && !spawn("logspool-watch", || self.watch()) {
            self.watcher.runs.store(false, Ordering::Release);
        }
    }

    /// The thread.
    fn watch(&self) {
        let watcher = &self.watcher;
        let mut seen = Seen::default();
        loop {
            while !self.is_to_leave() {
                watcher.bell.wait(TURN);
                watcher.looks.store(true, Ordering::SeqCst);
                let look = || self.look(&mut seen);
                // A folder that cannot be read is told by what needs it.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(look));
                watcher.looks.store(false, Ordering::SeqCst);
            }
            // As the collector: whoever lets threads run again clears `leave` and then takes `runs`.
            watcher.runs.store(false, Ordering::SeqCst);
            if self.is_to_leave() || watcher.runs.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    fn is_to_leave(&self) -> bool {
        self.leave.load(Ordering::SeqCst) || self.is_past.load(Ordering::Acquire)
    }

    /// Looks for dead relatives, unless nobody can be one or another process has just looked.
    fn look(&self, seen: &mut Seen) -> io::Result<()> {
        let stop = || self.is_to_leave() || self.watcher.rests();
        if stop() {
            return Ok(());
        }
        let folder = Folder::open_existing(&queue_folder())?;
        let (now, times) = (wall_ns(), folder.times()?);
        if seen.is_alone(times.modified) || now.abs_diff(times.accessed) < LOOKED_NS as u64 {
            return Ok(());
        }
        folder.touch()?;
        let has_others = relatives::deliver_relatives(&folder, Deliver::Due, stop)?;
        *seen = Seen { looked_ns: now, modified_ns: times.modified, has_others };
        Ok(())
    }
}
