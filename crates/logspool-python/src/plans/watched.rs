//! The loggers, handlers, formatters and styles on which plans depend, and which of their attributes matter.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use logspool_sys::published::{Counted, Published};

use crate::interpreter::object::{self, Object};
use crate::plans::environment;

/// An object on which plans depend.
#[derive(Clone)]
pub enum Watched {
    Logger,
    /// A handler, a filter, a formatter or its style.
    Part(Arc<Changes>),
}

/// Change counts of a handler, a formatter or a style.
#[derive(Default)]
pub struct Changes {
    /// Changes of all attributes except `formatter`.
    itself: AtomicU64,
    /// Changes of `formatter`, an attribute of handlers.
    formatter: AtomicU64,
}

/// The objects on which plans depend, by address. Freed objects stay in the map. Another object at the same address
/// then only makes plans stale needlessly.
static WATCHED: Mutex<Option<HashMap<usize, Watched>>> = Mutex::new(None);

fn with_watched<T>(act: impl FnOnce(&mut HashMap<usize, Watched>) -> T) -> T {
    act(WATCHED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Adds loggers to the objects on which plans depend.
pub fn watch_loggers(loggers: impl IntoIterator<Item = usize>) {
    with_watched(|watched| watched.extend(loggers.into_iter().map(|logger| (logger, Watched::Logger))));
}

/// A handler, formatter or style from which a description was made, with its change count before it was inspected.
#[derive(Clone)]
pub struct WatchedPart {
    changes: Arc<Changes>,
    counter: fn(&Changes) -> &AtomicU64,
    seen: u64,
}

impl WatchedPart {
    /// Starts to watch the object at this address. Call it before the object is inspected.
    pub fn watch(object: usize) -> Self {
        Self::watch_counter(object, |changes| &changes.itself)
    }

    /// Starts to watch the `formatter` attribute of the handler at this address.
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

    /// The same part, with `seen` as its change count.
    pub fn after(self, seen: u64) -> Self {
        Self { seen, ..self }
    }

    /// The change count of the object before it was inspected.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// True if the object has not changed since [`Self::seen`].
    pub fn holds(&self) -> bool {
        // Pairs with `advance` in `make_stale`.
        (self.counter)(&self.changes).observe() == self.seen
    }
}

/// Stops watching all objects, and makes all existing descriptions stale.
pub fn forget_all() {
    let gone = WATCHED.lock().unwrap_or_else(PoisonError::into_inner).take();
    for object in gone.into_iter().flat_map(HashMap::into_values) {
        make_stale(&object, Effect::Changed);
        make_stale(&object, Effect::Formatter);
    }
}

/// The watch entry of an object, if plans may depend on the object.
pub fn watched(object: Object<'_, '_>) -> Option<Watched> {
    with_watched(|watched| watched.get(&(object.as_ptr() as usize)).cloned())
}

/// Which data an assignment to an attribute makes stale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The assignment makes nothing stale.
    Nothing,
    /// All plans.
    Plans,
    /// All plans. They are dropped immediately: they hold the old value of the attribute, which the program may expect
    /// to be freed by the assignment.
    Release,
    /// All plans, and the description of the handler or formatter.
    Changed,
    /// All plans, and the description of the handler's formatter.
    Formatter,
    /// The same as `Release` and `Changed` together.
    All,
}

/// Makes the data stale that an assignment to the object affects.
pub fn make_stale(object: &Watched, effect: Effect) {
    if let Watched::Part(changes) = object {
        match effect {
            Effect::Changed | Effect::All => changes.itself.advance(),
            Effect::Formatter => changes.formatter.advance(),
            Effect::Nothing | Effect::Plans | Effect::Release => 0,
        };
    }
    environment::advance_epoch();
}

/// Returns which data an assignment to the attribute `name` of a watched object makes stale.
pub fn effect(watched: &Watched, object: Object<'_, '_>, name: Object<'_, '_>) -> Effect {
    let Some(text) = object::text(name) else { return Effect::Nothing };
    let (effect, of_hidden) = match watched {
        Watched::Logger => (effect_on_logger(text), Effect::Plans),
        Watched::Part(_) => (effect_on_part(text), Effect::Changed),
    };
    effect.unwrap_or_else(|| if hides_attribute(object, name) { of_hidden } else { Effect::Nothing })
}

/// Returns what an assignment to this attribute of a logger makes stale; `None` for attributes that plans do not read.
/// An assignment to such an attribute matters only if it hides an attribute of the class.
fn effect_on_logger(name: &str) -> Option<Effect> {
    match name {
        "handlers" | "parent" | "filters" | "__class__" | "__dict__" => Some(Effect::Release),
        // Plans read the loggers' caches of enabled levels, and `setLevel` empties these caches. As long as a cache is
        // not emptied, stock logging does not read the level either.
        "level" => Some(Effect::Nothing),
        "propagate" | "disabled" | "name" | "_cache" | "manager" => Some(Effect::Plans),
        _ => None,
    }
}

/// Returns what an assignment to this attribute of a handler, formatter or style makes stale; `None` for attributes
/// that neither plans nor descriptions read. An assignment to such an attribute matters only if it hides an attribute
/// of the class.
fn effect_on_part(name: &str) -> Option<Effect> {
    match name {
        "level" => Some(Effect::Plans),
        "filters" => Some(Effect::Release),
        "__class__" | "__dict__" => Some(Effect::All),
        "formatter" => Some(Effect::Formatter),
        // The attributes of `logging.Filter`. Handlers have a name too.
        "name" | "nlen" => Some(Effect::Plans),
        // Those of known filters.
        "uuid_length" | "default_value" => Some(Effect::Plans),
        "stream" | "terminator" | "lock" | "mode" | "encoding" | "errors" | "delay" | "baseFilename" | "_closed"
        | "_style" | "_fmt" | "datefmt" | "_defaults" | "_tpl" | "maxBytes" | "backupCount" | "when" | "interval"
        | "utc" | "atTime" | "rolloverAt" | "suffix" | "extMatch" | "dayOfWeek" | "dev" | "ino" | "_builtin_open" => {
            Some(Effect::Changed)
        }
        name if of_known_formatter(name) => Some(Effect::Changed),
        _ => None,
    }
}

/// True for the attributes that the formatters of known packages read (`python/logspool/adoption/known`).
fn of_known_formatter(name: &str) -> bool {
    matches!(
        name,
        "prefix"
            | "rename_fields"
            | "rename_fields_keep_missing"
            | "static_fields"
            | "reserved_attrs"
            | "timestamp"
            | "defaults"
            | "exc_info_as_array"
            | "stack_info_as_array"
            | "_required_fields"
            | "_skip_fields"
            | "level_name_colors"
            | "status_code_colours"
            | "use_colors"
            | "log_colors"
            | "secondary_log_colors"
            | "reset"
            | "no_color"
            | "force_color"
            | "style"
            | "_extra"
            | "_exclude_fields"
            | "_stack_trace_limit"
            | "ensure_ascii"
            | "json_default"
            | "json_encoder"
            | "json_serializer"
            | "json_indent"
            | "json_ensure_ascii"
    )
}

/// True if an attribute of this name on the object would hide an attribute of its class. `name` must be a `str`.
fn hides_attribute(object: Object<'_, '_>, name: Object<'_, '_>) -> bool {
    !object::of_class(object, name).is_null()
}
