//! Serves one connection. Its first bytes decide the protocol. Then frames are read until the connection ends.
//!
//! When the stores are slow, the service stops reading, so that the sender has to wait (see `intake`). A silent
//! connection needs only a small buffer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use crate::connection::admission::Slot;
use crate::connection::frame_reader::FrameReader;
use crate::connection::framing::{FrameError, FrameScan, Framer, InputEnd};
use crate::connection::input::{Input, ReadOutcome, SHUTDOWN_SILENCE, SMALL_READ_BYTES};
use crate::connection::line_joiner::MAX_WAIT;
use crate::connection::protocol::{Connection, ConnectionKind, FrameFormat, Protocol};
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::intake::Intake;
use crate::known_protocols::{self, DetectedProtocol, FrameBegin, InputState};
use crate::peer::Peer;
use crate::stop::stopped;
use crate::warnings;

/// Maximum time for which frames of a connection are decoded before another connection gets its turn. Chosen: the bytes
/// of one read from a usual sender are decoded in a tenth of this time.
const TURN_TIME: Duration = Duration::from_millis(1);

/// Number of frames that are decoded between two checks of the clock.
const FRAMES_PER_CLOCK_CHECK: usize = 32;

/// If a sender is silent for this time after a syslog line, the line is complete. This does not apply to senders that
/// end messages with NUL.
const LINE_PAUSE: Duration = Duration::from_millis(50);

/// Serves a connection to its end, and holds its slot until then.
pub async fn serve<S>(
    stream: S,
    peer: Peer,
    protocol: Option<&'static Protocol>,
    mut slot: Slot,
    shared: Arc<SharedState>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let metrics = shared.intake.metrics.clone();
    let _open = metrics.connection();
    let (reason, why) = match serve_protocol(stream, &peer, protocol, &mut slot, &shared).await {
        ConnectionEnd::Peer => return,
        ConnectionEnd::Frame(error) => (error.kind(), error.to_string()),
        ConnectionEnd::Slow(limit) => ("slow", format!("it was silent for longer than limits.{limit}")),
        ConnectionEnd::AnswersUnread => {
            ("slow", "it did not read its answers for longer than limits.frame_seconds".to_owned())
        }
        ConnectionEnd::Refused => ("refused", "a newer connection sends its stream".to_owned()),
        ConnectionEnd::TooManyStreams => (
            "too_many_streams",
            "it sends more than 10,000 streams, or all streams together need more than 1/8 of limits.waiting_bytes"
                .to_owned(),
        ),
        ConnectionEnd::NoSlot(refusal) => {
            (refusal.reason(), format!("{refusal} (limits.connections, limits.connections_per_peer)"))
        }
        ConnectionEnd::Key(why) => ("key", why),
        ConnectionEnd::Io(error) => ("network", error.to_string()),
    };
    metrics.close(reason);
    warnings::warn(reason, Some(&peer), || format!("connection closed: {why}"));
}

