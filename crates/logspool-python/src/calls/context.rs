//! Context that a format shows: thread, process, task, and the fields given with the call.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Context is looked up only if a format of the route needs it, with
//! the same lookups as `LogRecord.__init__`. If stock logging would look elsewhere for a logger (after a patch of
//! `threading.current_thread`, for example), `planning` keeps that logger on the stock path. Its calls never run this
//! code.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use logspool_record::tag;
use logspool_sys::generation;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::fields;
use crate::calls::pieces::Pieces;
use crate::calls::record_template::{KeptValue, TemplateCopy};
use crate::interpreter::call_thread::ThreadContext;
use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::context_variable;
use crate::interpreter::dict::{DictWalk, NewDict};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Owned};
use crate::interpreter::running_loop::{Loaded, if_any, loaded_module, running_loop};
use crate::plans::logging_globals::RecordContext;
use crate::plans::needs::Needs;

/// The objects that stock logging reads at each call, as they were when `install()` was called.
pub struct Sources {
    /// The context variable that `logspool.bind` sets.
    pub bound_fields: Owned,
    /// The attributes of the module `os`.
    pub os: NumberedDict,
    /// `os.getpid`.
    pub getpid: Owned,
}

static SOURCES: OnceLock<Sources> = OnceLock::new();

/// Sets the sources. Later calls change nothing. If the program replaces one of these objects, the plans become stale
/// and stock logging takes over.
pub fn set_sources(sources: Sources) {
    let _ = SOURCES.set(sources);
}

/// True if [`add`] has any context to add.
#[inline(always)]
pub fn is_needed(needs: &Needs, extra: Option<&Owned>) -> bool {
    needs.context() && (extra.is_some() || BOUND.load(Relaxed) || !needs.only_given_fields())
}

/// Adds the context that `needs` asks for. `extra` holds the fields given with `call`: an exact dict with `str` keys.
///
/// # Errors
///
/// [`Failure::Stock`] for values that only stock logging can show.
#[cold]
#[inline(never)]
pub fn add<'a, 'py: 'a>(
    py: Python<'py>,
    pieces: &mut Pieces<'a>,
    needs: Needs,
    extra: Option<&Owned>,
    call: Call<'a, 'py>,
) -> Result<(), Failure> {
    if needs.thread || needs.thread_name {
        let thread = ThreadContext::of_call(py)?;
        if needs.thread {
            pieces.word(tag::THREAD, thread.ident());
        }
        if needs.thread_name {
            add_text(py, pieces, tag::THREAD_NAME, thread.name(py)?)?;
        }
    }
    if needs.process_name {
        match process_name(py)? {
            Some(name) => add_text(py, pieces, tag::PROCESS_NAME, name)?,
            None => {
                pieces.bytes(tag::PROCESS_NAME, b"MainProcess");
            }
        }
    }
    if needs.task_name
        && let Some(name) = task_name(py)?
    {
        add_text(py, pieces, tag::TASK_NAME, name)?;
    }
    if let Some(shown) = needs.fields {
        fields::add(py, pieces, shown, needs.given, extra, bound_fields(py)?, call)?;
    }
    Ok(())
}

/// The names and numbers of thread, process and task that a `LogRecord` shows. A value that it does not show is `None`.
pub struct CallContext {
    thread: Option<(u64, Owned)>,
    process_name: Option<Owned>,
    process: Option<u32>,
    task: Option<Owned>,
}

impl CallContext {
    /// The context of the running call.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if a value cannot be found.
    #[inline]
    pub fn read(py: Python<'_>, shown: RecordContext) -> Result<Self, Failure> {
        let sources = SOURCES.get().ok_or(Failure::Stock)?;
        let thread = if shown.threads {
            let thread = ThreadContext::of_call(py)?;
            Some((thread.ident(), thread.name(py)?))
        } else {
            None
        };
        let process_name = if shown.process_names {
            Some(process_name(py)?.unwrap_or_else(|| names().main_process.clone_ref(py)))
        } else {
            None
        };
        let process = if shown.processes { Some(process_id(sources)?) } else { None };
        let task = if cfg!(Py_3_12) && shown.tasks { task_name(py)? } else { None };
        Ok(Self { thread, process_name, process, task })
    }

