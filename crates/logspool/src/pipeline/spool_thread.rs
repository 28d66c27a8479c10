//! The thread that owns the spools of this process. It starts when a sink has kept chunks in overflow files for too
//! long, and ends when no spool holds any chunks.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_spool::pointer;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;
use logspool_sys::threads::spawn;

use super::state::Pipeline;
use crate::writer::SpoolTurn;

/// How long the thread waits for the bell while spools hold chunks. After each wait the thread makes the acks of the
/// last second durable.
const BELL_TIMEOUT: Duration = Duration::from_millis(100);

impl Pipeline {
    /// Starts the spool thread if it does not run.
    pub(crate) fn ensure_spooler(&self) {
        let Some(spooler) = &self.spooler else { return };
        // Check with a plain load first, since the collector calls this in every turn.
        if spooler.runs.is_running_relaxed() || self.leave.load(Ordering::Relaxed) || !spooler.runs.try_start() {
            return;
        }
        spooler.has_files.publish(true);
        // SAFETY: every pipeline is leaked when it is made, so this one lives for ever.
        let pipeline: &'static Self = unsafe { &*std::ptr::from_ref(self) };
        if !spawn("logspool-spool", move || pipeline.spool()) {
            // The thread could not be started; the collector's next turn tries again.
            spooler.runs.end();
        }
    }

    /// Body of the spool thread.
    fn spool(&'static self) {
        let Some(spooler) = &self.spooler else { return };
        while !self.leave.observe() && !spooler.leave.observe() {
            let turns = self.outlets().into_iter().flatten().map(|outlet| outlet.spool_turn(&spooler.home));
            match turns.max().unwrap_or(SpoolTurn::Idle) {
                SpoolTurn::Worked => {}
                SpoolTurn::Waits => spooler.bell.wait(BELL_TIMEOUT),
                // If an outlet needs the thread later, the collector starts it again.
                SpoolTurn::Idle => break,
            }
        }
        spooler.runs.end();
    }

    /// Removes the spools, after everything is written. If the thread is busy with a slow disk, waits only until
    /// `deadline` and then leaves the files. Returns whether the files are removed.
    pub(super) fn remove_spools(&self, deadline: Instant) -> bool {
        let Some(spooler) = self.spooler.as_ref().filter(|spooler| spooler.has_files()) else { return true };
        spooler.leave.publish(true);
        spooler.bell.ring();
        while spooler.runs() && Instant::now() < deadline {
            sleep_interruptibly(Duration::from_micros(100));
        }
        let removed = !spooler.runs() && {
            self.outlets().iter().flatten().for_each(|outlet| outlet.close_spool());
            pointer::remove_spools(&spooler.home.path()).is_ok()
        };
        spooler.leave.publish(false);
        if removed {
            spooler.has_files.publish(false);
        }
        removed
    }
}
