//! RELP, the protocol of rsyslog's `omrelp`: syslog messages with acks.
//!
//! ```text
//! frame = NUMBER SP COMMAND SP LENGTH [SP DATA] LF
//! ```
//!
//! A session begins with `open`, which the service answers with its offers. Each `syslog` command holds one message.
//! The service answers (`rsp`) with `200 OK` when every store has committed the record. The messages of a batch that is
//! not committed get no answer. So the sender keeps these messages and sends them again on its next connection.
//!
//! A message that cannot be decoded is stored as a record of `logspool.undecoded` and acknowledged, because a retry
//! would fail in the same way. A command that the service refuses is answered with `500`, and the connection is closed.
//!
//! The numbers of frames begin at 1 on each connection, so a number does not identify a message on the next connection.
//! If a message was committed but the connection breaks before its answer arrives, the message is stored twice.

use std::str;

use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};

use super::syslog;
use crate::connection::acks::{self, PendingAck};
use crate::connection::admission::TrafficKind;
use crate::connection::frame_reader::FrameReader;
use crate::connection::framing::FrameError;
use crate::connection::input::{Input, ReadOutcome};
use crate::connection::protocol::{Connection, ConnectionKind, Protocol, TieBreaker};
use crate::connection::shared::{ConnectionEnd, SharedState};
use crate::delivery::Outcome;

/// The declaration of RELP; see the module documentation.
pub const RELP: Protocol = Protocol {
    name: "relp",
    senders: "rsyslog (`omrelp`), acknowledged",
    first_bytes: &[(b'1', b'9')],
    tie_breaker: Some(TieBreaker { other: "syslog-octets", decide: is_open }),
    datagrams: None,
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Session { sends_first: |_| false, serve: |connection| Box::pin(serve(connection)) },
};

/// Maximum number of digits of a number or length (RELP specification: the largest value is 999999999).
const DIGITS: usize = 9;

/// Maximum length of a command in bytes (RELP specification).
const COMMAND_BYTES: usize = 32;

/// Maximum number of messages in a batch. Chosen: this is several times the window of `omrelp`, 128 messages, because
/// other senders send more at a time.
const BATCH_MESSAGES: usize = 1024;

/// A parsed RELP frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RelpFrame<'b> {
    number: &'b str,
    command: &'b str,
    data: &'b [u8],
    /// Length of the whole frame in bytes.
    length: usize,
}

const MALFORMED: FrameError = FrameError::Malformed("relp");

/// Parses the frame at the start of `bytes`. Its data may have at most `limit` bytes. `None`: the frame is not complete
/// yet. Each part of the header is checked as soon as it has arrived.
fn frame(bytes: &[u8], limit: usize) -> Result<Option<RelpFrame<'_>>, FrameError> {
    let Some((number, at)) = word(bytes, 0, DIGITS, |byte| byte.is_ascii_digit(), b" ")? else { return Ok(None) };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric();
    let Some((command, at)) = word(bytes, at, COMMAND_BYTES, is_letter, b" ")? else { return Ok(None) };
    let Some((length, at)) = word(bytes, at, DIGITS, |byte| byte.is_ascii_digit(), b" \n")? else { return Ok(None) };
    let length: usize = length.parse().map_err(|_| MALFORMED)?;
    if length > limit {
        return Err(FrameError::TooLong(limit));
    }
    // The space after the length is optional in a frame without data.
    let from = if bytes[at - 1] == b'\n' { at - 1 } else { at };
    if from < at && length > 0 {
        return Err(MALFORMED);
    }
    match bytes.get(from + length) {
        None => Ok(None),
        Some(b'\n') => {
            Ok(Some(RelpFrame { number, command, data: &bytes[from..from + length], length: from + length + 1 }))
        }
        Some(_) => Err(MALFORMED),
    }
}

/// Parses the word that begins at `at` and is followed by one of `ends`. The word must have between one and `most`
/// bytes that all satisfy `is_part`. Returns the word and the position after the byte that ended it. `None`: more bytes
/// are needed.
fn word<'b>(
    bytes: &'b [u8],
    at: usize,
    most: usize,
    is_part: impl Fn(u8) -> bool,
    ends: &[u8],
) -> Result<Option<(&'b str, usize)>, FrameError> {
    let rest = &bytes[at..];
    let length = rest.iter().take_while(|byte| is_part(**byte)).count();
    match rest.get(length) {
        _ if length > most => Err(MALFORMED),
        None => Ok(None),
        Some(end) if length > 0 && ends.contains(end) => {
            let word = str::from_utf8(&rest[..length]).map_err(|_| MALFORMED)?;
            Ok(Some((word, at + length + 1)))
        }
        Some(_) => Err(MALFORMED),
    }
}

/// True if the bytes begin an `open` command. False for syslog with octet counting, where a priority follows the
/// number. `None`: more bytes are needed.
fn is_open(bytes: &[u8]) -> Option<bool> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (found, expected) = (&bytes[digits..], b" open ");
    let known = found.len().min(expected.len());
    if digits > DIGITS || found[..known] != expected[..known] {
        return Some(false);
    }
    found.get(expected.len()).map(u8::is_ascii_digit)
}

