//! Calls in which a thread may leave the interpreter and come back, possibly while the interpreter ends.
//!
//! Before 3.14, CPython ends a daemon thread that requests the interpreter while the interpreter ends: it calls
//! `pthread_exit`. That function unwinds the stack. The unwinding aborts the process at a `catch_unwind`, or at a call
//! that is declared not to unwind. So every call that may release the interpreter is made from this module, with a
//! guard around the call. A thread that CPython would end there stops forever instead, as in CPython 3.14, and the
//! process ends without it. No frame of this crate is unwound.
//!
//! Making a plan involves too many calls for such guards. No thread starts to make a plan after the end has begun. The
//! end waits briefly for plans that are being made ([`EndDelay`]).

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use logspool_sys::crossing::Shutdown;
use pyo3::Python;
use pyo3::ffi::{self, Py_ssize_t, PyObject, PyThreadState};

use crate::interpreter::object::{Object, Owned};

// Declared here because PyO3 declares all functions as not unwinding: the guard around such a call would never run.
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
        #[cfg_attr(not(Py_3_13), link_name = "_PyObject_LookupAttr")]
        pub fn PyObject_GetOptionalAttr(
            object: *mut PyObject,
            name: *mut PyObject,
            found: *mut *mut PyObject,
        ) -> std::ffi::c_int;
        pub fn PyObject_RichCompareBool(
            left: *mut PyObject,
            right: *mut PyObject,
            operator: std::ffi::c_int,
        ) -> std::ffi::c_int;
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
    /// Like `PyObject_Vectorcall`. Before 3.11 that is not a function, but inline code that reads the callable.
    ///
    /// # Safety
    ///
    /// The requirements of [`super::vectorcall`], with a live `function` and an attached thread.
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
        // SAFETY: the caller ensures valid arguments; the two function types differ only in whether they are declared
        // to unwind.
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

/// A guard that stops the thread forever if unwinding leaves the call that the guard protects.
struct Stopped;

impl Drop for Stopped {
    #[cold]
    fn drop(&mut self) {
        loop {
            // SAFETY: no preconditions. `pause` returns after a signal was handled.
            unsafe { libc::pause() };
        }
    }
}

/// Runs one call of [`unwinding`] with the guard.
#[inline(always)]
fn guarded<T>(call: impl FnOnce() -> T) -> T {
    let stopped = Stopped;
    let result = call();
    std::mem::forget(stopped);
    result
}

// The `opaque` functions hide from the compiler which function of [`unwinding`] a pointer refers to. PyO3 declares the
// same symbols as not unwinding. If both declarations meet in one codegen unit or at the linker, PyO3's declaration
// wins. The guard around a direct call is then removed as unreachable.

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

/// Computes `str(object)`; `None` with an exception set.
pub fn str(object: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: a live object, and the thread is attached; the result is a new reference or null.
    unsafe { Owned::steal(guarded(|| opaque1(unwinding::PyObject_Str)(object.as_ptr()))) }
}

/// Reads `object.name`; `None` with an exception set.
pub fn attribute(object: Object<'_, '_>, name: &Owned) -> Option<Owned> {
    // SAFETY: live objects, and the thread is attached; the result is a new reference or null.
    unsafe { Owned::steal(guarded(|| opaque2(unwinding::PyObject_GetAttr)(object.as_ptr(), name.as_ptr()))) }
}

/// Reads `object.name` if the object has the attribute; the outer `None` with an exception set.
pub fn optional_attribute(object: Object<'_, '_>, name: &Owned) -> Option<Option<Owned>> {
    let mut found = std::ptr::null_mut();
    // SAFETY: live objects, and the thread is attached; `found` has room for a new reference or null.
    unsafe {
        let status =
            guarded(|| opaque3(unwinding::PyObject_GetOptionalAttr)(object.as_ptr(), name.as_ptr(), &raw mut found));
        let found = Owned::steal(found);
        (status >= 0).then_some(found)
    }
}

