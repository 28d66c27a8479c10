//! Probes the system calls that guarantees depend on, once per process.
//!
//! An emulator, a sandbox or a container's filter may refuse a call that the host's kernel supports. Each such call has
//! a weaker replacement. [`missing`] lists the refused calls and the effects of their loss, for `health()` and
//! `doctor`.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: one word for each call with the result
//! of its probe. Two threads that probe at the same time find the same result, and a forked child keeps it.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::platform;

/// A system call that a guarantee depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemCall {
    /// `fcntl` with `F_SETLK` and `F_GETLK`: shows whether the process that made a queue is alive.
    RecordLocks,
    /// `membarrier` with `MEMBARRIER_CMD_PRIVATE_EXPEDITED`: the rare side of a barrier, see `barrier.rs`.
    Membarrier,
    /// `madvise` with `MADV_WIPEONFORK`: distinguishes a forked child from its parent, see `generation.rs`.
    WipeOnFork,
    /// `madvise` with `MADV_DONTFORK`: keeps the queue out of forked children.
    DontFork,
    /// `futex` on a word of this process: the collector sleeps on it.
    Futex,
    /// `memfd_create`: memory that is a file without a name.
    Memfd,
}

/// A system call that does not work in this environment.
#[derive(Debug, Clone, Copy)]
pub struct MissingCall {
    /// The call.
    pub call: SystemCall,
    /// The call with its arguments, as a user would look it up.
    pub name: &'static str,
    /// The guarantee that is weaker without this call.
    pub weaker: &'static str,
    /// How the user can make the call work.
    pub remedy: &'static str,
    /// Whether a killed program may lose records without this call.
    pub costs_records: bool,
    /// The error number that the call returned.
    pub errno: i32,
}

const CALLS: [SystemCall; 6] = [
    SystemCall::RecordLocks,
    SystemCall::Membarrier,
    SystemCall::WipeOnFork,
    SystemCall::DontFork,
    SystemCall::Futex,
    SystemCall::Memfd,
];

/// Result of the probe of each call: [`UNKNOWN`], [`WORKS`], or the error number.
static RESULTS: [AtomicI32; CALLS.len()] = [const { AtomicI32::new(UNKNOWN) }; CALLS.len()];
const UNKNOWN: i32 = -1;
const WORKS: i32 = 0;

/// Bytes of a page; the kernel rounds mappings up to it.
const PAGE: usize = 4096;

/// Whether record locks work.
pub fn has_record_locks() -> bool {
    errno_of(SystemCall::RecordLocks) == WORKS
}

/// Whether a thread can sleep on a futex word.
pub fn has_futex() -> bool {
    errno_of(SystemCall::Futex) == WORKS
}

/// Whether memfd_create(2) works.
pub fn has_memfd() -> bool {
    errno_of(SystemCall::Memfd) == WORKS
}

/// The calls that do not work in this environment, each with its effect.
pub fn missing() -> Vec<MissingCall> {
    let missing = |call: &SystemCall| Some(describe(*call, errno_of(*call))).filter(|missing| missing.errno != WORKS);
    CALLS.iter().filter_map(missing).collect()
}

/// Forks a child to test whether MADV_WIPEONFORK has an effect: user-mode emulators accept it without one. For small
/// programs only, since a fork of a large one is slow.
pub fn try_wipe_on_fork() {
    if errno_of(SystemCall::WipeOnFork) == WORKS && !is_wiped_in_child() {
        RESULTS[SystemCall::WipeOnFork as usize].store(libc::EOPNOTSUPP, Ordering::Relaxed);
    }
}

fn is_wiped_in_child() -> bool {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping that no other thread has, unmapped at the end. The child reads it and ends by `_exit`.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return true;
        }
        libc::madvise(page, PAGE, libc::MADV_WIPEONFORK);
        page.cast::<u8>().write_volatile(1);
        let child = libc::fork();
        if child == 0 {
            libc::_exit(page.cast::<u8>().read_volatile().into());
        }
        let mut status = 0;
        let is_wiped = libc::waitpid(child, &mut status, 0) != child || status == 0;
        libc::munmap(page, PAGE);
        is_wiped
    }
}

fn errno_of(call: SystemCall) -> i32 {
    let result = &RESULTS[call as usize];
    let known = result.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known;
    }
    let found = probe(call);
    result.store(found, Ordering::Relaxed);
    found
}

fn probe(call: SystemCall) -> i32 {
    match call {
        SystemCall::RecordLocks => probe_record_locks(),
        SystemCall::Membarrier => probe_membarrier(),
        SystemCall::WipeOnFork => probe_advice(libc::MADV_WIPEONFORK),
        SystemCall::DontFork => probe_advice(libc::MADV_DONTFORK),
        SystemCall::Futex => probe_futex(),
        SystemCall::Memfd => probe_memfd(),
    }
}

