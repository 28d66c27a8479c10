//! The permission of one connection to send a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A connection's permission to send a stream, until a newer connection takes it.
#[derive(Debug, Clone, Default)]
pub struct Fence(Arc<AtomicBool>);

impl Fence {
    /// True if a newer connection sends the stream.
    pub fn is_replaced(&self) -> bool {
        // Relaxed: if the flag is seen late, a later chunk is refused instead of this one. The mark decides which
        // records are stored.
        self.0.load(Ordering::Relaxed)
    }

    /// Marks that a newer connection sends the stream now.
    pub fn replace(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if there is another clone of the fence.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
