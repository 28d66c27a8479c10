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

use crate::interpreter::failure::Failure;
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

/// The word `offset` bytes into `object`.
///
/// # Safety
///
/// `object` is alive, and `offset` was found inside of an object of the same exact type.
#[inline(always)]
unsafe fn word(object: *mut PyObject, offset: usize) -> i64 {
    // SAFETY: inside of the object's struct, as the caller says.
    unsafe { (*object.cast::<u8>().add(offset).cast::<AtomicI64>()).load(Relaxed) }
}

/// Whether the stream or its buffer holds text that is not written.
///
/// # Safety
///
/// The stream and its buffer are alive.
#[inline(always)]
unsafe fn holds_text(stream: TextStream) -> bool {
    let (pending, end) = (PENDING_TEXT.load(Relaxed), WRITE_END.load(Relaxed));
    if pending == UNKNOWN || end == UNKNOWN {
        return true;
    }
    // SAFETY: alive, as the caller says; exact types, checked when the handler was adopted.
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
/// The streams and their buffers are alive at the start of the call, before it runs foreign code.
#[inline(always)]
pub unsafe fn empty_buffers(py: Python<'_>, streams: &[TextStream]) -> Result<(), Failure> {
    // SAFETY: alive until foreign code runs, as the caller says; none has run yet.
    unsafe {
        if streams.iter().all(|stream| !holds_text(*stream)) {
            return Ok(());
        }
        flush_all(py, streams)
    }
}

/// # Safety
///
/// As for [`empty_buffers`]: the streams are alive until foreign code runs.
#[cold]
#[inline(never)]
unsafe fn flush_all(py: Python<'_>, streams: &[TextStream]) -> Result<(), Failure> {
    // SAFETY: alive, as the caller says: all are held before the first `flush()` runs foreign code. The buffers, too: a
    // handler of signals may detach one while the stream before it is waited for.
    let held: Vec<(TextStream, Owned, Option<Owned>)> = unsafe {
        let own = |object| Owned::of(&Borrowed::from_ptr(py, object));
        let buffer_of = |stream: &TextStream| (!stream.buffer.is_null()).then(|| own(stream.buffer));
        streams.iter().map(|stream| (*stream, own(stream.text), buffer_of(stream))).collect()
    };
    for (stream, text, _) in &held {
        // SAFETY: held above.
        if !unsafe { holds_text(*stream) } {
            continue;
        }
        if let Some(sink) = stream.after {
            flushing::flush(py, Some(sink), Some(options::shutdown_timeout()))
                .map_err(|error| Failure::interrupted(py, error))?;
        }
        leaving::method(text.bind(py), &names().flush).ok_or_else(|| Failure::of_error(py))?;
    }
    Ok(())
}
