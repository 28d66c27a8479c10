//! Makes the state of a handler, and makes it again after one of its inputs has changed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::closing::{SHORT_WAIT, await_orphans, call, call_catch_up, close};
use super::state::{HandlerState, HandlerVerdict, is_current};
use super::table::{enter, known, with_table};
use crate::interpreter::failure::{self, Failure};
use crate::interpreter::leaving::{self, EndDelay};
use crate::interpreter::object::Owned;
use crate::plans::callbacks::{
    CALLBACKS, PlanningCallbacks, installed, stands_alone, then_unlock, under_lock, with_saved_error,
};

/// The state of a handler. The state is made on the first call, and made again if one of its inputs has changed.
///
/// # Errors
///
/// Python code raised an error, or the call has to take the stock path.
pub fn state(callbacks: &PlanningCallbacks, handler: &Bound<'_, PyAny>) -> Result<Arc<HandlerState>, Failure> {
    let known = known(handler);
    let Some(old) = known else {
        return enter(first(HandlerState::describe(callbacks, handler)?, callbacks, handler)?, handler);
    };
    if old.holds() {
        return Ok(old);
    }
    if old.is_outlet_valid()
        && let Some(mut new) = old.reformatted(callbacks, handler)?
    {
        new.inherit(&old);
        return enter(new, handler);
    }
    let followed = follow(&old, handler)?;
    let mut new = HandlerState::describe(callbacks, handler)?;
    // In a forked child: the parent may have switched its sink to a file that the child does not have open.
    let left = old.rotates() && old.opened().is_some_and(|sink| !is_current(&sink));
    let is_same = match (&old.verdict, &new.verdict) {
        (HandlerVerdict::Adopted(before), HandlerVerdict::Adopted(now)) => {
            !left && !old.is_gone() && (followed || before.stream == now.stream && before.definition == now.definition)
        }
        _ => false,
    };
    if is_same {
        new.inherit(&old);
    } else if let Some(sink) = old.take_sink() {
        let closed = close(handler.py(), Some(sink), SHORT_WAIT);
        closed.map_err(|error| Failure::raised(handler.py(), error))?;
        if old.rotates() {
            call_catch_up(handler)?;
            new = HandlerState::describe(callbacks, handler)?;
        }
    }
    enter(first(new, callbacks, handler)?, handler)
}

/// The state for first use. A handler that switches files and has no sink yet is described again under the handler's
/// lock; for any other handler the result is `new`.
fn first(
    new: HandlerState,
    callbacks: &PlanningCallbacks,
    handler: &Bound<'_, PyAny>,
) -> Result<HandlerState, Failure> {
    if new.rotates() && new.open_sink().is_none() { adopt_rotating(callbacks, handler) } else { Ok(new) }
}

/// The state of a handler for a plan that is made without the planning lock. This function describes at most the
/// formatter again. `None` if the sink is not open, or if more than the formatter has changed.
///
/// # Errors
///
/// Python code raised an error, or the call has to take the stock path.
pub fn ready_state(
    callbacks: &PlanningCallbacks,
    handler: &Bound<'_, PyAny>,
) -> Result<Option<Arc<HandlerState>>, Failure> {
    let Some(old) = known(handler) else { return Ok(None) };
    if old.is_ready() {
        return Ok(Some(old));
    }
    if !old.is_outlet_valid() || old.open_sink().is_none() {
        return Ok(None);
    }
    let Some(mut new) = old.reformatted(callbacks, handler)? else { return Ok(None) };
    new.inherit(&old);
    let new = Arc::new(new);
    // The new state is used only if the old state is still in the table: a state that another thread has put there may
    // have another sink.
    let entered = with_table(|table| {
        let entry = table.states.get_mut(&(handler.as_ptr() as usize))?;
        Arc::ptr_eq(&entry.state, &old).then(|| entry.state = new.clone())
    });
    Ok(entered.map(|()| new))
}

