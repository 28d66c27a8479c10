//! The end by a signal whose default action ends the process, where that is its disposition: what is queued is written
//! first. The signals of a crash are in `crash.rs`.
//!
//! The handler waits for the native threads, and they may wait for the thread that it interrupts: for a lock of the
//! allocator or of the dynamic linker, or for one of ours. So it waits a while, lets that thread go on for a moment,
//! with a timer that brings the signal again, and so on until everything is written or the time is up. For the program
//! it is as if the signal had come a few milliseconds later.
//!
//! The first process of a container does not end by these signals: the kernel drops what it has no handler for. So it
//! gets none, and its forked children do.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::nap::nap;

use super::in_handler::{SIGNAL_PATIENCE, unlink_in_handler};
use super::slot::existing;
use super::state::Pipeline;
use super::{crash, door};

/// How long the first wait takes, and the moment after it; each further one takes twice as long.
///
/// Chosen: what is queued is mostly written within the first wait, and a lock of the allocator is free within the first
/// moment. Of five seconds the program gets less than two tenths.
const FIRST_WAIT_NS: u64 = 50_000_000;
const FIRST_MOMENT_NS: u64 = 2_000_000;

/// Calls are held back for so much longer than the process has to its end.
///
/// Chosen: a program that takes the signal for itself in its moment has its logging back after that.
const HELD_NS: u64 = 1_000_000_000;

/// Nanoseconds that everything may take.
static TIMEOUT_NS: AtomicU64 = AtomicU64::new(0);
/// The process whose end has begun, when it comes at the latest, and how often the handler has waited.
static ENDING: AtomicU32 = AtomicU32::new(0);
static END_NS: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU32 = AtomicU32::new(0);
/// Whether children are to get the handler that this process did not.
static FOR_CHILDREN: AtomicBool = AtomicBool::new(false);

/// Whether this is the first process of its pid namespace. Async-signal-safe.
fn is_first() -> bool {
    // SAFETY: getpid has no preconditions.
    unsafe { libc::getpid() == 1 }
}

/// Whether this handler is for the signal: its default action ends the process, and `crash.rs` does not have it.
fn drains(signal: libc::c_int) -> bool {
    let cannot_be_handled = matches!(signal, libc::SIGKILL | libc::SIGSTOP);
    let stops = matches!(signal, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU);
    let is_ignored = matches!(signal, libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH);
    !(cannot_be_handled || stops || is_ignored || crash::SIGNALS.contains(&signal))
}

/// Writes what is queued before a signal ends the process. Changes only signals at their default disposition, so it may
/// be called again whenever one has returned to that.
pub fn install_signal_drain(timeout: Duration) {
    TIMEOUT_NS.store(timeout.as_nanos().min(u128::from(u64::MAX / 4)) as u64, Ordering::Relaxed);
    FOR_CHILDREN.store(is_first(), Ordering::Relaxed);
    if !is_first() {
        install();
    }
}

/// After a fork, in the child.
pub(super) fn install_in_child() {
    if !is_first() && FOR_CHILDREN.swap(false, Ordering::Relaxed) {
        install();
    }
}

