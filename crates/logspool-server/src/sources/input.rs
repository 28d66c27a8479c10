//! The bytes of a connection, read within its limits of time and memory.

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

/// Bytes that a silent connection has room for: with 4,096 of them, 16 MiB.
pub const SMALL_READ: usize = 4 * 1024;

/// Bytes read at once from a sender that has more: some 120 pickled records. Twice as many gain nothing measurable.
const LARGE_READ: usize = 64 * 1024;

/// Silence after which nothing is on its way any more when the service ends.
pub const LAST_WORDS: Duration = Duration::from_millis(100);

/// Frames of limits.frame_bytes that one message may be long: Fluentd sends 8 MiB.
pub const FRAMES: usize = 10;

/// The bytes of a connection, with its limits of time and memory.
#[derive(Debug)]
pub struct Input<R> {
    stream: R,
    origin: Origin,
    /// What came and is not yet taken; see [`Self::advance`].
    pub buffer: BytesMut,
    limits: Limits,
    intake: Arc<Intake>,
    stop: Stop,
    /// Bytes for the next read.
    read: usize,
    /// When the frame that is open was first waited for.
    began: Option<Instant>,
    /// Room for a large frame, and for a long message: none, the first, or both.
    rooms: Vec<Room>,
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// More bytes.
    Came,
    /// Nothing for as long as was asked.
    Silence,
    /// The peer has closed, or the service ends: nothing more is on its way, or it has been read for long enough.
    Ended,
}

impl<R: AsyncRead + Unpin> Input<R> {
    /// The bytes of a connection of which `first` has come.
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

    /// Waits for more bytes; at most for `silence`, where it is given.
    ///
    /// # Errors
    ///
    /// A limit of time is passed, or the network says so.
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
            // What ends in a line end is a record when its time is over, whether its sender pauses or not.
            (Some(silence), None) => Some(until.map_or(now + silence, |until| until.min(now + silence))),
            (None, None) => until,
        };
        let came = tokio::select! {
            // What has come counts, however late: a peer is slow only while nothing is there.
            biased;
            came = self.stream.read_buf(&mut buffer) => came?,
            () = sleep_until(wait) => {
                return match (silence, stopping) {
                    (_, Some(_)) => Ok(More::Ended),
                    (Some(_), None) => Ok(More::Silence),
                    (None, None) => Err(End::Slow(limit)),
                };
            }
            // Once more, to take what is on its way.
            () = ended(&mut self.stop), if stopping.is_none() => return Ok(More::Came),
        };
        self.read = if came == room { LARGE_READ } else { SMALL_READ };
        Ok(if came == 0 { More::Ended } else { More::Came })
    }
}

impl<R> Input<R> {
    /// Takes so many bytes: all of some frames, or none. What is left is the beginning of another frame, and its time
    /// begins when more of it is waited for: what the stores make a sender wait is not the sender's.
    pub fn advance(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.buffer.advance(bytes);
        self.began = None;
        // The room goes back as soon as the large frame is taken, with the memory that it was for.
        if !self.rooms.is_empty() && self.buffer.len() < LARGE_READ {
            self.buffer = BytesMut::from(&self.buffer[..]);
            self.rooms.clear();
        }
    }

    /// How many bytes the next read may bring. A frame that is longer than the usual read needs room, which few
    /// connections have at a time: for a frame of the usual limit, then for the rest, as messages of Forward may be ten
    /// times as long. `None`: the service ends.
    async fn make_room(&mut self) -> Option<usize> {
        let frame = self.limits.frame_bytes;
        loop {
            let (held, wanted) = match self.rooms.len() {
                0 => (LARGE_READ, frame),
                1 => (LARGE_READ + frame, frame * (FRAMES - 1)),
                // No frame is longer.
                _ => return Some(self.read),
            };
            if self.buffer.len() < held {
                return Some(self.read.min(held - self.buffer.len()));
            }
            let asked = Instant::now();
            let room = self.room(wanted).await?;
            self.rooms.push(room);
            // The sender is not slow: it was not listened to.
            self.began = self.began.map(|began| began + asked.elapsed());
        }
    }

    /// Waits for more room. `None`: the service ends before.
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
