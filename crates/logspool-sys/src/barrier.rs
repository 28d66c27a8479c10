//! A store-load barrier that costs the frequent side nothing; the rare side pays for both sides.
//!
//! Two threads each store a word and then load the other thread's word; they must not both load the old value (Dekker
//! 1965). With [`light`] between store and load on one side and [`heavy`] on the other side, at least one thread loads
//! the new value. `light` only keeps the compiler from reordering. `heavy` makes every running thread of the process
//! pass a full barrier, by `membarrier(2)` (MEMBARRIER_CMD_PRIVATE_EXPEDITED, Linux 4.14).

/// The frequent side of the barrier in model runs: a full fence.
#[cfg(loom)]
pub fn light() {
    if !crate::sync::is_weakened("light") {
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }
}

/// The rare side of the barrier in model runs: a full fence.
#[cfg(loom)]
pub fn heavy() {
    if !crate::sync::is_weakened("heavy") {
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
    }
}

/// The barrier of the frequent side: a compiler fence. Pairs with [`heavy`].
#[cfg(not(loom))]
#[inline(always)]
pub fn light() {
    // Ordering: loom does not know compiler fences. The models use the full fence in the function above instead.
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// The barrier of the rare side. Async-signal-safe.
#[cfg(not(loom))]
pub fn heavy() {
    use std::time::Duration;

    crate::crossing::full_fence("heavy");
    // SAFETY: plain system calls without pointers. A forked child registers again.
    let done = unsafe {
        let expedited = || libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
        expedited()
            || libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0
                && expedited()
    };
    if !done {
        // The kernel is too old, or a container forbids the call, so this thread waits instead. A processor empties its
        // store buffer in less than a microsecond, and a thread that is not running passed a barrier when it was
        // stopped.
        crate::sleep::sleep_interruptibly(Duration::from_millis(1));
    }
}
