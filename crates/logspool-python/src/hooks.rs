//! Sees every attribute set or deleted on loggers, handlers, formatters and styles that plans depend on.
//!
//! Stop on the line: beside *capture*. `config.py`, `assertLogs` and users assign `logger.handlers`,
//! `handler.level`, `formatter.datefmt` past all setters. `install()` gives the classes a `__setattr__` and a
//! `__delattr__` that move the epoch when such an assignment matters, and then do what `object`'s do. Reading stays
//! as fast as it was.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::adoption;
use crate::environment;
use crate::methods;
use crate::object;
use crate::options;
use crate::plans;

/// An object that plans depend on.
#[derive(Clone)]
enum Watched {
    Logger,
    /// A handler, a formatter or its style.
    Part(Arc<Changes>),
}

/// How often a handler, a formatter or a style has changed.
#[derive(Default)]
struct Changes {
    /// In all but `formatter`.
    itself: AtomicU64,
    /// In `formatter`, which handlers have.
    formatter: AtomicU64,
}

/// Objects that plans depend on, by address. One that died stays in: another object at its address only makes plans
/// stale needlessly.
static WATCHED: Mutex<Option<HashMap<usize, Watched>>> = Mutex::new(None);

fn with_watched<T>(act: impl FnOnce(&mut HashMap<usize, Watched>) -> T) -> T {
    act(WATCHED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Adds loggers to the objects that plans depend on.
pub fn watch_loggers(loggers: impl IntoIterator<Item = usize>) {
    with_watched(|watched| watched.extend(loggers.into_iter().map(|logger| (logger, Watched::Logger))));
}

/// A handler, a formatter or its style that a description was made from.
#[derive(Clone)]
pub struct Part {
    changes: Arc<Changes>,
    counter: fn(&Changes) -> &AtomicU64,
    seen: u64,
}

impl Part {
    /// Starts to watch the object at that address, before it is looked at.
    pub fn watch(object: usize) -> Self {
        Self::watch_counter(object, |changes| &changes.itself)
    }

    /// Starts to watch which formatter the handler at that address has.
    pub fn watch_formatter_of(handler: usize) -> Self {
        Self::watch_counter(handler, |changes| &changes.formatter)
    }

    fn watch_counter(object: usize, counter: fn(&Changes) -> &AtomicU64) -> Self {
        let changes = with_watched(|watched| match watched.get(&object) {
            Some(Watched::Part(changes)) => changes.clone(),
            _ => {
                let changes = Arc::new(Changes::default());
                watched.insert(object, Watched::Part(changes.clone()));
                changes
            }
        });
        let seen = counter(&changes).load(Acquire);
        Self { changes, counter, seen }
    }

    /// The part, as it was after that many changes.
    pub fn after(self, seen: u64) -> Self {
        Self { seen, ..self }
    }

    /// How often the object had changed when it began to be looked at.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether it has not changed since.
    pub fn holds(&self) -> bool {
        // Acquire pairs with the Release in `make_stale`.
        (self.counter)(&self.changes).load(Acquire) == self.seen
    }
}

/// Forgets all objects. What was described before holds no longer.
pub fn forget_all() {
    let gone = WATCHED.lock().unwrap_or_else(PoisonError::into_inner).take();
    for object in gone.into_iter().flat_map(HashMap::into_values) {
        make_stale(&object, Effect::Changed);
        make_stale(&object, Effect::Formatter);
    }
}

fn watched(object: *mut PyObject) -> Option<Watched> {
    with_watched(|watched| watched.get(&(object as usize)).cloned())
}

/// What an assignment to an attribute makes stale.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Nothing,
    /// Plans.
    Plans,
    /// Plans, which keep something alive that may have to go.
    Release,
    /// Plans, and the description of the handler or formatter.
    Changed,
    /// Plans, and what is known of a handler's formatter.
    Formatter,
    /// All of this.
    All,
}

/// Makes stale what an assignment to the object affects.
fn make_stale(object: &Watched, effect: Effect) {
    if let Watched::Part(changes) = object {
        match effect {
            Effect::Changed | Effect::All => changes.itself.fetch_add(1, Release),
            Effect::Formatter => changes.formatter.fetch_add(1, Release),
            Effect::Nothing | Effect::Plans | Effect::Release => 0,
        };
    }
    environment::move_plans();
}

fn effect(watched: &Watched, object: *mut PyObject, name: *mut PyObject) -> Effect {
    // SAFETY: a live object that is checked to be a str.
    let Some(text) = (unsafe { if ffi::PyUnicode_Check(name) == 0 { None } else { object::text(name) } }) else {
        return Effect::Nothing;
    };
    let (effect, of_hidden) = match watched {
        Watched::Logger => (effect_on_logger(text), Effect::Plans),
        Watched::Part(_) => (effect_on_part(text), Effect::Changed),
    };
    effect.unwrap_or_else(|| if hides_attribute(object, name) { of_hidden } else { Effect::Nothing })
}

/// What plans look at of a logger. Other attributes matter only where they hide one of the class.
fn effect_on_logger(name: &str) -> Option<Effect> {
    match name {
        "handlers" | "parent" | "filters" | "__class__" | "__dict__" => Some(Effect::Release),
        // `setLevel` empties the loggers' caches of enabled levels, which plans look into; until then the level itself
        // decides nothing in stock logging either.
        "level" => Some(Effect::Nothing),
        "propagate" | "disabled" | "name" | "_cache" | "manager" => Some(Effect::Plans),
        _ => None,
    }
}

/// What plans and descriptions look at of a handler, a formatter or a style. Other attributes matter only where they
/// hide one of the class.
fn effect_on_part(name: &str) -> Option<Effect> {
    match name {
        "level" => Some(Effect::Plans),
        "filters" => Some(Effect::Release),
        "__class__" | "__dict__" => Some(Effect::All),
        "formatter" => Some(Effect::Formatter),
        "stream" | "terminator" | "lock" | "mode" | "encoding" | "errors" | "delay" | "baseFilename" | "_closed"
        | "_style" | "_fmt" | "datefmt" | "_defaults" | "_tpl" | "maxBytes" | "backupCount" | "when" | "interval"
        | "utc" | "atTime" | "rolloverAt" | "suffix" | "extMatch" | "dayOfWeek" | "dev" | "ino" | "_builtin_open" => {
            Some(Effect::Changed)
        }
        _ => None,
    }
}

fn hides_attribute(object: *mut PyObject, name: *mut PyObject) -> bool {
    unsafe extern "C" {
        fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
    }
    // SAFETY: a live type and str; the result is only compared with null.
    unsafe { !_PyType_Lookup(ffi::Py_TYPE(object), name).is_null() }
}

/// `__setattr__(self, name, value)`.
///
/// # Safety
///
/// Called by CPython as a `METH_FASTCALL` method.
pub unsafe extern "C" fn set_attribute(
    object: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    if count != 2 {
        // SAFETY: attached.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, c"__setattr__ takes a name and a value".as_ptr()) };
        return std::ptr::null_mut();
    }
    // SAFETY: two arguments.
    unsafe { change(object, *arguments, *arguments.add(1)) }
}

/// `__delattr__(self, name)`.
///
/// # Safety
///
/// Called by CPython as a `METH_FASTCALL` method.
pub unsafe extern "C" fn delete_attribute(
    object: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    if count != 1 {
        // SAFETY: attached.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, c"__delattr__ takes a name".as_ptr()) };
        return std::ptr::null_mut();
    }
    // SAFETY: one argument; a null value deletes.
    unsafe { change(object, *arguments, std::ptr::null_mut()) }
}

unsafe fn change(object: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> *mut PyObject {
    let watched = watched(object);
    let effect = watched.as_ref().map_or(Effect::Nothing, |watched| effect(watched, object, name));
    let watched = watched.filter(|_| effect != Effect::Nothing);
    if let Some(watched) = &watched {
        // SAFETY: attached; live objects.
        if !unsafe { methods::passed(before(object, name, value)) } {
            return std::ptr::null_mut();
        }
        make_stale(watched, effect);
    }
    // SAFETY: live objects; null deletes.
    if unsafe { ffi::PyObject_GenericSetAttr(object, name, value) } != 0 {
        return std::ptr::null_mut();
    }
    if let Some(watched) = &watched {
        // Once more: on free-threaded builds a plan may have been made between the first and the assignment.
        make_stale(watched, effect);
        if matches!(effect, Effect::Release | Effect::All) {
            // SAFETY: attached.
            unsafe { plans::forget_all() };
        }
    }
    object::none()
}

/// A stream that is exchanged gets what was queued for it first, and its descriptor is let go.
unsafe fn before(object: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> PyResult<()> {
    // SAFETY: live objects, attached.
    unsafe {
        if ffi::PyUnicode_Check(name) == 0 || object::text(name) != Some("stream") {
            return Ok(());
        }
        let Some(state) = adoption::known(object) else { return Ok(()) };
        if let adoption::Verdict::Adopted(adoption) = &state.verdict
            && !adoption.stream.text.is_null()
            && adoption.stream.text != value
            && state.open_sink().is_some()
        {
            let _error = object::ErrorKept::take();
            return adoption::release(Python::assume_attached(), object, options::shutdown_timeout());
        }
    }
    Ok(())
}
