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
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use crate::interpreter::object::{self, Object, Owned, WeakReference};
use crate::plans::environment::{self, MadeUnder, WatchableDict};
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
    pub items: Vec<WeakReference>,
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
    pub level_cache: Option<WatchableDict>,
    /// Version of `level_cache` for which `gates` hold.
    pub gates_version: AtomicU64,
    /// Answer per stdlib level: 1 on, 0 off, -1 not asked yet.
    pub gates: [AtomicI8; 5],
    /// Classes and the version tags they had. The first is the logger's own.
    pub types: Vec<ClassVersion>,
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
// SAFETY: interior changes go through atomics.
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

/// A class with the version tag that it had.
pub struct ClassVersion {
    class: Owned,
    tag: u32,
}

impl ClassVersion {
    /// With the tag that it has now, after making CPython assign one; 0 when CPython has none to give.
    pub fn assigned(class: &Bound<'_, PyType>) -> Self {
        unsafe extern "C" {
            fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
        }
        // An attribute lookup on a type is what assigns the tag; the name exists on every class.
        let name = pyo3::intern!(class.py(), "__init__");
        // SAFETY: a live type and `str` of an attached thread; the result is borrowed and not used.
        unsafe { _PyType_Lookup(class.as_type_ptr(), name.as_ptr()) };
        let class = Owned::of(class);
        let tag = tag_of(&class);
        Self { class, tag }
    }

    /// With a tag that was seen before.
    pub fn seen(class: &Bound<'_, PyType>, tag: u32) -> Self {
        Self { class: Owned::of(class), tag }
    }

    /// The tag; 0 where CPython had none to give.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// The address of the class.
    pub fn address(&self) -> usize {
        self.class.as_ptr() as usize
    }

    /// A second reference to the class, with the same tag.
    pub fn again(&self, py: Python<'_>) -> Self {
        Self { class: self.class.again(py), tag: self.tag }
    }

    /// Whether the class has the tag that was seen.
    #[inline(always)]
    pub fn is_same(&self) -> bool {
        tag_of(&self.class) == self.tag
    }

    /// Whether the class is as it was. `false` also where CPython had no tag to give.
    pub fn holds(&self) -> bool {
        self.tag != 0 && self.is_same()
    }
}

/// The version tag of a class, as an [`Owned`] that is known to be one.
#[inline(always)]
fn tag_of(class: &Owned) -> u32 {
    // SAFETY: a live type, held; read like an atomic because on free-threaded builds another thread may be storing it.
    unsafe {
        let tag = &raw const (*class.as_ptr().cast::<ffi::PyTypeObject>()).tp_version_tag;
        (*tag.cast::<std::sync::atomic::AtomicU32>()).load(Relaxed)
    }
}

impl ListShape {
    /// The shape of an exact list; `None` for another object, and where an item cannot be referred to weakly.
    pub fn of(list: &Bound<'_, PyAny>) -> Option<Self> {
        let exact = list.cast_exact::<PyList>().ok()?;
        let items: Option<Vec<_>> = exact.iter().map(|item| WeakReference::new(&item, None).ok()).collect();
        Some(Self { list: Owned::of(list), items: items? })
    }

    /// Whether the list is as it was.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline(always)]
    pub fn fresh(&self, _attached: Python<'_>) -> bool {
        // SAFETY: an exact list kept alive by `self`; the GIL, which the token shows to be held, keeps its items in
        // place while they are compared, and only addresses are compared.
        unsafe {
            let list = self.list.as_ptr().cast::<ffi::PyListObject>();
            if (*list).ob_base.ob_size as usize != self.items.len() {
                return false;
            }
            let items = (*list).ob_item;
            self.items.iter().enumerate().all(|(index, item)| *items.add(index) == item.referent())
        }
    }

    /// Whether the list is as it was.
    #[cfg(Py_GIL_DISABLED)]
    pub fn fresh(&self, _attached: Python<'_>) -> bool {
        // SAFETY: an exact list kept alive by `self`; `PyList_GetItemRef` is atomic against other threads.
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
    /// Whether the level question may be answered here: the class and the epoch are what they were.
    #[inline(always)]
    pub fn gate_holds(&self) -> bool {
        self.made_under.epoch == environment::epoch() && self.types[0].is_same()
    }

    /// Whether everything the plan was made from is as it was. Runs no foreign code.
    #[inline(always)]
    pub fn fresh(&self, py: Python<'_>) -> bool {
        self.made_under.epoch == environment::epoch() && self.inputs_hold(py)
    }

    /// Whether the plan serves a call that began in the epoch `since`: it is fresh, or was made since then and only
    /// other threads have changed something meanwhile.
    pub fn serves(&self, py: Python<'_>, since: u64) -> bool {
        let is_new = self.made_under.epoch >= since && self.made_under.serves_call();
        (is_new || self.made_under.epoch == environment::epoch()) && self.inputs_hold(py)
    }

    /// Whether all is as it was that no epoch shows.
    #[inline(always)]
    fn inputs_hold(&self, py: Python<'_>) -> bool {
        environment::unmoved(py)
            && self.route.as_ref().is_none_or(|route| route.made_under.generation == pipeline::generation())
            && self.types.iter().all(ClassVersion::is_same)
            // SAFETY: the plan keeps the objects and counters in which its words are.
            && self.words.iter().all(|word| unsafe { word.holds() })
            && self.lists.iter().all(|list| list.fresh(py))
    }

    /// Whether a record of this level could go the native way if files were open that its handlers open with it.
    pub fn opens(&self, level: u16) -> bool {
        (self.opens_from..self.stock_from_if_open).contains(&u32::from(level))
    }

    /// Asks the logger's own cache whether a level, an exact `int`, is enabled; `gate` is its index among the stdlib
    /// levels, or larger.
    #[inline(always)]
    pub fn gate(&self, gate: usize, level: Object<'_, '_>) -> Gate {
        if self.disabled {
            return Gate::Off;
        }
        let Some(cache) = &self.level_cache else { return Gate::Ask };
        #[cfg(not(Py_3_14))]
        {
            let version = environment::dict_version(cache);
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
        // SAFETY: a live dict and an exact int of an attached thread: neither hash nor comparison runs Python code.
        let found = unsafe { ffi::PyDict_GetItemWithError(cache.object().as_ptr(), level.as_ptr()) };
        // SAFETY: addresses of the two singletons.
        let (yes, no) = unsafe { (ffi::Py_True(), ffi::Py_False()) };
        let answer = if found == yes {
            Gate::On
        } else if found == no {
            Gate::Off
        } else {
            if found.is_null() {
                object::clear_error(level.py());
            }
            return Gate::Ask;
        };
        #[cfg(not(Py_3_14))]
        if let Some(known) = self.gates.get(gate) {
            known.store((answer == Gate::On) as i8, Relaxed);
        }
        answer
    }
}
