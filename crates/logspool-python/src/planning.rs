//! Makes the plan of a logger: walks what stock logging would walk, and says which calls may go the native way.
//!
//! Stop on the line: *capture*, its slow part: runs at the first call of a logger and after every change.
//! Whatever it cannot follow becomes a reason, never an error; the reason stands in `stats()`.
//! It runs under a Python lock of its own, so that two threads do not open two sinks for one handler.

use std::sync::atomic::{AtomicBool, AtomicI8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError};

use logspool::pipeline;
use logspool_record::definition::{MAX_TARGETS, RouteDefinition, Target};
use logspool_record::format::Format;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyType};

use crate::adoption::{self, State, Verdict};
use crate::environment;
use crate::hooks;
use crate::ids::{format_id, route_id};
use crate::leaving::{self, Stay};
use crate::message::{self, Failure};
use crate::names::{self, names};
use crate::object::{ErrorKept, Owned};
use crate::plan::{self, ListShape, Needs, Plan, Route, StreamList, TextStream};
use crate::plans;
use crate::queueing::MadeUnder;
use crate::record::{Matters, Reading};
use crate::stream::Word;
use crate::tries;
use crate::world::{World, world};

/// What `python/logspool/_adopt.py` offers.
pub struct Adopt {
    /// `describe(handler) -> str | Adoption`
    pub describe: Py<PyAny>,
    /// `describe_format(handler) -> Format`
    pub describe_format: Py<PyAny>,
    /// `classify_logger(cls) -> str`: why calls of its loggers must stay stock, or "".
    pub classify_logger: Py<PyAny>,
    /// `open_streams(logger, level)`
    pub open_streams: Py<PyAny>,
    /// `world() -> World`
    pub world: Py<PyAny>,
    /// Names whose presence on a logger instance replaces a method that stock logging calls.
    pub logger_methods: Vec<Py<PyString>>,
    /// A reentrant lock of logspool's own: nothing that takes another lock runs under it.
    pub lock: Py<PyAny>,
    /// `logging.LogRecord`
    pub record_class: Py<PyAny>,
    /// What weak references call when a logger or handler dies.
    pub forget: Py<PyAny>,
}

static ADOPT: OnceLock<Adopt> = OnceLock::new();

/// Remembers the Python half. The first call counts.
pub fn set_adopt(adopt: Adopt) {
    let _ = ADOPT.set(adopt);
}

/// Whether `install()` is in force.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Sets whether plans are made.
pub fn set_installed(installed: bool) {
    INSTALLED.store(installed, Relaxed);
    environment::bump();
}

/// Whether plans are made.
pub fn installed() -> bool {
    INSTALLED.load(Relaxed)
}

/// What [`make`] did.
pub enum Made {
    /// There is a plan now.
    Plan,
    /// None can be made here and now.
    NotNow,
    /// Python raised what gets out of the call (`KeyboardInterrupt`, say); it is set.
    Raised,
}

impl From<Failure> for Made {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Stock => Self::NotNow,
            Failure::Raised => Self::Raised,
        }
    }
}

/// A weak reference that removes plan and state of its object when that dies.
pub fn weak_reference(object: &Bound<'_, PyAny>) -> PyResult<Owned> {
    let forget = ADOPT.get().map_or(std::ptr::null_mut(), |adopt| adopt.forget.as_ptr());
    // SAFETY: a live object; null means no callback.
    unsafe { Owned::steal(ffi::PyWeakref_NewRef(object.as_ptr(), forget)) }.ok_or_else(|| PyErr::fetch(object.py()))
}

/// A weak reference without a callback: one per object, shared.
fn plain_weak_reference(object: &Bound<'_, PyAny>) -> Option<Owned> {
    // SAFETY: a live object.
    let reference = unsafe { Owned::steal(ffi::PyWeakref_NewRef(object.as_ptr(), std::ptr::null_mut())) };
    if reference.is_none() {
        // SAFETY: attached. Not every object can be referred to weakly.
        unsafe { ffi::PyErr_Clear() };
    }
    reference
}

