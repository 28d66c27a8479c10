//! Sets the options, handles forks, and ends the process's pipeline.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_sys::generation;
use logspool_sys::published::Published;
use logspool_sys::{progress, threads};

use super::flushing::Awaited;
use super::options::{Options, OptionsError};
use super::slot::{self, existing};
use super::state::Pipeline;
use super::waiting::deadline;
use super::{door, settings, signals};
use crate::sidecar;
use crate::writer::Outlet;

/// How long the native threads may take to end before a fork.
const LEAVE_DEADLINE: Duration = Duration::from_millis(50);

/// How long the kernel may take to remove threads that have ended.
const EXIT_DEADLINE: Duration = Duration::from_millis(5);

/// How long a fork waits at most for native threads that get no processor. Chosen: with 20 busy processes on each
/// processor, a thread waits some 0.1 s for its turn.
const STARVED_DEADLINE: Duration = Duration::from_secs(5);

/// How long a fork waits at most for native threads that wait for a disk. Chosen: a busy disk answers within some 0.1 s,
/// and a frozen one not at all.
const DISK_DEADLINE: Duration = Duration::from_millis(500);

/// Sets the options of the process. Starts nothing: segment and threads begin with the first record.
///
/// If there is a segment already, the options that are fixed by the first record cannot change. The other options apply
/// from this call on.
///
/// # Errors
///
/// Fails if a value is out of its range, or if it would change an option that is fixed.
pub fn configure(options: Options) -> Result<(), OptionsError> {
    let options = settings::with_environment(options);
    options.validate()?;
    if existing().is_some() {
        options.fits(settings::options())?;
    }
    settings::set(options);
    Ok(())
}

impl Pipeline {
    /// Flushes all sinks, but does not wait for closing sinks that have used up a deadline of their own. Returns whether
    /// the collector has answered the flush for all sinks.
    fn flush_at_end(&'static self, deadline: Option<Instant>) -> bool {
        let ticket = self.request();
        let answered = || self.answered.observe() >= ticket;
        self.wait_for_threads(deadline, || {
            let outlets = self.outlets();
            let mut awaited = outlets.iter().flatten().filter(|outlet| !outlet.is_given_up());
            let is_flushed = |outlet: &Arc<Outlet>| outlet.flushed_ticket.observe() >= ticket;
            answered() || outlets.iter().flatten().any(|outlet| outlet.is_given_up()) && awaited.all(is_flushed)
        });
        answered()
    }
}

/// Call before `fork()`. Writes queued records, then asks the native threads to end. Each of these two steps takes at
/// most 50 ms, and longer only for threads that get no processor or wait for a disk. Takes no lock that a thread holds across I/O. A writer
/// in a stuck write keeps running.
pub fn before_fork() {
    crate::sinks::compress::stop_before_fork();
    let Some(pipeline) = existing() else { return };
    let collects = pipeline.collector_runs.is_running();
    if !collects && !pipeline.has_writers() && !pipeline.idle_writer.is_waiting() && !pipeline.watcher.runs() {
        return;
    }
    let began = Instant::now();
    // Write queued records first, since the threads start again only with the next record.
    if collects && let Some(flush) = pipeline.begin_flush(Awaited::Local) {
        wait_before_fork(LEAVE_DEADLINE, began, |until| flush.wait_until(Some(until)));
    }
    pipeline.ask_threads_to_leave();
    wait_before_fork(LEAVE_DEADLINE, began, |until| pipeline.await_threads(until));
    wait_before_fork(EXIT_DEADLINE, began, await_thread_exit);
}

/// Calls `wait` with a deadline that is `each` from now. `wait` returns true if its condition has come true.
///
/// A thread may be stuck in a write, so a fork does not wait for it. But a thread that lacks nothing except a processor
/// will end soon, and a thread that waits for a disk most likely. A program with one thread waits for such threads, because
/// CPython warns of a fork of a process that has several: until [`STARVED_DEADLINE`] and [`DISK_DEADLINE`] after
/// `began`. A program with several threads gets that warning anyway.
fn wait_before_fork(each: Duration, began: Instant, wait: impl Fn(Instant) -> bool) {
    while !wait(Instant::now() + each) {
        let threads = threads::Count::now();
        let longest = match threads {
            threads::Count { of_the_program: 2.., .. } => return,
            threads::Count { runnable: 1.., .. } => STARVED_DEADLINE,
            threads::Count { on_disk: 1.., .. } => DISK_DEADLINE,
            _ => return,
        };
        if began.elapsed() >= longest {
            return;
        }
    }
}

