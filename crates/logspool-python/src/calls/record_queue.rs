//! The queue of one `logspool.ThreadHandler`: the records that wait for its thread, limited by number and bytes, and
//! their counts.
//!
//! It differs from the channel of the pool in three points. A record keeps its place until it is written. A waiting
//! caller has a place reserved. The thread is woken at a depth that it chooses.
//!
//! Each method is atomic: no signal handler, no finalizer and no other thread sees a change half done. No Python code
//! runs while the lock is held, and objects are dropped after the lock is released.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::PyString;

use crate::calls::attribute::Attribute;
use crate::calls::pieces::{bytes_of, kind_of};
use crate::calls::template::Kind;
use crate::interpreter::dict;
use crate::interpreter::failure::Failure;
use crate::interpreter::names::{self, names};
use crate::interpreter::object::{self, Object};
use crate::interpreter::thread;

/// The value of `wake_at` of a thread that does not sleep; `thread/_queue.py` has it too.
const NEVER: u64 = 1 << 62;

/// Number of refused records of which one looks after the thread.
///
/// Chosen: whether a thread is alive takes longer to find out than everything else that a refused record costs.
const UNATTENDED: u64 = 16;

/// The reason of a refusal for want of places, as in `names`.
const QUEUE_FULL: &str = "queue_full";

/// Numbers of records by reason and level.
type Reasons = BTreeMap<String, BTreeMap<i64, u64>>;

#[derive(Default)]
struct Records {
    queued: VecDeque<(Py<PyAny>, u64)>,
    /// Maximum number of queued records, including the records in hand; 0 after `shut`.
    limit: u64,
    accepted: u64,
    /// Number of records given to the thread. The ones that are not written yet are called "in hand".
    taken: u64,
    written: u64,
    dropped_count: u64,
    /// Estimated bytes of the queued records, including the records in hand.
    bytes: u64,
    bytes_in_hand: u64,
    /// Number of callers that wait for room. Each has a place reserved that later records do not get.
    reserved: u64,
    /// A new record wakes the thread if the depth is at least this number.
    wake_at: u64,
    /// Number of refused records that are to be mentioned in the log.
    missed: u64,
    /// The thread that has taken records last, or 0.
    taker: std::ffi::c_ulong,
    refused: Reasons,
    dropped: Reasons,
}

/// Which places a record may take.
enum Room {
    /// Only a place that is not reserved for a waiting caller.
    Free,
    /// Any free place, including a reserved one.
    Reserved,
    /// Any free place, even after `shut`.
    AfterEnd,
}

/// A queue of records for one thread. Holds at most `capacity` records and `max_bytes` bytes, or a single larger
/// record.
#[pyclass(frozen, subclass, module = "logspool._native")]
pub struct RecordQueue {
    records: Mutex<Records>,
    #[pyo3(get)]
    capacity: u64,
    max_bytes: u64,
    /// The class `logging.LogRecord`.
    record_class: Py<PyAny>,
}

/// A place that is reserved for a caller that waits.
///
/// An exception of a signal handler may come between two steps of the caller. Then the place is given back when this
/// object is dropped.
#[pyclass(frozen, module = "logspool._native")]
pub struct ReservedPlace {
    queue: Py<RecordQueue>,
    is_held: AtomicBool,
}

