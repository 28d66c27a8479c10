//! How records of one adopted handler are read by value, within one id epoch of the pipeline.

use std::sync::{Arc, Mutex, PoisonError};

use logspool::pipeline;
use logspool_record::definition::{RouteDefinition, Target};
use logspool_record::format::{Format, RenderState};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::{self, Failure};
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::callbacks::{MAX_PARENTS, locked};
use crate::plans::format_parts::FormatParts;
use crate::plans::ids::{format_id, route_id};
use crate::plans::logging_globals::{LoggingGlobals, logging_globals};
use crate::plans::needs::Needs;
use crate::plans::plan::ListShape;
use crate::plans::watched;

/// Everything known about the records of one handler, within one id epoch of the pipeline.
pub struct RecordReading {
    /// Id epoch of the pipeline when the ids were defined.
    pub id_epoch: u64,
    /// The facts that are the same for all loggers, such as level names and clock arithmetic.
    pub globals: Arc<LoggingGlobals>,
    /// The format's id and the values that the format shows.
    pub format: (u32, Needs),
    /// Attributes of a record that affect its line.
    pub line_attributes: LineAttributes,
    /// The compiled format. It makes the text that Python's formatter would set as `asctime` on a record.
    compiled: Format,
    render: Mutex<RenderState>,
    /// The logger names of the records seen so far.
    names: Mutex<Vec<Arc<LoggerName>>>,
}

/// Which attributes of a record affect its line, in addition to the attributes that every format uses.
#[derive(Debug, Clone, Copy)]
pub struct LineAttributes {
    /// True if the format shows the process id.
    pub process_id: bool,
    /// True if the format shows `filename` or `module`, which a record has in addition to `pathname`.
    pub file: bool,
    /// True if the format passes the attributes as keywords, so that their names have to be `str`.
    pub attribute_names: bool,
}

/// Facts about one logger name, within one epoch.
pub struct LoggerName {
    object: Owned,
    epoch: u64,
    pub route: u32,
    /// The lists of handlers and filters. While they are unchanged, only this handler gets the logger's records. `None`
    /// if another handler or a filter gets them, too.
    pub last_stop: Option<Vec<ListShape>>,
}

/// Maximum number of logger names per handler. Records with further names are formatted in the caller.
///
/// Chosen: the lookup compares the addresses one by one, and programs log through a few dozen loggers.
const MAX_NAMES: usize = 64;

/// Room for the text of a time. Chosen: Python's own format takes 23 bytes.
const ASCTIME_BYTES: usize = 32;

impl RecordReading {
    /// Makes a `RecordReading` without any logger names.
    pub fn new(
        id_epoch: u64,
        globals: Arc<LoggingGlobals>,
        format: (u32, Needs),
        compiled: Format,
        line_attributes: LineAttributes,
    ) -> Self {
        Self { id_epoch, globals, format, line_attributes, compiled, render: Mutex::default(), names: Mutex::default() }
    }

    /// Sets the attributes `message` and `asctime`, as Python's formatter does. The record's class must have the stock
    /// `__setattr__`.
    ///
    /// # Errors
    ///
    /// Setting an attribute raised an error.
    pub fn leave_texts(&self, record: Object<'_, '_>, time: i64, message: &Owned) -> Result<(), Failure> {
        let py = record.py();
        let set = |name: &Owned, value: &Owned| {
            // SAFETY: live objects, and the thread is attached.
            let failed = unsafe { ffi::PyObject_SetAttr(record.as_ptr(), name.as_ptr(), value.as_ptr()) } < 0;
            if failed { Err(Failure::of_error(py)) } else { Ok(()) }
        };
        let asctime = self.asctime(py, time)?;
        set(&names().message, message)?;
        if let Some(asctime) = asctime {
            set(&names().asctime, &asctime)?;
        }
        Ok(())
    }

