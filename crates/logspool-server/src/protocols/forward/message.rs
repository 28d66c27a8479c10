//! Hands over one Forward message: its records get room, are decoded, and go to the stores.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::chunks::Chunks;
use crate::budget::Room;
use crate::decoders::forward::{self, ChunkId, ForwardError, ForwardProblem, Message, Next, Progress};
use crate::delivery::{Chunk, ChunkPlace};
use crate::sources::acks::Waiting;
use crate::sources::reading::Reader;
use crate::sources::shared::{End, Shared};

/// Bytes of entries for which memory is reserved at a time; more is reserved as they are decoded. Chosen: the memory is
/// 1 MiB, enough for some 2,000 records.
const RESERVED_INPUT: usize = 32 * 1024;

/// How long a message is decoded before another task gets its turn. Chosen: ten times the cost of changing turns.
const TURN_TIME: Duration = Duration::from_millis(1);

/// Maximum memory for the records of one part.
///
/// Chosen: the records of a chunk from logspool's own client take less, so they are handed over as one part.
const PART_BYTES: usize = 8 << 20;

/// Records between two checks of the clock.
const LOOK_EACH: usize = 32;

/// Decompressed bytes of a message that are in memory at a time. If an entry is longer, the message is decompressed
/// again with a larger buffer.
const BUFFER_BYTES: usize = 256 * 1024;

/// Memory of a decompressor without its buffer: a window of 32 KiB and tables.
const INFLATER_BYTES: usize = 64 * 1024;

thread_local! {
    /// A buffer for decompressed entries, reused by the next message.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Reads a message and hands over its records. If it cannot be read, it becomes a record with the reason. Such a
/// message is acknowledged too, because a retry would fail in the same way.
pub async fn hand_over(
    frame: &[u8],
    chunks: &mut Chunks,
    reader: &mut Reader<'_>,
    shared: &Shared,
    waiting: &mpsc::Sender<Waiting>,
) -> Result<(), End> {
    let limits = chunks.limits;
    let message = forward::read(frame, &limits);
    let known = message.as_ref().ok().cloned().or_else(|| forward::read_id(frame, &limits));
    let numbers = known.as_ref().and_then(Numbers::of);
    let ack = known.as_ref().and_then(Message::ack);
    let mut delivery = MessageDelivery { frame, chunks, shared, waiting, numbers, ack };
    match message {
        Ok(message) => {
            let mut buffer = BUFFER.take();
            let handed_over = delivery.records(&message, &mut buffer, reader).await;
            if buffer.capacity() <= BUFFER_BYTES {
                BUFFER.set(buffer);
            }
            handed_over
        }
        Err(error) => {
            let room = delivery.room(reader, frame.len()).await;
            delivery.fail(reader, &error.to_string(), room).await
        }
    }
}

/// A message whose records are being handed over.
struct MessageDelivery<'a> {
    frame: &'a [u8],
    chunks: &'a mut Chunks,
    shared: &'a Shared,
    waiting: &'a mpsc::Sender<Waiting>,
    /// The numbers of the records that are not handed over yet.
    numbers: Option<Numbers>,
    /// The ack for the sender.
    ack: Option<Vec<u8>>,
}