/// Makes the plan of `logger` for a call that began in the epoch `since`.
///
/// # Safety
///
/// `logger` is a live instance of `logging.Logger`; attached.
pub unsafe fn make(logger: *mut PyObject, since: u64) -> Made {
    if !installed() || tries::given_up() {
        return Made::NotNow;
    }
    let Some(adopt) = ADOPT.get() else { return Made::NotNow };
    // The interpreter ends: making a plan runs Python code, from which this thread might not come back.
    let Some(_stay) = Stay::new() else { return Made::NotNow };
    // SAFETY: attached, live object.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a live object, as the caller says.
    let logger = unsafe { Bound::from_borrowed_ptr(py, logger) };
    let made = aside(|| {
        // Mostly all handlers are known, and nobody has to wait. On free-threaded builds threads that begin to log at the
        // same time would make one plan after the other, each in the place of one that another thread is about to use.
        if !cfg!(Py_GIL_DISABLED)
            && let Some(made) = caught(|| make_once(adopt, &logger, Lock::Free))?
        {
            return Ok(made);
        }
        adoption::await_orphans(py).map_err(|error| Failure::interrupted(py, error))?;
        under_lock(adopt, py, || {
            // Another thread may have made it while this one waited for the lock.
            // SAFETY: attached.
            if unsafe { plans::serves(logger.as_ptr(), since) } {
                return Ok(Made::Plan);
            }
            caught(|| make_locked(adopt, &logger)).map(|made| made.unwrap_or(Made::NotNow))
        })
    });
    made.unwrap_or_else(Made::from)
}

/// Runs what makes a plan. A panic must not cross into the interpreter: then none is made.
fn caught(make: impl FnOnce() -> Result<Option<Made>, Failure>) -> Result<Option<Made>, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(make)).unwrap_or(Ok(Some(Made::NotNow)))
}

/// Whether a plan is made under the planning lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// It is: handlers are described, and sinks opened.
    Held,
    /// It is not: all of that has to be done already.
    Free,
}

/// Runs what may raise beside the error that is set, which a logging call must not lose.
fn aside<T>(act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // SAFETY: attached: called inside logging calls.
    let kept = unsafe { ErrorKept::take() };
    let result = act();
    if let Err(Failure::Raised) = result {
        std::mem::forget(kept);
    }
    result
}

/// Runs what makes plans, one at a time.
///
/// # Errors
///
/// As `act`, or a signal's handler raised while the lock was waited for.
fn under_lock<T>(adopt: &Adopt, py: Python<'_>, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    adopt.lock.bind(py).call_method0("acquire").map_err(|error| Failure::interrupted(py, error))?;
    then_unlock(adopt, py, act)
}

fn then_unlock<T>(adopt: &Adopt, py: Python<'_>, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let result = act();
    aside(|| Ok(adopt.lock.bind(py).call_method0("release")?))?;
    result
}

/// Opens the files that a record of `level` opens, and makes the plan anew. What cannot be opened is stock logging's
/// to report.
///
/// # Safety
///
/// As for [`make`].
pub unsafe fn open_streams(logger: *mut PyObject, level: u16, since: u64) -> Made {
    let Some(adopt) = ADOPT.get() else { return Made::NotNow };
    // SAFETY: attached, a live object.
    let (py, logger_object) = unsafe { (Python::assume_attached(), Owned::borrow(logger)) };
    // SAFETY: kept by `logger_object`.
    let argument = unsafe { Bound::from_borrowed_ptr(py, logger_object.as_ptr()) };
    // Without the planning lock: `_open` may run code of others.
    match aside(|| Ok(adopt.open_streams.bind(py).call1((argument, level))?)) {
        // SAFETY: passed on.
        Ok(_) => unsafe { make(logger, since) },
        Err(failure) => failure.into(),
    }
}

