//! JSON values that end with LF or NUL, including GELF. GELF can also be sent in datagrams, chunked and compressed.

use std::net::SocketAddr;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};

use crate::connection::admission::TrafficKind;
use crate::connection::framing::{FrameError, FrameScan, Framer, InputEnd, check_length};
use crate::connection::protocol::{
    ConnectionKind, DatagramUnpacker, Datagrams, FrameCallback, FrameFormat, Protocol, TrailingSpace,
};
use crate::decoders::gelf_chunks::{ChunkLimits, GelfChunks};
use crate::decoders::{gelf, json_line};
use crate::record::Record;

/// The declaration of JSON and GELF; see the module documentation.
pub const JSON: Protocol = Protocol {
    name: "json",
    senders: "JSON lines, GELF",
    first_bytes: &[(b'{', b'{')],
    tie_breaker: None,
    // A datagram that begins with `{` is JSON. The other first bytes are chunked and compressed GELF messages.
    datagrams: Some(Datagrams {
        begins: &[(b'{', b'{'), (0x1E, 0x1F), (0x78, 0x78)],
        open: || Box::new(GelfChunks::new(ChunkLimits::default())),
    }),
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Frames(FRAME_FORMAT),
};

/// The format of the frames. HTTP bodies contain the same frames.
pub const FRAME_FORMAT: FrameFormat = FrameFormat { framer, read, trailing_space: TrailingSpace::Trimmed };

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(JsonFramer { limit, json: JsonScan::default() })
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
}

impl Framer for JsonFramer {
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError> {
        check_length(self.limit, self.json.step(bytes), bytes)
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
    /// Finds the end of the frame: the first NUL, the first LF outside a value, or the first LF in a string. An object
    /// that begins a line ends the frame too, if no value can be there. Then the earlier line was cut off.
    fn step(&mut self, bytes: &[u8]) -> FrameScan {
        while let Some(byte) = bytes.get(self.scanned) {
            match (byte, self.in_text) {
                // A NUL is never valid in JSON, and a LF is not valid in a string. End the frame here, so that the next
                // frame can be read.
                (0, _) | (b'\n', true) => return self.end(),
                (_, true) if self.escaped => self.escaped = false,
                (b'\\', true) => self.escaped = true,
                (b'"', _) => self.in_text = !self.in_text,
                (b'{', false) if self.is_cut_off(bytes) => {
                    self.scanned -= 1;
                    return self.end();
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
                _ => {}
            }
            if !self.in_text && !byte.is_ascii_whitespace() {
                self.last = *byte;
            }
            self.scanned += 1;
        }
        FrameScan::Incomplete
    }

    /// True if the next byte begins a line, in an object or list that has no place for a value here.
    fn is_cut_off(&self, bytes: &[u8]) -> bool {
        let begins_line = self.scanned > 0 && bytes[self.scanned - 1] == b'\n';
        let has_place = match self.objects & 1 {
            1 => self.last == b':',
            _ => matches!(self.last, b'[' | b','),
        };
        begins_line && self.depth > 0 && !has_place
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
                b"[{\"e\":1}",
                b"{\"f\":1}",
                b"[{},\n{}",
                b"{\"g\":1}",
            ],
            b"{",
        );
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
