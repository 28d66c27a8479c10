//! A finished `LogRecord` by value, for an adopted handler that stock logging reaches.
//!
//! Stop on the line: *capture*, beside the native path. Everything a format shows is read from the record, never
//! looked up again: it may have been made elsewhere, or changed by a filter. What the collector would not render as
//! Python does from the same record (a level renamed on the record, a time that cannot be met to the bit, a traceback)
//! makes [`queue`] answer [`ByValue::No`], and the line is formatted in the caller.
//!
//! Formatting leaves `message` and `asctime` on the record. Nobody can miss them where this handler is the last stop:
//! the logger of the record's name reaches no other handler, and no filter has kept it. Elsewhere, as behind a
//! `QueueListener`, both are set here as Python's formatter sets them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use logspool_record::definition::{RouteDefinition, Target};
use logspool_record::format::{CompiledSite, Format, RenderState, TimeArithmetic};
use logspool_record::{Head, tag};
use pyo3::ffi::{self, PyObject};

use crate::adoption::{Adoption, State};
use crate::keywords;
use crate::message::{self, Failure};
use crate::names::names;
use crate::object::{self, Owned};
use crate::pieces::Pieces;
use crate::plan::{self, ListShape, Needs};
use crate::planning;
use crate::queueing::{self, MadeUnder, Queued};
use crate::site::Site;
use crate::stream;
use crate::values;
use crate::world::World;

/// What became of a record.
pub enum ByValue {
    /// It is in the queue, or was refused and counted.
    Done,
    /// Its line must be made in the caller.
    No,
    /// An error that no handler catches is set.
    Raised,
}

/// What is known about the records of one handler, under one generation.
pub struct Reading {
    /// Pipeline generation of the ids.
    pub generation: u64,
    /// Level names and clock.
    pub world: Arc<World>,
    /// Format id and what it shows.
    pub format: (u32, Needs),
    /// What of a record decides about its line.
    pub matters: Matters,
    /// Makes the texts that formatting leaves on a record.
    compiled: Format,
    render: Mutex<RenderState>,
    /// Logger names met so far.
    names: Mutex<Vec<Arc<Name>>>,
}

/// What of a record decides about its line, beside what every format takes from it.
#[derive(Debug, Clone, Copy)]
pub struct Matters {
    /// The process id is shown.
    pub process_id: bool,
    /// The file's name or the module is shown: a record has both beside its path.
    pub file: bool,
    /// The attributes are passed as keywords, whose names have to be text.
    pub attribute_names: bool,
}

/// One logger name, under one epoch.
struct Name {
    object: Owned,
    epoch: u64,
    route: u32,
    /// Lists of handlers and filters under which this handler is the record's last stop; `None` when it is not.
    last_stop: Option<Vec<ListShape>>,
}

/// Most names per handler; records of others are formatted in the caller.
///
/// Chosen: a scan of addresses; programs log through a few dozen loggers.
const MOST_NAMES: usize = 64;

impl Reading {
    /// Nothing met yet.
    pub fn new(generation: u64, world: Arc<World>, format: (u32, Needs), compiled: Format, matters: Matters) -> Self {
        Self { generation, world, format, matters, compiled, render: Mutex::default(), names: Mutex::default() }
    }

    /// Sets the attributes that formatting leaves on a record.
    unsafe fn leave_texts(&self, record: *mut PyObject, time: i64, message: &Owned) -> Result<(), Failure> {
        // SAFETY: live objects, attached; the record's class has the stock `__setattr__`.
        unsafe {
            let mut asctime = Vec::new();
            let shows_time = {
                let mut state = self.render.lock().unwrap_or_else(PoisonError::into_inner);
                self.compiled.push_asctime(time, &mut state, &mut asctime)
            };
            if ffi::PyObject_SetAttr(record, names().message.as_ptr(), message.as_ptr()) < 0 {
                return Err(message::failure());
            }
            if shows_time {
                let text = ffi::PyUnicode_DecodeUTF8(asctime.as_ptr().cast(), asctime.len() as isize, std::ptr::null());
                let text = Owned::steal(text).ok_or_else(|| message::failure())?;
                if ffi::PyObject_SetAttr(record, names().asctime.as_ptr(), text.as_ptr()) < 0 {
                    return Err(message::failure());
                }
            }
            Ok(())
        }
    }

