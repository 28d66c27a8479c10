//! Acquires and releases a `threading.RLock` without calling its methods.
//!
//! The method `acquire` parses its arguments, which costs ten times what the lock costs. The C struct of the lock has
//! three words: the lock, its owner, and how often the owner has acquired it. From CPython 3.14 on the lock is a
//! `PyMutex`, and the last word counts the acquisitions after the first one. At install the words are compared with what
//! the methods do ([`self_check`]). If they differ, and if another thread has the lock, the methods are called.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, SavedError};
use crate::interpreter::thread;

#[cfg(not(Py_3_14))]
mod kind {
    use std::ffi::{c_int, c_ulong, c_void};

    use pyo3::ffi::PyObject;

    unsafe extern "C" {
        fn PyThread_acquire_lock(lock: *mut c_void, wait: c_int) -> c_int;
        fn PyThread_release_lock(lock: *mut c_void);
    }

    /// The C struct of `_thread.RLock`.
    #[repr(C)]
    pub struct LockWords {
        head: PyObject,
        lock: *mut c_void,
        pub owner: c_ulong,
        pub count: c_ulong,
    }

    /// The number in `count` of a lock that was acquired once.
    pub const ONCE: c_ulong = 1;

    /// The first word of a lock that was acquired, from the word that it has when it is free. `None` if no free lock has
    /// such a word.
    pub fn taken_word(free: usize) -> Option<usize> {
        (free != 0).then_some(free)
    }

    impl LockWords {
        /// Takes the lock if it is free.
        pub fn take(&mut self) -> bool {
            // SAFETY: these words are only in a live lock, and the caller is attached. The call does not wait.
            self.count == 0 && unsafe { PyThread_acquire_lock(self.lock, 0) } == 1
        }

        /// Gives the lock back, which its owner has acquired once.
        pub fn give_back(&mut self) {
            self.count = 0;
            // SAFETY: as in `take`. The only caller has compared the owner with its thread.
            unsafe { PyThread_release_lock(self.lock) };
        }
    }
}

#[cfg(Py_3_14)]
mod kind {
    use std::ffi::c_ulonglong;

    use pyo3::ffi::{PyMutex, PyMutex_IsLocked, PyMutex_Lock, PyMutex_Unlock, PyObject};

    /// The C struct of `_thread.RLock`.
    #[repr(C)]
    pub struct MutexWords {
        head: PyObject,
        mutex: PyMutex,
        pub owner: c_ulonglong,
        pub count: usize,
    }

    /// The number in `count` of a lock that was acquired once.
    pub const ONCE: usize = 0;

    /// The first word of a lock that was acquired, from the word that it has when it is free. `None` if no free lock has
    /// such a word.
    pub fn taken_word(free: usize) -> Option<usize> {
        (free == 0).then_some(1)
    }

    impl MutexWords {
        /// Takes the lock if it is free.
        pub fn take(&mut self) -> bool {
            // SAFETY: these words are only in a live lock, and the caller is attached. Only attached threads lock the
            // mutex, so it is still free when it is locked, and the call does not wait.
            unsafe {
                let is_free = PyMutex_IsLocked(&raw mut self.mutex) == 0;
                if is_free {
                    PyMutex_Lock(&raw mut self.mutex);
                }
                is_free
            }
        }

        /// Gives the lock back, which its owner has acquired once.
        pub fn give_back(&mut self) {
            // SAFETY: as in `take`. The only caller has compared the owner with its thread.
            unsafe { PyMutex_Unlock(&raw mut self.mutex) };
        }
    }
}

#[cfg(not(Py_3_14))]
use kind::LockWords;
#[cfg(Py_3_14)]
use kind::MutexWords as LockWords;
use kind::ONCE;

/// The class of the locks whose struct is known; null if it is not.
///
/// The atomic is outside the crate's `queue` module: it is set once, when logspool is connected.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// Acquires a lock; waits for it if necessary. `None` with an exception set.
#[inline]
pub fn acquire(lock: Object<'_, '_>) -> Option<()> {
    if let Some(words) = known(lock) {
        // SAFETY: the struct of a live lock, which only attached threads change.
        unsafe {
            if (*words).take() {
                (*words).owner = thread::ident();
                (*words).count = ONCE;
                return Some(());
            }
        }
    }
    free_if_stopped(lock);
    leaving::method(lock, &names().acquire).map(drop)
}

/// Makes a lock free if its owner is a thread that the interpreter has stopped, because that thread never releases it.
///
/// The end takes the locks of logging before it stops threads (`_locks.py`). This is for a lock that was not free then.
pub fn free_if_stopped(lock: Object<'_, '_>) {
    let py = lock.py();
    if !leaving::is_alone(py) {
        return;
    }
    let _error = SavedError::take(py);
    let is_free = lock.call_method1("acquire", (false,)).and_then(|taken| taken.is_truthy());
    // An object without these methods is no lock that this module knows, so its errors say nothing.
    let _ = is_free.and_then(|is_free| lock.call_method0(if is_free { "release" } else { "_at_fork_reinit" }));
}

/// Releases a lock. An exception that is set stays set. Ignores a lock that the thread does not have: other code has
/// released it.
#[inline]
pub fn release(lock: Object<'_, '_>) {
    if let Some(words) = known(lock) {
        // SAFETY: as in `acquire`.
        unsafe {
            if (*words).count == ONCE && (*words).owner == thread::ident() {
                (*words).owner = 0;
                (*words).give_back();
                return;
            }
        }
    }
    let py = lock.py();
    let _error = SavedError::take(py);
    if leaving::method(lock, &names().release).is_none() {
        object::clear_error(py);
    }
}

/// The struct of a lock of the known class.
#[inline]
fn known(lock: Object<'_, '_>) -> Option<*mut LockWords> {
    let is_known = std::ptr::eq(object::class_of(lock), CLASS.load(Relaxed));
    is_known.then(|| lock.as_ptr().cast())
}

/// Compares the struct of a new lock with what its methods do, and uses it from then on if they agree. Returns why not,
/// or an empty text.
///
/// # Errors
///
/// A method of the lock raised.
pub fn self_check(lock: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    const DIFFERS: &str = "the words of this build's RLock are not those of its release";
    if cfg!(Py_GIL_DISABLED) {
        return Ok("without a GIL, only the methods of an RLock may change it");
    }
    // SAFETY: a live type.
    let size = unsafe { (*object::class_of(lock.as_borrowed())).tp_basicsize };
    if (size as usize) < size_of::<LockWords>() {
        return Ok(DIFFERS);
    }
    let words = lock.as_ptr().cast::<AtomicUsize>();
    let read = || {
        // SAFETY: the struct is at least as large as `LockWords`.
        [2, 3, 4].map(|index| unsafe { (*words.add(index)).load(Relaxed) })
    };
    let (me, once) = (thread::ident() as usize, ONCE as usize);
    let free = read();
    let found = kind::taken_word(free[0]);
    let taken = found.unwrap_or_default();
    let steps = [("acquire", [taken, me, once]), ("acquire", [taken, me, once + 1]), ("release", [taken, me, once])];
    let mut agrees = found.is_some() && free[1..] == [0, 0];
    for (method, expected) in steps {
        lock.call_method0(method)?;
        agrees &= read() == expected;
    }
    lock.call_method0("release")?;
    if agrees && read() == free {
        CLASS.store(object::class_of(lock.as_borrowed()), Relaxed);
        Ok("")
    } else {
        Ok(DIFFERS)
    }
}
