//! Makes the plan of a logger: visits its handlers as stock logging would, and decides which calls may take the native
//! path.
//!
//! Pipeline stage: *capture*, its slow path (see ARCHITECTURE.md). It runs at the first call of a logger and after
//! every change. A case that planning does not support never raises an error: the calls take the stock path, and
//! `stats()` shows the reason. Planning runs under its own Python lock, so that two threads do not open two sinks for
//! one handler.

use std::sync::atomic::{AtomicI8, AtomicU64};
use std::sync::{Arc, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving::EndDelay;
use crate::interpreter::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::builder::{PlanBuilder, PlanningLock};
use crate::plans::callbacks::{CALLBACKS, PlanningCallbacks, installed, under_lock, weak_reference, with_saved_error};
use crate::plans::environment::{self, IdValidity};
use crate::plans::format_parts::FormatterTexts;
use crate::plans::logging_globals::logging_globals;
use crate::plans::needs::Needs;
use crate::plans::plan::{ListShape, Plan, RecordPlan};
use crate::plans::text_stream::StreamList;
use crate::plans::{handler_states, native_log, table, tries, watched};

/// Result of [`make`].
pub enum PlanOutcome {
    /// The logger has a plan now.
    Plan,
    /// No plan can be made now. The call takes the stock path.
    NotNow,
    /// Python raised an error that must leave the call, such as `KeyboardInterrupt`. Python's error indicator is set.
    Raised,
}

impl From<Failure> for PlanOutcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Stock => Self::NotNow,
            Failure::Raised => Self::Raised,
        }
    }
}

/// Makes the plan of `logger`, an instance of `logging.Logger`, for a call that began in the epoch `since`.
pub fn make(logger: Object<'_, '_>, since: u64) -> PlanOutcome {
    if !installed() || tries::skip_planning() {
        return PlanOutcome::NotNow;
    }
    let Some(callbacks) = CALLBACKS.get() else { return PlanOutcome::NotNow };
    // Making a plan runs Python code. While the interpreter ends, this thread might never return from it. `_stay`
    // delays the end.
    let Some(_stay) = EndDelay::new() else { return PlanOutcome::NotNow };
    let py = logger.py();
    let logger = logger.to_owned();
    let made = with_saved_error(py, || {
        // On GIL builds a plan is first tried without the lock: usually all handlers are known. Free-threaded builds
        // always take the lock. Without it, threads that begin to log at the same time would each replace a plan that
        // another thread is about to use.
        if !cfg!(Py_GIL_DISABLED)
            && let Some(made) = catch_panic(|| make_once(callbacks, &logger, PlanningLock::Free))?
        {
            return Ok(made);
        }
        handler_states::await_orphans(py).map_err(|error| Failure::raised(py, error))?;
        under_lock(callbacks, py, || {
            // Another thread may have made the plan while this thread waited for the lock.
            if table::serves(py, logger.as_borrowed(), since) {
                return Ok(PlanOutcome::Plan);
            }
            catch_panic(|| make_locked(callbacks, &logger)).map(|made| made.unwrap_or(PlanOutcome::NotNow))
        })
    });
    made.unwrap_or_else(PlanOutcome::from)
}

/// Runs a function that makes a plan. Catches a panic, which must not unwind into the interpreter. After a panic the
/// logger gets no plan.
fn catch_panic(make: impl FnOnce() -> Result<Option<PlanOutcome>, Failure>) -> Result<Option<PlanOutcome>, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(make)).unwrap_or(Ok(Some(PlanOutcome::NotNow)))
}

/// Opens the handlers' files that a record of `level` would open, and makes the plan again. If a file cannot be opened,
/// stock logging reports the error.
pub fn open_streams(logger: Object<'_, '_>, level: u16, since: u64) -> PlanOutcome {
    let Some(callbacks) = CALLBACKS.get() else { return PlanOutcome::NotNow };
    // As in `make`. While the interpreter ends, stock logging opens the files.
    let Some(_stay) = EndDelay::new() else { return PlanOutcome::NotNow };
    let py = logger.py();
    // A reference to the logger is held, and the planning lock is not, because `_open` may run user Python code.
    let logger = logger.to_owned();
    match with_saved_error(py, || Ok(callbacks.open_streams.bind(py).call1((&logger, level))?)) {
        Ok(_) => make(logger.as_borrowed(), since),
        Err(failure) => failure.into(),
    }
}

fn make_locked(callbacks: &PlanningCallbacks, logger: &Bound<'_, PyAny>) -> Result<Option<PlanOutcome>, Failure> {
    for _ in 0..3 {
        let now = IdValidity::now();
        let made = make_once(callbacks, logger, PlanningLock::Held)?;
        // The first try can make itself stale in two ways. Defining the first id starts the pipeline (again, in a
        // forked child). Closing a handler's previous sink begins a new epoch.
        if now.serves_call() || !matches!(made, Some(PlanOutcome::Plan)) {
            return Ok(made);
        }
        tries::count_unused();
    }
    Ok(None)
}

