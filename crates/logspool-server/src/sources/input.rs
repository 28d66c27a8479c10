//! Reads the bytes of a connection within its limits of time and memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::shared::{ConnectionEnd, SharedState};
use crate::budget::Reservation;
use crate::config::Limits;
use crate::intake::Intake;
use crate::origin::Origin;
use crate::stop::{StopSignal, sleep_until, stopped};

/// Buffer of a silent connection in bytes: 16 MiB for 4,096 connections.
pub const SMALL_READ_BYTES: usize = 4 * 1024;

/// Bytes read at once from a sender that has more: some 120 pickled records. Twice as many give no measurable gain.
const LARGE_READ_BYTES: usize = 64 * 1024;

/// When the service ends, silence after which no more data is expected.
pub const SHUTDOWN_SILENCE: Duration = Duration::from_millis(100);

/// Maximum length of a message, in frames of `limits.frame_bytes`: Fluentd sends 8 MiB.
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
    /// Start of the wait for the rest of an incomplete frame.
    frame_began: Option<Instant>,
    /// Room for a large frame, and for a long message: neither, the first, or both.
    reservations: Vec<Reservation>,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// More bytes.
    Received,
    /// No bytes within the given time.
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

    /// Waits for more bytes, for `silence` at most if it is given.
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
            // A frame that ends at a line end becomes a record when the time limit has passed, even if its sender does
            // not pause.
            (Some(silence), None) => Some(until.map_or(now + silence, |until| until.min(now + silence))),
            (None, None) => until,
        };
        let came = tokio::select! {
            // Read available bytes even after the deadline: a peer is only slow while it sends nothing.
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
    /// Takes bytes: all bytes of some frames, or none. The rest is the start of another frame. Its time begins with the
    /// next wait for it, because the time that a sender waits for the stores must not count.
    pub fn advance(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.buffer.advance(bytes);
        self.frame_began = None;
        // Free the room and the memory of a large frame as soon as it is taken.
        if !self.reservations.is_empty() && self.buffer.len() < LARGE_READ_BYTES {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.reservations.clear();
        }
    }

    /// Size of the next read in bytes. A frame longer than a usual read needs room, which few connections can have at a
    /// time. It gets room for a frame of the usual limit first, then for the rest: messages of Forward may be ten times
    /// as long. `None`: the service ends.
    async fn make_room(&mut self) -> Option<usize> {
        let frame = self.limits.frame_bytes;
        loop {
            let (held, wanted) = match self.reservations.len() {
                0 => (LARGE_READ_BYTES, frame),
                1 => (LARGE_READ_BYTES + frame, frame * (MAX_MESSAGE_FRAMES - 1)),
                // No frame is longer than this.
                _ => return Some(self.read_bytes),
            };
            if self.buffer.len() < held {
                return Some(self.read_bytes.min(held - self.buffer.len()));
            }
            let asked = Instant::now();
            let room = self.room(wanted).await?;
            self.reservations.push(room);
            // The sender is not slow: the service did not read meanwhile.
            self.frame_began = self.frame_began.map(|began| began + asked.elapsed());
        }
    }

    /// Waits for more room. `None`: the service ends first.
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
