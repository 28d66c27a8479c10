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
//! A task that holds room of one pool may wait for another, always in one of two orders: `large_frames`,
//! `long_messages`, `inflating`, `waiting`; or `bodies`, `decoded_bodies`, `waiting`. A task that holds room of
//! `waiting` waits for the stores only. So no two tasks wait for each other.

mod pool;

use crate::origin::Origin;
use pool::Pool;
pub use pool::Room;

/// The most memory that one byte of input becomes while it is decoded. The smallest records that are accepted come to
/// 26 bytes of memory for a byte of input (`ROW_BYTES` in `batch.rs` over `MIN_RECORD_BYTES` in `decoders/density.rs`), and
/// control characters to 6 bytes of JSON each.
const DECODED_PER_BYTE: usize = 32;

/// The most that is reserved for one frame before it is decoded.
///
/// Chosen: a JSON frame of 1 MiB with as many values as are accepted needs 12 MiB while it is decoded.
const MOST_RESERVED: usize = 16 << 20;

/// The room of a service.
#[derive(Debug)]
pub struct Budget {
    waiting: Pool,
    large_frames: Pool,
    long_messages: Pool,
    inflating: Pool,
    bodies: Pool,
    decoded_bodies: Pool,
}

/// The most memory that the records in so many bytes of input take.
pub fn decoded_bytes(input_bytes: usize) -> usize {
    input_bytes.saturating_mul(DECODED_PER_BYTE)
}

impl Budget {
    /// A budget of so many bytes for waiting records.
    pub fn new(waiting_bytes: usize) -> Self {
        let quarter = || Pool::new(waiting_bytes / 4);
        Self {
            waiting: Pool::new(waiting_bytes),
            large_frames: quarter(),
            long_messages: quarter(),
            inflating: quarter(),
            bodies: quarter(),
            decoded_bodies: quarter(),
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

    /// Waits for room for the records that so many bytes of input may hold. [`Room::shrink`] gives back the rest once
    /// they are decoded.
    pub async fn for_decoding(&self, origin: Origin, input_bytes: usize) -> Room {
        self.waiting.room(origin, decoded_bytes(input_bytes).min(MOST_RESERVED)).await
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

    /// Share of the room for records that is in use, from 0 to 1; the reserve for origins that hold little does not count.
    pub fn filling(&self) -> f64 {
        self.waiting.filling()
    }

    /// Whether some of the room for records is in use.
    pub fn is_in_use(&self) -> bool {
        self.waiting.is_in_use()
    }
}
