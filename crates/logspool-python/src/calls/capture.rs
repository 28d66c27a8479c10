//! One logging call on the native path.
//!
//! Stop on the line: *capture*. In order: is the level enabled, does the plan still hold, where was it called
//! from, what does it say; then one push. Anything unusual ends in [`Outcome::Stock`] before a trace is left, and
//! stock logging does the call from its start.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

use logspool::record::Head;
use pyo3::ffi::{self, PyObject};

use crate::calls::keywords::Keywords;
use crate::calls::pieces::Pieces;
use crate::calls::queueing::{self, Queued};
use crate::calls::stock::{Method, call_stock};
use crate::calls::{context, message, site, stream, values};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Owned};
use crate::plans::plan::{self, Gate, Route};
use crate::plans::table::{self, Lender};
use crate::plans::{environment, planning, tries};

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
pub struct Level {
    /// Its number.
    pub number: u16,
    /// Index among the stdlib's five, or larger.
    pub gate: usize,
    /// The exact `int`.
    pub object: *mut PyObject,
}

/// Tries to do `logger.<level>(...)`.
///
/// # Safety
///
/// `logger` is a live instance of `logging.Logger`, `call` describes live objects; attached.
#[inline(always)]
unsafe fn capture(logger: *mut PyObject, level: Level, call: Call) -> Outcome {
    // SAFETY: passed on. On GIL builds `plan` is valid until foreign code runs: `route` is copied before.
    unsafe {
        let Some(plan) = table::find(logger) else { return plan_first(logger, level, call) };
        let plan = &*plan;
        if !plan.gate_holds() {
            return plan_first(logger, level, call);
        }
        match plan.gate(level.gate, level.object) {
            Gate::On => {}
            Gate::Off => return Outcome::Done,
            Gate::Ask => return plan_first(logger, level, call),
        }
        if !plan.fresh() {
            return plan_first(logger, level, call);
        }
        take(plan, level, call)
    }
}

/// Makes a plan, then does the call by it.
#[cold]
#[inline(never)]
unsafe fn plan_first(logger: *mut PyObject, level: Level, call: Call) -> Outcome {
    // SAFETY: passed on.
    unsafe {
        environment::refresh();
        // A plan that is made from here on serves this call, also when other threads change something meanwhile.
        let since = environment::epoch();
        if !table::serves(logger, since) {
            match planning::make(logger, since) {
                planning::PlanOutcome::Plan => {}
                planning::PlanOutcome::NotNow => return Outcome::Stock,
                planning::PlanOutcome::Raised => return Outcome::Raised,
            }
        }
        let Some(plan) = table::find(logger) else { return Outcome::Stock };
        let plan = &*plan;
        if !plan.serves(since) {
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
                Ok(true) => {}
                Ok(false) => return Outcome::Done,
                Err(()) => return Outcome::Raised,
            },
        }
        // Asking may have run foreign code, which may have replaced the plan.
        let Some(plan) = table::find(logger) else { return Outcome::Stock };
        if (*plan).opens(level.number) {
            match planning::open_streams(logger, level.number, since) {
                planning::PlanOutcome::Plan => {}
                planning::PlanOutcome::NotNow => return Outcome::Stock,
                planning::PlanOutcome::Raised => return Outcome::Raised,
            }
        }
        let Some(plan) = table::find(logger) else { return Outcome::Stock };
        let plan = &*plan;
        if !plan.serves(since) {
            tries::in_vain();
            return Outcome::Stock;
        }
        tries::used();
        take(plan, level, call)
    }
}

/// `logger.isEnabledFor(level)`, which fills the logger's cache. `Err`: a Python exception is set.
unsafe fn ask(logger: *mut PyObject, level: *mut PyObject) -> Result<bool, ()> {
    // SAFETY: live objects, attached; the plan's class has the stock method.
    unsafe {
        let answer = leaving::method_of_one(logger, names().is_enabled_for.as_ptr(), level);
        let answer = Owned::steal(answer).ok_or(())?;
        match leaving::is_true(answer.as_ptr()) {
            1 => Ok(true),
            0 => Ok(false),
            _ => Err(()),
        }
    }
}

#[inline(always)]
unsafe fn take(plan: &plan::Plan, level: Level, call: Call) -> Outcome {
    let Some(route) = plan.route.filter(|route| u32::from(level.number) < route.stock_from) else {
        plan::count(&plan.counts.stock);
        return Outcome::Stock;
    };
    let counts = plan.counts;
    let lender = Lender::of(plan);
    // SAFETY: passed on. From here on `plan` may be gone.
    let outcome = unsafe {
        if call.keywords.is_null() {
            deliver(&route, &lender, level, call, None)
        } else {
            read_keywords(&route, &lender, level, call)
        }
    };
    plan::count(if outcome == Outcome::Stock { &counts.stock } else { &counts.native });
    outcome
}

/// Delivers a call with keywords. They are read also where no handler takes the record: wrong ones are an error.
#[inline(never)]
unsafe fn read_keywords(route: &Route, lender: &Lender, level: Level, call: Call) -> Outcome {
    // SAFETY: passed on.
    unsafe {
        match Keywords::read(call) {
            Ok(keywords) => deliver(route, lender, level, call, Some(&keywords)),
            Err(Failure::Stock) => Outcome::Stock,
            Err(Failure::Raised) => Outcome::Raised,
        }
    }
}

