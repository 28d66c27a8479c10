//! The functions of `logspool._native` that `python/logspool/` calls. None of them is on the hot path.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use logspool::keeper::Command;
use logspool::pipeline;
use logspool_record::address::{ServiceAddress, TlsIdentity};
use pyo3::exceptions::{PyImportError, PyRuntimeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyString, PyTuple, PyType};

use crate::leaving::outside;
use crate::object::Owned;
use crate::planning::Adopt;
use crate::{
    adoption, context, environment, flushing, frame, hooks, keywords, leaving, message, methods, names, options, plan,
    planning, plans, pool, prepare, report, sink_options, site, stream, tries,
};

/// Words of a command line or an environment, as the system has them.
type Words = Vec<Vec<u8>>;

/// Native part of logspool. Use `logspool`.
#[pymodule(name = "_native", gil_used = false)]
mod native {
    use super::*;
    #[pymodule_export]
    use crate::pool::{Completions, EventLoop, PoolCore, Results, Schedule, Semaphore, View, Worker};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // What is kept here of classes and dicts is that of one interpreter, and the queue is one of the process.
        // CPython refuses by itself only where a sub-interpreter has a lock of its own, from 3.12 on.
        // SAFETY: attached.
        if unsafe { ffi::PyInterpreterState_Get() != ffi::PyInterpreterState_Main() } {
            return Err(PyImportError::new_err("logspool works in the main interpreter of a process only"));
        }
        pipeline::program_begins();
        // SAFETY: attached; called once per process.
        if !unsafe { names::init() && methods::init() } {
            return Err(PyRuntimeError::new_err("cannot make the names that logspool looks up"));
        }
        pool::init(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Return the types of the pool's futures and timers, made on first use: they need `concurrent.futures`.
    ///
    /// `start` starts a thread that calls `run_timers`.
    #[pyfunction]
    fn pool_futures<'py>(start: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        pool::set_start(start);
        pool::future_classes(start.py())
    }

    /// Be the thread that waits for all that pools do later; `start_worker` gets the `_id` of a pool that needs one.
    #[pyfunction]
    fn run_timers(start_worker: &Bound<'_, PyAny>) {
        pool::run_timers(start_worker.py(), start_worker);
    }

    /// In a forked child: forget what waits for its time, with an exception for those who wait for it.
    #[pyfunction]
    fn timers_after_fork(exception: &Bound<'_, PyAny>) {
        pool::after_fork(exception);
    }

    /// Check this interpreter's private frame layout against its public functions.
    #[pyfunction]
    fn frame_self_check() -> bool {
        // SAFETY: called from Python code, attached.
        unsafe { frame::self_check() }
    }

    /// Say whether the private frame layout is used.
    #[pyfunction]
    fn use_direct_frames(allowed: bool) {
        frame::use_direct(allowed);
    }

    /// Return the words of an object's C struct. For finding offsets by comparison; see `_streams.py`.
    #[pyfunction]
    fn object_words(object: &Bound<'_, PyAny>) -> Vec<i64> {
        // SAFETY: a type's basic size is what each of its instances occupies.
        unsafe {
            let class = ffi::Py_TYPE(object.as_ptr());
            let words = (*class).tp_basicsize as usize / 8;
            (0..words).map(|index| object.as_ptr().cast::<i64>().add(index).read()).collect()
        }
    }

    /// Return the byte offset of what changes in a dict with each change of it; before 3.14, see `environment.rs`.
    #[pyfunction]
    fn dict_state_offset() -> usize {
        environment::dict_state_offset()
    }

    /// Set where text streams count unwritten text: byte offsets in `TextIOWrapper` and `BufferedWriter`.
    #[pyfunction]
    fn set_stream_offsets(pending_text: usize, write_end: usize) {
        stream::set_offsets(pending_text, write_end);
    }

    /// Set what opens a handler's stream anew when its sink has gone over to another file; see `_rotation.py`.
    #[pyfunction]
    fn set_catch_up(function: &Bound<'_, PyAny>) {
        adoption::set_catch_up(Owned::of(function));
    }

    /// Set what `QueueHandler` of the standard library is and does; see `_queueing.py`.
    #[pyfunction]
    fn set_queue_prepare(
        describe: &Bound<'_, PyAny>,
        class_: &Bound<'_, PyAny>,
        cleared: Vec<Bound<'_, PyString>>,
        copied_otherwise: &Bound<'_, PyDict>,
        lock_class: &Bound<'_, PyAny>,
        queue_classes: Vec<Bound<'_, PyAny>>,
    ) {
        prepare::set_stock(prepare::Stock {
            describe: Owned::of(describe),
            class: Owned::of(class_),
            cleared: cleared.iter().map(|name| Owned::of(name.as_any())).collect(),
            copied_otherwise: Owned::of(copied_otherwise),
            lock_class: Owned::of(lock_class),
            queue_classes: queue_classes.iter().map(Owned::of).collect(),
        });
    }

