//! Adopted handlers: what they are made of and the sink that stands behind each.
//!
//! Stop on the line: between *capture* and *writer*. `python/logspool/_adopt.py` looks at a handler and says what
//! it is; here that answer is kept for one epoch, and the sink for as long as the answer names the same stream.
//! States lie in a table by address and leave it through a weak reference when the handler dies.

mod describing;
mod uninstalling;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use logspool::pipeline;
use logspool::sinks::{self, SinkPlace, Takes, Traits};
use logspool_record::definition::SinkDefinition;
use pyo3::exceptions::PyException;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::environment;
use crate::flushing;
use crate::hooks::Part;
use crate::ids;
use crate::leaving::outside;
use crate::message::{self, Failure};
use crate::object::Owned;
use crate::plan::{self, TextStream};
use crate::planning::Adopt;
use crate::record::Reading;
use crate::stream::{self, Word};
pub use describing::FormatParts;
pub use uninstalling::release_all;

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
    kept: Vec<Owned>,
}

/// What is known about one handler.
pub struct State {
    /// [`environment::descriptions`] as it was before.
    descriptions: u64,
    /// What it is.
    pub verdict: Verdict,
    /// What the verdict depends on beside the format.
    outlet: Inputs,
    /// What the format of an adopted handler depends on.
    formatting: Inputs,
    /// Words of its stream that it depends on.
    pub words: Vec<Word>,
    /// What these words lie in and point to.
    pub held: Vec<Owned>,
    /// Shared with the states before and after this one, as long as they name the same destination.
    sink: Arc<Mutex<Sink>>,
    /// How often that sink has gone over to another file, and how often when the handler's stream last followed.
    turned: Arc<Mutex<Option<Turns>>>,
    /// How its records are read by value; `None` in it when they are not.
    reading: Mutex<Option<(u64, Option<Arc<Reading>>)>>,
}

/// What a part of a description was made from.
#[derive(Default)]
struct Inputs {
    /// Classes, with the version tags that they had.
    types: Vec<(Owned, u32)>,
    /// Objects, as they were.
    parts: Vec<Part>,
}

/// The sink of a handler.
enum Sink {
    /// Not opened yet.
    None,
    /// Opened in that generation, with that id.
    Open(u64, u32),
    /// Taken away, to be closed: another state is the handler's now, or none.
    Gone,
}

#[derive(Clone)]
struct Turns {
    generation: u64,
    counter: Arc<AtomicU64>,
    seen: u64,
}

struct Entry {
    state: Arc<State>,
    reference: Owned,
}

