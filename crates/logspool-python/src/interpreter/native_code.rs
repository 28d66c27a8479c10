//! The C code of builtin functions.
//!
//! A tool can replace the code of a builtin function in place, as time-machine does with `time.time`. The object of the
//! function stays the same.

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::object::Owned;

/// A builtin function, with the code that it had when it was read last.
pub struct WatchedFunction {
    _function: Owned,
    /// The field of the function's definition that has the code.
    place: &'static AtomicPtr<c_void>,
    code: AtomicPtr<c_void>,
}

impl WatchedFunction {
    /// Reads the code of a function; `None` if the object is no builtin function.
    pub fn of(function: &Bound<'_, PyAny>) -> Option<Self> {
        // SAFETY: a live object of an attached thread.
        if unsafe { ffi::PyCFunction_CheckExact(function.as_ptr()) } == 0 {
            return None;
        }
        // SAFETY: a builtin function has a definition, which lives as long as the function. The function is kept. The
        // field for the code has the size and the alignment of a pointer, and every access to it here is atomic.
        let place = unsafe {
            let definition = (*function.as_ptr().cast::<ffi::PyCFunctionObject>()).m_ml;
            &*(&raw const (*definition).ml_meth).cast::<AtomicPtr<c_void>>()
        };
        Some(Self { _function: Owned::of(function), place, code: AtomicPtr::new(place.load(Relaxed)) })
    }

    /// The field of the function's definition that has the code.
    pub fn place(&self) -> &'static AtomicPtr<c_void> {
        self.place
    }

    /// The code that was read last.
    pub fn code(&self) -> *mut c_void {
        self.code.load(Relaxed)
    }

    /// True if the function still has this code.
    #[inline(always)]
    pub fn holds(&self) -> bool {
        self.place.load(Relaxed) == self.code.load(Relaxed)
    }

    /// Reads the code again. True if it has changed.
    pub fn refresh(&self) -> bool {
        let now = self.place.load(Relaxed);
        self.code.swap(now, Relaxed) != now
    }

    /// True if the code is in the library that defines the function.
    pub fn is_original(&self) -> bool {
        let own = library_of(self.code.load(Relaxed));
        !own.is_null() && own == library_of(self.place.as_ptr().cast())
    }
}

/// Where the library that contains this address begins; null if no library contains it.
fn library_of(address: *const c_void) -> *mut c_void {
    // SAFETY: only numbers and pointers, for which zero is a value.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is valid for the call. The function accepts any address.
    if unsafe { libc::dladdr(address, &raw mut found) } == 0 { std::ptr::null_mut() } else { found.dli_fbase }
}