async fn serve(connection: Connection<'_>) -> ConnectionEnd {
    let Connection { protocol, stream, first, peer, shared, .. } = connection;
    let (read, write) = tokio::io::split(stream);
    let mut input = Input::new(read, first, peer.origin(), shared);
    let (waiting, receiver) = mpsc::channel(acks::MAX_PENDING_ACKS);
    // Records of this protocol have no numbers, so no ack has a reason.
    let acking = tokio::spawn(acks::acknowledge(receiver, write, shared.limits.frame_time(), |ack, _| ack));
    let reader = FrameReader::new(protocol, peer.clone(), &shared.intake.metrics);
    let session = RelpSession { reader, shared, waiting, is_open: false };
    let ended = session.run(&mut input).await;
    drop(input);
    match (acking.await, ended) {
        (Ok(Err(end)), _) | (_, Err(end)) => end,
        _ => ConnectionEnd::Peer,
    }
}

/// A session on a connection, from its `open` to its `close`.
struct RelpSession<'a> {
    reader: FrameReader<'a>,
    shared: &'a SharedState,
    waiting: mpsc::Sender<PendingAck>,
    is_open: bool,
}

impl RelpSession<'_> {
    async fn run<R: AsyncRead + Unpin>(mut self, input: &mut Input<R>) -> Result<(), ConnectionEnd> {
        let limit = self.shared.limits.frame_bytes;
        loop {
            self.reader.mark_arrival();
            while let Some(found) = self.frame(&input.buffer, limit).await? {
                let length = match found.command {
                    "syslog" if self.is_open => self.messages(&input.buffer, limit).await?,
                    _ => {
                        let length = found.length;
                        if self.command(found).await? == SessionState::Closed {
                            return Ok(());
                        }
                        length
                    }
                };
                input.advance(length);
            }
            let more = tokio::select! {
                more = input.read_more(None) => more?,
                () = self.waiting.closed() => return Err(ConnectionEnd::Refused),
            };
            if more != ReadOutcome::Received {
                return Ok(());
            }
        }
    }

    /// Parses the next frame. If it is malformed, the sender gets `serverclose`, and the connection ends.
    async fn frame<'b>(&mut self, bytes: &'b [u8], limit: usize) -> Result<Option<RelpFrame<'b>>, ConnectionEnd> {
        match frame(bytes, limit) {
            Ok(found) => Ok(found),
            Err(error) => {
                self.answer(b"0 serverclose 0\n".to_vec()).await?;
                Err(ConnectionEnd::Frame(error))
            }
        }
    }

    /// Hands over the messages at the start of `bytes` as one batch, as many as fit into the reserved room. Returns the
    /// number of bytes that these messages take in `bytes`.
    async fn messages(&mut self, bytes: &[u8], limit: usize) -> Result<usize, ConnectionEnd> {
        let (intake, origin) = (&self.shared.intake, self.reader.origin());
        // Count no bytes as undecoded while waiting (the argument 0): the sender keeps messages that are not
        // acknowledged.
        let room = intake.room_to_decode(origin, bytes.len(), 0).await;
        let turn = intake.budget.decode_turn(origin, bytes.len()).await;
        let (mut at, mut count, mut ack) = (0, 0, Vec::new());
        // Stop at a malformed frame. The caller parses this frame again and reports the error.
        while let Ok(Some(RelpFrame { number, command: "syslog", data, length })) = frame(&bytes[at..], limit) {
            self.reader.read_with(&syslog::FRAME_FORMAT, data);
            ack.extend_from_slice(&response(number, "200 OK"));
            at += length;
            count += 1;
            // A growing buffer doubles its size, so it may take twice as many bytes as are in use.
            if count == BATCH_MESSAGES || !room.fits(2 * self.reader.used_bytes()) {
                break;
            }
        }
        drop(turn);
        let batch = self.reader.take();
        if batch.is_empty() {
            // All messages were empty, so there is nothing to store. Acknowledge them at once.
            self.answer(ack).await?;
            return Ok(at);
        }
        let room = intake.resize(room, &batch).await;
        let outcome = intake.submit(batch, None, room);
        self.send(PendingAck { ack: Some(ack), outcome }).await?;
        Ok(at)
    }

    async fn command(&mut self, found: RelpFrame<'_>) -> Result<SessionState, ConnectionEnd> {
        let RelpFrame { number, command, data, .. } = found;
        let refused = match command {
            "open" if self.is_open => "500 the session is open",
            "open" => match check_offers(data) {
                Ok(()) => {
                    self.is_open = true;
                    let version = env!("CARGO_PKG_VERSION");
                    let offers = format!("200 OK\nrelp_version=0\nrelp_software=logspool,{version}\ncommands=syslog");
                    self.answer(response(number, &offers)).await?;
                    return Ok(SessionState::Continue);
                }
                Err(why) => why,
            },
            "close" => {
                let mut last = response(number, "200 OK");
                last.extend_from_slice(b"0 serverclose 0\n");
                self.answer(last).await?;
                return Ok(SessionState::Closed);
            }
            "syslog" => "500 the first command has to be open",
            _ => "500 the command is not known",
        };
        let mut last = response(number, refused);
        last.extend_from_slice(b"0 serverclose 0\n");
        self.answer(last).await?;
        Err(ConnectionEnd::Frame(MALFORMED))
    }

    /// Queues an answer after the answers to all earlier commands.
    async fn answer(&self, ack: Vec<u8>) -> Result<(), ConnectionEnd> {
        let (to, outcome) = oneshot::channel();
        let _ = to.send(Outcome::Committed);
        self.send(PendingAck { ack: Some(ack), outcome }).await
    }

    async fn send(&self, waiting: PendingAck) -> Result<(), ConnectionEnd> {
        self.waiting.send(waiting).await.map_err(|_| ConnectionEnd::Refused)
    }
}

