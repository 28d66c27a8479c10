//! Text streams that handlers write to: words in their C structs by which a change shows, and text that the program has
//! written and that goes out before our record.
//!
//! Stop on the line: *capture*. Calling `flush()` on every record would cost more than the record. Whether a
//! `TextIOWrapper` or its `BufferedWriter` holds unwritten text is in their C structs. Where it is, logspool learns once
//! at install: it writes to samples and looks which word moves (`python/logspool/_streams.py`). Where that fails, every
//! record calls `flush()`.
//!
//! Atomics outside `queue`: offsets are written once at install.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::Owned;
use crate::{flushing, options};

/// Text streams whose own buffer is emptied before a record is queued, borrowed from a plan or its maker.
#[derive(Debug, Clone, Copy)]
pub struct StreamList {
    first: *const TextStream,
    len: usize,
}

/// A Python text stream and the buffer under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStream {
    /// An exact `io.TextIOWrapper`.
    pub text: *mut PyObject,
    /// Its `io.BufferedWriter`, or null when it writes unbuffered.
    pub buffer: *mut PyObject,
    /// The sink whose queue is written before the program's own text goes out, so that they keep their order.
    /// None for consoles: a pipe that nobody reads must not hold up the caller.
    pub after: Option<u32>,
}

// SAFETY: addresses only; reading through them asks the caller to hold the objects and to be attached.
unsafe impl Send for TextStream {}

// SAFETY: an address that nobody changes.
unsafe impl Sync for TextStream {}

// SAFETY: an address only; `as_slice` asks the caller that its owner lives.
unsafe impl Send for StreamList {}

// SAFETY: an address that nobody changes.
unsafe impl Sync for StreamList {}

impl StreamList {
    /// Borrows streams; their owner must outlive each use of the list.
    pub const fn of(streams: &[TextStream]) -> Self {
        Self { first: streams.as_ptr(), len: streams.len() }
    }

    /// The streams.
    ///
    /// # Safety
    ///
    /// Their owner lives as long as the result.
    #[inline(always)]
    pub unsafe fn as_slice<'a>(self) -> &'a [TextStream] {
        // SAFETY: made of a slice in `of`, whose owner lives, as the caller says.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

/// Part of a word in the C struct of a stream or of what lies under it, as it was when the handler was described.
///
/// `stream.close()`, `stream.write = ...` and `stream.reconfigure()` change nothing of the handler, but such words;
/// which, stands in `python/logspool/_streams.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    address: usize,
    mask: u64,
    value: u64,
}

impl Word {
    /// The word `offset` bytes into `object`, which whoever keeps the word has to keep too.
    pub fn new(object: *mut PyObject, offset: usize, mask: u64, value: u64) -> Self {
        Self { address: object as usize + offset, mask, value }
    }

    /// A counter that the keeper of the word keeps too.
    pub fn counter(counter: &Arc<AtomicU64>, value: u64) -> Self {
        Self { address: Arc::as_ptr(counter) as usize, mask: u64::MAX, value }
    }

    /// Whether it is as it was.
    ///
    /// # Safety
    ///
    /// The object or counter that it lies in is alive.
    #[inline(always)]
    pub unsafe fn holds(&self) -> bool {
        // SAFETY: inside the C struct of a live object, aligned: offsets are whole words. Read like an atomic because
        // on free-threaded builds another thread may be storing it.
        unsafe { (*(self.address as *const AtomicU64)).load(Relaxed) & self.mask == self.value }
    }
}

/// Whether the object is an exact `io.TextIOWrapper`: no code of others answers for it.
pub fn is_text_stream(object: &Bound<'_, PyAny>) -> bool {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(object.py(), || {
        PyResult::Ok(object.py().import("io")?.getattr("TextIOWrapper")?.cast_into::<PyType>()?.unbind())
    });
    class.is_ok_and(|class| object.get_type().is(class))
}

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
