//! Crash drain: on SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGSYS the process waits until queued records
//! are written. It then ends as it would have ended without logspool.
//!
//! The records are in shared memory, and the next start would deliver them. The wait is for people who read the file
//! right after the crash, so it is short. The wait is skipped if no thread can do the work: in the collector and the
//! writers themselves, in a child that shares this memory, and before there is a pipeline. If a thread blocks the
//! signal, as native threads do, a fault in it does not call the handler: the kernel ends the process at once.
//!
//! The previous handler is called afterwards, as the kernel would have called it: on the thread's signal stack if the
//! thread has one, and with the signals blocked that the handler asked for. The previous handler may end the process,
//! or fix the cause and return.
//!
//! Everything in this file except installing and removing is async-signal-safe: it uses system calls and atomics and
//! never allocates.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the previous handlers and the time
//! already spent. They are atomics because a signal handler must take no lock.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use logspool_sys::clock::monotonic_ns;
use logspool_sys::platform::thread_id;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;

use super::door;
use super::in_handler::{SIGNAL_TIMEOUT, unlink_in_handler};
use super::slot::existing;
use super::state::Pipeline;

/// Signals of a program's own faults: those that Python's faulthandler watches, and [`TOOL_SIGNALS`].
pub(super) const SIGNALS: [libc::c_int; 7] =
    [libc::SIGSEGV, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Debuggers and sandboxes handle these signals by the thousand in a healthy process. So this module handles them only
/// if the program left them at their default disposition.
const TOOL_SIGNALS: [libc::c_int; 2] = [libc::SIGTRAP, libc::SIGSYS];

/// Longest total time that a process waits in crash handlers.
///
/// Chosen: a healthy disk takes the queued records in a few milliseconds, and a supervisor that restarts the program
/// does not notice this delay. The limit covers all crash signals together, since a language runtime in the process may
/// survive such signals by the thousand.
const TIMEOUT: Duration = Duration::from_millis(200);

/// How long logging calls of other threads wait for the end of the process while the previous handler runs.
///
/// Chosen: faulthandler writes the stacks of a hundred threads in less time. The limit is needed because a previous
/// handler may leave by longjmp, and then nothing tells this module that the process continues.
const MAX_BLOCKED: Duration = Duration::from_secs(2);

/// Bytes of the signal stack for a thread that has none or a smaller one.
///
/// Chosen: this handler takes 2 KiB and the kernel up to 11 KiB. Both are needed twice if a previous handler aborts,
/// and that handler may itself need more. Rust's own signal stacks have 8 KiB, too few for two signals on a processor
/// with AVX-512.
const STACK_BYTES: usize = 64 * 1024;

/// The previous handlers, in the order of [`SIGNALS`]. Never freed, since one may be running.
static PREVIOUS_ACTIONS: [AtomicPtr<libc::sigaction>; SIGNALS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS.len()];

/// Number of nanoseconds of [`TIMEOUT`] that are already used up.
static SPENT_NS: AtomicU64 = AtomicU64::new(0);

type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == on_crash as Informed as usize
}

fn action_of(signal: libc::c_int) -> Option<libc::sigaction> {
    // SAFETY: an all-zero sigaction is a valid buffer for the answer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &mut action) == 0).then_some(action)
    }
}

