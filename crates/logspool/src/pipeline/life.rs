//! Options, forks and the end of the process's pipeline.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_sys::generation;
use logspool_sys::progress;
use logspool_sys::published::Published;

use super::flushing::Awaited;
use super::options::{Options, OptionsError};
use super::slot::{self, existing};
use super::state::Pipeline;
use super::waiting::deadline;
use super::{door, settings, signals};
use crate::sidecar;
use crate::writer::Outlet;

/// How long the native threads may take to leave before a fork.
const LEAVE_DEADLINE: Duration = Duration::from_millis(50);

/// Sets the options of the process. Starts nothing: segment and threads begin with the first record.
///
/// If there is a segment, the options that it was made with cannot change; the others apply from here on.
///
/// # Errors
///
/// When a value is out of its range, or when an option that cannot change any more would change.
pub fn configure(options: Options) -> Result<(), OptionsError> {
    options.validate()?;
    if existing().is_some() {
        options.fits(settings::options())?;
    }
    settings::set(options);
    Ok(())
}

impl Pipeline {
    /// As a flush of all sinks, but does not wait for sinks in closing, which have used up their own deadline.
    fn flush_at_end(&'static self, deadline: Option<Instant>) -> bool {
        let ticket = self.request();
        let answered = || self.answered.observe() >= ticket;
        self.wait_for_threads(deadline, || {
            let outlets = self.outlets();
            let mut awaited = outlets.iter().flatten().filter(|outlet| !outlet.is_closing());
            let is_flushed = |outlet: &Arc<Outlet>| outlet.flushed_ticket.observe() >= ticket;
            answered() || outlets.iter().flatten().any(|outlet| outlet.is_closing()) && awaited.all(is_flushed)
        });
        answered()
    }
}

/// Call before `fork()`. Writes queued records and asks the native threads to leave, for at most 50 ms each. Takes no
/// lock that a thread holds across I/O. A writer in a stuck write stays.
pub fn before_fork() {
    crate::sinks::compress::stop_before_fork();
    let Some(pipeline) = existing() else { return };
    let collects = pipeline.collector_runs.is_running();
    if !collects && !pipeline.has_writers() && !pipeline.idle_writer.is_waiting() && !pipeline.watcher.runs() {
        return;
    }
    let deadline = Instant::now() + LEAVE_DEADLINE;
    // Write queued records first, since the threads come back only with the next record.
    if collects && let Some(flush) = pipeline.begin_flush(Awaited::Local) {
        flush.wait_until(Some(deadline));
    }
    pipeline.stop_threads(deadline + LEAVE_DEADLINE);
    await_thread_exit();
}

/// Waits until the kernel has removed the threads that left: it counts a thread until its very end.
fn await_thread_exit() {
    let deadline = Instant::now() + Duration::from_millis(5);
    while Instant::now() < deadline && native_threads() > 0 {
        std::thread::yield_now();
    }
}

/// Number of threads of this process that have our name.
fn native_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    tasks
        .flatten()
        .filter(|task| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("logspool")))
        .count()
}

/// Call after `fork()` in the parent. Threads start again with the next record, or at once if there is work.
pub fn after_fork_in_parent() {
    crate::sinks::compress::resume_after_fork();
    let Some(pipeline) = existing() else { return };
    pipeline.leave.publish(false);
    // A collector that did not leave in time is still there, but its writers may have left.
    pipeline.resume_writers();
    // Threads that logged in the meantime have taken their slow path already; make them take it again.
    generation::advance();
    if pipeline.left_behind() > 0 || pipeline.pending_sync().is_some_and(|pending_sync| pending_sync.has_waiters()) {
        pipeline.ensure_threads();
    }
}

/// Call some time after `fork()` in the parent. Watches for dead processes again, the new child included, even if this
/// process logs no more.
///
/// Separate from [`after_fork_in_parent`], because CPython 3.13 counts threads right after that call and warns of them.
pub fn watch_after_fork() {
    if let Some(pipeline) = existing() {
        pipeline.ensure_watcher();
    }
}