fn make_locked(adopt: &Adopt, logger: &Bound<'_, PyAny>) -> Result<Option<Made>, Failure> {
    for _ in 0..3 {
        let now = MadeUnder::now();
        let made = make_once(adopt, logger, Lock::Held)?;
        // Defining the first id begins the pipeline (again, in a forked child), and giving up the sink that a handler
        // had makes what was known of it void.
        if now.serves_call() || !matches!(made, Some(Made::Plan)) {
            return Ok(made);
        }
        tries::in_vain();
    }
    Ok(None)
}

/// Makes a plan once; `None` where that needs the lock.
fn make_once(adopt: &Adopt, logger: &Bound<'_, PyAny>, lock: Lock) -> Result<Option<Made>, Failure> {
    let py = logger.py();
    // Read first: a change from here on makes the plan stale, not wrong.
    let under = MadeUnder::now();
    // Asked after the epoch: `uninstall()` may have come while the lock was waited for.
    if !installed() {
        return Ok(Some(Made::NotNow));
    }
    tries::count();
    let world = world(adopt, py, environment::descriptions())?;
    let mut builder = Builder {
        adopt,
        lock,
        world: &world,
        types: Vec::new(),
        lists: Vec::new(),
        targets: Vec::new(),
        streams: Vec::new(),
        words: Vec::new(),
        turns: Vec::new(),
        needs: Needs::default(),
        stock_from: u32::MAX,
        opens_from: u32::MAX,
        reason: String::new(),
        gate_is_stock: true,
        handlers: 0,
        terminal: None,
        kept: Vec::new(),
        held: Vec::new(),
    };
    // Before it is looked at: a change from here on moves the epoch.
    hooks::watch_loggers([logger.as_ptr() as usize]);
    builder.class(&logger.get_type())?;
    let class_reason: String = adopt.classify_logger.bind(py).call1((logger.get_type(),))?.extract()?;
    builder.note(u32::from(!class_reason.is_empty()), &class_reason);
    builder.note(u32::from(!world.reason.is_empty()), &world.reason);
    builder.class(adopt.record_class.bind(py).cast::<PyType>().map_err(PyErr::from)?)?;
    builder.instance(logger)?;
    if !builder.chain(logger)? {
        return Ok(None);
    }
    if builder.handlers == 0 {
        builder.note(1, "no handler: stock logging uses logging.lastResort");
    }
    let name = logger.getattr("name")?;
    let name = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok().map(str::to_owned));
    let Some(name) = name else { return Ok(Some(Made::NotNow)) };
    let disabled = logger.getattr("disabled")?.is_truthy()?;
    let gate_open = builder.gate_is_stock && !class_reason.contains(names::IS_ENABLED_FOR);
    let level_cache = logger.getattr("_cache").ok().filter(|cache| cache.is_exact_instance_of::<PyDict>());
    let (opens_from, stock_from_if_open) = (builder.opens_from, builder.stock_from);
    if opens_from < stock_from_if_open {
        builder.stock_above(opens_from, "a file is opened with its first record");
    }
    let streams = std::mem::take(&mut builder.streams).into_boxed_slice();
    let route = builder.route(&name, under, StreamList::of(&streams));
    let counts = plans::counts(&name);
    *counts.reason.lock().unwrap_or_else(PoisonError::into_inner) = builder.reason.clone();
    // The logger itself is not kept: its plan goes with it.
    let own = logger.as_ptr();
    builder.kept.retain(|kept| kept.as_ptr() != own);
    builder.kept.append(&mut builder.held);
    let plan = Plan {
        logger: own as usize,
        made_under: under,
        disabled: disabled && gate_open,
        level_cache: level_cache.filter(|_| gate_open).map(|cache| own_reference(&cache)),
        gates_version: AtomicU64::new(0),
        gates: [const { AtomicI8::new(-1) }; 5],
        types: builder.types,
        lists: builder.lists,
        route,
        counts,
        opens_from,
        stock_from_if_open,
        words: builder.words.into_boxed_slice(),
        turns: builder.turns,
        streams,
        kept: builder.kept,
    };
    let reference = weak_reference(logger)?;
    // SAFETY: attached.
    unsafe { plans::put(plan, reference) };
    Ok(Some(Made::Plan))
}

