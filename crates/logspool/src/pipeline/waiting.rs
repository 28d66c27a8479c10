//! How a caller asks for a flush and waits for what the native threads do.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_lanes::queue::producer::wake_collector;
use logspool_sys::progress;

use super::state::Pipeline;

/// How long a caller that waits stays awake, giving its processor to whoever wants it.
///
/// Chosen: the collector and a writer need it to wake and write a line; to fall asleep and be woken would take the
/// caller about as long once more.
const AWAKE: Duration = Duration::from_micros(40);
/// A caller that waits looks again after so long, where nothing wakes it before; then after twice as long.
///
/// Chosen: what it waits for mostly wakes it. A sync and a spool do not, and take longer than the first pause.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The end of a time that begins now. `None`: there is none, or it is beyond what the clock counts.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

impl Pipeline {
    pub(super) fn wake(&self) {
        wake_collector(&self.segment.header().sleeping);
    }

    /// Asks for a flush and returns its ticket.
    pub(super) fn request(&self) -> u64 {
        // Release pairs with the Acquire in `requested_ticket`: the caller's pushes came before.
        let ticket = self.requested.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake();
        ticket
    }

    pub(super) fn wait(&self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        let mut pause = FIRST_PAUSE;
        let awake_until = Instant::now() + AWAKE;
        loop {
            // Before the look, so that a step between the look and the sleep ends the sleep.
            let seen = progress::steps();
            // Everything in a pipeline that was put aside is written, and nobody is left to say so.
            if done() || self.is_past.load(Ordering::Acquire) {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            if !progress::await_step(seen, awake_until) {
                progress::sleep(seen, pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
