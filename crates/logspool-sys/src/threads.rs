//! Native threads.
//!
//! A thread keeps its process alive. If `main` of a C program ends with `pthread_exit`, the kernel ends the process only
//! after its last thread. [`program_has_left`] tells the collector that only native threads are left, so that it can end
//! the process.

use super::opening::{entries, read};
use crate::fork_safe_lock::PerProcess;

/// Ids of the running native threads of this copy of the library.
static RUNNING: PerProcess<Vec<libc::pid_t>> = PerProcess::new();

/// The calling thread, listed in [`RUNNING`].
struct Listed(libc::pid_t);

impl Listed {
    fn new() -> Self {
        // SAFETY: no preconditions.
        let id = unsafe { libc::gettid() };
        RUNNING.with(|running| running.push(id));
        Self(id)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        RUNNING.with(|running| running.retain(|id| *id != self.0));
    }
}

/// Starts a native thread with all signals blocked, because signals are for the program's own threads. Returns whether
/// it was started.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    let run = || {
        let _listed = Listed::new();
        run();
    };
    // SAFETY: plain operations on local signal sets.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = std::thread::Builder::new().name(name.to_owned()).stack_size(512 * 1024).spawn(run);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.is_ok()
    }
}

/// Whether every thread of the program has ended, so that only native threads keep the process alive. `false` if
/// `/proc` cannot be read.
pub fn program_has_left() -> bool {
    let Ok(stat) = read("/proc/self/stat") else { return false };
    // The state of the main thread follows the name of the program, which is in parentheses.
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
    if state != Some(&b'Z') {
        return false;
    }
    let Ok(threads) = entries("/proc/self/task") else { return false };
    let threads: Option<Vec<libc::pid_t>> = threads.iter().map(|thread| thread.name.to_str()?.parse().ok()).collect();
    let main = std::process::id() as libc::pid_t;
    threads.is_some_and(|threads| {
        RUNNING.with(|running| threads.iter().all(|thread| *thread == main || running.contains(thread)))
    })
}