/// Tries once to make a plan. Returns `None` if that needs the planning lock.
fn make_once(
    callbacks: &PlanningCallbacks,
    logger: &Bound<'_, PyAny>,
    lock: PlanningLock,
) -> Result<Option<PlanOutcome>, Failure> {
    let py = logger.py();
    // Read before the inputs are inspected: a later change then makes the plan stale, never wrong.
    let under = IdValidity::now();
    // Checked after the epoch is read: `uninstall()` may have run while this thread waited for the lock.
    if !installed() {
        return Ok(Some(PlanOutcome::NotNow));
    }
    tries::count();
    // The logger is watched before it is inspected, so that a later change begins a new epoch.
    watched::watch_loggers([logger.as_ptr() as usize]);
    let name = logger.getattr("name")?;
    let is_computed = !object::of_class(logger.as_borrowed(), names::names().name.bind(py)).is_null();
    let plain_name = (!is_computed).then(|| Owned::of(&name));
    let name = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok().map(str::to_owned));
    let Some(name) = name else { return Ok(Some(PlanOutcome::NotNow)) };
    let globals = logging_globals(callbacks, py, environment::descriptions())?;
    let mut builder = PlanBuilder {
        callbacks,
        lock,
        globals: &globals,
        name,
        types: Vec::new(),
        lists: Vec::new(),
        targets: Vec::new(),
        streams: Vec::new(),
        words: Vec::new(),
        rotations: Vec::new(),
        needs: Needs::default(),
        formatter_texts: FormatterTexts::default(),
        stock_from: u32::MAX,
        record_from: u32::MAX,
        steps_are_stock: true,
        opens_from: u32::MAX,
        reason: String::new(),
        gate_is_stock: true,
        handlers: 0,
        last_handler: None,
        has_filters: false,
        filters: None,
        given: Vec::new(),
        of_handlers: None,
        terminal: None,
        kept: Vec::new(),
        held: Vec::new(),
    };
    builder.class(&logger.get_type());
    let (class_method, class_reason): (String, String) =
        callbacks.classify_logger.bind(py).call1((logger.get_type(),))?.extract()?;
    if !class_reason.is_empty() {
        builder.method_is_replaced(&class_method, &class_reason);
    }
    builder.factory(py)?;
    if class_reason.is_empty() && class_method == names::MAKE_RECORD {
        builder.record_maker(&logger.get_type())?;
    }
    if !globals.reason.is_empty() {
        builder.record_above(0, &globals.reason);
    }
    if !globals.stock_reason.is_empty() {
        builder.stock_from = 0;
    }
    builder.class(callbacks.record_class.bind(py).cast::<PyType>().map_err(PyErr::from)?);
    builder.instance(logger)?;
    if !builder.chain(logger)? {
        return Ok(None);
    }
    if builder.handlers == 0 {
        builder.record_above(0, "no handler: stock logging uses logging.lastResort");
    }
    let log_is_native = native_log::is_method_of(logger)?;
    let disabled = logger.getattr("disabled")?.is_truthy()?;
    let gate_open = builder.gate_is_stock && class_method != names::IS_ENABLED_FOR;
    let level_cache = logger.getattr("_cache").ok().and_then(|cache| cache.cast_into_exact::<PyDict>().ok());
    let (opens_from, record_from_if_open) = (builder.opens_from, builder.record_from);
    if opens_from < record_from_if_open {
        builder.stock_above(opens_from, "a file is opened with its first record");
    }
    let streams = std::mem::take(&mut builder.streams).into_boxed_slice();
    let route = builder.route(under, StreamList::of(&streams));
    let counts = table::counts(&builder.name);
    *counts.reason.lock().unwrap_or_else(PoisonError::into_inner) = builder.reason.clone();
    // The plan must not keep its own logger alive, because the plan is removed when the logger is freed.
    let own = logger.as_ptr();
    builder.kept.retain(|kept| kept.as_ptr() != own);
    builder.kept.append(&mut builder.held);
    let lists: Arc<[ListShape]> = builder.lists.into();
    let is_alone = builder.handlers == 1 && globals.record_factory.is_none();
    let plan = Plan {
        logger: own as usize,
        made_under: under,
        disabled: disabled && gate_open,
        level_cache: level_cache.filter(|_| gate_open).map(|cache| NumberedDict::of(&cache)),
        gates_version: AtomicU64::new(0),
        gates: [const { AtomicI8::new(-1) }; 5],
        types: builder.types,
        lists: lists.clone(),
        route,
        stock_from: builder.stock_from,
        log_is_native,
        record_plan: Arc::new(RecordPlan {
            globals: globals.clone(),
            steps_are_stock: builder.steps_are_stock,
            has_one_handler: builder.handlers <= 1,
            epoch: under.epoch,
            lists,
            only_handler: builder.last_handler.filter(|_| is_alone),
            has_filters: builder.has_filters,
            filters: builder.filters,
            disabled,
            name: plain_name,
        }),
        counts,
        opens_from,
        record_from_if_open,
        words: builder.words.into_boxed_slice(),
        rotations: builder.rotations,
        streams,
        kept: builder.kept,
    };
    let reference = weak_reference(logger)?;
    table::put(py, plan, reference);
    Ok(Some(PlanOutcome::Plan))
}