struct Table {
    states: HashMap<usize, Entry>,
    by_reference: HashMap<usize, usize>,
    /// Sinks of handlers that died, as long as nobody has waited for what is queued for them.
    orphans: Vec<(u64, u32)>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn with_table<T>(act: impl FnOnce(&mut Table) -> T) -> T {
    let mut table = TABLE.lock().expect("no panic happens while it is held");
    let empty = || Table { states: HashMap::new(), by_reference: HashMap::new(), orphans: Vec::new() };
    act(table.get_or_insert_with(empty))
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

    fn is_as_described(&self) -> bool {
        self.is_outlet_as_described() && self.formatting.hold()
    }

    fn is_outlet_as_described(&self) -> bool {
        // SAFETY: `self` keeps what the words lie in.
        self.descriptions == environment::descriptions()
            && self.outlet.hold()
            && self.words.iter().all(|word| unsafe { word.holds() })
    }

    /// Classes that it depends on, with the version tags that they had.
    pub fn types(&self) -> impl Iterator<Item = &(Owned, u32)> {
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
    fn inherit(&mut self, old: &Self) {
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
    pub fn reading(&self, adoption: &Adoption) -> Result<Option<Arc<Reading>>, Failure> {
        let generation = pipeline::generation();
        if let Some((made, reading)) = &*self.reading.lock().expect("no panic happens while it is held")
            && *made == generation
        {
            return Ok(reading.clone());
        }
        let reading = message::unless_stock(crate::planning::reading(adoption, self.descriptions))?.map(Arc::new);
        *self.reading.lock().expect("no panic happens while it is held") =
            Some((pipeline::generation(), reading.clone()));
        Ok(reading)
    }

    /// Whether its sink goes over to other files by itself.
    pub fn turns(&self) -> bool {
        matches!(&self.verdict, Verdict::Adopted(adoption) if adoption.turns())
    }

    /// Takes the sink away, for good.
    fn take_sink(&self) -> Option<(u64, u32)> {
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
    fn opened(&self) -> Option<(u64, u32)> {
        match *self.sink.lock().expect("no panic happens while it is held") {
            Sink::Open(generation, id) => Some((generation, id)),
            Sink::None | Sink::Gone => None,
        }
    }
}

impl Inputs {
    fn hold(&self) -> bool {
        // SAFETY: the types are kept.
        self.parts.iter().all(Part::holds)
            && self.types.iter().all(|(class, tag)| *tag != 0 && unsafe { plan::version_tag(class.as_ptr()) } == *tag)
    }
}

/// The state of a handler, made or renewed if what it was made from changed.
///
/// # Errors
///
/// Where Python raised.
pub fn state(adopt: &Adopt, handler: &Bound<'_, PyAny>) -> Result<Arc<State>, Failure> {
    let known = known(handler.as_ptr());
    let Some(old) = known else { return enter(first(State::describe(adopt, handler)?, adopt, handler)?, handler) };
    if old.holds() {
        return Ok(old);
    }
    if old.outlet_holds()
        && let Some(mut new) = old.reformatted(adopt, handler)?
    {
        new.inherit(&old);
        return enter(new, handler);
    }
    let followed = follow(&old, handler)?;
    let mut new = State::describe(adopt, handler)?;
    // The sink of a forked child's parent may have gone over to a file that the child does not have open.
    let left = old.turns() && old.opened().is_some_and(|sink| !is_of_now(&sink));
    let is_same = match (&old.verdict, &new.verdict) {
        (Verdict::Adopted(before), Verdict::Adopted(now)) => {
            !left && !old.is_gone() && (followed || before.stream == now.stream && before.definition == now.definition)
        }
        _ => false,
    };
    if is_same {
        new.inherit(&old);
    } else if let Some(sink) = old.take_sink() {
        let closed = close(handler.py(), Some(sink), SHORT_WAIT);
        closed.map_err(|error| Failure::interrupted(handler.py(), error))?;
        if old.turns() {
            call_catch_up(handler)?;
            new = State::describe(adopt, handler)?;
        }
    }
    enter(first(new, adopt, handler)?, handler)
}

/// The state to be used where a handler that turns has no sink yet.
fn first(new: State, adopt: &Adopt, handler: &Bound<'_, PyAny>) -> Result<State, Failure> {
    if new.turns() && new.open_sink().is_none() { adopt_turning(adopt, handler) } else { Ok(new) }
}

/// The state of a handler as a plan needs it that is made without the planning lock: its sink is open, and at most
/// its formatter is described anew. `None` where more is to be done.
///
/// # Errors
///
/// Where Python raised.
pub fn ready_state(adopt: &Adopt, handler: &Bound<'_, PyAny>) -> Result<Option<Arc<State>>, Failure> {
    let Some(old) = known(handler.as_ptr()) else { return Ok(None) };
    if old.is_ready() {
        return Ok(Some(old));
    }
    if !old.outlet_holds() || old.open_sink().is_none() {
        return Ok(None);
    }
    let Some(mut new) = old.reformatted(adopt, handler)? else { return Ok(None) };
    new.inherit(&old);
    let new = Arc::new(new);
    // Not where another thread has put a state there meanwhile: that one may have another sink.
    let entered = with_table(|table| {
        let entry = table.states.get_mut(&(handler.as_ptr() as usize))?;
        Arc::ptr_eq(&entry.state, &old).then(|| entry.state = new.clone())
    });
    Ok(entered.map(|()| new))
}

/// Puts a state into the table.
fn enter(state: State, handler: &Bound<'_, PyAny>) -> Result<Arc<State>, Failure> {
    let address = handler.as_ptr() as usize;
    let state = Arc::new(state);
    let reference = crate::planning::weak_reference(handler)?;
    let old = with_table(|table| {
        table.by_reference.insert(reference.as_ptr() as usize, address);
        let old = table.states.insert(address, Entry { state: state.clone(), reference });
        if let Some(old) = &old {
            table.by_reference.remove(&(old.reference.as_ptr() as usize));
        }
        old
    });
    drop(old);
    Ok(state)
}

/// Describes a handler that turns, and opens its sink, while nobody else writes to its stream. `Stock`: another thread
/// does, and may be about to rename the file; the call waits for it on stock logging's way.
fn adopt_turning(adopt: &Adopt, handler: &Bound<'_, PyAny>) -> Result<State, Failure> {
    let lock = handler.getattr("lock").ok().filter(|lock| !lock.is_none());
    if let Some(lock) = &lock
        && !lock.call_method1("acquire", (false,))?.is_truthy()?
    {
        return Err(Failure::Stock);
    }
    let state = State::describe(adopt, handler);
    if let Ok(state) = &state {
        // Tried again, and its error told, where the handler is used.
        let _ = state.sink();
    }
    if let Some(lock) = lock {
        lock.call_method0("release")?;
    }
    Ok(state?)
}

/// How long a handler that turns foreign waits for its queue: its next line is written by stock logging.
///
/// Chosen: the default of `shutdown_timeout`; reached only when the sink is stalled.
const SHORT_WAIT: Duration = Duration::from_secs(5);

/// The state of a handler as far as it is known, without making one.
pub fn known(handler: *mut PyObject) -> Option<Arc<State>> {
    with_table(|table| table.states.get(&(handler as usize)).map(|entry| entry.state.clone()))
}

/// `_rotation.catch_up`
static CATCH_UP: OnceLock<Owned> = OnceLock::new();

/// Remembers `_rotation.catch_up`. The first call counts.
pub fn set_catch_up(function: Owned) {
    let _ = CATCH_UP.set(function);
}

/// `_rotation.follow`
static FOLLOW: OnceLock<Owned> = OnceLock::new();

/// Remembers `_rotation.follow`. The first call counts.
pub fn set_follow(function: Owned) {
    let _ = FOLLOW.set(function);
}

/// Lets the handler's stream follow a sink that has gone over to another file and goes on. `true`: it names that
/// file now, and nothing else about the handler has changed.
fn follow(old: &State, handler: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some((counter, seen)) = old.turns_seen() else { return Ok(false) };
    // Before the path is looked at: another turn meanwhile is followed next time.
    let now = counter.load(Relaxed);
    if now == seen || !old.is_as_described() {
        return Ok(false);
    }
    // A turn that cannot be followed is not tried again: the next one is.
    if let Some(turns) = &mut *old.turned.lock().expect("no panic happens while it is held") {
        turns.seen = now;
    }
    let answer = call(FOLLOW.get(), handler)?;
    // SAFETY: an address.
    Ok(answer.is_some_and(|answer| answer.as_ptr() == unsafe { ffi::Py_True() }))
}

/// Opens the stream of a handler anew if its sink has gone over to another file.
fn call_catch_up(handler: &Bound<'_, PyAny>) -> PyResult<()> {
    call(CATCH_UP.get(), handler).map(drop)
}

/// Calls a function of `_rotation.py`. The `Exception` that it raises (the path cannot be opened) stock logging meets
/// next; what is none goes on.
fn call(function: Option<&Owned>, handler: &Bound<'_, PyAny>) -> PyResult<Option<Owned>> {
    let Some(function) = function else { return Ok(None) };
    let py = handler.py();
    // SAFETY: attached, live objects; null leaves an error set.
    let answer = unsafe {
        let _error = crate::object::ErrorKept::take();
        Owned::steal(ffi::PyObject_CallOneArg(function.as_ptr(), handler.as_ptr())).ok_or_else(|| PyErr::fetch(py))
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// After a flush: lets the handler's own stream follow a sink that has gone over to another file.
///
/// # Errors
///
/// What was raised meanwhile and is no `Exception`.
///
/// # Safety
///
/// `handler` is live; attached.
pub unsafe fn catch_up(handler: *mut PyObject) -> PyResult<()> {
    if !known(handler).is_some_and(|state| state.turns() && state.open_sink().is_some()) {
        return Ok(());
    }
    // SAFETY: attached, a live object.
    unsafe { call_catch_up(&Bound::from_borrowed_ptr(Python::assume_attached(), handler)) }
}

/// Leaves a handler to stock logging for its next line.
///
/// # Errors
///
/// As for [`flush`] and [`catch_up`].
///
/// # Safety
///
/// `handler` is live; attached.
pub unsafe fn give_back(handler: *mut PyObject, timeout: Duration) -> PyResult<()> {
    // SAFETY: passed on.
    unsafe {
        if known(handler).is_some_and(|state| state.turns()) {
            release(Python::assume_attached(), handler, timeout)
        } else {
            flush(handler, timeout).map(drop)
        }
    }
}

/// Forgets a handler and closes its sink when everything queued for it is written.
///
/// # Errors
///
/// As for [`close`] and [`catch_up`].
///
/// # Safety
///
/// `handler` is live; attached.
pub unsafe fn release(py: Python<'_>, handler: *mut PyObject, timeout: Duration) -> PyResult<()> {
    // SAFETY: a live object, as the caller says.
    let handler = unsafe { Bound::from_borrowed_ptr(py, handler) };
    let Some(state) = take(&handler) else { return Ok(()) };
    let sink = state.take_sink();
    let closed = close(py, sink, timeout);
    if state.turns() && sink.is_some() {
        return closed.and(call_catch_up(&handler));
    }
    closed
}

/// Takes what is known about a handler out of the table.
fn take(handler: &Bound<'_, PyAny>) -> Option<Arc<State>> {
    let entry = with_table(|table| {
        let entry = table.states.remove(&(handler.as_ptr() as usize))?;
        table.by_reference.remove(&(entry.reference.as_ptr() as usize));
        Some(entry)
    })?;
    Some(entry.state.clone())
}

/// Forgets the handler that died. Its sink is closed when everything is written; nobody waits for that here.
///
/// # Safety
///
/// Attached.
pub unsafe fn forget(reference: *mut PyObject) {
    let gone = with_table(|table| {
        let address = table.by_reference.remove(&(reference as usize))?;
        table.states.remove(&address)
    });
    let Some(entry) = gone else { return };
    let sink = entry.state.take_sink();
    // Moves the epoch, too: plans keep the handler's stream, and with it a descriptor, until they are made again.
    leave_to_writer(sink);
    // SAFETY: attached, as the caller says.
    unsafe { crate::plans::forget_all() };
}

/// Before a sink is opened: waits until what dead handlers left is written, which may be for the same file.
///
/// # Errors
///
/// What a signal's handler raised meanwhile.
pub fn await_orphans(py: Python<'_>) -> PyResult<()> {
    while let Some((generation, id)) = with_table(|table| table.orphans.pop()) {
        if generation == pipeline::generation() {
            flushing::flush(py, Some(id), Some(SHORT_WAIT))
                .inspect_err(|_| with_table(|table| table.orphans.push((generation, id))))?;
        }
    }
    Ok(())
}

/// Closes a sink that was taken out of its handler's state when everything queued for it is written.
///
/// # Errors
///
/// What a signal's handler raised meanwhile; the sink is left to its writer then.
fn close(py: Python<'_>, sink: Option<(u64, u32)>, timeout: Duration) -> PyResult<()> {
    // Whoever reads this epoch does not find the sink in the state any more, and who read an older one goes back
    // before it pushes: nobody pushes to a closed sink.
    environment::stop_pushes();
    let Some((_, id)) = sink.filter(is_of_now) else { return Ok(()) };
    if let Err(raised) = flushing::flush_before_close(py, id, timeout) {
        leave_to_writer(sink);
        return Err(raised);
    }
    outside(py, || pipeline::close_sink(id, timeout));
    ids::forget_routes(id);
    Ok(())
}

/// Leaves a sink that was taken out of its handler's state to its writer, which closes it when everything is written.
fn leave_to_writer(sink: Option<(u64, u32)>) {
    environment::stop_pushes();
    if let Some((generation, id)) = sink.filter(is_of_now) {
        pipeline::retire_sink(id);
        with_table(|table| table.orphans.push((generation, id)));
    }
}

fn is_of_now((generation, _): &(u64, u32)) -> bool {
    *generation == pipeline::generation()
}

/// Waits until everything queued for a handler is written. `true` when that came true, or nothing is queued.
///
/// # Errors
///
/// What a signal's handler raised.
///
/// # Safety
///
/// Attached.
pub unsafe fn flush(handler: *mut PyObject, timeout: Duration) -> PyResult<bool> {
    let Some(id) = known(handler).and_then(|state| state.open_sink()) else { return Ok(true) };
    // SAFETY: attached, as the caller says.
    flushing::flush(unsafe { Python::assume_attached() }, Some(id), Some(timeout))
}

/// Waits until everything queued for what is behind a text stream is written, whichever handlers queued it.
///
/// # Errors
///
/// As for [`flush`].
///
/// # Safety
///
/// `stream` is live; attached.
pub unsafe fn flush_beside(stream: &Owned, timeout: Duration) -> PyResult<()> {
    // SAFETY: attached; a live object.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: as above.
    if !unsafe { stream::is_text_stream(py, stream.as_ptr()) } {
        return Ok(());
    }
    // SAFETY: a live object; `fileno()` of a stream without a file raises.
    let descriptor = unsafe { ffi::PyObject_AsFileDescriptor(stream.as_ptr()) };
    if descriptor < 0 {
        // SAFETY: attached.
        unsafe { ffi::PyErr_Clear() };
        return Ok(());
    }
    let behind = SinkPlace::of(descriptor);
    let goes_there = |state: &State| {
        let Verdict::Adopted(adoption) = &state.verdict else { return false };
        adoption.stream.text == stream.as_ptr()
            || behind.is_some() && sinks::shared_place(&adoption.definition) == behind
    };
    let sinks: Vec<u32> = with_table(|table| {
        let states = table.states.values().map(|entry| &entry.state);
        states.filter(|state| goes_there(state)).filter_map(|state| state.open_sink()).collect()
    });
    for sink in sinks {
        flushing::flush(py, Some(sink), Some(timeout))?;
    }
    Ok(())
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
