//! The native `emit` of an adopted handler, for records that come over the stock path. It formats the record in the
//! calling thread, at the point where stock logging calls the handler, and queues the finished line.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md). The line is pushed into the same lane as the
//! native path's records, so a thread's records keep their order across both paths. In unusual cases (a formatter that
//! raises, text that cannot be encoded) everything queued is written first, and then the stock `emit` runs. It reports
//! errors from stock logging's own frames, as without logspool.

use std::cell::Cell;
use std::sync::Arc;

use logspool::pipeline;
use logspool_record::{Head, flags, tag};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::calls::deferring;
use crate::calls::filtering::{self, FilterAnswer};
use crate::calls::formatting::{self, DescribedFormatter, FormatOutcome};
use crate::calls::log_record::RecordValues;
use crate::calls::pieces::{self, Pieces, QueueOutcome, bytes_of};
use crate::calls::record::{self, ByValueOutcome, Destination, MadeTexts, RecordOrigin, SeenBy};
use crate::calls::record_redaction::{self, TracebackMode};
use crate::calls::rules::{self, LineOrigin};
use crate::calls::site::Site;
use crate::calls::stock::{Method, call_stock, passed_filters, with_made_text};
use crate::calls::{message, queue_handler};
use crate::interpreter::failure::{Failure, passed};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::interpreter::reentrant_lock;

use crate::plans::callbacks::{installed, stands_alone};
use crate::plans::environment::{self, IdValidity};
use crate::plans::handler_states::{self, Adoption, HandlerState, HandlerVerdict};
use crate::plans::plan::RecordPlan;
use crate::plans::text_stream;

/// The native `handler.emit(record)`.
pub fn emit(method: Method, handler: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let Some(record) = call.only() else { return call_stock(method, handler, call) };
    if record_redaction::redact(record, TracebackMode::OfHandler).is_none() {
        return std::ptr::null_mut();
    }
    let mut line = tried(record).unwrap_or_else(|| queue_line(method, handler, record));
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
        // The sink that has this thread's lines may have left the handler's state: another thread then closes it.
        LineOutcome::StockAfterQueue | LineOutcome::Again | LineOutcome::Uninstalling if method != Method::SinkEmit => {
            handler_states::hand_back(&handler, pipeline::shutdown_timeout())
                .and_then(|()| flush_beside_stream(method, handler))
        }
        // The other methods do not write past the queue, so nothing has to be flushed.
        _ => Ok(()),
    };
    if !passed(call.py(), barrier) {
        return std::ptr::null_mut();
    }
    // The stock `emit` of a file handler calls that of `StreamHandler`, which is native too.
    if matches!(line, LineOutcome::StockAfterQueue) && method != Method::StreamEmit {
        TRIED.set(Some((record.as_ptr() as usize, line)));
    }
    let result = with_made_text(record, || call_stock(method, handler, call));
    TRIED.set(None);
    result
}

/// The native `handler.handle(record)`. The steps of an adopted handler are done here: its filters, then its `emit`,
/// under its lock. If the record can be queued by value, neither `emit` nor the lock is needed. A new handler is
/// adopted during its first `emit`.
#[inline]
pub fn handle(handler: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    if let Some(record) = call.only() {
        let state = handler_states::known(&handler);
        let is_adopted = state.as_ref().is_some_and(|state| matches!(state.verdict, HandlerVerdict::Adopted(_)));
        // The handler, or one of its filters, is Python code.
        let traceback = if is_adopted { TracebackMode::OfHandler } else { TracebackMode::Made };
        if record_redaction::redact(record, traceback).is_none() {
            return std::ptr::null_mut();
        }
        if let Some(answer) = queue_handler::handle(handler, record) {
            return answer;
        }
        if let Some(state) = state {
            if is_adopted {
                return match handle_adopted(&state, handler, record, None, None) {
                    HandleOutcome::Passed(record) => passed_filters(record.bind(call.py())),
                    HandleOutcome::Dropped(answer) => answer.into_ptr(),
                    HandleOutcome::Raised => std::ptr::null_mut(),
                    HandleOutcome::Stock => call_stock(Method::HandlerHandle, handler, call),
                };
            }
            // What the handler prints comes after the lines that were logged before.
            if state.may_print
                && installed()
                && !passed(call.py(), handler_states::flush_streams(call.py(), pipeline::shutdown_timeout()))
            {
                return std::ptr::null_mut();
            }
        }
    }
    call_stock(Method::HandlerHandle, handler, call)
}

