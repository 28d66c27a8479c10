//! Watches the module globals that stock logging reads at every call: are they unchanged since the plans were made?
//!
//! Stop on the line: *capture*, part of the check before the native path. Users and freezegun assign
//! `logging._srcfile`, `time.time` and similar globals without any setter. CPython numbers each change of a dict
//! (`ma_version_tag`, 3.10-3.13; checked per version in `tests/python`), so the check is one comparison per dict. Only
//! after a number has changed are the watched values themselves compared. From 3.14 on there is no such number. There
//! the values are looked up each time, as are all values of a dict that is watched as a whole.
//!
//! Atomics outside `queue`: every logging call reads the epoch and the recorded versions without a lock.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

use logspool::pipeline;
use logspool_sys::published::{Counted, Published};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interpreter::object::{self, Object, Owned};

/// Increases after every change that may affect a plan. Plans of an older epoch are made again.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// The current epoch. A thread that reads it sees every change made before the epoch began.
#[inline(always)]
pub fn epoch() -> u64 {
    // Pairs with `advance` where it moves.
    EPOCH.observe()
}

/// Makes every plan stale, but no description: loggers, handlers or sinks have changed.
pub fn advance_epoch() {
    let epoch = EPOCH.advance();
    let _ = OWN_EPOCH.try_with(|own| own.set(epoch));
}

thread_local! {
    /// The last epoch begun by this thread.
    static OWN_EPOCH: Cell<u64> = const { Cell::new(0) };
}

/// True if this thread has begun no epoch after `epoch`: any later change was made by other threads, concurrently.
pub fn only_other_threads_changed(epoch: u64) -> bool {
    OWN_EPOCH.try_with(Cell::get).is_ok_and(|own| own <= epoch)
}

/// Increases after a change that may affect descriptions of all handlers and classes: of the module globals, or of the
/// methods by which logspool replaced stock ones. [`crate::plans::hooks`] sees changes of one handler or formatter.
static DESCRIPTIONS: AtomicU64 = AtomicU64::new(1);

/// The number under which descriptions are made. Read it before the object is described.
#[inline(always)]
pub fn descriptions() -> u64 {
    // Pairs with `advance` where it moves.
    DESCRIPTIONS.observe()
}

/// Makes stale every plan, every description, and every record that was prepared but not pushed.
pub fn make_all_stale() {
    DESCRIPTIONS.advance();
    stop_pushes();
}

/// Increases when records that were prepared earlier must not be pushed. Either a sink was taken from its handler and
/// is about to be closed, or `install()` is no longer in force.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// A record may be pushed only under the number under which it was prepared.
#[inline(always)]
pub fn stops() -> u64 {
    // Pairs with `advance` in `stop_pushes`.
    STOPS.observe()
}

/// Makes stale every plan, and every record that was prepared but not pushed.
pub fn stop_pushes() {
    STOPS.advance();
    advance_epoch();
}

/// Largest number of watched dicts: logging, time, threading, `_levelToName`, and two more.
const MAX_DICTS: usize = 6;

struct DictSlot {
    dict: AtomicPtr<PyObject>,
    version: AtomicU64,
}

static SLOTS: [DictSlot; MAX_DICTS] =
    [const { DictSlot { dict: AtomicPtr::new(std::ptr::null_mut()), version: AtomicU64::new(0) } }; MAX_DICTS];
static USED: AtomicUsize = AtomicUsize::new(0);

struct WatchedDict {
    dict: WatchableDict,
    what: WatchedContent,
}

/// The watched content of a dict, as it was.
enum WatchedContent {
    /// Names, with their values at that time.
    Names(Vec<(Owned, Option<Owned>)>),
    /// The whole dict.
    All(NumberedItems),
}

/// The entries of a dict whose keys are numbers, as they were. Entries with other keys are not compared: a lookup by
/// number does not find them, or only through their own `__eq__`.
struct NumberedItems {
    len: ffi::Py_ssize_t,
    of_numbers: Vec<(Owned, Owned)>,
}

