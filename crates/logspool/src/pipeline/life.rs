//! Beginning, forks, barriers and the end of the process's pipeline.
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
/// Held while a pipeline of the process is made or put aside; in it the last that was put aside.
static BEGINNING: Gate<Option<&'static Pipeline>> = Gate::new(None);

/// How long the native threads may take to leave before a fork.
const LEAVE_DEADLINE: Duration = Duration::from_millis(50);
/// The collector spins this long after a batch that was not small, before it sleeps.
///
/// Chosen: about four wake-ups' worth; a burst keeps it awake, a paced program does not.
const SPIN_NS: u64 = 20_000;
/// First and longest sleep of a collector without much to do: at 5 ms it uses 0.1 to 0.4 % of a core.
///
/// A lane that is half full, an ERROR and a flush wake it, so this bounds only how late a quiet record is written.
const SLEEP_NS: std::ops::RangeInclusive<u64> = 500_000..=5_000_000;
/// A program that logged nothing for so long is looked at less often: then the collector uses some 0.3 % of a core.
const QUIET_NS: u64 = 1_000_000_000;
const QUIET_SLEEP_NS: u64 = 20_000_000;
/// How long a caller that waits stays awake, giving its processor to whoever wants it.
///
/// Chosen: the collector and a writer need it to wake and write a line; to fall asleep and be woken would take the
/// caller about as long once more.
const AWAKE: Duration = Duration::from_micros(40);
/// A caller that waits looks again after so long, where nothing wakes it before; then after twice as long.
///
/// Chosen: what it waits for mostly wakes it. A sync and a spool do not, and take longer than the first pause.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// Free tmpfs over this share is the default overflow budget.
const OVERFLOW_SHARE: u64 = 4;
const MAX_OVERFLOW_BYTES: u64 = 256 * 1024 * 1024;

/// Sets the options of the process. Starts nothing: segment and threads come with the first record.
///
/// Once there is a segment, those that it was made with stay as they are, and the others hold from here on.
///
/// # Errors
///
/// When a value is out of its range, or would change what cannot change any more.
pub fn configure(options: Options) -> Result<(), OptionsError> {
    options.validate()?;
    if existing().is_some() {
        options.fits(self::options())?;
    }
    // The old options stay where they are: a reader may hold them, and they are set once or twice a life.
    OPTIONS.store(Box::into_raw(Box::new(options)), Ordering::Release);
    Ok(())
}

/// The options in force.
pub(super) fn options() -> &'static Options {
    static DEFAULT: LazyLock<Options> = LazyLock::new(Options::default);
    // SAFETY: stored by `configure`, never freed, never changed.
    unsafe { OPTIONS.load(Ordering::Acquire).as_ref() }.unwrap_or_else(|| &DEFAULT)
}

/// Folder of this process's segment, made or not.
pub(super) fn queue_folder() -> PathBuf {
    options().queue_dir.clone().unwrap_or_else(folder::default_path)
}

/// The number of the pipeline that ids belong to. It changes after a fork, and where the process goes on after its end
/// was tried: every id must then be defined again.
///
/// Two loads; the hot path compares it with the number its ids were made under. 0 is no pipeline's number.
#[inline]
pub fn generation() -> u64 {
    // Acquire pairs with the Release in `put_aside`: who sees the number does not find the pipeline of before.
    if generation::turn() == generation::WIPED { 0 } else { NUMBER.load(Ordering::Acquire) }
}

/// The pipeline if there is one in this process.
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

