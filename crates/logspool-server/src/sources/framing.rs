//! Finds the ends of frames in a stream.
//!
//! The first byte of a connection decides its protocol. A [`Framer`] looks at each byte of a frame once, however small
//! the pieces are in which it arrives.

use std::fmt;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Four bytes of length, then a pickle: `logging.handlers.SocketHandler`.
    Pickle,
    /// JSON values that end in LF or NUL, including GELF.
    Json,
    /// Syslog that ends in NUL or LF.
    Syslog,
    /// Syslog with its length in decimal before it.
    OctetCounted,
    /// Fluent Forward.
    Forward,
    /// HTTP.
    Http,
}

impl Protocol {
    /// All protocols, with their names in addresses and metrics.
    pub const NAMES: [(&str, Self); 6] = [
        ("pickle", Self::Pickle),
        ("json", Self::Json),
        ("syslog", Self::Syslog),
        ("syslog-octets", Self::OctetCounted),
        ("forward", Self::Forward),
        ("http", Self::Http),
    ];

    /// The name of the protocol.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, protocol)| *protocol == self).map_or("", |(name, _)| name)
    }

    /// The protocol for the first byte of a connection.
    ///
    /// # Errors
    ///
    /// No protocol begins with this byte.
    pub fn of_first(byte: u8) -> Result<Self, FrameError> {
        match byte {
            // The length of a frame within the limit begins with a zero byte.
            0 => Ok(Self::Pickle),
            b'{' => Ok(Self::Json),
            b'<' => Ok(Self::Syslog),
            b'1'..=b'9' => Ok(Self::OctetCounted),
            // A MessagePack array.
            0x92..=0x94 | 0xDC | 0xDD => Ok(Self::Forward),
            b'A'..=b'Z' => Ok(Self::Http),
            0x16 => Err(FrameError::Tls),
            other => Err(FrameError::Unknown(other)),
        }
    }
}

/// Reason why a stream cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameError {
    /// A frame is longer than the limit, in bytes.
    TooLong(usize),
    /// No protocol begins with this byte.
    Unknown(u8),
    /// The peer speaks TLS to a listener without TLS.
    Tls,
    /// A length is not a positive number.
    Length,
    /// The bytes are not MessagePack.
    Forward,
}

impl fmt::Display for FrameError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(to, "a frame is longer than {limit} bytes (limits.frame_bytes)"),
            Self::Unknown(byte) => write!(to, "no known protocol begins with the byte {byte:#04x}"),
            Self::Tls => to.write_str("the peer speaks TLS: let it connect to a tls:// listener"),
            Self::Length => to.write_str("the length before a frame is not a number from 1"),
            Self::Forward => to.write_str("what came is no message of the Forward protocol"),
        }
    }
}

impl std::error::Error for FrameError {}

impl FrameError {
    /// The kind of the error, for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "too_long",
            Self::Unknown(_) => "unknown_protocol",
            Self::Tls => "tls",
            Self::Length => "length",
            Self::Forward => "malformed",
        }
    }
}

/// The first frame in the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A frame at `from..to`; the next frame begins at `next`. An empty range has nothing to decode.
    Frame {
        /// Position of its first byte.
        from: usize,
        /// Position after its last byte.
        to: usize,
        /// Position of the next frame.
        next: usize,
    },
    /// The frame is not complete yet.
    Incomplete,
}

/// Finds the ends of the frames of one connection.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Pickle,
    Json(Json),
    Syslog {
        scanned: usize,
        /// The byte that ended the first frame.
        first_end: Option<u8>,
    },
    OctetCounted,
}

