//! The native methods of loggers, and one logging call on the native path.
//!
//! Stop on the line: *call site* and *capture*. In order: is the level enabled, does the plan still hold, where was it
//! called from, what does it say; then one push. Anything unusual ends in [`Outcome::Stock`] before a trace is left, and
//! stock logging does the call from its start.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

use logspool_record::Head;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::calls::keywords::Keywords;
use crate::calls::pieces::{self, Pieces, Queued, small_int};
use crate::calls::stock::{Method, call_stock, call_stock_with};
use crate::calls::{context, message, site};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::plan::{self, Gate, Route};
use crate::plans::planning::{self, PlanOutcome};
use crate::plans::table::{self, Lender};
use crate::plans::{environment, text_stream, tries};

/// What is left to do for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: the level is off, or the record is queued or refused.
    Done,
    /// Call the stock method.
    Stock,
    /// A Python exception is set.
    Raised,
}

/// A level as the gate and the record want it.
#[derive(Clone, Copy)]
struct Level<'a, 'py> {
    /// Its number.
    number: u16,
    /// Index among the stdlib's five, or larger.
    gate: usize,
    /// The exact `int`.
    object: Object<'a, 'py>,
}

/// Tries to do `logger.<level>(...)`; `logger` is an instance of `logging.Logger`.
#[inline(always)]
fn capture(logger: Object<'_, '_>, level: Level<'_, '_>, call: Call<'_, '_>) -> Outcome {
    let py = call.py();
    let Some(plan) = table::find(py, logger) else { return plan_first(logger, level, call) };
    // SAFETY: no foreign code runs while it is in use: `take` copies the route before any does.
    let plan = unsafe { table::borrowed(&plan) };
    if !plan.gate_holds() {
        return plan_first(logger, level, call);
    }
    match plan.gate(level.gate, level.object) {
        Gate::On => {}
        Gate::Off => return Outcome::Done,
        Gate::Ask => return plan_first(logger, level, call),
    }
    if !plan.fresh(py) {
        return plan_first(logger, level, call);
    }
    take(plan, level, call)
}

/// Makes a plan, then does the call by it.
#[cold]
#[inline(never)]
fn plan_first(logger: Object<'_, '_>, level: Level<'_, '_>, call: Call<'_, '_>) -> Outcome {
    let py = call.py();
    environment::refresh(py);
    // A plan that is made from here on serves this call, also when other threads change something meanwhile.
    let since = environment::epoch();
    if !table::serves(py, logger, since)
        && let Some(outcome) = without_plan(planning::make(logger, since))
    {
        return outcome;
    }
    let Some(plan) = table::find(py, logger) else { return Outcome::Stock };
    // SAFETY: no foreign code runs before it is found again.
    let plan = unsafe { table::borrowed(&plan) };
    if !plan.serves(py, since) {
        tries::in_vain();
        return Outcome::Stock;
    }
    if plan.level_cache.is_none() && !plan.disabled {
        return Outcome::Stock;
    }
    match plan.gate(level.gate, level.object) {
        Gate::On => {}
        Gate::Off => return Outcome::Done,
        Gate::Ask => match ask(logger, level.object) {
            Some(true) => {}
            Some(false) => return Outcome::Done,
            None => return Outcome::Raised,
        },
    }
    // Asking may have run foreign code, which may have replaced the plan.
    let Some(plan) = table::find(py, logger) else { return Outcome::Stock };
    // SAFETY: just found; no foreign code has run since.
    if unsafe { table::borrowed(&plan) }.opens(level.number)
        && let Some(outcome) = without_plan(planning::open_streams(logger, level.number, since))
    {
        return outcome;
    }
    let Some(plan) = table::find(py, logger) else { return Outcome::Stock };
    // SAFETY: no foreign code runs while it is in use: `take` copies the route before any does.
    let plan = unsafe { table::borrowed(&plan) };
    if !plan.serves(py, since) {
        tries::in_vain();
        return Outcome::Stock;
    }
    tries::used();
    take(plan, level, call)
}

/// How a call ends for which no plan was made.
fn without_plan(made: PlanOutcome) -> Option<Outcome> {
    match made {
        PlanOutcome::Plan => None,
        PlanOutcome::NotNow => Some(Outcome::Stock),
        PlanOutcome::Raised => Some(Outcome::Raised),
    }
}

/// `logger.isEnabledFor(level)`, which fills the logger's cache; the plan's class has the stock method. `None`: a Python
/// exception is set.
fn ask(logger: Object<'_, '_>, level: Object<'_, '_>) -> Option<bool> {
    let answer = leaving::method_of_one(logger, &names().is_enabled_for, level)?;
    leaving::is_true(answer.bind(logger.py()))
}

#[inline(always)]
fn take(plan: &plan::Plan, level: Level<'_, '_>, call: Call<'_, '_>) -> Outcome {
    let Some(route) = plan.route.filter(|route| u32::from(level.number) < route.stock_from) else {
        plan::count(&plan.counts.stock);
        return Outcome::Stock;
    };
    let counts = plan.counts;
    let lender = Lender::of(plan);
    // From here on `plan` may be gone.
    let outcome = if call.has_keywords() {
        read_keywords(&route, &lender, level.number, call)
    } else {
        deliver(&route, &lender, level.number, call, None)
    };
    plan::count(if outcome == Outcome::Stock { &counts.stock } else { &counts.native });
    outcome
}

