//! Limits memory. All memory that clients can make the service use is counted in a pool before it is allocated. The
//! counted bytes are called room.
//!
//! `limits.waiting_bytes` is the size of the pool `waiting`. Each other pool in the table has a quarter of that size
//! plus a reserve; `streams` has an eighth. The pools are separate, so that one kind of sender cannot block another
//! kind. `pool.rs` describes how origins share a pool.
//!
//! | pool | what its room is for |
//! |---|---|
//! | `waiting` | records, from before they are decoded until every store has settled them |
//! | `large_frames` | frames that have grown beyond one read and are still incomplete or undecoded |
//! | `long_messages` | the part of a Forward message beyond `limits.frame_bytes` |
//! | `open_lines` | parts of lines that wait for the last part; nothing waits for this room |
//! | `streams` | the names of streams that connections send; nothing waits for this room |
//! | `inflating` | buffers for entries of Forward that are being decompressed |
//! | `bodies` | bodies of HTTP requests that are being received |
//! | `decoded_bodies` | records decoded from HTTP bodies that do not have room in `waiting` yet |
//!
//! Processors are shared in the same way: a task that decodes much data needs a turn from the pool `turns`. So a
//! thousand connections with data to decode do not delay a new connection.
//!
//! A task that holds room of one pool may wait for room of a later pool in the same list:
//! - `large_frames`, `long_messages`, `inflating`, `waiting`, `turns`;
//! - `bodies`, `decoded_bodies`, `waiting`.
//!
//! A task that has a turn never waits. Room of `waiting` that was given to the stores is freed by the stores only. So
//! tasks cannot deadlock.

mod pool;

use crate::origin::Origin;
use pool::MemoryPool;
pub use pool::Reservation;

/// Maximum memory that one byte of input takes when decoded. The smallest accepted records take 26 bytes of memory per
/// byte of input (`ROW_BYTES` in `batch.rs` divided by `MIN_RECORD_BYTES` in `decoders/density.rs`). A control
/// character, one byte of input, takes 6 bytes of JSON.
const DECODED_PER_BYTE: usize = 32;

/// Input that is smaller than this is decoded without a turn.
///
/// Chosen: a connection that does not flood the service sends less than this at once. Decoding it takes a few
/// microseconds.
const QUICK_BYTES: usize = 4 * 1024;

/// The size of a turn in the pool `turns`.
const TURN_UNITS: usize = 1000;

/// Maximum number of connections per processor that decode their input at the same time; each of them has a turn.
/// Chosen: with a smaller value, a processor would be idle while the next connection wakes.
const TURNS_PER_PROCESSOR: usize = 2;

/// The pools of a service.
#[derive(Debug)]
pub struct Budget {
    waiting: MemoryPool,
    large_frames: MemoryPool,
    long_messages: MemoryPool,
    open_lines: MemoryPool,
    streams: MemoryPool,
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
            open_lines: quarter(),
            streams: MemoryPool::with_reserve(waiting_bytes / 8),
            inflating: quarter(),
            bodies: quarter(),
            decoded_bodies: quarter(),
            turns: MemoryPool::with_reserve(TURN_UNITS * TURNS_PER_PROCESSOR * processors),
        }
    }

    /// Waits for room for decoded records.
    pub async fn for_records(&self, origin: Origin, bytes: usize) -> Reservation {
        self.waiting.acquire(origin, bytes).await
    }

    /// Takes room for records if enough is free now. Never waits.
    pub fn try_for_records(&self, origin: Origin, bytes: usize) -> Option<Reservation> {
        self.waiting.try_acquire(origin, bytes)
    }

    /// Waits for room for the records that `input_bytes` of input may hold, but at most an eighth of the pool. If a
    /// record needs more, it gets more room after it is decoded. [`Reservation::shrink`] frees the excess.
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

    /// Waits for room for the part of a message that exceeds the room for a large frame. This room is in a separate
    /// pool: tasks that hold room of a pool and wait for more of the same pool could deadlock.
    pub async fn for_long_message(&self, origin: Origin, bytes: usize) -> Reservation {
        self.long_messages.acquire(origin, bytes).await
    }

    /// Takes room for lines whose last parts are missing, if enough is free now. Never waits: without room the parts
    /// are stored alone.
    pub fn try_for_open_lines(&self, origin: Origin, bytes: usize) -> Option<Reservation> {
        self.open_lines.try_acquire(origin, bytes)
    }

    /// Takes room for a stream of a connection, if enough is free now. Never waits: without room the connection is
    /// closed.
    pub fn try_for_stream(&self, origin: Origin, bytes: usize) -> Option<Reservation> {
        self.streams.try_acquire(origin, bytes)
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

    /// The share of the room for records that is used by records waiting for a store, from 0 to 1. At 1, connections
    /// are not read.
    pub fn fill_level(&self) -> f64 {
        self.waiting.fill_level()
    }

    /// True if some of the room for records is in use.
    pub fn is_in_use(&self) -> bool {
        self.waiting.is_in_use()
    }
}
