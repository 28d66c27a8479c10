//! A logging call whose record Python code has to see: a filter, a formatter, a handler or a patched method.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The record is made by [`log_record`]. Then the steps of
//! `Logger.handle` follow: the filters of the logger, and each handler whose level the record reaches. Adopted handlers
//! queue the record as [`emit`] does; all other handlers are called as stock logging calls them. If `handle`, `filter`
//! or `callHandlers` of the logger is not the stock one, `logger.handle(record)` is called instead of these steps.

use std::cell::Cell;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::attribute::Attribute;
use crate::calls::context;
use crate::calls::emit;
use crate::calls::filtering::{self, FilterAnswer};
use crate::calls::keywords::Keywords;
use crate::calls::log_record::{self, MadeRecord, RecordValues};
use crate::calls::record::RecordOrigin;
use crate::calls::record_redaction::{self, TracebackMode};
use crate::calls::site::{self, Site};
use crate::calls::threading;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::list::ListWalk;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::plan::RecordPlan;

/// Maximum number of calls of this module that run in one thread, one inside the other: a filter that logs begins the
/// next one.
///
/// Chosen: programs nest two or three. Each takes some 2 KB of stack that Python's recursion limit does not count.
/// Stock logging does the calls beyond this number, so endless recursion ends with `RecursionError` there.
const MAX_NESTED: u32 = 16;

thread_local! {
    /// The number of calls of this module that run in this thread.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// One call of this module that runs.
struct Nesting;

impl Nesting {
    /// Counts a call; `None` if there are too many.
    fn enter() -> Option<Self> {
        let nested = NESTED.try_with(Cell::get).ok().filter(|nested| *nested < MAX_NESTED)?;
        NESTED.set(nested + 1);
        Some(Self)
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        let _ = NESTED.try_with(|nested| nested.set(nested.get() - 1));
    }
}

/// Does the call of an enabled level, given as an exact `int` and as its `number`. `call` has the message and its
/// arguments.
///
/// # Errors
///
/// [`Failure::Stock`] if stock logging has to make the record. [`Failure::Raised`] if an exception is set that leaves
/// the call: as in stock logging, that is every exception of a filter, a handler or a patched method.
#[cold]
#[inline(never)]
pub fn run(
    plan: &RecordPlan,
    logger: Object<'_, '_>,
    level: Object<'_, '_>,
    number: u32,
    call: &Call<'_, '_>,
) -> Result<(), Failure> {
    // Without a GIL, only stock logging takes part in the turns of threads that log while the interpreter ends.
    if cfg!(Py_GIL_DISABLED) && leaving::other_thread_ends() {
        return Err(Failure::Stock);
    }
    let _nested = Nesting::enter().ok_or(Failure::Stock)?;
    let py = call.py();
    let Some((msg, args)) = call.positional().split_first() else { return Err(Failure::Stock) };
    let name = match &plan.name {
        Some(known) => known.clone_ref(py),
        None => object::attribute(logger, &names().name).ok_or(Failure::Stock)?,
    };
    let mut values = RecordValues {
        name: name.bind(py),
        levelno: level,
        msg: *msg,
        args,
        exc_info: None,
        stack_info: None,
        extra: None,
    };
    // The parts of `values` that the keywords give.
    let keywords = if call.has_keywords() { Some(Keywords::read(*call)?) } else { None };
    let site = match &keywords {
        None => site::find(py).ok_or(Failure::Stock)?,
        Some(keywords) => {
            let (site, frame) = site::find_at(py, keywords.stack_level).ok_or(Failure::Stock)?;
            if keywords.stack_info {
                values.stack_info = Some(keywords.stack(py, &frame)?);
            }
            values.exc_info = keywords.exception(py)?;
            values.extra = keywords.extra.as_ref();
            site
        }
    };
    if !site.usable {
        return Err(Failure::Stock);
    }
    if keywords.is_none() && (plan.defers() || plan.is_threaded()) && put_unmade(plan, number, &site, &values)? {
        return Ok(());
    }
    let made = log_record::make(py, &site, &plan.globals, &values)?;
    record_redaction::redact(made.record.bind(py), TracebackMode::OfHandler).ok_or(Failure::Raised)?;
    let attributes = object::own_attributes(made.record.bind(py))?;
    let handled = if !plan.steps_are_stock {
        leaving::method_of_one(logger, &names().handle, made.record.bind(py)).map(drop)
    } else if !plan.has_filters
        && let Some((handler, owner, least)) = only_handler(py, plan)
    {
        if number < least { Some(()) } else { pass_to_only(plan, &handler, &owner, made, &site) }
    } else {
        handle(plan, logger, (level, number), made, &site)
    };
    // SAFETY: a live dict of an attached thread.
    let is_gone = unsafe { ffi::Py_REFCNT(attributes.as_ptr()) } == 1;
    // The thread of deferred formatters may add more attributes to a record that it has.
    if is_gone && let Some(template) = site.record_template().get() {
        template.note_growth(attributes.bind(py));
    }
    handled.ok_or(Failure::Raised)
}

/// Hands the values of a call to the thread of deferred formatters, or to that of a `ThreadHandler`. The thread makes the
/// record. Returns `false` if nothing was done.
#[inline(never)]
fn put_unmade(plan: &RecordPlan, level: u32, site: &Site, values: &RecordValues<'_, '_>) -> Result<bool, Failure> {
    let py = values.name.py();
    let Some((handler, _, least)) = only_handler(py, plan) else { return Ok(false) };
    if level < least {
        return Ok(true);
    }
    if context::bound_fields(py)?.is_some() {
        return Ok(false);
    }
    if plan.is_threaded() {
        return threading::put(handler.as_borrowed(), plan, site, values);
    }
    emit::defer(handler.as_borrowed(), plan, site, values)
}

/// The only handler of a logger with its owner and its level, if nothing has changed since the plan was made.
fn only_handler<'py>(py: Python<'py>, plan: &RecordPlan) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>, u32)> {
    let only = plan.unchanged_handler(py)?;
    Some((only.handler.upgrade(py)?, only.owner.upgrade(py)?, only.level))
}

