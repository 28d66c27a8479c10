//! The native `emit` of an adopted handler, for records that come over the stock path. It formats the record in the
//! calling thread, at the point where stock logging calls the handler, and queues the finished line.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md). The line is pushed into the same lane as the
//! native path's records, so a thread's records keep their order across both paths. In unusual cases (a formatter that
//! raises, text that cannot be encoded) everything queued is written first, and then the stock `emit` runs. It reports
//! errors from stock logging's own frames, as without logspool.

use std::sync::Arc;

use logspool::pipeline;
use logspool_record::{Head, flags, tag};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::calls::pieces::{self, Pieces, QueueOutcome, bytes_of};
use crate::calls::record::{self, ByValueOutcome, Destination, PassedBy};
use crate::calls::stock::{Method, call_stock, passed_filters, with_made_text};
use crate::calls::{message, queue_handler};
use crate::interpreter::failure::{Failure, passed};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};

use crate::plans::adoption::{self, Adoption, HandlerState, HandlerVerdict};
use crate::plans::environment::{self, IdValidity};
use crate::plans::python_half::{installed, stands_alone};
use crate::plans::text_stream;

/// The native `handler.emit(record)`.
pub fn emit(method: Method, handler: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let Some(record) = call.only() else { return call_stock(method, handler, call) };
    let mut line = queue_line(method, handler, record);
    for _ in 1..MAX_TRIES {
        if matches!(line, LineOutcome::Again) {
            line = queue_line(method, handler, record);
        }
    }
    match line {
        LineOutcome::Queued => return object::none(call.py()),
        LineOutcome::Raised => return std::ptr::null_mut(),
        LineOutcome::Stock | LineOutcome::StockAfterQueue | LineOutcome::Uninstalling | LineOutcome::Again => {}
    }
    let barrier = match line {
        LineOutcome::Stock => flush_beside_stream(method, handler),
        LineOutcome::StockAfterQueue | LineOutcome::Again if method != Method::SinkEmit => {
            adoption::hand_back(&handler, pipeline::shutdown_timeout())
        }
        LineOutcome::Uninstalling => adoption::hand_back(&handler, pipeline::shutdown_timeout())
            .and_then(|()| flush_beside_stream(method, handler)),
        // The other methods do not write past the queue, so nothing has to be flushed.
        _ => Ok(()),
    };
    if !passed(call.py(), barrier) {
        return std::ptr::null_mut();
    }
    with_made_text(record, || call_stock(method, handler, call))
}

/// The native `handler.handle(record)`. If the record can be queued by value, the steps of `handle` are skipped: the
/// handler has no filters, its `emit` is known, and the queue needs no lock. A new handler is adopted during its first
/// `emit`.
#[inline]
pub fn handle(handler: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    if let Some(record) = call.only() {
        if let Some(answer) = queue_handler::handle(handler, record) {
            return answer;
        }
        if is_adopted(handler) {
            return match queue_by_value(handler, record) {
                ByValueOutcome::Done => passed_filters(record),
                ByValueOutcome::Raised => std::ptr::null_mut(),
                ByValueOutcome::No => with_made_text(record, || call_stock(Method::HandlerHandle, handler, call)),
            };
        }
    }
    call_stock(Method::HandlerHandle, handler, call)
}

/// Flushes the records queued for the file that stock logging is about to write to. `logging.lastResort` and handlers
/// that cannot be adopted write to standard error, and so may adopted handlers.
fn flush_beside_stream(method: Method, handler: Object<'_, '_>) -> PyResult<()> {
    if method == Method::StreamEmit
        && let Some(stream) = object::attribute(handler, &names().stream)
    {
        adoption::flush_beside(&stream.bind(handler.py()), pipeline::shutdown_timeout())?;
    }
    Ok(())
}

/// Maximum number of attempts to queue one line.
///
/// Chosen: the second attempt is enough, unless a program keeps closing handlers in another thread.
const MAX_TRIES: usize = 3;

