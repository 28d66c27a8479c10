//! Start, forks, barriers and end of the process's pipeline.
//!
//! Atomics outside `queue` and `stats`: the current pipeline's address and number, which the hot path compares.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use logspool_lanes::queue::producer::{sleep_until_woken, wake_collector};
use logspool_sys::clock;
use logspool_sys::folder;
use logspool_sys::gate::Gate;
use logspool_sys::generation;
use logspool_sys::progress;
use logspool_sys::threads::spawn;

use super::Pipeline;
use super::flushing::{Awaited, Flush};
use super::options::{Options, OptionsError};
use super::spooling::Spooler;
use super::watch;
use crate::collector::{Collector, Turn};
use crate::copies;
use crate::lateness::Lateness;
use crate::overflow::Budget;
use crate::sidecar;
use crate::writer::Outlet;

static CURRENT: AtomicPtr<Pipeline> = AtomicPtr::new(std::ptr::null_mut());
static NUMBER: AtomicU64 = AtomicU64::new(1);
static OPTIONS: AtomicPtr<Options> = AtomicPtr::new(std::ptr::null_mut());
/// Held while a pipeline is made or replaced. Holds the pipeline that was replaced last.
static BEGINNING: Gate<Option<&'static Pipeline>> = Gate::new(None);

/// How long the native threads may take to leave before a fork.
const LEAVE_DEADLINE: Duration = Duration::from_millis(50);
/// How long the collector spins after a batch that was not small, before it sleeps.
///
/// Chosen: about four wake-ups' worth; a burst keeps it awake, a paced program does not.
const SPIN_NS: u64 = 20_000;
/// First and longest sleep of a collector with little to do: at 5 ms it uses 0.1 to 0.4 % of a core.
///
/// A lane that is half full, an ERROR and a flush wake it, so this bounds only the delay of a quiet record.
const SLEEP_NS: std::ops::RangeInclusive<u64> = 500_000..=5_000_000;
/// After this time without records the collector sleeps longer, and uses some 0.3 % of a core.
const QUIET_NS: u64 = 1_000_000_000;
const QUIET_SLEEP_NS: u64 = 20_000_000;
/// How long a waiting caller stays awake and yields its processor to other threads.
///
/// Chosen: the collector and a writer need this long to wake and write a line. Sleeping and being woken would take the
/// caller about as long again.
const AWAKE: Duration = Duration::from_micros(40);
/// First and longest pause of a waiting caller between two checks, if no event wakes it. Each pause is twice the
/// previous one.
///
/// Chosen: usually an event wakes it. A sync and a spool do not, and take longer than the first pause.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// The default overflow budget is the free tmpfs divided by this.
const OVERFLOW_SHARE: u64 = 4;
const MAX_OVERFLOW_BYTES: u64 = 256 * 1024 * 1024;

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
        options.fits(self::options())?;
    }
    // The old options are never freed: a reader may hold them, and they are set only once or twice in a process.
    OPTIONS.store(Box::into_raw(Box::new(options)), Ordering::Release);
    Ok(())
}

/// The options in force.
pub(super) fn options() -> &'static Options {
    static DEFAULT: LazyLock<Options> = LazyLock::new(Options::default);
    // SAFETY: stored by `configure`, never freed, never changed.
    unsafe { OPTIONS.load(Ordering::Acquire).as_ref() }.unwrap_or_else(|| &DEFAULT)
}

/// Folder of this process's segment, whether it exists or not.
pub(super) fn queue_folder() -> PathBuf {
    options().queue_dir.clone().unwrap_or_else(folder::default_path)
}

/// Number of the current pipeline, to which ids belong. It changes after a fork, and when the process continues after
/// [`super::end`]: every id must then be defined again.
///
/// Two loads; the hot path compares the result with the number under which its ids were defined. 0 is never a
/// pipeline's number.
#[inline]
pub fn generation() -> u64 {
    // Acquire pairs with the Release in `put_aside`: a reader of the new number does not find the replaced pipeline.
    if generation::turn() == generation::WIPED { 0 } else { NUMBER.load(Ordering::Acquire) }
}

/// The pipeline of this process, if there is one.
pub(super) fn existing() -> Option<&'static Pipeline> {
    if generation::turn() == generation::WIPED {
        return None;
    }
    let current = CURRENT.load(Ordering::Acquire);
    // SAFETY: stored by `current`, never freed.
    unsafe { current.as_ref() }
}

/// Whether this process has a pipeline.
pub fn is_running() -> bool {
    existing().is_some()
}