fn own_reference(object: &Bound<'_, PyAny>) -> Owned {
    // SAFETY: a live object, attached.
    unsafe { Owned::borrow(object.as_ptr()) }
}

struct Builder<'a> {
    adopt: &'a Adopt,
    lock: Lock,
    world: &'a World,
    types: Vec<(Owned, u32)>,
    lists: Vec<ListShape>,
    targets: Vec<Target>,
    streams: Vec<TextStream>,
    words: Vec<Word>,
    /// Counters that some of the words look at.
    turns: Vec<Arc<AtomicU64>>,
    needs: Needs,
    /// Levels from here on are stock logging's.
    stock_from: u32,
    /// Levels from here on reach a handler that opens its file with its first record.
    opens_from: u32,
    reason: String,
    /// Whether the logger itself leaves the question of the level to its class.
    gate_is_stock: bool,
    handlers: usize,
    terminal: Option<u32>,
    /// Loggers of the chain, and streams.
    kept: Vec<Owned>,
    /// What words lie in and point to.
    held: Vec<Owned>,
}

/// Longest chain of parents that is followed; a longer one is a loop.
const MOST_PARENTS: usize = 200;

impl Builder<'_> {
    /// Notes why all levels are stock logging's, if `found`.
    fn note(&mut self, found: u32, reason: &str) {
        if found != 0 {
            self.stock_above(0, reason);
        }
    }

    /// Notes why levels from `level` on are stock logging's.
    fn stock_above(&mut self, level: u32, reason: &str) {
        if level < self.stock_from {
            self.stock_from = level;
            self.reason = match level {
                0 => reason.to_owned(),
                level => format!("from level {level} on: {reason}"),
            };
        }
    }

    fn class(&mut self, class: &Bound<'_, PyType>) -> PyResult<()> {
        if self.types.iter().any(|(known, _)| known.as_ptr() == class.as_ptr()) {
            return Ok(());
        }
        // SAFETY: a live type, attached.
        let tag = unsafe { plan::assigned_tag(class.as_ptr()) };
        self.class_as_seen(own_reference(class), tag);
        Ok(())
    }

    /// Records a class with the version that it had when it was looked at.
    fn class_as_seen(&mut self, class: Owned, tag: u32) {
        if tag == 0 {
            self.stock_above(0, "a class was changed so often that CPython gives it no version any more");
        }
        if !self.types.iter().any(|(known, seen)| known.as_ptr() == class.as_ptr() && *seen == tag) {
            self.types.push((class, tag));
        }
    }

    /// Attributes of the logger itself that would replace a method.
    fn instance(&mut self, logger: &Bound<'_, PyAny>) -> PyResult<()> {
        let attributes = logger.getattr("__dict__")?;
        let attributes = attributes.cast::<PyDict>()?;
        for name in &self.adopt.logger_methods {
            if attributes.contains(name)? {
                let name = name.bind(logger.py()).to_str()?;
                self.gate_is_stock &= name != names::IS_ENABLED_FOR;
                self.stock_above(0, &format!("{name} is replaced on the logger"));
            }
        }
        let filters = logger.getattr("filters")?;
        if !self.list(&filters)? {
            self.stock_above(0, "logger.filters is no plain list");
        } else if filters.is_truthy()? {
            self.stock_above(0, "the logger has a filter");
        }
        Ok(())
    }

    /// Records a list; `false` when it is none that can be compared.
    fn list(&mut self, list: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(exact) = list.cast_exact::<PyList>() else { return Ok(false) };
        let mut items = Vec::new();
        for item in exact.iter() {
            match plain_weak_reference(&item) {
                Some(reference) => items.push(reference),
                None => return Ok(false),
            }
        }
        self.lists.push(ListShape { list: own_reference(list), items });
        Ok(true)
    }

    /// Walks the handlers of the logger and its parents; `false` where one needs the lock.
    fn chain(&mut self, logger: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let py = logger.py();
        let names = names();
        let mut current = logger.clone();
        for _ in 0..MOST_PARENTS {
            hooks::watch_loggers([current.as_ptr() as usize]);
            self.kept.push(own_reference(&current));
            self.class(&current.get_type())?;
            let handlers = current.getattr(text(py, &names.handlers))?;
            if !self.list(&handlers)? {
                self.stock_above(0, "logger.handlers is no plain list");
                self.handlers += 1;
                return Ok(true);
            }
            for handler in handlers.cast::<PyList>().map_err(PyErr::from)?.iter() {
                self.handlers += 1;
                if !self.handler(&handler)? {
                    return Ok(false);
                }
            }
            if !current.getattr(text(py, &names.propagate))?.is_truthy()? {
                return Ok(true);
            }
            let parent = current.getattr(text(py, &names.parent))?;
            if parent.is_none() {
                return Ok(true);
            }
            current = parent;
        }
        self.stock_above(0, "the loggers' parents make a loop");
        Ok(true)
    }

    /// Looks at a handler; `false` where that needs the lock.
    fn handler(&mut self, handler: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let py = handler.py();
        let state = match self.lock {
            Lock::Held => adoption::state(self.adopt, handler)?,
            Lock::Free => match adoption::ready_state(self.adopt, handler)? {
                Some(state) => state,
                None => return Ok(false),
            },
        };
        for (class, tag) in state.types() {
            // SAFETY: a live type kept by the state; attached.
            self.class_as_seen(unsafe { Owned::borrow(class.as_ptr()) }, *tag);
        }
        self.class(&handler.get_type())?;
        for word in &state.words {
            if !self.words.contains(word) {
                self.words.push(*word);
            }
        }
        // SAFETY: kept by the state; attached.
        self.held.extend(state.held.iter().map(|object| unsafe { Owned::borrow(object.as_ptr()) }));
        if let Verdict::Null = state.verdict {
            return Ok(true);
        }
        let level = handler.getattr(text(py, &names().level));
        let level = level.ok().filter(|level| level.is_exact_instance_of::<PyInt>());
        let Some(level) = level.and_then(|level| level.extract::<i64>().ok()) else {
            self.stock_above(0, &format!("the level of {} is no int", described(handler)));
            return Ok(true);
        };
        if level > i64::from(u16::MAX) {
            return Ok(true);
        }
        let level = level.max(0) as u16;
        if let Verdict::Unopened(_) = state.verdict {
            self.opens_from = self.opens_from.min(u32::from(level));
            return Ok(true);
        }
        if let Err(reason) = self.target(handler, &state, level) {
            let reason = format!("{}: {reason}", described(handler));
            self.stock_above(u32::from(level), &reason);
        }
        Ok(true)
    }

    fn target(&mut self, handler: &Bound<'_, PyAny>, state: &Arc<State>, min_level: u16) -> Result<(), String> {
        let py = handler.py();
        let adoption = match &state.verdict {
            Verdict::Null => return Ok(()),
            Verdict::Foreign(reason) | Verdict::Unopened(reason) => return Err(reason.clone()),
            Verdict::Adopted(adoption) => adoption,
        };
        let filters = handler.getattr(text(py, &names().filters)).map_err(|_| "it has no filters".to_owned())?;
        if !self.list(&filters).unwrap_or(false) {
            return Err("its filters are no plain list".to_owned());
        }
        if filters.is_truthy().unwrap_or(true) {
            return Err("it has a filter".to_owned());
        }
        let parts = adoption.format.as_ref().map_err(Clone::clone)?;
        let spec = parts.spec(self.world, &adoption.terminator);
        let (format, needs) = format_id(spec)?;
        let sink = state.sink()?;
        if let Some((counter, seen)) = state.turns_seen() {
            self.words.push(Word::counter(&counter, seen));
            self.turns.push(counter);
        }
        if self.targets.len() == MAX_TARGETS {
            return Err(format!("the logger has more than {MAX_TARGETS} handlers"));
        }
        let stream = adoption.text_stream(sink);
        if !stream.text.is_null() && !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
        for object in [adoption.stream.text, adoption.stream.buffer] {
            if !object.is_null() {
                // SAFETY: kept by the adoption.
                self.kept.push(unsafe { Owned::borrow(object) });
            }
        }
        if adoption.interactive {
            self.terminal = Some(sink);
        }
        self.targets.push(Target { sink, format, min_level });
        self.needs = self.needs.and(needs);
        Ok(())
    }

    fn route(&mut self, name: &str, made_under: MadeUnder, streams: StreamList) -> Option<Route> {
        if self.stock_from == 0 {
            return None;
        }
        let lowest = self.targets.iter().map(|target| target.min_level).min().unwrap_or(u16::MAX);
        let id = if self.targets.is_empty() {
            None
        } else {
            let definition = RouteDefinition { logger: name.to_owned(), targets: self.targets.clone() };
            let Some(id) = route_id(definition) else {
                self.stock_above(0, "the table of routes is full");
                return None;
            };
            Some(id)
        };
        Some(Route {
            id,
            made_under,
            needs: self.needs,
            lowest,
            stock_from: self.stock_from,
            streams,
            terminal: self.terminal,
        })
    }
}

