//! Has the program itself written to a handler's stream? Then that text goes out before our record.
//!
//! Stop on the line: *capture*. Calling `flush()` on every record would cost more than the record. Whether a
//! `TextIOWrapper` or its `BufferedWriter` holds unwritten text stands in their C structs; where, is learnt once
//! at install by writing to samples and looking which word moves (`python/logspool/_streams.py`). Where that
//! fails, every record calls `flush()`.
//!
//! Atomics outside `queue`: offsets are written once at install.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::calls::message::{self, Failure};
use crate::flushing;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::Owned;
use crate::options;
use crate::plans::plan::TextStream;

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

/// Whether the object is an exact `io.TextIOWrapper`: no code of others answers for it.
///
/// # Safety
///
/// `object` is live.
pub unsafe fn is_text_stream(py: Python<'_>, object: *mut PyObject) -> bool {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        PyResult::Ok(py.import("io")?.getattr("TextIOWrapper")?.cast_into::<PyType>()?.unbind())
    });
    // SAFETY: a live object.
    class.is_ok_and(|class| unsafe { ffi::Py_TYPE(object).cast() } == class.as_ptr())
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
            Owned::steal(leaving::method(text.as_ptr(), names().flush.as_ptr())).ok_or_else(|| message::failure())?;
        }
        Ok(())
    }
}
