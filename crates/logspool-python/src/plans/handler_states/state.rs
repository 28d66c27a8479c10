//! The state of one adopted handler: its description and the sink of its records.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use logspool::pipeline;
use logspool::sinks::{SinkInput, Traits};
use logspool_record::definition::SinkDefinition;
use pyo3::Python;

use super::handler_sink::{HandlerSink, Sink};
use crate::interpreter::failure::{self, Failure};
use crate::interpreter::object::Owned;
use crate::plans::class_version::ClassVersion;
use crate::plans::environment;
use crate::plans::format_parts::{CalledMethod, FormatParts};
use crate::plans::reading::{RecordReading, reading};
use crate::plans::text_stream::{StreamWord, TextStream};
use crate::plans::watched::WatchedPart;

/// Which code handles the records of a handler.
pub enum HandlerVerdict {
    /// A `NullHandler`: accepts every record and does nothing.
    Null,
    /// Stock logging serves the handler; the text gives the reason.
    Foreign(String),
    /// Stock logging serves the handler until the first record has opened the handler's file; the text gives the
    /// reason.
    Unopened(String),
    /// The handler's output goes through the queue.
    Adopted(Box<Adoption>),
}

/// The description of an adopted handler.
pub struct Adoption {
    /// The sink to which the handler's lines are written.
    pub definition: SinkDefinition,
    /// How the pipeline treats the sink.
    pub traits: Traits,
    /// The text at the end of each line.
    pub terminator: String,
    /// The handler's text stream and its buffer, null if the handler has none. `kept` holds references to them.
    pub stream: TextStream,
    /// `stream.errors`, for lines that are encoded in the caller.
    pub errors: String,
    /// True if a line must be on the terminal when the call returns.
    pub interactive: bool,
    /// True if the handler writes to a stream that other code of the program may print to: it is no `FileHandler`.
    pub is_stream: bool,
    /// The handler's formatter in a form that the collector can use, or the reason why there is no such form.
    pub format: Result<FormatParts, String>,
    /// The `Deferral` of `_deferring.py`, if a thread of logspool formats the records.
    pub deferral: Option<Owned>,
    /// References that keep the stream and the buffer alive.
    pub kept: Vec<Owned>,
}

/// Everything known about one handler.
pub struct HandlerState {
    /// [`environment::descriptions`], read before the handler was described.
    pub(super) descriptions: u64,
    /// Which code handles the records.
    pub verdict: HandlerVerdict,
    /// True if stock logging serves the handler, and its Python code may print to a stream of another handler.
    pub may_print: bool,
    /// The inputs of the verdict, except the inputs of the format.
    pub(super) outlet: DescriptionInputs,
    /// The inputs of the format, if the handler is adopted.
    pub(super) formatting: DescriptionInputs,
    /// Words in the C structs of the handler's stream on which the state depends.
    pub(super) words: Vec<StreamWord>,
    /// References to the objects that contain `words`, and to the objects to which `words` point.
    pub(super) held: Vec<Owned>,
    /// The sink. Earlier and later states of the handler share it, as long as they name the same destination.
    pub(super) sink: Arc<HandlerSink>,
    /// Number of file switches of `sink`, and the value of this number when the handler's stream last followed a
    /// switch.
    pub(super) rotated: Arc<Mutex<Option<RotationCounter>>>,
    /// How the handler's records are read by value, with the id epoch in which this was determined. The outer `None`
    /// means not determined yet; the inner `None` means that the records cannot be read by value.
    pub(super) reading: Mutex<Option<(u64, Option<Arc<RecordReading>>)>>,
}

/// The inputs of one part of a description.
#[derive(Default)]
pub(super) struct DescriptionInputs {
    /// The classes of handler, formatter and style. Each has the version tag that it had when the handler was
    /// inspected.
    pub(super) types: Vec<ClassVersion>,
    /// The handler, formatter and style. Each has the change count that it had when the handler was inspected.
    pub(super) parts: Vec<WatchedPart>,
    /// Change numbers of dicts that a formatter reads, with the dicts in `held`.
    pub(super) words: Vec<StreamWord>,
    /// The objects that contain `words`.
    pub(super) held: Vec<Owned>,
}

#[derive(Clone)]
pub(super) struct RotationCounter {
    id_epoch: u64,
    counter: Arc<AtomicU64>,
    pub(super) seen: u64,
}

impl HandlerState {
    /// True if the handler, its formatter, their classes and the stream are unchanged, and the stream writes to the
    /// same file as the sink.
    pub fn holds(&self) -> bool {
        self.is_as_described() && !self.has_rotated() && !self.is_gone()
    }

    /// True if everything except the formatter is unchanged, so that lines formatted in the caller can use the same
    /// sink.
    pub fn is_outlet_valid(&self) -> bool {
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
        // SAFETY: `self.held` keeps the objects that contain the words alive.
        self.descriptions == environment::descriptions()
            && self.outlet.hold()
            && self.words.iter().all(|word| unsafe { word.holds() })
    }

    /// Classes on which the state depends, with their version tags when the handler was described.
    pub fn types(&self) -> impl Iterator<Item = &ClassVersion> {
        self.outlet.types.iter().chain(&self.formatting.types)
    }

    /// Words in C structs on which the state depends.
    pub fn words(&self) -> impl Iterator<Item = &StreamWord> {
        self.words.iter().chain(&self.formatting.words)
    }

    /// References to the objects that contain the words, and to the objects to which the words point.
    pub fn held(&self) -> impl Iterator<Item = &Owned> {
        self.held.iter().chain(&self.formatting.held)
    }