async fn serve_protocol<S>(
    mut stream: S,
    peer: &Peer,
    protocol: Option<&'static Protocol>,
    slot: &mut Slot,
    shared: &Arc<SharedState>,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Some(protocol) = protocol
        && let ConnectionKind::Session { sends_first, serve } = &protocol.connections
        && sends_first(shared)
    {
        return serve(Connection { protocol, stream: Box::new(stream), first: BytesMut::new(), peer, slot, shared })
            .await;
    }
    let mut first = BytesMut::with_capacity(SMALL_READ_BYTES);
    let until = Instant::now() + slot.header_time(shared.limits.header_time());
    let mut stop = shared.stop.clone();
    let only = protocol;
    let protocol = loop {
        let came = tokio::select! {
            came = timeout_at(until, stream.read_buf(&mut first)) => came,
            () = stopped(&mut stop) => timeout(SHUTDOWN_SILENCE, stream.read_buf(&mut first)).await,
        };
        let rest = match came {
            Err(_) if first.is_empty() => return ConnectionEnd::Slow("header_seconds"),
            Ok(Err(error)) => return ConnectionEnd::Io(error),
            Ok(Ok(0)) if first.is_empty() => return ConnectionEnd::Peer,
            Err(_) | Ok(Ok(0)) => InputState::Closed,
            Ok(Ok(_)) => InputState::Open,
        };
        let given = protocol.map(|protocol| Ok(Some(DetectedProtocol { protocol, blank: 0 })));
        match given.unwrap_or_else(|| known_protocols::detect(&first, rest)) {
            Ok(Some(DetectedProtocol { protocol, blank })) => {
                first.advance(blank);
                break protocol;
            }
            Ok(None) => {}
            Err(error) => return ConnectionEnd::Frame(error),
        }
    };
    if let Err(refusal) = slot.assign(protocol.traffic) {
        return ConnectionEnd::NoSlot(refusal);
    }
    let may_change = if only.is_some() { ProtocolChange::Never } else { ProtocolChange::BetweenFrames };
    let mut protocol = protocol;
    loop {
        match &protocol.connections {
            ConnectionKind::Frames(declared) => {
                let mut input = Input::new(stream, first, peer.origin(), shared);
                match serve_frames(&mut input, (protocol, declared, may_change), peer, shared).await {
                    Ok(FramesEnd::Stream) => return ConnectionEnd::Peer,
                    Ok(FramesEnd::Session(other)) => protocol = other,
                    Err(end) => return end,
                }
                (stream, first) = input.into_parts();
            }
            ConnectionKind::Session { serve, .. } => {
                return serve(Connection { protocol, stream: Box::new(stream), first, peer, slot, shared }).await;
            }
        }
    }
}

/// The end of the frames of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FramesEnd {
    /// The connection has ended.
    Stream,
    /// What follows is of a protocol with sessions.
    Session(&'static Protocol),
}

/// Reads frames that hold one record each.
async fn serve_frames<R: AsyncRead + Unpin>(
    input: &mut Input<R>,
    (protocol, declared, may_change): (&'static Protocol, &FrameFormat, ProtocolChange),
    peer: &Peer,
    shared: &SharedState,
) -> Result<FramesEnd, ConnectionEnd> {
    let mut framer = (declared.framer)(shared.limits.frame_bytes);
    let mut reader = FrameReader::new(protocol, peer.clone(), &shared.intake.metrics);
    loop {
        reader.mark_arrival();
        let taken = take_frames(input, &mut *framer, &mut reader, (&shared.intake, may_change)).await;
        match taken {
            Ok(FramesTaken::All) => {}
            Ok(FramesTaken::Part) => continue,
            Ok(FramesTaken::UpTo(other)) => {
                reader.store_open_lines(&shared.intake).await;
                let Some(declared) = other.frame_format() else { return Ok(FramesEnd::Session(other)) };
                framer = (declared.framer)(shared.limits.frame_bytes);
                reader = FrameReader::new(other, peer.clone(), &shared.intake.metrics);
                continue;
            }
            Err(error) => return Err(ConnectionEnd::Frame(error)),
        }
        let line_pause = framer.ends_at_pause(&input.buffer).then_some(LINE_PAUSE);
        let pause = line_pause.or(reader.has_open_lines().then_some(MAX_WAIT));
        let (ended_by, end) = match input.read_more(pause).await {
            Ok(ReadOutcome::Received) => continue,
            Ok(ReadOutcome::Silent) => (InputEnd::Pause, Ok(())),
            Ok(ReadOutcome::Ended) => (InputEnd::Stream, Ok(())),
            // Decode the received bytes even after an error: many clients close TLS without a close_notify after their
            // last line.
            Err(end) => (InputEnd::Stream, Err(end)),
        };
        // A NUL that ends no frame is no record.
        let nuls = input.buffer.iter().take_while(|byte| **byte == 0).count();
        if ended_by == InputEnd::Stream && nuls == input.buffer.len() && !reader.protocol().may_begin_with(0) {
            input.advance(nuls);
        }
        let is_end = ended_by == InputEnd::Stream || line_pause.is_some();
        let rest = if is_end { framer.last_frame(&input.buffer, ended_by) } else { None };
        let is_cut = ended_by == InputEnd::Stream && rest.is_none() && !input.buffer.is_empty();
        if rest.is_some() || is_cut {
            let bytes = input.buffer.len();
            let room = shared.intake.room_to_decode(peer.origin(), bytes, bytes).await;
            if let Some(FrameScan::Frame { from, to, next }) = rest {
                reader.mark_arrival();
                reader.read(&input.buffer[from..to]);
                input.advance(next);
            }
            if is_cut {
                reader.reject(&input.buffer, "the connection ended before the frame did");
            }
            shared.intake.submit_unacked(reader.take(), room).await;
        } else {
            reader.store_open_lines(&shared.intake).await;
        }
        if ended_by == InputEnd::Stream {
            return end.map(|()| FramesEnd::Stream);
        }
    }
}

/// Says how many of the received frames were decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FramesTaken {
    /// All complete frames were decoded.
    All,
    /// Decoding stopped because the room was full or the turn was over. More complete frames may be left.
    Part,
    /// The next frame is of another protocol.
    UpTo(&'static Protocol),
}

/// Whether the frames of a connection may change their protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtocolChange {
    /// The listener has only one protocol.
    Never,
    /// A frame may be of another protocol than the frame before it. log4j2, for example, shares one connection between
    /// the appenders of one port.
    BetweenFrames,
}