/// The pipeline of this process, begun now if there is none. `None`: not even memory for it could be had, or another copy
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
        // A forked child: the parent's pipeline is left as it is, its memory is not ours to judge.
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
    /// Number that ids of this pipeline were made under.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Starts the collector, and the writers that have something to write.
    pub(super) fn ensure_threads(&'static self) {
        if self.leave.load(Ordering::Relaxed) {
            return;
        }
        // SeqCst: see the end of `collect`.
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

    /// Lets writers run again, and starts those that have something to do.
    fn resume_writers(&self) {
        for outlet in self.outlets().into_iter().flatten() {
            if outlet.resume() {
                self.start_writer(outlet);
            }
        }
    }

    /// The collector thread.
    fn collect(&'static self) {
        let mut slot = self.collector.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(mut collector) = slot.take() else { return };
            self.collect_until_leave(&mut collector);
            *slot = Some(collector);
            // Who lets threads run again clears `leave` and then takes `collector_runs`; here it is the other way
            // round, and all four are SeqCst: either that one finds no collector and starts it, or this one finds
            // that it may stay. Else a record that came in between would lie there until the next flush.
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
        // Not at once: a child that logs and ends within a turn needs none.
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

    /// Asks for a flush and returns its ticket.
    pub(super) fn request(&self) -> u64 {
        // Release pairs with the Acquire in `requested_ticket`: the caller's pushes came before.
        let ticket = self.requested.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake();
        ticket
    }

    pub(super) fn wait(&self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        let mut pause = FIRST_PAUSE;
        let awake_until = Instant::now() + AWAKE;
        loop {
            // Before the look, so that a step between the look and the sleep ends the sleep.
            let seen = progress::steps();
            // Everything in a pipeline that was put aside is written, and nobody is left to say so.
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

    /// As [`Self::wait`] for what the native threads do. Where they have left for a fork of another thread, and nothing is
    /// queued, nobody else starts them again.
    pub(super) fn wait_for_threads(&'static self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        self.wait(deadline, || {
            let is_done = done();
            if !is_done {
                self.ensure_threads();
            }
            is_done
        })
    }

    /// As a flush of all sinks, but what was closed at its own deadline had its time already.
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

    /// Records that are accepted and not written everywhere.
    fn left_behind(&self) -> u64 {
        let snapshot = super::outlets::snapshot_of(self);
        let in_lanes: u64 = snapshot.in_lanes.iter().sum();
        let waiting: u64 = snapshot.sinks.iter().map(|sink| sink.counts.waiting()).sum();
        in_lanes + waiting
    }
}

/// The end of a time that begins now. `None`: there is none, or it is beyond what the clock counts.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// Waits until everything queued before is written: to one sink, or with `None` to all.
///
/// Returns whether that came true within `timeout` (`None` waits for ever). Call without an interpreter lock.
pub fn flush(sink: Option<u32>, timeout: Option<Duration>) -> bool {
    let Some(flush) = Flush::begin(sink) else { return true };
    let done = flush.wait_until(deadline(timeout));
    if let Some(timeout) = timeout.filter(|_| !done) {
        flush.note_late(timeout);
    }
    done
}

/// Waits until everything queued before is written to everything but services: for what must not wait for a network.
///
/// Returns whether that came true within `timeout`. Call without an interpreter lock.
pub fn flush_local(timeout: Duration) -> bool {
    Flush::begin_local().is_none_or(|flush| flush.wait(timeout))
}

/// Before `fork()`: asks the native threads to leave, at most for 50 ms. Takes no lock that a thread holds
/// across I/O. A writer inside a stuck write stays.
pub fn before_fork() {
    crate::sinks::compress::leave();
    let Some(pipeline) = existing() else { return };
    let collects = pipeline.collector_runs.load(Ordering::Acquire);
    if !collects && !pipeline.has_writers() && !pipeline.idle_writer.is_there() && !pipeline.watcher.runs() {
        return;
    }
    let deadline = Instant::now() + LEAVE_DEADLINE;
    // What is queued goes out first, so that nothing waits for threads that come back with the next record.
    if collects && let Some(flush) = pipeline.begin_flush(Awaited::Local) {
        flush.wait_until(Some(deadline));
    }
    pipeline.have_threads_leave(deadline + LEAVE_DEADLINE);
    await_thread_exit();
}

/// Waits until the kernel has forgotten the threads that left: a thread counts until its very end.
fn await_thread_exit() {
    let deadline = Instant::now() + Duration::from_millis(5);
    while Instant::now() < deadline && native_threads() > 0 {
        std::thread::yield_now();
    }
}

/// Threads of this process that carry our name.
fn native_threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    tasks
        .flatten()
        .filter(|task| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("logspool")))
        .count()
}

