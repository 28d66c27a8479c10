//! The plan of one logger: everything that the native path knows about the logger, and the check that the plan is
//! valid.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). `planning` makes a plan from everything that stock logging would
//! read. The plan records its inputs: the epoch, the id epoch of the pipeline, the version tags of classes, the lists
//! of handlers and filters. [`Plan::fresh`] compares these inputs in a few nanoseconds. After any difference a new plan
//! is made. Nothing in this module runs Python code.
//!
//! Atomics belong in `queue`; those of this file are an exception: on free-threaded builds concurrent calls write
//! counters and cached gates.

use std::sync::atomic::{AtomicI8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use logspool::pipeline;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::object::{self, Object, Owned, WeakReference};
use crate::plans::class_version::ClassVersion;
use crate::plans::environment::{self, IdValidity};
use crate::plans::format_parts::FormatterTexts;
use crate::plans::logging_globals::LoggingGlobals;
use crate::plans::needs::Needs;
use crate::plans::text_stream::{StreamList, StreamWord, TextStream};

/// The part of a plan that a call copies before it runs user Python code, because that code may replace the plan.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Id of the route, valid in the id epoch of `made_under`; `None` if no handler takes any record.
    pub id: Option<u32>,
    /// The epoch, id epoch and stop number under which `id` and the route's sinks are valid.
    pub made_under: IdValidity,
    /// The context values that the formats show.
    pub needs: Needs,
    /// Texts that only methods of the program can make: a call with such an exception or stack makes a `LogRecord`.
    pub formatter_texts: FormatterTexts,
    /// Lowest level that a handler of the route takes. A call with a lower level does nothing.
    pub lowest: u16,
    /// Records of this level and above do not take this route: the call makes a `LogRecord`. `u32::MAX` if every
    /// record takes the route.
    pub record_from: u32,
    /// Streams of the route's handlers. Text that the program printed to them has to be written before the record.
    pub streams: StreamList,
    /// The sink of a terminal, if there is one: the call waits briefly until the terminal shows its line.
    pub terminal: Option<u32>,
}

/// Counts of the calls of one logger, kept across its plans.
#[derive(Debug, Default)]
pub struct Counts {
    /// Calls that took the native path.
    pub native: AtomicU64,
    /// Enabled calls that made a `LogRecord` natively, because Python code has to see it.
    pub by_record: AtomicU64,
    /// Enabled calls that stock logging served.
    pub stock: AtomicU64,
    /// Why calls make a `LogRecord`; empty if they take the native path.
    pub reason: Mutex<String>,
}

/// Adds one to a counter. On GIL builds a plain load and store is enough, because no two calls run at once.
#[inline(always)]
pub fn count(counter: &AtomicU64) {
    #[cfg(not(Py_GIL_DISABLED))]
    counter.store(counter.load(Relaxed) + 1, Relaxed);
    #[cfg(Py_GIL_DISABLED)]
    counter.fetch_add(1, Relaxed);
}

/// The content of a list when the plan was made.
pub struct ListShape {
    /// The list itself. Its type is exactly `list`.
    pub list: Owned,
    /// Weak references to the items of the list. Addresses alone are not enough, because a later object could get the
    /// address of a freed item.
    pub items: Vec<WeakReference>,
}

/// How the records of one logger are made natively, and which code handles them.
pub struct RecordPlan {
    /// The facts that are the same for all loggers.
    pub globals: Arc<LoggingGlobals>,
    /// True if `Logger.handle`, `filter` and `callHandlers` of the logger are the stock ones.
    pub steps_are_stock: bool,
    /// True if at most one handler receives the records of the logger.
    pub has_one_handler: bool,
    /// The epoch of the plan.
    pub epoch: u64,
    /// The lists of the plan.
    pub lists: Arc<[ListShape]>,
    /// The only handler; `None` if the logger has not exactly one handler in a list.
    pub only_handler: Option<OnlyHandler>,
    /// True if the logger has filters.
    pub has_filters: bool,
    /// The list `logger.filters`; `None` if it is no exact list.
    pub filters: Option<Owned>,
    /// The value of `logger.disabled`.
    pub disabled: bool,
    /// The logger's name; `None` if its class computes it.
    pub name: Option<Owned>,
}

/// The only handler that gets the records of a logger.
pub struct OnlyHandler {
    /// The handler.
    pub handler: WeakReference,
    /// The handler's level.
    pub level: u32,
    /// The logger that has the handler: the plan's logger or one of its parents.
    pub owner: WeakReference,
    /// The list `handler.filters`; `None` if it is no exact list.
    pub filters: Option<Owned>,
    /// True if its formatter is deferred.
    pub defers: bool,
    /// True if it is a `ThreadHandler`.
    pub is_threaded: bool,
}

