//! Visits the handlers of one logger and of its parents as stock logging would, and collects the inputs of the plan.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use logspool_record::definition::{MAX_TARGETS, RouteDefinition, Target};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyType};

use crate::interpreter::failure::Failure;
use crate::interpreter::names::{self, bound, names};
use crate::interpreter::object::Owned;
use crate::plans::adoption::{self, HandlerState, HandlerVerdict};
use crate::plans::environment::IdValidity;
use crate::plans::ids::{format_id, route_id};
use crate::plans::logging_globals::LoggingGlobals;
use crate::plans::needs::Needs;
use crate::plans::plan::{ClassVersion, ListShape, Route};
use crate::plans::python_half::{MAX_PARENTS, PythonHalf};
use crate::plans::text_stream::{StreamList, StreamWord, TextStream};
use crate::plans::watched;

/// Whether a plan is made under the planning lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PlanningLock {
    /// The planning lock is held. The builder may describe handlers and open sinks.
    Held,
    /// The planning lock is not held. All handlers must be described already, and their sinks must be open.
    Free,
}

pub struct PlanBuilder<'a> {
    pub half: &'a PythonHalf,
    pub lock: PlanningLock,
    pub globals: &'a LoggingGlobals,
    pub types: Vec<ClassVersion>,
    pub lists: Vec<ListShape>,
    pub targets: Vec<Target>,
    pub streams: Vec<TextStream>,
    pub words: Vec<StreamWord>,
    /// Counters of file switches. Some of `words` are inside these counters.
    pub rotations: Vec<Arc<AtomicU64>>,
    pub needs: Needs,
    /// Stock logging handles records of this level and above.
    pub stock_from: u32,
    /// Records of this level and above are taken by a handler that opens its file with its first record.
    pub opens_from: u32,
    pub reason: String,
    /// True if the logger instance does not override `isEnabledFor`.
    pub gate_is_stock: bool,
    pub handlers: usize,
    pub terminal: Option<u32>,
    /// References to the visited loggers and to the handlers' streams.
    pub kept: Vec<Owned>,
    /// References to the objects that contain `words`, and to the objects to which `words` point.
    pub held: Vec<Owned>,
}

impl PlanBuilder<'_> {
    /// If `found` is not 0, lets stock logging handle all levels, for this reason.
    pub fn note(&mut self, found: u32, reason: &str) {
        if found != 0 {
            self.stock_above(0, reason);
        }
    }

    /// Lets stock logging handle records of `level` and above, and sets the reason. Does nothing if stock logging
    /// already handles them.
    pub fn stock_above(&mut self, level: u32, reason: &str) {
        if level < self.stock_from {
            self.stock_from = level;
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

    /// Lets stock logging handle all levels if the logger has a filter, or if an attribute of the instance overrides a
    /// method.
    pub fn instance(&mut self, logger: &Bound<'_, PyAny>) -> PyResult<()> {
        let attributes = logger.getattr("__dict__")?;
        let attributes = attributes.cast::<PyDict>()?;
        for name in &self.half.logger_methods {
            if attributes.contains(name)? {
                let name = name.bind(logger.py()).to_str()?;
                self.gate_is_stock &= name != names::IS_ENABLED_FOR;
                self.stock_above(0, &format!("{name} is replaced on the logger"));
            }
        }
        let filters = logger.getattr("filters")?;
        if !self.list(&filters) {
            self.stock_above(0, "logger.filters is no plain list");
        } else if filters.is_truthy()? {
            self.stock_above(0, "the logger has a filter");
        }
        Ok(())
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

    /// Inspects a handler. Returns `false` if that needs the planning lock.
    fn handler(&mut self, handler: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let py = handler.py();
        let state = match self.lock {
            PlanningLock::Held => adoption::state(self.half, handler)?,
            PlanningLock::Free => match adoption::ready_state(self.half, handler)? {
                Some(state) => state,
                None => return Ok(false),
            },
        };
        for class in state.types() {
            self.class_as_seen(class.clone_ref(py));
        }
        self.class(&handler.get_type());
        for word in &state.words {
            if !self.words.contains(word) {
                self.words.push(*word);
            }
        }
        self.held.extend(state.held.iter().map(|object| object.clone_ref(py)));
        if let HandlerVerdict::Null = state.verdict {
            return Ok(true);
        }
        let level = handler.getattr(bound(py, &names().level));
        let level = level.ok().filter(|level| level.is_exact_instance_of::<PyInt>());
        let Some(level) = level.and_then(|level| level.extract::<i64>().ok()) else {
            self.stock_above(0, &format!("the level of {} is no int", described(handler)));
            return Ok(true);
        };
        if level > i64::from(u16::MAX) {
            return Ok(true);
        }
        let level = level.max(0) as u16;
        if let HandlerVerdict::Unopened(_) = state.verdict {
            self.opens_from = self.opens_from.min(u32::from(level));
            return Ok(true);
        }
        if let Err(reason) = self.target(handler, &state, level) {
            let reason = format!("{}: {reason}", described(handler));
            self.stock_above(u32::from(level), &reason);
        }
        Ok(true)
    }

    fn target(&mut self, handler: &Bound<'_, PyAny>, state: &Arc<HandlerState>, min_level: u16) -> Result<(), String> {
        let py = handler.py();
        let adoption = match &state.verdict {
            HandlerVerdict::Null => return Ok(()),
            HandlerVerdict::Foreign(reason) | HandlerVerdict::Unopened(reason) => return Err(reason.clone()),
            HandlerVerdict::Adopted(adoption) => adoption,
        };
        let filters = handler.getattr(bound(py, &names().filters)).map_err(|_| "it has no filters".to_owned())?;
        if !self.list(&filters) {
            return Err("its filters are no plain list".to_owned());
        }
        if filters.is_truthy().unwrap_or(true) {
            return Err("it has a filter".to_owned());
        }
        let parts = adoption.format.as_ref().map_err(Clone::clone)?;
        let spec = parts.spec(self.globals, &adoption.terminator);
        let (format, needs) = format_id(py, spec)?;
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
        Ok(())
    }

    pub fn route(&mut self, name: &str, made_under: IdValidity, streams: StreamList) -> Option<Route> {
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

fn described(handler: &Bound<'_, PyAny>) -> String {
    handler.get_type().name().map_or_else(|_| "a handler".to_owned(), |name| name.to_string())
}
