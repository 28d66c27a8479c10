//! Sinks: an address and a format. A sink is opened with its handle, and again in each further pipeline.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the users of a sink.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use logspool::option::{OptionShape, OptionValue};
use logspool::pipeline::{self, NextAttempt, PlaceAttempt};
use logspool::sinks;
use logspool_record::definition::{Descriptor, SinkDefinition};
use logspool_record::format::{ControlRule, Format, FormatSpec, Layout, Need, Style, Unsupported, pattern_error};

use crate::handles::{HandleTable, NEEDS_THREAD, NEEDS_THREAD_NAME, PLACE_TIMEOUT, PublicHandle};
use crate::json::{self, SinkFormat};
use crate::names;
use crate::status::{Failure, Status};

/// A sink with its format.
pub struct SinkHandle {
    /// The sink's address, with paths from the root.
    pub address: String,
    /// The sink's format, as the program gave it.
    pub format_text: Option<String>,
    spec: FormatSpec,
    /// The lowest level that the sink takes.
    pub min_level: u16,
    /// The parts of the thread that the format shows: `NEEDS_THREAD` and `NEEDS_THREAD_NAME`.
    pub needs: u32,
    sink: PublicHandle,
    format: PublicHandle,
    /// Number of its users: the program until it closes the sink, and the loggers.
    users: AtomicU32,
    /// Whether the program may use it: it has not closed it.
    is_open: AtomicBool,
}

/// All sinks of the process.
pub static SINKS: HandleTable<SinkHandle> = HandleTable::new();

/// The descriptor of a file sink, while it is handed to the core.
struct OpenedSink {
    definition: SinkDefinition,
    _descriptor: Option<OwnedFd>,
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::invalid(error.to_string())
}

fn define(kind: &str, given: Vec<(String, OptionValue)>, descriptor: Descriptor) -> Result<SinkDefinition, Failure> {
    sinks::define(kind, given, descriptor).map_err(refused)
}

/// Finds the definition of an address.
fn opened(address: &str) -> Result<OpenedSink, Failure> {
    let definition = match address {
        "" => return Err(Failure::invalid("the address of a sink is empty")),
        "stdout" | "stderr" => console(if address == "stdout" { 1 } else { 2 })?,
        _ if address.starts_with('{') => return from_json(address),
        _ if address.starts_with("fd:") => match address[3..].parse() {
            Ok(number) => console(number)?,
            Err(_) => return Err(Failure::invalid(format!("{address:?} does not name a descriptor: it must be fd:N"))),
        },
        _ if ["tcp://", "tls://", "unix://"].iter().any(|scheme| address.starts_with(scheme)) => {
            let given = vec![("address".to_owned(), OptionValue::Text(address.to_owned()))];
            define("service", given, Descriptor::Open)?
        }
        path => return file(path.to_owned()),
    };
    Ok(OpenedSink { definition, _descriptor: None })
}

/// The address with paths from the root. A forked child opens the sink again, and may have another working folder then.
/// An ill-formed address stays as it is: [`opened`] refuses it.
fn settled(address: &str) -> String {
    let schemes = ["fd:", "tcp://", "tls://", "unix://"];
    if address.starts_with('{') {
        with_absolute_paths(address).unwrap_or_else(|| address.to_owned())
    } else if ["", "stdout", "stderr"].contains(&address) || schemes.iter().any(|scheme| address.starts_with(scheme)) {
        address.to_owned()
    } else {
        json::absolute(address)
    }
}

fn with_absolute_paths(object: &str) -> Option<String> {
    let mut object = json::object("the address of a sink", object).ok()?;
    let row = sinks::row(object.get("kind")?.as_str()?).ok()?;
    for option in row.options.iter().filter(|option| option.shape == OptionShape::Path) {
        if let Some(serde_json::Value::String(path)) = object.get_mut(option.name) {
            *path = json::absolute(path);
        }
    }
    Some(serde_json::Value::Object(object).to_string())
}

/// The treatment of control characters if the format does not name it: a text must not control a terminal.
fn control_of(address: &str) -> ControlRule {
    let is_file = |number: i32| {
        // SAFETY: `fstat` fills the buffer, or says that it did not.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            libc::fstat(number, &raw mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG
        }
    };
    match address {
        "stdout" | "stderr" => ControlRule::Escape,
        _ => match address.strip_prefix("fd:").and_then(|number| number.parse().ok()) {
            Some(number) if number <= 2 || !is_file(number) => ControlRule::Escape,
            _ => ControlRule::Keep,
        },
    }
}

