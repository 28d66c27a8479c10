//! A job: a callable with its arguments, and who is told how it ended.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyException;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::event_loop::{self, End};
use super::extra::{self, Extra};
use super::future;
use super::shared::Shared;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Call, Owned};

/// Values that a job holds without the heap.
const FEW: usize = 3;

/// Positional values, then those of keywords. References are owned.
enum Values {
    Few(u8, [*mut PyObject; FEW]),
    Many(Box<[*mut PyObject]>),
}

impl Values {
    /// # Safety
    ///
    /// `values` holds `count` live objects; attached.
    #[inline]
    unsafe fn copy(values: *const *mut PyObject, count: usize) -> Self {
        // SAFETY: as the caller says.
        unsafe {
            if count <= FEW {
                let mut few = [ptr::null_mut(); FEW];
                for (index, place) in few.iter_mut().enumerate().take(count) {
                    *place = *values.add(index);
                    object::lend(*place);
                }
                return Self::Few(count as u8, few);
            }
            let many: Box<[*mut PyObject]> = std::slice::from_raw_parts(values, count).into();
            many.iter().for_each(|&each| object::lend(each));
            Self::Many(many)
        }
    }

    #[inline]
    fn as_slice(&self) -> &[*mut PyObject] {
        match self {
            Self::Few(count, few) => &few[..usize::from(*count)],
            Self::Many(many) => many,
        }
    }
}

/// Who is told how a job ended.
pub enum Target {
    /// Nobody, unless it fails.
    Nobody,
    /// A future.
    Future(Owned),
    /// An asyncio future, and the way to its loop.
    Loop(Box<(Owned, Owned)>),
    /// All that is rarer.
    Extra(Arc<Extra>),
}

/// Who does a job.
pub enum By<'a> {
    /// A worker.
    Worker,
    /// The thread that gave it. It raises what is put here: Ctrl-C is its own.
    Caller(&'a mut Option<PyErr>),
}

