//! What the native path knows about one logger, and whether that still holds.
//!
//! Stop on the line: *capture*. A plan is made by `planning` from everything stock logging would look at, and
//! names what it was made from: the epoch, the generation of the pipeline, the classes' version tags, the lists
//! of handlers and filters. [`Plan::fresh`] compares these in a few nanoseconds; any difference makes a new plan.
//! Nothing here runs Python code.
//!
//! Atomics outside `queue`: counters and cached gates are written by concurrent calls on free-threaded builds.

use std::sync::atomic::{AtomicI8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use logspool::pipeline;
use pyo3::ffi::{self, PyObject};

use crate::interpreter::object::{self, Owned};
use crate::plans::environment::{self, MadeUnder};
use crate::plans::needs::Needs;
use crate::plans::text_stream::{StreamList, TextStream, Word};

/// The part of a plan that a call copies before it runs foreign code, which may replace the plan.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Id of the route in the pipeline of `generation`; `None` when no handler takes anything.
    pub id: Option<u32>,
    /// What `id` and the sinks behind it hold under.
    pub made_under: MadeUnder,
    /// Context that the formats show.
    pub needs: Needs,
    /// Lowest level that a handler of the route takes; records below it are done without a word.
    pub lowest: u16,
    /// Levels from here on reach a handler that only stock logging can serve; `u32::MAX` for none.
    pub stock_from: u32,
    /// Handlers on Python text streams must see what the program printed first.
    pub streams: StreamList,
    /// The sink of a terminal: the call waits a little for its own line to be shown.
    pub terminal: Option<u32>,
}

/// What the calls of one logger did, kept across its plans.
#[derive(Debug, Default)]
pub struct Counts {
    /// Calls that took the native path.
    pub native: AtomicU64,
    /// Enabled calls that stock logging served.
    pub stock: AtomicU64,
    /// Why the stock path is taken; empty when the native one is.
    pub reason: Mutex<String>,
}

/// Adds one. On GIL builds a plain load and store: no two calls run at once.
#[inline(always)]
pub fn count(counter: &AtomicU64) {
    #[cfg(not(Py_GIL_DISABLED))]
    counter.store(counter.load(Relaxed) + 1, Relaxed);
    #[cfg(Py_GIL_DISABLED)]
    counter.fetch_add(1, Relaxed);
}

/// A list as it was when the plan was made.
pub struct ListShape {
    /// The list itself; an exact `list`.
    pub list: Owned,
    /// Weak references to its items: an address alone could belong to a later object.
    pub items: Vec<Owned>,
}

/// Everything known about one logger.
pub struct Plan {
    /// Address of the logger, for the cache.
    pub logger: usize,
    /// What the plan was made under.
    pub made_under: MadeUnder,
    /// `logger.disabled` as the epoch guards it.
    pub disabled: bool,
    /// `logger._cache`, an exact dict; `None` leaves the question of the level to stock logging.
    pub level_cache: Option<Owned>,
    /// Version of `level_cache` for which `gates` hold.
    pub gates_version: AtomicU64,
    /// Answer per stdlib level: 1 on, 0 off, -1 not asked yet.
    pub gates: [AtomicI8; 5],
    /// Classes and the version tags they had. The first is the logger's own.
    pub types: Vec<(Owned, u32)>,
    /// Lists of handlers and filters.
    pub lists: Vec<ListShape>,
    /// The native way, or why there is none (the text lies in `counts`).
    pub route: Option<Route>,
    /// What the calls did.
    pub counts: &'static Counts,
    /// Levels from here on reach a handler whose file is opened with its first record; see `opens`.
    pub opens_from: u32,
    /// Levels from here on are stock logging's even with those files open.
    pub stock_from_if_open: u32,
    /// Words of streams, and of what lies under them, that no attribute of a handler shows.
    pub words: Box<[Word]>,
    /// What `route.streams` borrows.
    #[expect(dead_code, reason = "held, read through the route")]
    pub streams: Box<[TextStream]>,
    /// Counters of the sinks' turns, which some of `words` look at.
    #[expect(dead_code, reason = "held, read through the words")]
    pub turns: Vec<Arc<AtomicU64>>,
    /// Keeps the objects that `streams` and `words` point into.
    #[expect(dead_code, reason = "held, never read")]
    pub kept: Vec<Owned>,
}

// SAFETY: the raw pointers in `Route` borrow from `streams`, those in `streams` and `words` from `kept` and `turns`; everything
// else is Send and Sync by itself.
unsafe impl Send for Plan {}
// SAFETY: as above; interior changes go through atomics.
unsafe impl Sync for Plan {}

/// Answer of the level gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The level is enabled.
    On,
    /// It is not.
    Off,
    /// Only `isEnabledFor` knows.
    Ask,
}

/// The class's version tag as it stands.
///
/// # Safety
///
/// `class` is a live type.
#[inline(always)]
pub unsafe fn version_tag(class: *mut PyObject) -> u32 {
    // SAFETY: a live type; read like an atomic for free-threaded builds.
    unsafe {
        let tag = &raw const (*class.cast::<ffi::PyTypeObject>()).tp_version_tag;
        (*tag.cast::<std::sync::atomic::AtomicU32>()).load(Relaxed)
    }
}

