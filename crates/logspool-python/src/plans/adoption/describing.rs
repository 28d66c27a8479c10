//! Parses the description of a handler that `python/logspool/_adopt.py` makes.

use std::sync::{Arc, Mutex};

use logspool_record::definition::{Compression, Descriptor, RotationRules, SinkDefinition, SinkKind, Zone};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use super::state::{Adoption, Inputs, Sink, State, Verdict};
use crate::interpreter::object::Owned;
use crate::plans::environment;
use crate::plans::format_parts::FormatParts;
use crate::plans::plan::ClassVersion;
use crate::plans::python_half::PythonHalf;
use crate::plans::text_stream::{TextStream, Word};
use crate::plans::watched::Part;

impl State {
    /// Asks `_adopt.py` to describe the handler. Every answer depends on the handler's class.
    pub(super) fn describe(half: &PythonHalf, handler: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = handler.get_type();
        let address = handler.as_ptr() as usize;
        // Read first, so that a change from here on makes the state stale and never wrong.
        let descriptions = environment::descriptions();
        let outlet = Inputs { parts: vec![Part::watch(address)], types: vec![ClassVersion::assigned(&class)] };
        let formatting = Inputs { parts: vec![Part::watch_formatter_of(address)], types: Vec::new() };
        let mut state = Self {
            descriptions,
            verdict: Verdict::Null,
            outlet,
            formatting,
            words: Vec::new(),
            held: Vec::new(),
            sink: Arc::new(Mutex::new(Sink::None)),
            rotated: Arc::new(Mutex::new(None)),
            reading: Mutex::new(None),
        };
        state.read(&half.describe.bind(handler.py()).call1((handler,))?)?;
        Ok(state)
    }

    /// The state of the same handler with its current formatter; `None` if the whole handler has to be described again.
    pub(super) fn reformatted(&self, half: &PythonHalf, handler: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Verdict::Adopted(old) = &self.verdict else { return Ok(None) };
        if old.is_service() {
            return Ok(None);
        }
        let py = handler.py();
        let copied = |objects: &[Owned]| objects.iter().map(|object| object.again(py)).collect();
        let mut formatting =
            Inputs { parts: vec![Part::watch_formatter_of(handler.as_ptr() as usize)], types: Vec::new() };
        let format = half.describe_format.bind(handler.py()).call1((handler,))?;
        let adoption = Adoption {
            definition: old.definition.clone(),
            terminator: old.terminator.clone(),
            stream: old.stream,
            errors: old.errors.clone(),
            interactive: old.interactive,
            format: formatting.read(&format)?,
            kept: copied(&old.kept),
        };
        let types = self.outlet.types.iter().map(|class| class.again(py)).collect();
        Ok(Some(Self {
            descriptions: self.descriptions,
            verdict: Verdict::Adopted(Box::new(adoption)),
            outlet: Inputs { types, parts: self.outlet.parts.clone() },
            formatting,
            words: self.words.clone(),
            held: copied(&self.held),
            sink: Arc::new(Mutex::new(Sink::None)),
            rotated: Arc::new(Mutex::new(None)),
            reading: Mutex::new(None),
        }))
    }

    fn read(&mut self, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        // Errors of pyo3 must not distinguish the kinds of answer. They would keep the answer, and so the handler,
        // alive until a thread attaches through pyo3.
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
            self.held.push(Owned::of(&object));
        }
        let kind: String = get("kind")?.extract()?;
        if kind == "foreign" || kind == "unopened" {
            let reason = get("reason")?.extract()?;
            self.verdict = if kind == "foreign" { Verdict::Foreign(reason) } else { Verdict::Unopened(reason) };
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
        let (kind, descriptor) = match kind.as_str() {
            "file" => (SinkKind::File { path }, Descriptor::Duplicate(fd)),
            "watched" => (SinkKind::WatchedFile { path }, Descriptor::Duplicate(fd)),
            "rotating" => (rotating(path, &get("options")?)?, Descriptor::Duplicate(fd)),
            // The address was checked when the handler was made.
            "service" => match path.parse() {
                Ok(address) => (SinkKind::Service { address }, Descriptor::Open),
                Err(error) => return Err(PyValueError::new_err(format!("{error}"))),
            },
            "timed" => (timed(path, &get("options")?)?, Descriptor::Duplicate(fd)),
            "console" if fd <= 2 => (SinkKind::Console { descriptor: fd }, Descriptor::Open),
            // A named pipe or device is opened by its name, so that messages in a later process can name it.
            "console" if path.starts_with('/') => (SinkKind::File { path }, Descriptor::Duplicate(fd)),
            "console" => (SinkKind::Console { descriptor: fd }, Descriptor::Duplicate(fd)),
            other => return Err(PyValueError::new_err(format!("unknown kind of sink: {other}"))),
        };
        let format = self.formatting.read(&get("format")?)?;
        self.verdict = Verdict::Adopted(Box::new(Adoption {
            definition: SinkDefinition { kind, descriptor },
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
    /// Reads a `Format`, and records the classes and objects that it was made from.
    fn read(&mut self, answer: &Bound<'_, PyAny>) -> PyResult<Result<FormatParts, String>> {
        for class in answer.getattr("types")?.cast::<PyTuple>()?.iter() {
            let (class, state) = class.extract::<(Bound<'_, PyType>, u64)>()?;
            // The version tag is the lower half of `class_state`.
            self.types.push(ClassVersion::seen(&class, state as u32));
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

fn rules(name: &str) -> PyResult<RotationRules> {
    match name {
        "early" => Ok(RotationRules::Early),
        "current" => Ok(RotationRules::Current),
        "together" => Ok(RotationRules::Together { compress: None }),
        "together.gzip" => Ok(RotationRules::Together { compress: Some(Compression::Gzip) }),
        "together.zstd" => Ok(RotationRules::Together { compress: Some(Compression::Zstd) }),
        other => Err(PyValueError::new_err(format!("unknown rules of rotation: {other}"))),
    }
}

fn rotating(path: String, options: &Bound<'_, PyAny>) -> PyResult<SinkKind> {
    let (max_bytes, backup_count, terminator_chars, rules): (_, _, _, String) = options.extract()?;
    let rules = self::rules(&rules)?;
    Ok(SinkKind::RotatingFile { path, max_bytes, backup_count, terminator_chars, rules })
}

fn timed(path: String, options: &Bound<'_, PyAny>) -> PyResult<SinkKind> {
    type Options = (String, u32, u32, bool, Option<u32>, i64, String);
    let (when, interval, backup_count, utc, at_time_seconds, rollover_at, rules): Options = options.extract()?;
    let zone = if utc { Zone::Utc } else { Zone::Local };
    let rules = self::rules(&rules)?;
    let rollover_at = Some(rollover_at);
    Ok(SinkKind::TimedRotatingFile { path, when, interval, backup_count, zone, at_time_seconds, rollover_at, rules })
}
