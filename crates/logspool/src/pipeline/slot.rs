//! The place of the process's pipeline: which one there is, and the number that its ids were made under.
//!
//! Atomics outside `queue` and `stats`: the current pipeline's address and number, which the hot path compares.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use logspool_sys::gate::Gate;
use logspool_sys::generation;

use super::state::Pipeline;

static CURRENT: AtomicPtr<Pipeline> = AtomicPtr::new(std::ptr::null_mut());
static NUMBER: AtomicU64 = AtomicU64::new(1);
/// Held while a pipeline of the process is made or put aside; in it the last that was put aside.
static BEGINNING: Gate<Option<&'static Pipeline>> = Gate::new(None);

/// The number of the pipeline that ids belong to. It changes after a fork, and where the process goes on after its end
/// was tried: every id must then be defined again.
///
/// Two loads; the hot path compares it with the number its ids were made under. 0 is no pipeline's number.
#[inline]
pub fn generation() -> u64 {
    // Acquire pairs with the Release in `put_aside`: who sees the number does not find the pipeline of before.
    if generation::turn() == generation::WIPED { 0 } else { NUMBER.load(Ordering::Acquire) }
}

/// The pipeline if there is one in this process.
pub(super) fn existing() -> Option<&'static Pipeline> {
    if generation::turn() == generation::WIPED {
        return None;
    }
    let current = CURRENT.load(Ordering::Acquire);
    // SAFETY: stored by `existing_or`, never freed.
    unsafe { current.as_ref() }
}

/// Whether this process has a pipeline.
pub fn is_running() -> bool {
    existing().is_some()
}

/// The pipeline of this process; where there is none, the one that `begin` makes under the number that it gets.
pub(super) fn existing_or(begin: impl FnOnce(u64) -> Option<Pipeline>) -> Option<&'static Pipeline> {
    let _beginning = BEGINNING.hold();
    if let Some(pipeline) = existing() {
        return Some(pipeline);
    }
    if generation::turn() == generation::WIPED {
        // A forked child: the parent's pipeline is left as it is, its memory is not ours to judge.
        CURRENT.store(std::ptr::null_mut(), Ordering::Relaxed);
        NUMBER.fetch_add(1, Ordering::Relaxed);
        generation::advance();
    }
    let pipeline = Box::leak(Box::new(begin(NUMBER.load(Ordering::Relaxed))?));
    CURRENT.store(pipeline, Ordering::Release);
    Some(&*pipeline)
}

/// Takes a pipeline out of its place: the next one begins under another number.
pub(super) fn put_aside(pipeline: &'static Pipeline) {
    let mut last = BEGINNING.hold();
    if let Some(before) = last.replace(pipeline) {
        let _ = pipeline.before.set(before);
    }
    pipeline.is_past.store(true, Ordering::Release);
    // In this order: who finds no pipeline here begins one under the next number, and who reads that number
    // does not find this pipeline.
    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    NUMBER.fetch_add(1, Ordering::Release);
    generation::advance();
}

impl Pipeline {
    /// Whether it is this process's still: who forks between two shares has nothing of its parent's to wait for.
    pub(super) fn is_current(&self) -> bool {
        existing().is_some_and(|pipeline| std::ptr::eq(pipeline, self))
    }
}
