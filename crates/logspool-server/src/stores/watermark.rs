//! Decides what a store does with a chunk. The decision depends on the last stored record of the chunk's stream.

use crate::delivery::{Chunk, ChunkPosition};

/// The position up to which a stream is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// The epoch of the stream.
    pub epoch: u64,
    /// Number of the stream's last stored record.
    pub last: u64,
}

/// The decision about a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Store the chunk's records except the first `skip`, which are stored already. `missing` records before the chunk
    /// were lost.
    Store {
        /// Number of records to skip.
        skip: u64,
        /// Number of lost records, which will never arrive.
        missing: u64,
    },
    /// All records of the chunk are stored already.
    Known,
    /// Close the connection: records before the chunk are missing, or the store has a newer epoch of the stream.
    Refuse,
}

/// Decides what to do with a chunk. `stored` is the watermark of its stream; `None`: the store does not know the
/// stream.
pub fn judge(stored: Option<Watermark>, chunk: &Chunk) -> Verdict {
    let last = match stored {
        Some(stored) if chunk.epoch < stored.epoch => return Verdict::Refuse,
        Some(stored) if chunk.epoch == stored.epoch => stored.last,
        _ => 0,
    };
    // The store forgets a stream when it ends. If a client sends the end again, no records are missing.
    let is_end_again = stored.is_none() && chunk.end && chunk.last < chunk.first;
    if chunk.last <= last || is_end_again {
        return Verdict::Known;
    }
    match (chunk.first.saturating_sub(last.saturating_add(1)), chunk.position) {
        (0, _) => Verdict::Store { skip: (last + 1).saturating_sub(chunk.first), missing: 0 },
        (missing, ChunkPosition::First) => Verdict::Store { skip: 0, missing },
        (_, ChunkPosition::Later) => Verdict::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(epoch: u64, first: u64, last: u64, position: ChunkPosition) -> Chunk {
        Chunk { stream: "s".to_owned(), epoch, first, last, position, end: false }
    }

    #[test]
    fn a_chunk_is_stored_once_and_in_order() {
        use ChunkPosition::{First, Later};
        let stored = Some(Watermark { epoch: 2, last: 10 });
        let whole = Verdict::Store { skip: 0, missing: 0 };
        for (expected, stored, chunk) in [
            (whole, None, chunk(1, 1, 5, First)),
            (whole, stored, chunk(2, 11, 12, Later)),
            (whole, stored, chunk(3, 1, 4, First)),
            (Verdict::Known, stored, chunk(2, 3, 10, Later)),
            (Verdict::Known, stored, chunk(2, 10, 9, Later)),
            (Verdict::Store { skip: 3, missing: 0 }, stored, chunk(2, 8, 12, Later)),
            (Verdict::Store { skip: 0, missing: 4 }, stored, chunk(2, 15, 20, First)),
            (Verdict::Store { skip: 0, missing: 6 }, None, chunk(1, 7, 7, First)),
            (Verdict::Refuse, stored, chunk(2, 12, 20, Later)),
            (Verdict::Refuse, stored, chunk(1, 11, 20, First)),
            (Verdict::Store { skip: 1, missing: 0 }, stored, chunk(2, 10, u64::MAX, First)),
        ] {
            assert_eq!(expected, judge(stored, &chunk), "{stored:?} {chunk:?}");
        }
    }

    #[test]
    fn the_repeated_end_of_a_stream_counts_no_missing_records() {
        for position in [ChunkPosition::First, ChunkPosition::Later] {
            let end = Chunk { end: true, ..chunk(1, 101, 100, position) };

            assert_eq!(Verdict::Known, judge(None, &end));
        }
    }
}
