//! Loggers, handlers, formatters and styles that plans depend on, and which of their attributes matter.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use logspool_sys::published::{Counted, Published};
use pyo3::ffi::{self, PyObject};

use crate::interpreter::object::{self, Object};
use crate::plans::environment;

/// An object that plans depend on.
#[derive(Clone)]
pub enum Watched {
    Logger,
    /// A handler, a formatter or its style.
    Part(Arc<Changes>),
}

/// How often a handler, a formatter or a style has changed.
#[derive(Default)]
pub struct Changes {
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
        let seen = counter(&changes).observe();
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
        // Pairs with `advance` in `make_stale`.
        (self.counter)(&self.changes).observe() == self.seen
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

/// What is known of an object that plans may depend on.
pub fn watched(object: Object<'_, '_>) -> Option<Watched> {
    with_watched(|watched| watched.get(&(object.as_ptr() as usize)).cloned())
}

/// What an assignment to an attribute makes stale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effect {
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
pub fn make_stale(object: &Watched, effect: Effect) {
    if let Watched::Part(changes) = object {
        match effect {
            Effect::Changed | Effect::All => changes.itself.advance(),
            Effect::Formatter => changes.formatter.advance(),
            Effect::Nothing | Effect::Plans | Effect::Release => 0,
        };
    }
    environment::move_plans();
}

/// What an assignment to the attribute `name` of a watched object makes stale.
pub fn effect(watched: &Watched, object: Object<'_, '_>, name: Object<'_, '_>) -> Effect {
    let Some(text) = object::text(name) else { return Effect::Nothing };
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

/// Whether an attribute of that name, a `str`, hides one of the object's class.
fn hides_attribute(object: Object<'_, '_>, name: Object<'_, '_>) -> bool {
    unsafe extern "C" {
        fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
    }
    // SAFETY: a live type and str of an attached thread; the result is only compared with null.
    unsafe { !_PyType_Lookup(object::class_of(object), name.as_ptr()).is_null() }
}
