//! The methods that add jobs to a pool or a view. They are raw functions, because parsing the arguments into a tuple
//! and a dict would cost more than running the job.

use std::ffi::CStr;

use logspool_pool::jobs::QueuePosition;
use pyo3::PyTypeInfo;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::core::PoolCore;
use super::fast::{self, Function, into_pointer, none_into_pointer};
use super::intake::{self, Due, JobOrigin};
use super::schedule::Rhythm;
use super::view::View;
use crate::interpreter::object::{self, Owned};

/// A class with methods that add jobs.
trait JobSource: PyTypeInfo {
    /// The origin for jobs that this object's methods add.
    fn origin<'a>(object: Borrowed<'a, 'a, Self>) -> JobOrigin<'a>;
}

impl JobSource for PoolCore {
    #[inline(always)]
    fn origin<'a>(object: Borrowed<'a, 'a, Self>) -> JobOrigin<'a> {
        JobOrigin::of_pool(object)
    }
}

impl JobSource for View {
    #[inline(always)]
    fn origin<'a>(object: Borrowed<'a, 'a, Self>) -> JobOrigin<'a> {
        JobOrigin::of_view(object)
    }
}

/// A result of a method that can be converted for CPython.
trait MethodResult {
    fn into_pointer(self, py: Python<'_>) -> *mut PyObject;
}

impl MethodResult for PyResult<()> {
    #[inline(always)]
    fn into_pointer(self, py: Python<'_>) -> *mut PyObject {
        none_into_pointer(py, self)
    }
}

impl MethodResult for PyResult<Owned> {
    #[inline(always)]
    fn into_pointer(self, py: Python<'_>) -> *mut PyObject {
        into_pointer(py, self)
    }
}

/// Defines a raw function that is generic over the [`JobSource`]. It performs the given action on the origin and the
/// call.
macro_rules! verb {
    ($name:ident, $do:expr) => {
        /// # Safety
        ///
        /// Called by CPython as a `METH_FASTCALL | METH_KEYWORDS` method of an `S`, in an attached thread.
        unsafe extern "C" fn $name<S: JobSource>(
            object: *mut PyObject,
            arguments: *const *mut PyObject,
            count: ffi::Py_ssize_t,
            keywords: *mut PyObject,
        ) -> *mut PyObject {
            // SAFETY: CPython calls it in an attached thread with live objects; the descriptor checked the type.
            let (object, call) = unsafe {
                let (object, call) = object::received(object, arguments, count, keywords);
                (object.cast_unchecked::<S>(), call)
            };
            $do(S::origin(object), call).into_pointer(call.py())
        }
    };
}

verb!(push, |origin, call| intake::push(origin, call));
verb!(submit, |origin, call| intake::submit(origin, "submit", call));
verb!(submit_first, |origin: JobOrigin<'_>, call| intake::submit(
    origin.at(QueuePosition::First),
    "submit_first",
    call
));
verb!(submit_later, |origin, call| intake::submit_due(origin, Due::Later, call));
verb!(submit_at, |origin, call| intake::submit_due(origin, Due::At, call));
verb!(schedule, |origin, call| intake::schedule(origin, Rhythm::FromDue, call));
verb!(schedule_with_delay, |origin, call| intake::schedule(origin, Rhythm::FromEnd, call));
verb!(run, |origin, call| intake::run(origin, call));

/// The name, the function and the docstring of a method.
type JobMethodRow = (&'static CStr, Function, &'static CStr);

fn common<S: JobSource>() -> [JobMethodRow; 6] {
    [
        (c"submit", submit::<S>, c"submit($self, fn, /, *args, **kwargs)\n--\n\nCall `fn(*args, **kwargs)` in a worker and return its future."),
        (c"push", push::<S>, c"push($self, fn, /, *args, **kwargs)\n--\n\nCall `fn(*args, **kwargs)` in a worker, without a future."),
        (c"submit_later", submit_later::<S>, c"submit_later($self, delay, fn, /, *args, **kwargs)\n--\n\nAs `submit`, `delay` seconds from now."),
        (c"submit_at", submit_at::<S>, c"submit_at($self, when, fn, /, *args, **kwargs)\n--\n\nAs `submit`, at a time of the wall clock."),
        (c"schedule", schedule::<S>, c"schedule($self, interval, fn, /, *args, **kwargs)\n--\n\nCall `fn(*args, **kwargs)` every `interval` seconds."),
        (c"schedule_with_delay", schedule_with_delay::<S>, c"schedule_with_delay($self, delay, fn, /, *args, **kwargs)\n--\n\nCall `fn(*args, **kwargs)` again and again, `delay` seconds after it ended."),
    ]
}

/// Adds the methods to their classes. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    let own: [JobMethodRow; 2] = [
        (c"submit_first", submit_first::<PoolCore>, c"submit_first($self, fn, /, *args, **kwargs)\n--\n\nAs `submit`, before all jobs that wait."),
        (c"run", run::<PoolCore>, c"run($self, fn, /, *args, **kwargs)\n--\n\nCall `fn(*args, **kwargs)` in a worker and return an awaitable for the running asyncio event loop."),
    ];
    let add = |class: Bound<'_, PyType>, verbs: &[JobMethodRow]| {
        verbs.iter().try_for_each(|(name, function, doc)| fast::add(&class, name, *function, doc))
    };
    add(py.get_type::<PoolCore>(), &common::<PoolCore>())?;
    add(py.get_type::<PoolCore>(), &own)?;
    add(py.get_type::<View>(), &common::<View>())
}