fn describe(call: SystemCall, errno: i32) -> MissingCall {
    let allow = "let the container's filter (seccomp) or sandbox allow the call, or use a kernel that has it";
    let (name, weaker, costs_records) = match call {
        SystemCall::RecordLocks => (
            "fcntl(F_SETLK)",
            "no process can see whether a program lives: its queue is in memory, and a killed program loses what is \
             queued; nothing is recovered, and programs that share a log file do not take turns",
            true,
        ),
        SystemCall::Membarrier => (
            "membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)",
            "the end of the process and the close of an output wait 1 ms instead; nothing is lost",
            false,
        ),
        SystemCall::WipeOnFork => (
            "madvise(MADV_WIPEONFORK)",
            "a child is noticed only where fork() of the C library made it; one that a program makes by the system \
             call itself must not log",
            false,
        ),
        SystemCall::DontFork => (
            "madvise(MADV_DONTFORK)",
            "forked children inherit the mapping of their parent's queue, which they never use; nothing is lost",
            false,
        ),
        SystemCall::Futex => (
            "futex(FUTEX_WAIT)",
            "the queue is looked at every millisecond while nothing is logged, which takes processor time; nothing is \
             lost",
            false,
        ),
        SystemCall::Memfd => (
            "memfd_create",
            "where no tmpfs can be used, the queue is in plain memory, and a killed program loses what is queued; a \
             queue on tmpfs does not need the call",
            false,
        ),
    };
    MissingCall { call, name, weaker, remedy: allow, costs_records, errno }
}

/// The error number of a system call, or [`WORKS`] if it succeeded.
fn errno(result: libc::c_long) -> i32 {
    // Some sandboxes fail without setting an error number. That counts as a failure, too.
    if result >= 0 { WORKS } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS).max(1) }
}

fn probe_memfd() -> i32 {
    make_memfd().map_or_else(|errno| errno, |_| WORKS)
}

fn make_memfd() -> Result<File, i32> {
    let made = platform::memory_file(c"logspool-probe", 0).map(File::from);
    made.map_err(|error| error.raw_os_error().unwrap_or(libc::ENOSYS).max(1))
}

fn probe_record_locks() -> i32 {
    // The file is used by this probe only, so closing it releases no record lock of other code.
    let file = make_memfd().ok().or_else(|| File::open("/proc/self/exe").ok());
    let Some(file) = file else { return WORKS };
    let whole = |kind: libc::c_int| libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    let (taken, mut asked) = (whole(libc::F_RDLCK), whole(libc::F_RDLCK));
    // SAFETY: the descriptor is open, and both locks live through the calls.
    unsafe {
        match errno(libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &taken).into()) {
            WORKS => errno(libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut asked).into()),
            refused => refused,
        }
    }
}

fn probe_membarrier() -> i32 {
    match platform::has_expedited_barrier() {
        Ok(true) => WORKS,
        Ok(false) => libc::EINVAL,
        Err(errno) => errno,
    }
}

fn probe_advice(advice: libc::c_int) -> i32 {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping that no other thread has, unmapped at the end.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return WORKS;
        }
        let result = errno(libc::madvise(page, PAGE, advice).into());
        libc::munmap(page, PAGE);
        result
    }
}

fn probe_futex() -> i32 {
    let word = 0_u32;
    // SAFETY: the word lives through the call. The call returns at once, because the word is not 1.
    match unsafe { platform::futex_wait(&raw const word, 1, None) } {
        libc::EAGAIN => WORKS,
        result => result,
    }
}

/// Largest size of a file that this process may make (RLIMIT_FSIZE). A call that makes a larger one sends SIGXFSZ,
/// which ends the process.
pub fn max_file_bytes() -> u64 {
    // SAFETY: an all-zero rlimit is valid, and getrlimit fills it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 { limit.rlim_cur } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_works_is_not_listed_as_missing() {
        try_wipe_on_fork();
        for call in CALLS {
            assert_eq!(call, CALLS[call as usize]);
            let listed = missing().iter().any(|missing| missing.call == call);
            assert_eq!(errno_of(call) != WORKS, listed, "{call:?}");
        }
    }

    #[test]
    fn every_missing_call_is_described() {
        for call in CALLS {
            let missing = describe(call, libc::ENOSYS);
            assert!(!missing.name.is_empty() && !missing.weaker.is_empty() && !missing.remedy.is_empty());
            assert_eq!((call, libc::ENOSYS), (missing.call, missing.errno));
        }
    }
}