    /// Sets the attributes of a record that is being made.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set_on(&self, copy: &TemplateCopy<'_, '_>) -> Result<(), Failure> {
        let attributes = &copy.attributes;
        let py = attributes.py();
        // The template may be older than a change of a switch, so each attribute is set in any case.
        let none = Owned::none(py);
        match &self.thread {
            Some((ident, name)) => {
                copy.set_thread(*ident)?;
                copy.set(KeptValue::ThreadName, name.bind(py))?;
            }
            None => {
                attributes.set(&names().thread, none.bind(py))?;
                copy.set(KeptValue::ThreadName, none.bind(py))?;
            }
        }
        copy.set(KeptValue::ProcessName, self.process_name.as_ref().unwrap_or(&none).bind(py))?;
        match self.process {
            Some(process) => copy.set_process(process.into())?,
            None => attributes.set(&names().process, none.bind(py))?,
        }
        if cfg!(Py_3_12) {
            copy.set(KeptValue::Task, self.task.as_ref().unwrap_or(&none).bind(py))?;
        }
        Ok(())
    }
}

/// The process id.
///
/// # Errors
///
/// [`Failure::Stock`] if `os.getpid` is patched.
fn process_id(sources: &Sources) -> Result<u32, Failure> {
    let version = sources.os.now();
    if version == Some(PLAIN_OS.load(Relaxed)) {
        return Ok(generation::process_id());
    }
    // SAFETY: the dict of a module and an interned `str`; callers are attached. Only the address is used.
    let getpid = unsafe { ffi::PyDict_GetItemWithError(sources.os.object().as_ptr(), names().getpid.as_ptr()) };
    if getpid != sources.getpid.as_ptr() {
        return Err(Failure::Stock);
    }
    PLAIN_OS.store(version.unwrap_or(0), Relaxed);
    Ok(generation::process_id())
}

/// The number of the change of the module `os` after which `os.getpid` was found unpatched. No dict has the number 0.
static PLAIN_OS: AtomicU64 = AtomicU64::new(0);

/// Sets the fields of `logspool.bind` on a record that is being made. Fields of the call win over them.
///
/// # Errors
///
/// There is not enough memory.
#[inline]
pub fn add_bound_fields(attributes: &NewDict<'_>) -> Result<(), Failure> {
    let py = attributes.py();
    let Some(fields) = bound_fields(py)? else { return Ok(()) };
    let mut walk = DictWalk::of(fields.bind(py));
    while let Some((name, value)) = walk.next() {
        attributes.set_default(name, value)?;
    }
    Ok(())
}

/// Adds an exact `str`.
///
/// # Errors
///
/// [`Failure::Stock`] for any other object, and for text that cannot be encoded.
pub fn add_text(py: Python<'_>, pieces: &mut Pieces<'_>, tag: u8, text: Owned) -> Result<(), Failure> {
    if object::is_exact_str(text.bind(py)) && pieces.keep_text(py, tag, text) { Ok(()) } else { Err(Failure::Stock) }
}

fn process_name(py: Python<'_>) -> Result<Option<Owned>, Failure> {
    let Some(module) = loaded_module(py, Loaded::Multiprocessing) else { return Ok(None) };
    // As in stock logging, a partly imported module counts as not imported.
    let Some(function) = object::attribute(module.bind(py), &names().current_process) else { return Ok(None) };
    match if_any(py, leaving::call(function.bind(py)))? {
        Some(process) => if_any(py, leaving::attribute(process.bind(py), &names().name)),
        None => Ok(None),
    }
}

fn task_name(py: Python<'_>) -> Result<Option<Owned>, Failure> {
    // `current_task` raises an exception if no loop runs. Looking for the loop first avoids that exception.
    let Some((module, _)) = running_loop(py)? else { return Ok(None) };
    let Some(function) = object::attribute(module.bind(py), &names().current_task) else { return Ok(None) };
    match if_any(py, leaving::call(function.bind(py)))? {
        Some(task) => if_any(py, leaving::method(task.bind(py), &names().get_name)),
        None => Ok(None),
    }
}

/// True once `logspool.bind` was used. Before the first use no context has bound fields.
///
/// This atomic is outside the crate's `queue` module: it is set once, before the first fields are bound.
static BOUND: AtomicBool = AtomicBool::new(false);

/// Records that `logspool.bind` is in use.
pub fn note_bound_fields() {
    BOUND.store(true, Relaxed);
}

/// The fields of `logspool.bind`, if any: an exact dict that never changes after `bind` made it.
///
/// # Errors
///
/// The context variable could not be read.
#[inline]
pub fn bound_fields(py: Python<'_>) -> Result<Option<Owned>, Failure> {
    if !BOUND.load(Relaxed) {
        return Ok(None);
    }
    let sources = SOURCES.get().ok_or(Failure::Stock)?;
    let fields = context_variable::value(py, &sources.bound_fields, None)?;
    Ok(if fields.bind(py).is_none() { None } else { Some(fields) })
}