/// Decodes the received frames and hands over their records, until the reserved room is full or the turn ends.
async fn take_frames<R>(
    input: &mut Input<R>,
    framer: &mut dyn Framer,
    reader: &mut FrameReader<'_>,
    (intake, may_change): (&Intake, ProtocolChange),
) -> Result<FramesTaken, FrameError> {
    let begin = |bytes: &[u8], reader: &FrameReader<'_>| match may_change {
        ProtocolChange::Never => FrameBegin::Same,
        ProtocolChange::BetweenFrames => known_protocols::begins_frame(bytes, reader.protocol()),
    };
    match begin(&input.buffer, reader) {
        FrameBegin::Same => {}
        FrameBegin::Other(other) => return Ok(FramesTaken::UpTo(other)),
        FrameBegin::Undecided => return Ok(FramesTaken::All),
    }
    let mut step = framer.scan(&input.buffer);
    if step == Ok(FrameScan::Incomplete) {
        return Ok(FramesTaken::All);
    }
    let bytes = input.buffer.len();
    let room = intake.room_to_decode(reader.origin(), bytes, bytes).await;
    let turn = intake.budget.decode_turn(reader.origin(), bytes).await;
    let began = Instant::now();
    let (mut at, mut frames) = (0, 0_usize);
    let taken = loop {
        let rest = &input.buffer[at..];
        match step {
            Ok(FrameScan::Frame { from, to, next }) => {
                reader.read(&rest[from..to]);
                at += next;
            }
            Ok(FrameScan::Incomplete) => break Ok(FramesTaken::All),
            Err(error) => {
                reader.reject(rest, &error.to_string());
                break Err(error);
            }
        }
        // A growing buffer doubles its size, so it may take twice as many bytes as are in use.
        frames += 1;
        let is_over = frames % FRAMES_PER_CLOCK_CHECK == 0 && began.elapsed() > TURN_TIME;
        if is_over || !room.fits(2 * reader.used_bytes()) {
            break Ok(FramesTaken::Part);
        }
        match begin(&input.buffer[at..], reader) {
            FrameBegin::Same => {}
            FrameBegin::Other(other) => break Ok(FramesTaken::UpTo(other)),
            FrameBegin::Undecided => break Ok(FramesTaken::All),
        }
        step = framer.scan(&input.buffer[at..]);
    };
    drop(turn);
    input.advance(at);
    let batch = if taken.is_ok() { reader.take_open(&intake.budget) } else { reader.take() };
    intake.submit_unacked(batch, room).await;
    taken
}
