//! The chunk ids of logspool's own client.

use std::fmt;

/// The position of a chunk in its stream, written `stream/epoch/first-last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkId<'a> {
    /// Name of the stream; may contain slashes.
    pub stream: &'a str,
    /// Epoch of the stream.
    pub epoch: u64,
    /// Number of the chunk's first record, counted from 1.
    pub first: u64,
    /// Number of the last record; `first - 1` in a chunk without records.
    pub last: u64,
}

impl<'a> ChunkId<'a> {
    /// Parses an id. `None`: the id is from another client.
    pub fn parse(id: &'a str) -> Option<Self> {
        let mut parts = id.rsplitn(3, '/');
        let (first, last) = parts.next()?.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let epoch = number(parts.next()?)?;
        let stream = parts.next().filter(|stream| !stream.is_empty())?;
        (first > 0 && last >= first - 1).then_some(Self { stream, epoch, first, last })
    }
}

impl fmt::Display for ChunkId<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, epoch, first, last } = self;
        write!(to, "{stream}/{epoch}/{first}-{last}")
    }
}

/// Parses a number as our client writes it, without sign and leading zeros. Numbers beyond `i64` are refused, because
/// stores keep these numbers as `i64`.
fn number(text: &str) -> Option<u64> {
    let is_ours = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number: i64 = is_ours.then(|| text.parse().ok())??;
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for id in [
            ChunkId { stream: "web-1/4711", epoch: 0, first: 1, last: 100 },
            ChunkId { stream: "/", epoch: i64::MAX as u64, first: i64::MAX as u64, last: i64::MAX as u64 },
            ChunkId { stream: "s", epoch: 3, first: 1, last: 0 },
        ] {
            assert_eq!(Some(id), ChunkId::parse(&id.to_string()));
        }
    }

    #[test]
    fn ids_in_other_forms_are_not_recognised() {
        for id in [
            "",
            "p8n9gmxTQVC8/nh2wlKKeQ==",
            "s/1/1",
            "s/1/1-",
            "s/1/-1-2",
            "s/1/+1-2",
            "s/1/01-2",
            "s/1/0-0",
            "s/1/3-1",
            "s/x/1-2",
            "/1/1-2",
            "1/1-2",
            "s/1/1-9223372036854775808",
            "s/18446744073709551615/1-2",
        ] {
            assert_eq!(None, ChunkId::parse(id), "{id}");
        }
    }
}