/// Says whether the session continues after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionState {
    Continue,
    Closed,
}

/// Checks the offers of a sender. They must contain a version, which may be any. If they list commands, `syslog` must
/// be one of them.
fn check_offers(data: &[u8]) -> Result<(), &'static str> {
    let mut has_version = false;
    for line in data.split(|byte| *byte == b'\n') {
        match str::from_utf8(line).ok().and_then(|line| line.split_once('=')) {
            Some(("relp_version", version)) => {
                has_version = version.trim().parse::<u32>().is_ok();
            }
            Some(("commands", commands)) if !commands.split(',').any(|command| command.trim() == "syslog") => {
                return Err("500 the command syslog is needed");
            }
            _ => {}
        }
    }
    if has_version { Ok(()) } else { Err("500 relp_version is missing") }
}

fn response(number: &str, data: &str) -> Vec<u8> {
    format!("{number} rsp {} {data}\n", data.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_protocols::{self, InputState};

    #[test]
    fn a_frame_is_found_however_small_the_pieces_are() {
        let bytes = b"12 syslog 9 <14>a\nb c\n13 close 0\n";
        for end in 0..22 {
            assert_eq!(Ok(None), frame(&bytes[..end], 64), "{end}");
        }
        let first = frame(bytes, 64).unwrap().unwrap();
        assert_eq!(RelpFrame { number: "12", command: "syslog", data: b"<14>a\nb c", length: 22 }, first);
        let second = RelpFrame { number: "13", command: "close", data: b"", length: 11 };
        assert_eq!(Ok(Some(second)), frame(&bytes[22..], 64));
        assert_eq!(Ok(Some(RelpFrame { length: 12, ..second })), frame(b"13 close 0 \n", 64));
    }

    #[test]
    fn a_hostile_frame_is_refused_before_more_of_it_is_waited_for() {
        for bytes in [
            &b"1234567890"[..],
            b" syslog 1 a\n",
            b"x",
            b"1 \x00",
            b"1  syslog",
            b"1 sys-log",
            b"1 abcdefghijklmnopqrstuvwxyzabcdefg",
            b"1 syslog x",
            b"1 syslog -1",
            b"1 syslog 1234567890",
            b"1 syslog 3\nabc",
            b"1 syslog 3 abcd\n",
        ] {
            assert_eq!(Err(MALFORMED), frame(bytes, 64), "{}", bytes.escape_ascii());
        }
        assert_eq!(Err(FrameError::TooLong(64)), frame(b"1 syslog 65 ", 64));
        assert_eq!(Err(FrameError::TooLong(64)), frame(b"1 syslog 999999999 ", 64));
    }

    #[test]
    fn an_open_command_is_distinguished_from_counted_octets() {
        let name = |bytes: &[u8], rest| known_protocols::detect(bytes, rest).unwrap().map(|found| found.protocol.name);
        for end in 1..8 {
            assert_eq!(None, name(&b"1 open 85"[..end.min(7)], InputState::Open));
        }
        assert_eq!(Some("relp"), name(b"1 open 8", InputState::Open));
        for octets in [&b"12 <14>text"[..], b"12 open the door", b"1234567890"] {
            assert_eq!(Some("syslog-octets"), name(octets, InputState::Open), "{}", octets.escape_ascii());
        }
        assert_eq!(Some("text"), name(b"12 opener", InputState::Open));
        assert_eq!(Some("syslog-octets"), name(b"12", InputState::Closed));
    }

    #[test]
    fn offers_need_a_version_and_the_command_syslog() {
        assert_eq!(Ok(()), check_offers(b"relp_version=0\nrelp_software=librelp,1.11.0\ncommands=syslog"));
        assert_eq!(Ok(()), check_offers(b"relp_version=1\ncommands=starttls,syslog\n"));
        for refused in [&b""[..], b"relp_version=x", b"relp_version=0\ncommands=eventlog", b"\xFF=\n"] {
            assert!(check_offers(refused).unwrap_err().starts_with("500 "));
        }
    }
}
