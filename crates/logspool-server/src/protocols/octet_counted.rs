//! Syslog messages with octet counting: a decimal length comes before each message (RFC 6587, 3.4.1).

use super::syslog;
use crate::connection::admission::TrafficKind;
use crate::connection::framing::{FrameError, FrameScan, Framer, InputEnd, check_length};
use crate::connection::protocol::{ConnectionKind, FrameContent, FrameFormat, Protocol, TrailingSpace};

/// The declaration of syslog with octet counting; see the module documentation.
pub const OCTET_COUNTED: Protocol = Protocol {
    name: "syslog-octets",
    senders: "rsyslog and syslog-ng with counted octets",
    first_bytes: &[(b'1', b'9')],
    tie_breaker: None,
    datagrams: None,
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Frames(FrameFormat {
        framer,
        read: syslog::read,
        content: FrameContent::Record,
        trailing_space: TrailingSpace::Trimmed,
    }),
};

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(OctetCountedFramer { limit })
}

struct OctetCountedFramer {
    limit: usize,
}

impl Framer for OctetCountedFramer {
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError> {
        octet_counted(bytes, self.limit)
    }

    fn last_frame(&mut self, bytes: &[u8], ended: InputEnd) -> Option<FrameScan> {
        let is_line = ended == InputEnd::Stream && bytes.starts_with(b"<");
        is_line.then_some(FrameScan::Frame { from: 0, to: bytes.len(), next: bytes.len() })
    }
}

fn octet_counted(bytes: &[u8], limit: usize) -> Result<FrameScan, FrameError> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // More than nine digits would be a length above any limit.
    if digits > 9 {
        return Err(FrameError::TooLong(limit));
    }
    let length = match bytes.get(digits) {
        None => return Ok(FrameScan::Incomplete),
        // Some senders add a line end or NUL after a message. Treat it as an empty frame.
        Some(b'\n' | b'\r' | b'\0') if digits == 0 => return Ok(FrameScan::Frame { from: 0, to: 0, next: 1 }),
        // A relay may mix messages with and without a length. A message without one ends at a line feed or NUL.
        Some(b'<') if digits == 0 => {
            let end = memchr::memchr2(b'\n', b'\0', bytes);
            let step = end.map_or(FrameScan::Incomplete, |end| FrameScan::Frame { from: 0, to: end, next: end + 1 });
            return check_length(limit, step, bytes);
        }
        Some(b' ') if digits > 0 => {
            bytes[..digits].iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
        }
        Some(_) => return Err(FrameError::Length),
    };
    if length > limit {
        return Err(FrameError::TooLong(limit));
    }
    // Refuse a length of zero: by RFC 6587, 3.4.1, a length does not begin with a zero.
    if length == 0 {
        return Err(FrameError::Length);
    }
    let from = digits + 1;
    let to = from + length;
    Ok(if bytes.len() < to { FrameScan::Incomplete } else { FrameScan::Frame { from, to, next: to } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::framer_check::{LIMIT, check};

    #[test]
    fn octets_are_counted() {
        check(framer, b"6 <14>a\n8 <14>b\nc\n\n5 <14>d", &[b"<14>a\n", b"<14>b\nc\n", b"", b"<14>d"], b"");
        check(
            framer,
            b"6 <14>a\n\r\n6 <14>bc\0\0<14>d\n7 <14>e\nf\n<14>g\0<14>",
            &[b"<14>a\n", b"", b"", b"<14>bc", b"", b"", b"<14>d", b"<14>e\nf", b"", b"<14>g"],
            b"<14>",
        );
        assert_eq!(Err(FrameError::Length), framer(LIMIT).scan(b"x"));
    }

    #[test]
    fn a_length_of_zero_or_beyond_the_limit_is_refused_before_anything_is_kept() {
        for (expected, stream) in [
            (FrameError::Length, &b"0 0 0 "[..]),
            (FrameError::TooLong(LIMIT), b"65 "),
            (FrameError::TooLong(LIMIT), b"9999999999"),
        ] {
            assert_eq!(Err(expected), framer(LIMIT).scan(stream));
        }
    }
}
