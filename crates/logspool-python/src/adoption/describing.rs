//! Reads what `python/logspool/_adopt.py` says of a handler.

use std::sync::{Arc, Mutex};

use logspool::sinks::{self, ConsoleOptions, FileOptions, SinkOptions};
use logspool_record::definition::{Descriptor, Zone};
use logspool_record::format::{Extras, FormatSpec, Layout, Style};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::{Adoption, Inputs, Sink, State, Verdict};
use crate::environment;
use crate::hooks::Part;
use crate::object::Owned;
use crate::plan::{self, TextStream};
use crate::planning::Adopt;
use crate::sink_options;
use crate::stream::Word;

/// The part of a [`FormatSpec`] that a formatter decides.
#[derive(Clone)]
pub struct FormatParts {
    layout: Layout,
    date_format: Option<String>,
    default_time_format: String,
    default_msec_format: Option<String>,
    zone: Zone,
    /// Names of levels as this formatter shows them; `None` takes those of `logging`.
    level_names: Option<Vec<(u16, String)>>,
}

impl State {
    /// Asks what the handler is. Whatever the answer, it depends on the handler's class.
    pub(super) fn describe(adopt: &Adopt, handler: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = handler.get_type();
        let address = handler.as_ptr() as usize;
        // Read first: a change from here on makes the state stale, not wrong.
        let descriptions = environment::descriptions();
        let outlet = Inputs { parts: vec![Part::watch(address)], types: vec![seen(&class)] };
        let formatting = Inputs { parts: vec![Part::watch_formatter_of(address)], types: Vec::new() };
        let mut state = Self {
            descriptions,
            verdict: Verdict::Null,
            outlet,
            formatting,
            words: Vec::new(),
            held: Vec::new(),
            sink: Arc::new(Mutex::new(Sink::None)),
            turned: Arc::new(Mutex::new(None)),
            reading: Mutex::new(None),
        };
        state.read(&adopt.describe.bind(handler.py()).call1((handler,))?)?;
        Ok(state)
    }

    /// The same handler with the formatter that it has now; `None` where all of it has to be described.
    pub(super) fn reformatted(&self, adopt: &Adopt, handler: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Verdict::Adopted(old) = &self.verdict else { return Ok(None) };
        if old.takes_entries() {
            return Ok(None);
        }
        let copied = |objects: &[Owned]| objects.iter().map(again).collect();
        let mut formatting =
            Inputs { parts: vec![Part::watch_formatter_of(handler.as_ptr() as usize)], types: Vec::new() };
        let format = adopt.describe_format.bind(handler.py()).call1((handler,))?;
        let adoption = Adoption {
            definition: old.definition.clone(),
            traits: old.traits,
            terminator: old.terminator.clone(),
            stream: old.stream,
            errors: old.errors.clone(),
            interactive: old.interactive,
            format: formatting.read(&format)?,
            kept: copied(&old.kept),
        };
        let types = self.outlet.types.iter().map(|(class, tag)| (again(class), *tag)).collect();
        Ok(Some(Self {
            descriptions: self.descriptions,
            verdict: Verdict::Adopted(Box::new(adoption)),
            outlet: Inputs { types, parts: self.outlet.parts.clone() },
            formatting,
            words: self.words.clone(),
            held: copied(&self.held),
            sink: Arc::new(Mutex::new(Sink::None)),
            turned: Arc::new(Mutex::new(None)),
            reading: Mutex::new(None),
        }))
    }

