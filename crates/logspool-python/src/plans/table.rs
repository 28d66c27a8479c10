//! All plans: one table keyed by the logger's address, which they leave through a weak reference when the logger dies.
//!
//! Stop on the line: *capture*. In front of the table stands a direct-mapped cache: one per process where the GIL
//! orders the calls, one per thread where nothing does.
//!
//! Atomics outside `queue`: on free-threaded builds the caches of other threads learn of changes by a counter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use pyo3::ffi::PyObject;

use crate::interpreter::object::Owned;
use crate::plans::plan::{Counts, Plan};
use crate::plans::text_stream::{StreamList, TextStream};

struct PlanTable {
    plans: HashMap<usize, (Arc<Plan>, Owned)>,
    /// Weak reference to logger address, to find what died.
    by_reference: HashMap<usize, usize>,
    counts: HashMap<String, &'static Counts>,
}

static TABLE: Mutex<Option<PlanTable>> = Mutex::new(None);

/// Plans in the direct-mapped cache.
///
/// Chosen: a program logs through a few dozen loggers at a time; 64 entries are one kilobyte.
const CACHED: usize = 64;

#[inline(always)]
fn slot_of(logger: usize) -> usize {
    ((logger >> 4) ^ (logger >> 10)) & (CACHED - 1)
}

#[cfg(not(Py_GIL_DISABLED))]
mod cache {
    //! One cache for the process, guarded by the GIL. It borrows from the table; entries leave with their plans.
    use super::{CACHED, Plan, slot_of};
    use std::cell::UnsafeCell;

    pub struct ProcessCache(UnsafeCell<[(usize, *const Plan); CACHED]>);
    // SAFETY: touched only by attached threads, which the GIL orders.
    unsafe impl Sync for ProcessCache {}
    pub static CACHE: ProcessCache = ProcessCache(UnsafeCell::new([(0, std::ptr::null()); CACHED]));

    /// Valid until foreign code runs or the thread detaches.
    pub type Reference = *const Plan;

    #[inline(always)]
    pub unsafe fn find(logger: usize) -> Option<Reference> {
        // SAFETY: GIL held; one read.
        let (key, plan) = unsafe { (*CACHE.0.get())[slot_of(logger)] };
        (key == logger).then_some(plan)
    }

    pub unsafe fn put(logger: usize, plan: &Reference) {
        // SAFETY: GIL held; one write.
        unsafe { (*CACHE.0.get())[slot_of(logger)] = (logger, *plan) };
    }

    pub unsafe fn clear() {
        // SAFETY: GIL held.
        unsafe { *CACHE.0.get() = [(0, std::ptr::null()); CACHED] };
    }

    pub unsafe fn tidy() {}
}

#[cfg(Py_GIL_DISABLED)]
mod cache {
    //! One cache per thread. It holds what it caches, and is void when the table changed since.
    use super::{CACHED, Plan, slot_of};
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    pub static CHANGES: AtomicU64 = AtomicU64::new(0);

    struct ThreadCache {
        changes: u64,
        plans: [Option<(usize, Arc<Plan>)>; CACHED],
    }

    thread_local! {
        static CACHE: RefCell<ThreadCache> = const { RefCell::new(ThreadCache { changes: 0, plans: [const { None }; CACHED] }) };
    }

    /// Plans of threads that ended. A thread's end is not attached to the interpreter and must not drop them.
    static LEFT: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

