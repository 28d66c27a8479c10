//! `logspool.pool.Semaphore`: the core's semaphore as a Python type.
//!
//! A raw function takes and releases a free permit in a few nanoseconds without parsing arguments. All other calls go
//! to the methods below.

use std::sync::OnceLock;

use logspool_pool as core;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::{arguments, fast};
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::interpreter::waiting::{self, Deadline};

/// A counting semaphore: threads acquire and release permits.
#[pyclass(frozen, subclass, weakref, module = "logspool.pool")]
pub struct Semaphore(core::Semaphore);

fn too_many(error: core::TooManyPermits) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn permits(name: &str, count: i64, least: i64) -> PyResult<u32> {
    if count < least {
        return Err(PyValueError::new_err(format!("{name} is {count}, expected {least} or more")));
    }
    u32::try_from(count).map_err(|_| too_many(core::TooManyPermits))
}

#[pymethods]
impl Semaphore {
    #[new]
    #[pyo3(signature = (value=1))]
    fn new(#[pyo3(from_py_with = arguments::value)] value: i64) -> PyResult<Self> {
        core::Semaphore::new(permits("value", value, 0)?).map(Self).map_err(too_many)
    }

    /// Take a permit; wait for one if none is free.
    #[pyo3(signature = (blocking=true, timeout=None))]
    fn acquire(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::blocking)] blocking: bool,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        if !blocking {
            if timeout.is_some() {
                return Err(PyValueError::new_err("can't specify timeout for non-blocking acquire"));
            }
            return Ok(self.0.try_acquire());
        }
        let deadline = Deadline::after(timeout)?;
        Ok(self.0.try_acquire() || waiting::wait(py, deadline, |slice| self.0.wait(Some(slice)))?)
    }

    /// Release `n` permits and wake up to `n` waiting threads.
    #[pyo3(signature = (n=1))]
    fn release(&self, #[pyo3(from_py_with = arguments::n)] n: i64) -> PyResult<()> {
        self.0.release(permits("n", n, 1)?).map_err(too_many)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<bool> {
        self.acquire(py, true, None)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release(1)
    }

    /// Number of free permits.
    #[getter]
    fn value(&self) -> u32 {
        self.0.permits()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let semaphore = &slf.get().0;
        let name = slf.get_type().qualname()?;
        Ok(format!("<{name} value={} waiting={}>", semaphore.permits(), semaphore.waiting()))
    }
}

static ACQUIRE: OnceLock<Owned> = OnceLock::new();
static RELEASE: OnceLock<Owned> = OnceLock::new();
static ENTER: OnceLock<Owned> = OnceLock::new();
static EXIT: OnceLock<Owned> = OnceLock::new();

/// Installs the raw functions in place of the methods. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    let class: Bound<'_, PyType> = py.get_type::<Semaphore>();
    let _ = ACQUIRE.set(fast::replace(&class, c"acquire", acquire)?);
    let _ = RELEASE.set(fast::replace(&class, c"release", release)?);
    let _ = ENTER.set(fast::replace(&class, c"__enter__", enter)?);
    let _ = EXIT.set(fast::replace(&class, c"__exit__", exit)?);
    Ok(())
}

/// Calls the method that a raw function replaced, with the same arguments.
fn stock(method: &OnceLock<Owned>, object: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let Some(method) = method.get() else { return object::none(call.py()) };
    let values: Vec<_> = std::iter::once(&object).chain(call.values()).map(|value| value.as_ptr()).collect();
    // SAFETY: `values` holds the live object and all values of the call; the count and the keyword names match them.
    unsafe {
        leaving::vectorcall(method.bind(call.py()), values.as_ptr(), call.positional().len() + 1, call.keywords())
    }
}

/// Defines raw functions. Each row has the method that the function replaces, the calls that the function handles
/// itself, and its action on the semaphore.
macro_rules! short_ways {
    ($($name:ident: $stock:expr, $fits:expr, $act:expr;)*) => {
        $(
            /// # Safety
            ///
            /// Called by CPython as a `METH_FASTCALL | METH_KEYWORDS` method of a [`Semaphore`], in an attached thread.
            unsafe extern "C" fn $name(
                object: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: CPython calls it in an attached thread with live objects; the descriptor checked the type.
                let (object, semaphore, call) = unsafe {
                    let (object, call) = object::received(object, arguments, count, keywords);
                    (object, object.cast_unchecked::<Semaphore>(), call)
                };
                let done: Option<*mut PyObject> = if $fits(call) { $act(&semaphore.get().0, call.py()) } else { None };
                done.unwrap_or_else(|| stock($stock, object, call))
            }
        )*
    };
}

/// Takes a permit if one is free.
#[inline(always)]
fn take_free(semaphore: &core::Semaphore, py: Python<'_>) -> Option<*mut PyObject> {
    semaphore.try_acquire().then(|| object::truth(py, true))
}

#[inline(always)]
fn release_permit(semaphore: &core::Semaphore, py: Python<'_>) -> Option<*mut PyObject> {
    semaphore.release(1).is_ok().then(|| object::none(py))
}

#[inline(always)]
fn has_no_arguments(call: Call<'_, '_>) -> bool {
    call.positional().is_empty() && !call.has_keywords()
}

short_ways! {
    acquire: &ACQUIRE, has_no_arguments, take_free;
    release: &RELEASE, has_no_arguments, release_permit;
    enter: &ENTER, |_| true, take_free;
    exit: &EXIT, |_| true, release_permit;
}
