//! Threads that leave the interpreter and come back, also while it ends.
//!
//! CPython before 3.14 ends a daemon thread that asks for the interpreter once it is ending: by `pthread_exit`, whose
//! unwinding aborts the process where it meets `catch_unwind` or a call that was said not to unwind. So whatever may
//! give the interpreter away is called from here, with a guard next to the call: a thread that is ended there stops
//! for good instead, as CPython 3.14 does with it, and the process ends without it. No frame of ours is unwound.
//!
//! Plans are made by too many calls for that. No thread begins one once the end has begun, and the end waits a
//! moment for those that are being made ([`Stay`]).

use std::hint::black_box;

use logspool_sys::crossing::End;
use pyo3::Python;
use pyo3::ffi::{self, Py_ssize_t, PyObject, PyThreadState};

use crate::interpreter::object::{Object, Owned};

// Declared here because PyO3 says of all functions that they do not unwind: a guard beside such a call never runs.
mod unwinding {
    use super::{Py_ssize_t, PyObject, PyThreadState};
    use pyo3::ffi::PySendResult;

    unsafe extern "C-unwind" {
        pub fn PyEval_RestoreThread(state: *mut PyThreadState);
        pub fn PyErr_CheckSignals() -> std::ffi::c_int;
        pub fn PyObject_Str(object: *mut PyObject) -> *mut PyObject;
        pub fn PyObject_GetAttr(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject;
        pub fn PyObject_IsTrue(object: *mut PyObject) -> std::ffi::c_int;
        pub fn PyObject_IsInstance(object: *mut PyObject, class: *mut PyObject) -> std::ffi::c_int;
        pub fn PyIter_Send(iterator: *mut PyObject, sent: *mut PyObject, value: *mut *mut PyObject) -> PySendResult;
        pub fn PyNumber_Remainder(left: *mut PyObject, right: *mut PyObject) -> *mut PyObject;
        #[cfg(Py_3_11)]
        pub fn PyObject_Vectorcall(
            function: *mut PyObject,
            arguments: *const *mut PyObject,
            count: usize,
            keywords: *mut PyObject,
        ) -> *mut PyObject;
        #[cfg(not(Py_3_11))]
        fn _PyObject_MakeTpCall(
            state: *mut PyThreadState,
            function: *mut PyObject,
            arguments: *const *mut PyObject,
            count: Py_ssize_t,
            keywords: *mut PyObject,
        ) -> *mut PyObject;
        pub fn PyObject_VectorcallMethod(
            name: *mut PyObject,
            arguments: *const *mut PyObject,
            count: usize,
            keywords: *mut PyObject,
        ) -> *mut PyObject;
    }
    /// As `PyObject_Vectorcall`, which before 3.11 is no function but a look at the callable.
    ///
    /// # Safety
    ///
    /// As for [`super::vectorcall`], with a live `function` and an attached thread.
    #[cfg(not(Py_3_11))]
    #[allow(non_snake_case)]
    pub unsafe extern "C-unwind" fn PyObject_Vectorcall(
        function: *mut PyObject,
        arguments: *const *mut PyObject,
        count: usize,
        keywords: *mut PyObject,
    ) -> *mut PyObject {
        type Call =
            unsafe extern "C-unwind" fn(*mut PyObject, *const *mut PyObject, usize, *mut PyObject) -> *mut PyObject;
        // SAFETY: arguments as the caller says; the two function types differ only in what they say about unwinding.
        unsafe {
            match super::ffi::PyVectorcall_Function(function) {
                Some(call) => {
                    std::mem::transmute::<super::ffi::vectorcallfunc, Call>(call)(function, arguments, count, keywords)
                }
                None => {
                    let positional = super::ffi::PyVectorcall_NARGS(count);
                    let state = super::ffi::PyThreadState_Get();
                    _PyObject_MakeTpCall(state, function, arguments, positional, keywords)
                }
            }
        }
    }

    // The count of positional arguments carries a flag in its highest bit.
    const _: () = assert!(size_of::<usize>() == size_of::<Py_ssize_t>());
}

/// Stops the thread for good when a call that stands behind it is left by unwinding.
struct Stopped;

impl Drop for Stopped {
    #[cold]
    fn drop(&mut self) {
        loop {
            // SAFETY: no preconditions; returns after a signal was handled.
            unsafe { libc::pause() };
        }
    }
}

/// Runs one call of [`unwinding`].
#[inline(always)]
fn guarded<T>(call: impl FnOnce() -> T) -> T {
    let stopped = Stopped;
    let result = call();
    std::mem::forget(stopped);
    result
}

// A function of [`unwinding`] as a pointer that the compiler knows nothing about. PyO3 declares the same symbols as not
// unwinding; where both declarations meet in one unit of code or at the linker, that one wins, and a guard next to a
// call by name is left out as one that never runs.

#[inline(always)]
fn opaque0<R>(function: unsafe extern "C-unwind" fn() -> R) -> unsafe extern "C-unwind" fn() -> R {
    black_box(function)
}

#[inline(always)]
fn opaque1<A, R>(function: unsafe extern "C-unwind" fn(A) -> R) -> unsafe extern "C-unwind" fn(A) -> R {
    black_box(function)
}

#[inline(always)]
fn opaque2<A, B, R>(function: unsafe extern "C-unwind" fn(A, B) -> R) -> unsafe extern "C-unwind" fn(A, B) -> R {
    black_box(function)
}

#[inline(always)]
fn opaque3<A, B, C, R>(
    function: unsafe extern "C-unwind" fn(A, B, C) -> R,
) -> unsafe extern "C-unwind" fn(A, B, C) -> R {
    black_box(function)
}

#[inline(always)]
fn opaque4<A, B, C, D, R>(
    function: unsafe extern "C-unwind" fn(A, B, C, D) -> R,
) -> unsafe extern "C-unwind" fn(A, B, C, D) -> R {
    black_box(function)
}

/// `str(object)`; `None` with an error set.
pub fn str(object: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: a live object of an attached thread; the result is a new reference or null.
    unsafe { Owned::steal(guarded(|| opaque1(unwinding::PyObject_Str)(object.as_ptr()))) }
}

/// `object.name`; `None` with an error set.
pub fn attribute(object: Object<'_, '_>, name: &Owned) -> Option<Owned> {
    // SAFETY: live objects of an attached thread; the result is a new reference or null.
    unsafe { Owned::steal(guarded(|| opaque2(unwinding::PyObject_GetAttr)(object.as_ptr(), name.as_ptr()))) }
}

/// `bool(object)`; `None` with an error set.
pub fn is_true(object: Object<'_, '_>) -> Option<bool> {
    // SAFETY: a live object of an attached thread.
    match guarded(|| unsafe { opaque1(unwinding::PyObject_IsTrue)(object.as_ptr()) }) {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// `isinstance(object, class)`; `None` with an error set.
pub fn is_instance(object: Object<'_, '_>, class: &Owned) -> Option<bool> {
    // SAFETY: live objects of an attached thread.
    match guarded(|| unsafe { opaque2(unwinding::PyObject_IsInstance)(object.as_ptr(), class.as_ptr()) }) {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// `left % right`; `None` with an error set.
pub fn remainder(left: Object<'_, '_>, right: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: live objects of an attached thread; the result is a new reference or null.
    unsafe { Owned::steal(guarded(|| opaque2(unwinding::PyNumber_Remainder)(left.as_ptr(), right.as_ptr()))) }
}

/// What a generator does when it is asked for a value.
pub enum GeneratorStep {
    /// It yields.
    Yields(Owned),
    /// It returns.
    Returns(Owned),
    /// It raises; the error is set.
    Raises,
}

/// `generator.send(None)`
pub fn step(generator: Object<'_, '_>) -> GeneratorStep {
    let mut value = std::ptr::null_mut();
    // SAFETY: a live object of an attached thread, and a place for the value.
    let how = guarded(|| unsafe { opaque3(unwinding::PyIter_Send)(generator.as_ptr(), ffi::Py_None(), &mut value) });
    // SAFETY: a new reference, or null with an error set.
    let value = unsafe { Owned::steal(value) };
    match (how, value) {
        (ffi::PySendResult::PYGEN_NEXT, Some(value)) => GeneratorStep::Yields(value),
        (ffi::PySendResult::PYGEN_RETURN, Some(value)) => GeneratorStep::Returns(value),
        _ => GeneratorStep::Raises,
    }
}

/// `function(*arguments)`; null with an error set.
///
/// # Safety
///
/// `arguments` points to `count` positional values and one for each name in `keywords`, which is null or a tuple of
/// `str`. Where `count` carries `PY_VECTORCALL_ARGUMENTS_OFFSET`, the place before the values is the callee's to use.
#[inline(always)]
pub unsafe fn vectorcall(
    function: Object<'_, '_>,
    arguments: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: arguments as the caller says, and a live function of an attached thread.
    guarded(|| unsafe { opaque4(unwinding::PyObject_Vectorcall)(function.as_ptr(), arguments, count, keywords) })
}

/// `function()`; `None` with an error set.
pub fn call(function: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: no values and no keywords; the result is a new reference or null.
    unsafe { Owned::steal(vectorcall(function, std::ptr::null(), 0, std::ptr::null_mut())) }
}

/// `function(argument)`; `None` with an error set.
pub fn call_with(function: Object<'_, '_>, argument: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: one live value; the result is a new reference or null.
    unsafe { Owned::steal(vectorcall(function, [argument.as_ptr()].as_ptr(), 1, std::ptr::null_mut())) }
}

/// `object.name()`; `None` with an error set.
pub fn method(object: Object<'_, '_>, name: &Owned) -> Option<Owned> {
    // SAFETY: one live value, the object itself; the result is a new reference or null.
    unsafe {
        Owned::steal(guarded(|| {
            let values = [object.as_ptr()];
            opaque4(unwinding::PyObject_VectorcallMethod)(name.as_ptr(), values.as_ptr(), 1, std::ptr::null_mut())
        }))
    }
}

/// `object.name(argument)`; `None` with an error set.
pub fn method_of_one(object: Object<'_, '_>, name: &Owned, argument: Object<'_, '_>) -> Option<Owned> {
    let values = [object.as_ptr(), argument.as_ptr()];
    // SAFETY: two live values of an attached thread; the result is a new reference or null.
    unsafe {
        Owned::steal(guarded(|| {
            opaque4(unwinding::PyObject_VectorcallMethod)(name.as_ptr(), values.as_ptr(), 2, std::ptr::null_mut())
        }))
    }
}

/// Lets Python's handlers of signals run, in the thread that runs them. `false`: one raised; the error is set.
pub fn signals_pass(_attached: Python<'_>) -> bool {
    // SAFETY: the token shows that the thread is attached.
    guarded(|| unsafe { opaque0(unwinding::PyErr_CheckSignals)() }) == 0
}

/// Outside of the interpreter for its lifetime: other threads run while this one waits.
struct Detached(*mut PyThreadState);

impl Drop for Detached {
    fn drop(&mut self) {
        // SAFETY: the state that `outside` saved, on the same thread.
        guarded(|| unsafe { opaque1(unwinding::PyEval_RestoreThread)(self.0) });
    }
}

/// Runs what may wait outside of the interpreter. `wait` is `Send`, so that it has neither the token nor a borrowed
/// object with it.
pub fn outside<T>(_attached: Python<'_>, wait: impl FnOnce() -> T + Send) -> T {
    // SAFETY: the token shows that the thread is attached, and `wait` cannot touch Python objects by it.
    let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
    wait()
}

/// The end of the interpreter, and the threads inside of a [`Stay`].
static END: End = End::new();

/// Whether the interpreter is about to end, by another thread than this one.
pub fn another_ends() -> bool {
    let ender = END.ender();
    ender != 0 && ender != this_thread() as u64
}

fn this_thread() -> usize {
    // SAFETY: no preconditions, and no thread's id is 0.
    unsafe { libc::pthread_self() as usize }
}

/// Holds the end of the interpreter back for a moment, while Python code runs that must not be left half done.
pub struct Stay(());

impl Stay {
    /// `None`: the interpreter ends already, by another thread.
    pub fn new() -> Option<Self> {
        // Counted before the look, and the end looks at the count after it has begun: one of them sees the other.
        // The fences are for builds without a GIL; with one, both happen under it.
        END.enter();
        let stay = Self(());
        (!another_ends()).then_some(stay)
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        END.leave();
    }
}

/// Begins the end, by the calling thread. Returns how many others must be given time.
pub fn begin_end() -> usize {
    END.begin(this_thread() as u64) as usize
}

/// One at a time, for a moment: the calls that stock logging does while another thread ends the interpreter.
///
/// Without a GIL these threads compete for a lock of the interpreter, that of `sys.modules`, which every `LogRecord`
/// looks into. Where it is on its way to a thread that the end stops for good, the end waits for it for ever (seen in
/// CPython 3.13.15t: one of ten ends with three such threads, and one of a hundred without logspool).
#[cfg(Py_GIL_DISABLED)]
mod turn {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use logspool_sys::nap::nap;

    use pyo3::Python;

    use super::{another_ends, outside, this_thread};

    /// The thread whose turn it is, or 0.
    static HOLDER: AtomicUsize = AtomicUsize::new(0);

    /// How long a thread waits. Chosen: a line takes microseconds, and a thread that is kept from the processor tens of
    /// milliseconds; a handler may also wait for another thread that logs, so nobody waits for good.
    const PATIENCE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_micros(100);

    pub struct StockTurn(bool);

    impl StockTurn {
        /// Waits for the turn, at most for [`PATIENCE`].
        #[inline]
        pub fn take(py: Python<'_>) -> Self {
            if !another_ends() || HOLDER.load(Ordering::Relaxed) == this_thread() {
                return Self(false);
            }
            wait(py)
        }
    }

    #[cold]
    fn wait(py: Python<'_>) -> StockTurn {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            // Relaxed: the turn guards no data of this crate.
            if HOLDER.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return StockTurn(true);
            }
            outside(py, || nap(PAUSE));
        }
        StockTurn(false)
    }

    pub fn forget() {
        HOLDER.store(0, Ordering::Relaxed);
    }

    impl Drop for StockTurn {
        fn drop(&mut self) {
            if self.0 {
                HOLDER.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(Py_GIL_DISABLED)]
pub use turn::StockTurn;

/// In a forked child, where the other threads do not exist and which has an end of its own.
pub fn forget_threads() {
    END.forget();
    #[cfg(Py_GIL_DISABLED)]
    turn::forget();
}