/// The pipeline of this process; begins one if there is none. `None` if there is no memory for it, or if another copy
/// of this library has the queue of the process.
pub(super) fn current() -> Option<&'static Pipeline> {
    if let Some(pipeline) = existing() {
        return Some(pipeline);
    }
    if copies::other().is_some() {
        return None;
    }
    let _beginning = BEGINNING.hold();
    if let Some(pipeline) = existing() {
        return Some(pipeline);
    }
    if generation::turn() == generation::WIPED {
        // In a forked child: the parent's pipeline is left untouched, since its memory is not ours to judge.
        CURRENT.store(std::ptr::null_mut(), Ordering::Relaxed);
        NUMBER.fetch_add(1, Ordering::Relaxed);
        generation::advance();
    }
    let pipeline = Box::leak(Box::new(begin()?));
    CURRENT.store(pipeline, Ordering::Release);
    Some(&*pipeline)
}

fn begin() -> Option<Pipeline> {
    if copies::claim().is_err() {
        copies::tell();
        return None;
    }
    let options = options();
    let (mut segment, place) = super::place::begin(options, &queue_folder())?;
    let free = segment.home().and_then(|(folder, _)| folder.free_bytes().ok()).unwrap_or(u64::MAX);
    let overflow_bytes = options.overflow_bytes.unwrap_or((free / OVERFLOW_SHARE).min(MAX_OVERFLOW_BYTES));
    segment.begin_ids();
    let segment = Arc::new(segment);
    segment.prepare_shared_lanes();
    let spooler = |folder: &PathBuf| Spooler::new(folder.clone(), options.spool_bytes, &segment);
    let spooler = options.spool_dir.as_ref().and_then(spooler);
    Some(Pipeline {
        place,
        spooler,
        collector: Mutex::new(Some(Box::new(Collector::new(segment.clone())))),
        segment,
        budget: Arc::new(Budget::new(overflow_bytes)),
        blobs: Default::default(),
        outlets: Mutex::new(vec![None]),
        routes: Mutex::default(),
        collector_runs: AtomicBool::new(false),
        leave: AtomicBool::new(false),
        batching: Mutex::new(()),
        requested: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        saturated: AtomicBool::new(false),
        standstill: AtomicBool::new(false),
        refusals: AtomicU64::new(0),
        fallen_back: AtomicBool::new(false),
        removed: AtomicBool::new(false),
        is_past: AtomicBool::new(false),
        before: OnceLock::new(),
        lateness: Lateness::default(),
        waits: Default::default(),
        watcher: Default::default(),
        idle_writer: Default::default(),
        syncs: super::durability::syncs(options),
        number: NUMBER.load(Ordering::Relaxed),
        process: std::process::id(),
    })
}

impl Pipeline {
    /// Number under which the ids of this pipeline are defined.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Starts the collector, and the writers that have records to write.
    pub(super) fn ensure_threads(&'static self) {
        if self.leave.load(Ordering::Relaxed) {
            return;
        }
        // SeqCst pairs with the end of `collect`.
        if self.collector_runs.swap(true, Ordering::SeqCst) {
            return;
        }
        self.resume_writers();
        if !spawn("logspool", || self.collect()) {
            self.collector_runs.store(false, Ordering::Release);
        }
    }

    fn has_writers(&self) -> bool {
        self.outlets().iter().flatten().any(|outlet| outlet.thread_runs())
    }

    /// Allows writers to run again, and starts those that have records to write.
    fn resume_writers(&self) {
        for outlet in self.outlets().into_iter().flatten() {
            if outlet.resume() {
                self.start_writer(outlet);
            }
        }
    }

