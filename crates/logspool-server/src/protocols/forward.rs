//! A connection with Fluent Forward: it receives chunks, and sends an ack when every store has committed the chunk.
//!
//! More chunks are read while earlier ones are being stored. Acks are sent in the order of the chunks. Late acks slow
//! down the sender. A refused chunk (see `stores::watermark`) gets no ack: the connection is closed.
//!
//! Room for records is reserved before they are decoded. If there is not enough room for all records of a message, it
//! is handed over in parts, each as soon as it has room. It is acknowledged when all parts are committed
//! (`message.rs`).

mod chunks;
mod message;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::chunks::Chunks;
use crate::decoders::forward::handshake::{Answer, Server};
use crate::decoders::forward::{self, Frame, Scanner};
use crate::protocol::{Connection, Protocol, Speech};
use crate::sources::acks::{self, Waiting};
use crate::sources::admission::Door;
use crate::sources::framing::FrameError;
use crate::sources::input::{FRAMES, Input, More};
use crate::sources::key::Key;
use crate::sources::reading::Reader;
use crate::sources::shared::{End, Shared};

/// Maximum size of a handshake message in bytes.
const PING_BYTES: usize = 64 * 1024;

/// See the file head.
pub const FORWARD: Protocol = Protocol {
    name: "forward",
    senders: "logspool's own client, Fluentd, Fluent Bit, Docker",
    // A MessagePack array.
    begins: &[(0x92, 0x94), (0xDC, 0xDD)],
    tie: None,
    datagrams: None,
    door: Door::Records,
    speech: Speech::Conversation {
        // A server that asks for a key sends its challenge first.
        speaks_first: |shared| shared.shared_key.is_some(),
        serve: |connection| Box::pin(serve(connection)),
    },
};

async fn serve(connection: Connection<'_>) -> End {
    let Connection { protocol, stream, first, peer, shared, .. } = connection;
    let asks_for_key = first.is_empty();
    let (read, mut write) = tokio::io::split(stream);
    let mut input = Input::new(read, first, peer.origin(), shared);
    let limits = forward::Limits { frame: shared.limits.frame_bytes.saturating_mul(FRAMES), ..Default::default() };
    if let (true, Some(key)) = (asks_for_key, &shared.shared_key) {
        let shaken = timeout(shared.limits.header_time(), shake_hands(&mut input, &mut write, key)).await;
        match shaken {
            Err(_) => return End::Slow("header_seconds"),
            Ok(Err(end)) => return end,
            Ok(Ok(())) => {}
        }
    }
    let (waiting, receiver) = mpsc::channel(acks::WAITING);
    let acking = tokio::spawn(acks::acknowledge(receiver, write, shared.limits.frame_time()));
    let mut chunks = Chunks { streams: Vec::new(), limits };
    let ended =
        chunks.read(&mut input, Reader::new(protocol, peer.clone(), &shared.intake.metrics), shared, &waiting).await;
    // Free the room of a large frame that the peer has not finished, because the acks may take long.
    drop(input);
    drop(waiting);
    match (acking.await, ended) {
        (Ok(Err(end)), _) | (_, Err(end)) => end,
        _ => End::Peer,
    }
}

impl Chunks {
    async fn read<R: AsyncRead + Unpin>(
        &mut self,
        input: &mut Input<R>,
        mut reader: Reader<'_>,
        shared: &Shared,
        waiting: &mpsc::Sender<Waiting>,
    ) -> Result<(), End> {
        let mut scanner = Scanner::default();
        loop {
            reader.arrive();
            while !input.buffer.is_empty() {
                let length = match scanner.frame(&input.buffer, &self.limits) {
                    Ok(Frame::Complete { length }) => length,
                    Ok(Frame::Incomplete) => break,
                    Err(error) => {
                        reader.reject(&input.buffer, &error.to_string());
                        let bytes = input.buffer.len();
                        let room = shared.intake.room_to_decode(reader.origin(), bytes, bytes).await;
                        shared.intake.leave(reader.take(), room).await;
                        return Err(End::Frame(FrameError::Malformed("forward")));
                    }
                };
                reader.count_frame();
                message::hand_over(&input.buffer[..length], self, &mut reader, shared, waiting).await?;
                input.advance(length);
            }
            let more = tokio::select! {
                more = input.more(None) => more?,
                () = waiting.closed() => return Err(End::Refused),
            };
            if more != More::Came {
                return Ok(());
            }
        }
    }
}

/// The server side of a handshake with a shared key.
async fn shake_hands<R, W>(input: &mut Input<R>, write: &mut W, key: &Key) -> Result<(), End>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let server = Server { hostname: &key.hostname, shared_key: &key.shared_key, users: &[] };
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| End::Key(format!("no random numbers for the handshake: {error}")))?;
    let challenge = server.challenge(random);
    write.write_all(&challenge.helo()).await?;
    write.flush().await?;
    let limits = forward::Limits { frame: PING_BYTES, ..Default::default() };
    let mut scanner = Scanner::default();
    let length = loop {
        match scanner.frame(&input.buffer, &limits) {
            Ok(Frame::Complete { length }) => break length,
            Ok(Frame::Incomplete) => {}
            Err(error) => return Err(End::Key(error.to_string())),
        }
        if input.more(None).await? != More::Came {
            return Err(End::Peer);
        }
    };
    let answer = server.answer(&challenge, &input.buffer[..length]).map_err(|error| End::Key(error.to_string()))?;
    input.advance(length);
    match answer {
        Answer::Welcome(pong) => {
            write.write_all(&pong).await?;
            Ok(write.flush().await?)
        }
        Answer::Refused(pong) => {
            write.write_all(&pong).await?;
            write.flush().await?;
            Err(End::Key("the peer does not know the shared key".to_owned()))
        }
    }
}
