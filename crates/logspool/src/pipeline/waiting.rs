//! Requests flushes, and waits until the native threads have done their work.

use std::time::{Duration, Instant};

use logspool_lanes::queue::producer::wake_collector;
use logspool_sys::progress;
use logspool_sys::published::{Counted, Published};

use super::state::Pipeline;

/// How long a waiting caller stays awake, yielding its processor to other threads, before it sleeps.
///
/// Chosen: the collector and a writer need this long to wake and write a line. Sleeping and being woken would take the
/// caller about as long again.
const AWAKE: Duration = Duration::from_micros(40);
/// First and longest pause of a waiting caller between two checks, if no event wakes it. Each pause is twice the
/// previous one.
///
/// Chosen: usually an event wakes the caller, so the pauses matter little. Syncs and spool work send no event, and they
/// take longer than the first pause.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const MAX_PAUSE: Duration = Duration::from_millis(1);

/// The deadline that is `timeout` from now. `None` if there is no timeout, or if the deadline is beyond the range of
/// the clock.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

impl Pipeline {
    pub(super) fn wake(&self) {
        wake_collector(&self.segment.header().sleeping);
    }

    /// Requests a flush and returns its ticket.
    pub(super) fn request(&self) -> u64 {
        // Pairs with `observe` in `requested_ticket`: the caller's pushes are visible to the collector.
        let ticket = self.requested.advance_both_ways();
        self.wake();
        ticket
    }

    pub(super) fn wait(&self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        let mut pause = FIRST_PAUSE;
        let awake_until = Instant::now() + AWAKE;
        loop {
            // Read the progress counter before the check, so that progress made between the check and the sleep ends
            // the sleep.
            let seen = progress::steps();
            // A replaced pipeline has written everything, and no thread is left to report this.
            if done() || self.is_past.observe() {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            if !progress::spin_until_step(seen, awake_until) {
                progress::sleep(seen, pause);
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
}
