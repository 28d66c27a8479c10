//! Written chunks whose buffers the collector fills again. All sinks of a process share them, so a sink without records
//! takes no memory for them.
//!
//! Without them, a busy program allocates and frees a buffer for each batch. The allocator returns such buffers to the
//! system, so each page of the next one is a page fault. The collector frees them after a second without records.

use logspool_sys::fork_safe_lock::PerProcess;

use crate::chunk::Chunk;
use crate::sink::Mark;

/// Maximum bytes of all spare buffers of a process.
///
/// Chosen: twelve chunks of ordinary batches. In a burst, each writer is a few chunks behind the collector and then
/// catches up. With a quarter of it, the buffers of a burst into one file were allocated again and again. When each of a
/// hundred files kept its own, the program kept 170 MB.
const SPARE_BYTES: usize = 2 * 1024 * 1024;

/// Maximum bytes of a buffer that is kept. Chosen: buffers of ordinary batches are shorter.
const MAX_BUFFER_BYTES: usize = 512 * 1024;

static SPARE: PerProcess<SpareChunks> = PerProcess::new();

/// A chunk to fill. Without a spare one, its buffers have room for `usual` bytes of lines and marks.
pub(super) fn take(usual: (usize, usize)) -> Chunk {
    SPARE.with(|spare| spare.take(usual))
}

/// Keeps the buffers of a chunk, if they are not too many. Returns its bytes of lines and its marks.
pub(super) fn put(chunk: Chunk) -> (usize, usize) {
    let used = (chunk.bytes.len(), chunk.marks.len());
    if let Some(rest) = SPARE.with(|spare| spare.put(chunk)) {
        // Freed after the lock.
        drop(rest);
    }
    used
}

/// Frees all spare buffers.
pub fn drop_spare_chunks() {
    let chunks = SPARE.with(std::mem::take);
    drop(chunks);
}

/// Cleared chunks with their buffers.
#[derive(Debug, Default)]
struct SpareChunks {
    chunks: Vec<Chunk>,
    bytes: usize,
}

fn capacity_bytes(chunk: &Chunk) -> usize {
    chunk.bytes.capacity() + chunk.marks.capacity() * size_of::<Mark>()
}

impl SpareChunks {
    fn take(&mut self, (bytes, marks): (usize, usize)) -> Chunk {
        let Some(chunk) = self.chunks.pop() else {
            return Chunk { bytes: Vec::with_capacity(bytes), marks: Vec::with_capacity(marks), ..Chunk::default() };
        };
        self.bytes -= capacity_bytes(&chunk);
        chunk
    }

    /// Keeps the buffers of a chunk, or returns the chunk.
    fn put(&mut self, mut chunk: Chunk) -> Option<Chunk> {
        let bytes = capacity_bytes(&chunk);
        if bytes > MAX_BUFFER_BYTES || self.bytes + bytes > SPARE_BYTES {
            return Some(chunk);
        }
        chunk.bytes.clear();
        chunk.marks.clear();
        chunk.counts = Default::default();
        self.bytes += bytes;
        self.chunks.push(chunk);
        None
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
        (0..20).for_each(|_| drop(spare.put(chunk(SPARE_BYTES / 8))));

        assert_eq!((8, SPARE_BYTES), (spare.chunks.len(), spare.bytes));
        let taken = spare.take((0, 0));
        assert!(taken.bytes.is_empty() && taken.bytes.capacity() == SPARE_BYTES / 8);
        (0..7).for_each(|_| drop(spare.take((0, 0))));
        assert_eq!(0, spare.bytes);
        assert_eq!(
            SPARE_BYTES / 8,
            spare.take((SPARE_BYTES / 8, 0)).bytes.capacity(),
            "a new chunk has room for a usual one"
        );
    }

    #[test]
    fn buffers_of_large_records_are_not_kept() {
        let mut spare = SpareChunks::default();
        assert!(spare.put(chunk(MAX_BUFFER_BYTES + 1)).is_some());

        assert_eq!((0, 0), (spare.bytes, spare.take((0, 0)).bytes.capacity()));
    }
}