impl MessageDelivery<'_> {
    async fn records(
        &mut self,
        message: &Message<'_>,
        buffer: &mut Vec<u8>,
        reader: &mut Reader<'_>,
    ) -> Result<(), End> {
        let shared = self.shared;
        let budget = &shared.intake.budget;
        // A few compressed bytes may expand to many.
        let input = if message.is_compressed() { BUFFER_BYTES } else { self.frame.len() };
        let most = self.chunks.limits.expanded;
        // Number of records in the parts that are handed over.
        let mut done = 0;
        for most_buffer in [BUFFER_BYTES.min(most), most] {
            let _inflating = match message.is_compressed() {
                true => Some(budget.for_inflating(reader.origin(), most_buffer + INFLATER_BYTES).await),
                false => None,
            };
            let mut records = message.records(buffer, most_buffer, done);
            loop {
                let mut room = self.room(reader, input.min(RESERVED_INPUT)).await;
                let (step, mut count) = (room.bytes(), 0);
                let read = loop {
                    let turn = budget.turn(reader.origin(), input).await;
                    let began = Instant::now();
                    let mut is_over = false;
                    let read = records.read(|record| {
                        reader.push(record);
                        count += 1;
                        is_over = turn.is_some() && count % LOOK_EACH == 0 && began.elapsed() > TURN_TIME;
                        if !is_over && has_room(reader.used_bytes(), &mut room, step) {
                            Next::More
                        } else {
                            Next::Pause
                        }
                    });
                    if !(is_over && read.as_ref().is_ok_and(|read| *read == Progress::Paused)) {
                        break read;
                    }
                };
                match read {
                    Ok(Progress::Paused) => {
                        done += count;
                        if !self.part(reader, count as u64, room).await? {
                            return Ok(());
                        }
                    }
                    Ok(Progress::Done) => return self.last(reader, Some(count as u64), room).await,
                    Err(ForwardError { problem: ForwardProblem::LongEntry(_), .. }) if most_buffer < most => {
                        reader.discard();
                        break;
                    }
                    Err(error) => {
                        if matches!(error.problem, ForwardProblem::TooDense(..)) {
                            shared.intake.metrics.drop_records("too_dense", reader.discard());
                        }
                        return self.fail(reader, &error.to_string(), room).await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for room for the records in `input_bytes` bytes. A sender without acks will not send the message again, so
    /// its bytes count as undecoded meanwhile.
    async fn room(&self, reader: &Reader<'_>, input_bytes: usize) -> Room {
        let kept_by_us = if self.ack.is_none() { self.frame.len() } else { 0 };
        self.shared.intake.room_to_decode(reader.origin(), input_bytes, kept_by_us).await
    }

    /// Hands over this number of records; more of the message follow. Returns false if the message has more records
    /// than its id says. The rest is dropped then.
    async fn part(&mut self, reader: &mut Reader<'_>, records: u64, room: Room) -> Result<bool, End> {
        let chunk = match &mut self.numbers {
            None => None,
            Some(numbers) => match numbers.part(records) {
                Some(chunk) => Some(chunk),
                None => {
                    self.shared.intake.metrics.drop_records("unnumbered", reader.discard());
                    self.fail(reader, "it holds more records than its chunk id says", room).await?;
                    return Ok(false);
                }
            },
        };
        self.submit(reader, chunk, Has::More, room).await?;
        Ok(true)
    }

    /// Hands over the last records. `None`: the number of records in the message is unknown.
    async fn last(&mut self, reader: &mut Reader<'_>, records: Option<u64>, room: Room) -> Result<(), End> {
        let chunk = self.numbers.take().and_then(|numbers| numbers.rest(records));
        self.submit(reader, chunk, Has::Ended, room).await
    }

    /// Hands over the records before the error, and a record with the reason.
    async fn fail(&mut self, reader: &mut Reader<'_>, why: &str, room: Room) -> Result<(), End> {
        reader.reject(self.frame, why);
        self.last(reader, None, room).await
    }

    async fn submit(&mut self, reader: &mut Reader<'_>, chunk: Option<Chunk>, has: Has, room: Room) -> Result<(), End> {
        let intake = &self.shared.intake;
        let numbered = chunk.map(|chunk| self.chunks.place(chunk, self.shared)).transpose()?;
        let batch = reader.take();
        if self.ack.is_none() {
            intake.leave(batch, room).await;
            return Ok(());
        }
        let room = intake.fit(room, &batch).await;
        let outcome = intake.submit(batch, numbered, room);
        let ack = if has == Has::Ended { self.ack.take() } else { None };
        self.waiting.send(Waiting { ack, outcome }).await.map_err(|_| End::Refused)
    }
}

/// True if more records of a message follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    More,
    Ended,
}

/// True if another record may be decoded now: its part is not full, and there is room or `step` more bytes are
/// available at once.
fn has_room(used: usize, room: &mut Room, step: usize) -> bool {
    // A growing buffer doubles, so it may take twice the bytes in use.
    let needed = 2 * used;
    room.holds(needed) || (needed <= PART_BYTES && room.try_grow(step))
}

/// The numbers in their stream of the records that are not handed over yet.
struct Numbers {
    rest: Chunk,
    is_whole: bool,
}

impl Numbers {
    /// The numbers of a message, if its sender numbers records.
    fn of(message: &Message<'_>) -> Option<Self> {
        let ChunkId { stream, epoch, first, last } = ChunkId::parse(message.chunk.as_deref()?)?;
        let stream = stream.to_owned();
        let rest = Chunk { stream, epoch, first, last, place: ChunkPlace::Opening, end: message.end };
        Some(Self { rest, is_whole: true })
    }

    /// The chunk for the next records, if more follow. `None`: fewer numbers are left.
    fn part(&mut self, records: u64) -> Option<Chunk> {
        let next = self.rest.first.checked_add(records).filter(|next| *next <= self.rest.last)?;
        let part = Chunk { last: next - 1, end: false, ..self.rest.clone() };
        self.rest.first = next;
        self.is_whole = false;
        Some(part)
    }

    /// The chunk for the last records. `None`: the numbers do not match the records, so the message is not part of a
    /// stream. If the number of records is unknown, or some are stored already, the numbers are used as they are.
    fn rest(self, records: Option<u64>) -> Option<Chunk> {
        let Self { rest, is_whole } = self;
        let fits = |records: u64| rest.last - (rest.first - 1) == records;
        (!is_whole || records.is_none_or(fits)).then_some(rest)
    }
}
