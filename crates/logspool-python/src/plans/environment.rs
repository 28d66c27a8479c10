//! The module globals that stock logging reads at every call: are they what the plans were made under?
//!
//! Stop on the line: *capture*, part of the check before the native path. `logging._srcfile`, `time.time`
//! and their like are assigned by users and by freezegun, past every setter. CPython numbers each change of a
//! dict (`ma_version_tag`, 3.10-3.13; checked per version in `tests/python`), so the check is one comparison per
//! dict; only when a number moved are the watched values themselves compared. From 3.14 on there is no such
//! number and the values are looked up each time, also all of a dict that is watched as a whole.
//!
//! Atomics outside `queue`: epoch and recorded versions are read without a lock by every logging call.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

use logspool::pipeline;
use logspool_sys::published::{Counted, Published};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interpreter::object::{self, Object, Owned};

/// Moves whenever something changed that a plan may depend on. Plans of an older epoch are made again.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// The current epoch. What was changed before it began is seen by whoever reads it.
#[inline(always)]
pub fn epoch() -> u64 {
    // Pairs with `advance` where it moves.
    EPOCH.observe()
}

/// Makes every plan stale, but no description: loggers, handlers or sinks changed.
pub fn move_plans() {
    let epoch = EPOCH.advance();
    let _ = OWN_EPOCH.try_with(|own| own.set(epoch));
}

thread_local! {
    /// The last epoch that this thread began.
    static OWN_EPOCH: Cell<u64> = const { Cell::new(0) };
}

/// Whether this thread has begun no epoch after that one: what changed since was changed by others, at the same time.
pub fn only_others_moved(epoch: u64) -> bool {
    OWN_EPOCH.try_with(Cell::get).is_ok_and(|own| own <= epoch)
}

/// Moves whenever something changed that descriptions of all handlers and classes may depend on: the module globals
/// and what logspool put in place of stock methods. Changes of one handler or formatter are seen by [`crate::plans::hooks`].
static DESCRIPTIONS: AtomicU64 = AtomicU64::new(1);

/// What descriptions are made under. Read it before the thing that is described.
#[inline(always)]
pub fn descriptions() -> u64 {
    // Pairs with `advance` where it moves.
    DESCRIPTIONS.observe()
}

/// Makes every plan and every description stale, and what was made ready to be pushed.
pub fn bump() {
    DESCRIPTIONS.advance();
    stop_pushes();
}

/// Moves whenever what was made ready before must not be pushed: a sink was taken from its handler and is about to be
/// closed, or `install()` is not in force any more.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// What is pushed was made ready under the same number.
#[inline(always)]
pub fn stops() -> u64 {
    // Pairs with `advance` in `stop_pushes`.
    STOPS.observe()
}

/// Makes stale every plan, and what was made ready to be pushed.
pub fn stop_pushes() {
    STOPS.advance();
    move_plans();
}

/// Most dicts that can be watched: logging, time, threading, `_levelToName`, with room for two more.
const MOST_DICTS: usize = 6;

struct Slot {
    dict: AtomicPtr<PyObject>,
    version: AtomicU64,
}

static SLOTS: [Slot; MOST_DICTS] =
    [const { Slot { dict: AtomicPtr::new(std::ptr::null_mut()), version: AtomicU64::new(0) } }; MOST_DICTS];
static USED: AtomicUsize = AtomicUsize::new(0);

struct WatchedDict {
    dict: WatchableDict,
    what: What,
}

/// What is watched of a dict, as it was.
enum What {
    /// Names and the values they had.
    Names(Vec<(Owned, Option<Owned>)>),
    /// The whole dict.
    All(Items),
}

/// A dict from numbers to something, as it was. Nobody finds what has another key, or only by code of its own.
struct Items {
    len: ffi::Py_ssize_t,
    of_numbers: Vec<(Owned, Owned)>,
}

impl Items {
    fn of(py: Python<'_>, dict: &WatchableDict) -> Self {
        let dict = dict.0.as_ptr();
        // SAFETY: a live dict of an attached thread; the list is ours, and its items are pairs.
        unsafe {
            // Before the items: one that comes in between makes a difference, not a secret.
            let len = ffi::PyDict_Size(dict);
            let Some(items) = Owned::steal(ffi::PyDict_Items(dict)) else {
                ffi::PyErr_Clear();
                return Self { len: -1, of_numbers: Vec::new() };
            };
            let pair = |index| {
                let item = ffi::PyList_GET_ITEM(items.as_ptr(), index);
                let part = |place| Borrowed::from_ptr(py, ffi::PyTuple_GET_ITEM(item, place));
                (part(0), part(1))
            };
            let pairs = (0..ffi::PyList_GET_SIZE(items.as_ptr())).map(pair);
            let of_numbers = pairs
                .filter(|(key, _)| is_number(*key))
                .map(|(key, value)| (Owned::of(&key), Owned::of(&value)))
                .collect();
            Self { len, of_numbers }
        }
    }