/// Describes a handler that switches files, and opens its sink, while no other thread writes to its stream.
///
/// # Errors
///
/// [`Failure::Stock`] if another thread holds the handler's lock: that thread may be about to rename the file. Stock
/// logging then waits for that thread.
fn adopt_rotating(callbacks: &PlanningCallbacks, handler: &Bound<'_, PyAny>) -> Result<HandlerState, Failure> {
    let lock = handler.getattr("lock").ok().filter(|lock| !lock.is_none());
    if let Some(lock) = &lock
        && !lock.call_method1("acquire", (false,))?.is_truthy()?
    {
        return Err(Failure::Stock);
    }
    let state = HandlerState::describe(callbacks, handler);
    if let Ok(state) = &state {
        // An error is ignored here: the first use of the handler opens the sink again and reports the error.
        let _ = state.sink();
    }
    if let Some(lock) = lock {
        lock.call_method0("release")?;
    }
    Ok(state?)
}

/// The Python function `_rotation.follow`.
static FOLLOW: OnceLock<Owned> = OnceLock::new();

/// Sets `_rotation.follow`. Later calls change nothing.
pub fn set_follow(function: Owned) {
    let _ = FOLLOW.set(function);
}

/// Lets the handler's stream follow a sink that has switched to another file and stays in use. Returns `true` if the
/// stream now names that file and nothing else about the handler has changed.
fn follow(old: &HandlerState, handler: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some((counter, seen)) = old.rotations_seen() else { return Ok(false) };
    // Read before the path is inspected: the next call then follows a later switch.
    let now = counter.load(Relaxed);
    if now == seen || !old.is_as_described() {
        return Ok(false);
    }
    // If the stream cannot follow this switch, the attempt is not repeated. It follows the next switch.
    if let Some(rotations) = &mut *old.rotated.lock().expect("no panic happens while it is held") {
        rotations.seen = now;
    }
    let answer = call(FOLLOW.get(), handler)?;
    Ok(answer.is_some_and(|answer| answer.cast_exact::<PyBool>().is_ok_and(|answer| answer.is_true())))
}

/// The state of a handler whose `emit` runs; `None` if stock logging has to serve the record. `Err` means that Python's
/// error indicator is set to an error that must leave the call, such as `KeyboardInterrupt`.
pub fn handler_state(handler: &Bound<'_, PyAny>) -> Result<Option<Arc<HandlerState>>, ()> {
    let mut known = known(handler);
    // After another thread has begun to end the interpreter, no new state is made. Using the known state keeps the
    // lines in order.
    if known.as_ref().is_some_and(|state| state.holds() || leaving::other_thread_ends()) {
        return Ok(known);
    }
    let Some(callbacks) = CALLBACKS.get() else { return Ok(None) };
    // While the interpreter ends, this thread might never return from the Python code that describes a handler. `_stay`
    // delays the end.
    let Some(_stay) = EndDelay::new() else { return Ok(known) };
    let py = handler.py();
    let state = with_saved_error(py, || {
        let describe = || {
            // Checked again: `uninstall()` may have run while this thread waited for the lock.
            if !installed() && !stands_alone(handler) {
                return Err(Failure::Stock);
            }
            state(callbacks, handler)
        };
        // This thread holds the handler's lock, for which other threads may be waiting, so it does not wait for the
        // planning lock as well. If the planning lock is taken, it uses the known state. That is safe although the
        // formatter may have changed: `emit` formats the line in the caller with the handler's current formatter.
        if let Some(state) = known.take_if(|state| state.is_outlet_valid()) {
            let locked = callbacks.lock.bind(py).call_method1("acquire", (false,))?.is_truthy()?;
            return if locked { then_unlock(callbacks, py, describe) } else { Ok(state) };
        }
        await_orphans(py).map_err(|error| Failure::raised(py, error))?;
        under_lock(callbacks, py, describe)
    });
    match failure::unless_stock(state) {
        // The end began during the wait for the planning lock.
        Ok(None) if leaving::other_thread_ends() => Ok(super::table::known(handler)),
        answer => answer.map_err(|_| ()),
    }
}
