//! Parses the description of a handler that `python/logspool/adoption/` makes.

use std::sync::{Arc, Mutex};

use logspool::sinks::{self, ConsoleOptions, FileOptions, SinkOptions};
use logspool_record::definition::Descriptor;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::handler_sink::HandlerSink;
use super::state::{Adoption, DescriptionInputs, HandlerState, HandlerVerdict};
use crate::interpreter::object::Owned;
use crate::option_values::refused;
use crate::plans::callbacks::PlanningCallbacks;
use crate::plans::class_version::ClassVersion;
use crate::plans::environment;
use crate::plans::format_parts::FormatParts;
use crate::plans::sink_options;
use crate::plans::text_stream::{StreamWord, TextStream};
use crate::plans::watched::WatchedPart;

impl HandlerState {
    /// Lets Python describe the handler. The state depends on the handler's class, whatever the description is.
    pub(super) fn describe(callbacks: &PlanningCallbacks, handler: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = handler.get_type();
        let address = handler.as_ptr() as usize;
        // Read before the handler is described: a change during the description then makes the state stale, never
        // wrong.
        let descriptions = environment::descriptions();
        let outlet = DescriptionInputs {
            parts: vec![WatchedPart::watch(address)],
            types: vec![ClassVersion::assigned(&class)],
            ..DescriptionInputs::default()
        };
        let formatting =
            DescriptionInputs { parts: vec![WatchedPart::watch_formatter_of(address)], ..DescriptionInputs::default() };
        let mut state = Self {
            descriptions,
            verdict: HandlerVerdict::Null,
            may_print: false,
            outlet,
            formatting,
            words: Vec::new(),
            held: Vec::new(),
            sink: Arc::new(HandlerSink::default()),
            rotated: Arc::new(Mutex::new(None)),
            reading: Mutex::new(None),
        };
        state.read(&callbacks.describe.bind(handler.py()).call1((handler,))?)?;
        Ok(state)
    }