fn text<'py>(py: Python<'py>, name: &Owned) -> Bound<'py, PyString> {
    // SAFETY: an interned str of ours.
    unsafe { Bound::from_borrowed_ptr(py, name.as_ptr()).cast_into_unchecked() }
}

fn described(handler: &Bound<'_, PyAny>) -> String {
    handler.get_type().name().map_or_else(|_| "a handler".to_owned(), |name| name.to_string())
}

/// Classes of logspool's own handlers, which queue also without `install()`.
static OWN_CLASSES: OnceLock<Owned> = OnceLock::new();

/// Remembers them: a tuple of classes.
pub fn set_own_classes(classes: Owned) {
    let _ = OWN_CLASSES.set(classes);
}

/// Whether the handler queues by itself, without `install()`.
///
/// # Safety
///
/// `handler` is live; attached.
pub unsafe fn stands_alone(handler: *mut PyObject) -> bool {
    // SAFETY: a live object and a tuple of classes.
    OWN_CLASSES.get().is_some_and(|classes| unsafe {
        let answer = ffi::PyObject_IsInstance(handler, classes.as_ptr());
        if answer < 0 {
            ffi::PyErr_Clear();
        }
        answer == 1
    })
}

/// `logging.LogRecord`, once connected.
pub fn record_class() -> Option<*mut PyObject> {
    ADOPT.get().map(|adopt| adopt.record_class.as_ptr())
}

