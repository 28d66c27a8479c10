//! Numbers the changes of a dict, so that a call sees by one comparison that nothing in it has changed.
//!
//! CPython 3.10 to 3.13 keeps such a number in each dict (`ma_version_tag` of PEP 509; checked per version in
//! `tests/python`). From 3.14 on it has no number. There its public dict watchers report each change before it is made,
//! and the numbers are kept here. Free-threaded builds from 3.14 on get no number: another thread could read the number
//! between the notice and the change.
//!
//! No dict has a number before [`self_check`] has seen that numbers follow the changes of a dict.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interpreter::object::Owned;

/// True once [`self_check`] has found numbers. This atomic is outside the crate's `queue` module: it is set once, when
/// logspool is connected.
static HAS_NUMBERS: AtomicBool = AtomicBool::new(false);

/// Checks whether the number of a new dict follows its changes, and uses numbers from then on if it does. Returns why
/// not, or an empty text.
///
/// # Errors
///
/// There is not enough memory.
pub fn self_check(py: Python<'_>) -> PyResult<&'static str> {
    let dict = PyDict::new(py);
    let Some(number) = kind::place(&dict).map(ChangeNumber) else { return Ok(kind::WITHOUT) };
    let follows = changes_with_each_step(&dict, number)?;
    HAS_NUMBERS.store(follows, Relaxed);
    Ok(if follows { "" } else { "the numbers of this build do not follow the changes" })
}

fn changes_with_each_step(dict: &Bound<'_, PyDict>, number: ChangeNumber) -> PyResult<bool> {
    let mut before = number.now();
    let mut changes = || {
        let now = number.now();
        std::mem::replace(&mut before, now) != now
    };
    dict.set_item("name", 1)?;
    let added = changes();
    dict.set_item("name", 2)?;
    let replaced = changes();
    let read = dict.get_item("name")?.is_some() && changes();
    dict.del_item("name")?;
    let removed = changes();
    Ok(added && replaced && !read && removed)
}

/// Where the number of a dict's last change is. It is valid as long as the dict lives.
#[derive(Clone, Copy)]
pub struct ChangeNumber(NonNull<AtomicU64>);

// SAFETY: the number is an atomic that lives as long as its dict, which holders of the number keep alive.
unsafe impl Send for ChangeNumber {}
// SAFETY: as for `Send`.
unsafe impl Sync for ChangeNumber {}

impl ChangeNumber {
    /// The number of a dict. `None` if this interpreter does not report its changes.
    pub fn of(dict: &Bound<'_, PyDict>) -> Option<Self> {
        if HAS_NUMBERS.load(Relaxed) { kind::place(dict).map(Self) } else { None }
    }

    /// The address of the number.
    pub fn place(self) -> *mut AtomicU64 {
        self.0.as_ptr()
    }

    /// The current number. It is never 0.
    #[inline(always)]
    pub fn now(self) -> u64 {
        // SAFETY: holders keep the dict alive.
        unsafe { self.0.as_ref() }.load(Relaxed)
    }
}

/// A dict, and the number of its last change.
pub struct NumberedDict {
    dict: Owned,
    number: Option<ChangeNumber>,
}

impl NumberedDict {
    /// Takes a reference to a dict.
    pub fn of(dict: &Bound<'_, PyDict>) -> Self {
        Self { dict: Owned::of(dict), number: ChangeNumber::of(dict) }
    }

    /// The dict, as an object.
    pub fn object(&self) -> &Owned {
        &self.dict
    }

    /// The address of the number; `None` if this interpreter does not report the dict's changes.
    pub fn place(&self) -> Option<*mut AtomicU64> {
        self.number.map(ChangeNumber::place)
    }

    /// The current number; `None` if this interpreter does not report the dict's changes.
    #[inline(always)]
    pub fn now(&self) -> Option<u64> {
        self.number.map(ChangeNumber::now)
    }
}

#[cfg(not(Py_3_14))]
mod kind {
    use super::{AtomicU64, Bound, NonNull, PyDict};
    use crate::interpreter::dict;

    /// Why a dict has no number.
    pub const WITHOUT: &str = "a dict has no number";

    /// The number that CPython keeps in the dict.
    pub fn place(dict: &Bound<'_, PyDict>) -> Option<NonNull<AtomicU64>> {
        NonNull::new(dict::version_place(dict))
    }
}

#[cfg(all(Py_3_14, Py_GIL_DISABLED))]
mod kind {
    use super::{AtomicU64, Bound, NonNull, PyDict};

    /// Why a dict has no number.
    pub const WITHOUT: &str = "CPython 3.14 and later without a GIL have no number that another thread can read safely";

    pub fn place(_dict: &Bound<'_, PyDict>) -> Option<NonNull<AtomicU64>> {
        None
    }
}

#[cfg(all(Py_3_14, not(Py_GIL_DISABLED)))]
mod kind {
    use std::collections::HashMap;
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
    use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

    use pyo3::ffi::PyObject;
    use pyo3::prelude::*;

    use super::{AtomicU64, NonNull, PyDict};
    use crate::interpreter::object;

    type Watcher = extern "C" fn(c_int, *mut PyObject, *mut PyObject, *mut PyObject) -> c_int;

    unsafe extern "C" {
        fn PyDict_AddWatcher(watcher: Watcher) -> c_int;
        fn PyDict_Watch(watcher: c_int, dict: *mut PyObject) -> c_int;
    }

    /// Why a dict has no number.
    pub const WITHOUT: &str = "CPython gives no dict watcher: other packages use all eight";

    /// `PyDict_EVENT_DEALLOCATED`
    const DEALLOCATED: c_int = 5;

    /// The number of each watched dict, by the address of the dict. Only attached threads lock it, and none of them
    /// detaches meanwhile, so no thread ever waits, in a forked child neither.
    static NUMBERS: LazyLock<Mutex<HashMap<usize, Box<AtomicU64>>>> = LazyLock::new(Mutex::default);

    /// The watcher; -1 before there is one.
    static WATCHER: AtomicI32 = AtomicI32::new(-1);

    fn numbers() -> MutexGuard<'static, HashMap<usize, Box<AtomicU64>>> {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number that is kept here until the dict is deallocated.
    pub fn place(dict: &Bound<'_, PyDict>) -> Option<NonNull<AtomicU64>> {
        let address = dict.as_ptr() as usize;
        if let Some(known) = numbers().get(&address) {
            return Some(NonNull::from(&**known));
        }
        // SAFETY: a live dict of an attached thread. Both functions set an exception if they fail.
        let watches = unsafe {
            if WATCHER.load(Relaxed) < 0 {
                WATCHER.store(PyDict_AddWatcher(note_change), Relaxed);
            }
            WATCHER.load(Relaxed) >= 0 && PyDict_Watch(WATCHER.load(Relaxed), dict.as_ptr()) == 0
        };
        if !watches {
            object::clear_error(dict.py());
            return None;
        }
        Some(NonNull::from(&**numbers().entry(address).or_insert_with(|| Box::new(AtomicU64::new(1)))))
    }

    /// Counts a change of a dict. CPython calls it before the change, and only attached threads read the number.
    extern "C" fn note_change(event: c_int, dict: *mut PyObject, _key: *mut PyObject, _value: *mut PyObject) -> c_int {
        let mut numbers = numbers();
        if event == DEALLOCATED {
            numbers.remove(&(dict as usize));
        } else if let Some(number) = numbers.get(&(dict as usize)) {
            number.fetch_add(1, Relaxed);
        }
        0
    }
}
