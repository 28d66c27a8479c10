//! Visits the handlers of one logger and of its parents as stock logging would, and collects the inputs of the plan.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use logspool_record::definition::{MAX_TARGETS, RouteDefinition, Target};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::interpreter::failure::Failure;
use crate::interpreter::names::{self, bound, names};
use crate::interpreter::object::{Owned, WeakReference};
use crate::plans::callbacks::{self, MAX_PARENTS, PlanningCallbacks};
use crate::plans::class_version::ClassVersion;
use crate::plans::environment::IdValidity;
use crate::plans::format_parts::FormatterTexts;
use crate::plans::given_fields::{GivenField, GivenFields, same};
use crate::plans::handler_states::read_watched;
use crate::plans::handler_states::{self, HandlerState, HandlerVerdict};
use crate::plans::ids::{format_id, route_id};
use crate::plans::logging_globals::LoggingGlobals;
use crate::plans::needs::Needs;
use crate::plans::plan::{ListShape, OnlyHandler, Route};
use crate::plans::text_stream::{StreamList, StreamWord, TextStream};
use crate::plans::watched::{self, WatchedPart};

/// Whether a plan is made under the planning lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PlanningLock {
    /// The planning lock is held. The builder may describe handlers and open sinks.
    Held,
    /// The planning lock is not held. All handlers must be described already, and their sinks must be open.
    Free,
}

pub struct PlanBuilder<'a> {
    pub callbacks: &'a PlanningCallbacks,
    pub lock: PlanningLock,
    pub globals: &'a LoggingGlobals,
    /// Name of the logger.
    pub name: String,
    pub types: Vec<ClassVersion>,
    pub lists: Vec<ListShape>,
    pub targets: Vec<Target>,
    pub streams: Vec<TextStream>,
    pub words: Vec<StreamWord>,
    /// Counters of file switches. Some of `words` are inside these counters.
    pub rotations: Vec<Arc<AtomicU64>>,
    pub needs: Needs,
    /// Texts that the formatters of the targets make.
    pub formatter_texts: FormatterTexts,
    /// Records of this level and above are made by stock logging.
    pub stock_from: u32,
    /// Records of this level and above do not take the route: a `LogRecord` is made.
    pub record_from: u32,
    /// True if `Logger.handle`, `filter` and `callHandlers` of the logger are the stock ones.
    pub steps_are_stock: bool,
    /// Records of this level and above are taken by a handler that opens its file with its first record.
    pub opens_from: u32,
    pub reason: String,
    /// True if the logger instance does not override `isEnabledFor`.
    pub gate_is_stock: bool,
    pub handlers: usize,
    /// The last visited handler that is not a `NullHandler`.
    pub last_handler: Option<OnlyHandler>,
    /// True if the logger has filters.
    pub has_filters: bool,
    /// The list `logger.filters`; `None` if it is no exact list.
    pub filters: Option<Owned>,
    /// Fields that known filters of the logger set.
    pub given: Vec<GivenField>,
    /// Fields that known filters of the last visited handler set; `None` before the first handler.
    pub of_handlers: Option<Vec<GivenField>>,
    pub terminal: Option<u32>,
    /// References to the visited loggers and to the handlers' streams.
    pub kept: Vec<Owned>,
    /// References to the objects that contain `words`, and to the objects to which `words` point.
    pub held: Vec<Owned>,
}