/// Runs `act` under the planning lock. `Stock`: it raised an `Exception`, or the interpreter ends.
pub fn locked<T>(act: impl FnOnce(&Adopt, Python<'_>) -> PyResult<T>) -> Result<T, Failure> {
    let adopt = ADOPT.get().ok_or(Failure::Stock)?;
    let _stay = Stay::new().ok_or(Failure::Stock)?;
    // SAFETY: attached: called inside logging calls.
    let py = unsafe { Python::assume_attached() };
    aside(|| under_lock(adopt, py, || Ok(act(adopt, py)?)))
}

/// How records of a handler are read by value.
///
/// # Errors
///
/// `Stock` when its lines are made in the caller.
pub fn reading(adoption: &adoption::Adoption, descriptions: u64) -> Result<Reading, Failure> {
    let parts = adoption.format.as_ref().map_err(|_| Failure::Stock)?;
    let generation = pipeline::generation();
    let world = locked(|adopt, py| world(adopt, py, descriptions))?;
    // A record does not keep the nanoseconds from which `relativeCreated` came.
    if !world.reason.is_empty() || parts.mentions("relativeCreated") {
        return Err(Failure::Stock);
    }
    let spec = parts.spec(&world, &adoption.terminator);
    let compiled = Format::compile(&spec).map_err(|_| Failure::Stock)?;
    let format = format_id(spec).map_err(|_| Failure::Stock)?;
    if format.1.fields.is_some() || pipeline::generation() != generation {
        return Err(Failure::Stock);
    }
    let matters = Matters {
        process_id: parts.mentions("process"),
        file: parts.mentions("filename") || parts.mentions("module"),
        attribute_names: parts.takes_keywords(),
    };
    Ok(Reading::new(generation, world, format, compiled, matters))
}

/// The lists of handlers and filters that make `handler` the only stop of the records of a logger; `None` when
/// there is another.
///
/// # Errors
///
/// As for [`locked`].
pub fn last_stop(handler: *mut PyObject, name: &str) -> Result<Option<Vec<ListShape>>, Failure> {
    locked(|_, py| {
        let class = py.import("logging")?.getattr("Logger")?;
        let root = class.getattr("root")?;
        let mut logger = match root.getattr("name")?.extract::<String>()? {
            root_name if root_name == name => root,
            _ => class.getattr("manager")?.getattr("loggerDict")?.get_item(name)?,
        };
        let mut lists = Vec::new();
        let mut add = |list: &Bound<'_, PyAny>| {
            let Ok(exact) = list.cast_exact::<PyList>() else { return false };
            let items: Option<Vec<Owned>> = exact.iter().map(|item| plain_weak_reference(&item)).collect();
            items.map(|items| lists.push(ListShape { list: own_reference(list), items })).is_some()
        };
        // SAFETY: a live handler; attached.
        let own = unsafe { Bound::from_borrowed_ptr(py, handler) };
        let filters = own.getattr("filters")?;
        let mut alone = add(&filters) && filters.is_empty()?;
        let mut found = 0;
        for _ in 0..MOST_PARENTS {
            hooks::watch_loggers([logger.as_ptr() as usize]);
            let (handlers, filters) = (logger.getattr("handlers")?, logger.getattr("filters")?);
            alone &= add(&handlers) && add(&filters) && filters.is_empty()?;
            for other in handlers.try_iter()? {
                alone &= other?.is(&own);
                found += 1;
            }
            let parent = logger.getattr("parent")?;
            if !logger.getattr("propagate")?.is_truthy()? || parent.is_none() {
                break;
            }
            logger = parent;
        }
        Ok((alone && found == 1).then_some(lists))
    })
}