impl By<'_> {
    /// Keeps what is no `Exception` for the caller to raise. Gives back all else.
    pub fn keep(&mut self, py: Python<'_>, error: PyErr) -> Result<(), PyErr> {
        match self {
            Self::Caller(raised) if !error.is_instance_of::<PyException>(py) => {
                **raised = Some(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Tells of the error that is set, of this function, where nobody else is told.
    pub fn unheard(&mut self, py: Python<'_>, function: *mut PyObject) {
        if let Err(error) = self.keep(py, PyErr::fetch(py)) {
            error.restore(py);
            // SAFETY: called by attached threads with a live object.
            unsafe { ffi::PyErr_WriteUnraisable(function) }
        }
    }

    /// Tells of what a signal's handler raised while somebody waited: that is the caller's, whatever it is.
    pub fn interrupted(&mut self, py: Python<'_>, error: PyErr) {
        match self {
            Self::Caller(raised) => **raised = Some(error),
            Self::Worker => error.write_unraisable(py, None),
        }
    }
}

/// What a worker is to do. Made and dropped by attached threads only.
pub struct Job {
    function: Owned,
    values: Values,
    /// Names of the last values, or `None`.
    keywords: Option<Owned>,
    /// The context to run in; `None`: the worker's.
    context: Option<Owned>,
    target: Target,
    /// When it was taken, in ticks of the clock.
    pub since: u64,
}

// SAFETY: the references are counted ones, used by attached threads only.
unsafe impl Send for Job {}

impl Drop for Values {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: owned references; jobs are dropped by attached threads.
        self.as_slice().iter().for_each(|&each| unsafe { ffi::Py_DECREF(each) });
    }
}

impl Job {
    /// A job that calls the first positional value of `call` with the others.
    ///
    /// # Safety
    ///
    /// `call` describes live objects and has a positional value; attached.
    #[inline]
    pub unsafe fn new(call: Call, context: Option<Owned>, target: Target, since: u64) -> Self {
        // SAFETY: as the caller says.
        unsafe {
            let keywords = call.keywords;
            let named = if keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(keywords) as usize };
            Self {
                function: Owned::lent(*call.arguments),
                values: Values::copy(call.arguments.add(1), call.count - 1 + named),
                keywords: (named > 0).then(|| Owned::lent(keywords)),
                context,
                target,
                since,
            }
        }
    }

    /// A reference of one's own to what is called.
    pub fn function(&self) -> Owned {
        // SAFETY: owned; jobs are used by attached threads.
        unsafe { Owned::borrow(self.function.as_ptr()) }
    }

    /// Whether it is done again and again.
    pub fn is_scheduled(&self) -> bool {
        matches!(&self.target, Target::Extra(extra) if extra.schedule.is_some())
    }

    /// Does the job and tells its target. False: it failed, and there is no future for that.
    ///
    /// # Safety
    ///
    /// Attached.
    #[inline]
    pub unsafe fn run(self, shared: &Arc<Shared>, by: &mut By<'_>) -> bool {
        // SAFETY: as the caller says; all objects are owned.
        unsafe {
            let wanted = match &self.target {
                Target::Nobody => true,
                Target::Future(future) => future::start(future.as_ptr()),
                Target::Loop(waiting) => !event_loop::is_cancelled(&waiting.0),
                Target::Extra(extra) => {
                    let extra = extra.clone();
                    return extra::run(self, &extra, shared, by);
                }
            };
            if !wanted {
                return true;
            }
            let mut result = None;
            self.in_context(|job| {
                result = Owned::steal(job.call());
                if let (Target::Nobody, Some(generator)) = (&job.target, &result)
                    && extra::is_generator(generator.as_ptr())
                {
                    result = run_through(generator.as_ptr());
                }
            });
            let Self { function, values, keywords, context, target, since: _ } = self;
            // Before the end is told: who waits for it may expect the arguments to be free.
            drop((values, keywords, context));
            match (target, result) {
                (Target::Nobody | Target::Extra(_), Some(_)) => true,
                (Target::Nobody | Target::Extra(_), None) => {
                    by.unheard(Python::assume_attached(), function.as_ptr());
                    false
                }
                (Target::Future(future), Some(result)) => {
                    drop(function);
                    future::finish_with(future.as_ptr(), result.handed_over());
                    true
                }
                (Target::Future(future), None) => {
                    let exception = caught();
                    drop(function);
                    future::fail_with(future.as_ptr(), exception);
                    true
                }
                (Target::Loop(waiting), result) => {
                    let how =
                        result.map_or_else(|| End::Exception(caught()), |result| End::Result(result.handed_over()));
                    let (future, event_loop) = *waiting;
                    event_loop::deliver(Python::assume_attached(), &event_loop, future, how);
                    true
                }
            }
        }
    }

    /// Does something in the job's context; does nothing, with an error set, where it cannot be entered.
    ///
    /// # Safety
    ///
    /// Attached.
    #[inline]
    pub unsafe fn in_context(&self, run: impl FnOnce(&Self)) {
        // SAFETY: owned objects; attached.
        unsafe {
            let Some(context) = &self.context else { return run(self) };
            if ffi::PyContext_Enter(context.as_ptr()) == 0 {
                run(self);
                if ffi::PyContext_Exit(context.as_ptr()) != 0 {
                    ffi::PyErr_WriteUnraisable(context.as_ptr());
                }
            }
        }
    }

    /// Calls the function; a new reference, or null with an error set.
    ///
    /// # Safety
    ///
    /// Attached.
    #[inline]
    pub unsafe fn call(&self) -> *mut PyObject {
        let values = self.values.as_slice();
        let named = self.keywords.as_ref().map_or(0, |names| {
            // SAFETY: a tuple.
            unsafe { ffi::PyTuple_GET_SIZE(names.as_ptr()) as usize }
        });
        let names = self.keywords.as_ref().map_or(ptr::null_mut(), Owned::as_ptr);
        // The place in front of the values is the callee's to use.
        let count = (values.len() - named) | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        let mut few = [ptr::null_mut(); FEW + 1];
        // SAFETY: as many values as counted, a free place in front of them.
        unsafe {
            if let Some(place) = few.get_mut(1..=values.len()) {
                place.copy_from_slice(values);
                return leaving::vectorcall(self.function.as_ptr(), few.as_ptr().add(1), count, names);
            }
            let mut many = Vec::with_capacity(values.len() + 1);
            many.push(ptr::null_mut());
            many.extend_from_slice(values);
            leaving::vectorcall(self.function.as_ptr(), many.as_ptr().add(1), count, names)
        }
    }

    /// Tells the target that the job will never run.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn cancel(self) {
        // SAFETY: as the caller says.
        unsafe { self.give_up(None) }
    }

    /// Ends the job's future with an exception, without running it.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn fail(self, exception: &Bound<'_, PyAny>) {
        // SAFETY: as the caller says.
        unsafe { self.give_up(Some(exception)) }
    }

    /// In a forked child: ends the job's future with an exception. All else about the job is the parent's to do.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn fail_after_fork(self, exception: &Bound<'_, PyAny>) {
        // Kept for good: a destructor of its arguments, as that of a temporary file, would do here what the parent's
        // does when the job is done.
        let job = ManuallyDrop::new(self);
        // SAFETY: live objects, attached.
        unsafe {
            match &job.target {
                Target::Future(future) => future::fail_after_fork(future.as_ptr(), Owned::of(exception)),
                Target::Extra(extra) => extra.fail_after_fork(exception),
                // The event loop that waits is the parent's.
                Target::Nobody | Target::Loop(_) => {}
            }
        }
    }

    unsafe fn give_up(self, exception: Option<&Bound<'_, PyAny>>) {
        // SAFETY: live objects, attached.
        unsafe {
            match self.target {
                Target::Nobody => {}
                Target::Future(future) => give_up(&future, exception),
                Target::Loop(waiting) => {
                    let (future, event_loop) = *waiting;
                    let how = exception.map_or(End::Cancelled, |value| End::Exception(Owned::of(value)));
                    event_loop::deliver(Python::assume_attached(), &event_loop, future, how);
                }
                Target::Extra(extra) => extra.give_up(exception),
            }
        }
    }
}

