//! Context of the call that a format shows: thread, process, task, fields.
//!
//! Stop on the line: *capture*. Asked for only when a format of the route needs it, by the same lookups as
//! `LogRecord.__init__`. What stock logging would look up elsewhere (a patched `threading.current_thread`, say)
//! never comes here: `planning` keeps such loggers on the stock path.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use logspool_record::tag;
use pyo3::ffi::{self, PyObject};

use crate::fields;
use crate::leaving;
use crate::message::{self, Failure};
use crate::names::names;
use crate::object::{self, Owned};
use crate::pieces::Pieces;
use crate::plan::Needs;

/// Objects that stock logging reads at each call, as they were at install.
pub struct Sources {
    /// `threading._active`.
    pub active_threads: Owned,
    /// `threading.current_thread`.
    pub current_thread: Owned,
    /// `threading.Thread.name`, the property.
    pub thread_name: Owned,
    /// `sys.modules`.
    pub modules: Owned,
    /// `"multiprocessing"`.
    pub multiprocessing: Owned,
    /// `"asyncio"`.
    pub asyncio: Owned,
    /// The context variable behind `logspool.bind`.
    pub bound_fields: Owned,
}

unsafe extern "C" {
    // Declared here: older PyO3 lacks it.
    fn PyThread_get_thread_ident() -> std::ffi::c_ulong;
}

static SOURCES: OnceLock<Sources> = OnceLock::new();

/// Remembers the sources. The first call counts: they are never replaced without a plan noticing.
pub fn set_sources(sources: Sources) {
    let _ = SOURCES.set(sources);
}

/// Whether there is something to [`add`].
#[inline(always)]
pub fn is_needed(needs: &Needs, extra: Option<&Owned>) -> bool {
    needs.context() && (extra.is_some() || BOUND.load(Relaxed) || !needs.only_given_fields())
}

/// Adds what `needs` asks for; `extra` are the fields that the call gave itself.
///
/// # Safety
///
/// Attached; `extra` is an exact dict with `str` keys.
#[cold]
#[inline(never)]
pub unsafe fn add(pieces: &mut Pieces, needs: Needs, extra: Option<&Owned>) -> Result<(), Failure> {
    let sources = SOURCES.get().ok_or(Failure::Stock)?;
    // SAFETY: attached; every object added is kept by `pieces`.
    unsafe {
        if needs.thread || needs.thread_name {
            let ident = PyThread_get_thread_ident();
            if needs.thread {
                pieces.word(tag::THREAD, ident as u64);
            }
            if needs.thread_name {
                let name = thread_name(sources, ident)?;
                add_text(pieces, tag::THREAD_NAME, name)?;
            }
        }
        if needs.process_name {
            match process_name(sources)? {
                Some(name) => add_text(pieces, tag::PROCESS_NAME, name)?,
                None => {
                    pieces.bytes(tag::PROCESS_NAME, b"MainProcess");
                }
            }
        }
        if needs.task_name
            && let Some(name) = task_name(sources)?
        {
            add_text(pieces, tag::TASK_NAME, name)?;
        }
        if let Some(shown) = needs.fields {
            fields::add(pieces, shown, extra, bound_fields(sources)?)?;
        }
    }
    Ok(())
}

unsafe fn add_text(pieces: &mut Pieces, tag: u8, text: Owned) -> Result<(), Failure> {
    // SAFETY: `text` is kept by `pieces` beyond the write.
    unsafe {
        if !object::is_exact_str(text.as_ptr()) {
            return Err(Failure::Stock);
        }
        let bytes = object::utf8(text.as_ptr()).ok_or(Failure::Stock)?;
        pieces.keep(text);
        if pieces.bytes(tag, bytes) { Ok(()) } else { Err(Failure::Stock) }
    }
}

unsafe fn thread_name(sources: &Sources, ident: std::ffi::c_ulong) -> Result<Owned, Failure> {
    // SAFETY: attached; `_active` is an exact dict with int keys.
    unsafe {
        let key = Owned::steal(ffi::PyLong_FromUnsignedLong(ident)).ok_or(Failure::Stock)?;
        let thread = ffi::PyDict_GetItemWithError(sources.active_threads.as_ptr(), key.as_ptr());
        let thread = if thread.is_null() {
            // A thread that Python did not start: stock logging makes a dummy for it, and so does this.
            Owned::steal(leaving::call(sources.current_thread.as_ptr())).ok_or_else(|| message::failure())?
        } else {
            Owned::borrow(thread)
        };
        // The property of an untouched Thread reads `_name`.
        let class = ffi::Py_TYPE(thread.as_ptr()).cast::<PyObject>();
        let property = object::attribute(class, names().name.as_ptr()).ok_or(Failure::Stock)?;
        let name = if property.as_ptr() == sources.thread_name.as_ptr() {
            ffi::PyObject_GenericGetAttr(thread.as_ptr(), names().private_name.as_ptr())
        } else {
            leaving::attribute(thread.as_ptr(), names().name.as_ptr())
        };
        Owned::steal(name).ok_or_else(|| message::failure())
    }
}

