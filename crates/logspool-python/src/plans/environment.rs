//! Watches the module globals that stock logging reads at every call, and detects changes made after the plans.
//!
//! Pipeline stage: *capture*, part of the check before the native path (see ARCHITECTURE.md). Users and freezegun
//! assign `logging._srcfile`, `time.time` and similar globals without any setter. Changes of a dict are numbered
//! (`change_number.rs`), so the check is one comparison per dict. Only after the number of a dict has changed are its
//! watched values compared. Where a dict has no number, each check looks up all watched values.
//!
//! time-machine replaces the C code of `time.time` and leaves the object. So the code of each watched builtin function
//! is compared, too.
//!
//! Atomics belong in `queue`; those of this file are an exception: every logging call reads the epoch and the recorded
//! versions without a lock.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use logspool::pipeline;
use logspool_sys::published::{Counted, Published};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::native_code::WatchedFunction;
use crate::interpreter::object::{self, Object, Owned};

/// The number of the current epoch. It increases after every change that may affect a plan. Plans of an older epoch are
/// made again.
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// The current epoch. A thread that reads this number also sees every change made before the epoch began.
#[inline(always)]
pub fn epoch() -> u64 {
    // Pairs with `advance` in `advance_epoch`.
    EPOCH.observe()
}

/// Makes every plan stale, but no description. Called after a logger, a handler or a sink has changed.
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

/// Increases after a change that may affect the descriptions of all handlers and classes. Such changes are assignments
/// to watched module globals, and replacements of stock methods by methods of logspool. Changes of a single handler or
/// formatter are detected by [`crate::plans::hooks`].
static DESCRIPTIONS: AtomicU64 = AtomicU64::new(1);

/// The current value of the number under which descriptions are made. Read it before an object is described.
#[inline(always)]
pub fn descriptions() -> u64 {
    // Pairs with `advance` in `make_all_stale`.
    DESCRIPTIONS.observe()
}

/// Makes stale every plan, every description, and every record that was prepared but not pushed.
pub fn make_all_stale() {
    DESCRIPTIONS.advance();
    stop_pushes();
}

/// The stop number. After it has increased, records that were prepared before must not be pushed. It increases when a
/// sink was taken from its handler and is about to be closed, and when `install()` is no longer in force.
static STOPS: AtomicU64 = AtomicU64::new(0);

/// The current stop number. A record may be pushed only under the stop number under which it was prepared.
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

/// Maximum number of watched dicts: `logging`, `time`, `threading`, `_levelToName`, and two spare ones.
const MAX_DICTS: usize = 6;

/// Where the number of a watched dict is, and the number at the last comparison.
struct DictSlot {
    place: AtomicPtr<AtomicU64>,
    seen: AtomicU64,
}

impl DictSlot {
    #[inline(always)]
    fn is_same(&self) -> bool {
        // SAFETY: a slot in use has the place of a static, or of a dict that `WATCHED` keeps alive.
        unsafe { (*self.place.load(Relaxed)).load(Relaxed) == self.seen.load(Relaxed) }
    }
}

static SLOTS: [DictSlot; MAX_DICTS] =
    [const { DictSlot { place: AtomicPtr::new((&raw const NO_NUMBER).cast_mut()), seen: AtomicU64::new(u64::MAX) } };
        MAX_DICTS];
static USED: AtomicUsize = AtomicUsize::new(0);
/// The number of dicts whose changes are not numbered: no slot has seen it.
static NO_NUMBER: AtomicU64 = AtomicU64::new(0);
/// True if a watched dict has no number.
static HAS_UNNUMBERED: AtomicBool = AtomicBool::new(false);

struct WatchedDict {
    dict: NumberedDict,
    what: WatchedContent,
}

/// The watched content of a dict, recorded at the last comparison.
enum WatchedContent {
    /// Watched names, each with its recorded value; `None` if the dict did not have the name.
    Names(Vec<(Owned, Option<Owned>)>),
    /// All entries whose keys are numbers.
    All(NumberedItems),
}