/// After `fork()` in the parent: lets threads start again with the next record, at once if there is something to do.
pub fn after_fork_in_parent() {
    crate::sinks::compress::come_back();
    let Some(pipeline) = existing() else { return };
    pipeline.leave.store(false, Ordering::SeqCst);
    // A collector that did not leave in time stays, but its writers may have left.
    pipeline.resume_writers();
    // Threads that logged while the others were away took their slow way already: let them take it again.
    generation::advance();
    if pipeline.left_behind() > 0 || pipeline.pending_sync().is_some_and(|pending_sync| pending_sync.has_waiters()) {
        pipeline.ensure_threads();
    }
}

/// Some time after `fork()` in the parent: looks for dead relatives again, the new child among them, also where nothing
/// more is logged here.
///
/// Apart from [`after_fork_in_parent`], because CPython 3.13 counts threads right behind that and warns of them.
pub fn watch_after_fork() {
    if let Some(pipeline) = existing() {
        pipeline.ensure_watcher();
    }
}

/// After `fork()` in the child: forgets the parent's lanes, threads and ids.
///
/// The kernel has wiped the page that says so, and the next call begins anew. What is left are two descriptors of a
/// backup that the parent is compressing, duplicates of pipes whose readers wait for the end, and signals that end a
/// child though they do not end its parent.
pub fn after_fork_in_child() {
    progress::forget_sleepers();
    crate::sinks::compress::forget();
    crate::sinks::lent::close_inherited();
    logspool_sys::handover::close_inherited();
    super::signals::install_in_child();
}

/// Writes everything queued, at most for `timeout`. Returns the number of records left behind.
///
/// For a process that goes on: what is logged after it is as safe as before.
pub fn empty(timeout: Duration) -> u64 {
    existing().map_or(0, |pipeline| pipeline.empty(timeout))
}

/// Ends what can be ended: as [`empty`], and removes the segment's files when all is written.
///
/// Logging after it goes on, but a kill then costs what is queued; see [`super::go_on`].
pub fn drain(timeout: Duration) -> u64 {
    let Some(pipeline) = existing() else { return 0 };
    let left = pipeline.empty(timeout);
    if left == 0 {
        crate::sinks::compress::end();
        pipeline.watcher.rest(Instant::now() + LEAVE_DEADLINE);
        sidecar::leave_all();
        // Files of a spool that stay are removed by the next start, which learns of them from the segment.
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
        // Once, though there are several drains.
        if left > 0 && !self.fallen_back.swap(true, Ordering::Relaxed) {
            self.outlets().iter().flatten().for_each(|outlet| self.fall_back_queued(outlet));
        }
        crate::fallback::finish(LEAVE_DEADLINE);
        left
    }

    fn remove_files(&self) {
        // The pipeline that has taken its place has files of the same names.
        if !self.is_past.load(Ordering::Acquire) {
            self.segment.remove_files();
            self.removed.store(self.segment.home().is_some(), Ordering::Release);
        }
    }

    /// Asks the native threads to leave, and waits for that until `deadline`. Every push takes the slow way then, which
    /// starts them again if they may.
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

    /// Lets another pipeline take the place of one whose files were removed: it begins with the next call, as in a
    /// forked child, and what is queued survives again. Nobody but the calling thread may push meanwhile.
    ///
    /// What the old one has of memory stays: other threads may still look at it.
    pub(super) fn put_aside(&'static self) {
        // What the calling thread has logged since the drain.
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
            // In this order: who finds no pipeline here begins one under the next number, and who reads that number
            // does not find this pipeline.
            CURRENT.store(std::ptr::null_mut(), Ordering::Release);
            NUMBER.fetch_add(1, Ordering::Release);
            generation::advance();
        }
        self.outlets().iter().flatten().for_each(|outlet| outlet.release());
    }
}
