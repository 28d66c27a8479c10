//! `logspool.pool.Semaphore`: the core's semaphore as a Python type.
//!
//! A free permit is taken and given back in a few nanoseconds, without a look at the arguments; everything else goes
//! to the methods below.

use std::sync::OnceLock;

use logspool_pool as core;
use pyo3::exceptions::PyValueError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::waiting::{self, Deadline};
use super::{arguments, fast};
use crate::leaving;
use crate::object::{self, Owned};

/// Permits that threads take and give back.
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

    /// Take a permit; wait for one where none is free.
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

    /// Give back `n` permits and wake as many threads that wait.
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

    /// Permits that are free now.
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

/// Puts the short ways in front of the methods. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    let class: Bound<'_, PyType> = py.get_type::<Semaphore>();
    let _ = ACQUIRE.set(fast::replace(&class, c"acquire", acquire)?);
    let _ = RELEASE.set(fast::replace(&class, c"release", release)?);
    let _ = ENTER.set(fast::replace(&class, c"__enter__", enter)?);
    let _ = EXIT.set(fast::replace(&class, c"__exit__", exit)?);
    Ok(())
}

/// The semaphore of an object that the descriptor has checked.
///
/// # Safety
///
/// `object` is a live `Semaphore`, attached for `'a`.
unsafe fn semaphore<'a>(object: *mut PyObject) -> &'a core::Semaphore {
    // SAFETY: the caller says what it is; a frozen class is only ever read.
    unsafe {
        let borrowed = Borrowed::from_ptr(Python::assume_attached(), object);
        &*std::ptr::from_ref(&borrowed.cast_unchecked::<Semaphore>().get().0)
    }
}

/// Calls the method behind a short way with the same arguments.
unsafe fn stock(
    method: &OnceLock<Owned>,
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: `arguments` holds `count` positional values and one per keyword.
    unsafe {
        let Some(method) = method.get() else { return object::none() };
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(keywords) };
        let mut values = vec![object];
        values.extend((0..(count + named) as usize).map(|index| *arguments.add(index)));
        leaving::vectorcall(method.as_ptr(), values.as_ptr(), count as usize + 1, keywords)
    }
}

unsafe extern "C" fn acquire(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls it; the descriptor checked the type.
    unsafe {
        if count == 0 && keywords.is_null() && semaphore(object).try_acquire() {
            return object::truth(true);
        }
        stock(&ACQUIRE, object, arguments, count, keywords)
    }
}

unsafe extern "C" fn release(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        if count == 0 && keywords.is_null() && semaphore(object).release(1).is_ok() {
            return object::none();
        }
        stock(&RELEASE, object, arguments, count, keywords)
    }
}

unsafe extern "C" fn enter(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        if semaphore(object).try_acquire() {
            return object::truth(true);
        }
        stock(&ENTER, object, arguments, count, keywords)
    }
}

unsafe extern "C" fn exit(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        if semaphore(object).release(1).is_ok() {
            return object::none();
        }
        stock(&EXIT, object, arguments, count, keywords)
    }
}
