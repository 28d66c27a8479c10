//! Signal drain: before a signal with its default action ends the process, queued records are written. `crash.rs`
//! handles the signals of a crash.
//!
//! The handler waits for the native threads. The native threads may themselves wait for a lock that the interrupted
//! thread holds: one of the allocator, of the dynamic linker, or of this library. So the handler waits a while, then
//! lets the thread run for a moment, with a timer that sends the signal again. The handler repeats this until
//! everything is written or the time is up. To the program it looks as if the signal had come a few milliseconds later.
//!
//! The first process of a container is not ended by these signals, since the kernel drops signals for which that
//! process has no handler. So it gets no handler, but its forked children do.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;

use super::in_handler::{SIGNAL_TIMEOUT, unlink_in_handler};
use super::slot::existing;
use super::state::Pipeline;
use super::{crash, door};
use crate::broken_pipe;

/// Duration of the first wait, and of the pause after it in which the interrupted thread runs. Each later wait and
/// pause takes twice as long as the previous one.
///
/// Chosen: queued records are mostly written within the first wait, and a lock of the allocator is released within the
/// first pause. In a drain of five seconds, the pauses together take less than two tenths of a second.
const FIRST_WAIT_NS: u64 = 50_000_000;
const FIRST_RUN_NS: u64 = 2_000_000;

/// How long logging calls stay blocked after the latest end of the drain.
///
/// Chosen: if the program installs its own handler during a pause and survives the signal, its logging works again
/// after this time.
const EXTRA_BLOCKED_NS: u64 = 1_000_000_000;

/// Longest duration of the whole drain, in nanoseconds.
static TIMEOUT_NS: AtomicU64 = AtomicU64::new(0);
/// The process that is ending, its latest end on the monotonic clock, and the number of waits until now.
static ENDING_PROCESS: AtomicU32 = AtomicU32::new(0);
static END_NS: AtomicU64 = AtomicU64::new(0);
static WAIT_COUNT: AtomicU32 = AtomicU32::new(0);
/// Whether forked children must install the handlers, because this process is the first of its pid namespace and has
/// none.
static INSTALL_IN_CHILDREN: AtomicBool = AtomicBool::new(false);

/// Whether this is the first process of its pid namespace. Async-signal-safe.
fn is_first() -> bool {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() == 1 }
}

