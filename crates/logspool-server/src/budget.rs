//! Room in memory: everything that senders make the service keep is counted before the memory is taken.
//!
//! `limits.waiting_bytes` is the size of the first pool; each of the others is a quarter of it, so that one kind of
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
//! Processors are shared in the same way: a task that decodes much has a turn of the pool `turns`, so that a thousand
//! connections that have something to decode do not delay one that has just come.
//!
//! A task that holds room of one pool may wait for another, always in one of two orders: `large_frames`,
//! `long_messages`, `inflating`, `waiting`, `turns`; or `bodies`, `decoded_bodies`, `waiting`. A task that has a turn waits
//! for nothing, and room of `waiting` that is handed over waits for the stores only. So no two tasks wait for each other.

mod pool;

use crate::origin::Origin;
use pool::Pool;
pub use pool::Room;

/// The most memory that one byte of input becomes while it is decoded. The smallest records that are accepted come to
/// 26 bytes of memory for a byte of input (`ROW_BYTES` in `batch.rs` over `MIN_RECORD_BYTES` in `decoders/density.rs`), and
/// control characters to 6 bytes of JSON each.
const DECODED_PER_BYTE: usize = 32;

/// Input below this is decoded without a turn.
///
/// Chosen: a connection that is not flooding sends less at once, and decoding it takes a few microseconds.
const QUICK_BYTES: usize = 4 * 1024;

/// What a turn takes of its pool.
const TURN: usize = 1000;

/// Turns at the same time for each processor. Chosen: with one, a processor has nothing to do while the next task wakes.
const TURNS_PER_PROCESSOR: usize = 2;

/// The room of a service.
#[derive(Debug)]
pub struct Budget {
    waiting: Pool,
    large_frames: Pool,
    long_messages: Pool,
    inflating: Pool,
    bodies: Pool,
    decoded_bodies: Pool,
    turns: Pool,
}

impl Budget {
    /// A budget of so many bytes for waiting records.
    pub fn new(waiting_bytes: usize) -> Self {
        let quarter = || Pool::beside_reserve(waiting_bytes / 4);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: Pool::new(waiting_bytes),
            large_frames: quarter(),
            long_messages: quarter(),
            inflating: quarter(),
            bodies: quarter(),
            decoded_bodies: quarter(),
            turns: Pool::beside_reserve(TURN * TURNS_PER_PROCESSOR * processors),
        }
    }

    /// Waits for room for so many bytes of records.
    pub async fn for_records(&self, origin: Origin, bytes: usize) -> Room {
        self.waiting.room(origin, bytes).await
    }

    /// The same without waiting; `None` where there is not enough room now.
    pub fn try_for_records(&self, origin: Origin, bytes: usize) -> Option<Room> {
        self.waiting.try_room(origin, bytes)
    }

    /// Waits for room for the records that so many bytes of input may hold, or for an eighth of the pool: a record that
    /// takes more has to get its room when it is decoded. [`Room::shrink`] gives back the rest.
    pub async fn for_decoding(&self, origin: Origin, input_bytes: usize) -> Room {
        let bytes = input_bytes.saturating_mul(DECODED_PER_BYTE);
        self.waiting.room(origin, bytes.min(self.waiting.reserve())).await
    }

    /// Waits for a turn to decode so many bytes; `None`: they are so few that they need none. A turn is held while a task
    /// decodes, and never while it waits.
    pub async fn turn(&self, origin: Origin, input_bytes: usize) -> Option<Room> {
        if input_bytes < QUICK_BYTES { None } else { Some(self.turns.room(origin, TURN).await) }
    }

    /// Waits for room for a frame that has grown beyond one read.
    pub async fn for_large_frame(&self, origin: Origin, bytes: usize) -> Room {
        self.large_frames.room(origin, bytes).await
    }

    /// Waits for room for the part of a message beyond the room for a large frame. It comes from a pool of its own:
    /// holders of a part who wait for more of the same pool would wait for each other.
    pub async fn for_long_message(&self, origin: Origin, bytes: usize) -> Room {
        self.long_messages.room(origin, bytes).await
    }

    /// Waits for room for a buffer of decompressed entries.
    pub async fn for_inflating(&self, origin: Origin, bytes: usize) -> Room {
        self.inflating.room(origin, bytes).await
    }

    /// Waits for room for the body of an HTTP request.
    pub async fn for_body(&self, origin: Origin, bytes: usize) -> Room {
        self.bodies.room(origin, bytes).await
    }

    /// Waits for room for the records of an HTTP body: far more bytes than were sent, where it is compressed.
    pub async fn for_decoded_body(&self, origin: Origin, bytes: usize) -> Room {
        self.decoded_bodies.room(origin, bytes).await
    }

    /// Share of the room for records that is in use by records which wait for a store, from 0 to 1. At 1 connections are
    /// not read.
    pub fn filling(&self) -> f64 {
        self.waiting.filling()
    }

    /// Whether some of the room for records is in use.
    pub fn is_in_use(&self) -> bool {
        self.waiting.is_in_use()
    }
}