    /// The text that Python's formatter would set as `asctime` on a record of this time; `None` if the format does not
    /// show it.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn asctime(&self, py: Python<'_>, time: i64) -> Result<Option<Owned>, Failure> {
        let mut asctime = Vec::with_capacity(ASCTIME_BYTES);
        let shows_time = {
            let mut state = self.render.lock().unwrap_or_else(PoisonError::into_inner);
            self.compiled.push_asctime(time, &mut state, &mut asctime)
        };
        if !shows_time {
            return Ok(None);
        }
        object::str_of(py, &asctime).map(Some).ok_or_else(|| Failure::of_error(py))
    }

    /// The facts about a logger name: the route of its records, and whether only this handler gets them.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if there are more than `MAX_NAMES` names, or if the core's table of routes is full.
    pub fn name(
        &self,
        handler: Object<'_, '_>,
        name: Object<'_, '_>,
        sink: u32,
        epoch: u64,
    ) -> Result<Arc<LoggerName>, Failure> {
        {
            let known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known.iter().find(|known| known.object.as_ptr() == name.as_ptr());
            if let Some(found) = found.filter(|found| found.epoch == epoch) {
                return Ok(found.clone());
            }
            if found.is_none() && known.len() == MAX_NAMES {
                return Err(Failure::Stock);
            }
        }
        // The lock is released before Python code runs.
        let logger = object::text(name).ok_or(Failure::Stock)?.to_owned();
        let last_stop = failure::unless_stock(last_stop(&handler, &logger))?.flatten();
        let definition =
            RouteDefinition { logger, targets: vec![Target { sink, format: self.format.0, min_level: 0 }] };
        let route = route_id(definition).ok_or(Failure::Stock)?;
        let made = Arc::new(LoggerName { object: Owned::of(&name), epoch, route, last_stop });
        let old = {
            let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            match known.iter_mut().find(|known| known.object.as_ptr() == name.as_ptr()) {
                Some(old) => Some(std::mem::replace(old, made.clone())),
                None => {
                    known.push(made.clone());
                    None
                }
            }
        };
        // Dropped after the lock is released, because the entry may hold the last reference to a list of handlers.
        drop(old);
        Ok(made)
    }
}

/// Finds out how records of a handler are read by value.
///
/// # Errors
///
/// [`Failure::Stock`] if the handler's lines have to be made in the caller.
pub fn reading(
    py: Python<'_>,
    parts: &FormatParts,
    terminator: &str,
    descriptions: u64,
) -> Result<RecordReading, Failure> {
    let id_epoch = pipeline::id_epoch();
    let globals = locked(py, |callbacks| logging_globals(callbacks, py, descriptions))?;
    // A record does not keep the nanoseconds from which `relativeCreated` was computed.
    if !globals.record_reason.is_empty() || parts.mentions("relativeCreated") {
        return Err(Failure::Stock);
    }
    let spec = parts.spec(&globals, terminator);
    let compiled = Format::compile(&spec).map_err(|_| Failure::Stock)?;
    let format = format_id(py, spec, parts.field_texts()).map_err(|_| Failure::Stock)?;
    if pipeline::id_epoch() != id_epoch {
        return Err(Failure::Stock);
    }
    let line_attributes = LineAttributes {
        process_id: parts.mentions("process"),
        file: parts.mentions("filename") || parts.mentions("module"),
        attribute_names: parts.takes_keywords(),
    };
    Ok(RecordReading::new(id_epoch, globals, format, compiled, line_attributes))
}

/// The lists of handlers and filters, if they make `handler` the only handler that gets the records of the logger with
/// this name. `None` if another handler or a filter gets them.
///
/// # Errors
///
/// The errors of [`locked`].
pub fn last_stop(handler: &Bound<'_, PyAny>, name: &str) -> Result<Option<Vec<ListShape>>, Failure> {
    let py = handler.py();
    locked(py, |_| {
        let class = py.import("logging")?.getattr("Logger")?;
        let root = class.getattr("root")?;
        let mut logger = match root.getattr("name")?.extract::<String>()? {
            root_name if root_name == name => root,
            _ => class.getattr("manager")?.getattr("loggerDict")?.get_item(name)?,
        };
        let mut lists = Vec::new();
        let mut add = |list: &Bound<'_, PyAny>| ListShape::of(list).map(|shape| lists.push(shape)).is_some();
        let filters = handler.getattr("filters")?;
        let mut alone = add(&filters) && filters.is_empty()?;
        let mut found = 0;
        for _ in 0..MAX_PARENTS {
            watched::watch_loggers([logger.as_ptr() as usize]);
            let (handlers, filters) = (logger.getattr("handlers")?, logger.getattr("filters")?);
            alone &= add(&handlers) && add(&filters) && filters.is_empty()?;
            for other in handlers.try_iter()? {
                alone &= other?.is(handler);
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
