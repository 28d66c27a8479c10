//! Permits for memory: everything that senders make the service keep is counted before the memory is taken.
//!
//! `limits.waiting_bytes` is the size of the first pool; each of the others is a quarter of it, so that one kind of
//! sender cannot stop another kind:
//!
//! | pool | what its permits are for |
//! |---|---|
//! | `waiting` | records, from before they are decoded until every store has settled them |
//! | `large_frames` | frames that have grown beyond one read and are still incomplete or undecoded |
//! | `long_messages` | the part of a Forward message beyond `limits.frame_bytes` |
//! | `inflating` | buffers for entries of Forward that are being decompressed |
//! | `bodies` | bodies of HTTP requests that are being received |
//! | `decoded_bodies` | records decoded from HTTP bodies that do not have room in `waiting` yet |
//!
//! A task that holds permits of one pool may wait for another, always in one of two orders: `large_frames`,
//! `long_messages`, `inflating`, `waiting`; or `bodies`, `decoded_bodies`, `waiting`. A task that holds permits of
//! `waiting` waits for the stores only. So no two tasks wait for each other.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that one permit stands for.
const PERMIT_BYTES: usize = 1024;

/// The most memory that one byte of input becomes while it is decoded. The smallest records that are accepted come to
/// 26 bytes of memory for a byte of input (`ROW_BYTES` in `batch.rs` over `MIN_ENTRY_BYTES` in `decoders/forward`), and
/// control characters to 6 bytes of JSON each.
const DECODED_PER_BYTE: usize = 32;

/// The most that is reserved for one frame before it is decoded.
///
/// Chosen: a JSON frame of 1 MiB with as many values as are accepted needs 12 MiB while it is decoded.
const MOST_RESERVED: usize = 16 << 20;

/// All permits of a service.
#[derive(Debug)]
pub struct Budget {
    waiting: Pool,
    large_frames: Pool,
    long_messages: Pool,
    inflating: Pool,
    bodies: Pool,
    decoded_bodies: Pool,
}

/// One pool of permits.
#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    permits: u32,
}

/// Permits for a number of bytes; they go back when this is dropped.
#[derive(Debug)]
pub struct Room(OwnedSemaphorePermit);

/// The most memory that the records in so many bytes of input take.
pub fn decoded_bytes(input_bytes: usize) -> usize {
    input_bytes.saturating_mul(DECODED_PER_BYTE)
}

impl Pool {
    fn new(permits: u32) -> Self {
        let permits = permits.max(1);
        Self { free: Arc::new(Semaphore::new(permits as usize)), permits }
    }

    /// The permits for so many bytes. A request beyond the whole pool takes the whole pool.
    fn permits_for(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.permits)
    }

    async fn room(&self, bytes: usize) -> Room {
        let permit = self.free.clone().acquire_many_owned(self.permits_for(bytes)).await;
        Room(permit.expect("a pool is never closed"))
    }

    fn try_room(&self, bytes: usize) -> Option<Room> {
        self.free.clone().try_acquire_many_owned(self.permits_for(bytes)).ok().map(Room)
    }
}

impl Budget {
    /// A budget of so many bytes for waiting records.
    pub fn new(waiting_bytes: usize) -> Self {
        let permits = u32::try_from(waiting_bytes / PERMIT_BYTES).unwrap_or(u32::MAX >> 4).max(1);
        let quarter = || Pool::new(permits / 4);
        Self {
            waiting: Pool::new(permits),
            large_frames: quarter(),
            long_messages: quarter(),
            inflating: quarter(),
            bodies: quarter(),
            decoded_bodies: quarter(),
        }
    }

    /// Waits for room for so many bytes of records.
    pub async fn for_records(&self, bytes: usize) -> Room {
        self.waiting.room(bytes).await
    }

    /// The same without waiting; `None` where there is not enough room now.
    pub fn try_for_records(&self, bytes: usize) -> Option<Room> {
        self.waiting.try_room(bytes)
    }

    /// Waits for room for the records that so many bytes of input may hold. [`Room::shrink`] gives back the rest once
    /// they are decoded.
    pub async fn for_decoding(&self, input_bytes: usize) -> Room {
        self.waiting.room(decoded_bytes(input_bytes).min(MOST_RESERVED)).await
    }

    /// Waits for room for a frame that has grown beyond one read.
    pub async fn for_large_frame(&self, bytes: usize) -> Room {
        self.large_frames.room(bytes).await
    }

    /// Waits for room for the part of a message beyond the room for a large frame. It comes from a pool of its own:
    /// holders of a part who wait for more of the same pool would wait for each other.
    pub async fn for_long_message(&self, bytes: usize) -> Room {
        self.long_messages.room(bytes).await
    }

    /// Waits for room for a buffer of decompressed entries.
    pub async fn for_inflating(&self, bytes: usize) -> Room {
        self.inflating.room(bytes).await
    }

    /// Waits for room for the body of an HTTP request.
    pub async fn for_body(&self, bytes: usize) -> Room {
        self.bodies.room(bytes).await
    }

    /// Waits for room for the records of an HTTP body: far more bytes than were sent, where it is compressed.
    pub async fn for_decoded_body(&self, bytes: usize) -> Room {
        self.decoded_bodies.room(bytes).await
    }

    /// Share of the room for records that is in use, from 0 to 1.
    pub fn filling(&self) -> f64 {
        1.0 - self.waiting.free.available_permits() as f64 / f64::from(self.waiting.permits)
    }

    /// Whether some of the room for records is in use.
    pub fn is_in_use(&self) -> bool {
        self.waiting.free.available_permits() < self.waiting.permits as usize
    }
}

impl Room {
    /// Gives back what exceeds so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        drop(self.0.split(self.0.num_permits().saturating_sub(bytes.div_ceil(PERMIT_BYTES).max(1))));
    }

    /// Whether so many bytes fit.
    pub fn holds(&self, bytes: usize) -> bool {
        bytes <= self.0.num_permits() * PERMIT_BYTES
    }

    /// Adds the permits of another room of the same pool.
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;

    use super::*;

    #[test]
    fn room_is_given_back_as_it_shrinks_and_when_it_is_dropped() {
        let budget = Budget::new(64 << 10);
        let mut room = block_on(budget.for_records(60 << 10));
        assert!(room.holds(60 << 10) && !room.holds(61 << 10));
        assert!(budget.try_for_records(5 << 10).is_none());

        room.shrink(1);
        let mut more = budget.try_for_records(5 << 10).unwrap();
        more.merge(room);
        assert!(more.holds(6 << 10));

        drop(more);
        assert!(!budget.is_in_use());
    }

    #[test]
    fn a_request_beyond_a_pool_takes_all_of_it() {
        let budget = Budget::new(64 << 10);
        let all = block_on(budget.for_decoding(1 << 20));

        assert!((budget.filling() - 1.0).abs() < f64::EPSILON);
        drop(all);
        assert!(!budget.is_in_use());
    }
}