    unsafe fn name(
        &self,
        handler: *mut PyObject,
        name: *mut PyObject,
        sink: u32,
        epoch: u64,
    ) -> Result<Arc<Name>, Failure> {
        // SAFETY: live objects, attached. The lock is not held across Python code.
        unsafe {
            {
                let known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                let found = known.iter().find(|known| known.object.as_ptr() == name);
                if let Some(found) = found.filter(|found| found.epoch == epoch) {
                    return Ok(found.clone());
                }
                if found.is_none() && known.len() == MOST_NAMES {
                    return Err(Failure::Stock);
                }
            }
            let logger = object::text(name).ok_or(Failure::Stock)?.to_owned();
            let last_stop = message::unless_stock(planning::last_stop(handler, &logger))?.flatten();
            let definition =
                RouteDefinition { logger, targets: vec![Target { sink, format: self.format.0, min_level: 0 }] };
            let route = crate::ids::route_id(definition).ok_or(Failure::Stock)?;
            let made = Arc::new(Name { object: Owned::borrow(name), epoch, route, last_stop });
            let old = {
                let mut known = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                match known.iter_mut().find(|known| known.object.as_ptr() == name) {
                    Some(old) => Some(std::mem::replace(old, made.clone())),
                    None => {
                        known.push(made.clone());
                        None
                    }
                }
            };
            // Without the lock: it may be the last to hold a list of handlers.
            drop(old);
            Ok(made)
        }
    }
}

/// Who passes a record on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `Handler.handle`, which would ask the handler's filters first.
    Handle,
    /// `Handler.emit`, after the filters.
    Emit,
}

/// Queues a record by its values.
///
/// # Safety
///
/// Live objects; attached. `state` is the handler's, fresh.
pub unsafe fn queue(
    step: Step,
    state: &State,
    adoption: &Adoption,
    sink: u32,
    handler: *mut PyObject,
    record: *mut PyObject,
    made_under: MadeUnder,
) -> ByValue {
    // SAFETY: passed on.
    unsafe {
        read(step, state, adoption, sink, handler, record, made_under).unwrap_or_else(|failure| match failure {
            Failure::Stock => ByValue::No,
            Failure::Raised => ByValue::Raised,
        })
    }
}

unsafe fn read(
    step: Step,
    state: &State,
    adoption: &Adoption,
    sink: u32,
    handler: *mut PyObject,
    record: *mut PyObject,
    made_under: MadeUnder,
) -> Result<ByValue, Failure> {
    // SAFETY: live objects, attached; exact types are checked before their fields are read. Every object that pieces
    // point into is kept by them.
    unsafe {
        let Some(class) = planning::record_class() else { return Ok(ByValue::No) };
        if ffi::Py_TYPE(record).cast::<PyObject>() != class {
            return Ok(ByValue::No);
        }
        let Some(reading) = state.reading(adoption)? else { return Ok(ByValue::No) };
        let matters = reading.matters;
        if matters.attribute_names && !all_named(record) {
            return Ok(ByValue::No);
        }
        if reading.generation != made_under.generation || plan::version_tag(class) != reading.world.record_tag {
            return Ok(ByValue::No);
        }
        let fields = Fields { record };
        let names = names();
        for name in [&names.exc_info, &names.exc_text, &names.stack_info] {
            if fields.get(name)?.as_ptr() != ffi::Py_None() {
                return Ok(ByValue::No);
            }
        }
        let name = fields.exact_str(&names.name)?;
        let name = reading.name(handler, name.as_ptr(), sink, made_under.epoch)?;
        let is_last_stop = name.last_stop.as_ref().is_some_and(|lists| lists.iter().all(|list| list.fresh()));
        if step == Step::Handle && !is_last_stop && !has_no_filters(handler)? {
            return Ok(ByValue::No);
        }
        let level = fields.level(&reading.world)?;
        let time = fields.time(reading.world.arithmetic)?;
        let needs = reading.format.1;
        if matters.process_id
            && values::small_int(fields.exact_int(&names.process)?.as_ptr()) != Some(i64::from(std::process::id()))
        {
            return Ok(ByValue::No);
        }
        let place = if needs.caller { Some(fields.place(matters.file)?) } else { None };
        let site = match &place {
            Some(place) => &place.site,
            None => no_place(),
        };
        let mut pieces = Pieces::new();
        pieces.word(tag::TIME, time as u64);
        if needs.thread {
            let thread = fields.exact_int(&names.thread)?;
            pieces.word(tag::THREAD, values::small_int(thread.as_ptr()).ok_or(Failure::Stock)? as u64);
        }
        for (needed, tag, name) in [
            (needs.thread_name, tag::THREAD_NAME, &names.thread_name),
            (needs.process_name, tag::PROCESS_NAME, &names.process_name),
        ] {
            if needed {
                fields.add_text(&mut pieces, tag, name)?;
            }
        }
        if needs.task_name && fields.get(&names.task_name)?.as_ptr() != ffi::Py_None() {
            fields.add_text(&mut pieces, tag::TASK_NAME, &names.task_name)?;
        }
        // Kept until the record is queued: pieces point into them.
        let mut message = fields.get(&names.msg)?;
        let mut arguments = fields.get(&names.args)?;
        if !is_last_stop {
            message = plain_text(message, &arguments)?;
            arguments = Owned::borrow(ffi::Py_None());
            reading.leave_texts(record, time, &message)?;
        }
        let mut call = [std::ptr::null_mut(); MOST_ARGUMENTS + 1];
        let count = arguments_of(&mut call, &message, &arguments)?;
        let site = message::add(&mut pieces, site, made_under.generation, call.as_ptr(), count)?;
        if !adoption.stream.text.is_null() {
            stream::empty_buffers(&[adoption.text_stream(sink)])?;
        }
        if !made_under.holds() {
            return Ok(ByValue::No);
        }
        let head = Head { len: 0, site, route: name.route, level, flags: 0, ticks: 0 };
        Ok(match queueing::queue(head, made_under, &pieces) {
            Queued::Done => ByValue::Done,
            Queued::Stale => ByValue::No,
            Queued::Raised => ByValue::Raised,
        })
    }
}

