//! Places in the order of an append at which tests end or hold up a process. Nothing is done here otherwise.
//!
//! An atomic outside `queue` and `stats`: the test's function, looked for with one load an append.

use logspool_sys::published::Published;
use std::sync::atomic::AtomicPtr;

/// What was just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The lock was taken.
    Entered,
    /// The intent was written.
    Intended,
    /// Bytes were appended.
    Appended,
    /// The segment has noted them; the intent is about to be taken back.
    Noted,
    /// The intent was taken back.
    Cleared,
    /// The rest of a dead writer's bytes was appended, and is not noted yet.
    Mended,
    /// A file got another name.
    Renamed,
    /// Half of a backup is compressed, or more.
    Compressing,
    /// A backup is compressed, under a name of its own.
    Compressed,
    /// The compressed file has its name; the plain one is still there.
    Placed,
    /// The plain one is gone.
    Removed,
}

/// How many of so many bytes may be appended now: fewer cuts the write, as a kill in the middle of it does.
pub type Watch = fn(Step, usize) -> usize;

static WATCH: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Has `watch` called at every step of this process, with 0 bytes, and before every append, as [`Step::Intended`].
#[doc(hidden)]
pub fn watch(watch: Watch) {
    WATCH.publish(watch as *mut ());
}

fn watcher() -> Option<Watch> {
    let watch = WATCH.observe();
    // SAFETY: stored by `watch` from a function of this very type, or null, which is `None`.
    unsafe { std::mem::transmute::<*mut (), Option<Watch>>(watch) }
}

/// Notes a step.
#[inline]
pub fn reach(step: Step) {
    if let Some(watch) = watcher() {
        watch(step, 0);
    }
}

/// How many of `bytes` may be appended.
#[inline]
pub(super) fn allowed(bytes: usize) -> usize {
    watcher().map_or(bytes, |watch| watch(Step::Intended, bytes).clamp(1, bytes.max(1)))
}