/// Ends a future whose job will not run: as cancelled, or with an exception.
///
/// # Safety
///
/// A live future; attached.
pub unsafe fn give_up(future: &Owned, exception: Option<&Bound<'_, PyAny>>) {
    let future = future.as_ptr();
    // SAFETY: as the caller says.
    unsafe {
        let Some(exception) = exception else {
            if future::cancel(future) {
                // Those who wait for it are told now: no worker will come by.
                future::start(future);
            }
            return;
        };
        if future::start(future) {
            future::fail_with(future, Owned::of(exception));
        }
    }
}

/// Takes all values of a generator that nobody wants. `None`: it raised, and the error is set.
#[cold]
unsafe fn run_through(generator: *mut PyObject) -> Option<Owned> {
    // SAFETY: a live generator, attached.
    unsafe {
        let py = Python::assume_attached();
        let end = extra::stream(generator, |_| true);
        end.inspect_err(|error| PyErr::from_value(Bound::from_borrowed_ptr(py, error.as_ptr())).restore(py)).ok()
    }
}

/// The exception that is set, with its traceback.
///
/// # Safety
///
/// Attached; an error is set.
pub unsafe fn caught() -> Owned {
    // SAFETY: as the caller says.
    unsafe {
        let py = Python::assume_attached();
        let exception = PyErr::fetch(py).into_value(py);
        Owned::borrow(exception.as_ptr())
    }
}