/// Calls `handler.handle(record)` for a record that the running logging call has made. `plan` is given if no other
/// handler gets the record while the plan is unchanged. `None` with an exception set.
pub fn pass_to(
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
    plan: Option<&RecordPlan>,
) -> Option<()> {
    if let Some(state) = adopted(handler) {
        match handle_adopted(&state, handler, record, origin, plan) {
            HandleOutcome::Passed(_) | HandleOutcome::Dropped(_) => return Some(()),
            HandleOutcome::Raised => return None,
            HandleOutcome::Stock => {}
        }
    }
    record_redaction::redact(record, TracebackMode::Made)?;
    leaving::method_of_one(handler, &names().handle, record).map(drop)
}

/// Hands the values of a call to the thread of deferred formatters, if `handler`, the only handler of the plan, would hand
/// the record to it. Returns `false` if nothing was done: the record has to be made first.
///
/// # Errors
///
/// [`Failure::Stock`]: nothing was done either. [`Failure::Raised`]: an exception is set that leaves the call.
pub fn defer(
    handler: Object<'_, '_>,
    plan: &RecordPlan,
    site: &Site,
    values: &RecordValues<'_, '_>,
) -> Result<bool, Failure> {
    let py = handler.py();
    let Some(state) = adopted(handler) else { return Ok(false) };
    match valid(&state, handler) {
        Ok(None) => {}
        Ok(Some(_)) | Err(LineOutcome::Stock | LineOutcome::Uninstalling) => return Ok(false),
        Err(_) => return Err(Failure::Raised),
    }
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return Ok(false) };
    let Some(deferral) = &adoption.deferral else { return Ok(false) };
    if !plan.filters_of(handler).is_some_and(|filters| object::is_empty_list(filters.bind(py))) {
        return Ok(false);
    }
    deferring::put_unmade(deferral, handler, site, &plan.globals, values)
}

/// Outcome of the steps of `Handler.handle`.
enum HandleOutcome {
    /// The record has passed the filters, and `emit` is done. Since Python 3.12 a filter may have replaced the record.
    Passed(Owned),
    /// A filter has dropped the record. The value is what `Handler.handle` returns.
    Dropped(Owned),
    /// An exception is set.
    Raised,
    /// Nothing was done: stock logging has to do the steps.
    Stock,
}

/// The steps of `Handler.handle` for a handler that was adopted at the last check, with its state at that check.
fn handle_adopted(
    state: &Arc<HandlerState>,
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
    plan: Option<&RecordPlan>,
) -> HandleOutcome {
    let py = record.py();
    let renewed = match valid(state, handler) {
        Ok(renewed) => renewed,
        Err(LineOutcome::Raised) => return HandleOutcome::Raised,
        Err(_) => return HandleOutcome::Stock,
    };
    let state = renewed.as_ref().unwrap_or(state);
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return HandleOutcome::Stock };
    if adoption.may_be_customised() {
        return HandleOutcome::Stock;
    }
    let filters = match plan.and_then(|plan| plan.filters_of(handler)) {
        Some(known) => Some(known.clone_ref(py)),
        None => object::attribute(handler, &names().filters),
    };
    let Some(filters) = filters else { return HandleOutcome::Stock };
    let filters = filters.bind(py);
    let is_unfiltered = object::is_empty_list(filters) && filtering::passes_unfiltered(record);
    let passed = if is_unfiltered {
        Owned::of(&record)
    } else if object::is_exact_list(filters) {
        match filtering::run(filters, record) {
            FilterAnswer::Pass(passed) => passed,
            FilterAnswer::Drop(answer) => return HandleOutcome::Dropped(answer),
            FilterAnswer::Raised => return HandleOutcome::Raised,
        }
    } else {
        return HandleOutcome::Stock;
    };
    // Asked after the filters, because a filter may add a handler.
    let is_only = plan.is_some_and(|plan| plan.has_one_handler && plan.is_unchanged(py));
    let seen_by = if is_only && is_ours_alone(record, &passed) { SeenBy::Nobody } else { SeenBy::Others };
    if let Some(deferral) = &adoption.deferral {
        match deferring::put(deferral, handler, passed.bind(py), seen_by) {
            Ok(()) => return HandleOutcome::Passed(passed),
            Err(Failure::Raised) => return HandleOutcome::Raised,
            Err(Failure::Stock) => {}
        }
    }
    // A filter may have changed the handler.
    let by_value = match is_unfiltered || state.holds() {
        true => queue_by_value(state, handler, passed.bind(py), origin, seen_by),
        false => ByValueOutcome::No,
    };
    let emitted = match by_value {
        ByValueOutcome::Done => Some(()),
        ByValueOutcome::Raised => None,
        ByValueOutcome::No => emit_locked(state, handler, passed.bind(py), origin),
    };
    match emitted {
        Some(()) => HandleOutcome::Passed(passed),
        None => HandleOutcome::Raised,
    }
}

