//! An adopted handler reached on the stock path: formats in the caller, at its place in the chain, and queues the
//! finished line.
//!
//! Stop on the line: *capture*, beside the native path. The line travels in the same lane, so the order of a thread
//! holds across both. Anything unusual (a formatter that raises, text that does not encode) is left to the stock
//! `emit`, after what is queued was written; it reports as stock logging does, from stock logging's own frames.

use std::sync::Arc;

use logspool::pipeline;
use logspool_record::{Head, flags, tag};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::adoption::{self, Adoption, State, Verdict};
use crate::environment;
use crate::leaving;
use crate::message::{self, Failure};
use crate::methods::{self, Method};
use crate::names::names;
use crate::object::{self, Owned};
use crate::options;
use crate::pieces::Pieces;
use crate::planning;
use crate::queue_handler;
use crate::queueing::{self, MadeUnder, Queued};
use crate::record::{ByValue, Step};
use crate::stream;

/// `handler.emit(record)`.
///
/// # Safety
///
/// As CPython calls a `METH_FASTCALL | METH_KEYWORDS` method.
pub unsafe fn emit(
    method: Method,
    handler: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: passed on.
    unsafe {
        if count == 1 && keywords.is_null() {
            let mut line = queue_line(method, handler, *arguments);
            for _ in 1..MOST_TRIES {
                if matches!(line, Line::Again) {
                    line = queue_line(method, handler, *arguments);
                }
            }
            match line {
                Line::Queued => return object::none(),
                Line::Raised => return std::ptr::null_mut(),
                Line::Stock | Line::StockAfterQueue | Line::Uninstalling | Line::Again => {}
            }
            let barrier = match line {
                Line::Stock => flush_beside_stream(method, handler),
                Line::StockAfterQueue | Line::Again if method != Method::SinkEmit => {
                    adoption::give_back(handler, options::shutdown_timeout())
                }
                Line::Uninstalling => adoption::give_back(handler, options::shutdown_timeout())
                    .and_then(|()| flush_beside_stream(method, handler)),
                // Nothing is written beside the queue.
                _ => Ok(()),
            };
            if !methods::passed(barrier) {
                return std::ptr::null_mut();
            }
            return with_made_text(*arguments, || methods::call_stock(method, handler, arguments, 1, keywords));
        }
        methods::call_stock(method, handler, arguments, count as usize, keywords)
    }
}

/// Runs a stock method on a record whose message may have been made into text already: not a second time.
unsafe fn with_made_text(record: *mut PyObject, stock: impl FnOnce() -> *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects, attached.
    unsafe {
        let made = object::attribute(record, names().msg.as_ptr())
            .and_then(|message| Some((message::take_made(message.as_ptr())?, message)));
        let Some((made, message)) = made else { return stock() };
        let set = |value: &Owned| {
            if ffi::PyObject_SetAttr(record, names().msg.as_ptr(), value.as_ptr()) != 0 {
                ffi::PyErr_Clear();
            }
        };
        set(&made);
        let result = stock();
        let _error = object::ErrorKept::take();
        set(&message);
        result
    }
}

/// `handler.handle(record)`. A record that goes by value needs none of its steps: no filter would see it, `emit` is
/// known, and the queue needs no lock. A handler that is not known yet becomes so in its `emit`.
///
/// # Safety
///
/// As CPython calls a `METH_FASTCALL | METH_KEYWORDS` method.
pub unsafe fn handle(
    handler: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: passed on.
    unsafe {
        if count == 1
            && keywords.is_null()
            && let Some(answer) = queue_handler::handle(handler, *arguments)
        {
            return answer;
        }
        if count == 1 && keywords.is_null() && is_adopted(handler) {
            match queue_by_value(handler, *arguments) {
                ByValue::Done => return passed_filters(*arguments),
                ByValue::Raised => return std::ptr::null_mut(),
                ByValue::No => {
                    let call = || methods::call_stock(Method::HandlerHandle, handler, arguments, 1, keywords);
                    return with_made_text(*arguments, call);
                }
            }
        }
        methods::call_stock(Method::HandlerHandle, handler, arguments, count as usize, keywords)
    }
}

/// What `Handler.handle` returns for a record that no filter dropped.
///
/// # Safety
///
/// A live object; attached.
pub unsafe fn passed_filters(record: *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects; a new reference is made.
    unsafe {
        let answer = if cfg!(Py_3_12) { record } else { ffi::Py_True() };
        ffi::Py_INCREF(answer);
        answer
    }
}