/// Whether no filter of the handler would see a record.
unsafe fn has_no_filters(handler: *mut PyObject) -> Result<bool, Failure> {
    // SAFETY: a live handler whose class has the stock `__getattribute__`; the exact type is checked first.
    unsafe {
        let filters = object::attribute(handler, names().filters.as_ptr()).ok_or(Failure::Stock)?;
        Ok(ffi::Py_TYPE(filters.as_ptr()) == &raw mut ffi::PyList_Type && ffi::PyList_GET_SIZE(filters.as_ptr()) == 0)
    }
}

/// What `LogRecord.getMessage` returns, for a message and arguments that run no foreign code.
///
/// # Errors
///
/// [`Failure::Stock`] for others, and where formatting raises.
///
/// # Safety
///
/// Live objects; attached.
pub unsafe fn plain_text(message: Owned, arguments: &Owned) -> Result<Owned, Failure> {
    // SAFETY: live objects, attached; exact types are checked before they are used.
    unsafe {
        if !object::is_exact_str(message.as_ptr()) {
            return Err(Failure::Stock);
        }
        if arguments.as_ptr() == ffi::Py_None() {
            return Ok(message);
        }
        if ffi::Py_TYPE(arguments.as_ptr()) != &raw mut ffi::PyTuple_Type {
            return Err(Failure::Stock);
        }
        let count = ffi::PyTuple_GET_SIZE(arguments.as_ptr());
        if count == 0 {
            return Ok(message);
        }
        if (0..count).any(|index| !is_scalar(ffi::PyTuple_GET_ITEM(arguments.as_ptr(), index))) {
            return Err(Failure::Stock);
        }
        Owned::steal(ffi::PyUnicode_Format(message.as_ptr(), arguments.as_ptr())).ok_or_else(|| message::failure())
    }
}

/// Whether it is a `str`, `int` or `float` and of no subclass.
unsafe fn is_scalar(object: *mut PyObject) -> bool {
    // SAFETY: a live object.
    let class = unsafe { ffi::Py_TYPE(object) };
    class == &raw mut ffi::PyUnicode_Type || class == &raw mut ffi::PyLong_Type || class == &raw mut ffi::PyFloat_Type
}

/// Whether the name of every attribute is text. `extra` may bring others.
unsafe fn all_named(record: *mut PyObject) -> bool {
    // SAFETY: a live instance of a Python class, which has a dict. Nothing foreign runs while it is walked; without a
    // GIL another thread might change it, so there a copy is walked.
    unsafe {
        let Some(mut attributes) = Owned::steal(ffi::PyObject_GenericGetDict(record, std::ptr::null_mut())) else {
            ffi::PyErr_Clear();
            return false;
        };
        if cfg!(Py_GIL_DISABLED) {
            let Ok(copied) = keywords::copy(attributes.as_ptr()) else { return false };
            attributes = copied;
        }
        let mut position: ffi::Py_ssize_t = 0;
        let mut key = std::ptr::null_mut();
        while ffi::PyDict_Next(attributes.as_ptr(), &mut position, &mut key, std::ptr::null_mut()) != 0 {
            if ffi::PyUnicode_Check(key) == 0 {
                return false;
            }
        }
        true
    }
}