impl PlanBuilder<'_> {
    /// Lets stock logging make the records of `level` and above, and sets the reason.
    pub fn stock_above(&mut self, level: u32, reason: &str) {
        self.stock_from = self.stock_from.min(level);
        self.record_above(level, reason);
    }

    /// Lets records of `level` and above be made as `LogRecord`, and sets the reason. Does nothing if they are already.
    pub fn record_above(&mut self, level: u32, reason: &str) {
        if level < self.record_from {
            self.record_from = level;
            self.reason = match level {
                0 => reason.to_owned(),
                level => format!("from level {level} on: {reason}"),
            };
        }
    }

    /// Records a class with its current version.
    pub fn class(&mut self, class: &Bound<'_, PyType>) {
        if self.types.iter().all(|known| known.address() != class.as_ptr() as usize) {
            self.class_as_seen(ClassVersion::assigned(class));
        }
    }

    /// Records a class with the version that it had when it was inspected.
    fn class_as_seen(&mut self, class: ClassVersion) {
        if class.tag() == 0 {
            self.stock_above(0, "a class was changed so often that CPython gives it no version any more");
        }
        let is_it = |known: &ClassVersion| known.address() == class.address() && known.tag() == class.tag();
        if !self.types.iter().any(is_it) {
            self.types.push(class);
        }
    }

    /// Lets records of all levels be made if the logger has a filter, or if an attribute of the instance overrides a
    /// method.
    pub fn instance(&mut self, logger: &Bound<'_, PyAny>) -> PyResult<()> {
        let attributes = logger.getattr("__dict__")?;
        let attributes = attributes.cast::<PyDict>()?;
        for name in &self.callbacks.logger_methods {
            if attributes.contains(name)? {
                let name = name.bind(logger.py()).to_str()?;
                self.gate_is_stock &= name != names::IS_ENABLED_FOR;
                self.method_is_replaced(name, &format!("{name} is replaced on the logger"));
            }
        }
        let filters = logger.getattr("filters")?;
        let is_list = self.list(&filters);
        self.filters = is_list.then(|| Owned::of(&filters));
        self.has_filters = !is_list || filters.is_truthy()?;
        if !is_list {
            self.record_above(0, "logger.filters is no plain list");
        } else if self.has_filters && self.verdict(&filters)? != FiltersVerdict::Pass {
            self.record_above(0, "the logger has a filter");
        }
        Ok(())
    }

    /// Notes that the logger has its own `method`. Methods that handle a record are called; any other leaves the call
    /// to stock logging.
    pub fn method_is_replaced(&mut self, method: &str, reason: &str) {
        if names::RECORD_STEPS.contains(&method) {
            self.steps_are_stock = false;
            self.record_above(0, reason);
        } else {
            self.stock_above(0, reason);
        }
    }

    /// Adds the fields that a known record factory sets. Lets records of all levels be made if the factory has to run.
    pub fn factory(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(factory) = self.globals.record_factory.as_ref().filter(|_| !self.globals.factory_reason.is_empty())
        else {
            return Ok(());
        };
        let described = self.callbacks.describe_factory.bind(py).call1((factory.bind(py),))?;
        if described.is_none() {
            self.record_above(0, &self.globals.factory_reason);
            return Ok(());
        }
        self.class(&described.get_item(5)?.cast_into::<PyType>().map_err(PyErr::from)?);
        read_watched(&described.get_item(6)?, &mut self.words, &mut self.held)?;
        self.given.extend(GivenField::of_span(&described)?);
        Ok(())
    }

    /// Adds the fields that a known wrapper of `Logger.makeRecord` sets. Stock logging calls the wrapper for all records
    /// that do not take the route, and for all records if it has to run.
    pub fn record_maker(&mut self, class: &Bound<'_, PyType>) -> PyResult<()> {
        self.stock_from = 0;
        let described = self.callbacks.describe_record_maker.bind(class.py()).call1((class,))?;
        if described.is_none() {
            self.stock_above(0, "Logger.makeRecord is patched");
            return Ok(());
        }
        self.class(&described.get_item(2)?.cast_into::<PyType>().map_err(PyErr::from)?);
        read_watched(&described.get_item(3)?, &mut self.words, &mut self.held)?;
        self.given.extend(GivenField::of_call(&described)?);
        Ok(())
    }

    /// Adds the field that a known filter sets, and what its description depends on.
    fn given_field(&mut self, described: &Bound<'_, PyTuple>) -> PyResult<()> {
        read_watched(&described.get_item(4)?, &mut self.words, &mut self.held)?;
        let field = GivenField::read(described)?;
        if !self.given.iter().any(|known| known.is_same(&field)) {
            self.given.push(field);
        }
        Ok(())
    }

    /// Returns what the filters of a logger or a handler, an exact list, say about the records of the plan's logger.
    fn verdict(&mut self, filters: &Bound<'_, PyAny>) -> PyResult<FiltersVerdict> {
        let py = filters.py();
        let mut verdict = FiltersVerdict::Pass;
        for filter in filters.cast::<PyList>()?.iter() {
            // The filter is watched before it is inspected, so that a later change begins a new epoch.
            WatchedPart::watch(filter.as_ptr() as usize);
            self.class(&filter.get_type());
            let prefix = self.callbacks.name_of_filter.bind(py).call1((filter,))?;
            if let Ok(described) = prefix.cast::<PyTuple>() {
                self.given_field(described)?;
                continue;
            }
            let Ok(prefix) = prefix.cast::<PyString>() else { return Ok(FiltersVerdict::Ask) };
            if !passes_by_name(&self.name, prefix.to_str()?) {
                verdict = FiltersVerdict::Drop;
            }
        }
        Ok(verdict)
    }

    /// Records a list as an input of the plan. Returns `false` if its content cannot be compared later.
    fn list(&mut self, list: &Bound<'_, PyAny>) -> bool {
        let shape = ListShape::of(list);
        let is_one = shape.is_some();
        self.lists.extend(shape);
        is_one
    }

    /// Inspects the handlers of the logger and of its parents. Returns `false` if a handler needs the planning lock.
    pub fn chain(&mut self, logger: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let py = logger.py();
        let names = names();
        let mut current = logger.clone();
        for _ in 0..MAX_PARENTS {
            watched::watch_loggers([current.as_ptr() as usize]);
            self.kept.push(Owned::of(&current));
            self.class(&current.get_type());
            let handlers = current.getattr(bound(py, &names.handlers))?;
            if !self.list(&handlers) {
                self.record_above(0, "logger.handlers is no plain list");
                self.handlers += 1;
                return Ok(true);
            }
            for handler in handlers.cast::<PyList>().map_err(PyErr::from)?.iter() {
                self.handlers += 1;
                if !self.handler(&current, &handler)? {
                    return Ok(false);
                }
            }
            if !current.getattr(bound(py, &names.propagate))?.is_truthy()? {
                return Ok(true);
            }
            let parent = current.getattr(bound(py, &names.parent))?;
            if parent.is_none() {
                return Ok(true);
            }
            current = parent;
        }
        self.stock_above(0, "the loggers' parents make a loop");
        Ok(true)
    }

    /// Inspects a handler of the logger `owner`. Returns `false` if that needs the planning lock.
    fn handler(&mut self, owner: &Bound<'_, PyAny>, handler: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let py = handler.py();
        let state = match self.lock {
            PlanningLock::Held => handler_states::state(self.callbacks, handler)?,
            PlanningLock::Free => match handler_states::ready_state(self.callbacks, handler)? {
                Some(state) => state,
                None => return Ok(false),
            },
        };
        for class in state.types() {
            self.class_as_seen(class.clone_ref(py));
        }
        self.class(&handler.get_type());
        for word in state.words() {
            if !self.words.contains(word) {
                self.words.push(*word);
            }
        }
        self.held.extend(state.held().map(|object| object.clone_ref(py)));
        if let HandlerVerdict::Null = state.verdict {
            return Ok(true);
        }
        let level = handler.getattr(bound(py, &names().level));
        let level = level.ok().filter(|level| level.is_exact_instance_of::<PyInt>());
        let Some(level) = level.and_then(|level| level.extract::<i64>().ok()) else {
            self.record_above(0, &format!("the level of {} is no int", described(handler)));
            return Ok(true);
        };
        if level > i64::from(u16::MAX) {
            return Ok(true);
        }
        let level = level.max(0) as u16;
        let filters = handler.getattr(bound(py, &names().filters)).ok().filter(|filters| self.list(filters));
        let known_filters = filters.as_ref().map(Owned::of);
        let defers = matches!(&state.verdict, HandlerVerdict::Adopted(adoption) if adoption.deferral.is_some());
        let is_threaded = callbacks::is_thread_handler(handler.as_borrowed());
        self.last_handler =
            WeakReference::new(handler, None).ok().zip(WeakReference::new(owner, None).ok()).map(|(handler, owner)| {
                OnlyHandler { handler, level: level.into(), owner, filters: known_filters, defers, is_threaded }
            });
        let of_others = std::mem::take(&mut self.given);
        let verdict = match &filters {
            Some(filters) => self.verdict(filters)?,
            None => FiltersVerdict::Ask,
        };
        let own = std::mem::replace(&mut self.given, of_others);
        let verdict = if self.gives_the_same(own, verdict) { verdict } else { FiltersVerdict::Ask };
        match verdict {
            FiltersVerdict::Pass => {}
            FiltersVerdict::Drop => return Ok(true),
            FiltersVerdict::Ask => {
                self.record_above(u32::from(level), &format!("{}: it has a filter", described(handler)));
                return Ok(true);
            }
        }
        if let HandlerVerdict::Unopened(_) = state.verdict {
            self.opens_from = self.opens_from.min(u32::from(level));
            return Ok(true);
        }
        if let Err(reason) = self.target(py, &state, level) {
            let reason = format!("{}: {reason}", described(handler));
            self.record_above(u32::from(level), &reason);
        }
        Ok(true)
    }

    /// Adds the fields that the filters of a handler set. Returns `false` if another handler's records would have other
    /// fields.
    fn gives_the_same(&mut self, own: Vec<GivenField>, verdict: FiltersVerdict) -> bool {
        if own.is_empty() && self.of_handlers.as_ref().is_none_or(Vec::is_empty) {
            self.of_handlers = Some(own);
            return true;
        }
        let fits = verdict == FiltersVerdict::Pass && self.of_handlers.as_ref().is_none_or(|known| same(known, &own));
        self.of_handlers = Some(own);
        fits
    }

    fn target(&mut self, py: Python<'_>, state: &Arc<HandlerState>, min_level: u16) -> Result<(), String> {
        let adoption = match &state.verdict {
            HandlerVerdict::Null => return Ok(()),
            HandlerVerdict::Foreign(reason) | HandlerVerdict::Unopened(reason) => return Err(reason.clone()),
            HandlerVerdict::Adopted(adoption) => adoption,
        };
        let parts = adoption.format.as_ref().map_err(Clone::clone)?;
        if let Some((_, reason)) = &parts.own_texts.each_record {
            return Err(reason.clone());
        }
        let spec = parts.spec(self.globals, &adoption.terminator);
        let (format, needs) = format_id(py, spec, parts.field_texts())?;
        let sink = state.sink()?;
        if let Some((counter, seen)) = state.rotations_seen() {
            self.words.push(StreamWord::counter(&counter, seen));
            self.rotations.push(counter);
        }
        if self.targets.len() == MAX_TARGETS {
            return Err(format!("the logger has more than {MAX_TARGETS} handlers"));
        }
        let stream = adoption.text_stream(sink);
        if !stream.text.is_null() && !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
        self.kept.extend(adoption.kept.iter().map(|object| object.clone_ref(py)));
        if adoption.interactive {
            self.terminal = Some(sink);
        }
        self.targets.push(Target { sink, format, min_level });
        self.needs = self.needs.union(py, needs);
        self.formatter_texts = self.formatter_texts.union(parts.own_texts.for_record);
        Ok(())
    }

    pub fn route(&mut self, made_under: IdValidity, streams: StreamList) -> Option<Route> {
        if self.needs.marks && self.handlers > 1 {
            self.record_above(0, "a formatter leaves attributes on the record that other handlers may show");
        }
        let mut given = std::mem::take(&mut self.given);
        for field in self.of_handlers.take().unwrap_or_default() {
            if !given.iter().any(|known| known.is_same(&field)) {
                given.push(field);
            }
        }
        if !given.is_empty() {
            let names: Vec<usize> = given.iter().map(|field| field.name().as_ptr() as usize).collect();
            let is_twice = |index: usize| names[..index].contains(&names[index]);
            self.needs.given = GivenFields::stored(given).filter(|_| !(0..names.len()).any(is_twice));
            if self.needs.given.is_none() {
                self.record_above(0, "its filters set the same attribute in different ways");
            }
        }
        if self.record_from == 0 {
            return None;
        }
        let lowest = self.targets.iter().map(|target| target.min_level).min().unwrap_or(u16::MAX);
        let id = if self.targets.is_empty() {
            None
        } else {
            let definition = RouteDefinition { logger: self.name.clone(), targets: self.targets.clone() };
            let Some(id) = route_id(definition) else {
                self.record_above(0, "the table of routes is full");
                return None;
            };
            Some(id)
        };
        Some(Route {
            id,
            made_under,
            needs: self.needs,
            formatter_texts: self.formatter_texts,
            lowest,
            record_from: self.record_from,
            streams,
            terminal: self.terminal,
        })
    }
}

/// What a list of filters says about every record of a logger.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FiltersVerdict {
    /// Every record passes.
    Pass,
    /// Every record is dropped.
    Drop,
    /// The filters have to be run on each record.
    Ask,
}

/// True if `logging.Filter(prefix)` passes the records of the logger `name`.
fn passes_by_name(name: &str, prefix: &str) -> bool {
    match name.strip_prefix(prefix) {
        Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
        None => false,
    }
}

fn described(handler: &Bound<'_, PyAny>) -> String {
    handler.get_type().name().map_or_else(|_| "a handler".to_owned(), |name| name.to_string())
}
