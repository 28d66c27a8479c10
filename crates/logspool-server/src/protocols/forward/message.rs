//! Hands over one Forward message: reserves memory for its records, decodes them, and submits them to the stores.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::chunks::ConnectionChunks;
use crate::budget::Reservation;
use crate::connection::acks::PendingAck;
use crate::connection::frame_reader::FrameReader;
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::decoders::forward::{
    self, ChunkId, DamagedEntry, ForwardError, ForwardProblem, LongMessage, Message, ReadProgress, RecordFlow,
};
use crate::delivery::{Chunk, MAX_STREAM_BYTES};
use crate::peer::Peer;
use crate::warnings;

/// Number of bytes of encoded entries for which memory is reserved at first. More memory is reserved while the entries
/// are decoded. Chosen: the reserved memory is then 1 MiB, enough for some 2,000 records.
const RESERVED_INPUT: usize = 32 * 1024;

/// Maximum time for which a message is decoded before another task gets its turn. Chosen: ten times the cost of
/// changing turns.
const TURN_TIME: Duration = Duration::from_millis(1);

/// Maximum memory for the records of one part of a message, in bytes.
///
/// Chosen: the records of a chunk from logspool's own client take less memory, so they are handed over as one part.
const PART_BYTES: usize = 8 << 20;

/// Number of records that are decoded between two checks of the clock.
const RECORDS_PER_CLOCK_CHECK: usize = 32;

/// Size of the buffer for the decompressed bytes of a message. If an entry is longer than the buffer, the message is
/// decompressed again with a larger buffer.
const BUFFER_BYTES: usize = 256 * 1024;

thread_local! {
    /// The buffer for decompressed entries. The next message on this thread reuses it.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Reads a message and hands over its records. If the message cannot be read, it becomes a record with the reason and
/// all its bytes. Then it is acknowledged too, because a retry would fail in the same way.
pub async fn deliver(
    frame: &[u8],
    chunks: &mut ConnectionChunks,
    reader: &mut FrameReader<'_>,
    shared: &SharedState,
    waiting: &mpsc::Sender<PendingAck>,
) -> Result<(), ConnectionEnd> {
    let limits = chunks.limits;
    let message = forward::read(frame, &limits);
    let known = message.as_ref().ok().cloned().or_else(|| forward::read_id(frame, &limits));
    let numbers = known.as_ref().and_then(|message| RemainingNumbers::of(message, &chunks.peer));
    let answer = known.as_ref().and_then(Message::ack).map_or(MessageAnswer::None, MessageAnswer::Ack);
    let mut delivery = MessageDelivery { frame, chunks, shared, waiting, numbers, answer, is_compressed: false };
    match message {
        Ok(message) => {
            if message.is_compressed() {
                // The entries may be read again with a larger buffer. Earlier records must be handed over by then.
                reader.store_open_lines(&shared.intake).await;
            }
            delivery.is_compressed = message.is_compressed();
            let mut buffer = BUFFER.take();
            let handed_over = delivery.records(&message, &mut buffer, reader).await;
            if buffer.capacity() <= BUFFER_BYTES {
                BUFFER.set(buffer);
            }
            handed_over
        }
        Err(error) => {
            let room = delivery.room(reader, frame.len()).await;
            delivery.fail(reader, &error.to_string(), known.and_then(|message| message.size), room).await
        }
    }
}

/// Hands over a piece of a long message. Its ack follows the last piece.
pub async fn deliver_entries(
    piece: &[u8],
    long: &LongMessage,
    chunks: &mut ConnectionChunks,
    reader: &mut FrameReader<'_>,
    shared: &SharedState,
    waiting: &mpsc::Sender<PendingAck>,
) -> Result<(), ConnectionEnd> {
    let limits = chunks.limits;
    let message = long.message(piece, &limits);
    let answer = MessageAnswer::Later;
    let mut delivery =
        MessageDelivery { frame: piece, chunks, shared, waiting, numbers: None, answer, is_compressed: false };
    delivery.records(&message, &mut Vec::new(), reader).await
}

/// Whether the sender of a message gets an ack.
enum MessageAnswer {
    /// It wants none.
    None,
    /// It gets one after a later piece of the message.
    Later,
    /// It gets this one.
    Ack(Vec<u8>),
}

/// A message whose records are being handed over.
struct MessageDelivery<'a> {
    frame: &'a [u8],
    chunks: &'a mut ConnectionChunks,
    shared: &'a SharedState,
    waiting: &'a mpsc::Sender<PendingAck>,
    /// The numbers of the records that are not handed over yet; `None` if the sender does not number records.
    numbers: Option<RemainingNumbers>,
    /// The ack for the sender.
    answer: MessageAnswer,
    is_compressed: bool,
}