/// True if the running logging call has the only references to the record: `passed` and the one that lends `record`.
fn is_ours_alone(record: Object<'_, '_>, passed: &Owned) -> bool {
    // Without a GIL, the number of references cannot be read.
    // SAFETY: a live object of an attached thread.
    cfg!(not(Py_GIL_DISABLED)) && record.as_ptr() == passed.as_ptr() && unsafe { ffi::Py_REFCNT(passed.as_ptr()) } == 2
}

/// Does `emit` of an adopted handler under the handler's lock. `None` with an exception set.
fn emit_locked(
    state: &Arc<HandlerState>,
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
) -> Option<()> {
    let py = record.py();
    let lock = leaving::attribute(handler, &names().lock)?;
    reentrant_lock::acquire(lock.bind(py))?;
    let outcome = state.holds().then(|| queue_known(state, true, handler, None, record, origin));
    let emitted = match outcome {
        Some(LineOutcome::Queued) => Some(()),
        Some(LineOutcome::Raised) => None,
        outcome => call_emit(handler, record, outcome),
    };
    reentrant_lock::release(lock.bind(py));
    emitted
}

thread_local! {
    /// The record whose line could not be queued, as an address, and why. Set while `emit` is called for it.
    static TRIED: Cell<Option<(usize, LineOutcome)>> = const { Cell::new(None) };
}

/// Calls `handler.emit(record)`. If the line could not be queued before, `emit` does not try it again. `None` with an
/// exception set.
#[cold]
fn call_emit(handler: Object<'_, '_>, record: Object<'_, '_>, outcome: Option<LineOutcome>) -> Option<()> {
    TRIED.set(outcome.map(|outcome| (record.as_ptr() as usize, outcome)));
    let emitted = with_made_text(record, || {
        leaving::method_of_one(handler, &names().emit, record).map_or(std::ptr::null_mut(), Owned::into_ptr)
    });
    TRIED.set(None);
    // SAFETY: a new reference, or null with an error set.
    unsafe { Owned::steal(emitted) }.map(drop)
}

/// Why the line of a record could not be queued, if the caller of this `emit` has tried it.
fn tried(record: Object<'_, '_>) -> Option<LineOutcome> {
    TRIED.take().filter(|(address, _)| *address == record.as_ptr() as usize).map(|(_, outcome)| outcome)
}

/// Flushes the records queued for the file that stock logging is about to write to, so that the lines stay in order.
///
/// An adopted handler and one that stock logging serves, such as `logging.lastResort`, may write to the same file,
/// usually standard error.
fn flush_beside_stream(method: Method, handler: Object<'_, '_>) -> PyResult<()> {
    if method == Method::StreamEmit
        && let Some(stream) = object::attribute(handler, &names().stream)
    {
        handler_states::flush_beside(&stream.bind(handler.py()), pipeline::shutdown_timeout())?;
    }
    Ok(())
}

/// Maximum number of attempts to queue one line.
///
/// Chosen: the second attempt is enough, unless a program keeps closing handlers in another thread.
const MAX_TRIES: usize = 3;