impl NumberedItems {
    fn of(py: Python<'_>, dict: &WatchableDict) -> Self {
        let dict = dict.0.as_ptr();
        // SAFETY: a live dict, and the thread is attached; the list is our own, and its items are pairs.
        unsafe {
            // Read before the items: an item added in between then shows as a difference.
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

    /// True if `dict` still has these items.
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

/// True if the object is hashed and compared like an `int`: an `int`, or a member of an `IntEnum`.
fn is_number(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object and its type.
    unsafe {
        let (class, int) = (ffi::Py_TYPE(object.as_ptr()), &raw const ffi::PyLong_Type);
        let hash = |class: *const ffi::PyTypeObject| (*class).tp_hash.map(|hash| hash as usize);
        let compare = |class: *const ffi::PyTypeObject| (*class).tp_richcompare.map(|compare| compare as usize);
        ffi::PyLong_Check(object.as_ptr()) != 0 && hash(class) == hash(int) && compare(class) == compare(int)
    }
}

/// A reference to a dict that can be watched.
pub struct WatchableDict(Owned);

impl WatchableDict {
    /// Takes a reference to a dict.
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

/// Offset of the number of a dict's last change. From 3.14 on the offset of its number of items, which shows names that
/// are added or removed, but no values that change.
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
    // SAFETY: a dict that is kept alive by its reference.
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
    // SAFETY: the first fields of `PyDictObject` are the same from 3.10 to 3.13. The number is read atomically because
    // another thread may be storing it on free-threaded builds.
    unsafe { (*(&raw const (*dict.cast::<DictHead>()).ma_version_tag).cast::<AtomicU64>()).load(Relaxed) }
}

/// Starts to watch `names` in `dict`, or without names all entries with numbers as keys.
pub fn watch(dict: &Bound<'_, PyDict>, names: Option<&[Bound<'_, PyAny>]>) {
    let py = dict.py();
    let held = WatchableDict::of(dict);
    let what = match names {
        Some(names) => {
            WatchedContent::Names(names.iter().map(|name| (Owned::of(name), value_in(py, &held, name))).collect())
        }
        None => WatchedContent::All(NumberedItems::of(py, &held)),
    };
    let mut watched = WATCHED.lock().expect("no panic happens while it is held");
    let index = watched.len();
    assert!(index < MAX_DICTS, "more dicts are watched than there are slots");
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
    make_all_stale();
}

fn value_in(py: Python<'_>, dict: &WatchableDict, name: &Bound<'_, PyAny>) -> Option<Owned> {
    // SAFETY: a live dict and `str`, and the thread is attached; the value becomes an own reference at once.
    let value = unsafe {
        let value = ffi::PyDict_GetItemWithError(dict.0.as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(py, value).map(|value| Owned::of(&value))
    };
    if value.is_none() {
        object::clear_error(py);
    }
    value
}

/// True if no watched dict has changed since [`refresh`]; runs no foreign code.
#[inline(always)]
pub fn is_unchanged(py: Python<'_>) -> bool {
    #[cfg(not(Py_3_14))]
    {
        let _ = py;
        let used = USED.load(Relaxed).min(MAX_DICTS);
        // SAFETY: a slot in use holds a dict that `WATCHED` keeps alive.
        SLOTS[..used].iter().all(|slot| unsafe { version_at(slot.dict.load(Relaxed)) } == slot.version.load(Relaxed))
    }
    #[cfg(Py_3_14)]
    {
        let Ok(watched) = WATCHED.try_lock() else { return false };
        watched.iter().all(|entry| match &entry.what {
            WatchedContent::Names(names) => names.iter().all(|(name, old)| {
                // SAFETY: dict, name and value are kept alive by the entry; only addresses are compared.
                let now = unsafe { ffi::PyDict_GetItemWithError(entry.dict.0.as_ptr(), name.as_ptr()) };
                now == old.as_ref().map_or(std::ptr::null_mut(), Owned::as_ptr)
            }),
            WatchedContent::All(items) => items.hold(py, &entry.dict),
        })
    }
}

/// Compares the watched values with the recorded ones, and begins a new epoch if one has changed. May run foreign code.
#[cold]
#[inline(never)]
pub fn refresh(py: Python<'_>) {
    let mut moved = false;
    let (mut gone, mut gone_items) = (Vec::new(), Vec::new());
    // `try_lock`: a nested call (from a finalizer that logs) leaves the comparison to the outer call, which is doing
    // it.
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
            WatchedContent::All(items) => {
                if !items.hold(py, dict) {
                    moved = true;
                    gone_items.push(std::mem::replace(items, NumberedItems::of(py, dict)));
                }
            }
            WatchedContent::Names(names) => {
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
        make_all_stale();
    }
    drop((gone, gone_items));
}

/// The epoch and numbers under which the ids in a record were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdValidity {
    /// [`epoch()`]
    pub epoch: u64,
    /// [`stops()`]
    pub stops: u64,
    /// [`pipeline::id_epoch`]
    pub id_epoch: u64,
}

impl IdValidity {
    /// The current numbers. Read them before anything is made from them.
    pub fn now() -> Self {
        Self { epoch: epoch(), stops: stops(), id_epoch: pipeline::id_epoch() }
    }

    /// True if nothing has changed.
    #[inline(always)]
    pub fn holds(self) -> bool {
        self.epoch == epoch() && self.id_epoch == pipeline::id_epoch()
    }

    /// True if it is valid for the call in which it was made or found. Changes made by other threads meanwhile do not
    /// count: whether they came before the call cannot be decided. Changes made by this thread do count.
    pub fn serves_call(self) -> bool {
        self.holds() || self.may_push() && only_other_threads_changed(self.epoch)
    }

    /// True if records prepared under these numbers may still be pushed: the sinks that were open then are still open.
    #[inline(always)]
    pub fn may_push(self) -> bool {
        self.stops == stops() && self.id_epoch == pipeline::id_epoch()
    }
}
