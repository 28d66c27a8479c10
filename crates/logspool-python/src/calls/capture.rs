//! The native methods of loggers, and one logging call on the native path.
//!
//! Pipeline stages: *call site* and *capture* (see ARCHITECTURE.md). The call passes four steps before the single push
//! into the queue: check that the level is enabled, check that the plan is still valid, find the call site, collect the
//! message. In every unusual case the call ends as [`Outcome::Stock`] before anything is queued. Stock logging then
//! does the whole call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

use logspool_record::Head;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::calls::keywords::{self, Keywords};
use crate::calls::pieces::{self, Pieces, QueueOutcome, small_int};
use crate::calls::rules::{self, LineOrigin};
use crate::calls::stock::{Method, call_stock, call_stock_with};
use crate::calls::{context, fields, message, record_call, site};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::plan::{self, LevelState, Route};
use crate::plans::planning::{self, PlanOutcome};
use crate::plans::table::{self, BorrowedPlan};
use crate::plans::{environment, text_stream, tries};

/// What the caller has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: the level is disabled, or the record is queued or refused.
    Done,
    /// Call the stock method.
    Stock,
    /// A Python exception is set.
    Raised,
}

/// A level, in the forms that the plan's level check and the record need.
#[derive(Clone, Copy)]
struct Level<'a, 'py> {
    /// The level's number.
    number: u16,
    /// Index among the five levels of the standard library; larger for any other level.
    gate: usize,
    /// The level as an exact `int`.
    object: Object<'a, 'py>,
    /// True if a `LoggerAdapter` does the call. Its stock method calls `logger.log`, which may be another one.
    by_adapter: bool,
    /// True if the message is a finished text that stands for a template and arguments, which a record would have.
    only_text: bool,
}

/// Tries to do `logger.<level>(...)`; `logger` is an instance of `logging.Logger`.
///
/// `call` is passed by reference down to the code that reads its values. Passing a copy would load 16 bytes that were
/// just stored as two times 8. The processor would wait for that load until both stores are in its cache.
#[inline(always)]
fn capture(logger: Object<'_, '_>, level: Level<'_, '_>, call: &Call<'_, '_>) -> Outcome {
    let py = call.py();
    let Some(plan) = table::find(py, logger) else { return plan_first(logger, level, call) };
    // SAFETY: no user Python code runs while the plan is borrowed: `capture_with_plan` copies the route before any can
    // run.
    let plan = unsafe { table::borrowed(&plan) };
    if !plan.gate_holds() {
        return plan_first(logger, level, call);
    }
    match plan.gate(level.gate, level.object) {
        LevelState::On => {}
        LevelState::Off => return Outcome::Done,
        LevelState::Ask => return plan_first(logger, level, call),
    }
    if !plan.fresh(py) {
        return plan_first(logger, level, call);
    }
    capture_with_plan(plan, logger, level, call)
}

/// Makes a plan, then uses it for the call.
#[cold]
#[inline(never)]
fn plan_first(logger: Object<'_, '_>, level: Level<'_, '_>, call: &Call<'_, '_>) -> Outcome {
    let py = call.py();
    environment::refresh(py);
    // A plan that is made after this point is valid for this call, even if other threads change something meanwhile.
    let since = environment::epoch();
    if !table::serves(py, logger, since)
        && let Some(outcome) = without_plan(planning::make(logger, since))
    {
        return outcome;
    }
    let Some(plan) = table::find(py, logger) else { return Outcome::Stock };
    // SAFETY: no user Python code runs before the plan is looked up again.
    let plan = unsafe { table::borrowed(&plan) };
    if !plan.serves(py, since) {
        tries::count_unused();
        return Outcome::Stock;
    }
    if plan.level_cache.is_none() && !plan.disabled {
        return Outcome::Stock;
    }
    match plan.gate(level.gate, level.object) {
        LevelState::On => {}
        LevelState::Off => return Outcome::Done,
        LevelState::Ask => match is_enabled_for(logger, level.object) {
            Some(true) => {}
            Some(false) => return Outcome::Done,
            None => return Outcome::Raised,
        },
    }
    // `isEnabledFor` may have run user Python code, which may have replaced the plan.
    let Some(plan) = table::find(py, logger) else { return Outcome::Stock };
    // SAFETY: the plan was looked up in the line above; no user Python code has run since.
    if unsafe { table::borrowed(&plan) }.opens(level.number)
        && let Some(outcome) = without_plan(planning::open_streams(logger, level.number, since))
    {
        return outcome;
    }
    let Some(plan) = table::find(py, logger) else { return Outcome::Stock };
    // SAFETY: no user Python code runs while the plan is borrowed: `capture_with_plan` copies the route before any can
    // run.
    let plan = unsafe { table::borrowed(&plan) };
    if !plan.serves(py, since) {
        tries::count_unused();
        return Outcome::Stock;
    }
    tries::used();
    capture_with_plan(plan, logger, level, call)
}

