//! Syslog messages that end with NUL or LF, and syslog in datagrams.

use std::net::SocketAddr;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};

use crate::connection::admission::TrafficKind;
use crate::connection::framing::{FrameError, FrameScan, Framer, InputEnd, check_length};
use crate::connection::protocol::{
    ConnectionKind, DatagramUnpacker, Datagrams, FrameCallback, FrameContent, FrameFormat, Protocol, TrailingSpace,
};
use crate::decoders::syslog;
use crate::record::Record;

/// The declaration of syslog; see the module documentation.
pub const SYSLOG: Protocol = Protocol {
    name: "syslog",
    senders: "Python's `SysLogHandler`, `logger`, rsyslog, syslog-ng",
    first_bytes: &[(b'<', b'<')],
    tie_breaker: None,
    // All first bytes that no other protocol uses.
    datagrams: Some(Datagrams {
        begins: &[(0x01, 0x1D), (0x20, 0x77), (0x79, 0x7A), (0x7C, 0xFF)],
        open: || Box::new(SyslogDatagrams),
    }),
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Frames(FRAME_FORMAT),
};

/// The format of the messages. Frames of other protocols (RELP, octet counting) contain the same messages.
pub(super) const FRAME_FORMAT: FrameFormat =
    FrameFormat { framer, read, content: FrameContent::Record, trailing_space: TrailingSpace::Trimmed };

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(SyslogFramer { limit, scanned: 0, first_end: None })
}

/// Decodes a message.
pub(super) fn read(frame: &[u8], arrived: DateTime<FixedOffset>) -> Result<Record<'_>, String> {
    syslog::read(frame, arrived).map_err(|error| error.to_string())
}

struct SyslogFramer {
    limit: usize,
    scanned: usize,
    /// The byte that ended the first frame; `None` before that.
    first_end: Option<u8>,
}

impl Framer for SyslogFramer {
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError> {
        check_length(self.limit, lines(bytes, &mut self.scanned, &mut self.first_end), bytes)
    }

    /// A pause ends a complete line, unless the sender ends its messages with NUL.
    fn ends_at_pause(&self, bytes: &[u8]) -> bool {
        self.first_end != Some(0) && bytes.ends_with(b"\n")
    }

    fn last_frame(&mut self, bytes: &[u8], ended: InputEnd) -> Option<FrameScan> {
        if ended != InputEnd::Stream && !bytes.ends_with(b"\n") {
            return None;
        }
        self.scanned = 0;
        self.first_end.get_or_insert(b'\n');
        let to = bytes.len() - usize::from(bytes.ends_with(b"\n"));
        Some(FrameScan::Frame { from: 0, to, next: bytes.len() })
    }
}

/// Finds the end of a syslog message. If the first frame ended with NUL, only NUL ends a frame. Otherwise a LF also
/// ends a frame if `<` and a digit follow it. A NUL then ends a frame too, but later frames may still end with LF.
fn lines(bytes: &[u8], scanned: &mut usize, first_end: &mut Option<u8>) -> FrameScan {
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
                    return FrameScan::Incomplete;
                }
            },
        };
        if is_end {
            first_end.get_or_insert(bytes[at]);
            *scanned = 0;
            return FrameScan::Frame { from: 0, to: at, next: at + 1 };
        }
        at += 1;
    }
    *scanned = bytes.len();
    FrameScan::Incomplete
}

struct SyslogDatagrams;

impl DatagramUnpacker for SyslogDatagrams {
    fn take(&mut self, datagram: &[u8], _: SocketAddr, _: Instant, each: FrameCallback<'_>) {
        each(Ok(datagram.strip_suffix(b"\0").unwrap_or(datagram)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::framer_check::{LIMIT, check};

    #[test]
    fn syslog_ends_at_a_line_end_before_the_next_message() {
        check(
            framer,
            b"<14>one\n<14>two\n  at line 2\n<html>\n<9>three\n",
            &[b"<14>one", b"<14>two\n  at line 2\n<html>"],
            b"<9>three\n",
        );
    }

    #[test]
    fn syslog_ends_at_nul_once_the_sender_has_used_one() {
        check(framer, b"<14>a\nb\0<14>c\n<14>d\0<", &[b"<14>a\nb", b"<14>c\n<14>d"], b"<");
    }

    #[test]
    fn a_nul_among_lines_of_syslog_ends_its_own_frame_alone() {
        check(
            framer,
            b"<14>one\n<14>t\0wo\n<14>three\n<14>four\n",
            &[b"<14>one", b"<14>t", b"wo", b"<14>three"],
            b"<14>four\n",
        );

        let mut framer = framer(LIMIT);
        let line = b"<14>text\n";
        framer.last_frame(line, InputEnd::Pause).unwrap();
        assert_eq!(FrameScan::Frame { from: 0, to: 1, next: 2 }, framer.scan(b"a\0").unwrap());
        assert!(framer.ends_at_pause(line));
    }

    #[test]
    fn silence_ends_a_line_of_syslog_and_the_end_of_the_stream_ends_more() {
        let mut framer = framer(LIMIT);
        let line = b"<14>text\n";
        assert_eq!(Ok(FrameScan::Incomplete), framer.scan(line));
        assert!(framer.ends_at_pause(line) && !framer.ends_at_pause(b"<14>te"));
        assert_eq!(Some(FrameScan::Frame { from: 0, to: 8, next: 9 }), framer.last_frame(line, InputEnd::Pause));
        assert_eq!(None, framer.last_frame(b"<14>te", InputEnd::Pause));
        assert_eq!(Some(FrameScan::Frame { from: 0, to: 6, next: 6 }), framer.last_frame(b"<14>te", InputEnd::Stream));
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused() {
        let mut framer = framer(LIMIT);
        assert_eq!(Ok(FrameScan::Incomplete), framer.scan(&[b'{'; 64]));
        assert_eq!(Err(FrameError::TooLong(64)), framer.scan(&[b'{'; 65]));
    }
}