    /// The state of the same handler with its current formatter; `None` if the whole handler has to be described again.
    pub(super) fn reformatted(
        &self,
        callbacks: &PlanningCallbacks,
        handler: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Self>> {
        let HandlerVerdict::Adopted(old) = &self.verdict else { return Ok(None) };
        if old.takes_entries() {
            return Ok(None);
        }
        let py = handler.py();
        let copied = |objects: &[Owned]| objects.iter().map(|object| object.clone_ref(py)).collect();
        let mut formatting = DescriptionInputs {
            parts: vec![WatchedPart::watch_formatter_of(handler.as_ptr() as usize)],
            ..DescriptionInputs::default()
        };
        let format = callbacks.describe_format.bind(handler.py()).call1((handler,))?;
        let adoption = Adoption {
            definition: old.definition.clone(),
            traits: old.traits,
            terminator: old.terminator.clone(),
            stream: old.stream,
            errors: old.errors.clone(),
            interactive: old.interactive,
            is_stream: old.is_stream,
            format: formatting.read(&format)?,
            deferral: deferral(&format)?,
            kept: copied(&old.kept),
        };
        let types = self.outlet.types.iter().map(|class| class.clone_ref(py)).collect();
        Ok(Some(Self {
            descriptions: self.descriptions,
            verdict: HandlerVerdict::Adopted(Box::new(adoption)),
            may_print: false,
            outlet: DescriptionInputs { types, parts: self.outlet.parts.clone(), ..DescriptionInputs::default() },
            formatting,
            words: self.words.clone(),
            held: copied(&self.held),
            sink: Arc::new(HandlerSink::default()),
            rotated: Arc::new(Mutex::new(None)),
            reading: Mutex::new(None),
        }))
    }

    fn read(&mut self, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        // Do not test the kind of the answer with conversions of pyo3 that fail. Their errors would keep the answer,
        // and so the handler, alive until a thread attaches through pyo3.
        if answer.is_none() {
            return Ok(());
        }
        let get = |name: &str| answer.getattr(name);
        read_watched(&get("watched")?, &mut self.words, &mut self.held)?;
        let kind: String = get("kind")?.extract()?;
        if kind == "foreign" || kind == "unopened" {
            let reason = get("reason")?.extract()?;
            self.may_print = get("may_print")?.extract()?;
            self.verdict =
                if kind == "foreign" { HandlerVerdict::Foreign(reason) } else { HandlerVerdict::Unopened(reason) };
            return Ok(());
        }
        let stream = get("stream")?;
        let buffer = get("buffer")?;
        let mut kept = vec![Owned::of(&stream)];
        let mut text_stream = TextStream { text: std::ptr::null_mut(), buffer: std::ptr::null_mut(), after: None };
        if !stream.is_none() {
            text_stream.text = stream.as_ptr();
        }
        if !buffer.is_none() {
            text_stream.buffer = buffer.as_ptr();
            kept.push(Owned::of(&buffer));
        }
        let terminator: String = get("terminator")?.extract()?;
        let fd: i32 = get("fd")?.extract()?;
        let path: String = get("path")?.extract()?;
        let descriptor = if fd < 0 { Descriptor::Open } else { Descriptor::Duplicate(fd) };
        let definition = match kind.as_str() {
            "console" if fd <= 2 => ConsoleOptions { descriptor: fd }.define(Descriptor::Open),
            // A named pipe or a device is opened by its path, so that messages of a later process can show the path.
            "console" if path.starts_with('/') => FileOptions { path }.define(descriptor),
            "console" => ConsoleOptions { descriptor: fd }.define(descriptor),
            kind => {
                let given = sink_options::given(kind, get("options")?.cast::<PyDict>()?)?;
                sinks::define(kind, given, descriptor).map_err(refused)?
            }
        };
        let format = get("format")?;
        let deferral = deferral(&format)?;
        let format = self.formatting.read(&format)?;
        self.verdict = HandlerVerdict::Adopted(Box::new(Adoption {
            traits: sinks::traits(&definition),
            definition,
            terminator,
            stream: text_stream,
            errors: get("errors")?.extract()?,
            interactive: get("interactive")?.extract()?,
            is_stream: get("is_stream")?.extract()?,
            format,
            deferral,
            kept,
        }));
        Ok(())
    }
}

/// Reads a `Watched` of `_streams.py`: words, and the objects that contain them.
///
/// # Errors
///
/// The answer has another form.
pub fn read_watched(answer: &Bound<'_, PyAny>, words: &mut Vec<StreamWord>, held: &mut Vec<Owned>) -> PyResult<()> {
    for watched in answer.cast::<PyTuple>()?.iter() {
        let (object, offset, mask, value) = watched.extract::<(Bound<'_, PyAny>, usize, u64, u64)>()?;
        if mask != 0 {
            words.push(StreamWord::new(object.as_ptr(), offset, mask, value));
        }
        held.push(Owned::of(&object));
    }
    Ok(())
}

/// The `Deferral` of a `Format` of `_descriptions.py`.
fn deferral(format: &Bound<'_, PyAny>) -> PyResult<Option<Owned>> {
    let deferral = format.getattr("deferral")?;
    Ok((!deferral.is_none()).then(|| Owned::of(&deferral)))
}

impl DescriptionInputs {
    /// Reads a `Format` of `_descriptions.py`, and records the classes and objects from which it was made.
    fn read(&mut self, answer: &Bound<'_, PyAny>) -> PyResult<Result<FormatParts, String>> {
        for class in answer.getattr("types")?.cast::<PyTuple>()?.iter() {
            let (class, state) = class.extract::<(Bound<'_, PyType>, u64)>()?;
            // The version tag is the lower half of `class_state`.
            self.types.push(ClassVersion::seen(&class, state as u32));
        }
        for part in answer.getattr("parts")?.cast::<PyTuple>()?.iter() {
            let (part, seen) = part.extract::<(Bound<'_, PyAny>, u64)>()?;
            self.parts.push(WatchedPart::watch(part.as_ptr() as usize).after(seen));
        }
        read_watched(&answer.getattr("watched")?, &mut self.words, &mut self.held)?;
        let form = answer.getattr("form")?;
        Ok(match form.cast::<PyString>() {
            Ok(reason) => Err(reason.extract()?),
            Err(_) => Ok(FormatParts::read(&form)?),
        })
    }
}
