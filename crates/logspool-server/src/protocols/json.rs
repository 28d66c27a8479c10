//! JSON values that end with LF or NUL, including GELF. GELF can also be sent in datagrams, chunked and compressed.

use std::net::SocketAddr;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};

use crate::connection::admission::TrafficKind;
use crate::connection::framing::{FrameError, FrameScan, Framer, InputEnd, check_length};
use crate::connection::protocol::{
    ConnectionKind, DatagramUnpacker, Datagrams, FrameCallback, FrameContent, FrameFormat, Protocol, TieBreaker,
    TrailingSpace,
};
use crate::decoders::gelf_chunks::{ChunkLimits, GelfChunks};
use crate::decoders::{gelf, json_line, json_list};
use crate::record::Record;

/// The declaration of JSON and GELF; see the module documentation.
pub const JSON: Protocol = Protocol {
    name: "json",
    senders: "JSON lines, GELF",
    first_bytes: &[(b'{', b'{'), (b'[', b'[')],
    tie_breaker: Some(TieBreaker {
        other: "text",
        decide: |bytes| if bytes[0] == b'{' { Some(true) } else { json_list::begins(bytes) },
    }),
    // A datagram that begins with `{` is JSON. The other first bytes are chunked and compressed GELF messages.
    datagrams: Some(Datagrams {
        begins: &[(b'{', b'{'), (0x1E, 0x1F), (0x78, 0x78)],
        open: || Box::new(GelfChunks::new(ChunkLimits::default())),
    }),
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Frames(FRAME_FORMAT),
};

/// The format of the frames. HTTP bodies contain the same frames.
pub const FRAME_FORMAT: FrameFormat =
    FrameFormat { framer, read, content: FrameContent::Json, trailing_space: TrailingSpace::Trimmed };

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(JsonFramer { limit, json: JsonScan::default(), list: ListState::Outside })
}

/// Decodes a JSON line. It is decoded as GELF if it has a key that only GELF has: not all senders send the version.
fn read(frame: &[u8], _: DateTime<FixedOffset>) -> Result<Record<'_>, String> {
    // syslog-ng ends each datagram of GELF with NUL.
    let end = frame.iter().rposition(|byte| *byte != 0 && !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let pairs = json_line::object(&frame[..end]).map_err(|error| error.to_string())?;
    // Refuse an empty object: its record would have no information, and would take a hundred times as many bytes.
    if pairs.is_empty() {
        return Err("the line is an empty JSON object".to_owned());
    }
    let is_gelf = pairs.iter().any(|(name, _)| name == "short_message");
    Ok(if is_gelf { gelf::from_pairs(pairs) } else { json_line::from_pairs(pairs) })
}

struct JsonFramer {
    limit: usize,
    json: JsonScan,
    list: ListState,
}

/// Whether the next frame is an object of a list. Then a comma ends it, or the end of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListState {
    Outside,
    Inside,
}

impl JsonFramer {
    /// Finds a mark of a list at the start of a frame. `None`: there is none.
    fn list_mark(&mut self, bytes: &[u8]) -> Option<FrameScan> {
        let blank = match self.list {
            ListState::Outside => 0,
            ListState::Inside => bytes.len() - bytes.trim_ascii_start().len(),
        };
        let rest = &bytes[blank..];
        let passed = |bytes| Some(FrameScan::Frame { from: 0, to: 0, next: bytes });
        let Some(first) = rest.first() else {
            // The blanks between objects are no frame.
            return (blank > 0).then_some(FrameScan::Incomplete);
        };
        match (self.list, first) {
            (_, b'[') => match json_list::begins(rest) {
                Some(true) => {
                    self.list = ListState::Inside;
                    passed(blank + 1)
                }
                None => Some(FrameScan::Incomplete),
                Some(false) => None,
            },
            (ListState::Inside, b']') => {
                self.list = ListState::Outside;
                passed(blank + 1)
            }
            (ListState::Inside, b',') => passed(blank + 1),
            _ if blank > 0 => passed(blank),
            _ => None,
        }
    }
}

impl Framer for JsonFramer {
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError> {
        let mark = if self.json.scanned == 0 { self.list_mark(bytes) } else { None };
        let step = mark.unwrap_or_else(|| self.json.step(bytes, self.list));
        check_length(self.limit, step, bytes)
    }