/// The state of a handler whose `emit` runs. `Err`: an error that no handler catches is set.
///
/// # Safety
///
/// `handler` is live; attached.
pub unsafe fn handler_state(handler: *mut PyObject) -> Result<Option<Arc<State>>, ()> {
    let mut known = adoption::known(handler);
    // Once another thread ends the interpreter no state is made, and this one keeps the order of its lines.
    if known.as_ref().is_some_and(|state| state.holds() || leaving::another_ends()) {
        return Ok(known);
    }
    let Some(adopt) = ADOPT.get() else { return Ok(None) };
    // As in `make`.
    let Some(_stay) = Stay::new() else { return Ok(None) };
    // SAFETY: attached, live object.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a live object, as the caller says.
    let handler = unsafe { Bound::from_borrowed_ptr(py, handler) };
    let state = aside(|| {
        let describe = || {
            // Asked again: `uninstall()` may have come while the lock was waited for.
            // SAFETY: a live object, attached.
            if !installed() && !unsafe { stands_alone(handler.as_ptr()) } {
                return Err(Failure::Stock);
            }
            adoption::state(adopt, &handler)
        };
        // This thread holds the handler's lock, on which others wait. A line that is made here needs nothing of what is
        // known of the formatter, so nobody waits for that.
        if let Some(state) = known.take_if(|state| state.outlet_holds()) {
            let locked = adopt.lock.bind(py).call_method1("acquire", (false,))?.is_truthy()?;
            return if locked { then_unlock(adopt, py, describe) } else { Ok(state) };
        }
        adoption::await_orphans(py).map_err(|error| Failure::interrupted(py, error))?;
        under_lock(adopt, py, describe)
    });
    message::unless_stock(state).map_err(|_| ())
}