/// Passes the record to the only handler of a logger, which the logger `owner` has. `None` with an exception set.
fn pass_to_only(
    plan: &RecordPlan,
    handler: &Bound<'_, PyAny>,
    owner: &Bound<'_, PyAny>,
    made: MadeRecord,
    site: &Site,
) -> Option<()> {
    let py = handler.py();
    let MadeRecord { record, time } = made;
    let record = record.bind(py);
    let origin = time.as_ref().map(|time| RecordOrigin { site, time });
    emit::pass_to(handler.as_borrowed(), record, origin.as_ref(), Some(plan))?;
    if plan.unchanged_handler(py).is_some() {
        return Some(());
    }
    // A filter or a formatter has changed the handlers. Stock logging goes on with the next one in the list.
    call_handlers_from(owner.as_borrowed(), 1, true, record, origin.as_ref(), None)
}

/// The steps of `Logger.handle`, for a logger with filters, and for one whose plan may not hold any more. `level` is the
/// level of the call. `None` with an exception set.
fn handle(
    plan: &RecordPlan,
    logger: Object<'_, '_>,
    level: (Object<'_, '_>, u32),
    made: MadeRecord,
    site: &Site,
) -> Option<()> {
    let py = logger.py();
    let MadeRecord { mut record, time } = made;
    let names = names();
    let filters = match plan.filters.as_ref().filter(|_| plan.is_unchanged(py)) {
        Some(_) if plan.disabled => return Some(()),
        Some(filters) => filters.clone_ref(py),
        None => {
            let disabled = leaving::attribute(logger, &names.disabled)?;
            if leaving::is_true(disabled.bind(py))? {
                return Some(());
            }
            leaving::attribute(logger, &names.filters)?
        }
    };
    if !object::is_exact_list(filters.bind(py)) {
        return leaving::method_of_one(logger, &names.handle, record.bind(py)).map(drop);
    }
    if !object::is_empty_list(filters.bind(py)) || !filtering::passes_unfiltered(record.bind(py)) {
        match filtering::run(filters.bind(py), record.bind(py)) {
            FilterAnswer::Pass(passed) => record = passed,
            FilterAnswer::Drop(_) => return Some(()),
            FilterAnswer::Raised => return None,
        }
    }
    if has_level(plan, record.bind(py), level.0)
        && let Some((handler, owner, least)) = only_handler(py, plan)
    {
        if level.1 < least {
            return Some(());
        }
        return pass_to_only(plan, &handler, &owner, MadeRecord { record, time }, site);
    }
    let origin = time.as_ref().map(|time| RecordOrigin { site, time });
    call_handlers_from(logger, 0, false, record.bind(py), origin.as_ref(), Some(plan))
}

/// True if a record still has the level of its call. A filter may have changed the level, or replaced the record.
fn has_level(plan: &RecordPlan, record: Object<'_, '_>, level: Object<'_, '_>) -> bool {
    let is_plain =
        object::class_of(record) as usize == plan.globals.record_class.address() && plan.globals.record_class.is_same();
    let own = if is_plain { object::own_attributes(record).ok() } else { None };
    own.is_some_and(|own| Attribute::LevelNumber.is_at(own.bind(record.py()), level.as_ptr() as usize))
}

/// The steps of `Logger.callHandlers`, from the handler of `logger` with this index on. `found` is true if a handler
/// was called before. `None` with an exception set.
fn call_handlers_from(
    logger: Object<'_, '_>,
    first: usize,
    mut found: bool,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
    plan: Option<&RecordPlan>,
) -> Option<()> {
    let py = logger.py();
    let names = names();
    let mut current = Owned::of(&logger);
    let mut next = first;
    loop {
        let handlers = leaving::attribute(current.bind(py), &names.handlers)?;
        if !object::is_exact_list(handlers.bind(py)) {
            // Stock logging goes on with this logger and its parents.
            return leaving::method_of_one(current.bind(py), &names.call_handlers, record).map(drop);
        }
        let mut walk = ListWalk::from(handlers.bind(py), std::mem::take(&mut next));
        while let Some(handler) = walk.next() {
            found = true;
            let level = leaving::attribute(handler.bind(py), &names.level)?;
            let of_record = leaving::attribute(record, &names.levelno)?;
            if leaving::is_at_least(of_record.bind(py), level.bind(py))? {
                emit::pass_to(handler.bind(py), record, origin, plan)?;
            }
        }
        let propagate = leaving::attribute(current.bind(py), &names.propagate)?;
        if !leaving::is_true(propagate.bind(py))? {
            break;
        }
        current = leaving::attribute(current.bind(py), &names.parent)?;
        if current.bind(py).is_none() {
            break;
        }
    }
    if found {
        return Some(());
    }
    // Stock logging uses `logging.lastResort`, or reports once that there is no handler.
    leaving::method_of_one(logger, &names.call_handlers, record).map(drop)
}