/// Returns the outcome of a call for which no plan could be made; `None` if a plan was made.
fn without_plan(made: PlanOutcome) -> Option<Outcome> {
    match made {
        PlanOutcome::Plan => None,
        PlanOutcome::NotNow => Some(Outcome::Stock),
        PlanOutcome::Raised => Some(Outcome::Raised),
    }
}

/// Calls `logger.isEnabledFor(level)`, which also fills the logger's cache. Call this only if the logger's class has
/// the stock method. `None`: a Python exception is set.
fn is_enabled_for(logger: Object<'_, '_>, level: Object<'_, '_>) -> Option<bool> {
    let answer = leaving::method_of_one(logger, &names().is_enabled_for, level)?;
    leaving::is_true(answer.bind(logger.py()))
}

#[inline(always)]
fn capture_with_plan(plan: &plan::Plan, logger: Object<'_, '_>, level: Level<'_, '_>, call: &Call<'_, '_>) -> Outcome {
    if level.by_adapter && !plan.log_is_native {
        return Outcome::Stock;
    }
    let route = match &plan.route {
        Some(route) if level.only_text && shows_more_than_text(route, level.number) => return Outcome::Stock,
        Some(route) if u32::from(level.number) < route.record_from && !keywords::needs_record(route, call) => *route,
        _ if level.only_text => return Outcome::Stock,
        _ => return make_record(plan, logger, level, call),
    };
    let counts = plan.counts;
    let borrowed_plan = BorrowedPlan::of(plan);
    // From here on user Python code may remove `plan`.
    let outcome = if call.has_keywords() {
        read_keywords(&route, &borrowed_plan, level.number, call)
    } else {
        deliver(&route, &borrowed_plan, level.number, call, None)
    };
    if outcome != Outcome::Stock {
        plan::count(&counts.native);
    } else if !level.by_adapter && !level.only_text {
        plan::count(&counts.stock);
    }
    outcome
}

/// True if a handler shows the place of the call or its arguments, or sees a record.
fn shows_more_than_text(route: &Route, level: u16) -> bool {
    u32::from(level) >= route.record_from
        || route.needs.caller
        || route.needs.fields.is_some_and(|fields| !fields.arguments().is_empty())
}

/// Does a call whose record Python code has to see.
#[cold]
#[inline(never)]
fn make_record(plan: &plan::Plan, logger: Object<'_, '_>, level: Level<'_, '_>, call: &Call<'_, '_>) -> Outcome {
    let counts = plan.counts;
    // The stock method of a `LoggerAdapter` calls `logger.log`, which counts the call.
    let stock = || {
        if !level.by_adapter {
            plan::count(&counts.stock);
        }
        Outcome::Stock
    };
    if u32::from(level.number) >= plan.stock_from {
        return stock();
    }
    // From here on user Python code may remove `plan`.
    let record_plan = plan.record_plan.clone();
    let made = catch_unwind(AssertUnwindSafe(|| {
        record_call::run(&record_plan, logger, level.object, level.number.into(), call)
    }));
    let outcome = match made {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(Failure::Raised)) => Outcome::Raised,
        Ok(Err(Failure::Stock)) | Err(_) => return stock(),
    };
    plan::count(&counts.by_record);
    outcome
}

/// Tries to do `logger.log(level, ...)` for a `LoggerAdapter`. `call` has the message, its arguments and the keywords
/// that the adapter passes on.
pub fn for_adapter(logger: Object<'_, '_>, level: Object<'_, '_>, call: &Call<'_, '_>) -> Outcome {
    match level_of(level) {
        Some(level) => capture(logger, Level { by_adapter: true, ..level }, call),
        None => Outcome::Stock,
    }
}

/// Tries to do `logger.info(template, *arguments)`, of which `text` is the finished message. [`Outcome::Stock`] if a
/// handler, a filter or a formatter could tell the difference; the call is not counted then.
pub fn info_of_text(logger: Object<'_, '_>, text: Object<'_, '_>) -> Outcome {
    let py = logger.py();
    let Some(object) = standard_level(py, INFO) else { return Outcome::Stock };
    let level = Level { number: 20, gate: INFO, object, by_adapter: false, only_text: true };
    capture(logger, level, &Call::positional_only(py, &[text]))
}

