//! One connection: what it speaks is told by its first byte, then frames are read until it ends.
//!
//! A connection that is not read makes its sender wait: that happens whenever the stores are behind (`intake`). Memory
//! of a connection that is silent is one small buffer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::admission::Slot;
use super::forward;
use super::framing::{Ended, FrameError, Framer, Protocol, Step};
use super::reading::{Peer, Reader};
use crate::budget::Room;
use crate::config::Limits;
use crate::http;
use crate::intake::Intake;
use crate::origin::Origin;
use crate::share::Refusal;
use crate::warnings;

/// Bytes that a silent connection has room for: with 4,096 of them, 16 MiB.
const SMALL_READ: usize = 4 * 1024;

/// Bytes read at once from a sender that has more: some 120 pickled records. Twice as many gain nothing measurable.
const LARGE_READ: usize = 64 * 1024;

/// How long the frames of a connection are decoded until another one has its turn. Chosen: a read from a usual sender is
/// decoded in a tenth of it.
const TURN_TIME: Duration = Duration::from_millis(1);

/// Frames between two looks at the clock.
const LOOK_EACH: usize = 32;

/// Silence that ends a line of syslog whose sender does not tell otherwise.
const BURST: Duration = Duration::from_millis(50);

/// Silence after which nothing is on its way any more when the service ends.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    /// Where records go.
    pub intake: Arc<Intake>,
    /// Bounds.
    pub limits: Limits,
    /// Answers HTTP.
    pub http: http::Service,
    /// For listeners of Forward that want one.
    pub shared_key: Option<forward::Key>,
    /// Says when the service ends.
    pub stop: Stop,
}

/// The word that the service ends: up to when what senders have sent is read.
pub type Stop = watch::Receiver<Option<Instant>>;

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// The peer closed it, or the service ends.
    Peer,
    /// It cannot be read on.
    Frame(FrameError),
    /// It was too slow, or silent for too long: which limit.
    Slow(&'static str),
    /// It takes no answers.
    Deaf,
    /// What it sent does not follow what is stored.
    Refused,
    /// It sends records, and the slots for that are taken.
    NoSlot(Refusal),
    /// The key is wrong.
    Key(String),
    /// The network says so.
    Io(std::io::Error),
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

/// Serves a connection to its end, and holds its slot for as long.
pub async fn serve<S>(stream: S, peer: Peer, protocol: Option<Protocol>, mut slot: Slot, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let metrics = shared.intake.metrics.clone();
    let _open = metrics.connection();
    let (reason, why) = match converse(stream, &peer, protocol, &mut slot, &shared).await {
        End::Peer => return,
        End::Frame(error) => (error.kind(), error.to_string()),
        End::Slow(limit) => ("slow", format!("it was silent for longer than limits.{limit}")),
        End::Deaf => ("slow", "it took no answer for longer than limits.frame_seconds".to_owned()),
        End::Refused => ("refused", "its chunk does not follow what is stored, or it was replaced".to_owned()),
        End::NoSlot(refusal) => {
            (refusal.reason(), format!("{refusal} (limits.connections, limits.connections_per_peer)"))
        }
        End::Key(why) => ("key", why),
        End::Io(error) => ("network", error.to_string()),
    };
    metrics.close(reason);
    warnings::warn(reason, Some(&peer), || format!("connection closed: {why}"));
}

async fn converse<S>(
    mut stream: S,
    peer: &Peer,
    protocol: Option<Protocol>,
    slot: &mut Slot,
    shared: &Arc<Shared>,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let (Some(Protocol::Forward), Some(_)) = (protocol, &shared.shared_key) {
        // The server speaks first there.
        return forward::serve(stream, BytesMut::new(), peer, true, shared).await;
    }
    let mut first = BytesMut::with_capacity(SMALL_READ);
    let header_time = slot.header_time(shared.limits.header_time());
    let mut stop = shared.stop.clone();
    let came = tokio::select! {
        came = timeout(header_time, stream.read_buf(&mut first)) => came,
        () = ended(&mut stop) => timeout(LAST_WORDS, stream.read_buf(&mut first)).await,
    };
    match came {
        Err(_) => return End::Slow("header_seconds"),
        Ok(Err(error)) => return End::Io(error),
        Ok(Ok(0)) => return End::Peer,
        Ok(Ok(_)) => {}
    }
    let protocol = match protocol.map_or_else(|| Protocol::of_first(first[0]), Ok) {
        Ok(protocol) => protocol,
        Err(error) => return End::Frame(error),
    };
    if let Err(refusal) = slot.settle(protocol) {
        return End::NoSlot(refusal);
    }
    match protocol {
        Protocol::Http => {
            let (read, write) = tokio::io::split(stream);
            let read = AsyncReadExt::chain(std::io::Cursor::new(first), read);
            http::connection((read, write), peer, slot, shared).await;
            End::Peer
        }
        Protocol::Forward => forward::serve(stream, first, peer, false, shared).await,
        _ => {
            let input = Input::new(stream, first, peer.origin(), shared);
            frames(input, protocol, peer, shared).await.map_or_else(|end| end, |()| End::Peer)
        }
    }
}

/// Reads frames of one record each.
async fn frames<R: AsyncRead + Unpin>(
    mut input: Input<R>,
    protocol: Protocol,
    peer: &Peer,
    shared: &Shared,
) -> Result<(), End> {
    let Some(mut framer) = Framer::new(protocol, shared.limits.frame_bytes) else { return Ok(()) };
    let mut reader = Reader::new(protocol, peer.clone(), &shared.intake.metrics);
    loop {
        reader.arrive();
        let taken = take_frames(&mut input, &mut framer, &mut reader, &shared.intake).await;
        match taken {
            Ok(Taken::All) => {}
            Ok(Taken::Some) => continue,
            Err(error) => return Err(End::Frame(error)),
        }
        let burst = framer.ends_in_silence(&input.buffer).then_some(BURST);
        let (ended, end) = match input.more(burst).await {
            Ok(More::Came) => continue,
            Ok(More::Silence) => (Ended::Burst, Ok(())),
            Ok(More::Ended) => (Ended::Stream, Ok(())),
            // What has come is kept as well: many close TLS without a word, with their last line before it.
            Err(end) => (Ended::Stream, Err(end)),
        };
        let rest = framer.rest(&input.buffer, ended);
        let is_cut = ended == Ended::Stream && rest.is_none() && !input.buffer.is_empty();
        if rest.is_some() || is_cut {
            let bytes = input.buffer.len();
            let room = shared.intake.room_to_decode(peer.origin(), bytes, bytes).await;
            if let Some(Step::Frame { from, to, next }) = rest {
                reader.arrive();
                reader.read(&input.buffer[from..to]);
                input.advance(next);
            }
            if is_cut {
                reader.reject(&input.buffer, "the connection ended before the frame did");
            }
            shared.intake.leave(reader.take(), room).await;
        }
        if ended == Ended::Stream {
            return end;
        }
    }
}

/// How much of the bytes that had come was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// All complete frames.
    All,
    /// As many frames as there was room and time for; others may follow.
    Some,
}

