//! A connection that speaks Fluent Forward: chunks come, acks go when every store has committed.
//!
//! Chunks are read on while earlier ones are being stored, and acks go in the order in which the chunks came. A late ack
//! is what makes the sender wait. A chunk that is refused (see `stores::watermark`) gets no ack: the connection is closed.
//!
//! Room for records is reserved before they are decoded. A message for whose records there is not enough room at once is
//! handed over in parts, each as soon as it has room, and acknowledged when all of them are committed (`message.rs`).

mod chunks;
mod message;

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::chunks::{Chunks, Waiting};
use super::framing::{FrameError, Protocol};
use super::input::{FRAMES, Input, More};
use super::key::Key;
use super::reading::Reader;
use super::shared::{End, Shared};
use crate::decoders::forward::handshake::{Answer, Server};
use crate::decoders::forward::{self, Frame, Scanner};
use crate::delivery::Outcome;
use crate::peer::Peer;

/// Chunks of a connection that wait for their commit. More are not read: a sender has far fewer in flight.
const WAITING_CHUNKS: usize = 256;

/// Bytes of a message of the handshake.
const PING_BYTES: usize = 64 * 1024;

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