enum LineOutcome {
    /// The line is in the queue, or was refused and counted.
    Queued,
    /// Stock logging writes the line, because the handler is not adopted.
    Stock,
    /// The handler is adopted, but stock logging has to write this line after the queued records are written.
    StockAfterQueue,
    /// `uninstall()` has begun. Stock logging writes all lines, each after everything that its thread has queued.
    Uninstalling,
    /// Try again. The handler changed, its sink was closed, or the process forked; stock logging cannot deliver records
    /// to a service.
    Again,
    /// An exception is set that no handler catches.
    Raised,
}

/// Returns the state of a handler, or the outcome for a handler without a state.
fn known(handler: Object<'_, '_>) -> Result<Arc<HandlerState>, LineOutcome> {
    if !installed() && !stands_alone(&handler) {
        return Err(LineOutcome::Uninstalling);
    }
    environment::refresh(handler.py());
    match adoption::handler_state(&handler) {
        Ok(state) => state.ok_or_else(|| stock(handler)),
        Err(()) => Err(LineOutcome::Raised),
    }
}

/// Returns why stock logging writes a line of a handler that is not adopted, or is no longer adopted.
fn stock(handler: Object<'_, '_>) -> LineOutcome {
    if installed() || stands_alone(&handler) { LineOutcome::Stock } else { LineOutcome::Uninstalling }
}

/// The sink of an adopted handler, and the id epoch and epoch under which the sink was found.
fn destination(state: &HandlerState, handler: Object<'_, '_>) -> Option<(u32, IdValidity)> {
    // `before` is read before the sink is looked up. If the sink is closed from here on, `before` becomes stale. The id
    // epoch is read after the lookup, because opening the first sink begins a new id epoch.
    let before = IdValidity::now();
    // If `uninstall()` begins, either this check sees it, or `uninstall()` makes `before` stale. `uninstall()` leaves
    // each sink in its state until the sink is closed.
    if matches!(stock(handler), LineOutcome::Uninstalling) {
        return None;
    }
    let sink = state.sink().ok()?;
    Some((sink, IdValidity { id_epoch: pipeline::id_epoch(), ..before }))
}

/// True if the handler was adopted at the last check.
fn is_adopted(handler: Object<'_, '_>) -> bool {
    adoption::known(&handler).is_some_and(|state| matches!(state.verdict, HandlerVerdict::Adopted(_)))
}

fn queue_by_value(handler: Object<'_, '_>, record: Object<'_, '_>) -> ByValueOutcome {
    let state = match known(handler) {
        Ok(state) => state,
        Err(LineOutcome::Raised) => return ByValueOutcome::Raised,
        Err(_) => return ByValueOutcome::No,
    };
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return ByValueOutcome::No };
    if !adoption.may_go_by_value() || !state.holds() {
        return ByValueOutcome::No;
    }
    let Some((sink, made_under)) = destination(&state, handler) else { return ByValueOutcome::No };
    record::queue(PassedBy::Handle, &Destination { state: &state, adoption, sink, made_under }, handler, record)
}