    fn read(&mut self, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        // Errors of pyo3 are not used to tell kinds apart: they would keep the answer, and with it the handler, alive
        // until somebody attaches by pyo3.
        if let Ok(reason) = answer.cast::<PyString>() {
            if reason != "null" {
                self.verdict = Verdict::Foreign(reason.extract()?);
            }
            return Ok(());
        }
        let get = |name: &str| answer.getattr(name);
        for watched in get("watched")?.cast::<PyTuple>()?.iter() {
            let (object, offset, mask, value) = watched.extract::<(Bound<'_, PyAny>, usize, u64, u64)>()?;
            if mask != 0 {
                self.words.push(Word::new(object.as_ptr(), offset, mask, value));
            }
            self.held.push(owned(&object));
        }
        let kind: String = get("kind")?.extract()?;
        if kind == "foreign" || kind == "unopened" {
            let reason = get("reason")?.extract()?;
            self.verdict = if kind == "foreign" { Verdict::Foreign(reason) } else { Verdict::Unopened(reason) };
            return Ok(());
        }
        let stream = get("stream")?;
        let buffer = get("buffer")?;
        let mut kept = vec![owned(&stream)];
        let mut text_stream = TextStream { text: std::ptr::null_mut(), buffer: std::ptr::null_mut(), after: None };
        if !stream.is_none() {
            text_stream.text = stream.as_ptr();
        }
        if !buffer.is_none() {
            text_stream.buffer = buffer.as_ptr();
            kept.push(owned(&buffer));
        }
        let terminator: String = get("terminator")?.extract()?;
        let fd: i32 = get("fd")?.extract()?;
        let path: String = get("path")?.extract()?;
        let descriptor = if fd < 0 { Descriptor::Open } else { Descriptor::Duplicate(fd) };
        let definition = match kind.as_str() {
            "console" if fd <= 2 => ConsoleOptions { descriptor: fd }.define(Descriptor::Open),
            // A pipe or device that has a name: the name is what a later start can be told about.
            "console" if path.starts_with('/') => FileOptions { path }.define(descriptor),
            "console" => ConsoleOptions { descriptor: fd }.define(descriptor),
            kind => {
                let given = sink_options::given(get("options")?.cast::<PyDict>()?)?;
                sinks::define(kind, given, descriptor).map_err(sink_options::refused)?
            }
        };
        let format = self.formatting.read(&get("format")?)?;
        self.verdict = Verdict::Adopted(Box::new(Adoption {
            traits: sinks::traits(&definition),
            definition,
            terminator,
            stream: text_stream,
            errors: get("errors")?.extract()?,
            interactive: get("interactive")?.extract()?,
            format,
            kept,
        }));
        Ok(())
    }
}

impl Inputs {
    /// Reads a `Format`, and remembers what it was made from.
    fn read(&mut self, answer: &Bound<'_, PyAny>) -> PyResult<Result<FormatParts, String>> {
        for class in answer.getattr("types")?.cast::<PyTuple>()?.iter() {
            let (class, state) = class.extract::<(Bound<'_, PyAny>, u64)>()?;
            // The version tag is the lower half of `class_state`.
            self.types.push((owned(&class), state as u32));
        }
        for part in answer.getattr("parts")?.cast::<PyTuple>()?.iter() {
            let (part, seen) = part.extract::<(Bound<'_, PyAny>, u64)>()?;
            self.parts.push(Part::watch(part.as_ptr() as usize).after(seen));
        }
        let form = answer.getattr("form")?;
        Ok(match form.cast::<PyString>() {
            Ok(reason) => Err(reason.extract()?),
            Err(_) => Ok(FormatParts::read(&form)?),
        })
    }
}

fn owned(object: &Bound<'_, PyAny>) -> Owned {
    // SAFETY: a live object, attached.
    unsafe { Owned::borrow(object.as_ptr()) }
}

fn again(object: &Owned) -> Owned {
    // SAFETY: a live object; attached, as whoever describes is.
    unsafe { Owned::borrow(object.as_ptr()) }
}

/// A class with the version that it has.
fn seen(class: &Bound<'_, PyType>) -> (Owned, u32) {
    // SAFETY: a live type, attached.
    unsafe { (Owned::borrow(class.as_ptr()), plan::assigned_tag(class.as_ptr())) }
}

impl FormatParts {
    fn read(answer: &Bound<'_, PyAny>) -> PyResult<Self> {
        let get = |name: &str| answer.getattr(name);
        let style: String = get("style")?.extract()?;
        let layout = match style.as_str() {
            "json" => Layout::Json {
                fields: get("fields")?.extract()?,
                extras: if get("extras")?.extract()? { Extras::Append } else { Extras::Omit },
            },
            "entry" => Layout::Entry,
            _ => Layout::Text {
                style: match style.as_str() {
                    "%" => Style::Percent,
                    "{" => Style::Brace,
                    "$" => Style::Dollar,
                    other => return Err(PyValueError::new_err(format!("unknown style: {other}"))),
                },
                template: get("template")?.extract()?,
            },
        };
        Ok(Self {
            layout,
            date_format: get("datefmt")?.extract()?,
            default_time_format: get("default_time_format")?.extract()?,
            default_msec_format: get("default_msec_format")?.extract()?,
            zone: if get("utc")?.extract()? { Zone::Utc } else { Zone::Local },
            level_names: get("level_names")?.extract()?,
        })
    }

    /// Whether a text shows the attribute, or may.
    pub fn mentions(&self, attribute: &str) -> bool {
        match &self.layout {
            Layout::Text { template, .. } => template.contains(attribute),
            Layout::Json { fields, .. } => fields.iter().any(|(_, shown)| shown == attribute),
            Layout::Entry => true,
        }
    }

    /// Whether the attributes of a record are passed as keywords, whose names have to be text.
    pub fn takes_keywords(&self) -> bool {
        !matches!(self.layout, Layout::Text { style: Style::Percent, .. })
    }

    /// The whole specification, for a sink with that terminator.
    pub fn spec(&self, world: &crate::world::World, terminator: &str) -> FormatSpec {
        FormatSpec {
            layout: self.layout.clone(),
            date_format: self.date_format.clone(),
            default_time_format: self.default_time_format.clone(),
            default_msec_format: self.default_msec_format.clone(),
            zone: self.zone,
            level_names: self.level_names.as_ref().unwrap_or(&world.level_names).clone(),
            start_time_ns: world.start_time_ns,
            arithmetic: world.arithmetic,
            python_minor: world.python_minor,
            process_id: if world.shows_process { std::process::id() } else { 0 },
            terminator: terminator.to_owned(),
        }
    }
}
