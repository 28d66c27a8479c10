//! Tells a forked child from its parent with one load.
//!
//! One private page is wiped by the kernel in every forked child (MADV_WIPEONFORK, Linux 4.14). In the
//! parent it holds the *turn*, a number that also moves when the native threads leave before a fork and
//! when a segment is given up: a producer whose turn is not the page's takes the slow way once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Turn of a forked child that has not begun anew.
pub const WIPED: u64 = 0;

/// Address of the page, once it is made.
static PAGE: OnceLock<usize> = OnceLock::new();

/// Called by the C library in forked children on kernels without MADV_WIPEONFORK.
extern "C" fn wipe() {
    if let Some(address) = PAGE.get() {
        // SAFETY: the address of an atomic that lives for ever.
        unsafe { &*(*address as *const AtomicU64) }.store(WIPED, Ordering::Relaxed);
    }
}

fn page() -> &'static AtomicU64 {
    let address = *PAGE.get_or_init(|| {
        // SAFETY: a fresh private mapping; page size and more.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(page != libc::MAP_FAILED, "the kernel refused one page of memory");
        // SAFETY: the range was just mapped.
        if unsafe { libc::madvise(page, 4096, libc::MADV_WIPEONFORK) } != 0 {
            // Kernels before 4.14.
            // SAFETY: `wipe` only stores to memory that lives for ever.
            unsafe { libc::pthread_atfork(None, None, Some(wipe)) };
        }
        // SAFETY: the page is aligned, zeroed and never unmapped.
        unsafe { (*page.cast::<AtomicU64>()).store(1, Ordering::Relaxed) };
        page as usize
    });
    // SAFETY: the address of an atomic that lives for ever.
    unsafe { &*(address as *const AtomicU64) }
}

/// The page's address, for producers to keep: they compare it with one load.
pub fn word() -> &'static AtomicU64 {
    page()
}

/// The turn now; [`WIPED`] in a forked child that has not begun anew.
pub fn turn() -> u64 {
    page().load(Ordering::Relaxed)
}

/// Begins another turn: every producer takes the slow way once. Ends the wiped state of a child.
pub fn advance() -> u64 {
    // A static beside the page: a child continues where the parent's count was, so no turn comes twice.
    static LAST: AtomicU64 = AtomicU64::new(1);
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // Release pairs with the fence in `make_room`: who takes over this turn sees that the process is dying, if it is.
    page().store(next, Ordering::Release);
    next
}
