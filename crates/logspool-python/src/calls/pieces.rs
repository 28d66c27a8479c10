//! The values of one record. They are collected first, then pushed into a lane in one step.
//!
//! Pipeline stages: *capture* and *queue* (see ARCHITECTURE.md). Everything that may run user Python code runs while
//! pieces are added. Writing the pieces only copies bytes into the part of the lane that is reserved for them. If the
//! lane is full, the call waits detached from the interpreter.

use std::marker::PhantomData;
use std::time::Duration;

use logspool::pipeline::{self, DurableWait, Push, Refusal, Room, Waiter};
use logspool_record::{Head, MAX_TUPLE_DEPTH, tag};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::template::Kind;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Object, Owned};
use crate::interpreter::running_loop::has_running_loop;
use crate::interpreter::waiting::SHARE;
use crate::plans::environment::IdValidity;

/// One value, or a part of a value.
#[derive(Clone, Copy)]
enum Piece {
    /// A tag without a value.
    Tag(u8),
    /// A tag and eight bytes.
    Word(u8, u64),
    /// A tag, a `u32` length and bytes.
    Bytes(u8, *const u8, u32),
    /// Bytes without tag and length.
    Raw(*const u8, u32),
}

/// Number of pieces that are stored without a heap allocation.
///
/// Chosen: a call with ten arguments and full context has fewer pieces.
const INLINE: usize = 20;