/// The index of `logging.INFO` among the five levels of the standard library.
const INFO: usize = 1;

/// One of the five levels of the standard library, by its index; `None` before the module is initialised.
#[inline]
pub fn standard_level<'py>(py: Python<'py>, index: usize) -> Option<Object<'static, 'py>> {
    LEVELS.get().map(|levels| levels[index].bind(py))
}

/// Delivers a call with keywords. The keywords are read even if no handler takes the record, because invalid keywords
/// raise an exception.
#[inline(never)]
fn read_keywords(route: &Route, borrowed_plan: &BorrowedPlan, level: u16, call: &Call<'_, '_>) -> Outcome {
    match Keywords::read(*call) {
        Ok(keywords) => deliver(route, borrowed_plan, level, call, Some(&keywords)),
        Err(Failure::Stock) => Outcome::Stock,
        Err(Failure::Raised) => Outcome::Raised,
    }
}

#[inline(always)]
fn deliver(
    route: &Route,
    borrowed_plan: &BorrowedPlan,
    level: u16,
    call: &Call<'_, '_>,
    keywords: Option<&Keywords<'_, '_>>,
) -> Outcome {
    let Some(id) = route.id.filter(|_| level >= route.lowest) else { return Outcome::Done };
    // A panic must not cross into the interpreter; after one, stock logging does the call.
    let sent = catch_unwind(AssertUnwindSafe(|| queue_call(route, borrowed_plan, id, level, call, keywords)));
    match sent.unwrap_or_else(panicked) {
        Ok(outcome) => outcome,
        Err(Failure::Raised) => Outcome::Raised,
        Err(Failure::Stock) => Outcome::Stock,
    }
}

/// The outcome of a call that panicked. This is a separate function, so that calls without a panic have no payload to
/// drop.
#[cold]
#[inline(never)]
fn panicked(payload: Box<dyn Any + Send>) -> Result<Outcome, Failure> {
    drop(payload);
    Err(Failure::Stock)
}

#[inline(always)]
fn queue_call(
    route: &Route,
    borrowed_plan: &BorrowedPlan,
    id: u32,
    level: u16,
    call: &Call<'_, '_>,
    keywords: Option<&Keywords<'_, '_>>,
) -> Result<Outcome, Failure> {
    let py = call.py();
    let mut pieces = Pieces::new();
    let site = match keywords {
        Some(keywords) if keywords.walks() => {
            let (site, frame) = site::find_at(py, keywords.stack_level).ok_or(Failure::Stock)?;
            if keywords.stack_info {
                keywords.add_stack(py, &mut pieces, &frame)?;
            }
            site
        }
        _ => site::find(py).ok_or(Failure::Stock)?,
    };
    if !site.usable {
        return Err(Failure::Stock);
    }
    let has_items = route.needs.message_items && message::is_dict(*call);
    let has_traceback = || keywords.is_some_and(Keywords::has_traceback);
    if has_items && (route.needs.message_text || call.positional().len() > 1 || has_traceback())
        || route.needs.own_exceptions && has_traceback()
    {
        return Err(Failure::Stock);
    }
    let extra = keywords.and_then(|keywords| keywords.extra.as_ref());
    if context::is_needed(&route.needs, extra) {
        context::add(py, &mut pieces, route.needs, extra, *call)?;
    }
    if let Some(keywords) = keywords {
        keywords.add_exception(&mut pieces)?;
    }
    let site = if has_items {
        fields::add_items(&mut pieces, route.needs.fields, call.positional()[0])?;
        message::add_empty(&mut pieces, &site, route.made_under.id_epoch)
    } else {
        message::add(&mut pieces, &site, route.made_under.id_epoch, *call)?
    };
    // SAFETY: the plan that owns the streams is in the table or held by `borrowed_plan`; no user Python code runs in
    // between.
    unsafe { text_stream::empty_buffers(py, borrowed_plan.streams(py, route.streams))? };
    if !route.made_under.holds() && !route.made_under.serves_call() {
        return Err(Failure::Stock);
    }
    let head = Head { len: 0, site, route: id, level, flags: 0, ticks: 0 };
    match rules::queue(py, head, route.made_under, &pieces, LineOrigin::NONE) {
        QueueOutcome::Done => {
            if let Some(terminal) = route.terminal {
                pieces::wait_for_terminal(py, terminal);
            }
            Ok(Outcome::Done)
        }
        QueueOutcome::Stale => Err(Failure::Stock),
        QueueOutcome::Raised => Err(Failure::Raised),
    }
}

