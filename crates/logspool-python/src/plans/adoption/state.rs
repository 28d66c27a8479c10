//! The state of one adopted handler: its description and the sink of its records.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use logspool::pipeline;
use logspool::sinks::{SinkInput, Traits};
use logspool_record::definition::SinkDefinition;
use pyo3::Python;

use crate::interpreter::failure::{self, Failure};
use crate::interpreter::object::Owned;
use crate::plans::environment;
use crate::plans::format_parts::FormatParts;
use crate::plans::plan::ClassVersion;
use crate::plans::reading::{RecordReading, reading};
use crate::plans::text_stream::{StreamWord, TextStream};
use crate::plans::watched::WatchedPart;

/// How a handler is served.
pub enum HandlerVerdict {
    /// A `NullHandler`: accepts every record and does nothing.
    Null,
    /// Stock logging serves the handler; the text gives the reason.
    Foreign(String),
    /// Stock logging serves the handler until its first record opens its file; the text gives the reason.
    Unopened(String),
    /// The handler's output goes through the queue.
    Adopted(Box<Adoption>),
}

/// The description of an adopted handler.
pub struct Adoption {
    /// The sink of its lines.
    pub definition: SinkDefinition,
    /// How the line treats the sink.
    pub traits: Traits,
    /// The text at the end of each line.
    pub terminator: String,
    /// Its text stream and buffer, null if it has none; `kept` holds them.
    pub stream: TextStream,
    /// `stream.errors`, for lines that are encoded in the caller.
    pub errors: String,
    /// True if a line must be on the terminal when the call returns.
    pub interactive: bool,
    /// Its formatter in a form that the collector can use, or the reason why there is none.
    pub format: Result<FormatParts, String>,
    /// References that keep stream and buffer alive.
    pub kept: Vec<Owned>,
}

/// Everything known about one handler.
pub struct HandlerState {
    /// [`environment::descriptions`], read before the handler was described.
    pub(super) descriptions: u64,
    /// How it is served.
    pub verdict: HandlerVerdict,
    /// The inputs of the verdict, except those of the format.
    pub(super) outlet: DescriptionInputs,
    /// The inputs of the format, if the handler is adopted.
    pub(super) formatting: DescriptionInputs,
    /// Words in the handler's stream on which the state depends.
    pub words: Vec<StreamWord>,
    /// Objects that contain these words, or to which the words point.
    pub held: Vec<Owned>,
    /// Shared with earlier and later states of the handler, as long as they name the same destination.
    pub(super) sink: Arc<Mutex<Sink>>,
    /// How often that sink has switched files, and the same count when the handler's stream last followed.
    pub(super) rotated: Arc<Mutex<Option<RotationCounter>>>,
    /// How its records are read by value, with the generation; the inner `None` means they are not.
    pub(super) reading: Mutex<Option<(u64, Option<Arc<RecordReading>>)>>,
}

/// The inputs of one part of a description.
#[derive(Default)]
pub(super) struct DescriptionInputs {
    /// Classes, with their version tags at that time.
    pub(super) types: Vec<ClassVersion>,
    /// Objects, with their change counts at that time.
    pub(super) parts: Vec<WatchedPart>,
}

/// The sink of a handler.
pub(super) enum Sink {
    /// Not opened yet.
    None,
    /// Opened in this generation, with this id.
    Open(u64, u32),
    /// Taken away to be closed: the handler has another state now, or none.
    Gone,
}

#[derive(Clone)]
pub(super) struct RotationCounter {
    id_epoch: u64,
    counter: Arc<AtomicU64>,
    pub(super) seen: u64,
}

impl HandlerState {
    /// True if handler, formatter, classes and stream are unchanged, and the stream names the sink's file.
    pub fn holds(&self) -> bool {
        self.is_as_described() && !self.has_rotated() && !self.is_gone()
    }

    /// True if everything except the formatter is unchanged: lines made in the caller go to the same place.
    pub fn outlet_holds(&self) -> bool {
        self.is_outlet_as_described() && !self.has_rotated() && !self.is_gone()
    }

    /// True if a plan can be made from this state: it is valid, and its sink is open.
    pub fn is_ready(&self) -> bool {
        self.holds() && (!matches!(self.verdict, HandlerVerdict::Adopted(_)) || self.open_sink().is_some())
    }

    pub(super) fn is_as_described(&self) -> bool {
        self.is_outlet_as_described() && self.formatting.hold()
    }

    fn is_outlet_as_described(&self) -> bool {
        // SAFETY: `self` keeps the objects that contain the words.
        self.descriptions == environment::descriptions()
            && self.outlet.hold()
            && self.words.iter().all(|word| unsafe { word.holds() })
    }

    /// Classes on which the state depends, with their version tags at that time.
    pub fn types(&self) -> impl Iterator<Item = &ClassVersion> {
        self.outlet.types.iter().chain(&self.formatting.types)
    }

    /// The counter of the sink's file switches, and its value when the handler's stream was opened.
    pub fn rotations_seen(&self) -> Option<(Arc<AtomicU64>, u64)> {
        if !self.rotates() {
            return None;
        }
        let rotations = self.rotated.lock().expect("no panic happens while it is held");
        let rotations = rotations.as_ref().filter(|rotations| rotations.id_epoch == pipeline::id_epoch())?;
        Some((rotations.counter.clone(), rotations.seen))
    }