impl RecordPlan {
    /// True if the logger has the same handlers and filters as when the plan was made.
    #[inline]
    pub fn is_unchanged(&self, py: Python<'_>) -> bool {
        self.epoch == environment::epoch() && self.lists.iter().all(|list| list.fresh(py))
    }

    /// True if the only handler hands its records to the thread of deferred formatters, and no other code of the program
    /// sees them.
    #[inline]
    pub fn defers(&self) -> bool {
        self.only_handler.as_ref().is_some_and(|only| only.defers) && self.is_seen_by_handler_only()
    }

    /// True if the only handler is a `ThreadHandler`, and no other code of the program sees its records in the call.
    #[inline]
    pub fn is_threaded(&self) -> bool {
        self.only_handler.as_ref().is_some_and(|only| only.is_threaded) && self.is_seen_by_handler_only()
    }

    fn is_seen_by_handler_only(&self) -> bool {
        self.steps_are_stock && !self.has_filters && self.globals.record_factory.is_none()
    }

    /// The only handler of the logger, if nothing has changed since the plan was made.
    #[inline]
    pub fn unchanged_handler(&self, py: Python<'_>) -> Option<&OnlyHandler> {
        self.only_handler.as_ref().filter(|_| self.is_unchanged(py))
    }

    /// The list `handler.filters`, if this is the only handler and nothing has changed since the plan was made.
    #[inline]
    pub fn filters_of(&self, handler: Object<'_, '_>) -> Option<&Owned> {
        let only = self.unchanged_handler(handler.py())?;
        only.filters.as_ref().filter(|_| only.handler.referent() == handler.as_ptr())
    }
}

/// Everything known about one logger.
pub struct Plan {
    /// Address of the logger, the key in the cache.
    pub logger: usize,
    /// The epoch, id epoch and stop number under which the plan was made.
    pub made_under: IdValidity,
    /// The value of `logger.disabled`. Changing it begins a new epoch.
    pub disabled: bool,
    /// The dict `logger._cache`; `None` if stock logging has to decide whether a level is enabled.
    pub level_cache: Option<NumberedDict>,
    /// Version of `level_cache` for which `gates` are valid.
    pub gates_version: AtomicU64,
    /// For each of the five standard levels: 1 enabled, 0 disabled, -1 not looked up yet.
    pub gates: [AtomicI8; 5],
    /// Classes with their version tags when the plan was made. The first is the logger's own class.
    pub types: Vec<ClassVersion>,
    /// Lists of handlers and filters.
    pub lists: Arc<[ListShape]>,
    /// The route of the native path; `None` if all calls make a `LogRecord` (`counts` has the reason).
    pub route: Option<Route>,
    /// Records of this level and above are made by stock logging. Those below that do not take the route are made
    /// natively.
    pub stock_from: u32,
    /// True if `logger.log` is the native method.
    pub log_is_native: bool,
    /// How records are made natively.
    pub record_plan: Arc<RecordPlan>,
    /// Counts of the logger's calls.
    pub counts: &'static Counts,
    /// Records of this level and above are taken by a handler that opens its file with its first record; see `opens`.
    pub opens_from: u32,
    /// Records of this level and above do not take the route even after those files are open.
    pub record_from_if_open: u32,
    /// Words in the C structs of streams, and of their buffers and files. They can change without an assignment to an
    /// attribute of a handler.
    pub words: Box<[StreamWord]>,
    /// The streams that `route.streams` borrows.
    #[expect(dead_code, reason = "held, read through the route")]
    pub streams: Box<[TextStream]>,
    /// Counters of the sinks' file switches. Some of `words` are inside these counters.
    #[expect(dead_code, reason = "held, read through the words")]
    pub rotations: Vec<Arc<AtomicU64>>,
    /// References to the objects that contain `words`, and to the objects to which `streams` points.
    #[expect(dead_code, reason = "held, never read")]
    pub kept: Vec<Owned>,
}

// SAFETY: the raw pointers in `Route` borrow from `streams`; the pointers in `streams` and `words` borrow from `kept`
// and `rotations`. Everything else is Send and Sync by itself.
unsafe impl Send for Plan {}
// SAFETY: the fields that change through a shared reference are atomics.
unsafe impl Sync for Plan {}

/// Whether a level is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelState {
    /// The level is enabled.
    On,
    /// The level is disabled.
    Off,
    /// Only `isEnabledFor` can answer.
    Ask,
}

impl ListShape {
    /// The shape of an exact list; `None` for any other object, and if an item does not support weak references.
    pub fn of(list: &Bound<'_, PyAny>) -> Option<Self> {
        let exact = list.cast_exact::<PyList>().ok()?;
        let items: Option<Vec<_>> = exact.iter().map(|item| WeakReference::new(&item, None).ok()).collect();
        Some(Self { list: Owned::of(list), items: items? })
    }

