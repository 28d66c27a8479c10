//! All plans: one table keyed by the logger's address. A weak reference removes a plan when its logger dies.
//!
//! Stop on the line: *capture*. A direct-mapped cache comes before the table: one per process on GIL builds, where the
//! GIL orders the calls, and one per thread on free-threaded builds.
//!
//! Atomics outside `queue`: on free-threaded builds a counter informs the caches of other threads about changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use crate::interpreter::object::{Object, WeakReference};
use crate::plans::plan::{Counts, Plan};
use crate::plans::text_stream::{StreamList, TextStream};

struct PlanTable {
    plans: HashMap<usize, (Arc<Plan>, WeakReference)>,
    /// Address of the weak reference to address of the logger, to find the plan of a dead logger.
    by_reference: HashMap<usize, usize>,
    counts: HashMap<String, &'static Counts>,
}

static TABLE: Mutex<Option<PlanTable>> = Mutex::new(None);

/// Number of plans in the direct-mapped cache.
///
/// Chosen: a program logs through a few dozen loggers at a time; 64 entries take one kilobyte.
const CACHED: usize = 64;

#[inline(always)]
fn slot_of(logger: usize) -> usize {
    ((logger >> 4) ^ (logger >> 10)) & (CACHED - 1)
}

#[cfg(not(Py_GIL_DISABLED))]
mod cache {
    //! One cache for the process, guarded by the GIL. It borrows from the table; an entry is removed before its plan
    //! is.
    use super::{CACHED, Plan, Python, slot_of};
    use std::cell::UnsafeCell;

    pub struct ProcessCache(UnsafeCell<[(usize, *const Plan); CACHED]>);
    // SAFETY: only attached threads use it, and the GIL orders them.
    unsafe impl Sync for ProcessCache {}
    pub static CACHE: ProcessCache = ProcessCache(UnsafeCell::new([(0, std::ptr::null()); CACHED]));

    /// Valid until foreign code runs or the thread detaches.
    pub type Reference = *const Plan;

    #[inline(always)]
    pub fn find(_attached: Python<'_>, logger: usize) -> Option<Reference> {
        // SAFETY: the token shows that the GIL is held, so no thread writes during this read.
        let (key, plan) = unsafe { (*CACHE.0.get())[slot_of(logger)] };
        (key == logger).then_some(plan)
    }

    pub fn put(_attached: Python<'_>, logger: usize, plan: &Reference) {
        // SAFETY: the token shows that the GIL is held, so no thread reads during this write.
        unsafe { (*CACHE.0.get())[slot_of(logger)] = (logger, *plan) };
    }

    pub fn clear(_attached: Python<'_>) {
        // SAFETY: the token shows that the GIL is held, so no thread reads during this write.
        unsafe { *CACHE.0.get() = [(0, std::ptr::null()); CACHED] };
    }

    pub fn tidy(_attached: Python<'_>) {}
}

#[cfg(Py_GIL_DISABLED)]
mod cache {
    //! One cache per thread. It holds references to its plans, and becomes invalid when the table changes.
    use super::{CACHED, Plan, Python, slot_of};
    use logspool_sys::published::{Counted, Published};
    use std::cell::RefCell;
    use std::sync::atomic::AtomicU64;
    use std::sync::{Arc, Mutex, PoisonError};

    pub static CHANGES: AtomicU64 = AtomicU64::new(0);

    struct ThreadCache {
        changes: u64,
        plans: [Option<(usize, Arc<Plan>)>; CACHED],
    }

    thread_local! {
        static CACHE: RefCell<ThreadCache> = const { RefCell::new(ThreadCache { changes: 0, plans: [const { None }; CACHED] }) };
    }

    /// Plans left by threads that ended. A thread is not attached to the interpreter when it ends, so it must not drop
    /// them.
    static PLANS_OF_ENDED_THREADS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

    impl Drop for ThreadCache {
        fn drop(&mut self) {
            let plans = self.plans.iter_mut().filter_map(Option::take).map(|(_, plan)| plan);
            PLANS_OF_ENDED_THREADS.lock().unwrap_or_else(PoisonError::into_inner).extend(plans);
        }
    }

    /// Drops the plans left by threads that ended.
    pub fn tidy(_attached: Python<'_>) {
        let left = std::mem::take(&mut *PLANS_OF_ENDED_THREADS.lock().unwrap_or_else(PoisonError::into_inner));
        drop(left);
    }

