//! Cancels a query when its client has disconnected or its time is over.
//!
//! The flag is an atomic because SQLite's functions check it for every row, on a thread that must not wait.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use logspool_sys::published::Published;
use tokio::sync::Notify;

/// A flag that is set once, when the answer is no longer needed. All clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: AtomicBool,
    told: Notify,
}

impl Cancel {
    /// Sets the flag.
    pub fn cancel(&self) {
        // Pairs with `observe` in `is_cancelled`; the lock of `told` orders it before the wake-up.
        self.0.is_cancelled.publish(true);
        self.0.told.notify_waiters();
    }

    /// True if the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.observe()
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        let mut told = pin!(self.0.told.notified());
        // Register before checking the flag, so that no wake-up is missed.
        told.as_mut().enable();
        if !self.is_cancelled() {
            told.await;
        }
    }
}

/// The time limit of a query.
#[derive(Debug, Clone)]
pub struct Until {
    /// End of its time.
    pub deadline: Instant,
    /// Ends the query earlier.
    pub cancel: Cancel,
}

impl Until {
    /// The query may run for `time` from now, or until it is cancelled.
    pub fn new(time: Duration, cancel: &Cancel) -> Self {
        Self { deadline: Instant::now() + time, cancel: cancel.clone() }
    }

    /// True if the query has to stop.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() > self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_is_told_before_and_after() {
        let cancel = Cancel::default();
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        assert!(!cancel.is_cancelled());
        tokio::task::yield_now().await;
        cancel.cancel();

        waiting.await.unwrap();
        cancel.cancelled().await;
        assert!(Until::new(Duration::from_secs(60), &cancel).is_over());
        assert!(!Until::new(Duration::from_secs(60), &Cancel::default()).is_over());
    }
}
