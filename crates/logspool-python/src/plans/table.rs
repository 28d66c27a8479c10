//! All plans: one table keyed by the logger's address. A weak reference removes a plan when its logger dies.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). A lookup first tries a direct-mapped cache, then the table. GIL
//! builds have one cache per process, because the GIL orders the calls. Free-threaded builds have one cache per thread.
//!
//! Atomics belong in `queue`; those of this file are an exception: on free-threaded builds a counter tells the caches
//! of other threads that the table changed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use crate::interpreter::object::{Object, WeakReference};
use crate::plans::plan::{Counts, Plan};
use crate::plans::text_stream::{StreamList, TextStream};

struct PlanTable {
    plans: HashMap<usize, (Arc<Plan>, WeakReference)>,
    /// Maps the address of a weak reference to the address of its logger, to find the plan of a dead logger.
    by_reference: HashMap<usize, usize>,
    counts: HashMap<String, &'static Counts>,
}

static TABLE: Mutex<Option<PlanTable>> = Mutex::new(None);

/// Number of plans in the direct-mapped cache.
///
/// Chosen: a program logs through a few dozen loggers at a time. 64 entries take only one kilobyte.
const CACHED: usize = 64;

#[inline(always)]
fn slot_of(logger: usize) -> usize {
    ((logger >> 4) ^ (logger >> 10)) & (CACHED - 1)
}

#[cfg(not(Py_GIL_DISABLED))]
mod cache {
    //! One cache for the process, guarded by the GIL. It borrows plans from the table. An entry is removed from the
    //! cache before its plan is removed from the table.
    use super::{CACHED, Plan, Python, slot_of};
    use std::cell::UnsafeCell;

    pub struct ProcessCache(UnsafeCell<[(usize, *const Plan); CACHED]>);
    // SAFETY: only attached threads use the cache, and the GIL orders their accesses.
    unsafe impl Sync for ProcessCache {}
    pub static CACHE: ProcessCache = ProcessCache(UnsafeCell::new([(0, std::ptr::null()); CACHED]));

    /// The pointer is valid until user Python code runs or the thread detaches.
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
    //! One cache per thread. It owns references to its plans. All its entries become invalid when the table changes.
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

    /// Cached plans of threads that ended. A thread is no longer attached to the interpreter when its thread-locals are
    /// dropped, so it must not drop the plans itself.
    static PLANS_OF_ENDED_THREADS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

    impl Drop for ThreadCache {
        fn drop(&mut self) {
            let plans = self.plans.iter_mut().filter_map(Option::take).map(|(_, plan)| plan);
            PLANS_OF_ENDED_THREADS.lock().unwrap_or_else(PoisonError::into_inner).extend(plans);
        }
    }

    /// Drops the cached plans of threads that ended.
    pub fn tidy(_attached: Python<'_>) {
        let left = std::mem::take(&mut *PLANS_OF_ENDED_THREADS.lock().unwrap_or_else(PoisonError::into_inner));
        drop(left);
    }

    pub type Reference = Arc<Plan>;

    pub fn find(_attached: Python<'_>, logger: usize) -> Option<Reference> {
        // Pairs with `advance` in `clear`. A plan is put into the table before the count is increased, so a thread that
        // reads the new count also finds the new plan.
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

    /// Other threads drop their cached plans at their next call. This thread drops its cached plans at once: the caller
    /// may free a handler next, and plans keep the lists of handlers alive.
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

/// The plan of a logger, fresh or stale; `None` if the logger has no plan. On GIL builds the result is valid until user
/// Python code runs or the thread detaches.
#[inline(always)]
pub fn find(py: Python<'_>, logger: Object<'_, '_>) -> Option<Reference> {
    let logger = logger.as_ptr() as usize;
    match cache::find(py, logger) {
        Some(plan) => Some(plan),
        None => find_in_table(py, logger),
    }
}

/// The plan to which a reference from [`find`] points.
///
/// # Safety
///
/// On GIL builds: no user Python code has run since the reference was found, and none runs while the result is in use.
#[inline(always)]
pub unsafe fn borrowed(reference: &Reference) -> &Plan {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: the table holds the plan until user Python code runs; the caller ensures that none runs.
    return unsafe { &**reference };
    #[cfg(Py_GIL_DISABLED)]
    return reference;
}

/// True if the logger has a plan that is valid for a call which began in the epoch `since`.
pub fn serves(py: Python<'_>, logger: Object<'_, '_>, since: u64) -> bool {
    // SAFETY: the plan was found in this line, and no user Python code runs before the result is used.
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
    // The table's lock was released above. The cache entry replaced here may hold the last reference to a handler, and
    // dropping a handler locks the table.
    cache::put(py, logger, &plan);
    Some(plan)
}

/// Remembers the plan from which a call borrows, because user Python code may remove that plan during the call.
///
/// On GIL builds a call borrows its plan from the table. On free-threaded builds the call owns a reference to the plan.
#[derive(Clone, Copy)]
pub struct BorrowedPlan {
    #[cfg(not(Py_GIL_DISABLED))]
    removals: u64,
    #[cfg(not(Py_GIL_DISABLED))]
    logger: usize,
}

/// Number of removals of plans from the table. It changes only under the GIL; free-threaded builds do not read it.
static REMOVALS: AtomicU64 = AtomicU64::new(0);

impl BorrowedPlan {
    /// Remembers a plan that is in the table now.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    pub fn of(plan: &Plan) -> Self {
        Self { removals: REMOVALS.load(Relaxed), logger: plan.logger }
    }

    /// Remembers nothing, because the caller owns a reference to the plan.
    #[cfg(Py_GIL_DISABLED)]
    pub fn of(_plan: &Plan) -> Self {
        Self {}
    }

    /// The streams that a route of the plan borrows. If the plan was removed meanwhile, the streams of the logger's
    /// current plan.
    ///
    /// # Safety
    ///
    /// `borrowed` belongs to a route of the plan that `self` remembers. Do not use the result after user Python code
    /// has run or the thread was detached.
    #[inline(always)]
    pub unsafe fn streams<'a>(&self, py: Python<'_>, borrowed: StreamList) -> &'a [TextStream] {
        #[cfg(not(Py_GIL_DISABLED))]
        if REMOVALS.load(Relaxed) != self.removals {
            // SAFETY: the caller does not use the result after user Python code has run or the thread was detached.
            return unsafe { self.streams_now(py) };
        }
        let _ = py;
        // SAFETY: no plan was removed since the route was copied, or the caller holds the plan.
        unsafe { borrowed.as_slice() }
    }

    /// # Safety
    ///
    /// Do not use the result after user Python code has run or the thread was detached.
    #[cfg(not(Py_GIL_DISABLED))]
    #[cold]
    #[inline(never)]
    unsafe fn streams_now<'a>(&self, py: Python<'_>) -> &'a [TextStream] {
        // SAFETY: the plan in the table owns its streams, and stays in the table until user Python code runs.
        unsafe {
            let plan = find_in_table(py, self.logger);
            plan.and_then(|plan| (*plan).route).map_or(&[], |route| route.streams.as_slice())
        }
    }
}

/// Puts a plan into the table, in place of the logger's previous plan. `reference` is a weak reference to the logger
/// that was made by [`crate::plans::callbacks::weak_reference`].
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

/// Removes the plan of a logger that was freed. `reference` is the weak reference that was given to [`put`].
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

/// Removes all plans, so that the objects that plans keep alive (lists of handlers, streams) can be freed.
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

/// The counters of all loggers with this name. Counters are never freed, like the loggers in `logging`'s own table.
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
