//! A connection that speaks Fluent Forward: chunks come, acks go when every store has committed.
//!
//! Chunks are read on while earlier ones are being stored, and acks go in the order in which the chunks came. A late ack
//! is what makes the sender wait. A chunk that is refused (see `stores::watermark`) gets no ack: the connection is closed.
//!
//! Room for records is reserved before they are decoded. A message for whose records there is not enough room at once is
//! handed over in parts, each as soon as it has room, and acknowledged when all of them are committed (`message.rs`).

mod message;

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::framing::{FrameError, Protocol};
use super::reading::{Peer, Reader};
use super::streams::{End, Input, More, Shared};
use crate::config::SharedKey;
use crate::decoders::forward::handshake::{Answer, Server};
use crate::decoders::forward::{self, Frame, Scanner};
use crate::delivery::{Chunk, Outcome, Place};
use crate::intake::Fence;

/// Chunks of a connection that wait for their commit. More are not read: a sender has far fewer in flight.
const WAITING_CHUNKS: usize = 256;

/// Streams that one connection may send. logspool's own client sends one.
const STREAMS: usize = 64;

/// Frames of limits.frame_bytes that one message may be long: Fluentd sends 8 MiB.
pub const FRAMES: usize = 10;

/// Bytes of a message of the handshake.
const PING_BYTES: usize = 64 * 1024;

/// The key that senders have to know.
#[derive(Clone)]
pub struct Key {
    hostname: String,
    shared_key: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Key")
    }
}

impl Key {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Which, and why.
    pub fn read(config: &SharedKey) -> Result<Self, String> {
        let path = config.key_file.display();
        let text = std::fs::read_to_string(&config.key_file)
            .map_err(|error| format!("cannot read the shared key {path}: {error}"))?;
        let shared_key = text.trim().to_owned();
        if shared_key.is_empty() {
            return Err(format!("the shared key {path} is empty"));
        }
        let hostname = config.hostname.clone().unwrap_or_else(|| {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            name.trim().to_owned()
        });
        Ok(Self { hostname, shared_key })
    }
}

/// A part of a stream, and the right to send it.
type Numbered = (Chunk, Fence);

/// The outcome of a part of a message, and the ack that may go then; only the last part has one.
type Waiting = (Option<Vec<u8>>, oneshot::Receiver<Outcome>);

/// Serves a connection of which `first` has come.
pub async fn serve<S>(stream: S, first: BytesMut, peer: &Peer, asks_for_key: bool, shared: &Shared) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
    let (waiting, acks) = mpsc::channel(WAITING_CHUNKS);
    let acking = tokio::spawn(acknowledge(acks, write, shared.limits.frame_time()));
    let mut chunks = Chunks { streams: Vec::new(), limits };
    let ended = chunks.read(&mut input, peer, shared, &waiting).await;
    // With the rights to a large frame that a peer has left in the middle: the acks may take long.
    drop(input);
    drop(waiting);
    match (acking.await, ended) {
        (Ok(Err(end)), _) | (_, Err(end)) => end,
        _ => End::Peer,
    }
}

/// Sends acks in the order of the chunks, each when its chunk is committed. A peer that takes none is not waited for.
async fn acknowledge<W: AsyncWrite + Unpin>(
    mut waiting: mpsc::Receiver<Waiting>,
    mut to: W,
    most: Duration,
) -> Result<(), End> {
    while let Some((ack, outcome)) = waiting.recv().await {
        match outcome.await {
            Ok(Outcome::Committed) => {}
            // Also where a store has ended without a word.
            _ => return Err(End::Refused),
        }
        let Some(ack) = ack else { continue };
        let written = timeout(most, async {
            to.write_all(&ack).await?;
            to.flush().await
        });
        written.await.map_err(|_| End::Deaf)??;
    }
    // The sender may have more to say, but nobody reads it any more.
    drop(timeout(most, to.shutdown()).await);
    Ok(())
}

/// Reads the chunks of one connection.
struct Chunks {
    /// The streams that this connection sends.
    streams: Vec<(String, Fence)>,
    limits: forward::Limits,
}

impl Chunks {
    async fn read<R: AsyncRead + Unpin>(
        &mut self,
        input: &mut Input<R>,
        peer: &Peer,
        shared: &Shared,
        waiting: &mpsc::Sender<Waiting>,
    ) -> Result<(), End> {
        let mut scanner = Scanner::default();
        let mut reader = Reader::new(Protocol::Forward, peer.clone(), &shared.intake.metrics);
        loop {
            reader.arrive();
            while !input.buffer.is_empty() {
                let length = match scanner.frame(&input.buffer, &self.limits) {
                    Ok(Frame::Complete { length }) => length,
                    Ok(Frame::Incomplete) => break,
                    Err(error) => {
                        reader.reject(&input.buffer, &error.to_string());
                        let bytes = input.buffer.len();
                        let room = shared.intake.room_to_decode(peer.origin(), bytes, bytes).await;
                        shared.intake.leave(reader.take(), room).await;
                        return Err(End::Frame(FrameError::Forward));
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

    /// Where a chunk stands on this connection.
    fn place(&mut self, mut chunk: Chunk, shared: &Shared) -> Result<Numbered, End> {
        if let Some((_, fence)) = self.streams.iter().find(|(stream, _)| *stream == chunk.stream) {
            chunk.place = Place::Following;
            return Ok((chunk, fence.clone()));
        }
        if self.streams.len() == STREAMS {
            return Err(End::Refused);
        }
        let fence = shared.intake.take_stream(&chunk.stream);
        self.streams.push((chunk.stream.clone(), fence.clone()));
        Ok((chunk, fence))
    }
}

/// The handshake of a server that asks for a key.
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
