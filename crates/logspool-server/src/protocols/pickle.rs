//! A length of four bytes, then a pickle: `logging.handlers.SocketHandler` and `DatagramHandler`.

use std::net::SocketAddr;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};

use crate::decoders::{log_record, pickle};
use crate::protocol::{Datagrams, Each, Frames, Protocol, Space, Speech, Unpack};
use crate::record::Record;
use crate::sources::admission::Door;
use crate::sources::framing::{FrameError, Framer, Step};

/// See the file head.
pub const PICKLE: Protocol = Protocol {
    name: "pickle",
    senders: "Python's `SocketHandler` and `DatagramHandler`",
    // The length of a frame within the limit begins with a zero byte.
    begins: &[(0, 0)],
    tie: None,
    datagrams: Some(Datagrams { begins: &[(0, 0)], open: || Box::new(WholeDatagrams) }),
    door: Door::Records,
    speech: Speech::Frames(Frames { framer, read, space: Space::Kept }),
};

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(Pickles { limit })
}

fn read(frame: &[u8], _: DateTime<FixedOffset>) -> Result<Record<'_>, String> {
    log_record::read(frame, pickle::PickleLimits::default()).map_err(|error| error.to_string())
}

struct Pickles {
    limit: usize,
}

impl Framer for Pickles {
    fn step(&mut self, bytes: &[u8]) -> Result<Step, FrameError> {
        pickle(bytes, self.limit)
    }
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

/// `DatagramHandler` sends the same format as `SocketHandler`, including the length.
struct WholeDatagrams;

impl Unpack for WholeDatagrams {
    fn take(&mut self, datagram: &[u8], _: SocketAddr, _: Instant, each: Each<'_>) {
        each(match datagram.split_first_chunk::<4>() {
            Some((length, frame)) if u32::from_be_bytes(*length) as usize == frame.len() => Ok(frame),
            _ => Err("the length in its first four bytes is not that of the rest"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::framed::{LIMIT, check};

    #[test]
    fn a_pickle_ends_where_its_length_says() {
        check(framer, b"\0\0\0\x03abc\0\0\0\x01d\0\0\0\x01", &[b"abc", b"d"], b"\0\0\0\x01");
    }

    #[test]
    fn a_length_of_zero_or_beyond_the_limit_is_refused_before_anything_is_kept() {
        for (expected, stream) in [
            (FrameError::Length, &[0; 64][..]),
            (FrameError::TooLong(LIMIT), b"\0\0\0\x41"),
            (FrameError::TooLong(LIMIT), b"\x7F\xFF\xFF\xFF"),
        ] {
            assert_eq!(Err(expected), framer(LIMIT).step(stream));
        }
        assert_eq!(None, framer(LIMIT).rest(b"\0", crate::sources::framing::Ended::Stream));
    }
}
