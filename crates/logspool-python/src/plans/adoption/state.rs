//! One adopted handler: what it is made of and the sink that its records go to.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use logspool::pipeline;
use logspool::sinks::{Takes, Traits};
use logspool_record::definition::SinkDefinition;
use pyo3::Python;

use crate::interpreter::failure::{self, Failure};
use crate::interpreter::object::Owned;
use crate::plans::environment;
use crate::plans::format_parts::FormatParts;
use crate::plans::plan::ClassVersion;
use crate::plans::reading::{Reading, reading};
use crate::plans::text_stream::{TextStream, Word};
use crate::plans::watched::Part;

/// What a handler is.
pub enum Verdict {
    /// `NullHandler`: takes everything, does nothing.
    Null,
    /// It works as stock logging made it; the text says why.
    Foreign(String),
    /// It does so until its file is opened, which its first record does.
    Unopened(String),
    /// Its output goes through the queue.
    Adopted(Box<Adoption>),
}

/// An adopted handler.
pub struct Adoption {
    /// Where its lines go.
    pub definition: SinkDefinition,
    /// How the line treats the sink.
    pub traits: Traits,
    /// Ends each of its lines.
    pub terminator: String,
    /// Its text stream and buffer, null where it has none; `kept` holds them.
    pub stream: TextStream,
    /// `stream.errors`, for lines that are encoded in the caller.
    pub errors: String,
    /// Whether the line must be on the terminal when the call returns.
    pub interactive: bool,
    /// Its formatter as the collector can follow it, or why not.
    pub format: Result<FormatParts, String>,
    /// Keeps stream and buffer.
    pub kept: Vec<Owned>,
}

/// What is known about one handler.
pub struct State {
    /// [`environment::descriptions`] as it was before.
    pub(super) descriptions: u64,
    /// What it is.
    pub verdict: Verdict,
    /// What the verdict depends on beside the format.
    pub(super) outlet: Inputs,
    /// What the format of an adopted handler depends on.
    pub(super) formatting: Inputs,
    /// Words of its stream that it depends on.
    pub words: Vec<Word>,
    /// What these words lie in and point to.
    pub held: Vec<Owned>,
    /// Shared with the states before and after this one, as long as they name the same destination.
    pub(super) sink: Arc<Mutex<Sink>>,
    /// How often that sink has gone over to another file, and how often when the handler's stream last followed.
    pub(super) turned: Arc<Mutex<Option<Turns>>>,
    /// How its records are read by value; `None` in it when they are not.
    pub(super) reading: Mutex<Option<(u64, Option<Arc<Reading>>)>>,
}

/// What a part of a description was made from.
#[derive(Default)]
pub(super) struct Inputs {
    /// Classes, with the version tags that they had.
    pub(super) types: Vec<ClassVersion>,
    /// Objects, as they were.
    pub(super) parts: Vec<Part>,
}

/// The sink of a handler.
pub(super) enum Sink {
    /// Not opened yet.
    None,
    /// Opened in that generation, with that id.
    Open(u64, u32),
    /// Taken away, to be closed: another state is the handler's now, or none.
    Gone,
}

#[derive(Clone)]
pub(super) struct Turns {
    generation: u64,
    counter: Arc<AtomicU64>,
    pub(super) seen: u64,
}

impl State {
    /// Whether handler, formatter, classes and stream are as they were, and the stream names the sink's file.
    pub fn holds(&self) -> bool {
        self.is_as_described() && !self.has_turned() && !self.is_gone()
    }

    /// Whether the same is true of all but the formatter: lines that are made in the caller go where they went.
    pub fn outlet_holds(&self) -> bool {
        self.is_outlet_as_described() && !self.has_turned() && !self.is_gone()
    }

    /// Whether a plan can be made from it: it holds, and its sink is open.
    pub fn is_ready(&self) -> bool {
        self.holds() && (!matches!(self.verdict, Verdict::Adopted(_)) || self.open_sink().is_some())
    }

    pub(super) fn is_as_described(&self) -> bool {
        self.is_outlet_as_described() && self.formatting.hold()
    }

    fn is_outlet_as_described(&self) -> bool {
        // SAFETY: `self` keeps what the words lie in.
        self.descriptions == environment::descriptions()
            && self.outlet.hold()
            && self.words.iter().all(|word| unsafe { word.holds() })
    }

    /// Classes that it depends on, with the version tags that they had.
    pub fn types(&self) -> impl Iterator<Item = &ClassVersion> {
        self.outlet.types.iter().chain(&self.formatting.types)
    }