/// What was found. `None` where that raised: stock logging passes over every `Exception` there, and nothing else.
unsafe fn if_any(found: *mut PyObject) -> Result<Option<Owned>, Failure> {
    // SAFETY: a new reference, or null with an error set; attached.
    unsafe { message::unless_stock(Owned::steal(found).ok_or_else(|| message::failure())) }
}

unsafe fn module(sources: &Sources, name: &Owned) -> Option<*mut PyObject> {
    // SAFETY: `sys.modules` is a dict; the module is borrowed from it while no foreign code runs.
    unsafe {
        let module = ffi::PyDict_GetItemWithError(sources.modules.as_ptr(), name.as_ptr());
        if module.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        (module != ffi::Py_None()).then_some(module)
    }
}

unsafe fn process_name(sources: &Sources) -> Result<Option<Owned>, Failure> {
    // SAFETY: attached.
    unsafe {
        let Some(module) = module(sources, &sources.multiprocessing) else { return Ok(None) };
        // As stock: a module that is only half imported counts as none.
        let Some(function) = object::attribute(module, names().current_process.as_ptr()) else { return Ok(None) };
        match if_any(leaving::call(function.as_ptr()))? {
            Some(process) => if_any(leaving::attribute(process.as_ptr(), names().name.as_ptr())),
            None => Ok(None),
        }
    }
}

unsafe fn running_loop(sources: &Sources) -> Result<Option<(Owned, Owned)>, Failure> {
    // SAFETY: attached.
    unsafe {
        let Some(module) = module(sources, &sources.asyncio) else { return Ok(None) };
        let module = Owned::borrow(module);
        let function = object::attribute(module.as_ptr(), names().get_running_loop.as_ptr());
        let Some(function) = function else { return Ok(None) };
        let found = if_any(leaving::call(function.as_ptr()))?;
        Ok(found.filter(|found| found.as_ptr() != ffi::Py_None()).map(|found| (module, found)))
    }
}

/// Whether the calling thread runs an asyncio loop; asyncio is looked at only if the program imported it.
///
/// # Errors
///
/// Where asking raised what no handler of errors catches.
///
/// # Safety
///
/// Attached.
pub unsafe fn has_running_loop() -> Result<bool, Failure> {
    let Some(sources) = SOURCES.get() else { return Ok(false) };
    // SAFETY: attached.
    Ok(unsafe { running_loop(sources) }?.is_some())
}

unsafe fn task_name(sources: &Sources) -> Result<Option<Owned>, Failure> {
    // SAFETY: attached. Asking for the loop first spares the exception that `current_task` raises without one.
    unsafe {
        let Some((module, _)) = running_loop(sources)? else { return Ok(None) };
        let function = object::attribute(module.as_ptr(), names().current_task.as_ptr());
        let Some(function) = function else { return Ok(None) };
        match if_any(leaving::call(function.as_ptr()))? {
            Some(task) => if_any(leaving::method(task.as_ptr(), names().get_name.as_ptr())),
            None => Ok(None),
        }
    }
}

/// Whether `logspool.bind` was ever used: until then no context has fields.
///
/// An atomic outside `queue`: set once, before the first fields are.
static BOUND: AtomicBool = AtomicBool::new(false);

/// Notes that `logspool.bind` is used.
pub fn note_bound_fields() {
    BOUND.store(true, Relaxed);
}

/// The fields of `logspool.bind`, if there are any.
unsafe fn bound_fields(sources: &Sources) -> Result<Option<Owned>, Failure> {
    if !BOUND.load(Relaxed) {
        return Ok(None);
    }
    let mut fields: *mut PyObject = std::ptr::null_mut();
    // SAFETY: a context variable whose values are exact dicts that nobody changes after `bind` made them.
    unsafe {
        if ffi::PyContextVar_Get(sources.bound_fields.as_ptr(), std::ptr::null_mut(), &mut fields) != 0 {
            return Err(message::failure());
        }
        Ok(Owned::steal(fields).filter(|fields| fields.as_ptr() != ffi::Py_None()))
    }
}