fn queue_line(method: Method, handler: Object<'_, '_>, record: Object<'_, '_>) -> LineOutcome {
    let py = record.py();
    let state = match known(handler) {
        Ok(state) => state,
        Err(line) => return line,
    };
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return LineOutcome::Stock };
    if adoption.rotates() && matches!(method, Method::FileEmit | Method::StreamEmit) {
        // The stock `emit` of a subclass has just decided whether to roll over. The sink must not decide again.
        return LineOutcome::StockAfterQueue;
    }
    let Some((sink, made_under)) = destination(&state, handler) else {
        return if state.is_gone() { LineOutcome::Again } else { stock(handler) };
    };
    if adoption.may_go_by_value() && state.holds() {
        message::take_format_failure();
        let destination = Destination { state: &state, adoption, sink, made_under };
        match record::queue(PassedBy::Emit, &destination, handler, record) {
            ByValueOutcome::Done => return LineOutcome::Queued,
            // The formatter would raise as well. Stock logging reports the error and makes the text only once.
            ByValueOutcome::No if message::take_format_failure() => return LineOutcome::StockAfterQueue,
            ByValueOutcome::No => {}
            ByValueOutcome::Raised => return LineOutcome::Raised,
        }
        if !made_under.may_push() {
            return LineOutcome::StockAfterQueue;
        }
    }
    let made = if adoption.takes_entries() { entry(handler, record) } else { line(adoption, handler, record) };
    let Some(line) = made else {
        if object::has_error(py) && matches!(Failure::of_error(py), Failure::Raised) {
            return LineOutcome::Raised;
        }
        return LineOutcome::StockAfterQueue;
    };
    if !adoption.stream.text.is_null() {
        // SAFETY: `adoption` holds the stream and its buffer.
        match unsafe { text_stream::empty_buffers(py, &[adoption.text_stream(sink)]) } {
            Ok(()) => {}
            Err(Failure::Stock) => return LineOutcome::StockAfterQueue,
            Err(Failure::Raised) => return LineOutcome::Raised,
        }
    }
    let Some(level) = level(record) else { return LineOutcome::StockAfterQueue };
    let line = line.bind(py);
    let Some(bytes) = bytes_of(line).or_else(|| object::utf8(line)) else { return LineOutcome::StockAfterQueue };
    // The line is finished, so later changes of the handler do not affect it.
    if !made_under.may_push() && adoption.takes_entries() {
        return LineOutcome::Again;
    }
    let mut pieces = Pieces::new();
    if !pieces.bytes(tag::BYTES, bytes) || !made_under.may_push() {
        return LineOutcome::StockAfterQueue;
    }
    let head = Head { len: 0, site: 0, route: sink, level, flags: flags::TEXT, ticks: 0 };
    match pieces::queue(py, head, made_under, &pieces) {
        QueueOutcome::Done => {
            if adoption.interactive {
                pieces::wait_for_terminal(py, sink);
            }
            LineOutcome::Queued
        }
        QueueOutcome::Raised => LineOutcome::Raised,
        // The handler changed, or the process forked. Everything queued before is written first, then this line.
        QueueOutcome::Stale if adoption.takes_entries() => LineOutcome::Again,
        QueueOutcome::Stale => LineOutcome::StockAfterQueue,
    }
}

/// Makes the line with its terminator: a `str` that encodes to UTF-8, or the bytes that the handler's `errors` option
/// made of the line. `format` may run user Python code.
fn line(adoption: &Adoption, handler: Object<'_, '_>, record: Object<'_, '_>) -> Option<Owned> {
    let py = record.py();
    let message = leaving::method_of_one(handler, &names().format, record)?;
    if !object::is_str(message.bind(py)) {
        return None;
    }
    // SAFETY: the objects are live and the thread is attached; each result is a new reference or null with an error
    // set.
    unsafe {
        let terminator = Owned::steal(ffi::PyObject_GetAttr(handler.as_ptr(), names().terminator.as_ptr()))?;
        let line = Owned::steal(ffi::PyUnicode_Concat(message.as_ptr(), terminator.as_ptr()))?;
        if object::utf8(line.bind(py)).is_some() {
            return Some(line);
        }
        let errors = std::ffi::CString::new(adoption.errors.as_str()).ok()?;
        Owned::steal(ffi::PyUnicode_AsEncodedString(line.as_ptr(), c"utf-8".as_ptr(), errors.as_ptr()))
    }
}

/// Makes the bytes that a sink for structured entries receives for a record. `_entry` may run user Python code.
fn entry(handler: Object<'_, '_>, record: Object<'_, '_>) -> Option<Owned> {
    let entry = leaving::method_of_one(handler, &names().entry, record)?;
    let is_bytes = entry.bind(record.py()).is_instance_of::<PyBytes>();
    is_bytes.then_some(entry)
}

fn level(record: Object<'_, '_>) -> Option<u16> {
    let level = object::attribute(record, &names().levelno)?;
    if !level.bind(record.py()).is_instance_of::<PyInt>() {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: a live int, and the thread is attached.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(level.as_ptr(), &mut overflow) };
    Some(if overflow > 0 { u16::MAX } else { number.clamp(0, i64::from(u16::MAX)) as u16 })
}