/// Progress in a JSON value.
#[derive(Debug, Default, Clone, Copy)]
struct Json {
    scanned: usize,
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Framer {
    /// Creates a framer for one connection. `limit` is the maximum length of a frame in bytes. `None`: Forward and HTTP
    /// have their own framing.
    pub fn new(protocol: Protocol, limit: usize) -> Option<Self> {
        let state = match protocol {
            Protocol::Pickle => State::Pickle,
            Protocol::Json => State::Json(Json::default()),
            Protocol::Syslog => State::Syslog { scanned: 0, first_end: None },
            Protocol::OctetCounted => State::OctetCounted,
            Protocol::Forward | Protocol::Http => return None,
        };
        Some(Self { limit, state })
    }

    /// Finds the first frame in `bytes`, which are all received bytes that have not been taken yet.
    ///
    /// # Errors
    ///
    /// The stream cannot be read any further.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, FrameError> {
        let step = match &mut self.state {
            State::Pickle => return pickle(bytes, self.limit),
            State::OctetCounted => return octet_counted(bytes, self.limit),
            State::Json(json) => json.step(bytes),
            State::Syslog { scanned, first_end } => syslog(bytes, scanned, first_end),
        };
        let length = match step {
            Step::Frame { to, .. } => to,
            Step::Incomplete => bytes.len(),
        };
        if length > self.limit { Err(FrameError::TooLong(self.limit)) } else { Ok(step) }
    }

    /// True if the frame in `bytes` is complete when the peer pauses. This applies to syslog lines that end in LF.
    pub fn ends_in_silence(&self, bytes: &[u8]) -> bool {
        matches!(self.state, State::Syslog { first_end, .. } if first_end != Some(0)) && bytes.ends_with(b"\n")
    }

    /// The frame in the bytes when nothing follows for a while, or ever. `None`: the frame is incomplete.
    pub fn rest(&mut self, bytes: &[u8], ended: Ended) -> Option<Step> {
        let all = Step::Frame { from: 0, to: bytes.len(), next: bytes.len() };
        match &mut self.state {
            State::Syslog { scanned, first_end } if ended == Ended::Stream || bytes.ends_with(b"\n") => {
                *scanned = 0;
                first_end.get_or_insert(b'\n');
                let to = bytes.len() - usize::from(bytes.ends_with(b"\n"));
                Some(Step::Frame { from: 0, to, next: bytes.len() })
            }
            State::Json(json) if ended == Ended::Stream => {
                *json = Json::default();
                Some(all)
            }
            _ => None,
        }
    }
}

/// The end that [`Framer::rest`] is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The peer has been silent for a moment.
    Burst,
    /// The peer has closed.
    Stream,
}

fn pickle(bytes: &[u8], limit: usize) -> Result<Step, FrameError> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(Step::Incomplete) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > limit {
        return Err(FrameError::TooLong(limit));
    }
    // A pickle is never empty. A peer that sends zeros would create a record for every four bytes.
    if length == 0 {
        return Err(FrameError::Length);
    }
    let to = 4 + length;
    Ok(if bytes.len() < to { Step::Incomplete } else { Step::Frame { from: 4, to, next: to } })
}

fn octet_counted(bytes: &[u8], limit: usize) -> Result<Step, FrameError> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Nine digits exceed any limit.
    if digits > 9 {
        return Err(FrameError::TooLong(limit));
    }
    let length = match bytes.get(digits) {
        None => return Ok(Step::Incomplete),
        // Some senders add a line feed after a message.
        Some(b'\n') if digits == 0 => return Ok(Step::Frame { from: 0, to: 0, next: 1 }),
        Some(b' ') if digits > 0 => {
            bytes[..digits].iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
        }
        Some(_) => return Err(FrameError::Length),
    };
    if length > limit {
        return Err(FrameError::TooLong(limit));
    }
    // RFC 6587, 3.4.1: a length does not begin with a zero.
    if length == 0 {
        return Err(FrameError::Length);
    }
    let from = digits + 1;
    let to = from + length;
    Ok(if bytes.len() < to { Step::Incomplete } else { Step::Frame { from, to, next: to } })
}