fn install() {
    // The C library refuses the few that it keeps for itself.
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| drains(*signal)) {
        // SAFETY: all-zero sigaction structs are valid; the handler does only async-signal-safe things.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut before) == 0 && before.sa_sigaction == libc::SIG_DFL {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = drain_and_die as extern "C" fn(libc::c_int) as usize;
                // A system call that was interrupted for a moment goes on after it.
                action.sa_flags = libc::SA_RESTART;
                libc::sigfillset(&mut action.sa_mask);
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Drains, then ends the process as the signal would have. Only async-signal-safe steps.
extern "C" fn drain_and_die(signal: libc::c_int) {
    if is_first() {
        // Forked into a namespace of its own since: it goes on, as without a handler.
        return;
    }
    // SAFETY: errno of this thread, which a handler that returns must leave as it was.
    let errno = unsafe { *libc::__errno_location() };
    // A child that shares this memory until it executes its program has a pid of its own, and nothing queued.
    // SAFETY: getpid has no preconditions.
    let own = existing().filter(|pipeline| pipeline.process == unsafe { libc::getpid() } as u32);
    while let Some(pipeline) = own {
        match write_queued(pipeline) {
            Wait::Again(moment_ns) if comes_again(signal, moment_ns) => {
                // SAFETY: as above.
                unsafe { *libc::__errno_location() = errno };
                return;
            }
            Wait::Again(_) => {}
            Wait::Over => break,
            Wait::Written => {
                unlink_in_handler(pipeline);
                break;
            }
        }
    }
    // SAFETY: signal and raise are async-signal-safe; the default action of these signals ends the process, with a core
    // dump where it has one, as soon as the handler returns and unblocks them.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// What came of a wait.
enum Wait {
    Written,
    /// The time is up.
    Over,
    /// The thread goes on for so many nanoseconds first.
    Again(u64),
}

/// Waits until everything accepted is written, for a share of the time that there is.
fn write_queued(pipeline: &Pipeline) -> Wait {
    let now = monotonic_ns();
    let begun = ENDING.swap(pipeline.process, Ordering::Relaxed) == pipeline.process;
    // A program may have lived on after the end that was announced.
    if !begun || now > END_NS.load(Ordering::Relaxed) + HELD_NS {
        END_NS.store(now + TIMEOUT_NS.load(Ordering::Relaxed), Ordering::Relaxed);
        WAITS.store(0, Ordering::Relaxed);
    }
    let end = END_NS.load(Ordering::Relaxed);
    // No call may return from here on: its line would miss the drain. The interrupted thread's own push, if it is in
    // one, goes on for nobody, or before the next wait.
    door::shut_for_all(pipeline, end + HELD_NS, SIGNAL_PATIENCE);
    if !pipeline.collector_runs.load(Ordering::Acquire) {
        // Nothing was logged yet, or nothing since a fork.
        return if holds_nothing(pipeline) { Wait::Written } else { Wait::Over };
    }
    // Anew each time: what the thread pushed in its moment is before it.
    let ticket = pipeline.request();
    let shift = WAITS.fetch_add(1, Ordering::Relaxed).min(16);
    let until = end.min(now + (FIRST_WAIT_NS << shift));
    loop {
        if pipeline.answered.load(Ordering::Acquire) >= ticket {
            return Wait::Written;
        }
        let now = monotonic_ns();
        if now >= end {
            return Wait::Over;
        }
        if now >= until {
            return Wait::Again((FIRST_MOMENT_NS << shift).min(end - now));
        }
        nap(Duration::from_micros(200));
    }
}

/// Has the signal come to this process once more. Returns whether it will. Async-signal-safe.
fn comes_again(signal: libc::c_int, nanoseconds: u64) -> bool {
    // The system calls themselves: the library's way to make a timer may allocate.
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
        time.it_value.tv_sec = (nanoseconds / 1_000_000_000) as libc::time_t;
        time.it_value.tv_nsec = (nanoseconds % 1_000_000_000).max(1) as libc::c_long;
        libc::syscall(libc::SYS_timer_settime, timer, 0, &time, std::ptr::null_mut::<libc::itimerspec>()) == 0
    }
}

/// Whether every record is written everywhere, or given up, by the segment alone. Async-signal-safe.
fn holds_nothing(pipeline: &Pipeline) -> bool {
    let sum = |counters: &[AtomicU64; LEVEL_CLASSES]| counters.iter().map(|each| each.load(Ordering::Relaxed)).sum();
    let lanes = pipeline.segment.header().lanes.load(Ordering::Acquire) as usize;
    let mut lanes = (0..lanes).map(|index| pipeline.segment.lane(index));
    let sinks = pipeline.segment.header().sinks.load(Ordering::Acquire) as usize;
    let mut sinks = (0..sinks).map(|slot| pipeline.segment.sink(slot));
    lanes.all(|lane| lane.producer.published() == lane.consumer.released())
        && sinks.all(|head| {
            let accepted: u64 = sum(&head.accepted);
            accepted == sum(&head.written) + head.dropped.iter().map(sum).sum::<u64>()
        })
}
