//! JSON values that end in LF or NUL, including GELF. GELF also has datagrams, chunked and compressed.

use std::net::SocketAddr;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};

use crate::decoders::gelf_chunks::{ChunkLimits, GelfChunks};
use crate::decoders::{gelf, json_line};
use crate::protocol::{Datagrams, Each, Frames, Protocol, Space, Speech, Unpack};
use crate::record::Record;
use crate::sources::admission::Door;
use crate::sources::framing::{Ended, FrameError, Framer, Step, within};

/// See the file head.
pub const JSON: Protocol = Protocol {
    name: "json",
    senders: "JSON lines, GELF",
    begins: &[(b'{', b'{')],
    tie: None,
    // Chunks and compressed messages are GELF.
    datagrams: Some(Datagrams {
        begins: &[(b'{', b'{'), (0x1E, 0x1F), (0x78, 0x78)],
        open: || Box::new(GelfChunks::new(ChunkLimits::default())),
    }),
    door: Door::Records,
    speech: Speech::Frames(FRAMES),
};

/// The frames, which HTTP bodies contain too.
pub const FRAMES: Frames = Frames { framer, read, space: Space::Trimmed };

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(Values { limit, json: Json::default() })
}

/// Reads a JSON line. It is GELF if it has the keys that GELF requires.
fn read(frame: &[u8], _: DateTime<FixedOffset>) -> Result<Record<'_>, String> {
    let pairs = json_line::object(frame).map_err(|error| error.to_string())?;
    // An empty record has no information, and takes a hundred times its bytes.
    if pairs.is_empty() {
        return Err("the line holds an empty JSON object".to_owned());
    }
    let has = |key: &str| pairs.iter().any(|(name, _)| name == key);
    let is_gelf = has("version") && has("short_message");
    Ok(if is_gelf { gelf::from_pairs(pairs) } else { json_line::from_pairs(pairs) })
}

struct Values {
    limit: usize,
    json: Json,
}

impl Framer for Values {
    fn step(&mut self, bytes: &[u8]) -> Result<Step, FrameError> {
        within(self.limit, self.json.step(bytes), bytes)
    }

    fn rest(&mut self, bytes: &[u8], ended: Ended) -> Option<Step> {
        if ended != Ended::Stream {
            return None;
        }
        self.json = Json::default();
        Some(Step::Frame { from: 0, to: bytes.len(), next: bytes.len() })
    }
}

/// Progress in a JSON value.
#[derive(Debug, Default, Clone, Copy)]
struct Json {
    scanned: usize,
    depth: usize,
    in_text: bool,
    escaped: bool,
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

impl Unpack for GelfChunks {
    fn take(&mut self, datagram: &[u8], from: SocketAddr, now: Instant, each: Each<'_>) {
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
        self.given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::framed::{LIMIT, check};

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
    fn the_end_of_the_stream_ends_a_value() {
        let mut framer = framer(LIMIT);
        assert_eq!(Ok(Step::Incomplete), framer.step(b"{}"));
        assert_eq!(None, framer.rest(b"{}", Ended::Burst));
        assert_eq!(Some(Step::Frame { from: 0, to: 2, next: 2 }), framer.rest(b"{}", Ended::Stream));
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused() {
        let mut framer = framer(LIMIT);
        assert_eq!(Ok(Step::Incomplete), framer.step(&[b'{'; 64]));
        assert_eq!(Err(FrameError::TooLong(64)), framer.step(&[b'{'; 65]));
    }
}
