//! A frame: one batch in a segment, with everything that recovery needs to trust it.
//!
//! All words are little-endian. A frame begins at a multiple of 8 bytes, directly after the previous one:
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | bytes of the payload; 0: no frame was ever written here |
//! | 4..8 | checksum of the head: masked CRC32C of the segment's id, bytes 0..4 and bytes 8..40 |
//! | 8..16 | number of the first record |
//! | 16..24 | the spool's next number when the frame was made; numbers from it up to the first were left out on purpose |
//! | 24..28 | records |
//! | 28..32 | checksum of the payload: masked CRC32C of the segment's id and the payload |
//! | 32 | codec: encoding of the payload, known only to the code that appends and reads |
//! | 33..40 | zeros |
//! | 40.. | payload, then zeros up to a multiple of 8 |
//!
//! The id makes stale frames of a recycled file invalid. The head has its own checksum for three reasons. A length is
//! verified before the payload is read. A damaged payload has a known end. A search for the next frame costs 40 bytes
//! at each offset, whatever the file holds. The masked checksum of zeros is not zero, and length 0 means no frame.

use super::defect::Defect;
use super::id::Id;
use super::words::{masked, put_u32, put_u64, u32_at, u64_at};

/// Size of the head in bytes; the payload follows it.
pub const HEAD_BYTES: usize = 40;

/// Maximum size of a payload in bytes.
///
/// Chosen: it is sixty batches of the collector. It bounds the memory that recovery allocates for a wrong length.
pub const MAX_PAYLOAD_BYTES: usize = 4 * 1024 * 1024;

/// Offsets at which frames begin are multiples of this number of bytes.
pub const ALIGNMENT: u64 = 8;

/// Ties a frame to one use of one segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameKey(u32);

impl FrameKey {
    /// The key of a segment.
    pub fn new(segment: &Id) -> Self {
        if Defect::CrcWithoutId.is_planted() { Self(0) } else { Self(crc32c::crc32c(&segment.0)) }
    }

    fn head(self, head: &[u8]) -> u32 {
        masked(crc32c::crc32c_append(crc32c::crc32c_append(self.0, &head[0..4]), &head[8..HEAD_BYTES]))
    }

    fn payload(self, payload: &[u8]) -> u32 {
        masked(crc32c::crc32c_append(self.0, payload))
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the payload.
    pub payload_bytes: u32,
    /// Number of the first record.
    pub first: u64,
    /// The spool's next number when the frame was made.
    pub follows: u64,
    /// Number of records.
    pub count: u32,
    /// Encoding of the payload.
    pub codec: u8,
    payload_crc: u32,
}

impl FrameHead {
    /// Parses a head; `None` if the bytes are not a valid head of this segment.
    pub fn parse(bytes: &[u8], key: FrameKey) -> Option<Self> {
        let payload_bytes = u32_at(bytes, 0);
        if payload_bytes == 0 || payload_bytes as usize > MAX_PAYLOAD_BYTES || bytes[33..HEAD_BYTES] != [0; 7] {
            return None;
        }
        let head = Self {
            payload_bytes,
            first: u64_at(bytes, 8),
            follows: u64_at(bytes, 16),
            count: u32_at(bytes, 24),
            codec: bytes[32],
            payload_crc: u32_at(bytes, 28),
        };
        let is_sound =
            head.count > 0 && head.follows <= head.first && head.first.checked_add(u64::from(head.count)).is_some();
        let is_whole = u32_at(bytes, 4) == key.head(bytes) || Defect::NoCrc.is_planted();
        (is_sound && is_whole).then_some(head)
    }

    /// The number after the last record.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    /// Size of the whole frame in bytes.
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.payload_bytes as usize)
    }

    /// Whether these bytes are the payload that belongs to this head.
    pub fn matches_payload(&self, payload: &[u8], key: FrameKey) -> bool {
        self.payload_crc == key.payload(payload) || Defect::NoCrc.is_planted()
    }
}

/// Size in bytes of a frame whose payload has `payload` bytes.
pub fn frame_bytes(payload: usize) -> u64 {
    ((HEAD_BYTES + payload) as u64).next_multiple_of(ALIGNMENT)
}

/// A frame in memory, kept until it is durable.
#[derive(Debug, Clone)]
pub struct UnsyncedFrame {
    /// The frame's head.
    pub head: FrameHead,
    bytes: Vec<u8>,
}

impl UnsyncedFrame {
    /// Makes a frame that belongs to no segment yet.
    pub fn new(first: u64, follows: u64, count: u32, codec: u8, payload: &[u8]) -> Self {
        let mut bytes = vec![0; frame_bytes(payload.len()) as usize];
        let payload_bytes = payload.len() as u32;
        put_u32(&mut bytes, 0, payload_bytes);
        put_u64(&mut bytes, 8, first);
        put_u64(&mut bytes, 16, follows);
        put_u32(&mut bytes, 24, count);
        bytes[32] = codec;
        bytes[HEAD_BYTES..HEAD_BYTES + payload.len()].copy_from_slice(payload);
        Self { head: FrameHead { payload_bytes, first, follows, count, codec, payload_crc: 0 }, bytes }
    }

    /// Sets the checksums for a segment and returns the frame's bytes.
    pub fn bytes_for(&mut self, key: FrameKey) -> &[u8] {
        self.head.payload_crc = key.payload(self.payload());
        put_u32(&mut self.bytes, 28, self.head.payload_crc);
        let crc = key.head(&self.bytes);
        put_u32(&mut self.bytes, 4, crc);
        &self.bytes
    }

    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEAD_BYTES..HEAD_BYTES + self.head.payload_bytes as usize]
    }

    /// Size of the whole frame in bytes.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_and_zeros_are_not_a_frame() {
        let key = FrameKey::new(&Id([7; 16]));
        let mut frame = UnsyncedFrame::new(10, 8, 3, 2, b"three records");
        let bytes = frame.bytes_for(key).to_vec();
        let head = FrameHead::parse(&bytes, key).unwrap();

        assert_eq!((10, 8, 13, 2, 13), (head.first, head.follows, head.end(), head.codec, head.payload_bytes));
        assert!(head.matches_payload(b"three records", key));
        assert!(!head.matches_payload(b"three recordt", key));
        assert_eq!(None, FrameHead::parse(&bytes, FrameKey::new(&Id([8; 16]))));
        assert_eq!(None, FrameHead::parse(&[0; HEAD_BYTES], key));
        assert_eq!(0, bytes.len() % ALIGNMENT as usize);
    }

    #[test]
    fn every_changed_byte_of_a_head_is_detected() {
        let key = FrameKey::new(&Id([7; 16]));
        let bytes = UnsyncedFrame::new(1, 1, 1, 0, b"x").bytes_for(key).to_vec();
        for at in 0..HEAD_BYTES {
            for change in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert_eq!(None, FrameHead::parse(&changed, key), "byte {at}");
            }
        }
    }
}
