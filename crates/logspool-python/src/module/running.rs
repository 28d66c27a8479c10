//! Python functions that start and stop the native path, wait for queued records, and handle forks and process end.

use std::time::Duration;

use logspool::pipeline;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calls::{keywords, rules};
use crate::interpreter::leaving::{self, detached};
use crate::plans::{callbacks, environment, handler_states, table};
use crate::{flushing, options};

/// Make this copy of the library the owner of the process's queue.
#[pyfunction]
pub fn claim() -> PyResult<()> {
    logspool::copies::claim().map_err(|other| PyRuntimeError::new_err(other.to_string()))
}

/// Return the options of `install()` as dicts: name, shape, default, unit, range, meaning and more.
#[pyfunction]
pub fn install_options(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    options::table(py)
}

/// Check options of `install()`, and return all of them with the defaults of those that were not given.
#[pyfunction]
#[pyo3(signature = (options, /))]
pub fn check_options<'py>(options: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    options::checked(options)
}

/// Pass the options of `install()` to the core.
#[pyfunction]
pub fn configure(options: &Bound<'_, PyDict>) -> PyResult<()> {
    options::configure(options)
}

/// Let logging calls take the native path.
#[pyfunction]
pub fn start() {
    callbacks::set_installed(true);
}

/// Stop taking the native path. Write the records queued for adopted handlers, and remove the handlers' states.
/// logspool's own handlers keep their queue.
#[pyfunction]
pub fn stop(py: Python<'_>) -> PyResult<()> {
    let pushed = rules::push_all_summaries(py);
    callbacks::set_installed(false);
    // From here on no plan queues a record. If a thread flushes, everything that it has queued is in the queue.
    detached(py, pipeline::settle);
    let released = handler_states::release_all(py, pipeline::shutdown_timeout());
    table::forget_all(py);
    released.and(pushed)
}

/// Wait until everything queued before is written. Return True if it is written within `timeout` seconds.
#[pyfunction]
#[pyo3(signature = (timeout=None))]
pub fn flush(py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
    flushing::flush(py, None, timeout.map(options::timeout).transpose()?)
}

/// Like `flush`, but wait until everything queued before is durable.
#[pyfunction]
#[pyo3(signature = (timeout=None))]
pub fn flush_durable(py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
    flushing::flush_durable(py, timeout.map(options::timeout).transpose()?)
}

/// Like `flush`, but do not wait for records that are sent to services.
#[pyfunction]
pub fn flush_local(py: Python<'_>, timeout: f64) -> PyResult<bool> {
    flushing::flush_local(py, options::timeout(timeout)?)
}

/// The command that writes what a process has left.
const RECOVERY: &str = "python -m logspool recover";

/// Wait until everything queued for one handler is written.
#[pyfunction]
pub fn flush_handler(handler: &Bound<'_, PyAny>) -> PyResult<bool> {
    handler_states::flush(handler, pipeline::shutdown_timeout())
}

/// Write everything queued, for at most `timeout` seconds. Return the number of records that were not written.
#[pyfunction]
pub fn drain(py: Python<'_>, timeout: f64) -> PyResult<u64> {
    let timeout = options::timeout(timeout)?;
    let pushed = rules::push_all_summaries(py);
    let left = detached(py, || pipeline::empty(timeout));
    pushed.map(|()| left)
}

/// Drain as `drain` does, at the very end of the process. From here on logging calls of other threads wait for the
/// process to end, and the files of the queue are removed. Report the number of unwritten records on stderr.
#[pyfunction]
pub fn end(py: Python<'_>, timeout: f64) -> PyResult<()> {
    let timeout = options::timeout(timeout)?;
    let pushed = rules::push_all_summaries(py);
    detached(py, || pipeline::report_unwritten(pipeline::end(timeout), timeout, RECOVERY));
    pushed
}

/// Undo `end`.
#[pyfunction]
pub fn go_on(py: Python<'_>) {
    detached(py, pipeline::revert_end);
    environment::make_all_stale();
}

/// Prepare for `os.fork()`. Called in the parent before the fork.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    detached(py, pipeline::before_fork);
}

/// Continue after `os.fork()`. Called in the parent.
#[pyfunction]
pub fn after_fork_in_parent() {
    extern "C" fn watch(_: *mut std::ffi::c_void) -> std::ffi::c_int {
        pipeline::watch_after_fork();
        0
    }
    pipeline::after_fork_in_parent();
    // `watch` runs after `os.fork()` has returned, because CPython 3.13 counts threads before the return. If the list
    // of pending calls is full, the next record starts the watcher.
    // SAFETY: a plain function, which the interpreter calls once.
    unsafe { ffi::Py_AddPendingCall(Some(watch), std::ptr::null_mut()) };
}

/// Reset the state after `os.fork()`. Called in the child.
#[pyfunction]
pub fn after_fork_in_child() {
    pipeline::after_fork_in_child();
    leaving::reset_after_fork();
    keywords::reset_after_fork();
    rules::after_fork_in_child();
    environment::make_all_stale();
}

/// Let SIGTERM and SIGHUP drain the queue before they end the process, if their disposition is the default one.
#[pyfunction]
pub fn install_signal_drain(timeout: f64) -> PyResult<()> {
    pipeline::install_signal_drain(options::timeout(timeout)?);
    Ok(())
}

/// Let SIGSEGV, SIGABRT, SIGBUS, SIGFPE and SIGILL wait for at most 200 ms until queued records are written.
#[pyfunction]
pub fn install_crash_drain() {
    pipeline::install_crash_drain();
}

/// Restore the former handlers of the signals of `install_crash_drain`, unless the program has set its own since then.
#[pyfunction]
pub fn remove_crash_drain() {
    pipeline::remove_crash_drain();
}

/// Drain the queue once more when libc ends the process, after the interpreter has ended.
#[pyfunction]
pub fn register_exit_drain() -> PyResult<()> {
    fn finish(drain: fn(Duration) -> u64) {
        let _ = std::panic::catch_unwind(|| {
            let timeout = pipeline::shutdown_timeout();
            pipeline::report_unwritten(drain(timeout), timeout, RECOVERY);
        });
    }
    // A program that embeds the interpreter may continue after the interpreter ends. If it logs in C or C++, a kill must
    // not lose its next records, so these begin a queue of their own.
    extern "C" fn after_interpreter() {
        if logspool_abi::loggers::LOGGERS.all().next().is_none() {
            return finish(pipeline::drain);
        }
        finish(pipeline::end);
        let _ = std::panic::catch_unwind(pipeline::revert_end);
    }
    extern "C" fn at_exit() {
        finish(pipeline::end);
        pipeline::expect_late_records(at_exit);
    }
    // A process that ends by SIGINT raises that signal after the interpreter's end and before libc's exit functions. So
    // the drain is also registered in the interpreter's list. If that list is full (32 entries), only the drain in the
    // libc list runs.
    // SAFETY: a plain function without captures; each list calls it at most once per process.
    unsafe { ffi::Py_AtExit(Some(after_interpreter)) };
    if pipeline::call_at_exit(at_exit) {
        Ok(())
    } else {
        Err(PyValueError::new_err("cannot register the drain at exit: libc has no room"))
    }
}

/// Declare that this thread ends the interpreter. Return how many other threads need time to finish.
#[pyfunction]
pub fn begin_end() -> usize {
    leaving::begin_end()
}

/// Stop threads that log after the program's last exit function, where the interpreter's end could wait for one.
#[pyfunction]
pub fn stop_logging_threads(py: Python<'_>) {
    leaving::stop_logging_threads(py);
}
