//! Native threads.
//!
//! A thread keeps its process alive. If `main` of a C program ends with `pthread_exit`, the kernel ends the process only
//! after its last thread. [`program_has_left`] tells the collector that only native threads are left, so that it can end
//! the process.
//!
//! A fork waits until the native threads have ended. [`Count`] tells it whether waiting longer can help.

use std::ffi::OsStr;
use std::path::Path;

use super::opening::{entries, read};
use crate::fork_safe_lock::PerProcess;
use crate::platform;

/// The native threads of this copy of the library.
static OWN: PerProcess<Own> = PerProcess::new();

#[derive(Default)]
struct Own {
    /// Number of threads that were started and have not run yet. Until a thread runs, it has the name of the thread
    /// that started it.
    begins: usize,
    /// Ids of the running threads.
    running: Vec<libc::pid_t>,
}

/// The calling thread, listed in [`OWN`].
struct Listed(libc::pid_t);

impl Listed {
    fn new() -> Self {
        let id = platform::thread_id();
        OWN.with(|own| {
            own.begins -= 1;
            own.running.push(id);
        });
        Self(id)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        OWN.with(|own| own.running.retain(|id| *id != self.0));
    }
}

/// Starts a native thread with all signals blocked, because signals are for the program's own threads. Returns whether
/// it was started.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    let run = || {
        let _listed = Listed::new();
        run();
    };
    OWN.with(|own| own.begins += 1);
    // SAFETY: plain operations on local signal sets.
    let is_started = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = std::thread::Builder::new().name(name.to_owned()).stack_size(512 * 1024).spawn(run);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.is_ok()
    };
    if !is_started {
        OWN.with(|own| own.begins -= 1);
    }
    is_started
}

/// The begin of the name of every native thread.
const PREFIX: &[u8] = b"logspool";

/// The threads of this process, as the kernel lists them. It lists a thread until its very end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Native threads of all copies of the library.
    pub native: usize,
    /// The native threads that need nothing but a processor: they run, or wait for their turn.
    pub runnable: usize,
    /// The native threads that wait for a disk, or for another thing that no signal interrupts.
    pub on_disk: usize,
    /// All other threads.
    pub of_the_program: usize,
}

impl Count {
    /// Counts the threads. All counts are 0 if `/proc` cannot be read.
    pub fn now() -> Self {
        // A thread that gets its name after this line counts twice: as native, and not as the program's.
        let (begins, own) = OWN.with(|own| (own.begins, own.running.clone()));
        let mut count = Self { native: begins, runnable: begins, ..Self::default() };
        // The program's own name may begin like ours. Its threads have that name unless they choose another.
        let program = read("/proc/self/comm").unwrap_or_default();
        let folder = Path::new("/proc/self/task");
        for thread in entries(folder).unwrap_or_default() {
            let is_own = id_of(&thread.name).is_some_and(|id| own.contains(&id));
            let thread = folder.join(thread.name);
            // `comm` has only the name, and costs the kernel less than `stat`.
            let Ok(name) = read(thread.join("comm")) else { continue };
            if is_own || name.starts_with(PREFIX) && name != program {
                let state = state_in(&read(thread.join("stat")).unwrap_or_default());
                count.native += 1;
                count.runnable += usize::from(state == Some(b'R'));
                count.on_disk += usize::from(state == Some(b'D'));
            } else {
                count.of_the_program += 1;
            }
        }
        count.of_the_program = count.of_the_program.saturating_sub(begins);
        count
    }
}

/// Id of a thread, from the name of its folder.
fn id_of(name: &OsStr) -> Option<libc::pid_t> {
    name.to_str()?.parse().ok()
}

/// State of a thread, from its file `stat`. It follows the name, which is in parentheses.
fn state_in(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

/// Whether every thread of the program has ended, so that only native threads keep the process alive. `false` if
/// `/proc` cannot be read.
pub fn program_has_left() -> bool {
    let Ok(stat) = read("/proc/self/stat") else { return false };
    if state_in(&stat) != Some(b'Z') {
        return false;
    }
    let Ok(threads) = entries("/proc/self/task") else { return false };
    let threads: Option<Vec<libc::pid_t>> = threads.iter().map(|thread| id_of(&thread.name)).collect();
    let main = std::process::id() as libc::pid_t;
    threads.is_some_and(|threads| {
        OWN.with(|own| threads.iter().all(|thread| *thread == main || own.running.contains(thread)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        assert_eq!(Some(b'S'), state_in(b"7 (a) R (b) S 1 7 7 0 -1"));
        assert_eq!(None, state_in(b"7 (a"));
        assert_eq!(None, state_in(b"7 (a)"));
    }

    #[test]
    fn a_native_thread_is_told_from_one_of_the_program_and_a_busy_one_from_one_that_waits() {
        let before = Count::now();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        assert!(spawn("logspool-test", move || ends.recv().unwrap_or_default()));
        let (stop, stops) = std::sync::mpsc::channel::<()>();
        assert!(spawn("logspool-busy", move || {
            while stops.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                std::hint::spin_loop();
            }
        }));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let is_reached = |native, runnable| loop {
            let now = Count::now();
            if (now.native, now.runnable) == (before.native + native, before.runnable + runnable) {
                break true;
            }
            if std::time::Instant::now() > deadline {
                break false;
            }
            std::thread::yield_now();
        };

        assert!(is_reached(2, 1), "{:?}", Count::now());
        drop(stop);
        assert!(is_reached(1, 0), "{:?}", Count::now());
        drop(end);
        assert!(is_reached(0, 0), "{:?}", Count::now());
        assert!(before.of_the_program > 0);
    }
}