/// Delivers a call with keywords. They are read also where no handler takes the record: wrong ones are an error.
#[inline(never)]
fn read_keywords(route: &Route, lender: &Lender, level: u16, call: Call<'_, '_>) -> Outcome {
    match Keywords::read(call) {
        Ok(keywords) => deliver(route, lender, level, call, Some(&keywords)),
        Err(Failure::Stock) => Outcome::Stock,
        Err(Failure::Raised) => Outcome::Raised,
    }
}

#[inline(always)]
fn deliver(
    route: &Route,
    lender: &Lender,
    level: u16,
    call: Call<'_, '_>,
    keywords: Option<&Keywords<'_, '_>>,
) -> Outcome {
    let Some(id) = route.id.filter(|_| level >= route.lowest) else { return Outcome::Done };
    // A panic must not cross into the interpreter; stock logging does the call then.
    let sent = catch_unwind(AssertUnwindSafe(|| send(route, lender, id, level, call, keywords)));
    match sent {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(Failure::Raised)) => Outcome::Raised,
        Ok(Err(Failure::Stock)) | Err(_) => Outcome::Stock,
    }
}

#[inline(always)]
fn send(
    route: &Route,
    lender: &Lender,
    id: u32,
    level: u16,
    call: Call<'_, '_>,
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
    let extra = keywords.and_then(|keywords| keywords.extra.as_ref());
    if context::is_needed(&route.needs, extra) {
        context::add(py, &mut pieces, route.needs, extra)?;
    }
    if let Some(keywords) = keywords {
        keywords.add_exception(&mut pieces)?;
    }
    let site = message::add(&mut pieces, &site, route.made_under.generation, call)?;
    // SAFETY: the streams are those of a plan that is in the table, or held; no foreign code runs in between.
    unsafe { text_stream::empty_buffers(py, lender.streams(py, route.streams))? };
    if !route.made_under.holds() && !route.made_under.serves_call() {
        return Err(Failure::Stock);
    }
    let head = Head { len: 0, site, route: id, level, flags: 0, ticks: 0 };
    match pieces::queue(py, head, route.made_under, &pieces) {
        Queued::Done => {
            if let Some(terminal) = route.terminal {
                pieces::show(py, terminal);
            }
            Ok(Outcome::Done)
        }
        Queued::Stale => Err(Failure::Stock),
        Queued::Raised => Err(Failure::Raised),
    }
}

/// Does a call natively if that can be. `None`: stock logging does it.
#[inline(always)]
fn native_call(logger: Object<'_, '_>, level: Level<'_, '_>, call: Call<'_, '_>) -> Option<*mut PyObject> {
    match capture(logger, level, call) {
        Outcome::Done => Some(object::none(call.py())),
        Outcome::Stock => None,
        Outcome::Raised => Some(ptr::null_mut()),
    }
}

#[inline(always)]
fn level_call(method: Method, number: u16, gate: usize, logger: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    // A message given by keyword is stock logging's.
    if call.count() >= 1
        && let Some(levels) = LEVELS.get()
    {
        let level = Level { number, gate, object: levels[gate].bind(call.py()) };
        return match native_call(logger, level, call) {
            Some(result) => result,
            None => stock_call(method, logger, call, 0),
        };
    }
    call_stock(method, logger, call)
}

/// Leaves a call to stock logging whose native way ended before it left a trace. The text of the message, argument
/// number `index`, is not made a second time.
#[cold]
#[inline(never)]
fn stock_call(method: Method, logger: Object<'_, '_>, call: Call<'_, '_>, index: usize) -> *mut PyObject {
    let Some(made) = message::take_made(call.positional()[index]) else { return call_stock(method, logger, call) };
    let mut values: Vec<Object<'_, '_>> = call.values().to_vec();
    values[index] = made.bind(call.py());
    call_stock_with(method, logger, call, &values)
}

/// The level of `Logger.log`; `None` when it is nothing usual.
#[inline(always)]
fn level_of<'a, 'py>(object: Object<'a, 'py>) -> Option<Level<'a, 'py>> {
    let number = small_int(object).and_then(|number| u16::try_from(number).ok())?;
    let gate = match number {
        10 | 20 | 30 | 40 | 50 => usize::from(number / 10 - 1),
        _ => usize::MAX,
    };
    Some(Level { number, gate, object })
}

static LEVELS: OnceLock<[Owned; 5]> = OnceLock::new();

/// Makes the five level objects. Called at module initialisation.
pub fn init(_attached: Python<'_>) -> bool {
    // SAFETY: the token shows that the thread is attached; a new reference or null. Small ints cannot fail in practice.
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
            /// As CPython calls a `METH_FASTCALL | METH_KEYWORDS` method of `logging.Logger`, attached.
            pub unsafe extern "C" fn $function(
                logger: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: CPython calls it, attached, with live objects; the descriptor checked the logger's type.
                let (logger, call) = unsafe { object::received(logger, arguments, count, keywords) };
                level_call(Method::$method, $number, $gate, logger, call)
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
/// As CPython calls a `METH_FASTCALL | METH_KEYWORDS` method of `logging.Logger`, attached.
pub unsafe extern "C" fn log(
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls it, attached, with live objects; the descriptor checked the logger's type.
    let (logger, call) = unsafe { object::received(logger, arguments, count, keywords) };
    match call.split_first() {
        Some((level, rest)) if !rest.positional().is_empty() => {
            match level_of(level).and_then(|level| native_call(logger, level, rest)) {
                Some(result) => result,
                None => stock_call(Method::Log, logger, call, 1),
            }
        }
        _ => call_stock(Method::Log, logger, call),
    }
}