/// Outcome of queueing one line.
pub enum LineOutcome {
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
///
/// # Errors
///
/// Stock logging writes the line, or an exception is set.
pub fn known(handler: Object<'_, '_>) -> Result<Arc<HandlerState>, LineOutcome> {
    if !installed() && !stands_alone(&handler) {
        return Err(LineOutcome::Uninstalling);
    }
    environment::follow(handler.py());
    match handler_states::handler_state(&handler) {
        Ok(state) => state.ok_or_else(|| stock(handler)),
        Err(()) => Err(LineOutcome::Raised),
    }
}

/// Returns why stock logging writes a line of a handler that is not adopted, or is no longer adopted.
fn stock(handler: Object<'_, '_>) -> LineOutcome {
    if installed() || stands_alone(&handler) { LineOutcome::Stock } else { LineOutcome::Uninstalling }
}

/// The sink of an adopted handler, and the id epoch and epoch under which the sink was found.
pub fn destination(state: &HandlerState, handler: Object<'_, '_>) -> Option<(u32, IdValidity)> {
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

/// True if a handler was adopted at the last check: `handle` then queues a record and waits for no output.
pub fn is_adopted(handler: Object<'_, '_>) -> bool {
    adopted(handler).is_some()
}

/// The state of a handler that was adopted at the last check. The state may have become invalid since.
fn adopted(handler: Object<'_, '_>) -> Option<Arc<HandlerState>> {
    handler_states::known(&handler).filter(|state| matches!(state.verdict, HandlerVerdict::Adopted(_)))
}

/// Checks that `filter`, `acquire`, `emit` and `release` of an adopted handler are the stock methods. If its state has
/// become invalid, returns the valid one.
fn valid(state: &HandlerState, handler: Object<'_, '_>) -> Result<Option<Arc<HandlerState>>, LineOutcome> {
    if !installed() && !stands_alone(&handler) {
        return Err(LineOutcome::Uninstalling);
    }
    environment::follow(handler.py());
    if state.holds() {
        return Ok(None);
    }
    let renewed = known(handler)?;
    let is_adopted = matches!(renewed.verdict, HandlerVerdict::Adopted(_)) && renewed.holds();
    if is_adopted { Ok(Some(renewed)) } else { Err(LineOutcome::Stock) }
}

fn queue_by_value(
    state: &HandlerState,
    handler: Object<'_, '_>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
    seen_by: SeenBy,
) -> ByValueOutcome {
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return ByValueOutcome::No };
    if !adoption.may_go_by_value() {
        return ByValueOutcome::No;
    }
    let Some((sink, made_under)) = destination(state, handler) else { return ByValueOutcome::No };
    record::queue(seen_by, &Destination { state, adoption, sink, made_under }, handler, record, origin)
}

fn queue_line(method: Method, handler: Object<'_, '_>, record: Object<'_, '_>) -> LineOutcome {
    let state = match known(handler) {
        Ok(state) => state,
        Err(line) => return line,
    };
    if state.rotates() && matches!(method, Method::FileEmit | Method::StreamEmit) {
        // The stock `emit` of a subclass has just decided whether to roll over. The sink must not decide again.
        return LineOutcome::StockAfterQueue;
    }
    queue_known(&state, state.holds(), handler, None, record, None)
}

/// Formats a record with `formatter`, and queues the line for the handler. Called by the thread of deferred formatters.
/// Returns whether the line is queued; `None` with an exception set.
pub fn queue_formatted(handler: Object<'_, '_>, formatter: Object<'_, '_>, record: Object<'_, '_>) -> Option<bool> {
    for _ in 0..MAX_TRIES {
        let outcome = match known(handler) {
            Ok(state) => queue_known(&state, false, handler, Some(formatter), record, None),
            Err(outcome) => outcome,
        };
        match outcome {
            LineOutcome::Queued => return Some(true),
            LineOutcome::Raised => return None,
            LineOutcome::Again => {}
            LineOutcome::Stock | LineOutcome::StockAfterQueue | LineOutcome::Uninstalling => return Some(false),
        }
    }
    Some(false)
}

/// Formats a record and queues its line. Without a `formatter`, the handler formats. `as_described` allows native code
/// to do that as the state describes it: the state has to hold, and there is no `formatter`.
fn queue_known(
    state: &Arc<HandlerState>,
    as_described: bool,
    handler: Object<'_, '_>,
    formatter: Option<Object<'_, '_>>,
    record: Object<'_, '_>,
    origin: Option<&RecordOrigin<'_>>,
) -> LineOutcome {
    let py = record.py();
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return LineOutcome::Stock };
    let Some((sink, made_under)) = destination(state, handler) else {
        return if state.is_gone() { LineOutcome::Again } else { stock(handler) };
    };
    if as_described && adoption.may_go_by_value() {
        message::take_format_failure();
        let destination = Destination { state, adoption, sink, made_under };
        match record::queue(SeenBy::Others, &destination, handler, record, None) {
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
    let with_time = |texts: &MadeTexts<'_>| {
        if formatter.is_some() || !adoption.may_go_with_time() || !state.holds() || !made_under.may_push() {
            return None;
        }
        let destination = Destination { state, adoption, sink, made_under };
        match record::queue_with(texts, &destination, handler, record, origin) {
            ByValueOutcome::Done => Some(LineOutcome::Queued),
            ByValueOutcome::Raised => Some(LineOutcome::Raised),
            ByValueOutcome::No => None,
        }
    };
    if record_redaction::redact(record, TracebackMode::OfHandler).is_none() {
        return LineOutcome::Raised;
    }
    let made = if adoption.takes_entries() {
        entry(handler, record)
    } else {
        let called = adoption.called_method().filter(|_| as_described);
        let reading = match called.map(|called| (called, state.reading(py, adoption))) {
            Some((called, Ok(Some(reading)))) => Some((called, reading)),
            Some((_, Err(Failure::Raised))) => return LineOutcome::Raised,
            _ => None,
        };
        let time = origin.map(|origin| origin.time);
        let described = reading.as_ref().map(|(called, reading)| DescribedFormatter { called: *called, reading, time });
        match formatting::formatted(handler, formatter, described.as_ref(), record, with_time) {
            Some(FormatOutcome::Delivered(outcome)) => return outcome,
            Some(FormatOutcome::Line(message)) => with_terminator(adoption, handler, message.bind(py)),
            None => None,
        }
    };
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
    // The line is finished, so later changes of the handler do not affect it.
    if !made_under.may_push() && adoption.takes_entries() {
        return LineOutcome::Again;
    }
    let name = rules::need_origin().then(|| object::attribute(record, &names().name)).flatten();
    let origin = LineOrigin {
        logger: name.as_ref().and_then(|name| object::text(name.bind(py))).unwrap_or_default(),
        place: if name.is_some() { rules::place_of(record) } else { 0 },
        is_entry: adoption.takes_entries(),
    };
    match queue_finished(py, adoption, sink, made_under, level, &line, origin) {
        Some(QueueOutcome::Done) => LineOutcome::Queued,
        Some(QueueOutcome::Raised) => LineOutcome::Raised,
        // The handler changed, or the process forked. Everything queued before is written first, then this line.
        Some(QueueOutcome::Stale) if adoption.takes_entries() => LineOutcome::Again,
        Some(QueueOutcome::Stale) | None => LineOutcome::StockAfterQueue,
    }
}

/// Queues a finished line, with its terminator, for an adopted handler. `None` if it is longer than the maximum of a
/// record, or if a sink was closed since `made_under`.
pub fn queue_finished(
    py: Python<'_>,
    adoption: &Adoption,
    sink: u32,
    made_under: IdValidity,
    level: u16,
    line: &[u8],
    origin: LineOrigin<'_>,
) -> Option<QueueOutcome> {
    let mut pieces = Pieces::new();
    if !pieces.bytes(tag::BYTES, line) || !made_under.may_push() {
        return None;
    }
    let head = Head { len: 0, site: 0, route: sink, level, flags: flags::TEXT, ticks: 0 };
    let outcome = rules::queue(py, head, made_under, &pieces, origin);
    if matches!(outcome, QueueOutcome::Done) && adoption.interactive {
        pieces::wait_for_terminal(py, sink);
    }
    Some(outcome)
}

/// Makes the bytes of the line with its terminator: in UTF-8, or as the handler's `errors` option makes them. `None` if
/// the message is no `str`.
fn with_terminator(adoption: &Adoption, handler: Object<'_, '_>, message: Object<'_, '_>) -> Option<Vec<u8>> {
    let py = message.py();
    if !object::is_str(message) {
        return None;
    }
    // SAFETY: the objects are live and the thread is attached; each result is a new reference or null with an error
    // set.
    unsafe {
        let terminator = Owned::steal(ffi::PyObject_GetAttr(handler.as_ptr(), names().terminator.as_ptr()))?;
        let terminator = terminator.bind(py);
        if object::is_exact_str(terminator)
            && let Some((message, terminator)) = object::utf8(message).zip(object::utf8(terminator))
        {
            return Some([message, terminator].concat());
        }
        let line = Owned::steal(ffi::PyUnicode_Concat(message.as_ptr(), terminator.as_ptr()))?;
        let errors = std::ffi::CString::new(adoption.errors.as_str()).ok()?;
        let encoded = ffi::PyUnicode_AsEncodedString(line.as_ptr(), c"utf-8".as_ptr(), errors.as_ptr());
        bytes_of(Owned::steal(encoded)?.bind(py)).map(<[u8]>::to_vec)
    }
}

/// Makes the bytes that a sink for structured entries receives for a record. `_entry` may run user Python code.
fn entry(handler: Object<'_, '_>, record: Object<'_, '_>) -> Option<Vec<u8>> {
    let entry = leaving::method_of_one(handler, &names().entry, record)?;
    bytes_of(entry.bind(record.py())).map(<[u8]>::to_vec)
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