fn console(number: i32) -> Result<SinkDefinition, Failure> {
    let given = vec![("descriptor".to_owned(), OptionValue::Whole(number.into()))];
    define("console", given, if number > 2 { Descriptor::Duplicate(number) } else { Descriptor::Open })
}

/// Opens a file here and lends the descriptor, so that the core finds other sinks of the same file.
fn file(path: String) -> Result<OpenedSink, Failure> {
    let given = vec![("path".to_owned(), OptionValue::Text(path.clone()))];
    let is_special = std::fs::metadata(&path).is_ok_and(|status| !status.is_file());
    if is_special {
        // Opening a pipe may wait for its reader; the core knows how.
        return Ok(OpenedSink { definition: define("file", given, Descriptor::Open)?, _descriptor: None });
    }
    let name = std::ffi::CString::new(path.as_str()).map_err(|_| Failure::invalid("a path holds a NUL byte"))?;
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: `name` is a C string.
    let number = unsafe { libc::open(name.as_ptr(), flags, 0o666) };
    if number < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Failure::new(Status::Failed, format!("cannot open {path}: {error}")));
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    let definition = define("file", given, Descriptor::Duplicate(number))?;
    Ok(OpenedSink { definition, _descriptor: Some(descriptor) })
}

fn from_json(text: &str) -> Result<OpenedSink, Failure> {
    let mut object = json::object("the address of a sink", text)?;
    let kind = match object.remove("kind") {
        Some(serde_json::Value::String(kind)) => kind,
        _ => return Err(Failure::invalid("the address of a sink needs \"kind\": the name of a kind of sink")),
    };
    let row = sinks::row(&kind).map_err(refused)?;
    let descriptor = match object.remove("fd") {
        None => None,
        Some(number) => match number.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => Some(number),
            None => return Err(Failure::invalid(format!("fd must be the number of a descriptor, not {number}"))),
        },
    };
    let given = json::option_values(row.options, object)?;
    match (descriptor, kind.as_str(), given.as_slice()) {
        (None, "file", [(_, OptionValue::Path(path))]) => file(path.to_string_lossy().into_owned()),
        _ => {
            let descriptor = descriptor.map_or(Descriptor::Open, Descriptor::Duplicate);
            Ok(OpenedSink { definition: define(&kind, given, descriptor)?, _descriptor: None })
        }
    }
}

/// Opens a sink. Returns the id of its handle.
///
/// # Errors
///
/// The address or the format is ill-formed, or the sink cannot be opened.
pub fn open(address: &str, format: Option<&str>) -> Result<u32, Failure> {
    add(None, address, format, true)
}

/// Closes a sink: it is gone when its last logger is closed and its records are written.
///
/// # Errors
///
/// There is no such sink.
pub fn close(id: u32) -> Result<Status, Failure> {
    let sink = SINKS.get(id).filter(|sink| sink.is_open.swap(false, Ordering::Relaxed));
    sink.ok_or_else(|| Failure::unknown("sink", id))?;
    give_back(id);
    Ok(Status::Ok)
}

