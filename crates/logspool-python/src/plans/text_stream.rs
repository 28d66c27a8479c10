//! Text streams to which handlers write. Detects changes of a stream, and text that the program printed to the stream
//! and that has to be written before the next record.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Calling `flush()` for every record would cost more than the record.
//! The C structs of a `TextIOWrapper` and its `BufferedWriter` show whether they hold unwritten text. At install,
//! logspool determines the offsets of these fields once: it writes to sample streams and looks which word changes
//! (`python/logspool/adoption/_streams.py`). If that fails, every record calls `flush()`.
//!
//! Atomics belong in `queue`; those of this file are an exception: the offsets are written once at install.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use logspool::pipeline;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;

use crate::flushing;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::Owned;

/// Text streams, borrowed from a plan or its builder. Text in their buffers is written before a record is queued.
#[derive(Debug, Clone, Copy)]
pub struct StreamList {
    first: *const TextStream,
    len: usize,
}

/// A Python text stream and its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStream {
    /// The stream. Its type is exactly `io.TextIOWrapper`.
    pub text: *mut PyObject,
    /// The `io.BufferedWriter` of the stream, or null if the stream writes unbuffered.
    pub buffer: *mut PyObject,
    /// The sink whose queue is written before the program's own text, so that records and text stay in order. `None`
    /// for consoles: a full pipe that nobody reads must not block the caller.
    pub after: Option<u32>,
}

// SAFETY: addresses only; functions that read through them require live objects and an attached thread.
unsafe impl Send for TextStream {}

// SAFETY: the addresses never change after construction.
unsafe impl Sync for TextStream {}

// SAFETY: an address only; `as_slice` requires from the caller that the owner is alive.
unsafe impl Send for StreamList {}

// SAFETY: the address never changes after construction.
unsafe impl Sync for StreamList {}

impl StreamList {
    /// Borrows streams. The owner of the streams must outlive each use of the list.
    pub const fn of(streams: &[TextStream]) -> Self {
        Self { first: streams.as_ptr(), len: streams.len() }
    }

    /// The streams.
    ///
    /// # Safety
    ///
    /// The owner of the streams lives as long as the result.
    #[inline(always)]
    pub unsafe fn as_slice<'a>(self) -> &'a [TextStream] {
        // SAFETY: `of` took address and length from a slice; the caller ensures that its owner is alive.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

/// The masked value of a word in the C struct of a stream, or of its buffer or file, when the handler was described.
///
/// `stream.close()`, `stream.write = ...` and `stream.reconfigure()` change no attribute of the handler, but they
/// change such words. `python/logspool/adoption/_streams.py` lists the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamWord {
    address: usize,
    mask: u64,
    value: u64,
}

impl StreamWord {
    /// The word at a distance of `offset` bytes from `object`, modulo 2^64. The owner of the `StreamWord` has to keep
    /// `object` alive as well.
    pub fn new(object: *mut PyObject, offset: usize, mask: u64, value: u64) -> Self {
        Self { address: (object as usize).wrapping_add(offset), mask, value }
    }

    /// A word that is the value of a counter. The owner of the `StreamWord` has to keep the counter alive as well.
    pub fn counter(counter: &Arc<AtomicU64>, value: u64) -> Self {
        Self { address: Arc::as_ptr(counter) as usize, mask: u64::MAX, value }
    }

    /// True if the word is unchanged.
    ///
    /// # Safety
    ///
    /// The object or counter that contains the word is alive.
    #[inline(always)]
    pub unsafe fn holds(&self) -> bool {
        // SAFETY: the word is inside the C struct of a live object, and aligned, because offsets are whole words. It is
        // read atomically, because on free-threaded builds another thread may be storing it.
        unsafe { (*(self.address as *const AtomicU64)).load(Relaxed) & self.mask == self.value }
    }
}

/// True if the type of the object is exactly `io.TextIOWrapper`, so that no user Python code implements its methods.
pub fn is_text_stream(object: &Bound<'_, PyAny>) -> bool {
    static CLASS: OnceLock<Owned> = OnceLock::new();
    if CLASS.get().is_none() {
        let Ok(class) = object.py().import("io").and_then(|io| io.getattr("TextIOWrapper")) else { return false };
        drop(CLASS.set(Owned::of(&class)));
    }
    CLASS.get().is_some_and(|class| object.get_type().as_ptr() == class.as_ptr())
}

/// The value of an offset that is not known.
const UNKNOWN: usize = 0;

static PENDING_TEXT: AtomicUsize = AtomicUsize::new(UNKNOWN);

static WRITE_END: AtomicUsize = AtomicUsize::new(UNKNOWN);

/// Sets the byte offsets of `pending_bytes_count` and `write_end`.
pub fn set_offsets(pending_text: usize, write_end: usize) {
    PENDING_TEXT.store(pending_text, Relaxed);
    WRITE_END.store(write_end, Relaxed);
}

/// The word at byte `offset` of `object`.
///
/// # Safety
///
/// `object` is alive, and `offset` was determined on an object of exactly the same type.
#[inline(always)]
unsafe fn word(object: *mut PyObject, offset: usize) -> i64 {
    // SAFETY: the caller ensures that the word is inside the object's struct.
    unsafe { (*object.cast::<u8>().add(offset).cast::<AtomicI64>()).load(Relaxed) }
}

/// True if the stream or its buffer holds text that is not written.
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
    // SAFETY: the caller ensures that the stream and its buffer are alive. Their exact types were checked when the
    // handler was adopted.
    unsafe { word(stream.text, pending) != 0 || (!stream.buffer.is_null() && word(stream.buffer, end) > 0) }
}

/// Writes the text that the program left in the streams' buffers. If a stream fails, stock logging reports the error.
///
/// # Errors
///
/// A stream failed, or a signal handler raised.
///
/// # Safety
///
/// The streams and their buffers are alive at the start of the call, before it runs user Python code.
#[inline(always)]
pub unsafe fn empty_buffers(py: Python<'_>, streams: &[TextStream]) -> Result<(), Failure> {
    // SAFETY: the caller ensures that the streams and buffers are alive until user Python code runs; none has run yet.
    unsafe {
        if streams.iter().all(|stream| !holds_text(*stream)) {
            return Ok(());
        }
        flush_all(py, streams)
    }
}

/// # Safety
///
/// The streams and their buffers are alive until user Python code runs, as for [`empty_buffers`].
#[cold]
#[inline(never)]
unsafe fn flush_all(py: Python<'_>, streams: &[TextStream]) -> Result<(), Failure> {
    // SAFETY: the caller ensures that the streams and buffers are alive until user Python code runs. References to all
    // of them are taken before the first `flush()`. The buffers need references of their own: a signal handler may
    // detach a buffer during the wait for an earlier stream.
    let held: Vec<(TextStream, Owned, Option<Owned>)> = unsafe {
        let own = |object| Owned::of(&Borrowed::from_ptr(py, object));
        let buffer_of = |stream: &TextStream| (!stream.buffer.is_null()).then(|| own(stream.buffer));
        streams.iter().map(|stream| (*stream, own(stream.text), buffer_of(stream))).collect()
    };
    for (stream, text, _) in &held {
        // SAFETY: `held` keeps the stream and its buffer alive.
        if !unsafe { holds_text(*stream) } {
            continue;
        }
        if let Some(sink) = stream.after {
            flushing::flush(py, Some(sink), Some(pipeline::shutdown_timeout()))
                .map_err(|error| Failure::raised(py, error))?;
        }
        leaving::method(text.bind(py), &names().flush).ok_or_else(|| Failure::of_error(py))?;
    }
    Ok(())
}