    /// Body of the collector thread.
    fn collect(&'static self) {
        let mut slot = self.collector.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(mut collector) = slot.take() else { return };
            self.collect_until_leave(&mut collector);
            *slot = Some(collector);
            // The resuming thread clears `leave` and then takes `collector_runs`; this thread stores `collector_runs`
            // and then reads `leave`. All four operations are SeqCst. So either that thread finds no collector and
            // starts one, or this one finds that it may stay. Otherwise a record that came in between would wait until
            // the next flush.
            self.collector_runs.store(false, Ordering::SeqCst);
            progress::note();
            if self.leave.load(Ordering::SeqCst) || self.collector_runs.swap(true, Ordering::SeqCst) {
                return;
            }
            self.resume_writers();
        }
    }

    fn collect_until_leave(&'static self, collector: &mut Collector) {
        let (mut dense_at, mut worked_at) = (clock::monotonic_ns(), clock::monotonic_ns());
        // Not at once: a child that logs and ends within this time needs no watcher.
        let mut watched_at = Some(dense_at + watch::TURN.as_nanos() as u64);
        let mut sleep = *SLEEP_NS.start();
        while !self.leave.load(Ordering::Acquire) {
            let turn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| collector.turn(self)));
            let turn = turn.unwrap_or(Turn::Held);
            let now = clock::monotonic_ns();
            if turn != Turn::Idle {
                worked_at = now;
            }
            if watched_at.take_if(|at| *at <= now).is_some() {
                self.ensure_watcher();
            }
            match turn {
                Turn::Worked => {
                    dense_at = now;
                    sleep = *SLEEP_NS.start();
                    continue;
                }
                Turn::Few | Turn::Idle if now < dense_at + SPIN_NS => {
                    std::hint::spin_loop();
                    continue;
                }
                Turn::Few | Turn::Idle if !collector.is_waiting() => {}
                Turn::Few | Turn::Idle | Turn::Held => sleep = sleep.min(1_000_000),
            }
            let sleeping = &self.segment.header().sleeping;
            sleeping.store(1, Ordering::SeqCst);
            if self.requested_ticket() == collector.seen_ticket()
                && self.durable_calls() == collector.seen_calls()
                && !self.leave.load(Ordering::SeqCst)
            {
                sleep_until_woken(sleeping, sleep);
            }
            sleeping.store(0, Ordering::Relaxed);
            sleep = (sleep * 2).min(if now < worked_at + QUIET_NS { *SLEEP_NS.end() } else { QUIET_SLEEP_NS });
        }
    }

    fn wake(&self) {
        wake_collector(&self.segment.header().sleeping);
    }

    /// Requests a flush and returns its ticket.
    pub(super) fn request(&self) -> u64 {
        // Release pairs with the Acquire in `requested_ticket`: the caller's pushes are visible to the collector.
        let ticket = self.requested.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake();
        ticket
    }

    pub(super) fn wait(&self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        let mut pause = FIRST_PAUSE;
        let awake_until = Instant::now() + AWAKE;
        loop {
            // Read the step before the check, so that a step between check and sleep ends the sleep.
            let seen = progress::steps();
            // A replaced pipeline has written everything, and has no threads left to report it.
            if done() || self.is_past.load(Ordering::Acquire) {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            if !progress::await_step(seen, awake_until) {
                progress::sleep(seen, pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// As [`Self::wait`], for work of the native threads. If they left for a fork of another thread and nothing is
    /// queued, this call starts them again.
    pub(super) fn wait_for_threads(&'static self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        self.wait(deadline, || {
            let is_done = done();
            if !is_done {
                self.ensure_threads();
            }
            is_done
        })
    }

    /// As a flush of all sinks, but does not wait for sinks in closing, which have used up their own deadline.
    fn flush_at_end(&'static self, deadline: Option<Instant>) -> bool {
        let ticket = self.request();
        let answered = || self.answered.load(Ordering::Acquire) >= ticket;
        self.wait_for_threads(deadline, || {
            let outlets = self.outlets();
            let mut awaited = outlets.iter().flatten().filter(|outlet| !outlet.is_closing());
            let is_flushed = |outlet: &Arc<Outlet>| outlet.flushed_ticket.load(Ordering::Acquire) >= ticket;
            answered() || outlets.iter().flatten().any(|outlet| outlet.is_closing()) && awaited.all(is_flushed)
        });
        answered()
    }

    /// Number of accepted records that are not written to every sink.
    fn left_behind(&self) -> u64 {
        let snapshot = super::outlets::snapshot_of(self);
        let in_lanes: u64 = snapshot.in_lanes.iter().sum();
        let waiting: u64 = snapshot.sinks.iter().map(|sink| sink.counts.waiting()).sum();
        in_lanes + waiting
    }
}

/// Deadline `timeout` from now. `None` if there is no timeout, or if it is beyond the range of the clock.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// Waits until all records queued before the call are written: to one sink, or to all with `None`.
///
/// Returns whether this happened within `timeout` (`None` waits for ever). Call it without an interpreter lock.
pub fn flush(sink: Option<u32>, timeout: Option<Duration>) -> bool {
    let Some(flush) = Flush::begin(sink) else { return true };
    let done = flush.wait_until(deadline(timeout));
    if let Some(timeout) = timeout.filter(|_| !done) {
        flush.note_late(timeout);
    }
    done
}

/// Waits until all records queued before the call are written to all sinks except services: for callers that must not
/// wait for a network.
///
/// Returns whether this happened within `timeout`. Call it without an interpreter lock.
pub fn flush_local(timeout: Duration) -> bool {
    Flush::begin_local().is_none_or(|flush| flush.wait(timeout))
}

/// Call before `fork()`. Writes queued records and asks the native threads to leave, for at most 50 ms each. Takes no
/// lock that a thread holds across I/O. A writer in a stuck write stays.
pub fn before_fork() {
    crate::sinks::compress::leave();
    let Some(pipeline) = existing() else { return };
    let collects = pipeline.collector_runs.load(Ordering::Acquire);
    if !collects && !pipeline.has_writers() && !pipeline.idle_writer.is_there() && !pipeline.watcher.runs() {
        return;
    }
    let deadline = Instant::now() + LEAVE_DEADLINE;
    // Write queued records first, since the threads come back only with the next record.
    if collects && let Some(flush) = pipeline.begin_flush(Awaited::Local) {
        flush.wait_until(Some(deadline));
    }
    pipeline.have_threads_leave(deadline + LEAVE_DEADLINE);
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
    crate::sinks::compress::come_back();
    let Some(pipeline) = existing() else { return };
    pipeline.leave.store(false, Ordering::SeqCst);
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
/// The kernel has wiped the page that holds the turn, so the next call begins a new pipeline. This function handles the
/// rest:
/// - two descriptors of a backup that the parent is compressing;
/// - duplicates of pipes whose readers wait for end of file;
/// - signals that end a child though they do not end its parent.
pub fn after_fork_in_child() {
    progress::forget_sleepers();
    crate::sinks::compress::forget();
    crate::sinks::lent::close_inherited();
    logspool_sys::handover::close_inherited();
    super::signals::install_in_child();
}

/// Writes all queued records, for at most `timeout`. Returns the number of records not written.
///
/// For a process that continues: records logged later are as safe as before.
pub fn empty(timeout: Duration) -> u64 {
    existing().map_or(0, |pipeline| pipeline.empty(timeout))
}

/// Ends what can be ended: as [`empty`], and removes the segment's files if all records are written.
///
/// Logging still works after it, but a kill then loses queued records; see [`super::go_on`].
pub fn drain(timeout: Duration) -> u64 {
    let Some(pipeline) = existing() else { return 0 };
    let left = pipeline.empty(timeout);
    if left == 0 {
        crate::sinks::compress::end();
        pipeline.watcher.rest(Instant::now() + LEAVE_DEADLINE);
        sidecar::leave_all();
        // The next start removes remaining files of a spool, which the segment names.
        if pipeline.remove_spools(Instant::now() + LEAVE_DEADLINE) {
            pipeline.remove_files();
        }
    }
    left
}

impl Pipeline {
    fn empty(&'static self, timeout: Duration) -> u64 {
        self.leave.store(false, Ordering::SeqCst);
        let timeout = self.lateness.share(timeout);
        let deadline = deadline(Some(timeout));
        let done = self.flush_at_end(deadline);
        if !done {
            self.lateness.note(timeout);
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
        if !self.is_past.load(Ordering::Acquire) {
            self.segment.remove_files();
            self.removed.store(self.segment.home().is_some(), Ordering::Release);
        }
    }

    /// Asks the native threads to leave, and waits until `deadline`. After it every push takes its slow path, which
    /// starts the threads again if that is allowed.
    fn have_threads_leave(&self, deadline: Instant) {
        self.leave.store(true, Ordering::Release);
        generation::advance();
        self.wake();
        self.watcher.wake();
        if let Some(spooler) = &self.spooler {
            spooler.bell.ring();
        }
        for outlet in self.outlets().into_iter().flatten() {
            outlet.ask_to_leave();
        }
        self.wait(Some(deadline), || {
            !self.collector_runs.load(Ordering::Acquire)
                && !self.has_writers()
                && self.idle_writer.dismiss()
                && !self.watcher.runs()
                && !self.spooler.as_ref().is_some_and(Spooler::runs)
        });
    }

    /// Retires a pipeline whose files were removed, so that the next call begins another one, as in a forked child.
    /// Queued records then survive again. No other thread may push meanwhile.
    ///
    /// The memory of the old pipeline stays, since other threads may still use it.
    pub(super) fn put_aside(&'static self) {
        // Write the records that the calling thread has logged since the drain.
        if !self.removed.load(Ordering::Acquire) || !self.flush_at_end(deadline(Some(LEAVE_DEADLINE))) {
            return;
        }
        self.have_threads_leave(Instant::now() + LEAVE_DEADLINE);
        {
            let mut last = BEGINNING.hold();
            if let Some(before) = last.replace(self) {
                let _ = self.before.set(before);
            }
            self.is_past.store(true, Ordering::Release);
            // In this order: a thread that finds no pipeline begins one under the next number. A thread that reads that
            // number does not find this pipeline.
            CURRENT.store(std::ptr::null_mut(), Ordering::Release);
            NUMBER.fetch_add(1, Ordering::Release);
            generation::advance();
        }
        self.outlets().iter().flatten().for_each(|outlet| outlet.release());
    }
}