    fn last_frame(&mut self, bytes: &[u8], ended: InputEnd) -> Option<FrameScan> {
        if ended != InputEnd::Stream {
            return None;
        }
        self.json = JsonScan::default();
        Some(FrameScan::Frame { from: 0, to: bytes.len(), next: bytes.len() })
    }
}

/// Progress of the scan through a JSON value.
#[derive(Debug, Default, Clone, Copy)]
struct JsonScan {
    scanned: usize,
    depth: usize,
    /// One bit for each open value, the lowest for the innermost one: 1 for an object, 0 for a list.
    objects: u128,
    /// The last byte outside strings that is not white space.
    last: u8,
    in_text: bool,
    escaped: bool,
}

impl JsonScan {
    /// Finds the end of the frame: the first NUL, the first LF outside a value, or the first LF in a string. A line
    /// that cannot go on with the value ends the frame too: the earlier line was cut off. So does an object of a list.
    fn step(&mut self, bytes: &[u8], list: ListState) -> FrameScan {
        while let Some(byte) = bytes.get(self.scanned) {
            match (byte, self.in_text) {
                // A NUL is never valid in JSON, and a LF is not valid in a string. End the frame here, so that the next
                // frame can be read.
                (0, _) | (b'\n', true) => return self.end(),
                (_, true) if self.escaped => self.escaped = false,
                (b'\\', true) => self.escaped = true,
                (b'"', _) => self.in_text = !self.in_text,
                (b'{', false) if list == ListState::Inside && self.is_after_comma_in_object(bytes) => {
                    return self.end_before(self.scanned - 1);
                }
                (b',' | b']', false) if self.depth == 0 && list == ListState::Inside => {
                    return self.end_before(self.scanned);
                }
                (b'{' | b'[', false) => {
                    self.depth += 1;
                    self.objects = self.objects << 1 | u128::from(*byte == b'{');
                }
                (b'}' | b']', false) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.objects >>= 1;
                }
                (b'\n', false) if self.depth == 0 => return self.end(),
                (b'\n', false) => match bytes.get(self.scanned + 1) {
                    None => return FrameScan::Incomplete,
                    Some(next) if !self.can_go_on_with(*next) => return self.end(),
                    Some(_) => {}
                },
                _ => {}
            }
            if !self.in_text && !byte.is_ascii_whitespace() {
                self.last = *byte;
            }
            self.scanned += 1;
        }
        FrameScan::Incomplete
    }

    /// True if the open object or list can go on with a line that begins with this byte.
    fn can_go_on_with(&self, byte: u8) -> bool {
        let has_place = match self.objects & 1 {
            1 => self.last == b':',
            _ => matches!(self.last, b'[' | b','),
        };
        match byte {
            b'}' | b']' | b',' | b':' | b'"' | b' ' | b'\t' | b'\r' | b'\n' | 0 => true,
            // A number or a word. A line of text may begin like one.
            b'{' | b'[' | b'+' | b'-' | b'.' | b'0'..=b'9' | b't' | b'f' | b'n' | b'N' | b'i' | b'I' => has_place,
            _ => false,
        }
    }

    /// True if an object of a list begins where only a name of a value can be.
    fn is_after_comma_in_object(&self, bytes: &[u8]) -> bool {
        self.objects & 1 == 1 && self.last == b',' && self.scanned > 0 && bytes[self.scanned - 1] == b','
    }

    /// Ends the frame before a byte that is not a part of it.
    fn end_before(&mut self, to: usize) -> FrameScan {
        *self = Self::default();
        FrameScan::Frame { from: 0, to, next: to }
    }

    fn end(&mut self) -> FrameScan {
        let to = self.scanned;
        *self = Self::default();
        FrameScan::Frame { from: 0, to, next: to + 1 }
    }
}

impl DatagramUnpacker for GelfChunks {
    fn take(&mut self, datagram: &[u8], from: SocketAddr, now: Instant, each: FrameCallback<'_>) {
        match Self::take(self, datagram, from, now) {
            Ok(Some(message)) => each(Ok(&message)),
            Ok(None) => {}
            Err(why) => each(Err(&why.to_string())),
        }
    }

    fn next_expiry(&self) -> Option<Instant> {
        Self::next_expiry(self)
    }