    /// Set what lets a handler's stream follow its sink while that goes on; see `_rotation.py`.
    #[pyfunction]
    fn set_follow(function: &Bound<'_, PyAny>) {
        adoption::set_follow(Owned::of(function));
    }

    /// Return the second in which a file was made, or None where the file system does not tell.
    #[pyfunction]
    fn birth_second(path: PathBuf) -> Option<u64> {
        let born = std::fs::metadata(path).ok()?.created().ok()?;
        born.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
    }

    /// Make this copy of the library the one that has the queue of the process.
    #[pyfunction]
    fn claim() -> PyResult<()> {
        logspool::copies::claim().map_err(|other| PyRuntimeError::new_err(other.to_string()))
    }

    /// Return the system calls that do not work here, one dict each, with what is weaker because of it. `forks`: look
    /// also in a forked child.
    #[pyfunction]
    #[pyo3(signature = (*, forks=false))]
    fn missing_calls(py: Python<'_>, forks: bool) -> PyResult<Bound<'_, PyList>> {
        if forks {
            logspool_sys::kernel::try_wipe_on_fork();
        }
        report::missing_calls(py)
    }

    /// Hand over the Python half: functions of `_adopt.py` and the objects that stock logging reads.
    #[pyfunction]
    #[pyo3(signature = (*, describe, describe_format, classify_logger, open_streams, world, logger_methods, lock, record_class, source_file,
        mapping, active_threads, current_thread, thread_class, modules, bound_fields, exception_text, stack_text,
        made_text, record_names))]
    #[allow(clippy::too_many_arguments)]
    fn connect(
        py: Python<'_>,
        describe: Py<PyAny>,
        describe_format: Py<PyAny>,
        classify_logger: Py<PyAny>,
        open_streams: Py<PyAny>,
        world: Py<PyAny>,
        logger_methods: Vec<Py<PyString>>,
        lock: Py<PyAny>,
        record_class: Py<PyAny>,
        source_file: &str,
        mapping: &Bound<'_, PyAny>,
        active_threads: &Bound<'_, PyDict>,
        current_thread: &Bound<'_, PyAny>,
        thread_class: &Bound<'_, PyType>,
        modules: &Bound<'_, PyDict>,
        bound_fields: &Bound<'_, PyAny>,
        exception_text: &Bound<'_, PyAny>,
        stack_text: &Bound<'_, PyAny>,
        made_text: &Bound<'_, PyAny>,
        record_names: &Bound<'_, PyFrozenSet>,
    ) -> PyResult<()> {
        // SAFETY: attached.
        if !unsafe { site::init() } {
            PyErr::take(py);
            return Err(PyRuntimeError::new_err("CPython has no slot left on code objects (at most 255 exist)"));
        }
        site::set_source_file(source_file);
        message::set_mapping(Owned::of(mapping));
        message::set_made_text(Owned::of(made_text));
        keywords::set_makers(keywords::Makers {
            exception_text: Owned::of(exception_text),
            stack_text: Owned::of(stack_text),
            record_names: Owned::of(record_names),
        });
        context::set_sources(context::Sources {
            active_threads: Owned::of(active_threads),
            current_thread: Owned::of(current_thread),
            thread_name: Owned::of(&thread_class.getattr("name")?),
            modules: Owned::of(modules),
            multiprocessing: Owned::of(PyString::intern(py, "multiprocessing").as_any()),
            asyncio: Owned::of(PyString::intern(py, "asyncio").as_any()),
            bound_fields: Owned::of(bound_fields),
        });
        let forget = wrap_pyfunction!(forget_dead, py)?.into_any().unbind();
        planning::set_adopt(Adopt {
            describe,
            describe_format,
            classify_logger,
            open_streams,
            world,
            logger_methods,
            lock,
            record_class,
            forget,
        });
        Ok(())
    }

    /// Callback of weak references: a logger or handler died.
    #[pyfunction]
    fn forget_dead(reference: &Bound<'_, PyAny>) {
        // SAFETY: attached.
        unsafe {
            plans::forget(reference.as_ptr());
            adoption::forget(reference.as_ptr());
        }
    }

    /// Set the classes whose instances queue also without `install()`.
    #[pyfunction]
    fn set_own_classes(classes: &Bound<'_, PyTuple>) {
        planning::set_own_classes(Owned::of(classes));
    }

    /// Check the address of a service, with what TLS must know, and return it as it is shown and as a whole.
    #[pyfunction]
    #[pyo3(signature = (address, authorities, certificate, key, server_name, /))]
    fn service_address(
        address: &str,
        authorities: Option<String>,
        certificate: Option<String>,
        key: Option<String>,
        server_name: Option<String>,
    ) -> PyResult<(String, String)> {
        let identity = TlsIdentity { authorities, certificate, key, server_name };
        match address.parse::<ServiceAddress>().and_then(|address| address.with_identity(identity)) {
            Ok(address) => Ok((address.to_string(), address.to_text())),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    /// Return every kind of sink as a dict: kind, about, takes ("lines" or "entries"), options.
    #[pyfunction]
    fn sink_table(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        sink_options::table(py)
    }

    /// Check the options of a sink, and return its name as statistics show it.
    #[pyfunction]
    #[pyo3(signature = (kind, options, /))]
    fn check_sink(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<String> {
        sink_options::check(kind, options)
    }

    /// Return (class name, method name) of every method that `install()` replaces.
    #[pyfunction]
    fn native_methods() -> Vec<(&'static str, &'static str)> {
        methods::declared().collect()
    }

    /// Make the native method `class.name` that falls back to `function`.
    #[pyfunction]
    #[pyo3(signature = (class, owner, name, function, /))]
    fn native_method<'py>(
        class: &Bound<'py, PyType>,
        owner: &str,
        name: &str,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: a live type; the result is a new reference or null with an error set.
        unsafe {
            let made: *mut PyObject = methods::descriptor(class.as_type_ptr(), owner, name, Owned::of(function));
            Bound::from_owned_ptr_or_err(class.py(), made)
        }
    }

    /// Make `__setattr__` (or `__delattr__`) for a class whose attributes plans depend on.
    #[pyfunction]
    #[pyo3(signature = (class, delete, /))]
    fn attribute_hook<'py>(class: &Bound<'py, PyType>, delete: bool) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: as above.
        unsafe {
            let made: *mut PyObject = methods::attribute_hook(class.as_type_ptr(), delete);
            Bound::from_owned_ptr_or_err(class.py(), made)
        }
    }

    /// Watch names in a dict, or with `None` the whole dict.
    #[pyfunction]
    #[pyo3(signature = (dict, names))]
    fn watch_dict(dict: &Bound<'_, PyDict>, names: Option<Vec<Bound<'_, PyAny>>>) {
        let pointers: Option<Vec<*mut PyObject>> = names.map(|names| names.iter().map(|name| name.as_ptr()).collect());
        // SAFETY: a live dict and names; attached.
        unsafe { environment::watch(dict.as_ptr(), pointers.as_deref()) };
    }

    /// Stop watching dicts and attributes.
    #[pyfunction]
    fn unwatch() {
        environment::forget_all();
        hooks::forget_all();
    }

    /// Watch a part of a handler that is about to be looked at. Return how often it has changed.
    #[pyfunction]
    fn watch_part(part: &Bound<'_, PyAny>) -> u64 {
        hooks::Part::watch(part.as_ptr() as usize).seen()
    }

    /// Return a number that stays the same while a class, its bases, and what logspool knows of all classes do.
    ///
    /// Read it before the class is looked at. 0 where CPython has no number to give.
    #[pyfunction]
    fn class_state(class: &Bound<'_, PyType>) -> u64 {
        let descriptions = environment::descriptions();
        // SAFETY: a live type, attached.
        match unsafe { plan::assigned_tag(class.as_ptr()) } {
            0 => 0,
            tag => descriptions << 32 | u64::from(tag),
        }
    }

    /// Make every plan and description stale.
    #[pyfunction]
    fn bump() {
        environment::bump();
    }

    /// Hand the options to the core.
    #[pyfunction]
    fn configure(options: &Bound<'_, PyDict>) -> PyResult<()> {
        options::configure(options)
    }

    /// Start taking the native path.
    #[pyfunction]
    fn start() {
        planning::set_installed(true);
    }

    /// Stop taking the native path, write what is queued for adopted handlers, and forget them. Those of logspool's own
    /// keep their queue.
    #[pyfunction]
    fn stop(py: Python<'_>) -> PyResult<()> {
        planning::set_installed(false);
        // From here on no record is queued by a plan: what a thread has queued, it finds when it flushes.
        outside(py, pipeline::settle);
        let released = adoption::release_all(py, options::shutdown_timeout());
        // SAFETY: attached.
        unsafe { plans::forget_all() };
        released
    }

    /// Wait until everything queued before is written. Return whether that came true within `timeout` seconds.
    #[pyfunction]
    #[pyo3(signature = (timeout=None))]
    fn flush(py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        flushing::flush(py, None, timeout.map(options::timeout).transpose()?)
    }

    /// As `flush`, but until everything is durable.
    #[pyfunction]
    #[pyo3(signature = (timeout=None))]
    fn flush_durable(py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        flushing::flush_durable(py, timeout.map(options::timeout).transpose()?)
    }

    /// As `flush`, but without waiting for services.
    #[pyfunction]
    fn flush_local(py: Python<'_>, timeout: f64) -> PyResult<bool> {
        flushing::flush_local(py, options::timeout(timeout)?)
    }

    /// Wait until everything queued for one handler is written.
    #[pyfunction]
    fn flush_handler(handler: &Bound<'_, PyAny>) -> PyResult<bool> {
        // SAFETY: attached.
        unsafe { adoption::flush(handler.as_ptr(), options::shutdown_timeout()) }
    }

    /// Write everything queued, at most for `timeout` seconds. Return the number of records left behind.
    #[pyfunction]
    fn drain(py: Python<'_>, timeout: f64) -> PyResult<u64> {
        let timeout = options::timeout(timeout)?;
        Ok(outside(py, || pipeline::empty(timeout)))
    }

    /// Do what `drain` does, at the very end of the process: calls of other threads wait for the end from here on, and
    /// the files of the queue are removed. Tell on stderr what is not written.
    #[pyfunction]
    fn end(py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = options::timeout(timeout)?;
        outside(py, || report::tell_unwritten(pipeline::end(timeout), timeout));
        Ok(())
    }

    /// Take `end` back.
    #[pyfunction]
    fn go_on(py: Python<'_>) {
        outside(py, pipeline::go_on);
        environment::bump();
    }

    /// Before `os.fork()`.
    #[pyfunction]
    fn before_fork(py: Python<'_>) {
        outside(py, pipeline::before_fork);
    }

    /// After `os.fork()` in the parent.
    #[pyfunction]
    fn after_fork_in_parent() {
        extern "C" fn watch(_: *mut std::ffi::c_void) -> std::ffi::c_int {
            pipeline::watch_after_fork();
            0
        }
        pipeline::after_fork_in_parent();
        // Once `os.fork()` has returned: CPython 3.13 counts threads before that. Where the list of calls is full, the
        // next record starts the watcher.
        // SAFETY: a plain function, which the interpreter calls once.
        unsafe { ffi::Py_AddPendingCall(Some(watch), std::ptr::null_mut()) };
    }

    /// After `os.fork()` in the child.
    #[pyfunction]
    fn after_fork_in_child() {
        pipeline::after_fork_in_child();
        leaving::forget_threads();
        environment::bump();
    }

    /// Let SIGTERM and SIGHUP drain first, where their disposition is the default one.
    #[pyfunction]
    fn install_signal_drain(timeout: f64) -> PyResult<()> {
        pipeline::install_signal_drain(options::timeout(timeout)?);
        Ok(())
    }

    /// Let SIGSEGV, SIGABRT, SIGBUS, SIGFPE and SIGILL wait until what is queued is written, at most for 200 ms.
    #[pyfunction]
    fn install_crash_drain() {
        pipeline::install_crash_drain();
    }

    /// Put back what had those signals before, where nobody has set a handler since.
    #[pyfunction]
    fn remove_crash_drain() {
        pipeline::remove_crash_drain();
    }

    /// Drain once more when libc ends the process, after the interpreter is gone.
    #[pyfunction]
    fn register_exit_drain() -> PyResult<()> {
        unsafe extern "C" {
            // In the C standard, and not in the crate `libc`.
            fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
        }
        fn finish(drain: fn(Duration) -> u64) {
            let _ = std::panic::catch_unwind(|| {
                let timeout = options::shutdown_timeout();
                report::tell_unwritten(drain(timeout), timeout);
            });
        }
        // A program that embeds the interpreter goes on after its end.
        extern "C" fn after_interpreter() {
            finish(pipeline::drain);
        }
        extern "C" fn at_exit() {
            finish(pipeline::end);
        }
        // A process that ends by SIGINT raises that signal after the interpreter's end and before libc's: so the
        // interpreter's own list has the drain too. It may be full (32 places); libc's is enough then.
        // SAFETY: a plain function without captures; each list calls it at most once per process.
        unsafe { ffi::Py_AtExit(Some(after_interpreter)) };
        // SAFETY: as above. quick_exit(3) has a list of its own.
        if unsafe { libc::atexit(at_exit) == 0 && at_quick_exit(at_exit) == 0 } {
            Ok(())
        } else {
            Err(PyValueError::new_err("cannot register the drain at exit: libc has no room"))
        }
    }

    /// Say that this thread ends the interpreter. Return how many others are in the middle of something.
    #[pyfunction]
    fn begin_end() -> usize {
        leaving::begin_end()
    }

    /// Look for fields of `logspool.bind` from now on. Called before the first are set.
    #[pyfunction]
    fn note_bound_fields() {
        context::note_bound_fields();
    }

    /// Forget texts made for another time zone. Called after `time.tzset()`.
    #[pyfunction]
    fn zone_changed() {
        logspool_record::format::zone_changed();
    }

    /// Return the core's counters, or None when nothing was logged yet.
    #[pyfunction]
    fn snapshot(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
        report::snapshot(py)
    }

    /// Return the counters as OpenMetrics text, or None when nothing was logged yet.
    #[pyfunction]
    fn metrics_text(py: Python<'_>, python: &str, pools: Vec<(String, Bound<'_, PoolCore>)>) -> PyResult<String> {
        report::metrics_text(py, python, pools)
    }

    /// Return how many records of dead processes this one delivered, and how many it gave up.
    #[pyfunction]
    fn recovery_counts() -> (u64, u64) {
        report::recovery_counts()
    }

    /// Return the names that counters use.
    #[pyfunction]
    fn counter_names(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        report::names(py)
    }

    /// Deliver what dead processes left in `folder`, or, with `paths`, what they left for these files.
    #[pyfunction]
    #[pyo3(signature = (folder=None, paths=None))]
    fn recover(py: Python<'_>, folder: Option<PathBuf>, paths: Option<Vec<PathBuf>>) -> PyResult<Bound<'_, PyDict>> {
        report::recover(py, folder, paths)
    }

    /// Note that a handler has opened this file with mode "w".
    #[pyfunction]
    fn opened_anew(path: PathBuf) {
        pipeline::opened_anew(path);
    }

    /// Become the keeper of the process that `watched` is a pidfd of. Ends this process.
    #[pyfunction]
    #[pyo3(signature = (watched, folder, /))]
    fn keep(watched: i32, folder: PathBuf) {
        let code = i32::from(logspool::keeper::keep(watched, &folder).is_err());
        // SAFETY: nothing of this interpreter has to be ended, and nothing of it is to run.
        unsafe { libc::_exit(code) }
    }

    /// Become the keeper of a process whose queue is in memory: descriptor 3 is a pidfd of it, 4 the socket by which it
    /// hands over its files. Ends this process.
    #[pyfunction]
    #[pyo3(signature = (program, /))]
    fn keep_memory(program: u32) {
        let code = i32::from(logspool::keeper::keep_memory(program).is_err());
        // SAFETY: as in `keep`.
        unsafe { libc::_exit(code) }
    }

    /// Say by which command line and environment a keeper is started for a queue in memory, or why there is to be none.
    #[pyfunction]
    #[pyo3(signature = (command, why, /))]
    fn set_keeper_command(command: Option<(Words, Words)>, why: String) -> PyResult<()> {
        let c_strings = |words: Words| words.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>();
        let command = match command {
            Some((arguments, environment)) => {
                Ok(Command { arguments: c_strings(arguments)?, environment: c_strings(environment)? })
            }
            None => Err(why),
        };
        logspool::keeper::set_command(command);
        Ok(())
    }

    /// Return what dead processes left in `folder`, one dict each. Changes nothing.
    #[pyfunction]
    #[pyo3(signature = (folder=None))]
    fn orphans(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
        report::orphans(py, folder)
    }

    /// Return the sidecars of log files in `folder` that are in use or hold something unfinished, one dict each.
    #[pyfunction]
    #[pyo3(signature = (folder=None))]
    fn sidecars(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
        report::sidecars(py, folder)
    }

    /// Return how many plans were made.
    #[pyfunction]
    fn plans_made() -> u64 {
        tries::made()
    }

    /// Return, per logger name, calls on the native path, calls on the stock path, and why the latter.
    #[pyfunction]
    fn paths() -> HashMap<String, (u64, u64, String)> {
        let read = |(name, counts): (String, &'static plan::Counts)| {
            let reason = counts.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
            (name, (counts.native.load(Relaxed), counts.stock.load(Relaxed), reason))
        };
        plans::all_counts().into_iter().map(read).collect()
    }
}