/// Call after `fork()` in the child. Lets go of the parent's lanes, threads and ids.
///
/// The kernel has wiped the page that holds the generation, so the next call begins a new pipeline. This function handles the
/// rest:
/// - two descriptors of a backup that the parent is compressing;
/// - duplicates of pipes whose readers wait for end of file;
/// - signals that end a child though they do not end its parent.
pub fn after_fork_in_child() {
    progress::forget_sleepers();
    crate::sinks::compress::close_inherited();
    crate::sinks::duplicates::close_inherited();
    logspool_sys::handover::close_inherited();
    signals::install_in_child();
}

/// Writes all queued records, for at most `timeout`. Returns the number of records not written.
///
/// For a process that continues: records logged later are as safe as before.
pub fn empty(timeout: Duration) -> u64 {
    existing().map_or(0, |pipeline| pipeline.empty(timeout))
}

/// Ends what can be ended: as [`empty`], and removes the segment's files if all records are written.
///
/// Logging still works after it, but a kill then loses queued records; see [`super::revert_end`].
pub fn drain(timeout: Duration) -> u64 {
    let Some(pipeline) = existing() else { return 0 };
    let left = pipeline.empty(timeout);
    if left == 0 {
        crate::sinks::compress::end();
        pipeline.watcher.pause(Instant::now() + LEAVE_DEADLINE);
        sidecar::close_all();
        // The next start removes remaining files of a spool, which the segment names.
        if pipeline.remove_spools(Instant::now() + LEAVE_DEADLINE) {
            pipeline.remove_files();
        }
    }
    left
}

/// [`drain`] at the very end of the process: from here on the logging calls of all other threads wait for the end.
///
/// So no record is accepted after the drain, where no later start would find it. The calling thread may still log.
/// [`revert_end`] releases all threads if the process does not end.
pub fn end(timeout: Duration) -> u64 {
    let Some(pipeline) = existing() else { return 0 };
    door::shut_for_good(pipeline);
    drain(timeout)
}

/// Reverts [`end`]. Ids must be defined again after it, see [`super::id_epoch`].
pub fn revert_end() {
    if let Some(pipeline) = existing() {
        pipeline.retire();
    }
    door::open();
}

impl Pipeline {
    fn empty(&'static self, timeout: Duration) -> u64 {
        self.leave.publish(false);
        let timeout = self.lateness.remaining(timeout);
        let deadline = deadline(Some(timeout));
        let done = self.flush_at_end(deadline);
        if !done {
            self.lateness.note_timeout(timeout);
        }
        let left = if done { 0 } else { self.left_behind() };
        if done {
            self.sync_promised(&self.outlets().into_iter().flatten().collect::<Vec<_>>(), deadline);
        }
        // Only once, even if there are several drains.
        if left > 0 && !self.fallen_back.swap(true, Ordering::Relaxed) {
            self.outlets().iter().flatten().for_each(|outlet| self.fall_back_queued(outlet));
        }
        crate::fallback::finish(LEAVE_DEADLINE);
        left
    }

    fn remove_files(&self) {
        // A pipeline that replaced this one has files of the same names.
        if !self.is_past.observe() {
            self.segment.remove_files();
            self.removed.publish(self.segment.home().is_some());
        }
    }

    /// Retires a pipeline whose files were removed, so that the next call begins another one, as in a forked child.
    /// Queued records then survive again. No other thread may push meanwhile.
    ///
    /// The memory of the old pipeline stays, since other threads may still use it.
    pub(super) fn retire(&'static self) {
        // Write the records that the calling thread has logged since the drain.
        if !self.removed.observe() || !self.flush_at_end(deadline(Some(LEAVE_DEADLINE))) {
            return;
        }
        self.stop_threads(Instant::now() + LEAVE_DEADLINE);
        slot::retire(self);
        self.outlets().iter().flatten().for_each(|outlet| outlet.release());
    }
}
