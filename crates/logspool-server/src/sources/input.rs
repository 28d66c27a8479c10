//! Reads the bytes of a connection within its limits of time and memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::shared::{End, Shared};
use crate::budget::Room;
use crate::config::Limits;
use crate::intake::Intake;
use crate::origin::Origin;
use crate::stop::{Stop, ended, sleep_until};

/// Buffer of a silent connection in bytes: 16 MiB for 4,096 connections.
pub const SMALL_READ: usize = 4 * 1024;

/// Bytes read at once from a sender that has more: some 120 pickled records. Twice as many give no measurable gain.
const LARGE_READ: usize = 64 * 1024;

/// When the service ends, silence after which no more data is expected.
pub const LAST_WORDS: Duration = Duration::from_millis(100);

/// Maximum length of a message, in frames of `limits.frame_bytes`: Fluentd sends 8 MiB.
pub const FRAMES: usize = 10;

/// The bytes of a connection, with its limits of time and memory.
#[derive(Debug)]
pub struct Input<R> {
    stream: R,
    origin: Origin,
    /// Received bytes that are not taken yet; see [`Self::advance`].
    pub buffer: BytesMut,
    limits: Limits,
    intake: Arc<Intake>,
    stop: Stop,
    /// Size of the next read in bytes.
    read: usize,
    /// Start of the wait for the rest of an incomplete frame.
    began: Option<Instant>,
    /// Room for a large frame, and for a long message: neither, the first, or both.
    rooms: Vec<Room>,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// More bytes.
    Came,
    /// No bytes within the given time.
    Silence,
    /// The peer has closed the connection, or the service ends and has read the remaining data.
    Ended,
}

impl<R: AsyncRead + Unpin> Input<R> {
    /// Creates the input of a connection. `first` are the bytes received before.
    pub fn new(stream: R, first: BytesMut, origin: Origin, shared: &Shared) -> Self {
        Self {
            stream,
            origin,
            buffer: first,
            limits: shared.limits.clone(),
            intake: shared.intake.clone(),
            stop: shared.stop.clone(),
            read: SMALL_READ,
            began: None,
            rooms: Vec::new(),
        }
    }

    /// Waits for more bytes, for `silence` at most if it is given.
    ///
    /// # Errors
    ///
    /// A time limit has passed, or the connection failed.
    pub async fn more(&mut self, silence: Option<Duration>) -> Result<More, End> {
        let Some(room) = self.make_room().await else { return Ok(More::Ended) };
        let now = Instant::now();
        let stopping = *self.stop.borrow();
        if stopping.is_some_and(|end| end <= now) {
            return Ok(More::Ended);
        }
        let (until, limit) = if self.buffer.is_empty() {
            if self.buffer.capacity() > LARGE_READ {
                self.buffer = BytesMut::new();
            }
            (self.limits.idle_time().map(|idle| now + idle), "idle_seconds")
        } else {
            let began = *self.began.get_or_insert(now);
            (Some(began + self.limits.frame_time()), "frame_seconds")
        };
        self.buffer.reserve(room);
        let mut buffer = (&mut self.buffer).limit(room);
        let wait = match (silence, stopping) {
            (_, Some(end)) => Some(end.min(now + LAST_WORDS)),
            // A frame that ends at a line end becomes a record when its time is over, even if its sender does not
            // pause.
            (Some(silence), None) => Some(until.map_or(now + silence, |until| until.min(now + silence))),
            (None, None) => until,
        };
        let came = tokio::select! {
            // Read available bytes even after the deadline: a peer is only slow while it sends nothing.
            biased;
            came = self.stream.read_buf(&mut buffer) => came?,
            () = sleep_until(wait) => {
                return match (silence, stopping) {
                    (_, Some(_)) => Ok(More::Ended),
                    (Some(_), None) => Ok(More::Silence),
                    (None, None) => Err(End::Slow(limit)),
                };
            }
            // Return, so that the caller reads the remaining data once more.
            () = ended(&mut self.stop), if stopping.is_none() => return Ok(More::Came),
        };
        self.read = if came == room { LARGE_READ } else { SMALL_READ };
        Ok(if came == 0 { More::Ended } else { More::Came })
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
        self.began = None;
        // Free the room and the memory of a large frame as soon as it is taken.
        if !self.rooms.is_empty() && self.buffer.len() < LARGE_READ {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.rooms.clear();
        }
    }

    /// Size of the next read in bytes. A frame longer than a usual read needs room, which few connections can have at a
    /// time. It gets room for a frame of the usual limit first, then for the rest: messages of Forward may be ten times
    /// as long. `None`: the service ends.
    async fn make_room(&mut self) -> Option<usize> {
        let frame = self.limits.frame_bytes;
        loop {
            let (held, wanted) = match self.rooms.len() {
                0 => (LARGE_READ, frame),
                1 => (LARGE_READ + frame, frame * (FRAMES - 1)),
                // No frame is longer than this.
                _ => return Some(self.read),
            };
            if self.buffer.len() < held {
                return Some(self.read.min(held - self.buffer.len()));
            }
            let asked = Instant::now();
            let room = self.room(wanted).await?;
            self.rooms.push(room);
            // The sender is not slow: the service did not read meanwhile.
            self.began = self.began.map(|began| began + asked.elapsed());
        }
    }

    /// Waits for more room. `None`: the service ends first.
    async fn room(&mut self, bytes: usize) -> Option<Room> {
        let (intake, origin, is_first) = (self.intake.clone(), self.origin, self.rooms.is_empty());
        let room = async {
            match is_first {
                true => intake.budget.for_large_frame(origin, bytes).await,
                false => intake.budget.for_long_message(origin, bytes).await,
            }
        };
        let stop = async {
            ended(&mut self.stop).await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            room = room => Some(room),
            () = stop => None,
        }
    }
}
