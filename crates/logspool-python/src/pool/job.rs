//! A job: a function with its arguments, and the target to which the job's end is reported.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::event_loop::{self, JobEnd};
use super::extra::Extra;
use super::future::{self, FutureHandle};
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Call, Object, Owned};

/// Maximum number of argument values that a job stores without a heap allocation.
const INLINE_VALUES: usize = 3;

/// The positional values, followed by the keyword values. Owns a reference to each value.
pub(super) enum JobArguments {
    Few(u8, [*mut PyObject; INLINE_VALUES]),
    Many(Box<[*mut PyObject]>),
}

impl JobArguments {
    #[inline]
    fn copy(values: &[Object<'_, '_>]) -> Self {
        if values.len() <= INLINE_VALUES {
            let mut few = [ptr::null_mut(); INLINE_VALUES];
            // Copying and counting share one loop: the compiler turns a separate copy into calls of `memcpy` and
            // `memset`.
            for (place, value) in few.iter_mut().zip(values) {
                object::share_with_other_thread(value);
                *place = value.as_ptr();
            }
            return Self::Few(values.len() as u8, few);
        }
        values.iter().for_each(|value| object::share_with_other_thread(value));
        Self::Many(values.iter().map(|value| value.as_ptr()).collect())
    }

    #[inline]
    fn as_slice(&self) -> &[*mut PyObject] {
        match self {
            Self::Few(count, few) => &few[..usize::from(*count)],
            Self::Many(many) => many,
        }
    }
}

/// The receiver of a job's end.
pub enum JobTarget {
    /// No receiver. Only failures are reported, to `sys.unraisablehook`.
    Nobody,
    /// A future.
    Future(FutureHandle),
    /// An asyncio future, and the [`EventLoop`](super::EventLoop) that ends it.
    Loop(Box<(Owned, Owned)>),
    /// The rarer parts, such as callbacks, a time limit or a schedule.
    Extra(Arc<Extra>),
}

/// A function with its arguments, for a worker to run. Only threads attached to the interpreter make and drop jobs.
pub struct Job {
    pub(super) function: Owned,
    pub(super) values: JobArguments,
    /// Tuple of the names of the keyword values, which are last in the arguments; `None` without keyword values.
    pub(super) keywords: Option<Owned>,
    /// The `contextvars` context to run in; `None` for the context of the worker.
    pub(super) context: Option<Owned>,
    pub(super) target: JobTarget,
    /// When the job was accepted, in ticks of the clock.
    pub since: u64,
}

// SAFETY: all fields are counted references, which only attached threads use.
unsafe impl Send for Job {}

impl Drop for JobArguments {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `copy` took a reference to each value, and only attached threads drop jobs.
        self.as_slice().iter().for_each(|&each| unsafe { ffi::Py_DECREF(each) });
    }
}

impl Job {
    /// A job that calls `function` with the argument values of `call`.
    #[inline(always)]
    pub fn new(
        function: Object<'_, '_>,
        call: Call<'_, '_>,
        context: Option<Owned>,
        target: JobTarget,
        since: u64,
    ) -> Self {
        // SAFETY: the tuple of the keywords' names lives as long as the call, whose thread is attached.
        let names = unsafe { Borrowed::from_ptr_or_opt(call.py(), call.keywords()) };
        Self {
            function: Owned::for_other_thread(&function),
            values: JobArguments::copy(call.values()),
            keywords: names
                .filter(|_| call.values().len() > call.positional().len())
                .map(|names| Owned::for_other_thread(&names)),
            context,
            target,
            since,
        }
    }

    /// A new reference to the function.
    pub fn function(&self, py: Python<'_>) -> Owned {
        self.function.clone_ref(py)
    }

    /// True if a schedule repeats the job.
    pub fn is_scheduled(&self) -> bool {
        matches!(&self.target, JobTarget::Extra(extra) if extra.schedule.is_some())
    }

    /// Calls `run` in the job's context. If the context cannot be entered, sets an error instead.
    #[inline]
    pub fn in_context(&self, _attached: Python<'_>, run: impl FnOnce(&Self)) {
        let Some(context) = &self.context else { return run(self) };
        // SAFETY: a live context, and the token shows that the thread is attached. The context is left only if it was
        // entered.
        unsafe {
            if ffi::PyContext_Enter(context.as_ptr()) == 0 {
                run(self);
                if ffi::PyContext_Exit(context.as_ptr()) != 0 {
                    ffi::PyErr_WriteUnraisable(context.as_ptr());
                }
            }
        }
    }

    /// Calls the function. Returns `None` if the function raised; the error is set then.
    #[inline]
    pub fn call(&self, py: Python<'_>) -> Option<Owned> {
        let values = self.values.as_slice();
        let named = self.keywords.as_ref().map_or(0, |names| {
            // SAFETY: `keywords` is a tuple, to which the job holds a reference.
            unsafe { ffi::PyTuple_GET_SIZE(names.as_ptr()) as usize }
        });
        let names = self.keywords.as_ref().map_or(ptr::null_mut(), Owned::as_ptr);
        let function = self.function.bind(py);
        // The flag allows the callee to use the array place before the values.
        let count = (values.len() - named) | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        let mut few = [ptr::null_mut(); INLINE_VALUES + 1];
        // SAFETY: `count` and `names` describe exactly these values, to all of which the job holds references. The
        // place before them is free. The result is a new reference or null.
        unsafe {
            if let Some(place) = few.get_mut(1..=values.len()) {
                place.copy_from_slice(values);
                return Owned::steal(leaving::vectorcall(function, few.as_ptr().add(1), count, names));
            }
            let mut many = Vec::with_capacity(values.len() + 1);
            many.push(ptr::null_mut());
            many.extend_from_slice(values);
            Owned::steal(leaving::vectorcall(function, many.as_ptr().add(1), count, names))
        }
    }

    /// Reports to the target that the job is cancelled and will never run.
    pub fn cancel(self, py: Python<'_>) {
        self.give_up(py, None);
    }

    /// Ends the job's future with an exception, without running it.
    pub fn fail(self, exception: &Bound<'_, PyAny>) {
        self.give_up(exception.py(), Some(exception));
    }

    /// In a forked child: ends the job's future with an exception. Everything else of the job belongs to the parent.
    pub fn fail_after_fork(self, exception: &Bound<'_, PyAny>) {
        // Never freed: dropping the arguments could run a destructor, such as a temporary file's. The parent
        // runs it after the job.
        let job = ManuallyDrop::new(self);
        match &job.target {
            JobTarget::Future(future) => {
                future::fail_after_fork(future.bind(exception.py()), Owned::of(exception));
            }
            JobTarget::Extra(extra) => extra.fail_after_fork(exception),
            // The event loop that waits for the job runs in the parent.
            JobTarget::Nobody | JobTarget::Loop(_) => {}
        }
    }

    fn give_up(self, py: Python<'_>, exception: Option<&Bound<'_, PyAny>>) {
        match self.target {
            JobTarget::Nobody => {}
            JobTarget::Future(future) => future::give_up(future.bind(py), exception),
            JobTarget::Loop(waiting) => {
                let (future, event_loop) = *waiting;
                let how = exception.map_or(JobEnd::Cancelled, |value| JobEnd::Exception(Owned::of(value)));
                event_loop::deliver(py, &event_loop, future, how);
            }
            JobTarget::Extra(extra) => extra.end_without_run(py, exception),
        }
    }
}