#[pymethods]
impl ReservedPlace {
    fn __enter__(&self) {}

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.give_back();
    }

    /// Give the place back. A second call does nothing.
    fn give_back(&self) {
        if self.is_held.swap(false, Relaxed) {
            self.queue.get().records().reserved -= 1;
        }
    }
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Drop for RecordQueue {
    fn drop(&mut self) {
        // In a forked child of a free-threaded interpreter: a thread that does not exist in the child may have held the
        // lock in the middle of a change.
        if matches!(self.records.try_lock(), Err(TryLockError::WouldBlock)) {
            std::mem::forget(std::mem::take(self.records.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

impl RecordQueue {
    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a record without a reserved place finds no place.
    pub fn is_full(&self) -> bool {
        let records = self.records();
        records.limit > 0 && records.depth() + 1 > records.limit.saturating_sub(records.reserved)
    }

    fn add<'py>(
        &self,
        py: Python<'py>,
        record: Py<PyAny>,
        size: u64,
        room: Room,
    ) -> Option<Borrowed<'static, 'py, PyString>> {
        let mut records = self.records();
        let limit = match room {
            Room::Free => records.limit.saturating_sub(records.reserved),
            Room::Reserved => records.limit,
            Room::AfterEnd => self.capacity,
        };
        let (depth, is_shut) = (records.depth() + 1, records.limit == 0);
        if depth > limit {
            drop(records);
            return Some(if is_shut { names::bound(py, &names().shut) } else { names::bound(py, &names().queue_full) });
        }
        if records.bytes + size > self.max_bytes && depth > 1 {
            drop(records);
            return Some(names::bound(py, &names().queue_bytes));
        }
        records.queued.push_back((record, size));
        records.accepted += 1;
        records.bytes += size;
        let wakes = depth >= records.wake_at;
        drop(records);
        wakes.then(|| names::bound(py, &names().wake))
    }
}

impl Records {
    /// Number of records that wait or are in hand.
    fn depth(&self) -> u64 {
        self.accepted - self.written - self.dropped_count
    }
}

#[pymethods]
impl RecordQueue {
    #[new]
    fn new(py: Python<'_>, capacity: u64, max_bytes: u64) -> PyResult<Self> {
        let records = Records { limit: capacity, wake_at: 1, ..Records::default() };
        let record_class = py.import("logging")?.getattr("LogRecord")?.unbind();
        Ok(Self { records: Mutex::new(records), capacity, max_bytes, record_class })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A free-threaded interpreter may have stopped a thread that holds the lock. Objects that are not visited are
        // kept until a later collection.
        let Ok(records) = self.records.try_lock() else { return Ok(()) };
        records.queued.iter().try_for_each(|(record, _)| visit.call(record))
    }

    fn __clear__(&self) {
        let queued = std::mem::take(&mut self.records().queued);
        drop(queued);
    }

    /// Accept a record if a place is free. Return None, "wake" if the caller has to wake the thread, or the reason for
    /// a refusal.
    pub fn put<'py>(&self, py: Python<'py>, record: Py<PyAny>, size: u64) -> Option<Borrowed<'static, 'py, PyString>> {
        self.add(py, record, size, Room::Free)
    }

    /// Accept a copy of the fields of a plain record, of which `size` bytes and its texts are counted. Return what `put`
    /// returns, or "prepare" if the caller has to prepare the record.
    fn put_plain<'py>(
        &self,
        record: &Bound<'py, PyAny>,
        size: u64,
    ) -> PyResult<Option<Borrowed<'static, 'py, PyString>>> {
        let py = record.py();
        if object::class_of(record.as_borrowed()).cast() != self.record_class.as_ptr() {
            return Ok(Some(names::bound(py, &names().prepare)));
        }
        if self.is_full() {
            return Ok(Some(names::bound(py, &names().queue_full)));
        }
        let copied = object::own_attributes(record.as_borrowed()).and_then(|own| dict::copy(own.bind(py)));
        let copied = match copied {
            Ok(copied) => copied,
            Err(Failure::Raised) => return Err(PyErr::fetch(py)),
            Err(Failure::Stock) => return Ok(Some(names::bound(py, &names().prepare))),
        };
        let Some(texts) = length_of_texts(copied.bind(py)) else {
            return Ok(Some(names::bound(py, &names().prepare)));
        };
        Ok(self.add(py, copied.bind(py).to_owned().unbind(), size + texts, Room::Free))
    }

    /// The same as `put`, for a caller that has reserved a place.
    fn put_reserved<'py>(
        &self,
        py: Python<'py>,
        record: Py<PyAny>,
        size: u64,
    ) -> Option<Borrowed<'static, 'py, PyString>> {
        self.add(py, record, size, Room::Reserved)
    }

    /// The same as `put`, for the thread itself, which may add records even after `shut`.
    fn put_own<'py>(&self, py: Python<'py>, record: Py<PyAny>, size: u64) -> Option<Borrowed<'static, 'py, PyString>> {
        self.add(py, record, size, Room::AfterEnd)
    }

    /// Reserve a place for a caller that waits.
    fn reserve(queue: Py<Self>) -> ReservedPlace {
        queue.get().records().reserved += 1;
        ReservedPlace { queue, is_held: AtomicBool::new(true) }
    }

    /// Take at most `most` of the oldest records. They keep their places until the next call, which counts them as
    /// written.
    fn take(&self, most: usize) -> Vec<Py<PyAny>> {
        let mut records = self.records();
        records.taker = thread::ident();
        records.written = records.taken;
        records.bytes -= std::mem::take(&mut records.bytes_in_hand);
        let count = most.min(records.queued.len());
        records.taken += count as u64;
        let taken: Vec<_> = records.queued.drain(..count).collect();
        records.bytes_in_hand = taken.iter().map(|(_, size)| size).sum();
        drop(records);
        taken.into_iter().map(|(record, _)| record).collect()
    }

    /// Remove and return the oldest record. The caller counts it by `note_dropped`.
    fn remove_oldest(&self) -> Option<Py<PyAny>> {
        let mut records = self.records();
        let (record, size) = records.queued.pop_front()?;
        records.bytes -= size;
        Some(record)
    }

    /// Count a record that was accepted and written without the queue.
    fn note_direct(&self) {
        let mut records = self.records();
        records.accepted += 1;
        records.taken += 1;
        records.written += 1;
    }

    /// Count a refused record. With `mention`, also count it in `missed`.
    fn note_refused(&self, reason: String, level: &Bound<'_, PyAny>, mention: bool) {
        let level = level_number(level);
        let mut records = self.records();
        records.missed += u64::from(mention);
        *records.refused.entry(reason).or_default().entry(level).or_default() += 1;
    }

    /// Count a record for which there was no room as refused, and return True. Return False if the caller has to count it
    /// and to look after the thread: the thread sleeps or makes the call itself, or no caller has looked for a while.
    pub fn refuse(&self, level: &Bound<'_, PyAny>) -> bool {
        let level = level_number(level);
        let me = thread::ident();
        let mut records = self.records();
        if records.taker == me || records.wake_at < NEVER || records.missed.is_multiple_of(UNATTENDED) {
            return false;
        }
        records.missed += 1;
        if let Some(count) = records.refused.get_mut(QUEUE_FULL).and_then(|levels| levels.get_mut(&level)) {
            *count += 1;
        } else {
            *records.refused.entry(QUEUE_FULL.to_owned()).or_default().entry(level).or_default() += 1;
        }
        true
    }

    /// Count a removed record as dropped. Its place becomes free.
    fn note_dropped(&self, reason: String, level: &Bound<'_, PyAny>) {
        let level = level_number(level);
        let mut records = self.records();
        records.dropped_count += 1;
        *records.dropped.entry(reason).or_default().entry(level).or_default() += 1;
    }

    /// Accept no more records.
    fn shut(&self) {
        self.records().limit = 0;
    }

    /// Return all counts, taken at the same moment: accepted, written, queued, queued bytes, refused, dropped.
    fn counts(&self) -> (u64, u64, u64, u64, Reasons, Reasons) {
        let records = self.records();
        let (refused, dropped) = (records.refused.clone(), records.dropped.clone());
        (records.accepted, records.written, records.depth(), records.bytes, refused, dropped)
    }

    /// Number of records that wait and are not taken.
    fn __len__(&self) -> usize {
        self.records().queued.len()
    }

    /// Number of accepted records.
    #[getter]
    fn accepted(&self) -> u64 {
        self.records().accepted
    }

    /// Number of records that left the queue.
    #[getter]
    fn taken(&self) -> u64 {
        self.records().taken
    }

    /// Number of written records.
    #[getter]
    fn written(&self) -> u64 {
        self.records().written
    }

    /// Number of refused records that are to be mentioned in the log.
    #[getter]
    fn missed(&self) -> u64 {
        self.records().missed
    }

    /// Number of callers that wait for room.
    #[getter]
    fn waiting(&self) -> u64 {
        self.records().reserved
    }

    /// Maximum number of records in the queue; 0 after `shut`.
    #[getter]
    fn limit(&self) -> u64 {
        self.records().limit
    }

    /// A new record wakes the thread if the depth is at least this number.
    #[getter]
    fn wake_at(&self) -> u64 {
        self.records().wake_at
    }

    #[setter]
    fn set_wake_at(&self, depth: u64) {
        self.records().wake_at = depth;
    }
}