    pub type Reference = Arc<Plan>;

    pub fn find(_attached: Python<'_>, logger: usize) -> Option<Reference> {
        // Pairs with `advance` in `clear`: a thread that sees the new count finds the plan put into the table
        // before.
        let changes = CHANGES.observe();
        CACHE
            .try_with(|cache| {
                let mut gone = Vec::new();
                let mut cache = cache.try_borrow_mut().ok()?;
                if cache.changes != changes {
                    cache.changes = changes;
                    gone.extend(cache.plans.iter_mut().filter_map(Option::take));
                }
                let found = match &cache.plans[slot_of(logger)] {
                    Some((key, plan)) if *key == logger => Some(plan.clone()),
                    _ => None,
                };
                drop(cache);
                drop(gone);
                found
            })
            .ok()
            .flatten()
    }

    pub fn put(_attached: Python<'_>, logger: usize, plan: &Reference) {
        let _ = CACHE.try_with(|cache| {
            let old = cache
                .try_borrow_mut()
                .ok()
                .and_then(|mut cache| cache.plans[slot_of(logger)].replace((logger, plan.clone())));
            drop(old);
        });
    }

    /// Other threads drop their cached plans with their next call. This thread drops them at once: a handler may be
    /// dropped next, and plans hold the lists that hold handlers.
    pub fn clear(_attached: Python<'_>) {
        CHANGES.advance();
        let gone: Option<Vec<_>> = CACHE
            .try_with(|cache| {
                let mut cache = cache.try_borrow_mut().ok()?;
                Some(cache.plans.iter_mut().filter_map(Option::take).collect())
            })
            .ok()
            .flatten();
        drop(gone);
    }
}

pub use cache::Reference;

/// The plan of a logger, fresh or stale, if it has one. On GIL builds the result is valid until foreign code runs or
/// the thread detaches.
#[inline(always)]
pub fn find(py: Python<'_>, logger: Object<'_, '_>) -> Option<Reference> {
    let logger = logger.as_ptr() as usize;
    match cache::find(py, logger) {
        Some(plan) => Some(plan),
        None => find_in_table(py, logger),
    }
}

/// The plan of a reference.
///
/// # Safety
///
/// On GIL builds: no foreign code has run since the reference was found, and none runs while the result is in use.
#[inline(always)]
pub unsafe fn borrowed(reference: &Reference) -> &Plan {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: the table holds the plan until foreign code runs; the caller ensures that none does.
    return unsafe { &**reference };
    #[cfg(Py_GIL_DISABLED)]
    return reference;
}

/// True if the logger has a plan that is valid for a call which began in the epoch `since`.
pub fn serves(py: Python<'_>, logger: Object<'_, '_>, since: u64) -> bool {
    // SAFETY: the plan was found in this line, and no foreign code runs before the result is used.
    find(py, logger).is_some_and(|plan| unsafe { borrowed(&plan) }.serves(py, since))
}

#[cold]
#[inline(never)]
fn find_in_table(py: Python<'_>, logger: usize) -> Option<Reference> {
    let plan = {
        let table = TABLE.lock().expect("no panic happens while it is held");
        let (plan, _) = table.as_ref()?.plans.get(&logger)?;
        #[cfg(not(Py_GIL_DISABLED))]
        let plan = Arc::as_ptr(plan);
        #[cfg(Py_GIL_DISABLED)]
        let plan = plan.clone();
        plan
    };
    // The table's lock is released first. The cache entry replaced here may hold the last reference to handlers, and
    // dropping those uses the table.
    cache::put(py, logger, &plan);
    Some(plan)
}

/// The plan from which a call borrows; foreign code may remove it.
///
/// On GIL builds a call borrows its plan from the table; on free-threaded builds the call holds a reference.
#[derive(Clone, Copy)]
pub struct BorrowedPlan {
    #[cfg(not(Py_GIL_DISABLED))]
    removals: u64,
    #[cfg(not(Py_GIL_DISABLED))]
    logger: usize,
}

/// How often plans were removed from the table. Changes only under the GIL; free-threaded builds do not read it.
static REMOVALS: AtomicU64 = AtomicU64::new(0);

impl BorrowedPlan {
    /// Remembers a plan that is in the table now.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    pub fn of(plan: &Plan) -> Self {
        Self { removals: REMOVALS.load(Relaxed), logger: plan.logger }
    }