impl MessageDelivery<'_> {
    async fn records(
        &mut self,
        message: &Message<'_>,
        buffer: &mut Vec<u8>,
        reader: &mut FrameReader<'_>,
    ) -> Result<(), ConnectionEnd> {
        let shared = self.shared;
        let budget = &shared.intake.budget;
        // A few compressed bytes may expand to many bytes, so take the size of the whole buffer.
        let input = if message.is_compressed() { BUFFER_BYTES } else { self.frame.len() };
        let most = self.chunks.limits.expanded_entry;
        // Number of records that were handed over in earlier parts.
        let mut done = 0;
        for most_buffer in [BUFFER_BYTES.min(most), most] {
            let _inflating = match message.is_compressed() {
                true => Some(budget.for_inflating(reader.origin(), most_buffer + message.inflater_bytes()).await),
                false => None,
            };
            let mut records = message.records(buffer, most_buffer, done);
            loop {
                let mut room = self.room(reader, input.min(RESERVED_INPUT)).await;
                let (step, mut count) = (room.bytes(), 0);
                let read = loop {
                    let turn = budget.decode_turn(reader.origin(), input).await;
                    let began = Instant::now();
                    let mut is_over = false;
                    let read = records.read(|record| {
                        reader.push(record);
                        count += 1;
                        is_over = turn.is_some() && count % RECORDS_PER_CLOCK_CHECK == 0 && began.elapsed() > TURN_TIME;
                        if !is_over && has_room(reader.used_bytes(), &mut room, step) {
                            RecordFlow::Continue
                        } else {
                            RecordFlow::Pause
                        }
                    });
                    if !(is_over && read.as_ref().is_ok_and(|read| *read == ReadProgress::Paused)) {
                        break read;
                    }
                };
                match read {
                    Ok(ReadProgress::Paused) => {
                        done += count;
                        if !self.part(reader, count as u64, room).await? {
                            return Ok(());
                        }
                    }
                    Ok(ReadProgress::Damaged) => {
                        if let Some(DamagedEntry { bytes, error }) = records.damaged() {
                            reader.reject(&bytes, &error.to_string());
                            done += 1;
                        }
                        done += count;
                        if !self.part(reader, count as u64, room).await? {
                            return Ok(());
                        }
                    }
                    Ok(ReadProgress::Done) => return self.last(reader, Some(count as u64), room).await,
                    Err(ForwardError { problem: ForwardProblem::LongEntry(_), .. }) if most_buffer < most => {
                        reader.discard();
                        break;
                    }
                    Err(error) => {
                        if matches!(error.problem, ForwardProblem::TooDense(..)) {
                            shared.intake.metrics.drop_records("too_dense", reader.discard());
                            count = 0;
                        }
                        let left = message.size.map(|size| size.saturating_sub((done + count) as u64));
                        return self.fail(reader, &error.to_string(), left, room).await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reserves memory for the records in `input_bytes` encoded bytes, and waits until it is available. A sender
    /// without acks will not send the message again. So its bytes count as undecoded while this function waits.
    async fn room(&self, reader: &FrameReader<'_>, input_bytes: usize) -> Reservation {
        let kept_by_us = if matches!(self.answer, MessageAnswer::None) { self.frame.len() } else { 0 };
        self.shared.intake.room_to_decode(reader.origin(), input_bytes, kept_by_us).await
    }

    /// Hands over a part with `records` records; more records of the message follow. Returns false if the message has
    /// more records than its chunk id says. Then the records of this part and all later ones are dropped.
    async fn part(
        &mut self,
        reader: &mut FrameReader<'_>,
        records: u64,
        room: Reservation,
    ) -> Result<bool, ConnectionEnd> {
        let chunk = match &mut self.numbers {
            None => None,
            Some(numbers) => match numbers.part(records) {
                Some(chunk) => Some(chunk),
                None => {
                    self.shared.intake.metrics.drop_records("unnumbered", reader.discard());
                    self.fail(reader, "it contains more records than its chunk id says", None, room).await?;
                    return Ok(false);
                }
            },
        };
        self.submit(reader, chunk, PartPosition::Inner, room).await?;
        Ok(true)
    }

    /// Hands over the last part, with `records` records. `None`: the number of records in the message is unknown.
    async fn last(
        &mut self,
        reader: &mut FrameReader<'_>,
        records: Option<u64>,
        room: Reservation,
    ) -> Result<(), ConnectionEnd> {
        let chunk = self.numbers.take().and_then(|numbers| numbers.rest(records));
        self.submit(reader, chunk, PartPosition::Last, room).await
    }

    /// Hands over the records that were decoded before an error, and a record with the reason `why` and the whole
    /// message. `left` is the number of records that were not decoded.
    async fn fail(
        &mut self,
        reader: &mut FrameReader<'_>,
        why: &str,
        left: Option<u64>,
        room: Reservation,
    ) -> Result<(), ConnectionEnd> {
        reader.reject_records(self.frame, why, left);
        self.last(reader, None, room).await
    }

    async fn submit(
        &mut self,
        reader: &mut FrameReader<'_>,
        chunk: Option<Chunk>,
        has: PartPosition,
        room: Reservation,
    ) -> Result<(), ConnectionEnd> {
        let intake = &self.shared.intake;
        let numbered = chunk.map(|chunk| self.chunks.number(chunk, self.shared)).transpose()?;
        // The ack promises that all records are stored. So the parts of a line that goes on in the next message are
        // stored as they are.
        let is_acked = has == PartPosition::Last && matches!(self.answer, MessageAnswer::Ack(_));
        let batch = if is_acked || self.is_compressed { reader.take() } else { reader.take_open(&intake.budget) };
        if matches!(self.answer, MessageAnswer::None) {
            intake.submit_unacked(batch, room).await;
            return Ok(());
        }
        let room = intake.resize(room, &batch).await;
        let outcome = intake.submit(batch, numbered, room);
        let ack = match &mut self.answer {
            MessageAnswer::Ack(ack) if has == PartPosition::Last => Some(std::mem::take(ack)),
            _ => None,
        };
        self.waiting.send(PendingAck { ack, outcome }).await.map_err(|_| ConnectionEnd::Refused)
    }
}

/// Says whether more parts of the message follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartPosition {
    Inner,
    Last,
}

/// True if another record may be decoded for the current part. Its `used` bytes must fit into the reservation. If they
/// do not and the part is not full, the reservation must be able to grow by `step` bytes without waiting.
fn has_room(used: usize, room: &mut Reservation, step: usize) -> bool {
    // A growing buffer doubles its size, so it may take twice as many bytes as are in use.
    let needed = 2 * used;
    room.fits(needed) || (needed <= PART_BYTES && room.try_grow(step))
}

/// The stream numbers of the records of a message that are not handed over yet.
struct RemainingNumbers {
    rest: Chunk,
    is_whole: bool,
}

impl RemainingNumbers {
    /// Returns the numbers of all records of a message. `None`: its sender does not number records, or the name of its
    /// stream is too long.
    fn of(message: &Message<'_>, peer: &Peer) -> Option<Self> {
        let ChunkId { stream, epoch, first, last } = ChunkId::parse(message.chunk.as_deref()?)?;
        if stream.len() > MAX_STREAM_BYTES {
            warnings::warn("long_stream_name", Some(peer), || {
                format!(
                    "a stream has a name of {} bytes, more than {MAX_STREAM_BYTES}: records that are sent again are \
                     stored again",
                    stream.len()
                )
            });
            return None;
        }
        let stream = stream.to_owned();
        let rest = Chunk { stream, epoch, first, last, end: message.end };
        Some(Self { rest, is_whole: true })
    }

    /// Returns the chunk for the next `records` records; more records must follow. `None`: too few numbers are left for
    /// this.
    fn part(&mut self, records: u64) -> Option<Chunk> {
        let next = self.rest.first.checked_add(records).filter(|next| *next <= self.rest.last)?;
        let part = Chunk { last: next - 1, end: false, ..self.rest.clone() };
        self.rest.first = next;
        self.is_whole = false;
        Some(part)
    }

    /// Returns the chunk for the last records. `None`: the numbers do not match the number of records, so the message
    /// is not part of a stream. If the number of records is unknown, or an earlier part was handed over, the remaining
    /// numbers are used without this check.
    fn rest(self, records: Option<u64>) -> Option<Chunk> {
        let Self { rest, is_whole } = self;
        let fits = |records: u64| rest.last - (rest.first - 1) == records;
        (!is_whole || records.is_none_or(fits)).then_some(rest)
    }
}
