//! Serves one connection: its first byte decides the protocol, then frames are read until it ends.
//!
//! When the stores are slow (`intake`) the service stops reading, so that the sender has to wait. A silent connection
//! needs only a small buffer.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::admission::Slot;
use super::framing::{Ended, FrameError, Framer, Step};
use super::input::{Input, LAST_WORDS, More, SMALL_READ};
use super::reading::Reader;
use super::shared::{End, Shared};
use crate::intake::Intake;
use crate::peer::Peer;
use crate::protocol::{Connection, Frames, Protocol, Speech};
use crate::protocols::{self, Rest};
use crate::stop::ended;
use crate::warnings;

/// How long frames of a connection are decoded before another one gets its turn. Chosen: a read from a usual sender is
/// decoded in a tenth of it.
const TURN_TIME: Duration = Duration::from_millis(1);

/// Frames between two checks of the clock.
const LOOK_EACH: usize = 32;

/// Silence that ends a syslog line, if the sender does not end lines with NUL.
const BURST: Duration = Duration::from_millis(50);

/// Serves a connection to its end, and holds its slot until then.
pub async fn serve<S>(stream: S, peer: Peer, protocol: Option<&'static Protocol>, mut slot: Slot, shared: Arc<Shared>)
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
    protocol: Option<&'static Protocol>,
    slot: &mut Slot,
    shared: &Arc<Shared>,
) -> End
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Some(protocol) = protocol
        && let Speech::Conversation { speaks_first, serve } = &protocol.speech
        && speaks_first(shared)
    {
        return serve(Connection { protocol, stream: Box::new(stream), first: BytesMut::new(), peer, slot, shared })
            .await;
    }
    let mut first = BytesMut::with_capacity(SMALL_READ);
    let until = Instant::now() + slot.header_time(shared.limits.header_time());
    let mut stop = shared.stop.clone();
    let protocol = loop {
        let came = tokio::select! {
            came = timeout_at(until, stream.read_buf(&mut first)) => came,
            () = ended(&mut stop) => timeout(LAST_WORDS, stream.read_buf(&mut first)).await,
        };
        let rest = match came {
            Err(_) if first.is_empty() => return End::Slow("header_seconds"),
            Ok(Err(error)) => return End::Io(error),
            Ok(Ok(0)) if first.is_empty() => return End::Peer,
            Err(_) | Ok(Ok(0)) => Rest::Closed,
            Ok(Ok(_)) => Rest::Open,
        };
        match protocol.map_or_else(|| protocols::of_beginning(&first, rest), |protocol| Ok(Some(protocol))) {
            Ok(Some(protocol)) => break protocol,
            Ok(None) => {}
            Err(error) => return End::Frame(error),
        }
    };
    if let Err(refusal) = slot.settle(protocol.door) {
        return End::NoSlot(refusal);
    }
    match &protocol.speech {
        Speech::Frames(declared) => {
            let input = Input::new(stream, first, peer.origin(), shared);
            frames(input, protocol, declared, peer, shared).await.map_or_else(|end| end, |()| End::Peer)
        }
        Speech::Conversation { serve, .. } => {
            serve(Connection { protocol, stream: Box::new(stream), first, peer, slot, shared }).await
        }
    }
}

/// Reads frames that hold one record each.
async fn frames<R: AsyncRead + Unpin>(
    mut input: Input<R>,
    protocol: &'static Protocol,
    declared: &Frames,
    peer: &Peer,
    shared: &Shared,
) -> Result<(), End> {
    let mut framer = (declared.framer)(shared.limits.frame_bytes);
    let mut reader = Reader::new(protocol, peer.clone(), &shared.intake.metrics);
    loop {
        reader.arrive();
        let taken = take_frames(&mut input, &mut *framer, &mut reader, &shared.intake).await;
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
            // Keep the received bytes: many clients close TLS without a close_notify after their last line.
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

/// Amount of the received bytes that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// All complete frames.
    All,
    /// As many frames as there was room and time for. More may be left.
    Some,
}

/// Decodes the received frames and hands over their records, until the reserved room is full or the turn ends.
async fn take_frames<R>(
    input: &mut Input<R>,
    framer: &mut dyn Framer,
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
        // A growing buffer doubles, so it may take twice the bytes in use.
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