/// The recorded entries of a dict whose keys are numbers. Entries with other keys are not compared: a lookup by number
/// finds such a key only if the key's own `__eq__` says that it is equal.
struct NumberedItems {
    len: ffi::Py_ssize_t,
    of_numbers: Vec<(Owned, Owned)>,
}

impl NumberedItems {
    fn of(py: Python<'_>, dict: &NumberedDict) -> Self {
        let dict = dict.object().as_ptr();
        // SAFETY: a live dict, and the thread is attached. No other code has the list of items, and its items are
        // pairs.
        unsafe {
            // Read before the items: an item that is added in between then shows as a difference in the length.
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
    fn hold(&self, _attached: Python<'_>, dict: &NumberedDict) -> bool {
        let dict = dict.object().as_ptr();
        // SAFETY: live objects, and the token shows that the thread is attached; looking up a number runs no user
        // Python code.
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

/// The builtin functions whose code is compared.
static CODES: OnceLock<Box<[WatchedFunction]>> = OnceLock::new();

/// Starts to compare the code of these objects as far as they are builtin functions. Later calls change nothing.
///
/// Each call checks only the first function, the clock of records: whoever replaces the code of another one replaces
/// that of the clock, too. [`refresh`] compares all.
pub fn watch_code(functions: &[Bound<'_, PyAny>]) {
    let codes = CODES.get_or_init(|| functions.iter().filter_map(WatchedFunction::of).collect());
    if let Some(clock) = codes.first() {
        CLOCK_CODE.store(clock.code(), Relaxed);
        CLOCK.store(std::ptr::from_ref(clock.place()).cast_mut(), Relaxed);
    }
}

/// Where the first function of `CODES` has its code, and the code that was there at the last [`refresh`]. Until a
/// function is watched, this is a comparison of the code with itself.
static CLOCK: AtomicPtr<AtomicPtr<c_void>> = AtomicPtr::new((&raw const CLOCK_CODE).cast_mut());
static CLOCK_CODE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// True if the clock of records has the code that it had at the last [`refresh`].
#[inline(always)]
fn clock_holds() -> bool {
    // SAFETY: the address of a static, or of a field that a function of `CODES` keeps.
    unsafe { (*CLOCK.load(Relaxed)).load(Relaxed) == CLOCK_CODE.load(Relaxed) }
}

static WATCHED: Mutex<Vec<WatchedDict>> = Mutex::new(Vec::new());

/// Starts to watch `names` in `dict`. If `names` is `None`, watches all entries whose keys are numbers.
pub fn watch(dict: &Bound<'_, PyDict>, names: Option<&[Bound<'_, PyAny>]>) {
    let py = dict.py();
    let held = NumberedDict::of(dict);
    // Before the values: a later change then shows.
    let seen = held.now();
    let what = match names {
        Some(names) => {
            WatchedContent::Names(names.iter().map(|name| (Owned::of(name), value_in(py, &held, name))).collect())
        }
        None => WatchedContent::All(NumberedItems::of(py, &held)),
    };
    let mut watched = WATCHED.lock().expect("no panic happens while it is held");
    let index = watched.len();
    assert!(index < MAX_DICTS, "more dicts are watched than there are slots");
    let place = held.place().unwrap_or((&raw const NO_NUMBER).cast_mut());
    SLOTS[index].place.store(place, Relaxed);
    SLOTS[index].seen.store(seen.unwrap_or(u64::MAX), Relaxed);
    HAS_UNNUMBERED.fetch_or(seen.is_none(), Relaxed);
    watched.push(WatchedDict { dict: held, what });
    USED.store(watched.len(), Relaxed);
}

/// Stops watching everything.
pub fn forget_all() {
    USED.store(0, Relaxed);
    HAS_UNNUMBERED.store(false, Relaxed);
    let gone = std::mem::take(&mut *WATCHED.lock().expect("no panic happens while it is held"));
    drop(gone);
    make_all_stale();
}

fn value_in(py: Python<'_>, dict: &NumberedDict, name: &Bound<'_, PyAny>) -> Option<Owned> {
    // SAFETY: a live dict and `str`, and the thread is attached. An own reference to the value is taken at once.
    let value = unsafe {
        let value = ffi::PyDict_GetItemWithError(dict.object().as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(py, value).map(|value| Owned::of(&value))
    };
    if value.is_none() {
        object::clear_error(py);
    }
    value
}

/// True if no watched dict and no code has changed since [`refresh`]. Runs no user Python code.
#[inline(always)]
pub fn is_unchanged(py: Python<'_>) -> bool {
    if !clock_holds() {
        return false;
    }
    let used = USED.load(Relaxed).min(MAX_DICTS);
    SLOTS[..used].iter().all(DictSlot::is_same) || (HAS_UNNUMBERED.load(Relaxed) && all_values_hold(py))
}

/// True if each watched value is the recorded one.
#[cold]
fn all_values_hold(py: Python<'_>) -> bool {
    let Ok(watched) = WATCHED.try_lock() else { return false };
    watched.iter().all(|entry| match &entry.what {
        WatchedContent::Names(names) => names.iter().all(|(name, old)| {
            // SAFETY: dict, name and value are kept alive by the entry; only addresses are compared.
            let now = unsafe { ffi::PyDict_GetItemWithError(entry.dict.object().as_ptr(), name.as_ptr()) };
            now == old.as_ref().map_or(std::ptr::null_mut(), Owned::as_ptr)
        }),
        WatchedContent::All(items) => items.hold(py, &entry.dict),
    })
}

/// Calls [`refresh`] if a watched dict has changed since then.
#[inline]
pub fn follow(py: Python<'_>) {
    if !is_unchanged(py) {
        refresh(py);
    }
}

/// Compares the watched values with the recorded ones. If one has changed, records the new values and begins a new
/// epoch. May run user Python code.
#[cold]
#[inline(never)]
pub fn refresh(py: Python<'_>) {
    let mut moved = false;
    let (mut gone, mut gone_items) = (Vec::new(), Vec::new());
    // `try_lock`, because this call may be nested: a finalizer that logs can run during the comparison of an outer
    // call. The nested call leaves the comparison to the outer one.
    let Ok(mut watched) = WATCHED.try_lock() else { return };
    for (slot, WatchedDict { dict, what }) in SLOTS.iter().zip(watched.iter_mut()) {
        if let Some(now) = dict.now()
            && slot.seen.swap(now, Relaxed) == now
        {
            continue;
        }
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
    for code in CODES.get().into_iter().flatten() {
        moved |= code.refresh();
    }
    if let Some(clock) = CODES.get().and_then(|codes| codes.first()) {
        CLOCK_CODE.store(clock.code(), Relaxed);
    }
    if moved {
        make_all_stale();
    }
    drop((gone, gone_items));
}

/// The epoch, the stop number and the id epoch under which the ids in a record were made.
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
    /// The current numbers. Read them before anything is made whose validity depends on them.
    pub fn now() -> Self {
        Self { epoch: epoch(), stops: stops(), id_epoch: pipeline::id_epoch() }
    }

    /// True if the epoch and the id epoch are unchanged.
    #[inline(always)]
    pub fn holds(self) -> bool {
        self.epoch == epoch() && self.id_epoch == pipeline::id_epoch()
    }

    /// True if the ids are valid for the call that made or found them. Changes by other threads during the call do not
    /// count, because nothing decides whether they came before the call. Changes by this thread count.
    pub fn serves_call(self) -> bool {
        self.holds() || self.may_push() && only_other_threads_changed(self.epoch)
    }

    /// True if records prepared under these numbers may still be pushed: the sinks that were open then are still open.
    #[inline(always)]
    pub fn may_push(self) -> bool {
        self.stops == stops() && self.id_epoch == pipeline::id_epoch()
    }
}
