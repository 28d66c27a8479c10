//! Lines of text without any protocol, as `nc` and shell scripts send them. Each line is a record.

use chrono::{DateTime, FixedOffset};

use super::{json, syslog};
use crate::connection::admission::TrafficKind;
use crate::connection::framing::{FrameError, FrameScan, Framer, InputEnd, check_length};
use crate::connection::protocol::{ConnectionKind, FrameContent, FrameFormat, Protocol, TrailingSpace};
use crate::decoders::line_parts;
use crate::record::Record;

/// The declaration of lines of text; see the module documentation.
pub const TEXT: Protocol = Protocol {
    name: "text",
    senders: "lines of text",
    // Printable ASCII without the first bytes of other protocols, and the first bytes of UTF-8. `is_text` adds lines
    // that begin with a digit or a capital letter.
    first_bytes: &[(b'!', b'0'), (b':', b';'), (b'=', b'@'), (b'[', b'z'), (b'|', b'~'), (0xC2, 0xDB), (0xE0, 0xF4)],
    tie_breaker: None,
    datagrams: None,
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Frames(FrameFormat {
        framer,
        read,
        content: FrameContent::Text,
        trailing_space: TrailingSpace::Trimmed,
    }),
};

/// The methods of HTTP, with the preface of HTTP/2.
const METHODS: [&[u8]; 10] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ", b"CONNECT ", b"PRI "];

/// True if a connection begins with a line of text, although HTTP or counted octets begin with the same byte. `None`:
/// more bytes are needed.
pub fn is_text(bytes: &[u8]) -> Option<bool> {
    match bytes.first()? {
        b'A'..=b'Z' => is_none_of(bytes, &METHODS),
        b'1'..=b'9' => {
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match bytes.get(digits) {
                // More than nine digits are a length above any limit, which the framer refuses.
                None if digits > 9 => Some(false),
                None => None,
                Some(b' ') if bytes.len() == digits + 1 => None,
                // A length before a message of syslog, or the first message of RELP.
                Some(b' ') => is_none_of(&bytes[digits + 1..], &[b"<", b"open "]),
                Some(_) => Some(true),
            }
        }
        _ => Some(false),
    }
}

/// True if bytes begin with none of the words; `None` if they are the beginning of one.
fn is_none_of(bytes: &[u8], words: &[&[u8]]) -> Option<bool> {
    if words.iter().any(|word| bytes.starts_with(word)) {
        return Some(false);
    }
    (!words.iter().any(|word| word.starts_with(bytes))).then_some(true)
}

/// Number of bytes before the first byte of a protocol: a byte order mark, spaces and line ends. `None`: more bytes are
/// needed.
pub fn blank_bytes(bytes: &[u8]) -> Option<usize> {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    let mark = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
    let rest = &bytes[mark..];
    let blank = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))?;
    let is_part_of_mark = mark == 0 && blank == 0 && MARK.starts_with(rest);
    (!is_part_of_mark).then_some(mark + blank)
}

/// A framer for lines. A line ends at a line feed or NUL.
pub fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(LineFramer { limit, scanned: 0 })
}

/// Reads a line. JSON and syslog between lines of text are read as such.
fn read(line: &[u8], arrived: DateTime<FixedOffset>) -> Result<Record<'_>, String> {
    // A part of a line may end with a space.
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let read = match line.first() {
        Some(b'{') => (json::FRAME_FORMAT.read)(line, arrived).ok(),
        Some(b'<') => syslog::read(line, arrived).ok(),
        _ => None,
    };
    Ok(read.unwrap_or_else(|| line_parts::read_text(line)))
}

struct LineFramer {
    limit: usize,
    scanned: usize,
}

impl Framer for LineFramer {
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError> {
        let end = memchr::memchr2(b'\n', b'\0', &bytes[self.scanned..]).map(|ahead| self.scanned + ahead);
        self.scanned = if end.is_some() { 0 } else { bytes.len() };
        let step = end.map_or(FrameScan::Incomplete, |end| FrameScan::Frame { from: 0, to: end, next: end + 1 });
        check_length(self.limit, step, bytes)
    }

    fn last_frame(&mut self, bytes: &[u8], ended: InputEnd) -> Option<FrameScan> {
        (ended == InputEnd::Stream).then_some(FrameScan::Frame { from: 0, to: bytes.len(), next: bytes.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::framer_check::check;

    #[test]
    fn lines_end_at_a_line_feed_or_nul() {
        check(framer, b"one\n  two\r\n\nthree\0four", &[b"one", b"  two\r", b"", b"three"], b"four");
    }

    #[test]
    fn text_is_distinguished_from_http_and_counted_octets() {
        for text in ["Hello", "GETTING there", "2026-11-22 10:00", "7 items", "12 monkeys", "1 opener"] {
            assert_eq!(Some(true), is_text(text.as_bytes()), "{text}");
        }
        for other in ["GET / HTTP/1.1", "PRI * HTTP/2.0", "12 <14>text", "1 open 0", "9999999999", "{", "<14>"] {
            assert_eq!(Some(false), is_text(other.as_bytes()), "{other}");
        }
        for more in ["", "G", "GET", "12", "12 ", "1 op"] {
            assert_eq!(None, is_text(more.as_bytes()), "{more}");
        }
    }

    #[test]
    fn a_byte_order_mark_and_white_space_are_no_part_of_a_protocol() {
        assert_eq!(Some(0), blank_bytes(b"x"));
        assert_eq!(Some(6), blank_bytes(b"\xEF\xBB\xBF \r\n{"));
        assert_eq!(Some(0), blank_bytes(b"\xEF\xBD\x81"));
        for more in [&b""[..], b" \n", b"\xEF", b"\xEF\xBB", b"\xEF\xBB\xBF"] {
            assert_eq!(None, blank_bytes(more), "{more:?}");
        }
    }
}