    /// The counter of the sink's file switches, and its value when the handler's stream last followed a switch.
    pub fn rotations_seen(&self) -> Option<(Arc<AtomicU64>, u64)> {
        if !self.rotates() {
            return None;
        }
        let rotations = self.rotated.lock().expect("no panic happens while it is held");
        let rotations = rotations.as_ref().filter(|rotations| rotations.id_epoch == pipeline::id_epoch())?;
        Some((rotations.counter.clone(), rotations.seen))
    }

    /// True if the sink has switched to another file since the handler's stream last followed a switch.
    fn has_rotated(&self) -> bool {
        self.rotations_seen().is_some_and(|(counter, seen)| counter.load(Relaxed) != seen)
    }

    /// Takes over the sink of the handler's previous state.
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
        let id_epoch = pipeline::id_epoch();
        self.sink.opened_in(id_epoch, || {
            let mut id_epoch = id_epoch;
            let id = loop {
                let id = pipeline::open_sink(&adoption.definition)?;
                // The id epoch is read again: opening the first sink starts the pipeline, and another pipeline may have
                // started meanwhile (in a forked child, for example).
                let before = std::mem::replace(&mut id_epoch, pipeline::id_epoch());
                if before == 0 || before == id_epoch {
                    break id;
                }
            };
            if adoption.rotates() {
                let counter = pipeline::rotation_count(id);
                let rotations = counter.map(|counter| RotationCounter { id_epoch, seen: 0, counter });
                *self.rotated.lock().expect("no panic happens while it is held") = rotations;
            }
            Ok((id_epoch, id))
        })
    }

    /// How this handler's records are read by value; `None` if they cannot be read by value.
    ///
    /// # Errors
    ///
    /// Python code raised an error that must leave the call, such as `KeyboardInterrupt`.
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

    /// True if the handler's sink switches to other files by itself.
    pub fn rotates(&self) -> bool {
        matches!(&self.verdict, HandlerVerdict::Adopted(adoption) if adoption.rotates())
    }

    /// Takes the sink out of the state permanently. Returns its id epoch and its id if it was open.
    pub(super) fn take_sink(&self) -> Option<(u64, u32)> {
        self.sink.take()
    }

    /// True if the sink was taken out of the state.
    pub fn is_gone(&self) -> bool {
        matches!(self.sink.read(), Sink::Gone(_))
    }

    /// The id of the sink, if it is open in the current id epoch.
    pub fn open_sink(&self) -> Option<u32> {
        self.opened().filter(is_current).map(|(_, id)| id)
    }

    /// The id of the sink that may have queued records: the open one, or the one that a thread has taken out to close it.
    pub(super) fn sink_to_await(&self) -> Option<u32> {
        match self.sink.read() {
            Sink::Open(id_epoch, id) | Sink::Gone(Some((id_epoch, id))) => Some((id_epoch, id)),
            Sink::None | Sink::Gone(None) => None,
        }
        .filter(is_current)
        .map(|(_, id)| id)
    }

    /// The id epoch in which the sink was opened, and the id of the sink.
    pub(super) fn opened(&self) -> Option<(u64, u32)> {
        match self.sink.read() {
            Sink::Open(id_epoch, id) => Some((id_epoch, id)),
            Sink::None | Sink::Gone(_) => None,
        }
    }
}

impl DescriptionInputs {
    fn hold(&self) -> bool {
        self.parts.iter().all(WatchedPart::holds)
            && self.types.iter().all(ClassVersion::holds)
            // SAFETY: `self.held` keeps the objects that contain the words alive.
            && self.words.iter().all(|word| unsafe { word.holds() })
    }
}

impl Adoption {
    /// True if the handler's records may be sent by value: the collector can do the formatter's work, the sink takes
    /// lines, and the sink does not write through a descriptor of the program.
    pub fn may_go_by_value(&self) -> bool {
        self.format.is_ok() && self.called_method().is_none() && self.goes_by_value()
    }

    /// Like [`Self::may_go_by_value`], for records with the text of the time that the formatter's own `formatTime` has
    /// made.
    pub fn may_go_with_time(&self) -> bool {
        self.format.is_ok() && self.called_method() != Some(CalledMethod::Message) && self.goes_by_value()
    }

    /// The method of the formatter that is called for each record, if native code does everything else of the format.
    pub fn called_method(&self) -> Option<CalledMethod> {
        self.format.as_ref().ok()?.own_texts.each_record.as_ref().map(|(method, _)| *method)
    }

    fn goes_by_value(&self) -> bool {
        self.traits.takes == SinkInput::Lines && !self.traits.is_borrowed
    }

    /// True if the program may have replaced methods of the handler. A handler with a stream is then not adopted, but
    /// the records of a `SinkHandler` go through the queue in any case.
    pub fn may_be_customised(&self) -> bool {
        self.stream.text.is_null() && self.format.is_err() && self.deferral.is_none()
    }

    /// True if the sink receives a record as an entry with all its parts, not as a line.
    pub fn takes_entries(&self) -> bool {
        self.traits.takes == SinkInput::Entries
    }

    /// True if the handler's sink switches to other files by itself, and the handler's stream has to follow.
    pub fn rotates(&self) -> bool {
        self.traits.rotates && !self.stream.text.is_null()
    }

    /// The handler's stream, with the sink whose queue has to be written before text that the program prints itself.
    pub fn text_stream(&self, sink: u32) -> TextStream {
        let after = (!self.traits.is_borrowed).then_some(sink);
        TextStream { after, ..self.stream }
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        self.kept.clear();
        self.deferral = None;
    }
}

pub(super) fn is_current((id_epoch, _): &(u64, u32)) -> bool {
    *id_epoch == pipeline::id_epoch()
}
