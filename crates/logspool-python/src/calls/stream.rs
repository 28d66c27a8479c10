//! Has the program itself written to a handler's stream? Then that text goes out before our record.
//!
//! Stop on the line: *capture*. Calling `flush()` on every record would cost more than the record. Whether a
//! `TextIOWrapper` or its `BufferedWriter` holds unwritten text stands in their C structs; where, is learnt once
//! at install by writing to samples and looking which word moves (`python/logspool/_streams.py`). Where that
//! fails, every record calls `flush()`.
//!
//! Atomics outside `queue`: offsets are written once at install.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use pyo3::ffi::PyObject;
use pyo3::prelude::*;

use crate::interpreter::failure::{self, Failure};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::Owned;
use crate::plans::text_stream::TextStream;
use crate::{flushing, options};

/// "Not learnt".
const UNKNOWN: usize = 0;

static PENDING_TEXT: AtomicUsize = AtomicUsize::new(UNKNOWN);
static WRITE_END: AtomicUsize = AtomicUsize::new(UNKNOWN);

/// Sets where to look: byte offsets of `pending_bytes_count` and `write_end`.
pub fn set_offsets(pending_text: usize, write_end: usize) {
    PENDING_TEXT.store(pending_text, Relaxed);
    WRITE_END.store(write_end, Relaxed);
}

#[inline(always)]
unsafe fn word(object: *mut PyObject, offset: usize) -> i64 {
    // SAFETY: the offset was found inside an object of the same exact type.
    unsafe { (*object.cast::<u8>().add(offset).cast::<AtomicI64>()).load(Relaxed) }
}

#[inline(always)]
unsafe fn holds_text(stream: TextStream) -> bool {
    let (pending, end) = (PENDING_TEXT.load(Relaxed), WRITE_END.load(Relaxed));
    if pending == UNKNOWN || end == UNKNOWN {
        return true;
    }
    // SAFETY: exact types, checked when the handler was adopted; kept alive by the plan.
    unsafe { word(stream.text, pending) != 0 || (!stream.buffer.is_null() && word(stream.buffer, end) > 0) }
}

/// Writes out what the program left in the streams' buffers. A stream that refuses is stock logging's to report.
///
/// # Errors
///
/// Where a stream refused, or a signal's handler raised.
///
/// # Safety
///
/// The streams are alive at the start of the call; attached.
#[inline(always)]
pub unsafe fn empty_buffers(streams: &[TextStream]) -> Result<(), Failure> {
    // SAFETY: passed on.
    unsafe {
        if streams.iter().all(|stream| !holds_text(*stream)) {
            return Ok(());
        }
        flush_all(streams)
    }
}

#[cold]
#[inline(never)]
unsafe fn flush_all(streams: &[TextStream]) -> Result<(), Failure> {
    // SAFETY: all are held before the first `flush()` runs foreign code; attached.
    unsafe {
        let py = Python::assume_attached();
        // The buffers, too: a handler of signals may detach one while the stream before it is waited for.
        let buffer_of = |stream: &TextStream| (!stream.buffer.is_null()).then(|| Owned::borrow(stream.buffer));
        let held: Vec<(TextStream, Owned, Option<Owned>)> =
            streams.iter().map(|stream| (*stream, Owned::borrow(stream.text), buffer_of(stream))).collect();
        for (stream, text, _) in held.iter().filter(|(stream, ..)| holds_text(*stream)) {
            if let Some(sink) = stream.after {
                flushing::flush(py, Some(sink), Some(options::shutdown_timeout()))
                    .map_err(|error| Failure::interrupted(py, error))?;
            }
            Owned::steal(leaving::method(text.as_ptr(), names().flush.as_ptr())).ok_or_else(|| failure::failure())?;
        }
        Ok(())
    }
}
