//! Distinguishes a forked child from its parent with one load.
//!
//! The kernel wipes one private page in every forked child (MADV_WIPEONFORK, Linux 4.14). A handler that the C library
//! calls in forked children wipes it too: some kernels lack the advice, and user-mode emulators accept it without
//! effect. The page holds two numbers:
//!
//! - The *generation* also changes when the native threads stop before a fork, and when a segment is dropped. If it
//!   differs from a producer's generation, that producer takes the slow path once.
//! - The *process number* stays the same for the life of a process. It is unique among a process, its ancestors and its
//!   descendants, while a grandchild may get an earlier process id again.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the page's address and its two words.

use crate::published::Published;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Generation of a forked child that has not called [`advance`] yet.
pub const WIPED: u64 = 0;

#[repr(C)]
struct Page {
    generation: AtomicU64,
    process: AtomicU64,
    /// Process id of the process that took the number.
    pid: AtomicU32,
}

/// Address of the page, null before the page is made. The page is never unmapped.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());

/// Called by the C library in forked children.
extern "C" fn wipe() {
    // SAFETY: stored by `make_page` and never unmapped.
    let Some(page) = (unsafe { PAGE.observe().as_ref() }) else { return };
    // If an earlier fork handler has logged, the child already has a generation and a number of its own.
    if page.pid.load(Ordering::Relaxed) != std::process::id() {
        page.generation.store(WIPED, Ordering::Relaxed);
        page.process.store(WIPED, Ordering::Relaxed);
    }
}

#[inline]
fn page() -> &'static Page {
    // SAFETY: stored by `make_page` and never unmapped.
    unsafe { PAGE.observe().as_ref() }.unwrap_or_else(make_page)
}

#[cold]
fn make_page() -> &'static Page {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh private mapping; page size and more.
    let made = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    assert!(made != libc::MAP_FAILED, "the kernel refused one page of memory");
    let made = made.cast::<Page>();
    // SAFETY: the page is aligned and zeroed, and no other thread has its address yet.
    let page = unsafe {
        if !cfg!(miri) {
            libc::madvise(made.cast(), 4096, libc::MADV_WIPEONFORK);
        }
        &*made
    };
    number_process(page);
    page.generation.store(1, Ordering::Relaxed);
    // Pairs with `observe` in `page`: a thread that loads the page's address also sees its first generation.
    match PAGE.publish_over(std::ptr::null_mut(), made) {
        Ok(()) => {
            // Miri has no forks.
            if !cfg!(miri) {
                // SAFETY: `wipe` only stores to memory that lives for ever.
                unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
            }
            page
        }
        Err(other) => {
            // SAFETY: `made` was mapped above and no other thread has its address; `other` is never unmapped.
            unsafe {
                libc::munmap(made.cast(), 4096);
                &*other
            }
        }
    }
}

/// Address of the generation. Producers keep it and compare the generation with one load.
#[inline]
pub fn word() -> &'static AtomicU64 {
    &page().generation
}

/// The current generation; [`WIPED`] in a forked child that has not called [`advance`] yet.
#[inline]
pub fn current() -> u64 {
    page().generation.load(Ordering::Relaxed)
}

/// As [`current`]. Also makes visible what other threads did before that generation began.
#[inline]
pub fn observed() -> u64 {
    page().generation.observe()
}

/// Begins the next generation, so that every producer takes the slow path once. In a forked child this ends the wiped
/// state.
pub fn advance() -> u64 {
    // Take the process number before the generation changes: `wipe` leaves the page unchanged if this process has its
    // number.
    process();
    // The counter is outside the page: a child continues its parent's count, so no generation occurs twice.
    static LAST: AtomicU64 = AtomicU64::new(1);
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // Pairs with `observed` in `make_room`: a producer that sees this generation also sees whether the process is
    // dying.
    page().generation.publish(next);
    next
}

/// The number of this process, see the module documentation. Async-signal-safe once the page is made.
#[inline]
pub fn process() -> u64 {
    let page = page();
    match page.process.load(Ordering::Relaxed) {
        WIPED => number_process(page),
        number => number,
    }
}

/// The process id, without a system call.
#[inline]
pub fn process_id() -> u32 {
    // A process that has its number has stored its id before.
    process();
    page().pid.load(Ordering::Relaxed)
}

#[cold]
fn number_process(page: &Page) -> u64 {
    // A child continues its parent's count, so no number occurs twice.
    static LAST: AtomicU64 = AtomicU64::new(0);
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    page.pid.store(std::process::id(), Ordering::Relaxed);
    let numbered = page.process.compare_exchange(WIPED, next, Ordering::Relaxed, Ordering::Relaxed);
    numbered.map_or_else(|other| other, |_| next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_and_descendant_have_the_same_number() {
        let own = process();
        let in_child = |numbers: &[u64]| -> libc::c_int {
            let number = process();
            libc::c_int::from(
                process_id() != std::process::id()
                    || number == WIPED
                    || numbers.contains(&number)
                    || number != process(),
            )
        };
        // SAFETY: parent and children do nothing but atomics, waitpid and `_exit`.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                let mut wrong = in_child(&[own]);
                let grandchild = libc::fork();
                if grandchild == 0 {
                    // The child took its own number before.
                    libc::_exit(in_child(&[own, own + 1]));
                }
                let mut status = -1;
                libc::waitpid(grandchild, &mut status, 0);
                wrong |= libc::c_int::from(status != 0);
                libc::_exit(wrong);
            }
            let mut status = -1;
            libc::waitpid(child, &mut status, 0);
            status
        };

        assert_eq!((0, own), (status, process()));
    }
}
