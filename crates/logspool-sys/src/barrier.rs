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

/// Registers the process for [`heavy`], which otherwise does it. A forked child registers again.
///
/// In a process with several threads the kernel waits 5 to 30 ms here; in one with a single thread it does not.
#[cfg(not(loom))]
pub fn register() -> bool {
    crate::platform::register_expedited_barrier()
}

/// As [`register`], but only if the process has a single thread. Call it before threads are started.
#[cfg(not(loom))]
pub fn register_early() {
    use std::os::unix::fs::MetadataExt;

    // A folder has two links and one for each folder in it.
    if std::fs::metadata("/proc/self/task").is_ok_and(|threads| threads.nlink() == 3) {
        register();
    }
}

/// The barrier of the rare side. Async-signal-safe.
#[cfg(not(loom))]
pub fn heavy() {
    use std::time::Duration;

    crate::crossing::full_fence("heavy");
    let expedited = crate::platform::expedited_barrier;
    let done = expedited() || register() && expedited();
    if !done {
        // The kernel is too old, or a container forbids the call, so this thread waits instead. A processor empties its
        // store buffer in less than a microsecond, and a thread that is not running passed a barrier when it was
        // stopped.
        crate::sleep::sleep_interruptibly(Duration::from_millis(1));
    }
}