/// Decodes the frames that have come, as far as the room that is reserved for them and their turn last, and hands them
/// over.
async fn take_frames<R>(
    input: &mut Input<R>,
    framer: &mut Framer,
    reader: &mut Reader<'_>,
    intake: &Intake,
) -> Result<Taken, FrameError> {
    let mut step = framer.step(&input.buffer);
    if step == Ok(Step::Incomplete) {
        return Ok(Taken::All);
    }
    let bytes = input.buffer.len();
    let room = intake.room_to_decode(reader.origin(), bytes, bytes).await;
    let turn = intake.budget.turn(reader.origin(), bytes).await;
    let began = Instant::now();
    let (mut at, mut frames) = (0, 0_usize);
    let taken = loop {
        let rest = &input.buffer[at..];
        match step {
            Ok(Step::Frame { from, to, next }) => {
                reader.read(&rest[from..to]);
                at += next;
            }
            Ok(Step::Incomplete) => break Ok(Taken::All),
            Err(error) => {
                reader.reject(rest, &error.to_string());
                break Err(error);
            }
        }
        // A buffer that grows doubles, so it has up to twice the bytes in use.
        frames += 1;
        let is_over = frames % LOOK_EACH == 0 && began.elapsed() > TURN_TIME;
        if is_over || !room.holds(2 * reader.used_bytes()) {
            break Ok(Taken::Some);
        }
        step = framer.step(&input.buffer[at..]);
    };
    drop(turn);
    input.advance(at);
    intake.leave(reader.take(), room).await;
    taken
}

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
                1 => (LARGE_READ + frame, frame * (forward::FRAMES - 1)),
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

/// Waits for the end of the service.
pub async fn ended(stop: &mut Stop) {
    // An error says that nobody can end it any more: it has ended.
    drop(stop.wait_for(Option::is_some).await);
}

/// Waits until then; for ever without a time.
pub async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
