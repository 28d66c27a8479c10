//! Written chunks whose buffers the collector fills again.
//!
//! Without them, a busy program allocates and frees a buffer for each batch. The allocator returns such buffers to the
//! system, so each page of the next one is a page fault. The collector frees them after a second without records.

use crate::chunk::Chunk;
use crate::sink::Mark;

/// Maximum bytes of all spare buffers of a sink.
///
/// Chosen: six chunks of ordinary batches. In a burst, the writer is a few chunks behind the collector and then catches
/// up. With half of it, the buffers of a burst were allocated again and again; twice as much gained nothing.
const SPARE_BYTES: usize = 1024 * 1024;

/// Cleared chunks with their buffers.
#[derive(Debug, Default)]
pub(super) struct SpareChunks {
    chunks: Vec<Chunk>,
    bytes: usize,
    /// Bytes of lines and number of marks of the chunk that was put last.
    usual: (usize, usize),
}

fn capacity_bytes(chunk: &Chunk) -> usize {
    chunk.bytes.capacity() + chunk.marks.capacity() * size_of::<Mark>()
}

impl SpareChunks {
    /// A chunk to fill. If there is no spare chunk, its buffers have room for as much as the last chunk had.
    pub(super) fn take(&mut self) -> Chunk {
        let Some(chunk) = self.chunks.pop() else {
            let (bytes, marks) = self.usual;
            return Chunk { bytes: Vec::with_capacity(bytes), marks: Vec::with_capacity(marks), ..Chunk::default() };
        };
        self.bytes -= capacity_bytes(&chunk);
        chunk
    }

    /// Keeps the buffers of a chunk, if they are not too many.
    pub(super) fn put(&mut self, mut chunk: Chunk) {
        let bytes = capacity_bytes(&chunk);
        if bytes > SPARE_BYTES / 2 {
            return;
        }
        self.usual = (chunk.bytes.len(), chunk.marks.len());
        if self.bytes + bytes > SPARE_BYTES {
            return;
        }
        chunk.bytes.clear();
        chunk.marks.clear();
        chunk.counts = Default::default();
        self.bytes += bytes;
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: usize) -> Chunk {
        Chunk { batch: 7, bytes: vec![b'x'; bytes], ..Chunk::default() }
    }

    #[test]
    fn buffers_are_reused_up_to_a_limit() {
        let mut spare = SpareChunks::default();
        (0..20).for_each(|_| spare.put(chunk(SPARE_BYTES / 8)));

        assert_eq!((8, SPARE_BYTES), (spare.chunks.len(), spare.bytes));
        let taken = spare.take();
        assert!(taken.bytes.is_empty() && taken.bytes.capacity() == SPARE_BYTES / 8);
        (0..7).for_each(|_| drop(spare.take()));
        assert_eq!(0, spare.bytes);
        assert_eq!(SPARE_BYTES / 8, spare.take().bytes.capacity(), "a new chunk has room for a usual one");
    }

    #[test]
    fn buffers_of_large_records_are_not_kept() {
        let mut spare = SpareChunks::default();
        spare.put(chunk(SPARE_BYTES));

        assert_eq!((0, 0), (spare.bytes, spare.take().bytes.capacity()));
    }
}