/// The class's version tag, after making CPython assign one; 0 when it has none to give.
///
/// # Safety
///
/// `class` is a live type; attached.
pub unsafe fn assigned_tag(class: *mut PyObject) -> u32 {
    // SAFETY: an attribute lookup on a type is what assigns the tag; the name exists on every class.
    unsafe {
        let name = ffi::PyUnicode_InternFromString(c"__init__".as_ptr());
        if name.is_null() {
            ffi::PyErr_Clear();
            return 0;
        }
        unsafe extern "C" {
            fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
        }
        _PyType_Lookup(class.cast(), name);
        ffi::Py_DECREF(name);
        version_tag(class)
    }
}

impl ListShape {
    /// Whether the list is as it was.
    ///
    /// # Safety
    ///
    /// Attached.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    pub unsafe fn fresh(&self) -> bool {
        // SAFETY: an exact list kept alive by `self`; the GIL keeps its items in place while they are compared,
        // and only addresses are compared.
        unsafe {
            let list = self.list.as_ptr().cast::<ffi::PyListObject>();
            if (*list).ob_base.ob_size as usize != self.items.len() {
                return false;
            }
            let items = (*list).ob_item;
            self.items.iter().enumerate().all(|(index, item)| *items.add(index) == object::referent(item))
        }
    }

    /// Whether the list is as it was.
    ///
    /// # Safety
    ///
    /// Attached.
    #[cfg(Py_GIL_DISABLED)]
    pub unsafe fn fresh(&self) -> bool {
        // SAFETY: an exact list kept alive by `self`; PyList_GetItemRef is atomic against other threads.
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
                let same = found == object::referent(item);
                ffi::Py_DECREF(found);
                same
            })
        }
    }
}

impl Plan {
    /// Whether the level question may be answered here: the class and the epoch are what they were.
    #[inline(always)]
    pub fn gate_holds(&self) -> bool {
        // SAFETY: the type is kept alive by the plan.
        self.made_under.epoch == environment::epoch()
            && unsafe { version_tag(self.types[0].0.as_ptr()) } == self.types[0].1
    }

    /// Whether everything the plan was made from is as it was. Runs no foreign code.
    ///
    /// # Safety
    ///
    /// Attached.
    #[inline(always)]
    pub unsafe fn fresh(&self) -> bool {
        // SAFETY: attached.
        unsafe { self.made_under.epoch == environment::epoch() && self.inputs_hold() }
    }

    /// Whether the plan serves a call that began in the epoch `since`: it is fresh, or was made since then and only
    /// other threads have changed something meanwhile.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn serves(&self, since: u64) -> bool {
        let is_new = self.made_under.epoch >= since && self.made_under.serves_call();
        // SAFETY: passed on.
        (is_new || self.made_under.epoch == environment::epoch()) && unsafe { self.inputs_hold() }
    }

    /// Whether what no epoch tells of is as it was.
    #[inline(always)]
    unsafe fn inputs_hold(&self) -> bool {
        // SAFETY: types and lists are kept alive by the plan.
        unsafe {
            environment::unmoved()
                && self.route.as_ref().is_none_or(|route| route.made_under.generation == pipeline::generation())
                && self.types.iter().all(|(class, tag)| version_tag(class.as_ptr()) == *tag)
                && self.words.iter().all(|word| word.holds())
                && self.lists.iter().all(|list| list.fresh())
        }
    }

    /// Whether a record of this level could go the native way if files were open that its handlers open with it.
    pub fn opens(&self, level: u16) -> bool {
        (self.opens_from..self.stock_from_if_open).contains(&u32::from(level))
    }

    /// Asks the logger's own cache whether a level is enabled.
    ///
    /// # Safety
    ///
    /// Attached; `level` is an exact `int`; `gate` is its index among the stdlib levels, or larger.
    #[inline(always)]
    pub unsafe fn gate(&self, gate: usize, level: *mut PyObject) -> Gate {
        if self.disabled {
            return Gate::Off;
        }
        let Some(cache) = &self.level_cache else { return Gate::Ask };
        #[cfg(not(Py_3_14))]
        {
            // SAFETY: an exact dict kept alive by the plan.
            let version = unsafe { environment::dict_version(cache.as_ptr()) };
            if self.gates_version.load(Relaxed) == version {
                match self.gates.get(gate).map_or(-1, |known| known.load(Relaxed)) {
                    1 => return Gate::On,
                    0 => return Gate::Off,
                    _ => {}
                }
            } else {
                for known in &self.gates {
                    known.store(-1, Relaxed);
                }
                self.gates_version.store(version, Relaxed);
            }
        }
        // SAFETY: a live dict and an int: neither hash nor comparison runs Python code.
        let found = unsafe { ffi::PyDict_GetItemWithError(cache.as_ptr(), level) };
        // SAFETY: addresses of the two singletons.
        let answer = unsafe {
            if found == ffi::Py_True() {
                Gate::On
            } else if found == ffi::Py_False() {
                Gate::Off
            } else {
                if found.is_null() && !ffi::PyErr_Occurred().is_null() {
                    ffi::PyErr_Clear();
                }
                return Gate::Ask;
            }
        };
        #[cfg(not(Py_3_14))]
        if let Some(known) = self.gates.get(gate) {
            known.store((answer == Gate::On) as i8, Relaxed);
        }
        answer
    }
}