/// Installs handlers that write queued records before a crash ends the process. Does nothing for signals that already
/// have our handler.
///
/// An existing handler is called after ours. A handler set later replaces ours, and may call it. A signal that the
/// program ignores stays ignored. The calling thread gets a signal stack if it has none.
pub fn install_crash_drain() {
    // Look up the pipeline now, since the first lookup must not happen in a handler.
    let _ = existing();
    install_signal_stack();
    for (place, signal) in PREVIOUS_ACTIONS.iter().zip(SIGNALS) {
        let Some(before) = action_of(signal) else { continue };
        let is_handled = before.sa_sigaction != libc::SIG_DFL;
        if is_ours(&before) || before.sa_sigaction == libc::SIG_IGN || is_handled && TOOL_SIGNALS.contains(&signal) {
            continue;
        }
        // Pairs with `observe` in `on_crash`. Store the previous handler before ours is installed, since ours may run
        // at once.
        place.publish(Box::into_raw(Box::new(before)));
        // SAFETY: an all-zero sigaction is valid; the handler does only async-signal-safe things.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_crash as Informed as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | before.sa_flags & libc::SA_RESTART;
            libc::sigfillset(&mut action.sa_mask);
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Restores the handlers that [`install_crash_drain`] replaced, unless another handler was set since.
pub fn remove_crash_drain() {
    for (place, signal) in PREVIOUS_ACTIONS.iter().zip(SIGNALS) {
        let before = place.observe();
        if !before.is_null() && action_of(signal).is_some_and(|action| is_ours(&action)) {
            // SAFETY: stored by `install_crash_drain` and never freed.
            unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Gives the thread a signal stack, so that a handler can run after the thread's own stack overflowed. An existing
/// signal stack that is large enough is kept. A smaller one is replaced, and the code that allocated it frees it.
fn install_signal_stack() {
    const GUARD_BYTES: usize = 64 * 1024;
    // SAFETY: reads the current stack, maps fresh memory, makes its lower part inaccessible, and gives the upper part
    // to the kernel. No other code uses that memory.
    unsafe {
        let mut now: libc::stack_t = std::mem::zeroed();
        let is_known = libc::sigaltstack(std::ptr::null(), &mut now) == 0;
        let is_enough = now.ss_flags & libc::SS_DISABLE == 0 && now.ss_size >= STACK_BYTES;
        if !is_known || is_enough {
            return;
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = GUARD_BYTES + STACK_BYTES;
        let base = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        if base == libc::MAP_FAILED {
            return;
        }
        libc::mprotect(base, GUARD_BYTES, libc::PROT_NONE);
        let stack = libc::stack_t { ss_sp: base.add(GUARD_BYTES), ss_flags: 0, ss_size: STACK_BYTES };
        libc::sigaltstack(&stack, std::ptr::null_mut());
    }
}

extern "C" fn on_crash(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: errno of this thread. A handler that returns must leave it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    // A vfork child shares this memory until it executes its program. It has a pid of its own, and nothing queued.
    // SAFETY: getpid has no preconditions.
    let own = existing().filter(|pipeline| pipeline.process == unsafe { libc::getpid() } as u32);
    let written = own.filter(|pipeline| write_queued(pipeline));
    let Some(index) = SIGNALS.iter().position(|each| *each == signal) else { return };
    // Pairs with `publish` in `install_crash_drain`.
    let before = PREVIOUS_ACTIONS[index].observe();
    // SAFETY: stored before this handler was set, and never freed.
    match unsafe { before.as_ref() } {
        Some(before) if before.sa_sigaction != libc::SIG_DFL => {
            call(before, signal, info, context);
            if ends_now(signal, info) {
                written.into_iter().for_each(unlink_in_handler);
            } else {
                door::open_again();
            }
        }
        _ => {
            written.into_iter().for_each(unlink_in_handler);
            raise_with_old_action(signal, info);
        }
    }
    // SAFETY: as above: errno of this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Waits until all accepted records are written. Returns whether this happened in time.
fn write_queued(pipeline: &Pipeline) -> bool {
    let begun = monotonic_ns();
    let left = (TIMEOUT.as_nanos() as u64).saturating_sub(SPENT_NS.load(Ordering::Relaxed));
    if left == 0 || !pipeline.collector_runs.is_running() || is_native_thread() {
        return false;
    }
    // From here on no logging call returns, since its record would not be covered by the wait. If the crash interrupted
    // a push of this thread, that push never completes, and its record was never accepted.
    let patience = SIGNAL_TIMEOUT.min(Duration::from_nanos(left));
    door::shut_for_a_while(pipeline, begun + MAX_BLOCKED.as_nanos() as u64, patience);
    let ticket = pipeline.request();
    let is_answered = || pipeline.answered.observe() >= ticket;
    while !is_answered() && monotonic_ns() < begun + left {
        sleep_interruptibly(Duration::from_micros(200));
    }
    SPENT_NS.fetch_add(monotonic_ns() - begun, Ordering::Relaxed);
    is_answered()
}

/// Whether this thread is the collector or a writer. Such a thread would wait for itself.
fn is_native_thread() -> bool {
    // Compare the thread's name, because access to thread-local variables of a library that was loaded late may
    // allocate.
    let mut name = [0_u8; 16];
    // SAFETY: the buffer has the 16 bytes that the kernel writes for a thread's name.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    // SAFETY: a plain system call without preconditions. The process's first thread may have any name, and is never one
    // of ours.
    let is_first = thread_id() == unsafe { libc::getpid() };
    !is_first && matches!(&name[..length], b"logspool" | b"logspool-write")
}

/// Calls the previous handler as the kernel would have called it.
fn call(before: &libc::sigaction, signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passed both pointers for this call, and the program installed the handler. The signal stays
    // blocked even if the program's handler asked otherwise. So a handler that raises the signal again, as faulthandler
    // does, returns before the process ends.
    unsafe {
        if before.sa_flags & libc::SA_RESETHAND != 0 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut blocked =
            if context.is_null() { before.sa_mask } else { (*context.cast::<libc::ucontext_t>()).uc_sigmask };
        for other in 1..=64 {
            if other == signal || libc::sigismember(&before.sa_mask, other) == 1 {
                libc::sigaddset(&mut blocked, other);
            }
        }
        let mut ours: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, &mut ours);
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, Informed>(before.sa_sigaction)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(before.sa_sigaction)(signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &ours, std::ptr::null_mut());
    }
}

/// Whether the process ends when the handler returns. It does if the signal has its default action and is either
/// pending or will be raised again by the faulting instruction.
fn ends_now(signal: libc::c_int, info: *const libc::siginfo_t) -> bool {
    // SAFETY: an all-zero set is a valid buffer for the answer; the kernel passed `info` for this call.
    let comes_again = unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        let waits = libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, signal) == 1;
        waits || info.as_ref().is_some_and(|info| info.si_code > 0)
    };
    comes_again && action_of(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL)
}

/// Sends the signal again, so that its default action follows when the handler returns. Passes the same `info`, so that
/// a core dump shows the original fault.
fn raise_with_old_action(signal: libc::c_int, info: *const libc::siginfo_t) {
    // SAFETY: async-signal-safe calls; the kernel passed `info` for this call. A process may send itself any `info`.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let thread = thread_id();
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), thread, signal, info) != 0 {
            libc::raise(signal);
        }
    }
}