/// Finds the end of a syslog message. If the first frame ended with NUL, only NUL ends a frame. Otherwise a LF before
/// the next `<` also does, and a NUL between lines ends only its own frame.
fn syslog(bytes: &[u8], scanned: &mut usize, first_end: &mut Option<u8>) -> Step {
    let mut at = *scanned;
    while let Some(ahead) = memchr::memchr2(0, b'\n', &bytes[at..]) {
        at += ahead;
        let is_end = match bytes[at] {
            0 => true,
            _ if *first_end == Some(0) => false,
            _ => match bytes.get(at + 1..at + 3) {
                Some([b'<', digit]) => digit.is_ascii_digit(),
                Some(_) => false,
                None => {
                    *scanned = at;
                    return Step::Incomplete;
                }
            },
        };
        if is_end {
            first_end.get_or_insert(bytes[at]);
            *scanned = 0;
            return Step::Frame { from: 0, to: at, next: at + 1 };
        }
        at += 1;
    }
    *scanned = bytes.len();
    Step::Incomplete
}

impl Json {
    /// Ends at the first NUL or LF outside a value.
    fn step(&mut self, bytes: &[u8]) -> Step {
        while let Some(byte) = bytes.get(self.scanned) {
            match (byte, self.in_text) {
                // Never valid inside a value, not even in text. End the frame here, so that the next one can be read.
                (0, _) | (b'\n', true) => return self.end(),
                (_, true) if self.escaped => self.escaped = false,
                (b'\\', true) => self.escaped = true,
                (b'"', _) => self.in_text = !self.in_text,
                (b'{' | b'[', false) => self.depth += 1,
                (b'}' | b']', false) => self.depth = self.depth.saturating_sub(1),
                (b'\n', false) if self.depth == 0 => return self.end(),
                _ => {}
            }
            self.scanned += 1;
        }
        Step::Incomplete
    }

