//! One logging call on the native path.
//!
//! Stop on the line: *capture*. In order: is the level enabled, does the plan still hold, where was it called
//! from, what does it say; then one push. Anything unusual ends in [`Outcome::Stock`] before a trace is left, and
//! stock logging does the call from its start.

use std::panic::{AssertUnwindSafe, catch_unwind};

use logspool_record::Head;
use pyo3::ffi::PyObject;

use crate::context;
use crate::environment;
use crate::keywords::Keywords;
use crate::leaving;
use crate::message::{self, Failure};
use crate::names::names;
use crate::object::{Call, Owned};
use crate::pieces::Pieces;
use crate::plan::{self, Gate, Route};
use crate::planning;
use crate::plans::{self, Lender};
use crate::queueing::{self, Queued};
use crate::site;
use crate::stream;
use crate::tries;

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
pub unsafe fn log(logger: *mut PyObject, level: Level, call: Call) -> Outcome {
    // SAFETY: passed on. On GIL builds `plan` is valid until foreign code runs: `route` is copied before.
    unsafe {
        let Some(plan) = plans::find(logger) else { return plan_first(logger, level, call) };
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
        if !plans::serves(logger, since) {
            match planning::make(logger, since) {
                planning::Made::Plan => {}
                planning::Made::NotNow => return Outcome::Stock,
                planning::Made::Raised => return Outcome::Raised,
            }
        }
        let Some(plan) = plans::find(logger) else { return Outcome::Stock };
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
        let Some(plan) = plans::find(logger) else { return Outcome::Stock };
        if (*plan).opens(level.number) {
            match planning::open_streams(logger, level.number, since) {
                planning::Made::Plan => {}
                planning::Made::NotNow => return Outcome::Stock,
                planning::Made::Raised => return Outcome::Raised,
            }
        }
        let Some(plan) = plans::find(logger) else { return Outcome::Stock };
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