/// Adds a user of a sink.
pub fn share(id: u32) {
    if let Some(sink) = SINKS.get(id) {
        sink.users.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes back one use of a sink. After the last one its place is free for another sink when its records are written.
pub fn give_back(id: u32) {
    let Some(sink) = SINKS.get(id) else { return };
    if sink.users.fetch_sub(1, Ordering::Relaxed) == 1 {
        SINKS.close(id);
        // Without an id under the current pipeline, as in a forked child, nothing was opened.
        sink.sink.id_under(pipeline::id_epoch()).into_iter().for_each(pipeline::retire_sink);
    }
}

/// Adds the sink of another copy, under its id and as open or closed, if these are known. It is opened with the first
/// record if it cannot be opened now.
///
/// # Errors
///
/// The format is ill-formed.
pub fn restore(known: Option<(u32, bool)>, address: &str, format: Option<&str>) -> Result<u32, Failure> {
    let id = add(known.map(|(id, _)| id), address, format, false)?;
    // Its loggers come after it and keep it.
    if let (Some((_, false)), Some(sink)) = (known, SINKS.get(id)) {
        sink.is_open.store(false, Ordering::Relaxed);
        sink.users.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(id)
}

fn add(id: Option<u32>, address: &str, format: Option<&str>, must_open: bool) -> Result<u32, Failure> {
    let SinkFormat { mut spec, min_level, control } = json::format(format)?;
    let keys = names::unmark(&mut spec)?;
    spec.control = control.unwrap_or_else(|| control_of(address));
    let compiled = Format::compile(&spec).map_err(|error| match &spec.layout {
        Layout::Pattern(pattern) => {
            Failure::invalid(format!("bad pattern {pattern:?}: {}", pattern_error(pattern, error)))
        }
        Layout::Text { style, template } if error == Unsupported::Syntax => {
            let form = match style {
                Style::Percent => "%(message)s, and a percent sign %%",
                Style::Brace => "{message}, and a brace {{",
                Style::Dollar => "${message}, and a dollar sign $$",
            };
            Failure::invalid(format!("bad template {template:?}: an attribute is written {form}"))
        }
        _ => Failure::invalid(format!("cannot use the format: {error}")),
    })?;
    if !matches!(spec.layout, Layout::Pattern(_)) {
        names::check(&compiled, &keys)?;
    }
    let flag = |need, flag| if compiled.needs().contains(need) { flag } else { 0 };
    let needs = flag(Need::ThreadId, NEEDS_THREAD) | flag(Need::ThreadName, NEEDS_THREAD_NAME);
    let handle = SinkHandle {
        address: settled(address),
        format_text: format.map(str::to_owned),
        spec,
        min_level,
        needs,
        sink: PublicHandle::new(0),
        format: PublicHandle::new(0),
        users: AtomicU32::new(1),
        is_open: AtomicBool::new(true),
    };
    match handle.ids() {
        Err(failure) if must_open => return Err(failure),
        _ => {}
    }
    let added = match id {
        Some(id) => SINKS.add_as(id, handle),
        None => SINKS.add(|_| handle),
    };
    added.ok_or_else(|| Failure::new(Status::Failed, "there are too many sinks"))
}

/// Ids of sink and format in a pipeline.
pub type SinkIds = Result<(u32, u32), Failure>;

impl SinkHandle {
    /// Whether the program has not closed it.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Ids of sink and format in the current pipeline, which begins if there is none.
    ///
    /// # Errors
    ///
    /// The sink cannot be opened.
    pub fn ids(&self) -> SinkIds {
        pipeline::until_place(PLACE_TIMEOUT, |next| {
            self.try_ids(next).unwrap_or_else(|failure| PlaceAttempt::Done(Err(failure)))
        })
    }

    fn try_ids(&self, next: NextAttempt) -> Result<PlaceAttempt<SinkIds>, Failure> {
        let number = pipeline::id_epoch();
        if let (Some(sink), Some(format)) = (self.sink.id_under(number), self.format.id_under(number)) {
            return Ok(PlaceAttempt::Done(Ok((sink, format))));
        }
        let no_place = |text: String| Ok(PlaceAttempt::NoPlace(Err(Failure::new(Status::Failed, text))));
        let opened = opened(&self.address)?;
        // The lines of one file stay in the order of the calls.
        if next == NextAttempt::MayFollow && pipeline::is_leaving(&opened.definition) {
            return no_place("the sink is still closing".to_owned());
        }
        let sink = match pipeline::open_sink(&opened.definition) {
            Ok(sink) => sink,
            Err(text) => return no_place(text),
        };
        let is_entry = sinks::traits(&opened.definition).takes == sinks::SinkInput::Entries;
        let mut spec = if is_entry { FormatSpec::entry(0) } else { self.spec.clone() };
        spec.process_id = std::process::id();
        let format = pipeline::define_format(&spec)
            .ok_or_else(|| Failure::new(Status::Failed, "the queue has no room for another format"))?;
        // The first definition may have begun a pipeline under the next number.
        let number = pipeline::id_epoch();
        self.sink.set(number, sink);
        self.format.set(number, format);
        Ok(PlaceAttempt::Again)
    }
}
