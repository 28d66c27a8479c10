//! Text streams that handlers write to, and words in the C structs of streams by which a change of one shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

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