/// Waits until the kernel has removed the native threads that ended. Returns whether it has.
fn await_thread_exit(deadline: Instant) -> bool {
    while threads::Count::now().native > 0 {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Call after `fork()` in the parent. The native threads start again with the next record, or at once if records or
/// calls are waiting.
pub fn after_fork_in_parent() {
    crate::sinks::compress::resume_after_fork();
    let Some(pipeline) = existing() else { return };
    pipeline.leave.publish(false);
    // A collector that did not end in time still runs, but its writers may have ended.
    pipeline.resume_writers();
    // Threads that logged in the meantime have taken their slow path already, while no native thread could start. Make
    // them take it again.
    generation::advance();
    if pipeline.left_behind() > 0 || pipeline.pending_sync().is_some_and(|pending_sync| pending_sync.has_waiters()) {
        pipeline.ensure_threads();
    }
}

/// Call some time after `fork()` in the parent. Starts the watcher again, which watches for dead processes (including
/// the new child) even if this process logs no more.
///
/// This is separate from [`after_fork_in_parent`], because CPython 3.13 counts threads right after that call and warns
/// if there are several.
pub fn watch_after_fork() {
    if let Some(pipeline) = existing() {
        pipeline.ensure_watcher();
    }
}

/// Call after `fork()` in the child. The child no longer uses the parent's lanes, threads and ids.
///
/// The kernel has wiped the page that holds the generation, so the next logging call begins a new pipeline. This
/// function handles everything else that the child has inherited:
/// - two descriptors of a backup that the parent is compressing;
/// - duplicates of pipes whose readers wait for end of file;
/// - signals that end a child but not its parent, because the parent is the first process of a container.
pub fn after_fork_in_child() {
    progress::forget_sleepers();
    crate::sinks::compress::close_inherited();
    crate::sinks::duplicates::close_inherited();
    logspool_sys::handover::close_inherited();
    signals::install_in_child();
}

/// Writes all queued records, for at most `timeout`. Returns the number of records not written.
///
/// Use it in a process that continues: records logged later are as safe as before.
pub fn empty(timeout: Duration) -> u64 {
    existing().map_or(0, |pipeline| pipeline.empty(timeout))
}

/// Writes all queued records as [`empty`] does. If none is left, also ends the compression of backups, closes the
/// sidecars, and removes the files of the spools and the segment. Returns the number of records not written.
///
/// Logging still works after a drain, but a kill then loses queued records; see [`super::revert_end`].
pub fn drain(timeout: Duration) -> u64 {
    let Some(pipeline) = existing() else { return 0 };
    let left = pipeline.empty(timeout);
    if left == 0 {
        crate::sinks::compress::end();
        pipeline.watcher.pause(Instant::now() + LEAVE_DEADLINE);
        sidecar::close_all();
        // If files of a spool remain, the segment must stay too: it names the spool, and the next start then removes
        // both.
        if pipeline.remove_spools(Instant::now() + LEAVE_DEADLINE) {
            pipeline.remove_files();
        }
    }
    left
}

/// Drains as [`drain`] does, at the very end of the process. From this call on, logging calls of all other threads wait
/// until the process ends.
///
/// So no other thread's record is accepted after the drain, when no later start would find it. The calling thread may
/// still log. [`revert_end`] releases all threads if the process does not end.
pub fn end(timeout: Duration) -> u64 {
    let Some(pipeline) = existing() else { return 0 };
    door::shut_for_good(pipeline);
    drain(timeout)
}

/// Writes all queued records and gives the process up for another copy of the library, which then has the queue. Calls
/// of other threads wait meanwhile; afterwards this copy refuses every record.
///
/// Returns the number under which the last ids were defined. `None`: not everything was written within `timeout`, so
/// this copy keeps the queue.
pub fn hand_over(timeout: Duration) -> Option<u64> {
    let number = super::id_epoch();
    let Some(pipeline) = existing() else {
        crate::copies::give_up();
        return Some(number);
    };
    door::shut_for_good(pipeline);
    let is_written = drain(timeout) == 0;
    if is_written {
        // No thread begins another pipeline from here on.
        crate::copies::give_up();
        pipeline.retire(timeout);
        if existing().is_some() {
            crate::copies::keep();
        }
    }
    door::open();
    existing().is_none().then(|| {
        signals::remove_signal_drain();
        super::remove_crash_drain();
        number
    })
}

/// Makes the numbers of this copy's pipelines continue after those of another copy.
pub fn continue_after(number: u64) {
    slot::continue_after(number);
}

/// Reverts [`end`]. After this call, all ids must be defined again, see [`super::id_epoch`].
///
/// Records that the calling thread has logged since the end are written first, within the shutdown timeout.
pub fn revert_end() {
    if let Some(pipeline) = existing() {
        pipeline.retire(settings::shutdown_timeout());
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
        let left = if done { 0 } else { self.unwritten() };
        if done {
            self.sync_promised(&self.outlets().into_iter().flatten().collect::<Vec<_>>(), deadline);
        }
        // Shows the records only once, even if there are several drains.
        if left > 0 && !self.fallen_back.swap(true, Ordering::Relaxed) {
            self.outlets().iter().flatten().for_each(|outlet| self.fall_back_queued(outlet));
        }
        crate::fallback::finish(LEAVE_DEADLINE);
        left
    }

    /// Number of records that are left and not written. If records are left, the number is 1 at least: the writer has not
    /// finished the chunk that it has written.
    fn unwritten(&self) -> u64 {
        let left = self.left_behind();
        let written: u64 = self.outlets().iter().flatten().map(|outlet| outlet.written_in_part()).sum();
        left - written.min(left.saturating_sub(1))
    }

    fn remove_files(&self) {
        // If another pipeline has replaced this one, it has files of the same names, which must stay.
        if !self.is_past.observe() {
            self.segment.remove_files();
            self.removed.publish(self.segment.home().is_some());
        }
    }

    /// Retires a pipeline whose files were removed, so that the next logging call begins a new pipeline, as in a forked
    /// child. Queued records then survive a kill again. No other thread may push meanwhile.
    ///
    /// The memory of the old pipeline stays, since other threads may still use it. The old pipeline also stays in use if
    /// a record that the calling thread has logged since the drain is not written within `timeout`.
    pub(super) fn retire(&'static self, timeout: Duration) {
        if !self.removed.observe() {
            return;
        }
        let is_written = self.begin_flush(Awaited::All).is_none_or(|flush| flush.wait(timeout));
        if !is_written {
            return;
        }
        self.stop_threads(Instant::now() + LEAVE_DEADLINE);
        slot::retire(self);
        self.outlets().iter().flatten().for_each(|outlet| outlet.release());
    }
}