    fn expire(&mut self, now: Instant) {
        Self::expire(self, now);
    }

    fn end(&mut self) {
        Self::end(self);
    }

    fn dropped(&self) -> u64 {
        self.dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::framer_check::{LIMIT, check};

    #[test]
    fn json_ends_at_a_line_end_or_nul_outside_a_value() {
        check(
            framer,
            b"{\"a\":\"}\\\"{\"}\n{\"open\n{\n \"b\": [1,\n2]\n}\0{\"c\":1}\r\n{",
            &[b"{\"a\":\"}\\\"{\"}", b"{\"open", b"{\n \"b\": [1,\n2]\n}", b"{\"c\":1}\r"],
            b"{",
        );
    }

    #[test]
    fn a_line_that_is_cut_off_ends_at_its_line_end() {
        check(
            framer,
            b"{\"m\":1,\n{\"a\":\n{\"b\":[\n{}]}}\n{\n{\"c\":{\"d\":2\n{}\n[{\"e\":1}\n{\"f\":1}\n[{},\n{}\n{\"g\":1}\n{",
            &[
                b"{\"m\":1,",
                b"{\"a\":\n{\"b\":[\n{}]}}",
                b"{",
                b"{\"c\":{\"d\":2",
                b"{}",
                b"",
                b"{\"e\":1}",
                b"{\"f\":1}",
                b"",
                b"{}",
                b"",
                b"",
                b"{}",
                b"{\"g\":1}",
            ],
            b"{",
        );
    }

    #[test]
    fn lines_of_text_end_a_line_that_is_cut_off() {
        check(
            framer,
            b"{\"m\":1,\nplain text\n2026-11-28 {\nT\n{\"b\":[1,\n2,\n 3]}\n",
            &[b"{\"m\":1,", b"plain text", b"2026-11-28 {", b"T", b"{\"b\":[1,\n2,\n 3]}"],
            b"",
        );
    }

    #[test]
    fn the_objects_of_a_list_are_frames() {
        let cases: &[(&[u8], &[&[u8]])] = &[
            (b"[{\"a\":[1,{}]} ,\n {\"b\":\"],\"}]\n", &[b"{\"a\":[1,{}]} ", b"{\"b\":\"],\"}"]),
            (b"[{\"a\":1}][{\"b\":2},3]{\"c\":4}\n", &[b"{\"a\":1}", b"{\"b\":2}", b"3", b"{\"c\":4}"]),
            (b"[{\"a\":{},{\"b\":2},{\"c\":3}]\n", &[b"{\"a\":{}", b"{\"b\":2}", b"{\"c\":3}"]),
            (b"[{\"a\":bad},{\"b\":2}]\n", &[b"{\"a\":bad}", b"{\"b\":2}"]),
            (b"[{\"a\":1},\n{\"b\":2}\n{\"c\":3}\n", &[b"{\"a\":1}", b"{\"b\":2}", b"{\"c\":3}"]),
        ];
        for (stream, expected) in cases {
            for piece in 1..=stream.len() {
                let (mut framer, mut found, mut waiting) = (framer(LIMIT), Vec::new(), Vec::new());
                for piece in stream.chunks(piece) {
                    waiting.extend_from_slice(piece);
                    while let FrameScan::Frame { from, to, next } = framer.scan(&waiting).unwrap() {
                        found.push(waiting[from..to].to_vec());
                        waiting.drain(..next);
                    }
                }
                found.retain(|frame| !frame.is_empty());
                assert_eq!(*expected, found, "{} in pieces of {piece}", String::from_utf8_lossy(stream));
            }
        }
    }

    #[test]
    fn the_end_of_the_stream_ends_a_value() {
        let mut framer = framer(LIMIT);
        assert_eq!(Ok(FrameScan::Incomplete), framer.scan(b"{}"));
        assert_eq!(None, framer.last_frame(b"{}", InputEnd::Pause));
        assert_eq!(Some(FrameScan::Frame { from: 0, to: 2, next: 2 }), framer.last_frame(b"{}", InputEnd::Stream));
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused() {
        let mut framer = framer(LIMIT);
        assert_eq!(Ok(FrameScan::Incomplete), framer.scan(&[b'{'; 64]));
        assert_eq!(Err(FrameError::TooLong(64)), framer.scan(&[b'{'; 65]));
    }
}
