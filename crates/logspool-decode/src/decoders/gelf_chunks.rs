//! GELF over UDP: reassembles chunked messages and decompresses messages.
//!
//! The chunks of a message have the same sender and the same id of eight bytes. An incomplete message is dropped after
//! some seconds, or when newer ones need the room. Each dropped message is counted.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::inflate::{self, InflateError};

/// Limits for messages of which chunks are missing.
#[derive(Debug, Clone, Copy)]
pub struct ChunkLimits {
    /// Maximum number of incomplete messages.
    pub messages: usize,
    /// Maximum bytes of the chunks of all incomplete messages.
    pub bytes: usize,
    /// Maximum time since the first chunk of a message arrived.
    pub age: Duration,
    /// Maximum bytes of a decompressed message.
    pub inflated: usize,
}

impl Default for ChunkLimits {
    /// 1,024 messages and 16 MiB of chunks, kept for five seconds as the GELF specification says. 1 MiB for a
    /// decompressed message.
    fn default() -> Self {
        Self { messages: 1024, bytes: 16 << 20, age: Duration::from_secs(5), inflated: 1 << 20 }
    }
}

/// Maximum number of chunks of a message, from the GELF specification.
const MAX_PARTS: u8 = 128;

/// Reason why a datagram is neither a message nor a chunk.
#[derive(Debug)]
pub enum GelfChunkError {
    /// The datagram has the magic bytes of a chunk, but is not a valid chunk.
    Malformed,
    /// The message cannot be decompressed.
    Inflate(InflateError),
}

impl fmt::Display for GelfChunkError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                to.write_str("the GELF chunk has no complete header, or its number exceeds its count (at most 128)")
            }
            Self::Inflate(error) => write!(to, "the GELF message cannot be read: {error}"),
        }
    }
}

impl std::error::Error for GelfChunkError {}

type MessageKey = (SocketAddr, [u8; 8]);

#[derive(Debug)]
struct IncompleteMessage {
    key: MessageKey,
    since: Instant,
    count: u8,
    /// One bit for each chunk that has arrived.
    seen: u128,
    bytes: usize,
    parts: Vec<(u8, Box<[u8]>)>,
}

/// Reassembles messages.
#[derive(Debug)]
pub struct GelfChunks {
    limits: ChunkLimits,
    /// Incomplete messages in the order in which they began; the first is the oldest.
    unfinished: BTreeMap<u64, IncompleteMessage>,
    numbers: HashMap<MessageKey, u64>,
    next: u64,
    bytes: usize,
    dropped: u64,
}

impl GelfChunks {
    /// Starts without incomplete messages.
    pub fn new(limits: ChunkLimits) -> Self {
        Self { limits, unfinished: BTreeMap::new(), numbers: HashMap::new(), next: 0, bytes: 0, dropped: 0 }
    }

    /// Number of messages that were dropped because chunks were missing.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a datagram. Returns a message for `gelf::read` if the datagram is a whole message or completes one.
    ///
    /// # Errors
    ///
    /// The datagram is neither a message nor a chunk.
    pub fn take<'a>(
        &mut self,
        datagram: &'a [u8],
        from: SocketAddr,
        now: Instant,
    ) -> Result<Option<Cow<'a, [u8]>>, GelfChunkError> {
        let message = match datagram {
            [0x1E, 0x0F, part @ ..] => match self.part(part, from, now)? {
                Some(message) => Cow::Owned(message),
                None => return Ok(None),
            },
            whole => Cow::Borrowed(whole),
        };
        self.decompressed(message).map(Some).map_err(GelfChunkError::Inflate)
    }

    /// The time when the oldest incomplete message expires.
    pub fn next_expiry(&self) -> Option<Instant> {
        let (_, oldest) = self.unfinished.first_key_value()?;
        Some(oldest.since + self.limits.age)
    }

    /// Drops all incomplete messages, because no more datagrams will come.
    pub fn end(&mut self) {
        while !self.unfinished.is_empty() {
            self.drop_oldest();
        }
    }

    /// Drops messages that have waited too long. Each chunk does this too; call it when no chunks arrive.
    pub fn expire(&mut self, now: Instant) {
        while let Some(oldest) = self.unfinished.first_entry()
            && now.saturating_duration_since(oldest.get().since) >= self.limits.age
        {
            self.drop_oldest();
        }
    }

    fn part(&mut self, part: &[u8], from: SocketAddr, now: Instant) -> Result<Option<Vec<u8>>, GelfChunkError> {
        let Some((&[id @ .., place, count], data)) = part.split_first_chunk::<10>() else {
            return Err(GelfChunkError::Malformed);
        };
        if count > MAX_PARTS || place >= count {
            return Err(GelfChunkError::Malformed);
        }
        if count == 1 {
            return Ok(Some(data.to_vec()));
        }
        self.expire(now);
        let key = (from, id);
        let number = *self.numbers.entry(key).or_insert(self.next);
        if number == self.next {
            self.next += 1;
        }
        let begun = IncompleteMessage { key, since: now, count, seen: 0, bytes: 0, parts: Vec::new() };
        let message = self.unfinished.entry(number).or_insert(begun);
        let bit = 1 << place;
        // The datagram is a duplicate, or its id was used twice. The first datagram counts.
        if message.count != count || message.seen & bit != 0 {
            return Ok(None);
        }
        message.seen |= bit;
        message.parts.push((place, data.into()));
        message.bytes += data.len();
        self.bytes += data.len();
        if message.seen.count_ones() == u32::from(count) {
            return Ok(self.remove(number).map(joined_parts));
        }
        while self.unfinished.len() > self.limits.messages || self.bytes > self.limits.bytes {
            self.drop_oldest();
        }
        Ok(None)
    }

    fn drop_oldest(&mut self) {
        if let Some((&number, _)) = self.unfinished.first_key_value() {
            self.remove(number);
            self.dropped += 1;
        }
    }

    fn remove(&mut self, number: u64) -> Option<IncompleteMessage> {
        let message = self.unfinished.remove(&number)?;
        self.numbers.remove(&message.key);
        self.bytes -= message.bytes;
        Some(message)
    }

    fn decompressed<'a>(&self, message: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>, InflateError> {
        let inflate = match &*message {
            [0x1F, 0x8B, ..] => inflate::gzip,
            // A zlib header (RFC 1950) with its check bits.
            [first, second, ..] if first & 0x0F == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0 => {
                inflate::zlib
            }
            _ => return Ok(message),
        };
        let mut inflated = Vec::new();
        inflate(&message, self.limits.inflated, &mut inflated)?;
        Ok(Cow::Owned(inflated))
    }
}