/// The values of one record. The memory that the pieces point to outlives them: it belongs to the call's arguments, or
/// to `owned` and `texts`.
pub struct Pieces<'a> {
    count: usize,
    bytes: usize,
    inline: [std::mem::MaybeUninit<Piece>; INLINE],
    spill: Vec<Piece>,
    owned: Vec<Owned>,
    texts: Vec<Box<[u8]>>,
    _borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Pieces<'a> {
    /// Makes an empty set of pieces.
    #[inline(always)]
    pub fn new() -> Self {
        Self {
            count: 0,
            bytes: 0,
            inline: [const { std::mem::MaybeUninit::uninit() }; INLINE],
            spill: Vec::new(),
            owned: Vec::new(),
            texts: Vec::new(),
            _borrowed: PhantomData,
        }
    }

    /// Number of bytes that [`Pieces::write`] writes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    #[inline(always)]
    fn add(&mut self, piece: Piece, bytes: usize) {
        if self.count < INLINE {
            self.inline[self.count].write(piece);
        } else {
            self.spill.push(piece);
        }
        self.count += 1;
        self.bytes += bytes;
    }

    /// Adds `None`, `True` or `False`.
    #[inline(always)]
    pub fn tag(&mut self, tag: u8) {
        self.add(Piece::Tag(tag), 1);
    }

    /// Adds an integer, the bits of a double, or a context entry with an integer.
    #[inline(always)]
    pub fn word(&mut self, tag: u8, word: u64) {
        self.add(Piece::Word(tag, word), 9);
    }

    /// Adds text or bytes that live until the record is written. `false`: they are longer than the maximum of a record.
    #[inline(always)]
    pub fn bytes(&mut self, tag: u8, bytes: &'a [u8]) -> bool {
        let Ok(len) = u32::try_from(bytes.len()) else { return false };
        self.add(Piece::Bytes(tag, bytes.as_ptr(), len), 5 + bytes.len());
        true
    }

    /// Adds bytes without a tag and a length. The bytes live until the record is written.
    pub fn raw(&mut self, bytes: &'a [u8]) {
        self.add(Piece::Raw(bytes.as_ptr(), bytes.len() as u32), bytes.len());
    }

    /// Keeps an object alive until the record is written, and returns a borrowed reference for values of this record.
    ///
    /// # Safety
    ///
    /// Add the result only to `self`, and do not use it after `self` is dropped.
    pub unsafe fn keep_and_lend<'py>(&mut self, py: Python<'py>, object: Owned) -> Object<'a, 'py> {
        // SAFETY: `owned` keeps the object until `self` is dropped; the caller keeps the rest of the contract.
        let lent = unsafe { Borrowed::from_ptr(py, object.as_ptr()) };
        self.owned.push(object);
        lent
    }

    /// Adds the text of a `str`, which is kept alive until the record is written. `false`: the object is not a `str`,
    /// cannot be encoded, or is longer than the maximum of a record.
    pub fn keep_text(&mut self, py: Python<'_>, tag: u8, text: Owned) -> bool {
        let Some(bytes) = object::utf8(text.bind(py)) else { return false };
        // SAFETY: the bytes live as long as the `str`, which is kept in `owned` until `self` is dropped.
        let bytes: &'a [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        self.owned.push(text);
        self.bytes(tag, bytes)
    }

    /// Adds text or bytes, and keeps them until the record is written. `false`: they are longer than the maximum of a
    /// record.
    pub fn keep_bytes(&mut self, tag: u8, bytes: Vec<u8>) -> bool {
        let bytes = bytes.into_boxed_slice();
        // SAFETY: `texts` keeps the bytes in place and unchanged until `self` is dropped.
        let lent: &'a [u8] = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        self.texts.push(bytes);
        self.bytes(tag, lent)
    }

    /// Adds bytes without a tag and a length, and keeps the bytes until the record is written.
    fn keep_raw(&mut self, bytes: Vec<u8>) {
        let bytes = bytes.into_boxed_slice();
        self.add(Piece::Raw(bytes.as_ptr(), bytes.len() as u32), bytes.len());
        // `texts` keeps the bytes in place and unchanged until `self` is dropped.
        self.texts.push(bytes);
    }

    /// Adds `value` if it is an exact `str`, `int`, `float`, `bool`, `bytes`, `None` or a tuple of these. Only the
    /// content of such objects is copied into a lane unchanged. Returns `false` for any other object, and for text that
    /// cannot be encoded. `self` may then hold part of the value and must not be written. Runs no user Python code.
    pub fn value<'py: 'a>(&mut self, value: Object<'a, 'py>) -> bool {
        self.value_at_depth(value, 0)
    }

    fn value_at_depth<'py: 'a>(&mut self, value: Object<'a, 'py>, depth: usize) -> bool {
        match kind_of(value) {
            Kind::AsciiStr | Kind::Str => object::utf8(value).is_some_and(|text| self.bytes(tag::STR, text)),
            Kind::Int => match small_int(value) {
                Some(number) => {
                    self.word(tag::INT, number as u64);
                    true
                }
                None => false,
            },
            Kind::Float => {
                // SAFETY: an exact float.
                self.word(tag::FLOAT, unsafe { ffi::PyFloat_AS_DOUBLE(value.as_ptr()) }.to_bits());
                true
            }
            Kind::Bool => {
                // SAFETY: only the address of the singleton is read.
                let is_true = value.as_ptr() == unsafe { ffi::Py_True() };
                self.tag(if is_true { tag::TRUE } else { tag::FALSE });
                true
            }
            Kind::None => {
                self.tag(tag::NONE);
                true
            }
            Kind::Bytes => bytes_of(value).is_some_and(|bytes| self.bytes(tag::BYTES, bytes)),
            Kind::Other if depth + 1 < MAX_TUPLE_DEPTH => {
                let Some(items) = object::tuple_items(value) else { return false };
                let Ok(length) = u32::try_from(items.len()) else { return false };
                let mut head = vec![tag::TUPLE];
                head.extend_from_slice(&length.to_ne_bytes());
                self.keep_raw(head);
                items.iter().all(|item| self.value_at_depth(*item, depth + 1))
            }
            Kind::Other => false,
        }
    }

    /// Returns all values in one buffer, in order.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes);
        bytes
    }

    /// Writes all values to `out`, in place of what it holds.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.clear();
        out.reserve(self.bytes);
        // SAFETY: there is room for `len` bytes, and `write` writes exactly that many.
        unsafe {
            self.write(out.as_mut_ptr());
            out.set_len(self.bytes);
        }
    }

    /// Writes all values at `to`.
    ///
    /// # Safety
    ///
    /// At least [`Pieces::len`] bytes are writable at `to`.
    #[inline(always)]
    pub unsafe fn write(&self, mut to: *mut u8) {
        let inline = self.count.min(INLINE);
        for piece in &self.inline[..inline] {
            // SAFETY: `add` wrote the first `count` pieces; the caller provides the room.
            to = unsafe { put(piece.assume_init_ref(), to) };
        }
        for piece in &self.spill {
            // SAFETY: `add` counted these bytes as well; the caller provides the room.
            to = unsafe { put(piece, to) };
        }
    }
}