    /// Remembers nothing: the caller holds the plan.
    #[cfg(Py_GIL_DISABLED)]
    pub fn of(_plan: &Plan) -> Self {
        Self {}
    }

    /// The streams that a route of the plan borrows. If the plan was removed meanwhile, those of its successor.
    ///
    /// # Safety
    ///
    /// `borrowed` belongs to a route of the plan that `self` remembers. Do not use the result after foreign code has
    /// run or the thread was detached.
    #[inline(always)]
    pub unsafe fn streams<'a>(&self, py: Python<'_>, borrowed: StreamList) -> &'a [TextStream] {
        #[cfg(not(Py_GIL_DISABLED))]
        if REMOVALS.load(Relaxed) != self.removals {
            // SAFETY: the caller does not use the result after foreign code has run or the thread was detached.
            return unsafe { self.streams_now(py) };
        }
        let _ = py;
        // SAFETY: no plan was removed since the route was copied, or the caller holds the plan.
        unsafe { borrowed.as_slice() }
    }

    /// # Safety
    ///
    /// Do not use the result after foreign code has run or the thread was detached.
    #[cfg(not(Py_GIL_DISABLED))]
    #[cold]
    #[inline(never)]
    unsafe fn streams_now<'a>(&self, py: Python<'_>) -> &'a [TextStream] {
        // SAFETY: the plan in the table holds its streams, and stays there until foreign code runs.
        unsafe {
            let plan = find_in_table(py, self.logger);
            plan.and_then(|plan| (*plan).route).map_or(&[], |route| route.streams.as_slice())
        }
    }
}

/// Replaces the logger's old plan. `reference` is a weak reference to the logger, made with
/// [`crate::plans::planning`]'s callback.
pub fn put(py: Python<'_>, plan: Plan, reference: WeakReference) {
    let logger = plan.logger;
    let gone = {
        let mut table = TABLE.lock().expect("no panic happens while it is held");
        let table = table.get_or_insert_with(PlanTable::new);
        table.by_reference.insert(reference.address(), logger);
        let old = table.plans.insert(logger, (Arc::new(plan), reference));
        if let Some((_, reference)) = &old {
            table.by_reference.remove(&reference.address());
        }
        old
    };
    REMOVALS.fetch_add(1, Relaxed);
    // The cache must not point to the old plan when the old plan is dropped.
    cache::clear(py);
    cache::tidy(py);
    drop(gone);
}

/// Removes the plan of a logger that died.
pub fn forget(reference: &Bound<'_, PyAny>) {
    let gone = {
        let mut table = TABLE.lock().expect("no panic happens while it is held");
        let Some(table) = table.as_mut() else { return };
        table.by_reference.remove(&(reference.as_ptr() as usize)).and_then(|logger| table.plans.remove(&logger))
    };
    REMOVALS.fetch_add(1, Relaxed);
    cache::clear(reference.py());
    drop(gone);
}

/// Removes all plans, so that objects they keep alive (lists of handlers, streams) can be freed.
pub fn forget_all(py: Python<'_>) {
    let gone = {
        let mut table = TABLE.lock().expect("no panic happens while it is held");
        let Some(table) = table.as_mut() else { return };
        table.by_reference.clear();
        std::mem::take(&mut table.plans)
    };
    REMOVALS.fetch_add(1, Relaxed);
    cache::clear(py);
    drop(gone);
}

/// The counters of the loggers with this name. They are never freed, like names in logging's own table.
pub fn counts(name: &str) -> &'static Counts {
    let mut table = TABLE.lock().expect("no panic happens while it is held");
    let counts = &mut table.get_or_insert_with(PlanTable::new).counts;
    match counts.get(name) {
        Some(found) => found,
        None => counts.entry(name.to_owned()).or_insert(Box::leak(Box::default())),
    }
}

/// The name and counters of each logger.
pub fn all_counts() -> Vec<(String, &'static Counts)> {
    let table = TABLE.lock().expect("no panic happens while it is held");
    let counts = table.as_ref().map(|table| &table.counts);
    counts.into_iter().flatten().map(|(name, counts)| (name.clone(), *counts)).collect()
}

impl PlanTable {
    fn new() -> Self {
        Self { plans: HashMap::new(), by_reference: HashMap::new(), counts: HashMap::new() }
    }
}
