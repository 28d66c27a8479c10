//! The process's current pipeline, and the number under which its ids are defined.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the current pipeline's address and
//! number, which the hot path compares.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use logspool_sys::fork_safe_lock::ForkSafeLock;
use logspool_sys::generation;
use logspool_sys::published::{Counted, Published};

use super::state::Pipeline;

static CURRENT: AtomicPtr<Pipeline> = AtomicPtr::new(std::ptr::null_mut());
static NUMBER: AtomicU64 = AtomicU64::new(1);
/// Locked while a pipeline is made or replaced. Its value is the pipeline that was replaced last.
static BEGINNING: ForkSafeLock<Option<&'static Pipeline>> = ForkSafeLock::new(None);

/// Number of the current pipeline; ids are valid only under the number under which they were defined. It changes after
/// a fork, and when the process continues after [`super::end`]. Every id must then be defined again.
///
/// This takes two loads. The hot path compares the result with the number under which its ids were defined. 0 is never
/// a pipeline's number.
#[inline]
pub fn id_epoch() -> u64 {
    // Pairs with `advance` in `retire`: a reader of the new number does not find the replaced pipeline.
    if generation::current() == generation::WIPED { 0 } else { NUMBER.observe() }
}

/// Makes the next numbers greater than `number`.
pub(super) fn continue_after(number: u64) {
    NUMBER.fetch_max(number + 1, Ordering::Relaxed);
}

/// The pipeline of this process, if there is one.
pub(super) fn existing() -> Option<&'static Pipeline> {
    if generation::current() == generation::WIPED {
        return None;
    }
    let current = CURRENT.observe();
    // SAFETY: stored by `existing_or`, never freed.
    unsafe { current.as_ref() }
}

/// Whether this process has a pipeline.
pub fn is_running() -> bool {
    existing().is_some()
}

/// The pipeline of this process. If there is none, calls `begin` with the next number and installs its result.
pub(super) fn existing_or(begin: impl FnOnce(u64) -> Option<Pipeline>) -> Option<&'static Pipeline> {
    let _beginning = BEGINNING.lock();
    if let Some(pipeline) = existing() {
        return Some(pipeline);
    }
    if generation::current() == generation::WIPED {
        // In a forked child the parent's pipeline is left untouched, since another thread may have been changing its
        // memory during the fork.
        CURRENT.store(std::ptr::null_mut(), Ordering::Relaxed);
        NUMBER.fetch_add(1, Ordering::Relaxed);
        generation::advance();
    }
    let pipeline = Box::leak(Box::new(begin(NUMBER.load(Ordering::Relaxed))?));
    CURRENT.publish(pipeline);
    Some(&*pipeline)
}

/// Removes the current pipeline. The next pipeline begins under another number.
pub(super) fn retire(pipeline: &'static Pipeline) {
    let mut last = BEGINNING.lock();
    if let Some(before) = last.replace(pipeline) {
        let _ = pipeline.before.set(before);
    }
    pipeline.is_past.publish(true);
    // The order matters. A thread that finds no pipeline begins one under the next number. A thread that reads the next
    // number no longer finds this pipeline.
    CURRENT.publish(std::ptr::null_mut());
    NUMBER.advance();
    generation::advance();
}

impl Pipeline {
    /// Whether this is still the pipeline of this process. If the process forked between two slices of a wait, the
    /// child has nothing to wait for.
    pub(super) fn is_current(&self) -> bool {
        existing().is_some_and(|pipeline| std::ptr::eq(pipeline, self))
    }
}
