//! Shared timeouts of consecutive waits. Examples: a handler is flushed and then closed, or a process is drained
//! several times while it exits. If a sink accepted nothing during the first wait, the later ones get only the
//! remaining time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logspool_sys::clock::monotonic_ns;

/// A wait that begins this soon after a timeout belongs to the earlier wait.
///
/// Chosen: an interpreter spends only milliseconds between its exit hooks. If a second has passed, the program has
/// continued to run.
const SAME_WAIT_NS: u64 = 1_000_000_000;
/// Minimum duration of a wait that belongs to an earlier one. Chosen: it is long enough to notice that everything was
/// written meanwhile.
const MIN_WAIT: Duration = Duration::from_millis(50);

/// When a wait timed out, and how long it had waited.
#[derive(Debug, Default)]
pub struct Lateness {
    /// Time of the last timeout on the monotonic clock; 0 means never.
    late_ns: AtomicU64,
    spent_ns: AtomicU64,
}

impl Lateness {
    /// How long to wait if `timeout` is the limit for all waits that belong together.
    pub fn remaining(&self, timeout: Duration) -> Duration {
        timeout.saturating_sub(self.spent()).max(MIN_WAIT.min(timeout))
    }

    /// Notes that a wait timed out after `spent`.
    pub fn note_timeout(&self, spent: Duration) {
        let spent = self.spent() + spent;
        self.spent_ns.store(spent.as_nanos().min(u128::from(u64::MAX)) as u64, Ordering::Relaxed);
        self.late_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    fn spent(&self) -> Duration {
        let late_ns = self.late_ns.load(Ordering::Relaxed);
        let is_recent = late_ns != 0 && monotonic_ns() < late_ns + SAME_WAIT_NS;
        Duration::from_nanos(if is_recent { self.spent_ns.load(Ordering::Relaxed) } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_that_follow_directly_share_their_time() {
        let [two, five] = [2, 5].map(Duration::from_secs);
        let lateness = Lateness::default();
        assert_eq!(five, lateness.remaining(five));
        lateness.note_timeout(two);
        assert_eq!(five - two, lateness.remaining(five));
        lateness.note_timeout(two);
        assert_eq!((five - two - two, MIN_WAIT), (lateness.remaining(five), lateness.remaining(two)));
        assert_eq!(Duration::ZERO, lateness.remaining(Duration::ZERO));

        lateness.late_ns.store(monotonic_ns() - SAME_WAIT_NS, Ordering::Relaxed);
        assert_eq!(five, lateness.remaining(five));
    }
}