/// Whether this module handles the signal: the signal's default action ends the process, and `crash.rs` does not handle
/// it.
fn drains(signal: libc::c_int) -> bool {
    let cannot_be_handled = matches!(signal, libc::SIGKILL | libc::SIGSTOP);
    let stops = matches!(signal, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
    let is_ignored = matches!(signal, libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH);
    !(cannot_be_handled || stops || is_ignored || crash::SIGNALS.contains(&signal))
}

/// Installs handlers that write queued records before a signal ends the process. Changes only signals at their default
/// disposition. So it may be called again when a signal has returned to its default disposition.
pub fn install_signal_drain(timeout: Duration) {
    TIMEOUT_NS.store(timeout.as_nanos().min(u128::from(u64::MAX / 4)) as u64, Ordering::Relaxed);
    INSTALL_IN_CHILDREN.store(is_first(), Ordering::Relaxed);
    if !is_first() {
        install();
    }
}

/// Restores the default disposition of signals that still have our handler.
pub(super) fn remove_signal_drain() {
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| drains(*signal)) {
        // SAFETY: all-zero sigaction structs are valid.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let ours = drain_and_die as extern "C" fn(libc::c_int) as usize;
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == ours {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

/// Installs the handlers that the parent did not get. Call it in the child after a fork.
pub(super) fn install_in_child() {
    if !is_first() && INSTALL_IN_CHILDREN.swap(false, Ordering::Relaxed) {
        install();
    }
}

fn install() {
    broken_pipe::note_drain_handler(drain_and_die as extern "C" fn(libc::c_int) as usize);
    // The C library reserves a few signals and refuses to change them.
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| drains(*signal)) {
        // SAFETY: all-zero sigaction structs are valid; the handler does only async-signal-safe things.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut before) == 0 && before.sa_sigaction == libc::SIG_DFL {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = drain_and_die as extern "C" fn(libc::c_int) as usize;
                // A system call interrupted by the handler continues after it.
                action.sa_flags = libc::SA_RESTART;
                libc::sigfillset(&mut action.sa_mask);
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Drains the queue, then ends the process as the signal would have done. Uses only async-signal-safe steps.
extern "C" fn drain_and_die(signal: libc::c_int) {
    if is_first() {
        // The process was forked into its own pid namespace and is the first process there, so it continues as if there
        // were no handler.
        return;
    }
    // SAFETY: errno of this thread. A handler that returns must leave it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    // A vfork child shares this memory until it executes its program. It has a pid of its own, and nothing queued.
    // SAFETY: getpid has no preconditions.
    let own = existing().filter(|pipeline| pipeline.process == unsafe { libc::getpid() } as u32);
    while let Some(pipeline) = own {
        match write_queued(pipeline) {
            SignalWait::Again(moment_ns) if raise_again_later(signal, moment_ns) => {
                // SAFETY: as above: errno of this thread.
                unsafe { *libc::__errno_location() = errno };
                return;
            }
            SignalWait::Again(_) => {}
            SignalWait::Over => break,
            SignalWait::Written => {
                unlink_in_handler(pipeline);
                break;
            }
        }
    }
    // SAFETY: signal and raise are async-signal-safe. As soon as the handler returns and unblocks the signal, its
    // default action ends the process, with a core dump if the signal has one.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Outcome of one wait.
enum SignalWait {
    Written,
    /// The time is up.
    Over,
    /// The interrupted thread must run for this number of nanoseconds before the next wait.
    Again(u64),
}

/// Waits for a part of the remaining time until all accepted records are written.
fn write_queued(pipeline: &Pipeline) -> SignalWait {
    let now = monotonic_ns();
    let begun = ENDING_PROCESS.swap(pipeline.process, Ordering::Relaxed) == pipeline.process;
    // This is a new drain: the program may have survived an earlier one.
    if !begun || now > END_NS.load(Ordering::Relaxed) + EXTRA_BLOCKED_NS {
        END_NS.store(now + TIMEOUT_NS.load(Ordering::Relaxed), Ordering::Relaxed);
        WAIT_COUNT.store(0, Ordering::Relaxed);
    }
    let end = END_NS.load(Ordering::Relaxed);
    // From here on no logging call may return, since its record would not be covered by the drain. A push that the
    // signal interrupted on this thread either never finishes, or finishes before the next wait.
    door::shut_for_all(pipeline, end + EXTRA_BLOCKED_NS, SIGNAL_TIMEOUT);
    if !pipeline.collector_runs.is_running() {
        // The collector does not run: nothing was logged yet, or nothing since a fork.
        return if is_queue_empty(pipeline) { SignalWait::Written } else { SignalWait::Over };
    }
    // Request a new ticket for each wait, to include records that the interrupted thread pushed during the pause.
    let ticket = pipeline.request();
    let shift = WAIT_COUNT.fetch_add(1, Ordering::Relaxed).min(16);
    let until = end.min(now + (FIRST_WAIT_NS << shift));
    loop {
        if pipeline.answered.observe() >= ticket {
            return SignalWait::Written;
        }
        let now = monotonic_ns();
        if now >= end {
            return SignalWait::Over;
        }
        if now >= until {
            return SignalWait::Again((FIRST_RUN_NS << shift).min(end - now));
        }
        sleep_interruptibly(Duration::from_micros(200));
    }
}

/// Starts a timer that sends the signal to this process again after `nanoseconds`. Returns whether the timer was
/// started. Async-signal-safe.
fn raise_again_later(signal: libc::c_int, nanoseconds: u64) -> bool {
    // Direct system calls, since the C library's timer functions may allocate.
    // SAFETY: all-zero structs are valid, and the kernel reads and writes locals only.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = signal;
        let mut timer: libc::c_int = 0;
        if libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &event, &mut timer) != 0 {
            return false;
        }
        let mut time: libc::itimerspec = std::mem::zeroed();
        time.it_value.tv_sec = (nanoseconds / 1_000_000_000) as i64;
        time.it_value.tv_nsec = (nanoseconds % 1_000_000_000).max(1) as libc::c_long;
        libc::syscall(libc::SYS_timer_settime, timer, 0, &time, std::ptr::null_mut::<libc::itimerspec>()) == 0
    }
}

/// Whether every record is written or dropped for every sink. It reads only the segment, so it is async-signal-safe.
fn is_queue_empty(pipeline: &Pipeline) -> bool {
    let sum = |counters: &[AtomicU64; LEVEL_CLASSES]| counters.iter().map(|each| each.load(Ordering::Relaxed)).sum();
    let lanes = pipeline.segment.header().lanes.observe() as usize;
    let mut lanes = (0..lanes).map(|index| pipeline.segment.lane(index));
    let sinks = pipeline.segment.header().sinks.observe() as usize;
    let mut sinks = (0..sinks).map(|slot| pipeline.segment.sink(slot));
    lanes.all(|lane| lane.producer.published() == lane.consumer.released())
        && sinks.all(|head| {
            let accepted: u64 = sum(&head.accepted);
            accepted == sum(&head.written) + head.dropped.iter().map(sum).sum::<u64>()
        })
}
