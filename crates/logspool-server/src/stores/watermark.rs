//! Decides what a store does with a chunk, from the last stored record of the chunk's stream.

use crate::delivery::{Chunk, ChunkPlace};

/// The position up to which a stream is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// The epoch of the stream.
    pub epoch: u64,
    /// Number of the last stored record.
    pub last: u64,
}

/// The decision about a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Store the chunk's records after the first `skip`, which are stored already. `missing` records before the chunk
    /// were lost.
    Store {
        /// Records to skip.
        skip: u64,
        /// Records that will never arrive.
        missing: u64,
    },
    /// All of it is stored already.
    Known,
    /// Close the connection: records before the chunk are missing, or its epoch is over.
    Refuse,
}

/// Judges a chunk, given its stream's watermark. `None`: the store knows nothing about the stream.
pub fn judge(stored: Option<Watermark>, chunk: &Chunk) -> Verdict {
    let last = match stored {
        Some(stored) if chunk.epoch < stored.epoch => return Verdict::Refuse,
        Some(stored) if chunk.epoch == stored.epoch => stored.last,
        _ => 0,
    };
    // A stream that has ended is forgotten. If its end is sent again, no records are missing.
    let is_end_again = stored.is_none() && chunk.end && chunk.last < chunk.first;
    if chunk.last <= last || is_end_again {
        return Verdict::Known;
    }
    match (chunk.first.saturating_sub(last.saturating_add(1)), chunk.place) {
        (0, _) => Verdict::Store { skip: (last + 1).saturating_sub(chunk.first), missing: 0 },
        (missing, ChunkPlace::Opening) => Verdict::Store { skip: 0, missing },
        (_, ChunkPlace::Following) => Verdict::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(epoch: u64, first: u64, last: u64, place: ChunkPlace) -> Chunk {
        Chunk { stream: "s".to_owned(), epoch, first, last, place, end: false }
    }

    #[test]
    fn a_chunk_is_stored_once_and_in_order() {
        use ChunkPlace::{Following, Opening};
        let stored = Some(Watermark { epoch: 2, last: 10 });
        let whole = Verdict::Store { skip: 0, missing: 0 };
        for (expected, stored, chunk) in [
            (whole, None, chunk(1, 1, 5, Opening)),
            (whole, stored, chunk(2, 11, 12, Following)),
            (whole, stored, chunk(3, 1, 4, Opening)),
            (Verdict::Known, stored, chunk(2, 3, 10, Following)),
            (Verdict::Known, stored, chunk(2, 10, 9, Following)),
            (Verdict::Store { skip: 3, missing: 0 }, stored, chunk(2, 8, 12, Following)),
            (Verdict::Store { skip: 0, missing: 4 }, stored, chunk(2, 15, 20, Opening)),
            (Verdict::Store { skip: 0, missing: 6 }, None, chunk(1, 7, 7, Opening)),
            (Verdict::Refuse, stored, chunk(2, 12, 20, Following)),
            (Verdict::Refuse, stored, chunk(1, 11, 20, Opening)),
            (Verdict::Store { skip: 1, missing: 0 }, stored, chunk(2, 10, u64::MAX, Opening)),
        ] {
            assert_eq!(expected, judge(stored, &chunk), "{stored:?} {chunk:?}");
        }
    }

    #[test]
    fn the_end_of_a_stream_that_is_sent_again_tells_of_no_missing_records() {
        for place in [ChunkPlace::Opening, ChunkPlace::Following] {
            let end = Chunk { end: true, ..chunk(1, 101, 100, place) };

            assert_eq!(Verdict::Known, judge(None, &end));
        }
    }
}
