//! The memory that queries take for values and rows that they keep, with a limit for all queries together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum bytes of the values of all queries together, including queries whose answers are not read to the end.
/// Chosen: it has room for one query with the maximum number and bytes of values, or for several smaller queries.
const MAX_TOTAL_BYTES: usize = 192 << 20;

/// The bytes of the counted values of all queries. The number is an atomic because each query counts on its own thread.
#[derive(Debug, Clone, Default)]
pub struct CountMemory(Arc<AtomicUsize>);

impl CountMemory {
    /// Creates the part of one query, which is empty at first.
    pub fn part(&self) -> QueryMemory {
        QueryMemory { all: self.clone(), bytes: 0 }
    }
}

/// One query's part of the memory. Dropping it releases the memory.
#[derive(Debug)]
pub struct QueryMemory {
    all: CountMemory,
    bytes: usize,
}

impl QueryMemory {
    /// Size of this query's part.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds `bytes` to this query's part and to the total of all queries. Returns false if the total now exceeds the
    /// limit. Even then the bytes stay added until this value is dropped.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        // Relaxed is enough here and in `drop`: no other memory access depends on this counter.
        self.all.0.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_TOTAL_BYTES
    }

    /// Takes `bytes` from this query's part again.
    pub fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.all.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for QueryMemory {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_share_the_memory_of_their_values_and_give_it_back() {
        let memory = CountMemory::default();
        let (mut one, mut two) = (memory.part(), memory.part());
        assert!(one.take(MAX_TOTAL_BYTES - 1) && two.take(1));
        assert!(!two.take(1));
        drop(two);

        assert!(one.take(1) && !one.take(1));
        drop(one);
        assert_eq!(0, memory.0.load(Ordering::Relaxed));
    }
}