/// What stock logging is about to write comes after what is queued for the same file: `logging.lastResort` and a
/// handler that cannot be adopted share standard error with one that is.
unsafe fn flush_beside_stream(method: Method, handler: *mut PyObject) -> PyResult<()> {
    // SAFETY: a live handler, attached.
    unsafe {
        if method == Method::StreamEmit
            && let Some(stream) = object::attribute(handler, names().stream.as_ptr())
        {
            adoption::flush_beside(&stream, options::shutdown_timeout())?;
        }
    }
    Ok(())
}

/// How often an entry for a service is queued anew.
///
/// Chosen: once is enough but for a program that closes handlers in one thread all the time.
const MOST_TRIES: usize = 3;

enum Line {
    /// In the queue, or refused and counted.
    Queued,
    /// The handler is not adopted.
    Stock,
    /// It is, but this line is stock logging's.
    StockAfterQueue,
    /// `uninstall()` has begun: all lines are stock logging's, and come after what their thread has queued.
    Uninstalling,
    /// The handler changed, or its sink was closed or the process forked and stock logging has no way to where this goes.
    Again,
    /// An error that no handler catches is set.
    Raised,
}

/// What is known of a handler, or why there is nothing to know.
unsafe fn known(handler: *mut PyObject) -> Result<Arc<State>, Line> {
    // SAFETY: a live handler, attached.
    unsafe {
        if !planning::installed() && !planning::stands_alone(handler) {
            return Err(Line::Uninstalling);
        }
        environment::refresh();
        match planning::handler_state(handler) {
            Ok(state) => state.ok_or_else(|| stock(handler)),
            Err(()) => Err(Line::Raised),
        }
    }
}

/// Why a line is stock logging's whose handler is not adopted, or not any more.
unsafe fn stock(handler: *mut PyObject) -> Line {
    // SAFETY: a live handler, attached.
    if planning::installed() || unsafe { planning::stands_alone(handler) } { Line::Stock } else { Line::Uninstalling }
}

/// Where lines of an adopted handler go, and under what that was found.
unsafe fn destination(state: &State, handler: *mut PyObject) -> Option<(u32, MadeUnder)> {
    // Read before the sink is: one that is closed from here on moves it. The generation after: opening the first sink
    // begins it.
    let before = MadeUnder::now();
    // `uninstall()` is seen here or moves what was just read, and leaves each sink in its state until it is closed.
    // SAFETY: a live handler, attached.
    if matches!(unsafe { stock(handler) }, Line::Uninstalling) {
        return None;
    }
    let sink = state.sink().ok()?;
    Some((sink, MadeUnder { generation: pipeline::generation(), ..before }))
}

/// Whether the handler was adopted when it was looked at last.
fn is_adopted(handler: *mut PyObject) -> bool {
    adoption::known(handler).is_some_and(|state| matches!(state.verdict, Verdict::Adopted(_)))
}

unsafe fn queue_by_value(handler: *mut PyObject, record: *mut PyObject) -> ByValue {
    // SAFETY: live objects, attached.
    unsafe {
        let state = match known(handler) {
            Ok(state) => state,
            Err(Line::Raised) => return ByValue::Raised,
            Err(_) => return ByValue::No,
        };
        let Verdict::Adopted(adoption) = &state.verdict else { return ByValue::No };
        if !adoption.may_go_by_value() || !state.holds() {
            return ByValue::No;
        }
        let Some((sink, made_under)) = destination(&state, handler) else { return ByValue::No };
        crate::record::queue(Step::Handle, &state, adoption, sink, handler, record, made_under)
    }
}

