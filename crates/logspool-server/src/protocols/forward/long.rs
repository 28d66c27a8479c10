//! Receives a message that is too long to be kept as a whole, or that is damaged, and hands over its entries while it
//! arrives.

use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use super::chunks::ConnectionChunks;
use super::message::deliver_entries;
use crate::connection::acks::PendingAck;
use crate::connection::frame_reader::FrameReader;
use crate::connection::framing::FrameError;
use crate::connection::input::{Input, ReadOutcome};
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::decoders::forward::{LongMessage, MessageEnd};
use crate::decoders::stream_inflater::INFLATER_BYTES;

/// Maximum bytes of the options of a message.
const OPTIONS_BYTES: usize = 64 * 1024;

/// Receives the message at the start of the buffer. Its ack is sent when all records are stored. Returns false if the
/// message has no entries that can be read alone.
pub async fn receive<R: AsyncRead + Unpin>(
    input: &mut Input<R>,
    chunks: &mut ConnectionChunks,
    reader: &mut FrameReader<'_>,
    shared: &SharedState,
    waiting: &mpsc::Sender<PendingAck>,
) -> Result<bool, ConnectionEnd> {
    let frame = shared.limits.frame_bytes;
    let Some((mut long, begin)) = LongMessage::begin(&input.buffer, frame, &chunks.limits) else { return Ok(false) };
    reader.count_frame();
    let _room = shared.intake.budget.for_inflating(reader.origin(), frame + INFLATER_BYTES).await;
    input.advance(begin);
    loop {
        let taken = long.feed(&input.buffer);
        let mut has_piece = false;
        if let Some(error) = long.problem() {
            has_piece = true;
            let entries = long.rest();
            deliver_entries(&entries, &long, chunks, reader, shared, waiting).await?;
            // The compressed bytes that are left follow.
            reader.reject(b"", &format!("cannot decompress the entries of the Forward message: {error}"));
        }
        input.advance(taken);
        while let Some(piece) = long.piece() {
            has_piece = true;
            if long.has_failed() {
                reader.reject(&piece, "it follows entries of a Forward message that cannot be decompressed");
            }
            let entries = if long.has_failed() { &[] } else { &*piece };
            deliver_entries(entries, &long, chunks, reader, shared, waiting).await?;
        }
        if long.has_ended() {
            break;
        }
        if taken == 0 && !has_piece {
            let more = tokio::select! {
                more = input.read_more(None) => more,
                () = waiting.closed() => Err(ConnectionEnd::Refused),
            };
            if !matches!(more, Ok(ReadOutcome::Received)) {
                // The sender sends the message again, because it got no ack.
                let rest = [&*long.rest(), &*input.buffer].concat();
                reader.reject(&rest, "the connection ended before the Forward message did");
                deliver_entries(&[], &long, chunks, reader, shared, waiting).await?;
                return more.map(|_| true);
            }
        }
    }
    let ack = loop {
        match long.end(&input.buffer) {
            Ok(Some(MessageEnd { ack, length })) => {
                input.advance(length);
                break ack;
            }
            Ok(None) if input.buffer.len() < OPTIONS_BYTES => {
                if input.read_more(None).await? != ReadOutcome::Received {
                    return Ok(true);
                }
            }
            _ => return Err(ConnectionEnd::Frame(FrameError::Malformed("forward"))),
        }
    };
    let batch = reader.take();
    let room = shared.intake.room_for(reader.origin(), &batch).await;
    let outcome = shared.intake.submit(batch, None, room);
    waiting.send(PendingAck { ack, outcome }).await.map_err(|_| ConnectionEnd::Refused)?;
    Ok(true)
}