    /// Whether `dict` still has these items.
    fn hold(&self, _attached: Python<'_>, dict: &WatchableDict) -> bool {
        let dict = dict.0.as_ptr();
        // SAFETY: live objects, and the token shows that the thread is attached; looking up a number runs no foreign
        // code.
        unsafe {
            ffi::PyDict_Size(dict) == self.len
                && self
                    .of_numbers
                    .iter()
                    .all(|(key, value)| ffi::PyDict_GetItemWithError(dict, key.as_ptr()) == value.as_ptr())
        }
    }
}

/// Whether the object is hashed and compared as `int` does it: one, or that of an `IntEnum`.
fn is_number(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object and its type.
    unsafe {
        let (class, int) = (ffi::Py_TYPE(object.as_ptr()), &raw const ffi::PyLong_Type);
        let hash = |class: *const ffi::PyTypeObject| (*class).tp_hash.map(|hash| hash as usize);
        let compare = |class: *const ffi::PyTypeObject| (*class).tp_richcompare.map(|compare| compare as usize);
        ffi::PyLong_Check(object.as_ptr()) != 0 && hash(class) == hash(int) && compare(class) == compare(int)
    }
}

/// A dict, held.
pub struct WatchableDict(Owned);

impl WatchableDict {
    /// Holds a dict.
    pub fn of(dict: &Bound<'_, PyDict>) -> Self {
        Self(Owned::of(dict))
    }

    /// The object.
    pub fn object(&self) -> &Owned {
        &self.0
    }
}

static WATCHED: Mutex<Vec<WatchedDict>> = Mutex::new(Vec::new());

#[repr(C)]
struct DictHead {
    head: PyObject,
    ma_used: ffi::Py_ssize_t,
    #[cfg(not(Py_3_14))]
    ma_version_tag: u64,
}

/// Where a dict keeps the number of its last change; from 3.14 on the number of its items, which tells of names that
/// come and go, and not of values that change.
pub fn dict_state_offset() -> usize {
    #[cfg(not(Py_3_14))]
    return std::mem::offset_of!(DictHead, ma_version_tag);
    #[cfg(Py_3_14)]
    return std::mem::offset_of!(DictHead, ma_used);
}

/// The number of the dict's last change.
#[cfg(not(Py_3_14))]
#[inline(always)]
pub fn dict_version(dict: &WatchableDict) -> u64 {
    // SAFETY: a dict, held.
    unsafe { version_at(dict.0.as_ptr()) }
}

/// The number of the last change of the dict at an address.
///
/// # Safety
///
/// `dict` is a live dict.
#[cfg(not(Py_3_14))]
#[inline(always)]
unsafe fn version_at(dict: *mut PyObject) -> u64 {
    // SAFETY: the first fields of `PyDictObject`, the same from 3.10 to 3.13; read like an atomic because on
    // free-threaded builds another thread may be storing it.
    unsafe { (*(&raw const (*dict.cast::<DictHead>()).ma_version_tag).cast::<AtomicU64>()).load(Relaxed) }
}

/// Starts watching `names` in `dict`, or all that it has for numbers.
pub fn watch(dict: &Bound<'_, PyDict>, names: Option<&[Bound<'_, PyAny>]>) {
    let py = dict.py();
    let held = WatchableDict::of(dict);
    let what = match names {
        Some(names) => What::Names(names.iter().map(|name| (Owned::of(name), value_in(py, &held, name))).collect()),
        None => What::All(Items::of(py, &held)),
    };
    let mut watched = WATCHED.lock().expect("no panic happens while it is held");
    let index = watched.len();
    assert!(index < MOST_DICTS, "more dicts are watched than there are slots");
    SLOTS[index].dict.store(dict.as_ptr(), Relaxed);
    #[cfg(not(Py_3_14))]
    SLOTS[index].version.store(dict_version(&held), Relaxed);
    watched.push(WatchedDict { dict: held, what });
    USED.store(watched.len(), Relaxed);
}

