//! Steps of an append at which tests end or delay a process. Without a test they have no effect.
//!
//! An atomic outside `queue` and `stats`: the test's function. It is read with one load per append.

use logspool_sys::published::Published;
use std::sync::atomic::AtomicPtr;

/// The step that a process has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendStep {
    /// The lock was taken.
    Entered,
    /// The intent was written.
    Intended,
    /// Bytes were appended.
    Appended,
    /// The segment has noted the appended bytes; the intent is about to be cleared.
    Noted,
    /// The intent was cleared.
    Cleared,
    /// The remaining bytes of a dead writer were appended, but are not noted yet.
    Repaired,
    /// A file was renamed.
    Renamed,
    /// At least half of a backup is compressed.
    Compressing,
    /// A backup is compressed, under a temporary name.
    Compressed,
    /// The compressed file has its final name; the plain one still exists.
    Placed,
    /// The plain file is removed.
    Removed,
}

/// Returns how many of the given bytes may be appended now. A smaller number cuts the write, as a kill during the write
/// does.
pub type StepWatcher = fn(AppendStep, usize) -> usize;

static WATCH: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Calls `watch` at every step of this process, with 0 bytes. Also calls it before every append, as
/// [`AppendStep::Intended`], with the number of bytes of the append.
#[doc(hidden)]
pub fn watch(watch: StepWatcher) {
    WATCH.publish(watch as *mut ());
}

fn watcher() -> Option<StepWatcher> {
    let watch = WATCH.observe();
    // SAFETY: stored by `watch` from a function of this very type, or null, which is `None`.
    unsafe { std::mem::transmute::<*mut (), Option<StepWatcher>>(watch) }
}

/// Reports a step to the test's function, if there is one.
#[inline]
pub fn reach(step: AppendStep) {
    if let Some(watch) = watcher() {
        watch(step, 0);
    }
}

/// Asks the test's function how many of `bytes` may be appended.
#[inline]
pub(super) fn allowed(bytes: usize) -> usize {
    watcher().map_or(bytes, |watch| watch(AppendStep::Intended, bytes).clamp(1, bytes.max(1)))
}
