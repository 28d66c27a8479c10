//! The functions of `logspool._native` that `python/logspool/` calls. They are not on the hot path.

mod asking;
mod capturing;
mod connecting;
mod keeping;
mod pools;
mod running;
mod watching;
mod writing;

use pyo3::prelude::*;

/// Native part of logspool. Use `logspool`.
#[pymodule(name = "_native", gil_used = false)]
mod native {
    use logspool::pipeline;
    use pyo3::exceptions::{PyImportError, PyRuntimeError};
    use pyo3::ffi;
    use pyo3::prelude::*;

    use crate::calls::capture;
    use crate::interpreter::names;
    use crate::pool;

    #[pymodule_export]
    use super::asking::{
        counter_names, exception_texts, metrics_text, missing_calls, orphans, paths, plans_made, recover,
        recovery_counts, running, segment_counters, sidecars, snapshot,
    };
    #[pymodule_export]
    use super::capturing::{PyCapturedLines, set_standard_error};
    #[pymodule_export]
    use super::connecting::{
        attribute_hook, birth_second, check_sink, class_self_check, connect, dict_self_check, dict_word, forget_dead,
        frame_self_check, lock_self_check, native_method, native_methods, object_words, service_address,
        set_adapter_classes, set_catch_up, set_drain, set_follow, set_own_classes, set_queue_prepare,
        set_stock_formatting, set_stream_offsets, set_thread_handler, set_traceback, sink_table, use_direct_frames,
    };
    #[pymodule_export]
    use super::keeping::{keep, keep_memory, set_keeper_command};
    #[pymodule_export]
    use super::pools::{pool_futures, run_timers, timers_after_fork};
    #[pymodule_export]
    use super::running::{
        after_fork_in_child, after_fork_in_parent, before_fork, begin_end, check_options, claim, configure, drain, end,
        flush, flush_durable, flush_handler, flush_local, go_on, install_crash_drain, install_options,
        install_signal_drain, register_exit_drain, remove_crash_drain, start, stop, stop_logging_threads,
    };
    #[pymodule_export]
    use super::watching::{
        bump, class_state, has_own_code, note_bound_fields, opened_anew, unwatch, watch_code, watch_dict, watch_part,
        zone_changed,
    };
    #[pymodule_export]
    use super::writing::{entry, is_adopted, json_object, note_once, queue_formatted, rule_counts};
    #[pymodule_export]
    use crate::calls::record_queue::{RecordQueue, ReservedPlace};
    #[pymodule_export]
    use crate::calls::unmade_record::UnmadeRecord;
    #[pymodule_export]
    use crate::events::{AccessLog, EventRenderer, IsoStamper, LineLogger, bound_logger_method};
    #[pymodule_export]
    use crate::interpreter::guard::Guard;
    #[pymodule_export]
    use crate::pool::{Completions, EventLoop, PoolCore, Results, Schedule, Semaphore, View, Worker};

    /// The table of functions for extension modules in other languages, see `logspool.h`.
    fn table_capsule(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let table = std::ptr::from_ref(&logspool_abi::table::FORWARD).cast_mut();
        // SAFETY: the thread is attached; table and name are static, and nothing needs a destructor.
        unsafe {
            let capsule = ffi::PyCapsule_New(table.cast(), c"logspool._native._C_API".as_ptr(), None);
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // This crate keeps classes and dicts of one interpreter only, and a process has only one queue. CPython itself
        // refuses only sub-interpreters that have their own lock, from 3.12 on.
        // SAFETY: `module` shows that the thread is attached.
        if unsafe { ffi::PyInterpreterState_Get() != ffi::PyInterpreterState_Main() } {
            return Err(PyImportError::new_err("logspool works in the main interpreter of a process only"));
        }
        pipeline::program_begins();
        if !(names::init(module.py()) && capture::init(module.py())) {
            return Err(PyRuntimeError::new_err("cannot make the names that logspool looks up"));
        }
        pool::init(module.py())?;
        logspool_abi::beginning::forks_are_handled();
        logspool_abi::table::offer();
        // The module `sqlite3` has its own copy of SQLite.
        #[cfg(feature = "sqlite")]
        logspool::sinks::keep_sqlite_apart();
        // Not `add`: the name is private.
        module.setattr("_C_API", table_capsule(module.py())?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