    fn end(&mut self) -> Step {
        let to = self.scanned;
        *self = Self::default();
        Step::Frame { from: 0, to, next: to + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a stream that arrives in pieces of `piece` bytes.
    fn frames(protocol: Protocol, stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut framer = Framer::new(protocol, 64).unwrap();
        let (mut frames, mut waiting) = (Vec::new(), Vec::new());
        for piece in stream.chunks(piece) {
            waiting.extend_from_slice(piece);
            while let Step::Frame { from, to, next } = framer.step(&waiting).unwrap() {
                frames.push(waiting[from..to].to_vec());
                waiting.drain(..next);
            }
        }
        (frames, waiting)
    }

    fn check(protocol: Protocol, stream: &[u8], expected: &[&[u8]], rest: &[u8]) {
        for piece in 1..=stream.len() {
            let (frames, waiting) = frames(protocol, stream, piece);
            assert_eq!(expected, frames, "in pieces of {piece}");
            assert_eq!(rest, waiting, "in pieces of {piece}");
        }
    }

    #[test]
    fn the_first_byte_tells_the_protocol() {
        let first = |text: &[u8]| Protocol::of_first(text[0]);

        assert_eq!(Ok(Protocol::Pickle), first(b"\0\0\x02\x01}q"));
        assert_eq!(Ok(Protocol::Json), first(b"{\"a\":1}"));
        assert_eq!(Ok(Protocol::Syslog), first(b"<14>text"));
        assert_eq!(Ok(Protocol::OctetCounted), first(b"12 <14>text"));
        assert_eq!(Ok(Protocol::Forward), first(b"\x93\xA3tag"));
        assert_eq!(Ok(Protocol::Http), first(b"POST / HTTP/1.1"));
        assert_eq!(Err(FrameError::Tls), first(b"\x16\x03\x01"));
        assert_eq!(Err(FrameError::Unknown(b'z')), first(b"z"));
    }

    #[test]
    fn a_pickle_ends_where_its_length_says() {
        check(Protocol::Pickle, b"\0\0\0\x03abc\0\0\0\x01d\0\0\0\x01", &[b"abc", b"d"], b"\0\0\0\x01");
    }

    #[test]
    fn a_frame_of_no_bytes_ends_its_stream() {
        for (protocol, stream) in [(Protocol::Pickle, &[0; 64][..]), (Protocol::OctetCounted, b"0 0 0 ")] {
            assert_eq!(Err(FrameError::Length), Framer::new(protocol, 64).unwrap().step(stream));
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_kept() {
        for (protocol, stream) in [
            (Protocol::Pickle, &b"\0\0\0\x41"[..]),
            (Protocol::Pickle, b"\x7F\xFF\xFF\xFF"),
            (Protocol::OctetCounted, b"65 "),
            (Protocol::OctetCounted, b"9999999999"),
        ] {
            assert_eq!(Err(FrameError::TooLong(64)), Framer::new(protocol, 64).unwrap().step(stream));
        }
        for protocol in [Protocol::Json, Protocol::Syslog] {
            let mut framer = Framer::new(protocol, 64).unwrap();
            assert_eq!(Ok(Step::Incomplete), framer.step(&[b'{'; 64]));
            assert_eq!(Err(FrameError::TooLong(64)), framer.step(&[b'{'; 65]));
        }
    }

    #[test]
    fn json_ends_at_a_line_end_or_nul_outside_a_value() {
        check(
            Protocol::Json,
            b"{\"a\":\"}\\\"{\"}\n{\"open\n{\n \"b\": [1,\n2]\n}\0{\"c\":1}\r\n{",
            &[b"{\"a\":\"}\\\"{\"}", b"{\"open", b"{\n \"b\": [1,\n2]\n}", b"{\"c\":1}\r"],
            b"{",
        );
    }

    #[test]
    fn syslog_ends_at_a_line_end_before_the_next_message() {
        check(
            Protocol::Syslog,
            b"<14>one\n<14>two\n  at line 2\n<html>\n<9>three\n",
            &[b"<14>one", b"<14>two\n  at line 2\n<html>"],
            b"<9>three\n",
        );
    }

    #[test]
    fn syslog_ends_at_nul_once_the_sender_has_used_one() {
        check(Protocol::Syslog, b"<14>a\nb\0<14>c\n<14>d\0<", &[b"<14>a\nb", b"<14>c\n<14>d"], b"<");
    }

    #[test]
    fn a_nul_among_lines_of_syslog_ends_its_own_frame_alone() {
        check(
            Protocol::Syslog,
            b"<14>one\n<14>t\0wo\n<14>three\n<14>four\n",
            &[b"<14>one", b"<14>t", b"wo", b"<14>three"],
            b"<14>four\n",
        );

        let mut framer = Framer::new(Protocol::Syslog, 64).unwrap();
        let line = b"<14>text\n";
        framer.rest(line, Ended::Burst).unwrap();
        assert_eq!(Step::Frame { from: 0, to: 1, next: 2 }, framer.step(b"a\0").unwrap());
        assert!(framer.ends_in_silence(line));
    }

    #[test]
    fn octets_are_counted() {
        check(
            Protocol::OctetCounted,
            b"6 <14>a\n8 <14>b\nc\n\n5 <14>d",
            &[b"<14>a\n", b"<14>b\nc\n", b"", b"<14>d"],
            b"",
        );
        assert_eq!(Err(FrameError::Length), Framer::new(Protocol::OctetCounted, 64).unwrap().step(b"<14>"));
    }

    #[test]
    fn silence_ends_a_line_of_syslog_and_the_end_of_the_stream_ends_more() {
        let mut framer = Framer::new(Protocol::Syslog, 64).unwrap();
        let line = b"<14>text\n";
        assert_eq!(Ok(Step::Incomplete), framer.step(line));
        assert!(framer.ends_in_silence(line) && !framer.ends_in_silence(b"<14>te"));
        assert_eq!(Some(Step::Frame { from: 0, to: 8, next: 9 }), framer.rest(line, Ended::Burst));
        assert_eq!(None, framer.rest(b"<14>te", Ended::Burst));
        assert_eq!(Some(Step::Frame { from: 0, to: 6, next: 6 }), framer.rest(b"<14>te", Ended::Stream));

        let mut framer = Framer::new(Protocol::Json, 64).unwrap();
        assert_eq!(Ok(Step::Incomplete), framer.step(b"{}"));
        assert_eq!(None, framer.rest(b"{}", Ended::Burst));
        assert_eq!(Some(Step::Frame { from: 0, to: 2, next: 2 }), framer.rest(b"{}", Ended::Stream));
        assert_eq!(None, Framer::new(Protocol::Pickle, 64).unwrap().rest(b"\0", Ended::Stream));
    }
}