/// Most arguments of a record that goes by value.
const MOST_ARGUMENTS: usize = 16;

/// Lays message and arguments out as a call has them. Returns their number.
unsafe fn arguments_of(
    call: &mut [*mut PyObject; MOST_ARGUMENTS + 1],
    message: &Owned,
    arguments: &Owned,
) -> Result<usize, Failure> {
    // SAFETY: live objects; a tuple keeps its items, and `arguments` the tuple.
    unsafe {
        call[0] = message.as_ptr();
        if arguments.as_ptr() == ffi::Py_None() {
            return Ok(1);
        }
        if ffi::Py_TYPE(arguments.as_ptr()) != &raw mut ffi::PyTuple_Type {
            return Err(Failure::Stock);
        }
        let count = ffi::PyTuple_GET_SIZE(arguments.as_ptr()) as usize;
        if count > MOST_ARGUMENTS {
            return Err(Failure::Stock);
        }
        for (index, place) in call[1..=count].iter_mut().enumerate() {
            *place = ffi::PyTuple_GET_ITEM(arguments.as_ptr(), index as ffi::Py_ssize_t);
        }
        // A call's single mapping would have been taken out of its tuple before.
        if count == 1 && !is_scalar(call[1]) { Err(Failure::Stock) } else { Ok(count + 1) }
    }
}

/// The attributes of a record.
struct Fields {
    record: *mut PyObject,
}

impl Fields {
    unsafe fn get(&self, name: &Owned) -> Result<Owned, Failure> {
        // SAFETY: a live record; its class has the stock `__getattribute__`, so no foreign code runs.
        unsafe { object::attribute(self.record, name.as_ptr()).ok_or(Failure::Stock) }
    }

    unsafe fn exact_str(&self, name: &Owned) -> Result<Owned, Failure> {
        // SAFETY: passed on.
        unsafe {
            self.get(name)
                .and_then(|found| if object::is_exact_str(found.as_ptr()) { Ok(found) } else { Err(Failure::Stock) })
        }
    }

    unsafe fn exact_int(&self, name: &Owned) -> Result<Owned, Failure> {
        // SAFETY: passed on.
        unsafe {
            let found = self.get(name)?;
            if ffi::Py_TYPE(found.as_ptr()) == &raw mut ffi::PyLong_Type { Ok(found) } else { Err(Failure::Stock) }
        }
    }

    unsafe fn exact_float(&self, name: &Owned) -> Result<f64, Failure> {
        // SAFETY: passed on.
        unsafe {
            let found = self.get(name)?;
            if ffi::Py_TYPE(found.as_ptr()) != &raw mut ffi::PyFloat_Type {
                return Err(Failure::Stock);
            }
            Ok(ffi::PyFloat_AS_DOUBLE(found.as_ptr()))
        }
    }

    unsafe fn add_text(&self, pieces: &mut Pieces, tag: u8, name: &Owned) -> Result<(), Failure> {
        // SAFETY: the text is kept by `pieces`.
        unsafe {
            let text = self.exact_str(name)?;
            let bytes = object::utf8(text.as_ptr()).ok_or(Failure::Stock)?;
            pieces.keep(text);
            if pieces.bytes(tag, bytes) { Ok(()) } else { Err(Failure::Stock) }
        }
    }

    /// The level's number, if the record has the name that the number stands for.
    unsafe fn level(&self, world: &World) -> Result<u16, Failure> {
        // SAFETY: passed on.
        unsafe {
            let number = values::small_int(self.exact_int(&names().levelno)?.as_ptr());
            let number = number.and_then(|number| u16::try_from(number).ok()).ok_or(Failure::Stock)?;
            let shown = self.exact_str(&names().levelname)?;
            let index = world.level_names.binary_search_by_key(&number, |(number, _)| *number);
            let (_, name) = &world.level_names[index.map_err(|_| Failure::Stock)?];
            if object::utf8(shown.as_ptr()) == Some(name.as_bytes()) { Ok(number) } else { Err(Failure::Stock) }
        }
    }

    /// Nanoseconds from which the collector computes the record's `created` and `msecs` to the bit.
    unsafe fn time(&self, arithmetic: TimeArithmetic) -> Result<i64, Failure> {
        // SAFETY: passed on.
        let (created, msecs) = unsafe { (self.exact_float(&names().created)?, self.exact_float(&names().msecs)?) };
        nanoseconds(created, msecs, arithmetic).ok_or(Failure::Stock)
    }

