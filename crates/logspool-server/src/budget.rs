//! Room in memory: all memory that clients can make the service use is counted before it is allocated.
//!
//! `limits.waiting_bytes` is the size of the first pool. Each of the others is a quarter of it, so that one kind of
//! sender cannot stop another kind. How origins share a pool is in `pool.rs`.
//!
//! | pool | what its room is for |
//! |---|---|
//! | `waiting` | records, from before they are decoded until every store has settled them |
//! | `large_frames` | frames that have grown beyond one read and are still incomplete or undecoded |
//! | `long_messages` | the part of a Forward message beyond `limits.frame_bytes` |
//! | `inflating` | buffers for entries of Forward that are being decompressed |
//! | `bodies` | bodies of HTTP requests that are being received |
//! | `decoded_bodies` | records decoded from HTTP bodies that do not have room in `waiting` yet |
//!
//! Processors are shared in the same way: a task that decodes much needs a turn of the pool `turns`. So a thousand
//! connections with data to decode do not delay a new connection.
//!
//! A task that holds room of one pool may wait for another, always in one of two orders: `large_frames`,
//! `long_messages`, `inflating`, `waiting`, `turns`; or `bodies`, `decoded_bodies`, `waiting`. A task that has a turn
//! never waits. Room of `waiting` that was handed over waits for the stores only. So tasks cannot deadlock.

mod pool;

use crate::origin::Origin;
use pool::MemoryPool;
pub use pool::Reservation;

/// Maximum memory that one byte of input takes when decoded. The smallest accepted records take 26 bytes of memory per
/// byte of input (`ROW_BYTES` in `batch.rs` over `MIN_RECORD_BYTES` in `decoders/density.rs`). A control character
/// takes 6 bytes of JSON.
const DECODED_PER_BYTE: usize = 32;

/// Smaller input is decoded without a turn.
///
/// Chosen: a connection that is not flooding sends less at once, and decoding it takes a few microseconds.
const QUICK_BYTES: usize = 4 * 1024;

/// Size of a turn in its pool.
const TURN_UNITS: usize = 1000;

/// Simultaneous turns per processor. Chosen: with one, a processor would be idle while the next task wakes.
const TURNS_PER_PROCESSOR: usize = 2;

/// The room of a service.
#[derive(Debug)]
pub struct Budget {
    waiting: MemoryPool,
    large_frames: MemoryPool,
    long_messages: MemoryPool,
    inflating: MemoryPool,
    bodies: MemoryPool,
    decoded_bodies: MemoryPool,
    turns: MemoryPool,
}

impl Budget {
    /// Creates a budget with this number of bytes for waiting records.
    pub fn new(waiting_bytes: usize) -> Self {
        let quarter = || MemoryPool::with_reserve(waiting_bytes / 4);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: MemoryPool::new(waiting_bytes),
            large_frames: quarter(),
            long_messages: quarter(),
            inflating: quarter(),
            bodies: quarter(),
            decoded_bodies: quarter(),
            turns: MemoryPool::with_reserve(TURN_UNITS * TURNS_PER_PROCESSOR * processors),
        }
    }

    /// Waits for room for records.
    pub async fn for_records(&self, origin: Origin, bytes: usize) -> Reservation {
        self.waiting.acquire(origin, bytes).await
    }

    /// Takes room for records if there is enough now; never waits.
    pub fn try_for_records(&self, origin: Origin, bytes: usize) -> Option<Reservation> {
        self.waiting.try_acquire(origin, bytes)
    }

    /// Waits for room for the records that `input_bytes` of input may hold, but at most an eighth of the pool. A record
    /// that needs more gets its room when it is decoded. [`Reservation::shrink`] frees the excess.
    pub async fn for_decoding(&self, origin: Origin, input_bytes: usize) -> Reservation {
        let bytes = input_bytes.saturating_mul(DECODED_PER_BYTE);
        self.waiting.acquire(origin, bytes.min(self.waiting.reserve_bytes())).await
    }

    /// Waits for a turn to decode `input_bytes`. `None`: the input is small enough to need no turn. A task holds a turn
    /// while it decodes, never while it waits.
    pub async fn decode_turn(&self, origin: Origin, input_bytes: usize) -> Option<Reservation> {
        if input_bytes < QUICK_BYTES { None } else { Some(self.turns.acquire(origin, TURN_UNITS).await) }
    }

    /// Waits for room for a frame that has grown beyond one read.
    pub async fn for_large_frame(&self, origin: Origin, bytes: usize) -> Reservation {
        self.large_frames.acquire(origin, bytes).await
    }

    /// Waits for room for the part of a message beyond the room for a large frame. It has a separate pool: tasks that
    /// hold a part and wait for more of the same pool would deadlock.
    pub async fn for_long_message(&self, origin: Origin, bytes: usize) -> Reservation {
        self.long_messages.acquire(origin, bytes).await
    }

    /// Waits for room for a buffer of decompressed entries.
    pub async fn for_inflating(&self, origin: Origin, bytes: usize) -> Reservation {
        self.inflating.acquire(origin, bytes).await
    }

    /// Waits for room for the body of an HTTP request.
    pub async fn for_body(&self, origin: Origin, bytes: usize) -> Reservation {
        self.bodies.acquire(origin, bytes).await
    }

    /// Waits for room for the records of an HTTP body. A compressed body may hold far more bytes than were sent.
    pub async fn for_decoded_body(&self, origin: Origin, bytes: usize) -> Reservation {
        self.decoded_bodies.acquire(origin, bytes).await
    }

    /// Share of the room for records that is used by records which wait for a store, from 0 to 1. At 1 connections are
    /// not read.
    pub fn fill_level(&self) -> f64 {
        self.waiting.fill_level()
    }

    /// True if some of the room for records is in use.
    pub fn is_in_use(&self) -> bool {
        self.waiting.is_in_use()
    }
}
