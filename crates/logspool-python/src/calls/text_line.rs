//! Queues a finished line for a handler, without a record.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The callers are loggers of other packages, which give a handler of
//! logspool's own their text.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::Python;

use crate::calls::emit::{self, LineOutcome, queue_finished};
use crate::calls::pieces::{QueueOutcome, bytes_of};
use crate::calls::rules::LineOrigin;
use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Object};
use crate::plans::environment::{self, IdValidity};
use crate::plans::handler_states::{HandlerState, HandlerVerdict};
use crate::plans::text_stream;

/// The sink that the last line used, with the state of its handler.
#[derive(Default)]
pub struct LastSink(Mutex<Option<Arc<Known>>>);

struct Known {
    state: Arc<HandlerState>,
    sink: u32,
    made_under: IdValidity,
}

impl LastSink {
    /// The last destination, if nothing has changed since.
    fn valid(&self, py: Python<'_>) -> Option<Arc<Known>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let holds = environment::is_unchanged(py) && known.made_under.may_push() && known.state.holds();
        holds.then_some(known)
    }

    fn find(&self, handler: Object<'_, '_>) -> Result<Arc<Known>, LineOutcome> {
        if let Some(known) = self.valid(handler.py()) {
            return Ok(known);
        }
        let state = emit::known(handler)?;
        if !matches!(&state.verdict, HandlerVerdict::Adopted(adoption) if !adoption.takes_entries()) {
            return Err(LineOutcome::Stock);
        }
        let (sink, made_under) = emit::destination(&state, handler).ok_or(LineOutcome::Again)?;
        let known = Arc::new(Known { state, sink, made_under });
        let old = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(known.clone());
        // Dropped after the lock is released, because it may hold the last reference to a stream.
        drop(old);
        Ok(known)
    }
}

/// Queues `text`, a `str` or `bytes` object, as a line of the handler. Every outcome but `Queued` and `Raised` means
/// that nothing was queued, and the handler has to get a record with the text.
pub fn queue(last: &LastSink, handler: Object<'_, '_>, level: u16, text: Object<'_, '_>) -> LineOutcome {
    let py = text.py();
    let known = match last.find(handler) {
        Ok(known) => known,
        Err(outcome) => return outcome,
    };
    let Known { state, sink, made_under } = &*known;
    let (sink, made_under) = (*sink, *made_under);
    let HandlerVerdict::Adopted(adoption) = &state.verdict else { return LineOutcome::Stock };
    let Some(bytes) = bytes_of(text).or_else(|| object::utf8(text)) else { return LineOutcome::Stock };
    if !adoption.stream.text.is_null() {
        // SAFETY: `adoption` holds the stream and its buffer.
        match unsafe { text_stream::empty_buffers(py, &[adoption.text_stream(sink)]) } {
            Ok(()) => {}
            Err(Failure::Stock) => return LineOutcome::Stock,
            Err(Failure::Raised) => return LineOutcome::Raised,
        }
    }
    let mut line = Vec::with_capacity(bytes.len() + adoption.terminator.len());
    line.extend_from_slice(bytes);
    line.extend_from_slice(adoption.terminator.as_bytes());
    match queue_finished(py, adoption, sink, made_under, level, &line, LineOrigin::NONE) {
        Some(QueueOutcome::Done) => LineOutcome::Queued,
        Some(QueueOutcome::Raised) => LineOutcome::Raised,
        Some(QueueOutcome::Stale) | None => LineOutcome::Again,
    }
}
