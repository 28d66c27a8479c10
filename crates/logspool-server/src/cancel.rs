//! Cancels a query when its client has disconnected or the time limit has passed.
//!
//! The flag is an atomic because SQL functions check it for every row, on a thread that must not wait for a lock.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use logspool_sys::published::Published;
use tokio::sync::Notify;

/// A flag that is set once, when the answer is no longer needed. All clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    is_cancelled: AtomicBool,
    notify: Notify,
}

impl CancelToken {
    /// Sets the flag.
    pub fn cancel(&self) {
        // Pairs with `observe` in `is_cancelled`; the lock of `notify` orders it before the wake-up.
        self.0.is_cancelled.publish(true);
        self.0.notify.notify_waiters();
    }

    /// True if the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.observe()
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        let mut told = pin!(self.0.notify.notified());
        // Register before checking the flag, so that no wake-up is missed.
        told.as_mut().enable();
        if !self.is_cancelled() {
            told.await;
        }
    }
}

/// The time limit of a query.
#[derive(Debug, Clone)]
pub struct QueryDeadline {
    /// The time at which the query has to stop.
    pub deadline: Instant,
    /// Stops the query before the deadline when it is cancelled.
    pub cancel: CancelToken,
}

impl QueryDeadline {
    /// Allows the query to run for `time` from now, or until `cancel` is set.
    pub fn new(time: Duration, cancel: &CancelToken) -> Self {
        Self { deadline: Instant::now() + time, cancel: cancel.clone() }
    }

    /// True if the query has to stop.
    pub fn has_passed(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() > self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiter_wakes_before_and_after_it_waits() {
        let cancel = CancelToken::default();
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.cancelled().await }
        });
        assert!(!cancel.is_cancelled());
        tokio::task::yield_now().await;
        cancel.cancel();

        waiting.await.unwrap();
        cancel.cancelled().await;
        assert!(QueryDeadline::new(Duration::from_secs(60), &cancel).has_passed());
        assert!(!QueryDeadline::new(Duration::from_secs(60), &CancelToken::default()).has_passed());
    }
}