    /// True if the list still has the same items in the same order.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    pub fn fresh(&self, _attached: Python<'_>) -> bool {
        // SAFETY: an exact list, kept alive by `self`. The token shows that the GIL is held, so the items stay in place
        // while they are compared. Only addresses are compared.
        unsafe {
            let list = self.list.as_ptr().cast::<ffi::PyListObject>();
            if (*list).ob_base.ob_size as usize != self.items.len() {
                return false;
            }
            let items = (*list).ob_item;
            self.items.iter().enumerate().all(|(index, item)| *items.add(index) == item.referent())
        }
    }

    /// True if the list still has the same items in the same order.
    #[cfg(Py_GIL_DISABLED)]
    pub fn fresh(&self, _attached: Python<'_>) -> bool {
        // SAFETY: an exact list, kept alive by `self`; `PyList_GetItemRef` is atomic with respect to other threads.
        unsafe {
            let list = self.list.as_ptr();
            if ffi::PyList_Size(list) as usize != self.items.len() {
                return false;
            }
            self.items.iter().enumerate().all(|(index, item)| {
                let found = ffi::PyList_GetItemRef(list, index as ffi::Py_ssize_t);
                if found.is_null() {
                    ffi::PyErr_Clear();
                    return false;
                }
                let same = found == item.referent();
                ffi::Py_DECREF(found);
                same
            })
        }
    }
}

impl Plan {
    /// True if [`Plan::gate`] may be used: the logger's class and the epoch are unchanged.
    #[inline(always)]
    pub fn gate_holds(&self) -> bool {
        self.made_under.epoch == environment::epoch() && self.types[0].is_same()
    }

    /// True if every input of the plan is unchanged. Runs no user Python code.
    #[inline(always)]
    pub fn fresh(&self, py: Python<'_>) -> bool {
        self.made_under.epoch == environment::epoch() && self.inputs_hold(py)
    }

    /// True if the plan is valid for a call that began in the epoch `since`. Either the plan is fresh, or it was made
    /// in this epoch or later, and only other threads have changed an input after that.
    pub fn serves(&self, py: Python<'_>, since: u64) -> bool {
        let is_new = self.made_under.epoch >= since && self.made_under.serves_call();
        (is_new || self.made_under.epoch == environment::epoch()) && self.inputs_hold(py)
    }

    /// True if the inputs are unchanged whose changes do not begin a new epoch.
    #[inline(always)]
    fn inputs_hold(&self, py: Python<'_>) -> bool {
        environment::is_unchanged(py)
            && self.route.as_ref().is_none_or(|route| route.made_under.id_epoch == pipeline::id_epoch())
            && self.types.iter().all(ClassVersion::is_same)
            // SAFETY: the plan keeps the objects and counters that contain its words alive.
            && self.words.iter().all(|word| unsafe { word.holds() })
            && self.lists.iter().all(|list| list.fresh(py))
    }

    /// True if a record of this level opens a handler's file and could take the native path once the file is open.
    pub fn opens(&self, level: u16) -> bool {
        (self.opens_from..self.record_from_if_open).contains(&u32::from(level))
    }

    /// Looks up in the logger's own cache whether a level, an exact `int`, is enabled. `gate` is the level's index
    /// among the five of the standard library, or larger.
    #[inline(always)]
    pub fn gate(&self, gate: usize, level: Object<'_, '_>) -> LevelState {
        if self.disabled {
            return LevelState::Off;
        }
        let Some(cache) = &self.level_cache else { return LevelState::Ask };
        let py = level.py();
        let version = cache.now();
        if let Some(version) = version {
            if self.gates_version.load(Relaxed) == version {
                match self.gates.get(gate).map_or(-1, |known| known.load(Relaxed)) {
                    1 => return LevelState::On,
                    0 => return LevelState::Off,
                    _ => {}
                }
            } else {
                for known in &self.gates {
                    known.store(-1, Relaxed);
                }
                self.gates_version.store(version, Relaxed);
            }
        }
        // SAFETY: a live dict and an exact int, and the thread is attached; neither hash nor comparison runs Python
        // code.
        let found = unsafe { ffi::PyDict_GetItemWithError(cache.object().as_ptr(), level.as_ptr()) };
        // SAFETY: only the addresses of the two singletons are read.
        let (yes, no) = unsafe { (ffi::Py_True(), ffi::Py_False()) };
        let answer = if found == yes {
            LevelState::On
        } else if found == no {
            LevelState::Off
        } else {
            if found.is_null() {
                object::clear_error(py);
            }
            return LevelState::Ask;
        };
        if version.is_some()
            && let Some(known) = self.gates.get(gate)
        {
            known.store((answer == LevelState::On) as i8, Relaxed);
        }
        answer
    }
}
