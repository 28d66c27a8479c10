//! The protocol of `logging.handlers.SocketHandler` and `DatagramHandler`: a length of four bytes, then a pickle.

use std::net::SocketAddr;
use std::time::Instant;

use chrono::{DateTime, FixedOffset};

use crate::connection::admission::TrafficKind;
use crate::connection::framing::{FrameError, FrameScan, Framer};
use crate::connection::protocol::{
    ConnectionKind, DatagramUnpacker, Datagrams, FrameCallback, FrameContent, FrameFormat, Protocol, TrailingSpace,
};
use crate::decoders::{log_record, pickle};
use crate::record::Record;

/// The declaration of the pickle protocol; see the module documentation.
pub const PICKLE: Protocol = Protocol {
    name: "pickle",
    senders: "Python's `SocketHandler` and `DatagramHandler`",
    // The length is big-endian, so the length of a frame within the limit begins with a zero byte.
    first_bytes: &[(0, 0)],
    tie_breaker: None,
    datagrams: Some(Datagrams { begins: &[(0, 0)], open: || Box::new(PickleDatagrams) }),
    traffic: TrafficKind::Records,
    connections: ConnectionKind::Frames(FrameFormat {
        framer,
        read,
        content: FrameContent::Record,
        trailing_space: TrailingSpace::Kept,
    }),
};

fn framer(limit: usize) -> Box<dyn Framer> {
    Box::new(PickleFramer { limit })
}

fn read(frame: &[u8], _: DateTime<FixedOffset>) -> Result<Record<'_>, String> {
    log_record::read(frame, pickle::PickleLimits::default()).map_err(|error| error.to_string())
}

struct PickleFramer {
    limit: usize,
}

impl Framer for PickleFramer {
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError> {
        pickle(bytes, self.limit)
    }
}

fn pickle(bytes: &[u8], limit: usize) -> Result<FrameScan, FrameError> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(FrameScan::Incomplete) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > limit {
        return Err(FrameError::TooLong(limit));
    }
    // A pickle is never empty. If a length of zero were accepted, a peer that sends zeros would create a record for
    // every four bytes.
    if length == 0 {
        return Err(FrameError::Length);
    }
    let to = 4 + length;
    Ok(if bytes.len() < to { FrameScan::Incomplete } else { FrameScan::Frame { from: 4, to, next: to } })
}

/// Finds the pickle in a datagram. `DatagramHandler` sends the same format as `SocketHandler`, including the length.
struct PickleDatagrams;

impl DatagramUnpacker for PickleDatagrams {
    fn take(&mut self, datagram: &[u8], _: SocketAddr, _: Instant, each: FrameCallback<'_>) {
        each(match datagram.split_first_chunk::<4>() {
            Some((length, frame)) if u32::from_be_bytes(*length) as usize == frame.len() => Ok(frame),
            _ => Err("the length in its first four bytes does not match the rest"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::framer_check::{LIMIT, check};

    #[test]
    fn a_pickle_ends_after_its_length() {
        check(framer, b"\0\0\0\x03abc\0\0\0\x01d\0\0\0\x01", &[b"abc", b"d"], b"\0\0\0\x01");
    }

    #[test]
    fn a_length_of_zero_or_beyond_the_limit_is_refused_before_anything_is_kept() {
        for (expected, stream) in [
            (FrameError::Length, &[0; 64][..]),
            (FrameError::TooLong(LIMIT), b"\0\0\0\x41"),
            (FrameError::TooLong(LIMIT), b"\x7F\xFF\xFF\xFF"),
        ] {
            assert_eq!(Err(expected), framer(LIMIT).scan(stream));
        }
        assert_eq!(None, framer(LIMIT).last_frame(b"\0", crate::connection::framing::InputEnd::Stream));
    }
}
