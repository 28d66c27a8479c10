//! Waits that belong together share their time: a handler is flushed and then closed, a process is drained several times
//! on its way out, and what took nothing all the time the first wait had is not given the same again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logspool_sys::clock::monotonic_ns;

/// A wait that begins so soon after one that ran out of time belongs to it.
///
/// Chosen: what an interpreter does between its last hooks takes milliseconds; after more the program goes on.
const TOGETHER_NS: u64 = 1_000_000_000;
/// What such a wait has at least. Chosen: enough to see that everything was written meanwhile.
const MOMENT: Duration = Duration::from_millis(50);

/// When a wait ran out of time, and how much it had.
#[derive(Debug, Default)]
pub struct Lateness {
    /// On the monotonic clock; 0 is never.
    late_ns: AtomicU64,
    spent_ns: AtomicU64,
}

impl Lateness {
    /// How long to wait where `timeout` is allowed for all waits that belong together.
    pub fn share(&self, timeout: Duration) -> Duration {
        timeout.saturating_sub(self.spent()).max(MOMENT.min(timeout))
    }

    /// A wait ran out of time after `spent`.
    pub fn note(&self, spent: Duration) {
        let spent = self.spent() + spent;
        self.spent_ns.store(spent.as_nanos().min(u128::from(u64::MAX)) as u64, Ordering::Relaxed);
        self.late_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    fn spent(&self) -> Duration {
        let late_ns = self.late_ns.load(Ordering::Relaxed);
        let is_recent = late_ns != 0 && monotonic_ns() < late_ns + TOGETHER_NS;
        Duration::from_nanos(if is_recent { self.spent_ns.load(Ordering::Relaxed) } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_right_behind_each_other_share_their_time() {
        let [two, five] = [2, 5].map(Duration::from_secs);
        let lateness = Lateness::default();
        assert_eq!(five, lateness.share(five));
        lateness.note(two);
        assert_eq!(five - two, lateness.share(five));
        lateness.note(two);
        assert_eq!((five - two - two, MOMENT), (lateness.share(five), lateness.share(two)));
        assert_eq!(Duration::ZERO, lateness.share(Duration::ZERO));

        lateness.late_ns.store(monotonic_ns() - TOGETHER_NS, Ordering::Relaxed);
        assert_eq!(five, lateness.share(five));
    }
}