fn joined_parts(mut message: IncompleteMessage) -> Vec<u8> {
    message.parts.sort_unstable_by_key(|(place, _)| *place);
    let parts: Vec<_> = message.parts.into_iter().map(|(_, data)| data).collect();
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5);

    fn part(id: u8, place: u8, count: u8, data: &[u8]) -> Vec<u8> {
        [&[0x1E, 0x0F, id, 0, 0, 0, 0, 0, 0, 0, place, count], data].concat()
    }

    #[test]
    fn parts_in_any_order_are_one_message() {
        let now = Instant::now();
        let mut chunks = GelfChunks::new(ChunkLimits::default());
        let other: SocketAddr = "192.0.2.1:9".parse().unwrap();

        assert_eq!(None, chunks.take(&part(1, 2, 3, b"c"), FROM, now).unwrap());
        assert_eq!(None, chunks.take(&part(1, 0, 3, b"x"), other, now).unwrap());
        assert_eq!(None, chunks.take(&part(1, 0, 3, b"a"), FROM, now).unwrap());
        assert_eq!(None, chunks.take(&part(1, 0, 3, b"again"), FROM, now).unwrap());
        assert_eq!(Some(&b"abc"[..]), chunks.take(&part(1, 1, 3, b"b"), FROM, now).unwrap().as_deref());
        assert_eq!(1, chunks.unfinished.len());
        assert_eq!(1, chunks.bytes);
    }

    #[test]
    fn a_whole_message_is_returned_or_decompressed() {
        let now = Instant::now();
        let mut chunks = GelfChunks::new(ChunkLimits::default());
        let mut take = |datagram: &[u8]| chunks.take(datagram, FROM, now).unwrap().unwrap().into_owned();

        assert_eq!(b"{}", &*take(b"{}"));
        assert_eq!(b"{}", &*take(&part(1, 0, 1, b"{}")));
        // The result of Python's `zlib.compress(b"{}")`.
        assert_eq!(b"{}", &*take(b"\x78\x9c\xab\xae\x05\x00\x01\x75\x00\xf9"));
        assert!(chunks.take(b"\x1F\x8Bno gzip", FROM, now).is_err());
    }

    #[test]
    fn old_and_excess_messages_are_dropped_and_counted() {
        let now = Instant::now();
        let limits = ChunkLimits { messages: 2, bytes: 10, ..ChunkLimits::default() };
        let mut chunks = GelfChunks::new(limits);
        for id in 1..=3 {
            assert_eq!(None, chunks.take(&part(id, 0, 2, b"abc"), FROM, now).unwrap());
        }
        assert_eq!(1, chunks.dropped());
        // The first message, the oldest one, was dropped.
        assert!(chunks.take(&part(2, 1, 2, b""), FROM, now).unwrap().is_some());

        assert_eq!(None, chunks.take(&part(4, 0, 2, b"12345678"), FROM, now).unwrap());
        assert_eq!((2, 8), (chunks.dropped(), chunks.bytes));

        chunks.expire(now + limits.age / 2);
        assert_eq!(2, chunks.dropped());
        assert_eq!(None, chunks.take(&part(4, 1, 2, b"late"), FROM, now + limits.age).unwrap());
        assert_eq!((3, 4), (chunks.dropped(), chunks.bytes));
        assert_eq!(Some(now + 2 * limits.age), chunks.next_expiry());
        chunks.expire(now + 2 * limits.age);
        assert_eq!(None, chunks.next_expiry());
        assert_eq!((4, 0, 0, 0), (chunks.dropped(), chunks.bytes, chunks.unfinished.len(), chunks.numbers.len()));

        assert_eq!(None, chunks.take(&part(5, 0, 2, b"last"), FROM, now).unwrap());
        chunks.end();
        assert_eq!((5, 0, 0, 0), (chunks.dropped(), chunks.bytes, chunks.unfinished.len(), chunks.numbers.len()));
    }

    #[test]
    fn an_impossible_header_is_an_error() {
        let mut chunks = GelfChunks::new(ChunkLimits::default());
        let now = Instant::now();
        for bad in [&part(1, 3, 3, b""), &part(1, 0, 0, b""), &part(1, 0, 129, b""), &b"\x1E\x0F123".to_vec()] {
            assert!(chunks.take(bad, FROM, now).is_err(), "{bad:?}");
        }
        let mut length = |place| {
            let message = chunks.take(&part(1, place, 128, b"x"), FROM, now).unwrap().map(Cow::into_owned);
            message.map(|message| message.len())
        };
        assert_eq!(Some(Some(128)), (0..128).map(&mut length).find(Option::is_some));
    }
}