#[inline(always)]
unsafe fn deliver(route: &Route, lender: &Lender, level: Level, call: Call, keywords: Option<&Keywords>) -> Outcome {
    let Some(id) = route.id.filter(|_| level.number >= route.lowest) else { return Outcome::Done };
    // A panic must not cross into the interpreter; stock logging does the call then.
    // SAFETY: passed on.
    let sent = catch_unwind(AssertUnwindSafe(|| unsafe { send(route, lender, id, level, call, keywords) }));
    match sent {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(Failure::Raised)) => Outcome::Raised,
        Ok(Err(Failure::Stock)) | Err(_) => Outcome::Stock,
    }
}

#[inline(always)]
unsafe fn send(
    route: &Route,
    lender: &Lender,
    id: u32,
    level: Level,
    call: Call,
    keywords: Option<&Keywords>,
) -> Result<Outcome, Failure> {
    // SAFETY: passed on.
    unsafe {
        let mut pieces = Pieces::new();
        let site = match keywords {
            Some(keywords) if keywords.walks() => {
                let (site, frame) = site::find_at(keywords.stack_level).ok_or(Failure::Stock)?;
                if keywords.stack_info {
                    keywords.add_stack(&mut pieces, &frame)?;
                }
                site
            }
            _ => site::find().ok_or(Failure::Stock)?,
        };
        if !site.usable {
            return Err(Failure::Stock);
        }
        let extra = keywords.and_then(|keywords| keywords.extra.as_ref());
        if context::is_needed(&route.needs, extra) {
            context::add(&mut pieces, route.needs, extra)?;
        }
        if let Some(keywords) = keywords {
            keywords.add_exception(&mut pieces)?;
        }
        let site = message::add(&mut pieces, &site, route.made_under.generation, call.arguments, call.count)?;
        stream::empty_buffers(lender.streams(route.streams))?;
        if !route.made_under.holds() && !route.made_under.serves_call() {
            return Err(Failure::Stock);
        }
        let head = Head { len: 0, site, route: id, level: level.number, flags: 0, ticks: 0 };
        match queueing::queue(head, route.made_under, &pieces) {
            Queued::Done => {
                if let Some(terminal) = route.terminal {
                    queueing::show(terminal);
                }
                Ok(Outcome::Done)
            }
            Queued::Stale => Err(Failure::Stock),
            Queued::Raised => Err(Failure::Raised),
        }
    }
}

/// Does a call natively if that can be. `None`: stock logging does it.
#[inline(always)]
unsafe fn native_call(logger: *mut PyObject, level: Level, call: Call) -> Option<*mut PyObject> {
    // SAFETY: passed on.
    match unsafe { capture(logger, level, call) } {
        Outcome::Done => Some(object::none()),
        Outcome::Stock => None,
        Outcome::Raised => Some(ptr::null_mut()),
    }
}

#[inline(always)]
unsafe fn level_call(
    method: Method,
    number: u16,
    gate: usize,
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls a `METH_FASTCALL | METH_KEYWORDS` method; the descriptor checked `logger`'s type.
    unsafe {
        let count = count as usize;
        // A message given by keyword is stock logging's.
        if count >= 1 {
            let level = Level { number, gate, object: level_object(gate) };
            if let Some(result) = native_call(logger, level, Call { arguments, count, keywords }) {
                return result;
            }
            return stock_call(method, logger, Call { arguments, count, keywords }, 0);
        }
        call_stock(method, logger, arguments, count, keywords)
    }
}

/// Leaves a call to stock logging whose native way ended before it left a trace. The text of the message, argument
/// number `index`, is not made a second time.
#[cold]
#[inline(never)]
unsafe fn stock_call(method: Method, logger: *mut PyObject, call: Call, index: usize) -> *mut PyObject {
    let Call { arguments, count, keywords } = call;
    // SAFETY: as the caller says: `count` live arguments and one per keyword.
    unsafe {
        let Some(made) = message::take_made(*arguments.add(index)) else {
            return call_stock(method, logger, arguments, count, keywords);
        };
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(keywords) as usize };
        let mut values = std::slice::from_raw_parts(arguments, count + named).to_vec();
        values[index] = made.as_ptr();
        call_stock(method, logger, values.as_ptr(), count, keywords)
    }
}

/// The level of `Logger.log`; `None` when it is nothing usual.
#[inline(always)]
unsafe fn level_of(object: *mut PyObject) -> Option<Level> {
    // SAFETY: a live object; its exact type is checked first.
    unsafe {
        if ffi::Py_TYPE(object) != &raw mut ffi::PyLong_Type {
            return None;
        }
        let number = values::small_int(object).and_then(|number| u16::try_from(number).ok())?;
        let gate = match number {
            10 | 20 | 30 | 40 | 50 => usize::from(number / 10 - 1),
            _ => usize::MAX,
        };
        Some(Level { number, gate, object })
    }
}

static LEVELS: OnceLock<[Owned; 5]> = OnceLock::new();

#[inline(always)]
fn level_object(gate: usize) -> *mut PyObject {
    LEVELS.get().map_or(ptr::null_mut(), |levels| levels[gate].as_ptr())
}

/// Makes the five level objects. Called at module initialisation.
///
/// # Safety
///
/// Attached.
pub unsafe fn init() -> bool {
    // SAFETY: attached; small ints cannot fail in practice.
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
            pub unsafe extern "C" fn $function(
                logger: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: called by CPython with a logger.
                unsafe { level_call(Method::$method, $number, $gate, logger, arguments, count, keywords) }
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

pub unsafe extern "C" fn log(
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with a logger.
    unsafe {
        let count = count as usize;
        if count >= 2 {
            let call = Call { arguments, count, keywords };
            if let Some(result) = level_of(*arguments).and_then(|level| native_call(logger, level, call.rest())) {
                return result;
            }
            return stock_call(Method::Log, logger, call, 1);
        }
        call_stock(Method::Log, logger, arguments, count, keywords)
    }
}