/// Stops watching everything.
pub fn forget_all() {
    USED.store(0, Relaxed);
    let gone = std::mem::take(&mut *WATCHED.lock().expect("no panic happens while it is held"));
    drop(gone);
    bump();
}

fn value_in(py: Python<'_>, dict: &WatchableDict, name: &Bound<'_, PyAny>) -> Option<Owned> {
    // SAFETY: a live dict and `str` of an attached thread; the value is made an own reference at once.
    let value = unsafe {
        let value = ffi::PyDict_GetItemWithError(dict.0.as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(py, value).map(|value| Owned::of(&value))
    };
    if value.is_none() {
        object::clear_error(py);
    }
    value
}

/// Whether no watched dict changed since [`refresh`]; runs no foreign code.
#[inline(always)]
pub fn unmoved(py: Python<'_>) -> bool {
    #[cfg(not(Py_3_14))]
    {
        let _ = py;
        let used = USED.load(Relaxed).min(MOST_DICTS);
        // SAFETY: a slot in use holds a dict that `WATCHED` keeps alive.
        SLOTS[..used].iter().all(|slot| unsafe { version_at(slot.dict.load(Relaxed)) } == slot.version.load(Relaxed))
    }
    #[cfg(Py_3_14)]
    {
        let Ok(watched) = WATCHED.try_lock() else { return false };
        watched.iter().all(|entry| match &entry.what {
            What::Names(names) => names.iter().all(|(name, old)| {
                // SAFETY: dict, name and value are kept alive by the entry; only addresses are compared.
                let now = unsafe { ffi::PyDict_GetItemWithError(entry.dict.0.as_ptr(), name.as_ptr()) };
                now == old.as_ref().map_or(std::ptr::null_mut(), Owned::as_ptr)
            }),
            What::All(items) => items.hold(py, &entry.dict),
        })
    }
}

/// Compares what changed with what was recorded; moves the epoch if a watched value did. May run foreign code.
#[cold]
#[inline(never)]
pub fn refresh(py: Python<'_>) {
    let mut moved = false;
    let (mut gone, mut gone_items) = (Vec::new(), Vec::new());
    // `try_lock`: a nested call (a finalizer that logs) finds the outer one comparing and leaves it to that.
    let Ok(mut watched) = WATCHED.try_lock() else { return };
    for (index, WatchedDict { dict, what }) in watched.iter_mut().enumerate() {
        #[cfg(not(Py_3_14))]
        {
            let version = dict_version(dict);
            if SLOTS[index].version.swap(version, Relaxed) == version {
                continue;
            }
        }
        #[cfg(Py_3_14)]
        let _ = index;
        match what {
            What::All(items) => {
                if !items.hold(py, dict) {
                    moved = true;
                    gone_items.push(std::mem::replace(items, Items::of(py, dict)));
                }
            }
            What::Names(names) => {
                for (name, old) in names {
                    let now = value_in(py, dict, &name.bind(py));
                    if now.as_ref().map(Owned::as_ptr) != old.as_ref().map(Owned::as_ptr) {
                        moved = true;
                        gone.push(std::mem::replace(old, now));
                    }
                }
            }
        }
    }
    drop(watched);
    if moved {
        bump();
    }
    drop((gone, gone_items));
}

/// What the ids in a record were made under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeUnder {
    /// [`epoch()`]
    pub epoch: u64,
    /// [`stops()`]
    pub stops: u64,
    /// [`pipeline::generation`]
    pub generation: u64,
}

impl MadeUnder {
    /// As things are. Read before what is made from them.
    pub fn now() -> Self {
        Self { epoch: epoch(), stops: stops(), generation: pipeline::generation() }
    }

    /// Whether everything is as it was.
    #[inline(always)]
    pub fn holds(self) -> bool {
        self.epoch == epoch() && self.generation == pipeline::generation()
    }

    /// Whether it serves the call in which it was made or met: other threads may have changed something meanwhile, and
    /// nobody can tell whether that was before the call. What this thread itself changed, it has to see.
    pub fn serves_call(self) -> bool {
        self.holds() || self.may_push() && only_others_moved(self.epoch)
    }

    /// Whether what was made under it may still be pushed: the sinks are those that were open.
    #[inline(always)]
    pub fn may_push(self) -> bool {
        self.stops == stops() && self.generation == pipeline::generation()
    }
}