    impl Drop for ThreadCache {
        fn drop(&mut self) {
            let plans = self.plans.iter_mut().filter_map(Option::take).map(|(_, plan)| plan);
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).extend(plans);
        }
    }

    /// Drops what ended threads left.
    pub unsafe fn tidy() {
        let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
        drop(left);
    }

    pub type Reference = Arc<Plan>;

    pub unsafe fn find(logger: usize) -> Option<Reference> {
        // Acquire pairs with the Release in `clear`: a plan put into the table before is seen after.
        let changes = CHANGES.load(Ordering::Acquire);
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

    pub unsafe fn put(logger: usize, plan: &Reference) {
        let _ = CACHE.try_with(|cache| {
            let old = cache
                .try_borrow_mut()
                .ok()
                .and_then(|mut cache| cache.plans[slot_of(logger)].replace((logger, plan.clone())));
            drop(old);
        });
    }

    /// Other threads let go what they cached with their next call; this one at once, because a handler may be
    /// dropped next, and plans hold the lists that hold handlers.
    pub unsafe fn clear() {
        CHANGES.fetch_add(1, Ordering::Release);
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

/// The plan of a logger, if there is one, fresh or not.
///
/// # Safety
///
/// Attached. On GIL builds the result is valid until foreign code runs or the thread detaches.
#[inline(always)]
pub unsafe fn find(logger: *mut PyObject) -> Option<Reference> {
    // SAFETY: attached.
    match unsafe { cache::find(logger as usize) } {
        Some(plan) => Some(plan),
        // SAFETY: attached.
        None => unsafe { find_in_table(logger as usize) },
    }
}

/// Whether the logger has a plan that serves a call which began in the epoch `since`.
///
/// # Safety
///
/// Attached.
pub unsafe fn serves(logger: *mut PyObject, since: u64) -> bool {
    // SAFETY: attached; nothing foreign runs.
    unsafe { find(logger).is_some_and(|plan| (*plan).serves(since)) }
}

#[cold]
#[inline(never)]
unsafe fn find_in_table(logger: usize) -> Option<Reference> {
    let plan = {
        let table = TABLE.lock().expect("no panic happens while it is held");
        let (plan, _) = table.as_ref()?.plans.get(&logger)?;
        #[cfg(not(Py_GIL_DISABLED))]
        let plan = Arc::as_ptr(plan);
        #[cfg(Py_GIL_DISABLED)]
        let plan = plan.clone();
        plan
    };
    // Without the lock: what has its place in the cache now may be the last to hold its handlers, whose end comes back
    // to the table.
    // SAFETY: attached.
    unsafe { cache::put(logger, &plan) };
    Some(plan)
}

/// The plan that a call borrows from, which may be gone once code of others ran.
///
/// On GIL builds a call borrows its plan from the table; on free-threaded builds it holds it.
#[derive(Clone, Copy)]
pub struct Lender {
    #[cfg(not(Py_GIL_DISABLED))]
    removals: u64,
    #[cfg(not(Py_GIL_DISABLED))]
    logger: usize,
}

/// How often plans were taken out of the table. Moves under the GIL only, or is not looked at.
static REMOVALS: AtomicU64 = AtomicU64::new(0);

impl Lender {
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

    /// The streams that a route of the plan borrows; where the plan is gone by now, those of its successor.
    ///
    /// # Safety
    ///
    /// Attached. The result is valid until foreign code runs or the thread detaches.
    #[inline(always)]
    pub unsafe fn streams<'a>(&self, borrowed: StreamList) -> &'a [TextStream] {
        #[cfg(not(Py_GIL_DISABLED))]
        if REMOVALS.load(Relaxed) != self.removals {
            // SAFETY: attached.
            return unsafe { self.streams_now() };
        }
        // SAFETY: no plan was removed since the route was copied, or the caller holds the plan.
        unsafe { borrowed.as_slice() }
    }

    #[cfg(not(Py_GIL_DISABLED))]
    #[cold]
    #[inline(never)]
    unsafe fn streams_now<'a>(&self) -> &'a [TextStream] {
        // SAFETY: attached; the plan that is in the table holds its streams.
        unsafe {
            let plan = find_in_table(self.logger);
            plan.and_then(|plan| (*plan).route).map_or(&[], |route| route.streams.as_slice())
        }
    }
}

/// Puts a plan in place of the logger's old one. `reference` is a weak reference to the logger, made with
/// [`crate::plans::planning`]'s callback.
///
/// # Safety
///
/// Attached.
pub unsafe fn put(plan: Plan, reference: Owned) {
    let logger = plan.logger;
    let gone = {
        let mut table = TABLE.lock().expect("no panic happens while it is held");
        let table = table.get_or_insert_with(PlanTable::new);
        table.by_reference.insert(reference.as_ptr() as usize, logger);
        let old = table.plans.insert(logger, (Arc::new(plan), reference));
        if let Some((_, reference)) = &old {
            table.by_reference.remove(&(reference.as_ptr() as usize));
        }
        old
    };
    REMOVALS.fetch_add(1, Relaxed);
    // SAFETY: attached. The cache must not point to the old plan when that is dropped.
    unsafe {
        cache::clear();
        cache::tidy();
    }
    drop(gone);
}

/// Removes the plan whose logger died.
///
/// # Safety
///
/// Attached.
pub unsafe fn forget(reference: *mut PyObject) {
    let gone = {
        let mut table = TABLE.lock().expect("no panic happens while it is held");
        let Some(table) = table.as_mut() else { return };
        table.by_reference.remove(&(reference as usize)).and_then(|logger| table.plans.remove(&logger))
    };
    REMOVALS.fetch_add(1, Relaxed);
    // SAFETY: attached.
    unsafe { cache::clear() };
    drop(gone);
}

/// Removes all plans: what they keep alive (lists of handlers, streams) may go.
///
/// # Safety
///
/// Attached.
pub unsafe fn forget_all() {
    let gone = {
        let mut table = TABLE.lock().expect("no panic happens while it is held");
        let Some(table) = table.as_mut() else { return };
        table.by_reference.clear();
        std::mem::take(&mut table.plans)
    };
    REMOVALS.fetch_add(1, Relaxed);
    // SAFETY: attached.
    unsafe { cache::clear() };
    drop(gone);
}

/// The counters of the loggers of that name. They live for ever, as names in logging's own table do.
pub fn counts(name: &str) -> &'static Counts {
    let mut table = TABLE.lock().expect("no panic happens while it is held");
    let counts = &mut table.get_or_insert_with(PlanTable::new).counts;
    match counts.get(name) {
        Some(found) => found,
        None => counts.entry(name.to_owned()).or_insert(Box::leak(Box::default())),
    }
}

/// Each logger's name and counters.
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