    /// True if the sink has switched to another file since then.
    fn has_rotated(&self) -> bool {
        self.rotations_seen().is_some_and(|(counter, seen)| counter.load(Relaxed) != seen)
    }

    /// Takes over the sink of the handler's former state.
    pub(super) fn inherit(&mut self, old: &Self) {
        self.sink = old.sink.clone();
        self.rotated = old.rotated.clone();
    }

    /// The sink of an adopted handler. Opens the sink if necessary.
    ///
    /// # Errors
    ///
    /// The reason why the sink cannot be opened.
    pub fn sink(&self) -> Result<u32, String> {
        let HandlerVerdict::Adopted(adoption) = &self.verdict else {
            return Err("the handler is not adopted".to_owned());
        };
        let mut id_epoch = pipeline::id_epoch();
        let mut sink = self.sink.lock().expect("no panic happens while it is held");
        match *sink {
            Sink::Open(opened, id) if opened == id_epoch => return Ok(id),
            Sink::Gone => return Err("the handler has changed".to_owned()),
            Sink::Open(..) | Sink::None => {}
        }
        let id = loop {
            let id = pipeline::open_sink(&adoption.definition)?;
            // Asked again: opening the first sink begins the pipeline, and another one may have begun meanwhile.
            let before = std::mem::replace(&mut id_epoch, pipeline::id_epoch());
            if before == 0 || before == id_epoch {
                break id;
            }
        };
        *sink = Sink::Open(id_epoch, id);
        if adoption.rotates() {
            let rotations = pipeline::rotation_count(id).map(|counter| RotationCounter { id_epoch, seen: 0, counter });
            *self.rotated.lock().expect("no panic happens while it is held") = rotations;
        }
        Ok(id)
    }

    /// How this handler's records are read by value; `None` if they cannot be.
    ///
    /// # Errors
    ///
    /// An error was raised meanwhile that no error handler catches.
    pub fn reading(&self, py: Python<'_>, adoption: &Adoption) -> Result<Option<Arc<RecordReading>>, Failure> {
        let id_epoch = pipeline::id_epoch();
        if let Some((made, reading)) = &*self.reading.lock().expect("no panic happens while it is held")
            && *made == id_epoch
        {
            return Ok(reading.clone());
        }
        let reading = match &adoption.format {
            Ok(parts) => {
                failure::unless_stock(reading(py, parts, &adoption.terminator, self.descriptions))?.map(Arc::new)
            }
            Err(_) => None,
        };
        *self.reading.lock().expect("no panic happens while it is held") =
            Some((pipeline::id_epoch(), reading.clone()));
        Ok(reading)
    }

    /// True if its sink switches to other files by itself.
    pub fn rotates(&self) -> bool {
        matches!(&self.verdict, HandlerVerdict::Adopted(adoption) if adoption.rotates())
    }

    /// Takes the sink away permanently.
    pub(super) fn take_sink(&self) -> Option<(u64, u32)> {
        match std::mem::replace(&mut *self.sink.lock().expect("no panic happens while it is held"), Sink::Gone) {
            Sink::Open(id_epoch, id) => Some((id_epoch, id)),
            Sink::None | Sink::Gone => None,
        }
    }

    /// True if the sink was taken away.
    pub fn is_gone(&self) -> bool {
        matches!(*self.sink.lock().expect("no panic happens while it is held"), Sink::Gone)
    }

    /// The sink, if it is open.
    pub fn open_sink(&self) -> Option<u32> {
        self.opened().filter(is_current).map(|(_, id)| id)
    }

    /// Generation and id of the sink.
    pub(super) fn opened(&self) -> Option<(u64, u32)> {
        match *self.sink.lock().expect("no panic happens while it is held") {
            Sink::Open(id_epoch, id) => Some((id_epoch, id)),
            Sink::None | Sink::Gone => None,
        }
    }
}

impl DescriptionInputs {
    fn hold(&self) -> bool {
        self.parts.iter().all(WatchedPart::holds) && self.types.iter().all(ClassVersion::holds)
    }
}

impl Adoption {
    /// True if its records may be sent by value: the collector can follow its formatter, and the sink is a file.
    pub fn may_go_by_value(&self) -> bool {
        self.format.is_ok() && self.traits.takes == SinkInput::Lines && !self.traits.is_borrowed
    }

    /// True if its records go to the sink in their parts.
    pub fn takes_entries(&self) -> bool {
        self.traits.takes == SinkInput::Entries
    }

    /// True if its sink switches to other files by itself, and its stream has to follow.
    pub fn rotates(&self) -> bool {
        self.traits.rotates && !self.stream.text.is_null()
    }

    /// The stream, with the sink whose records have to be written before the program's own text.
    pub fn text_stream(&self, sink: u32) -> TextStream {
        let after = (!self.traits.is_borrowed).then_some(sink);
        TextStream { after, ..self.stream }
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        self.kept.clear();
    }
}

pub(super) fn is_current((id_epoch, _): &(u64, u32)) -> bool {
    *id_epoch == pipeline::id_epoch()
}