/// Writes one piece and returns the position after it.
///
/// # Safety
///
/// The bytes that `Pieces::add` counted for the piece are writable at `to`, and the memory that the piece points to is
/// alive.
#[inline(always)]
unsafe fn put(piece: &Piece, to: *mut u8) -> *mut u8 {
    // SAFETY: `Pieces::bytes` counts the same number of bytes, and the caller provides room for them; the sources
    // outlive the pieces.
    unsafe {
        match *piece {
            Piece::Tag(tag) => {
                to.write(tag);
                to.add(1)
            }
            Piece::Word(tag, word) => {
                to.write(tag);
                to.add(1).cast::<u64>().write_unaligned(word);
                to.add(9)
            }
            Piece::Bytes(tag, bytes, len) => {
                to.write(tag);
                to.add(1).cast::<u32>().write_unaligned(len);
                std::ptr::copy_nonoverlapping(bytes, to.add(5), len as usize);
                to.add(5 + len as usize)
            }
            Piece::Raw(bytes, len) => {
                std::ptr::copy_nonoverlapping(bytes, to, len as usize);
                to.add(len as usize)
            }
        }
    }
}

/// The content of a `bytes` object; `None` for an object of another type.
pub fn bytes_of<'a>(value: Object<'a, '_>) -> Option<&'a [u8]> {
    // SAFETY: a live object whose type is checked first; its content lives as long as the object and never changes.
    unsafe {
        if ffi::PyBytes_Check(value.as_ptr()) == 0 {
            return None;
        }
        let start = ffi::PyBytes_AsString(value.as_ptr()).cast::<u8>();
        Some(std::slice::from_raw_parts(start, ffi::PyBytes_Size(value.as_ptr()) as usize))
    }
}

/// The kind of an object, by its exact type. Every `str` is returned as [`Kind::AsciiStr`].
#[inline(always)]
pub fn kind_of(argument: Object<'_, '_>) -> Kind {
    let class = object::class_of(argument).cast_const();
    if class == &raw const ffi::PyUnicode_Type {
        // ASCII text and other text can be told apart only by their bytes.
        Kind::AsciiStr
    } else if class == &raw const ffi::PyLong_Type {
        Kind::Int
    } else if class == &raw const ffi::PyFloat_Type {
        Kind::Float
    } else if class == &raw const ffi::PyBool_Type {
        Kind::Bool
    } else if argument.is_none() {
        Kind::None
    } else if class == &raw const ffi::PyBytes_Type {
        Kind::Bytes
    } else {
        Kind::Other
    }
}

/// The value of an exact `int` that fits `i64`; `None` for any other object.
#[inline(always)]
pub fn small_int(value: Object<'_, '_>) -> Option<i64> {
    if !object::is_exact_int(value) {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: an exact int, so no `__index__` runs; the thread is attached.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(number)
}

/// Outcome of queueing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOutcome {
    /// The call is finished: the record is in the queue, or was refused and counted.
    Done,
    /// While the call waited, the process forked or a sink was closed: the ids in the head are invalid.
    Stale,
    /// While the call waited, a signal handler raised. The exception is set; the record is queued, or counted as
    /// refused.
    Raised,
}