/// The length of the texts of a record's message and arguments. `None` if an argument may change later, or if the record
/// has an exception or a stack.
fn length_of_texts(fields: Object<'_, '_>) -> Option<u64> {
    let py = fields.py();
    for attribute in [Attribute::Exception, Attribute::Stack] {
        if !attribute.of(fields)?.bind(py).is_none() {
            return None;
        }
    }
    let (message, arguments) = (Attribute::Message.of(fields)?, Attribute::Arguments.of(fields)?);
    let (message, arguments) = (message.bind(py), arguments.bind(py));
    let values = if arguments.is_none() { &[][..] } else { object::tuple_items(arguments)? };
    length_of(message, values)
}

/// The length of the texts of a message and its arguments. `None` if the program may change one of the values.
pub fn length_of(message: Object<'_, '_>, values: &[Object<'_, '_>]) -> Option<u64> {
    let length = |value: Object<'_, '_>| match kind_of(value) {
        // SAFETY: a live `str`.
        Kind::AsciiStr | Kind::Str => Some(unsafe { ffi::PyUnicode_GET_LENGTH(value.as_ptr()) } as u64),
        Kind::Bytes => bytes_of(value).map(|bytes| bytes.len() as u64),
        Kind::Int | Kind::Float | Kind::Bool | Kind::None => Some(0),
        Kind::Other => None,
    };
    if !object::is_exact_str(message) {
        return None;
    }
    values.iter().try_fold(length(message)?, |sum, value| Some(sum + length(*value)?))
}

/// A level as a key of the counts. Logging allows levels of any size. A level that is not in the range of `i64` counts
/// as `i64::MAX`.
fn level_number(level: &Bound<'_, PyAny>) -> i64 {
    level.extract().unwrap_or(i64::MAX)
}