/// Does a call natively if possible. `None`: stock logging has to do the call.
#[inline(always)]
fn native_call(logger: Object<'_, '_>, level: Level<'_, '_>, call: &Call<'_, '_>) -> Option<*mut PyObject> {
    match capture(logger, level, call) {
        Outcome::Done => Some(object::none(call.py())),
        Outcome::Stock => None,
        Outcome::Raised => Some(ptr::null_mut()),
    }
}

#[inline(always)]
fn level_call(method: Method, number: u16, gate: usize, logger: Object<'_, '_>, call: &Call<'_, '_>) -> *mut PyObject {
    // A message that is passed as a keyword is left to stock logging.
    if call.count() >= 1
        && let Some(levels) = LEVELS.get()
    {
        let level = Level { number, gate, object: levels[gate].bind(call.py()), by_adapter: false, only_text: false };
        return match native_call(logger, level, call) {
            Some(result) => result,
            None => stock_call(method, logger, *call, 0),
        };
    }
    call_stock(method, logger, *call)
}

/// Calls the stock method after the native path has stopped without having queued or changed anything. If the text of
/// the message (argument number `index`) was already made, stock logging gets that text and does not make it again.
#[cold]
#[inline(never)]
pub fn stock_call(method: Method, logger: Object<'_, '_>, call: Call<'_, '_>, index: usize) -> *mut PyObject {
    let Some(made) = message::take_made(call.positional()[index]) else { return call_stock(method, logger, call) };
    let mut values: Vec<Object<'_, '_>> = call.values().to_vec();
    values[index] = made.bind(call.py());
    call_stock_with(method, logger, call, &values)
}

/// The level of a `Logger.log` call; `None` if the level is not an exact `int` within `u16`.
#[inline(always)]
fn level_of<'a, 'py>(object: Object<'a, 'py>) -> Option<Level<'a, 'py>> {
    let number = small_int(object).and_then(|number| u16::try_from(number).ok())?;
    let gate = match number {
        10 | 20 | 30 | 40 | 50 => usize::from(number / 10 - 1),
        _ => usize::MAX,
    };
    Some(Level { number, gate, object, by_adapter: false, only_text: false })
}

static LEVELS: OnceLock<[Owned; 5]> = OnceLock::new();

/// Makes the five level objects. Called when the module is initialised.
pub fn init(_attached: Python<'_>) -> bool {
    // SAFETY: the token shows that the thread is attached; each result is a new reference or null. CPython caches ints
    // this small, so none fails in practice.
    let levels = [10, 20, 30, 40, 50].map(|number| unsafe { Owned::steal(ffi::PyLong_FromLong(number)) });
    if levels.iter().any(Option::is_none) {
        return false;
    }
    let _ = LEVELS.set(levels.map(|level| level.expect("checked above")));
    true
}

macro_rules! level_methods {
    ($($function:ident: $method:ident, $number:literal, $gate:literal;)*) => {
        $(
            /// # Safety
            ///
            /// Call only as CPython calls a `METH_FASTCALL | METH_KEYWORDS` method of `logging.Logger`: from an
            /// attached thread.
            pub unsafe extern "C" fn $function(
                logger: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: CPython calls this from an attached thread, with live objects; the descriptor checked the
                // logger's type.
                let (logger, call) = unsafe { object::received(logger, arguments, count, keywords) };
                level_call(Method::$method, $number, $gate, logger, &call)
            }
        )*
    };
}

level_methods! {
    debug: Debug, 10, 0;
    info: Info, 20, 1;
    warning: Warning, 30, 2;
    error: Error, 40, 3;
    critical: Critical, 50, 4;
}

/// # Safety
///
/// Call only as CPython calls a `METH_FASTCALL | METH_KEYWORDS` method of `logging.Logger`: from an attached thread.
pub unsafe extern "C" fn log(
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls this from an attached thread, with live objects; the descriptor checked the logger's type.
    let (logger, call) = unsafe { object::received(logger, arguments, count, keywords) };
    match call.split_first() {
        Some((level, rest)) if !rest.positional().is_empty() => {
            match level_of(level).and_then(|level| native_call(logger, level, &rest)) {
                Some(result) => result,
                None => stock_call(Method::Log, logger, call, 1),
            }
        }
        _ => call_stock(Method::Log, logger, call),
    }
}