unsafe fn queue_line(method: Method, handler: *mut PyObject, record: *mut PyObject) -> Line {
    // SAFETY: live objects, attached.
    unsafe {
        let state = match known(handler) {
            Ok(state) => state,
            Err(line) => return line,
        };
        let Verdict::Adopted(adoption) = &state.verdict else { return Line::Stock };
        if adoption.turns() && matches!(method, Method::FileEmit | Method::StreamEmit) {
            // The stock `emit` of a subclass has just decided about a rollover: the sink must not do so again.
            return Line::StockAfterQueue;
        }
        let Some((sink, made_under)) = destination(&state, handler) else {
            return if state.is_gone() { Line::Again } else { stock(handler) };
        };
        if adoption.may_go_by_value() && state.holds() {
            message::take_broken();
            match crate::record::queue(Step::Emit, &state, adoption, sink, handler, record, made_under) {
                ByValue::Done => return Line::Queued,
                // Its formatter would raise, too: stock logging reports it, and makes the text once.
                ByValue::No if message::take_broken() => return Line::StockAfterQueue,
                ByValue::No => {}
                ByValue::Raised => return Line::Raised,
            }
            if !made_under.may_push() {
                return Line::StockAfterQueue;
            }
        }
        let made = if adoption.takes_entries() { entry(handler, record) } else { line(adoption, handler, record) };
        let Some(line) = made else {
            if ffi::PyErr_Occurred().is_null() {
                return Line::StockAfterQueue;
            }
            if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) == 0 {
                return Line::Raised;
            }
            ffi::PyErr_Clear();
            return Line::StockAfterQueue;
        };
        let has_stream = !adoption.stream.text.is_null();
        if has_stream {
            match stream::empty_buffers(&[adoption.text_stream(sink)]) {
                Ok(()) => {}
                Err(Failure::Stock) => return Line::StockAfterQueue,
                Err(Failure::Raised) => return Line::Raised,
            }
        }
        let Some(level) = level(record) else { return Line::StockAfterQueue };
        let mut pieces = Pieces::new();
        let bytes = if ffi::PyBytes_Check(line.as_ptr()) != 0 {
            let start = ffi::PyBytes_AsString(line.as_ptr()).cast::<u8>();
            std::slice::from_raw_parts(start, ffi::PyBytes_Size(line.as_ptr()) as usize)
        } else {
            match object::utf8(line.as_ptr()) {
                Some(bytes) => bytes,
                None => return Line::StockAfterQueue,
            }
        };
        // The line is made: what else has changed meanwhile does not matter to it.
        if !made_under.may_push() && adoption.takes_entries() {
            return Line::Again;
        }
        if !pieces.bytes(tag::BYTES, bytes) || !made_under.may_push() {
            return Line::StockAfterQueue;
        }
        let head = Head { len: 0, site: 0, route: sink, level, flags: flags::TEXT, ticks: 0 };
        match queueing::queue(head, made_under, &pieces) {
            Queued::Done => {
                if adoption.interactive {
                    queueing::show(sink);
                }
                Line::Queued
            }
            Queued::Raised => Line::Raised,
            // The handler changed, or the process forked: what was queued before is written first, then this line.
            Queued::Stale if adoption.takes_entries() => Line::Again,
            Queued::Stale => Line::StockAfterQueue,
        }
    }
}

/// The line with its terminator: a `str` that encodes to UTF-8, or the bytes that `errors` made of it.
unsafe fn line(adoption: &Adoption, handler: *mut PyObject, record: *mut PyObject) -> Option<Owned> {
    // SAFETY: live objects, attached; `format` may run foreign code.
    unsafe {
        let message = Owned::steal(leaving::method_of_one(handler, names().format.as_ptr(), record))?;
        if ffi::PyUnicode_Check(message.as_ptr()) == 0 {
            return None;
        }
        let terminator = Owned::steal(ffi::PyObject_GetAttr(handler, names().terminator.as_ptr()))?;
        let line = Owned::steal(ffi::PyUnicode_Concat(message.as_ptr(), terminator.as_ptr()))?;
        if object::utf8(line.as_ptr()).is_some() {
            return Some(line);
        }
        let errors = std::ffi::CString::new(adoption.errors.as_str()).ok()?;
        Owned::steal(ffi::PyUnicode_AsEncodedString(line.as_ptr(), c"utf-8".as_ptr(), errors.as_ptr()))
    }
}

/// The bytes that a sink gets for a record in its parts.
unsafe fn entry(handler: *mut PyObject, record: *mut PyObject) -> Option<Owned> {
    // SAFETY: live objects, attached; `_entry` may run foreign code.
    unsafe {
        let entry = Owned::steal(leaving::method_of_one(handler, names().entry.as_ptr(), record))?;
        (ffi::PyBytes_Check(entry.as_ptr()) != 0).then_some(entry)
    }
}

unsafe fn level(record: *mut PyObject) -> Option<u16> {
    // SAFETY: live object, attached.
    unsafe {
        let level = object::attribute(record, names().levelno.as_ptr())?;
        if ffi::PyLong_Check(level.as_ptr()) == 0 {
            return None;
        }
        let mut overflow = 0;
        let number = ffi::PyLong_AsLongLongAndOverflow(level.as_ptr(), &mut overflow);
        Some(if overflow > 0 { u16::MAX } else { number.clamp(0, i64::from(u16::MAX)) as u16 })
    }
}