    /// Counter of the sink's turns, and what it showed when the handler's stream was opened.
    pub fn turns_seen(&self) -> Option<(Arc<AtomicU64>, u64)> {
        if !self.turns() {
            return None;
        }
        let turns = self.turned.lock().expect("no panic happens while it is held");
        let turns = turns.as_ref().filter(|turns| turns.generation == pipeline::generation())?;
        Some((turns.counter.clone(), turns.seen))
    }

    /// Whether the sink has gone over to another file since.
    fn has_turned(&self) -> bool {
        self.turns_seen().is_some_and(|(counter, seen)| counter.load(Relaxed) != seen)
    }

    /// Shares the sink of the handler's former state.
    pub(super) fn inherit(&mut self, old: &Self) {
        self.sink = old.sink.clone();
        self.turned = old.turned.clone();
    }

    /// The sink of an adopted handler, opened if need be.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened.
    pub fn sink(&self) -> Result<u32, String> {
        let Verdict::Adopted(adoption) = &self.verdict else { return Err("the handler is not adopted".to_owned()) };
        let mut generation = pipeline::generation();
        let mut sink = self.sink.lock().expect("no panic happens while it is held");
        match *sink {
            Sink::Open(opened, id) if opened == generation => return Ok(id),
            Sink::Gone => return Err("the handler has changed".to_owned()),
            Sink::Open(..) | Sink::None => {}
        }
        let id = loop {
            let id = pipeline::open_sink(&adoption.definition)?;
            // Asked again: opening the first sink begins the pipeline, and another one may have begun meanwhile.
            let before = std::mem::replace(&mut generation, pipeline::generation());
            if before == 0 || before == generation {
                break id;
            }
        };
        *sink = Sink::Open(generation, id);
        if adoption.turns() {
            let turns = pipeline::turns(id).map(|counter| Turns { generation, seen: 0, counter });
            *self.turned.lock().expect("no panic happens while it is held") = turns;
        }
        Ok(id)
    }

    /// How this handler's records are read by value, if they can be.
    ///
    /// # Errors
    ///
    /// Where something was raised meanwhile that no handler of errors catches.
    pub fn reading(&self, py: Python<'_>, adoption: &Adoption) -> Result<Option<Arc<Reading>>, Failure> {
        let generation = pipeline::generation();
        if let Some((made, reading)) = &*self.reading.lock().expect("no panic happens while it is held")
            && *made == generation
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
            Some((pipeline::generation(), reading.clone()));
        Ok(reading)
    }

    /// Whether its sink goes over to other files by itself.
    pub fn turns(&self) -> bool {
        matches!(&self.verdict, Verdict::Adopted(adoption) if adoption.turns())
    }

    /// Takes the sink away, for good.
    pub(super) fn take_sink(&self) -> Option<(u64, u32)> {
        match std::mem::replace(&mut *self.sink.lock().expect("no panic happens while it is held"), Sink::Gone) {
            Sink::Open(generation, id) => Some((generation, id)),
            Sink::None | Sink::Gone => None,
        }
    }

    /// Whether the sink was taken away.
    pub fn is_gone(&self) -> bool {
        matches!(*self.sink.lock().expect("no panic happens while it is held"), Sink::Gone)
    }

    /// The sink, if it is open.
    pub fn open_sink(&self) -> Option<u32> {
        self.opened().filter(is_of_now).map(|(_, id)| id)
    }

    /// Generation and id of the sink.
    pub(super) fn opened(&self) -> Option<(u64, u32)> {
        match *self.sink.lock().expect("no panic happens while it is held") {
            Sink::Open(generation, id) => Some((generation, id)),
            Sink::None | Sink::Gone => None,
        }
    }
}

impl Inputs {
    fn hold(&self) -> bool {
        self.parts.iter().all(Part::holds) && self.types.iter().all(ClassVersion::holds)
    }
}

impl Adoption {
    /// Whether its records may go by value: the collector can follow its formatter, and it is a file.
    pub fn may_go_by_value(&self) -> bool {
        self.format.is_ok() && self.traits.takes == Takes::Lines && !self.traits.is_borrowed
    }

    /// Whether its records go to the sink in their parts.
    pub fn takes_entries(&self) -> bool {
        self.traits.takes == Takes::Entries
    }

    /// Whether its sink goes over to other files by itself, and its stream has to follow.
    pub fn turns(&self) -> bool {
        self.traits.turns && !self.stream.text.is_null()
    }

    /// The stream, with the sink that goes before the program's own text.
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

pub(super) fn is_of_now((generation, _): &(u64, u32)) -> bool {
    *generation == pipeline::generation()
}
