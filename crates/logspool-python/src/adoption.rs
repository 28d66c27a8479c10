//! Adopted handlers: what they are made of and the sink that stands behind each.
//!
//! Stop on the line: between *capture* and *writer*. `python/logspool/_adopt.py` looks at a handler and says what
//! it is; here that answer is kept for one epoch, and the sink for as long as the answer names the same stream.
//! States lie in a table by address and leave it through a weak reference when the handler dies.

mod uninstalling;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use logspool::definition::{Compression, Descriptor, RotationRules, SinkDefinition, SinkKind, SinkPlace, Zone};
use logspool::format::{Extras, FormatSpec, Layout, Style};
use logspool::pipeline;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::environment;
use crate::flushing;
use crate::hooks::Part;
use crate::ids;
use crate::leaving::outside;
use crate::message::{self, Failure};
use crate::object::Owned;
use crate::plan::{self, TextStream};
use crate::record::Reading;
use crate::stream::{self, Word};
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

/// What is known about one handler.
pub struct State {
    /// [`environment::descriptions`] as it was before.
    descriptions: u64,
    /// What it is.
    pub verdict: Verdict,
    /// Classes that the verdict depends on, with their version tags.
    pub types: Vec<(Owned, u32)>,
    /// Objects whose attributes it depends on.
    parts: Vec<Part>,
    /// Words of its stream that it depends on.
    pub words: Vec<Word>,
    /// What these words lie in and point to.
    pub held: Vec<Owned>,
    sink: Mutex<Option<(u64, u32)>>,
    /// How often that sink has gone over to another file, and how often when the handler's stream last followed.
    turned: Mutex<Option<Turns>>,
    /// How its records are read by value; `None` in it when they are not.
    reading: Mutex<Option<(u64, Option<Arc<Reading>>)>>,
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
        self.is_as_described() && !self.has_turned()
    }

    fn is_as_described(&self) -> bool {
        // SAFETY: `self` keeps the types, and what the words lie in.
        self.descriptions == environment::descriptions()
            && self.parts.iter().all(Part::holds)
            && self.types.iter().all(|(class, tag)| *tag != 0 && unsafe { plan::version_tag(class.as_ptr()) } == *tag)
            && self.words.iter().all(|word| unsafe { word.holds() })
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

    /// Takes over the sink of the handler's former state.
    fn inherit(&mut self, old: &Self, sink: Option<(u64, u32)>) {
        *self.sink.get_mut().expect("not shared yet") = sink;
        *self.turned.get_mut().expect("not shared yet") = old.turned.lock().expect("no panic happens in it").clone();
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
        if let Some((opened, id)) = *sink
            && opened == generation
        {
            return Ok(id);
        }
        let id = loop {
            let id = pipeline::open_sink(&adoption.definition)?;
            // Asked again: opening the first sink begins the pipeline, and another one may have begun meanwhile.
            let before = std::mem::replace(&mut generation, pipeline::generation());
            if before == 0 || before == generation {
                break id;
            }
        };
        *sink = Some((generation, id));
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

    fn take_sink(&self) -> Option<(u64, u32)> {
        self.sink.lock().expect("no panic happens while it is held").take()
    }

    /// The sink, if it is open.
    pub fn open_sink(&self) -> Option<u32> {
        let sink = *self.sink.lock().expect("no panic happens while it is held");
        sink.filter(|(generation, _)| *generation == pipeline::generation()).map(|(_, id)| id)
    }
}

/// The state of a handler, made or renewed if what it was made from changed.
///
/// # Errors
///
/// Where Python raised.
pub fn state(describe: &Bound<'_, PyAny>, handler: &Bound<'_, PyAny>) -> Result<Arc<State>, Failure> {
    let address = handler.as_ptr() as usize;
    let known = with_table(|table| table.states.get(&address).map(|entry| entry.state.clone()));
    if let Some(state) = &known
        && state.holds()
    {
        return Ok(state.clone());
    }
    let followed = match &known {
        Some(old) => follow(old, handler)?,
        None => false,
    };
    let mut new = State::describe(describe, handler)?;
    if let Some(old) = &known {
        let sink = old.take_sink();
        // The sink of a forked child's parent may have gone over to a file that the child does not have open.
        let left = old.turns() && sink.is_some_and(|(generation, _)| generation != pipeline::generation());
        match (&old.verdict, &new.verdict) {
            (Verdict::Adopted(before), Verdict::Adopted(now))
                if !left && (followed || before.stream == now.stream && before.definition == now.definition) =>
            {
                new.inherit(old, sink);
            }
            _ if sink.is_none() => {}
            _ => {
                close(handler.py(), sink, SHORT_WAIT).map_err(|error| Failure::interrupted(handler.py(), error))?;
                if old.turns() {
                    call_catch_up(handler)?;
                    new = State::describe(describe, handler)?;
                }
            }
        }
    }
    if new.turns() && new.open_sink().is_none() {
        new = adopt_turning(describe, handler)?;
    }
    let state = Arc::new(new);
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
fn adopt_turning(describe: &Bound<'_, PyAny>, handler: &Bound<'_, PyAny>) -> Result<State, Failure> {
    let lock = handler.getattr("lock").ok().filter(|lock| !lock.is_none());
    if let Some(lock) = &lock
        && !lock.call_method1("acquire", (false,))?.is_truthy()?
    {
        return Err(Failure::Stock);
    }
    let state = State::describe(describe, handler);
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
        adoption.stream.text == stream.as_ptr() || behind.is_some() && adoption.definition.place() == behind
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

impl State {
    /// Asks what the handler is. Whatever the answer, it depends on the handler's class.
    fn describe(describe: &Bound<'_, PyAny>, handler: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = handler.get_type();
        // Read first: a change from here on makes the state stale, not wrong.
        let descriptions = environment::descriptions();
        let part = Part::watch(handler.as_ptr() as usize);
        // SAFETY: a live type, attached.
        let (class, tag) = unsafe { (Owned::borrow(class.as_ptr()), plan::assigned_tag(class.as_ptr())) };
        let mut state = Self::read(&describe.call1((handler,))?, descriptions)?;
        state.types.push((class, tag));
        state.parts.push(part);
        Ok(state)
    }

    fn read(answer: &Bound<'_, PyAny>, descriptions: u64) -> PyResult<Self> {
        let owned = |object: &Bound<'_, PyAny>| {
            // SAFETY: a live object, attached.
            unsafe { Owned::borrow(object.as_ptr()) }
        };
        let mut result = Self {
            descriptions,
            verdict: Verdict::Null,
            types: Vec::new(),
            parts: Vec::new(),
            words: Vec::new(),
            held: Vec::new(),
            sink: Mutex::new(None),
            turned: Mutex::new(None),
            reading: Mutex::new(None),
        };
        // Errors of pyo3 are not used to tell kinds apart: they would keep the answer, and with it the handler, alive
        // until somebody attaches by pyo3.
        if let Ok(reason) = answer.cast::<PyString>() {
            if reason != "null" {
                result.verdict = Verdict::Foreign(reason.extract()?);
            }
            return Ok(result);
        }
        let get = |name: &str| answer.getattr(name);
        for watched in get("watched")?.cast::<PyTuple>()?.iter() {
            let (object, offset, mask, value) = watched.extract::<(Bound<'_, PyAny>, usize, u64, u64)>()?;
            if mask != 0 {
                result.words.push(Word::new(object.as_ptr(), offset, mask, value));
            }
            result.held.push(owned(&object));
        }
        let kind: String = get("kind")?.extract()?;
        if kind == "foreign" || kind == "unopened" {
            let reason = get("reason")?.extract()?;
            result.verdict = if kind == "foreign" { Verdict::Foreign(reason) } else { Verdict::Unopened(reason) };
            return Ok(result);
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
        let (kind, descriptor) = match kind.as_str() {
            "file" => (SinkKind::File { path }, Descriptor::Duplicate(fd)),
            "watched" => (SinkKind::WatchedFile { path }, Descriptor::Duplicate(fd)),
            "rotating" => (rotating(path, &get("options")?)?, Descriptor::Duplicate(fd)),
            // Checked when the handler was made.
            "service" => match path.parse() {
                Ok(address) => (SinkKind::Service { address }, Descriptor::Open),
                Err(error) => return Err(PyValueError::new_err(format!("{error}"))),
            },
            "timed" => (timed(path, &get("options")?)?, Descriptor::Duplicate(fd)),
            "console" if fd <= 2 => (SinkKind::Console { descriptor: fd }, Descriptor::Open),
            // A pipe or device that has a name: the name is what a later start can be told about.
            "console" if path.starts_with('/') => (SinkKind::File { path }, Descriptor::Duplicate(fd)),
            "console" => (SinkKind::Console { descriptor: fd }, Descriptor::Duplicate(fd)),
            other => return Err(PyValueError::new_err(format!("unknown kind of sink: {other}"))),
        };
        let format = get("format")?;
        let format = match format.cast::<PyString>() {
            Ok(reason) => Err(reason.extract()?),
            Err(_) => Ok(FormatParts::read(&format)?),
        };
        result.verdict = Verdict::Adopted(Box::new(Adoption {
            definition: SinkDefinition { kind, descriptor },
            terminator,
            stream: text_stream,
            errors: get("errors")?.extract()?,
            interactive: get("interactive")?.extract()?,
            format,
            kept,
        }));
        for class in get("types")?.cast::<PyTuple>()?.iter() {
            let class = owned(&class);
            // SAFETY: a live type, attached.
            let tag = unsafe { plan::assigned_tag(class.as_ptr()) };
            result.types.push((class, tag));
        }
        for part in get("parts")?.cast::<PyTuple>()?.iter() {
            let (part, seen) = part.extract::<(Bound<'_, PyAny>, u64)>()?;
            result.parts.push(Part::watch(part.as_ptr() as usize).as_seen(seen));
        }
        Ok(result)
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

impl Adoption {
    /// Whether its records may go by value: the collector can follow its formatter, and it is a file.
    pub fn may_go_by_value(&self) -> bool {
        let kind = &self.definition.kind;
        self.format.is_ok() && !matches!(kind, SinkKind::Console { .. } | SinkKind::Service { .. })
    }

    /// Whether its records go to a service, in their parts.
    pub fn is_service(&self) -> bool {
        matches!(self.definition.kind, SinkKind::Service { .. })
    }

    /// Whether its sink goes over to other files by itself.
    pub fn turns(&self) -> bool {
        matches!(
            self.definition.kind,
            SinkKind::RotatingFile { .. } | SinkKind::TimedRotatingFile { .. } | SinkKind::WatchedFile { .. }
        )
    }

    /// The stream, with the sink that goes before the program's own text.
    pub fn text_stream(&self, sink: u32) -> TextStream {
        let after = match self.definition.kind {
            SinkKind::Console { .. } => None,
            _ => Some(sink),
        };
        TextStream { after, ..self.stream }
    }
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

impl Drop for Adoption {
    fn drop(&mut self) {
        self.kept.clear();
    }
}
