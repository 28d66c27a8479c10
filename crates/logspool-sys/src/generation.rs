//! Tells a forked child from its parent with one load.
//!
//! The kernel wipes one private page in every forked child (MADV_WIPEONFORK, Linux 4.14). So does a handler that the C
//! library calls in forked children: some kernels do not know the advice, and user-mode emulators accept it without doing
//! it. The page holds two numbers:
//!
//! - the *turn* also moves when the native threads leave before a fork and when a segment is given up: a producer whose
//!   turn is not the page's takes the slow way once;
//! - the *process number* stays the same for the life of a process. No two processes in a line of parents and children
//!   have the same one, while a process id may come back in a grandchild.
//!
//! Atomics outside `queue` and `stats`: the page's address and its two words.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Turn of a forked child that has not begun anew.
pub const WIPED: u64 = 0;

#[repr(C)]
struct Page {
    turn: AtomicU64,
    process: AtomicU64,
    /// Process id of the process that has the number.
    pid: AtomicU32,
}

/// The page, once it is made; never unmapped.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());

/// The C library calls it in forked children.
extern "C" fn wipe() {
    // SAFETY: stored by `make_page` and never unmapped.
    let Some(page) = (unsafe { PAGE.load(Ordering::Acquire).as_ref() }) else { return };
    // Where another handler has logged before this one, the child has begun anew already.
    if page.pid.load(Ordering::Relaxed) != std::process::id() {
        page.turn.store(WIPED, Ordering::Relaxed);
        page.process.store(WIPED, Ordering::Relaxed);
    }
}

#[inline]
fn page() -> &'static Page {
    // SAFETY: stored by `make_page` and never unmapped.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }.unwrap_or_else(make_page)
}

#[cold]
fn make_page() -> &'static Page {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh private mapping; page size and more.
    let made = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
    assert!(made != libc::MAP_FAILED, "the kernel refused one page of memory");
    let made = made.cast::<Page>();
    // SAFETY: the page is aligned, zeroed, and nobody else knows it yet.
    let page = unsafe {
        libc::madvise(made.cast(), 4096, libc::MADV_WIPEONFORK);
        &*made
    };
    number_process(page);
    page.turn.store(1, Ordering::Relaxed);
    // Release pairs with the Acquire of the loads: whoever finds the page finds its first turn.
    match PAGE.compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: `wipe` only stores to memory that lives for ever.
            unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
            page
        }
        Err(other) => {
            // SAFETY: `made` was mapped above and nobody knows it; `other` is never unmapped.
            unsafe {
                libc::munmap(made.cast(), 4096);
                &*other
            }
        }
    }
}

/// The turn's address, for producers to keep: they compare it with one load.
#[inline]
pub fn word() -> &'static AtomicU64 {
    &page().turn
}

/// The turn now; [`WIPED`] in a forked child that has not begun anew.
#[inline]
pub fn turn() -> u64 {
    page().turn.load(Ordering::Relaxed)
}

/// Begins another turn: every producer takes the slow way once. Ends the wiped state of a child.
pub fn advance() -> u64 {
    // Before the turn: `wipe` leaves alone what has a turn in this process.
    process();
    // A static beside the page: a child continues where the parent's count was, so no turn comes twice.
    static LAST: AtomicU64 = AtomicU64::new(1);
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // Release pairs with the fence in `make_room`: who takes over this turn sees that the process is dying, if it is.
    page().turn.store(next, Ordering::Release);
    next
}

/// The number of this process, see the file head. Async-signal-safe once the page is made.
#[inline]
pub fn process() -> u64 {
    let page = page();
    match page.process.load(Ordering::Relaxed) {
        WIPED => number_process(page),
        number => number,
    }
}

#[cold]
fn number_process(page: &Page) -> u64 {
    // A child continues where its parent's count was.
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
    fn no_two_processes_of_a_line_have_the_same_number() {
        let own = process();
        let in_child = |numbers: &[u64]| -> libc::c_int {
            let number = process();
            libc::c_int::from(number == WIPED || numbers.contains(&number) || number != process())
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