/// Computes `left >= right`; `None` with an exception set.
pub fn is_at_least(left: Object<'_, '_>, right: Object<'_, '_>) -> Option<bool> {
    // SAFETY: live objects, and the thread is attached.
    match guarded(|| unsafe { opaque3(unwinding::PyObject_RichCompareBool)(left.as_ptr(), right.as_ptr(), ffi::Py_GE) })
    {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Computes `bool(object)`; `None` with an exception set.
pub fn is_true(object: Object<'_, '_>) -> Option<bool> {
    // SAFETY: a live object, and the thread is attached.
    match guarded(|| unsafe { opaque1(unwinding::PyObject_IsTrue)(object.as_ptr()) }) {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Computes `isinstance(object, class)`; `None` with an exception set.
pub fn is_instance(object: Object<'_, '_>, class: &Owned) -> Option<bool> {
    // SAFETY: live objects, and the thread is attached.
    match guarded(|| unsafe { opaque2(unwinding::PyObject_IsInstance)(object.as_ptr(), class.as_ptr()) }) {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Computes `left % right`; `None` with an exception set.
pub fn remainder(left: Object<'_, '_>, right: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: live objects, and the thread is attached; the result is a new reference or null.
    unsafe { Owned::steal(guarded(|| opaque2(unwinding::PyNumber_Remainder)(left.as_ptr(), right.as_ptr()))) }
}

/// The result of resuming a generator.
pub enum GeneratorStep {
    /// The generator yielded this value.
    Yields(Owned),
    /// The generator returned this value.
    Returns(Owned),
    /// The generator raised; the exception is set.
    Raises,
}

/// Calls `generator.send(None)`.
pub fn step(generator: Object<'_, '_>) -> GeneratorStep {
    let mut value = std::ptr::null_mut();
    // SAFETY: a live object, and the thread is attached; `value` has room for the result.
    let how = guarded(|| unsafe { opaque3(unwinding::PyIter_Send)(generator.as_ptr(), ffi::Py_None(), &mut value) });
    // SAFETY: a new reference, or null with an error set.
    let value = unsafe { Owned::steal(value) };
    match (how, value) {
        (ffi::PySendResult::PYGEN_NEXT, Some(value)) => GeneratorStep::Yields(value),
        (ffi::PySendResult::PYGEN_RETURN, Some(value)) => GeneratorStep::Returns(value),
        _ => GeneratorStep::Raises,
    }
}

/// Calls `function(*arguments)`; null with an exception set.
///
/// # Safety
///
/// `arguments` points to `count` positional values and one more for each name in `keywords`, which is null or a tuple
/// of `str`. If `count` carries `PY_VECTORCALL_ARGUMENTS_OFFSET`, the callee may use the slot before the values.
#[inline(always)]
pub unsafe fn vectorcall(
    function: Object<'_, '_>,
    arguments: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: the caller ensures valid arguments; the function is live, and the thread is attached.
    guarded(|| unsafe { opaque4(unwinding::PyObject_Vectorcall)(function.as_ptr(), arguments, count, keywords) })
}

/// Calls `function()`; `None` with an exception set.
pub fn call(function: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: no values and no keywords; the result is a new reference or null.
    unsafe { Owned::steal(vectorcall(function, std::ptr::null(), 0, std::ptr::null_mut())) }
}

/// Calls `function(argument)`; `None` with an exception set.
pub fn call_with(function: Object<'_, '_>, argument: Object<'_, '_>) -> Option<Owned> {
    // SAFETY: one live value; the result is a new reference or null.
    unsafe { Owned::steal(vectorcall(function, [argument.as_ptr()].as_ptr(), 1, std::ptr::null_mut())) }
}

/// Calls `object.name()`; `None` with an exception set.
pub fn method(object: Object<'_, '_>, name: &Owned) -> Option<Owned> {
    // SAFETY: one live value, the object itself; the result is a new reference or null.
    unsafe {
        Owned::steal(guarded(|| {
            let values = [object.as_ptr()];
            opaque4(unwinding::PyObject_VectorcallMethod)(name.as_ptr(), values.as_ptr(), 1, std::ptr::null_mut())
        }))
    }
}

/// Calls `object.name(argument)`; `None` with an exception set.
pub fn method_of_one(object: Object<'_, '_>, name: &Owned, argument: Object<'_, '_>) -> Option<Owned> {
    let values = [object.as_ptr(), argument.as_ptr()];
    // SAFETY: two live values, and the thread is attached; the result is a new reference or null.
    unsafe {
        Owned::steal(guarded(|| {
            opaque4(unwinding::PyObject_VectorcallMethod)(name.as_ptr(), values.as_ptr(), 2, std::ptr::null_mut())
        }))
    }
}

/// Calls `object.name(first, second)`; `None` with an exception set.
pub fn method_of_two(
    object: Object<'_, '_>,
    name: &Owned,
    first: Object<'_, '_>,
    second: Object<'_, '_>,
) -> Option<Owned> {
    method_of_values(name, &[object, first, second])
}

/// Calls the method `name` of the first value with the others; `None` with an exception set.
pub fn method_of_values(name: &Owned, values: &[Object<'_, '_>]) -> Option<Owned> {
    let count = values.len();
    // SAFETY: that many live values, at least one, whose form is that of pointers, and the thread is attached; the
    // result is a new reference or null.
    unsafe {
        Owned::steal(guarded(|| {
            let values = values.as_ptr().cast();
            opaque4(unwinding::PyObject_VectorcallMethod)(name.as_ptr(), values, count, std::ptr::null_mut())
        }))
    }
}

/// Runs pending Python signal handlers, if the calling thread is the one that runs them. `false`: a handler raised, and
/// the exception is set.
pub fn signals_pass(_attached: Python<'_>) -> bool {
    // SAFETY: the token shows that the thread is attached.
    guarded(|| unsafe { opaque0(unwinding::PyErr_CheckSignals)() }) == 0
}

/// Detaches the thread from the interpreter until this value is dropped, so that other threads run during a wait.
struct Detached(*mut PyThreadState);

impl Drop for Detached {
    fn drop(&mut self) {
        // SAFETY: `detached` saved this state on the same thread.
        guarded(|| unsafe { opaque1(unwinding::PyEval_RestoreThread)(self.0) });
    }
}

/// Runs `wait` detached from the interpreter. `wait` is `Send`, so it cannot hold the token or a borrowed object.
pub fn detached<T>(_attached: Python<'_>, wait: impl FnOnce() -> T + Send) -> T {
    // SAFETY: the token shows that the thread is attached; `wait` is `Send` and so has no access to Python objects.
    let _detached = Detached(unsafe { ffi::PyEval_SaveThread() });
    wait()
}

unsafe extern "C" {
    #[cfg_attr(not(Py_3_13), link_name = "_Py_IsFinalizing")]
    fn Py_IsFinalizing() -> std::ffi::c_int;
}

/// True if the interpreter has stopped all other threads, because it ends. The calling thread ends it.
#[inline]
pub fn is_alone(_attached: Python<'_>) -> bool {
    // SAFETY: no preconditions. From here on the interpreter stops every other thread that asks for it.
    unsafe { Py_IsFinalizing() != 0 }
}

/// The state of the interpreter's end, with the number of threads that hold an [`EndDelay`].
static END: Shutdown = Shutdown::new();

/// True if another thread is about to end the interpreter.
pub fn other_thread_ends() -> bool {
    let ender = END.ender();
    ender != 0 && ender != this_thread() as u64
}

fn this_thread() -> usize {
    // SAFETY: no preconditions. No thread's id is 0.
    unsafe { libc::pthread_self() as usize }
}

/// Number of forks of which this process is the child. A fork forgets the delays of the parent, also one of the thread
/// that forked.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// Delays the end of the interpreter briefly, while Python code runs that must not be stopped halfway.
pub struct EndDelay {
    forks: usize,
}

impl EndDelay {
    /// Begins a delay. `None`: another thread has begun to end the interpreter.
    pub fn new() -> Option<Self> {
        // This thread counts itself before it checks for an end. The ending thread reads the count after it has begun
        // the end. So at least one of the two threads sees the other. The fences are needed in builds without a GIL;
        // with a GIL, both steps happen under it.
        END.enter();
        let stay = Self { forks: FORKS.load(Ordering::Relaxed) };
        (!other_thread_ends()).then_some(stay)
    }
}

impl Drop for EndDelay {
    fn drop(&mut self) {
        if self.forks == FORKS.load(Ordering::Relaxed) {
            END.leave();
        }
    }
}

/// Begins the end of the interpreter on the calling thread. Returns how many other threads need time to finish.
pub fn begin_end() -> usize {
    END.begin(this_thread() as u64) as usize
}

/// Lets only one thread at a time call stock logging while another thread ends the interpreter. The end waits briefly for
/// the calls that have begun before.
///
/// Without a GIL, threads that log compete for the interpreter's lock on `sys.modules`, which every `LogRecord` reads.
/// If that lock is being handed to a thread that the end stops forever, the end waits for the lock forever. This was
/// seen in CPython 3.13.15t: in one of ten ends with three such threads, and in one of a hundred without logspool.
#[cfg(Py_GIL_DISABLED)]
mod turn {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::{Duration, Instant};

    use logspool_sys::sleep::sleep_interruptibly;

    use pyo3::Python;

    use super::{EndDelay, detached, this_thread};

    // Relaxed: the turn guards no data of this crate.
    /// The thread that may call stock logging now, or 0.
    static HOLDER: AtomicUsize = AtomicUsize::new(0);
    /// Number of turns that have begun.
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    /// True from the moment after which no turn begins.
    static CLOSED: AtomicBool = AtomicBool::new(false);

    /// Maximum wait while one other thread has the turn. Chosen: a line takes microseconds, and a thread without a
    /// processor waits tens of milliseconds. The wait is limited because a handler may itself wait for another thread
    /// that logs.
    const TIMEOUT: Duration = Duration::from_secs(1);
    /// Maximum wait of [`close`] for the thread that has the turn. Chosen: a hundred times what a line takes. That thread
    /// may be waiting for a lock that the ending thread keeps.
    const LAST_TURN: Duration = Duration::from_millis(10);
    const PAUSE: Duration = Duration::from_micros(100);

    pub enum StockTurn {
        /// The call has begun before the end, which waits briefly for it.
        Early(#[allow(dead_code, reason = "it acts when it is dropped")] EndDelay),
        /// The thread has the turn.
        Taken,
        /// An outer call of this thread has the turn, or the thread may not wait for it.
        Other,
    }

    impl StockTurn {
        /// Waits for the turn, if another thread has begun to end the interpreter. `may_wait`: the thread has no lock that
        /// the thread with the turn may need.
        #[inline]
        pub fn take(py: Python<'_>, may_wait: bool) -> Self {
            match EndDelay::new() {
                Some(delay) => Self::Early(delay),
                None if may_wait && HOLDER.load(Relaxed) != this_thread() => wait(py),
                None => Self::Other,
            }
        }
    }

    #[cold]
    fn wait(py: Python<'_>) -> StockTurn {
        let mut begun = BEGUN.load(Relaxed);
        let mut deadline = Instant::now() + TIMEOUT;
        while CLOSED.load(Relaxed) || Instant::now() < deadline {
            if !CLOSED.load(Relaxed) && HOLDER.compare_exchange(0, this_thread(), Relaxed, Relaxed).is_ok() {
                BEGUN.fetch_add(1, Relaxed);
                return StockTurn::Taken;
            }
            detached(py, || sleep_interruptibly(PAUSE));
            let now = BEGUN.load(Relaxed);
            if now != begun {
                begun = now;
                deadline = Instant::now() + TIMEOUT;
            }
        }
        StockTurn::Other
    }

    /// Lets no turn begin any more: threads that log wait until the interpreter stops them. Called when the program's
    /// last function has returned.
    pub fn close(py: Python<'_>) {
        CLOSED.store(true, Relaxed);
        let deadline = Instant::now() + LAST_TURN;
        while HOLDER.load(Relaxed) != 0 && Instant::now() < deadline {
            detached(py, || sleep_interruptibly(PAUSE));
        }
    }

    pub fn forget() {
        HOLDER.store(0, Relaxed);
        CLOSED.store(false, Relaxed);
    }

    impl Drop for StockTurn {
        fn drop(&mut self) {
            if matches!(self, Self::Taken) {
                HOLDER.store(0, Relaxed);
            }
        }
    }
}

#[cfg(Py_GIL_DISABLED)]
pub use turn::StockTurn;

/// Stops the threads that log from now on, where the end of the interpreter could otherwise wait for one of them. Called
/// after the program's last exit function has returned.
pub fn stop_logging_threads(py: Python<'_>) {
    #[cfg(Py_GIL_DISABLED)]
    turn::close(py);
    #[cfg(not(Py_GIL_DISABLED))]
    let _ = py;
}

/// Resets the state in a forked child. The child has no other threads, and its interpreter ends independently.
pub fn reset_after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    END.forget();
    #[cfg(Py_GIL_DISABLED)]
    turn::forget();
}