    /// Where the record says that it was made. What it says of the file beside the path is looked at where it is shown.
    unsafe fn place(&self, shows_file: bool) -> Result<Arc<Place>, Failure> {
        // SAFETY: passed on. Places hold the objects by whose addresses they are found.
        unsafe {
            let path = self.exact_str(&names().pathname)?;
            let function = self.exact_str(&names().func_name)?;
            let line = values::small_int(self.exact_int(&names().lineno)?.as_ptr());
            let line = line.and_then(|line| u32::try_from(line).ok()).ok_or(Failure::Stock)?;
            let key = (path.as_ptr() as usize, function.as_ptr() as usize, line);
            let known = {
                let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
                places.get_or_insert_default().get(&key).cloned()
            };
            let place = match known {
                Some(place) => place,
                None => Place::new(key, path, function, line)?,
            };
            let same = |name: &Owned, text: &str| {
                self.exact_str(name).map(|found| object::utf8(found.as_ptr()) == Some(text.as_bytes()))
            };
            if !shows_file
                || same(&names().filename, place.compiled.filename())?
                    && same(&names().module, place.compiled.module())?
            {
                Ok(place)
            } else {
                Err(Failure::Stock)
            }
        }
    }
}

/// A place that records name.
struct Place {
    #[expect(dead_code, reason = "held, so that no other object gets its address")]
    texts: [Owned; 2],
    site: Site,
    compiled: CompiledSite,
}

type Key = (usize, usize, u32);

static PLACES: Mutex<Option<HashMap<Key, Arc<Place>>>> = Mutex::new(None);

/// Most places kept; at that number they are forgotten and met anew.
///
/// Chosen: some 2 MB; programs have a few hundred.
const MOST_PLACES: usize = 4096;

impl Place {
    unsafe fn new(key: Key, path: Owned, function: Owned, line: u32) -> Result<Arc<Self>, Failure> {
        // SAFETY: exact strs, attached.
        unsafe {
            let text = |object: &Owned| object::text(object.as_ptr()).map(str::to_owned).ok_or(Failure::Stock);
            let site = Site::of_record(text(&path)?, line, text(&function)?);
            let compiled = CompiledSite::new(site.definition().clone());
            let made = Arc::new(Self { texts: [path, function], site, compiled });
            let gone = {
                let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
                let places = places.get_or_insert_default();
                let gone = (places.len() >= MOST_PLACES).then(|| std::mem::take(places));
                places.insert(key, made.clone());
                gone
            };
            drop(gone);
            Ok(made)
        }
    }
}

/// The site of records whose format shows none: it only carries the message.
fn no_place() -> &'static Site {
    static NOWHERE: std::sync::OnceLock<Site> = std::sync::OnceLock::new();
    NOWHERE.get_or_init(|| Site::of_record(String::new(), 0, String::new()))
}

/// Nanoseconds in a second.
const NANOS: i64 = 1_000_000_000;

/// A time in nanoseconds that becomes exactly `created` and `msecs` by `arithmetic`.
fn nanoseconds(created: f64, msecs: f64, arithmetic: TimeArithmetic) -> Option<i64> {
    // Beyond it nanoseconds do not fit; before the epoch Python truncates elsewhere.
    if !(0.0..9e9).contains(&created) {
        return None;
    }
    let second = created.trunc();
    let near = second as i64 * NANOS + ((created - second) * 1e9).round() as i64;
    let seconds_of = |time: i64| {
        if arithmetic != TimeArithmetic::Nanoseconds && time % NANOS == 0 {
            (time / NANOS) as f64
        } else {
            time as f64 / 1e9
        }
    };
    // A double of this size stands for some 240 ns, and the integer itself is rounded before the division.
    let time = [0, 64, -64, 128, -128].into_iter().map(|step| near + step).find(|time| seconds_of(*time) == created)?;
    match arithmetic {
        TimeArithmetic::FloatFraction => ((created - second) * 1000.0 == msecs).then_some(time),
        TimeArithmetic::FloatWhole => (((created - second) * 1000.0).trunc() + 0.0 == msecs).then_some(time),
        TimeArithmetic::Nanoseconds => {
            if !(0.0..=999.0).contains(&msecs) || msecs.fract() != 0.0 {
                return None;
            }
            let first = time.div_euclid(NANOS) * NANOS + msecs as i64 * 1_000_000;
            let time = time.clamp(first, first + 999_999);
            // At the turn of a second CPython mends `msecs`; such a record is formatted in the caller.
            let whole = time / NANOS == second as i64;
            (whole && seconds_of(time) == created).then_some(time)
        }
    }
}
