//! Reads the bytes of a connection within its limits of time and memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::shared::{ConnectionEnd, SharedState};
use crate::budget::Reservation;
use crate::intake::Intake;
use crate::limits::Limits;
use crate::origin::Origin;
use crate::stop::{StopSignal, sleep_until, stopped};

/// Size of the buffer of a silent connection in bytes. For 4,096 connections, the buffers take 16 MiB.
pub const SMALL_READ_BYTES: usize = 4 * 1024;

/// Maximum number of bytes per read from a sender that sends more than [`SMALL_READ_BYTES`] at a time. This is some 120
/// pickled records. Reading twice as many gives no measurable gain.
const LARGE_READ_BYTES: usize = 64 * 1024;

/// When the service shuts down, no more data is expected from a peer that is silent for this time.
pub const SHUTDOWN_SILENCE: Duration = Duration::from_millis(100);

/// Maximum length of a Forward message, as a multiple of `limits.frame_bytes`. Fluentd sends messages of 8 MiB.
pub const MAX_MESSAGE_FRAMES: usize = 10;

/// The bytes of a connection, with its limits of time and memory.
#[derive(Debug)]
pub struct Input<R> {
    stream: R,
    origin: Origin,
    /// Received bytes that are not taken yet; see [`Self::advance`].
    pub buffer: BytesMut,
    limits: Limits,
    intake: Arc<Intake>,
    stop: StopSignal,
    /// Size of the next read in bytes.
    read_bytes: usize,
    /// Time when the service began to wait for the rest of an incomplete frame.
    frame_began: Option<Instant>,
    /// The memory reservations: none, one for a large frame, or a second one for a message longer than a frame.
    reservations: Vec<Reservation>,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// More bytes were received.
    Received,
    /// No bytes arrived within the given time.
    Silent,
    /// The peer has closed the connection, or the service ends and has read the remaining data.
    Ended,
}

impl<R: AsyncRead + Unpin> Input<R> {
    /// Creates the input of a connection. `first` are the bytes received before.
    pub fn new(stream: R, first: BytesMut, origin: Origin, shared: &SharedState) -> Self {
        Self {
            stream,
            origin,
            buffer: first,
            limits: shared.limits.clone(),
            intake: shared.intake.clone(),
            stop: shared.stop.clone(),
            read_bytes: SMALL_READ_BYTES,
            frame_began: None,
            reservations: Vec::new(),
        }
    }

    /// Waits for more bytes. If `silence` is given, waits at most for this time.
    ///
    /// # Errors
    ///
    /// A time limit has passed, or the connection failed.
    pub async fn read_more(&mut self, silence: Option<Duration>) -> Result<ReadOutcome, ConnectionEnd> {
        let Some(room) = self.make_room().await else { return Ok(ReadOutcome::Ended) };
        let now = Instant::now();
        let stopping = *self.stop.borrow();
        if stopping.is_some_and(|end| end <= now) {
            return Ok(ReadOutcome::Ended);
        }
        let (until, limit) = if self.buffer.is_empty() {
            if self.buffer.capacity() > LARGE_READ_BYTES {
                self.buffer = BytesMut::new();
            }
            (self.limits.idle_time().map(|idle| now + idle), "idle_seconds")
        } else {
            let began = *self.frame_began.get_or_insert(now);
            (Some(began + self.limits.frame_time()), "frame_seconds")
        };
        self.buffer.reserve(room);
        let mut buffer = (&mut self.buffer).limit(room);
        let wait = match (silence, stopping) {
            (_, Some(end)) => Some(end.min(now + SHUTDOWN_SILENCE)),
            // The time limit also ends this wait. So a frame that ends at a line end becomes a record then, even if its
            // sender does not pause.
            (Some(silence), None) => Some(until.map_or(now + silence, |until| until.min(now + silence))),
            (None, None) => until,
        };
        let came = tokio::select! {
            // Read available bytes even after the deadline: a peer counts as slow only while it sends nothing.
            biased;
            came = self.stream.read_buf(&mut buffer) => came?,
            () = sleep_until(wait) => {
                return match (silence, stopping) {
                    (_, Some(_)) => Ok(ReadOutcome::Ended),
                    (Some(_), None) => Ok(ReadOutcome::Silent),
                    (None, None) => Err(ConnectionEnd::Slow(limit)),
                };
            }
            // Return, so that the caller reads the remaining data once more.
            () = stopped(&mut self.stop), if stopping.is_none() => return Ok(ReadOutcome::Received),
        };
        self.read_bytes = if came == room { LARGE_READ_BYTES } else { SMALL_READ_BYTES };
        Ok(if came == 0 { ReadOutcome::Ended } else { ReadOutcome::Received })
    }
}

impl<R> Input<R> {
    /// Returns the stream, and the bytes that are not taken yet.
    pub fn into_parts(self) -> (R, BytesMut) {
        (self.stream, self.buffer)
    }

    /// Removes bytes from the buffer: all bytes of some frames, or none. The remaining bytes are the start of another
    /// frame. The time limit of that frame begins with the next wait for its bytes. So the time that a sender waits for
    /// the stores does not count.
    pub fn advance(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.buffer.advance(bytes);
        self.frame_began = None;
        // Free the reservation and the memory of a large frame as soon as the frame is removed from the buffer.
        if !self.reservations.is_empty() && self.buffer.len() < LARGE_READ_BYTES {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.reservations.clear();
        }
    }

    /// Returns the size of the next read in bytes. A frame longer than [`LARGE_READ_BYTES`] needs a memory reservation,
    /// which only a few connections can have at a time. The first reservation is for `limits.frame_bytes`. A second one
    /// is for the rest of a Forward message, which may be ten times as long. `None`: the service ends.
    async fn make_room(&mut self) -> Option<usize> {
        let frame = self.limits.frame_bytes;
        loop {
            let (held, wanted) = match self.reservations.len() {
                0 => (LARGE_READ_BYTES, frame),
                1 => (LARGE_READ_BYTES + frame, frame * (MAX_MESSAGE_FRAMES - 1)),
                // No frame is longer than the two reservations.
                _ => return Some(self.read_bytes),
            };
            if self.buffer.len() < held {
                return Some(self.read_bytes.min(held - self.buffer.len()));
            }
            let asked = Instant::now();
            let room = self.room(wanted).await?;
            self.reservations.push(room);
            // Extend the time limit: the service did not read while it waited for the reservation.
            self.frame_began = self.frame_began.map(|began| began + asked.elapsed());
        }
    }

    /// Waits for a further memory reservation. `None`: the service ends before it is granted.
    async fn room(&mut self, bytes: usize) -> Option<Reservation> {
        let (intake, origin, is_first) = (self.intake.clone(), self.origin, self.reservations.is_empty());
        let room = async {
            match is_first {
                true => intake.budget.for_large_frame(origin, bytes).await,
                false => intake.budget.for_long_message(origin, bytes).await,
            }
        };
        let stop = async {
            stopped(&mut self.stop).await;
            tokio::time::sleep(SHUTDOWN_SILENCE).await;
        };
        tokio::select! {
            room = room => Some(room),
            () = stop => None,
        }
    }
}
