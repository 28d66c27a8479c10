//! Serves a connection with Fluent Forward. The service receives chunks, and sends an ack for a chunk when every store
//! has committed it.
//!
//! The service reads more chunks while earlier ones are being stored. Acks are sent in the order of the chunks. Late
//! acks slow down the sender. A refused chunk (see `stores::mark`) gets no ack, and the connection is closed.
//! A chunk that can never be stored gets an ack with the reason.
//!
//! Memory for records is reserved before they are decoded. If there is not enough memory for all records of a message,
//! the message is handed over in parts. Each part is handed over as soon as it has a reservation. The message is
//! acknowledged when all its parts are committed (see `message.rs`).

mod chunks;
mod long;
mod message;

use std::collections::HashMap;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::chunks::ConnectionChunks;
use crate::connection::acks::{self, PendingAck};
use crate::connection::admission::TrafficKind;
use crate::connection::frame_reader::FrameReader;
use crate::connection::framing::FrameError;
use crate::connection::input::{Input, MAX_MESSAGE_FRAMES, ReadOutcome};
use crate::connection::key::ForwardKey;
use crate::connection::line_joiner::MAX_WAIT;
use crate::connection::protocol::{Connection, ConnectionKind, Protocol};
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::decoders::forward::handshake::{HandshakeAnswer, HandshakeServer};
use crate::decoders::forward::{self, ScannedFrame, Scanner};

/// Maximum size of a handshake message in bytes.
const PING_BYTES: usize = 64 * 1024;

/// The declaration of Fluent Forward; see the module documentation.
pub const FORWARD: Protocol = Protocol {
    name: "forward",
    senders: "logspool's own client, Fluentd, Fluent Bit, Docker",
    // The first bytes of a MessagePack array. Fluentd's clients may send nil between messages, to see whether the
    // connection is open.
    first_bytes: &[(0x92, 0x94), (NIL, NIL), (0xDC, 0xDD)],
    tie_breaker: None,
    datagrams: None,
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Session {
        // A server that requires a shared key sends its challenge before the sender sends anything.
        sends_first: |shared| shared.shared_key.is_some(),
        serve: |connection| Box::pin(serve(connection)),
    },
};

/// The value nil of MessagePack. No message begins with it.
const NIL: u8 = 0xC0;

async fn serve(connection: Connection<'_>) -> ConnectionEnd {
    let Connection { protocol, stream, first, peer, shared, .. } = connection;
    let asks_for_key = first.is_empty();
    let (read, mut write) = tokio::io::split(stream);
    let mut input = Input::new(read, first, peer.origin(), shared);
    let limits = forward::ForwardLimits {
        frame: shared.limits.frame_bytes.saturating_mul(MAX_MESSAGE_FRAMES),
        ..Default::default()
    };
    if let (true, Some(key)) = (asks_for_key, &shared.shared_key) {
        let shaken = timeout(shared.limits.header_time(), shake_hands(&mut input, &mut write, key)).await;
        match shaken {
            Err(_) => return ConnectionEnd::Slow("header_seconds"),
            Ok(Err(end)) => return end,
            Ok(Ok(())) => {}
        }
    }
    let (waiting, receiver) = mpsc::channel(acks::MAX_PENDING_ACKS);
    let acking = tokio::spawn(acks::acknowledge(receiver, write, shared.limits.frame_time(), forward::dropped_ack));
    let mut chunks = ConnectionChunks { streams: HashMap::new(), room: None, peer: peer.clone(), limits };
    let mut reader = FrameReader::new(protocol, peer.clone(), &shared.intake.metrics);
    let ended = chunks.read(&mut input, &mut reader, shared, &waiting).await;
    reader.store_open_lines(&shared.intake).await;
    // Free the reservation for a large incomplete frame now, because the last acks may take long.
    drop(input);
    drop(waiting);
    match (acking.await, ended) {
        (Ok(Err(end)), _) | (_, Err(end)) => end,
        _ => ConnectionEnd::Peer,
    }
}

impl ConnectionChunks {
    async fn read<R: AsyncRead + Unpin>(
        &mut self,
        input: &mut Input<R>,
        reader: &mut FrameReader<'_>,
        shared: &SharedState,
        waiting: &mpsc::Sender<PendingAck>,
    ) -> Result<(), ConnectionEnd> {
        let mut scanner = Scanner::default();
        loop {
            reader.mark_arrival();
            while let Some(first) = input.buffer.first() {
                if *first == NIL {
                    input.advance(1);
                    continue;
                }
                let length = match scanner.frame(&input.buffer, &self.limits) {
                    Ok(ScannedFrame::Complete { length }) => length,
                    Ok(ScannedFrame::Incomplete) => break,
                    Err(error) => {
                        scanner = Scanner::default();
                        if long::receive(input, self, reader, shared, waiting).await? {
                            continue;
                        }
                        reader.reject(&input.buffer, &error.to_string());
                        let bytes = input.buffer.len();
                        let room = shared.intake.room_to_decode(reader.origin(), bytes, bytes).await;
                        shared.intake.submit_unacked(reader.take(), room).await;
                        return Err(ConnectionEnd::Frame(FrameError::Malformed("forward")));
                    }
                };
                reader.count_frame();
                message::deliver(&input.buffer[..length], self, reader, shared, waiting).await?;
                input.advance(length);
            }
            let pause = reader.has_open_lines().then_some(MAX_WAIT);
            let more = tokio::select! {
                more = input.read_more(pause) => more?,
                () = waiting.closed() => return Err(ConnectionEnd::Refused),
            };
            match more {
                ReadOutcome::Received => {}
                ReadOutcome::Silent => reader.store_open_lines(&shared.intake).await,
                ReadOutcome::Ended => return Ok(()),
            }
        }
    }
}

/// The server side of a handshake with a shared key.
async fn shake_hands<R, W>(input: &mut Input<R>, write: &mut W, key: &ForwardKey) -> Result<(), ConnectionEnd>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let server = HandshakeServer { hostname: &key.hostname, shared_key: &key.shared_key, users: &[] };
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| ConnectionEnd::Key(format!("cannot get random numbers for the handshake: {error}")))?;
    let challenge = server.challenge(random);
    write.write_all(&challenge.helo()).await?;
    write.flush().await?;
    let limits = forward::ForwardLimits { frame: PING_BYTES, ..Default::default() };
    let mut scanner = Scanner::default();
    let length = loop {
        match scanner.frame(&input.buffer, &limits) {
            Ok(ScannedFrame::Complete { length }) => break length,
            Ok(ScannedFrame::Incomplete) => {}
            Err(error) => return Err(ConnectionEnd::Key(error.to_string())),
        }
        if input.read_more(None).await? != ReadOutcome::Received {
            return Err(ConnectionEnd::Peer);
        }
    };
    let answer =
        server.answer(&challenge, &input.buffer[..length]).map_err(|error| ConnectionEnd::Key(error.to_string()))?;
    input.advance(length);
    match answer {
        HandshakeAnswer::Welcome(pong) => {
            write.write_all(&pong).await?;
            Ok(write.flush().await?)
        }
        HandshakeAnswer::Refused(pong) => {
            write.write_all(&pong).await?;
            write.flush().await?;
            Err(ConnectionEnd::Key("the peer has another shared key".to_owned()))
        }
    }
}