/// Pushes one record into the queue. The ids in its head stay valid until a sink is closed or the id epoch changes.
#[inline(always)]
pub fn push(py: Python<'_>, head: Head, made_under: IdValidity, pieces: &Pieces<'_>) -> QueueOutcome {
    // SAFETY: the lane provides exactly the number of bytes requested.
    match pipeline::push(head, pieces.len(), |to| unsafe { pieces.write(to) }) {
        Push::Accepted => QueueOutcome::Done,
        Push::MustWaitForSync => await_durable(py, head.level),
        Push::NoRoom => wait_and_queue(py, head, made_under, pieces),
    }
}

/// Waits until the record that was just pushed is durable, up to the time limit for durability.
#[cold]
#[inline(never)]
fn await_durable(py: Python<'_>, level: u16) -> QueueOutcome {
    let Some(wait) = DurableWait::begin(level) else { return QueueOutcome::Done };
    loop {
        if leaving::detached(py, || wait.wait_slice(SHARE)).is_some() {
            return QueueOutcome::Done;
        }
        if !leaving::signals_pass(py) {
            wait.count_not_durable();
            return QueueOutcome::Raised;
        }
    }
}

/// Maximum time that a call waits for its own line to appear on a terminal.
///
/// Specified by the public contract (DESIGN): a terminal shows a line at most this long after its call.
const TERMINAL_WAIT: Duration = Duration::from_millis(5);

/// Waits until a terminal shows the lines queued for it.
#[cold]
#[inline(never)]
pub fn wait_for_terminal(py: Python<'_>, terminal: u32) {
    leaving::detached(py, || pipeline::flush(Some(terminal), Some(TERMINAL_WAIT)));
}

#[cold]
#[inline(never)]
fn wait_and_queue(py: Python<'_>, head: Head, made_under: IdValidity, pieces: &Pieces<'_>) -> QueueOutcome {
    let mut waited = Duration::ZERO;
    let waiter = match has_running_loop(py) {
        Ok(true) => Waiter::EventLoop,
        Ok(false) | Err(Failure::Stock) => Waiter::Thread,
        Err(Failure::Raised) => return refuse(head, made_under, pieces),
    };
    let len = pieces.len();
    loop {
        let room = leaving::detached(py, || pipeline::make_room(head.level, len, waiter, &mut waited));
        if let Room::Refused(_) = room {
            show_refused(head, made_under, pieces);
            return QueueOutcome::Done;
        }
        // During the wait a sink may have been closed, after everything queued before the close was written.
        if !made_under.may_push() {
            return QueueOutcome::Stale;
        }
        // SAFETY: the lane provides exactly the number of bytes requested.
        match pipeline::push(head, len, |to| unsafe { pieces.write(to) }) {
            Push::Accepted => return QueueOutcome::Done,
            Push::MustWaitForSync => return await_durable(py, head.level),
            // A signal handler may change everything that was compared above, and may push records of its own.
            Push::NoRoom if leaving::signals_pass(py) => {}
            Push::NoRoom => return refuse(head, made_under, pieces),
        }
    }
}

/// Drops a record because a signal handler raised and so ends the call.
fn refuse(head: Head, made_under: IdValidity, pieces: &Pieces<'_>) -> QueueOutcome {
    pipeline::refuse(head.level, Refusal::QueueFull);
    show_refused(head, made_under, pieces);
    QueueOutcome::Raised
}

fn show_refused(head: Head, made_under: IdValidity, pieces: &Pieces<'_>) {
    // In another id epoch, the ids of the head refer to other definitions.
    if made_under.id_epoch == pipeline::id_epoch() {
        pipeline::show_refused(head, || pieces.to_vec());
    }
}
