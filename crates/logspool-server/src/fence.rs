//! The right of one connection to send a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A connection's right to send a stream, until a newer connection takes it.
#[derive(Debug, Clone, Default)]
pub struct Fence(Arc<AtomicBool>);

impl Fence {
    /// Whether a newer connection sends the stream.
    pub fn is_replaced(&self) -> bool {
        // Relaxed: a late look refuses a later chunk; what is stored is judged by the watermark.
        self.0.load(Ordering::Relaxed)
    }

    /// A newer connection sends the stream from now on.
    pub fn replace(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether anybody but the caller holds the right.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
