//! Prevents a clock that jumps ahead by days from causing the removal of recent records.
//!
//! A clock can be wrong by years for a moment, for example on a machine that has just started and has not synchronised
//! yet. All records would then seem old, and their removal cannot be undone. So code that removes records by age calls
//! [`ClockJump::is_trusted`] first. If the current day does not directly follow the store's last known day, it is
//! trusted only after [`DOUBT_TIME`]. A service that was down for days looks the same, so it keeps old records for
//! [`DOUBT_TIME`] longer.

use std::time::{Duration, Instant};

/// How long a jump of the clock is doubted. Chosen: it is far longer than a machine takes to get the right time.
/// Halving it leaves an operator less time to set the clock. If it were doubled, a service that runs a few hours a week
/// might never remove anything.
const DOUBT_TIME: Duration = Duration::from_secs(2 * 3600);

/// Remembers the last jump of the clock while that jump is doubted.
#[derive(Debug, Default)]
pub(super) struct ClockJump {
    /// The moment at which the jump was noticed, and the day after the jump, counted in days since 1970.
    doubted: Option<(Instant, i64)>,
    /// The latest day on which [`Self::is_trusted`] was called.
    last: Option<i64>,
}

impl ClockJump {
    /// True if `today` can be trusted. `was_away` is true if, according to the store, the service did not run
    /// yesterday.
    pub(super) fn is_trusted(&mut self, today: i64, was_away: bool, now: Instant) -> bool {
        if self.doubted.is_some_and(|(_, day)| today < day) {
            // The clock was set back, so the jump was wrong.
            *self = Self::default();
        }
        let leapt = was_away || self.last.is_some_and(|last| today > last + 1);
        self.last = self.last.max(Some(today));
        // If the clock has jumped further, the time of doubt starts again.
        self.doubted = self.doubted.filter(|(_, day)| today <= day + 1);
        match self.doubted {
            Some((since, _)) if now.duration_since(since) < DOUBT_TIME => false,
            Some(_) => {
                // The jump is remembered until the end of this day, because `was_away` stays true all day.
                self.doubted = self.doubted.filter(|_| leapt);
                true
            }
            None if leapt => {
                tracing::warn!(
                    "the clock is days ahead of the last write: in case it is wrong, no records are removed \
                     for their age for the next {} hours",
                    DOUBT_TIME.as_secs() / 3600
                );
                self.doubted = Some((now, today));
                false
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_jump_is_trusted_after_a_while_and_consecutive_days_at_once() {
        let (mut leap, now) = (ClockJump::default(), Instant::now());

        assert!(leap.is_trusted(10, false, now));
        assert!(leap.is_trusted(11, false, now));
        // `ClockJump` notices the jump first. Then the store reports it too, all day long.
        assert!(!leap.is_trusted(400, false, now));
        assert!(!leap.is_trusted(400, true, now + DOUBT_TIME - MINUTE));
        assert!(leap.is_trusted(400, true, now + DOUBT_TIME));
        assert!(leap.is_trusted(400, true, now + DOUBT_TIME + MINUTE));
        assert!(leap.is_trusted(401, false, now + 2 * DOUBT_TIME));
        assert!(!leap.is_trusted(403, false, now + 3 * DOUBT_TIME));
    }

    #[test]
    fn a_clock_that_was_slow_has_not_jumped_when_it_is_corrected() {
        let (mut leap, now) = (ClockJump::default(), Instant::now());

        for today in [10, 0, 11] {
            assert!(leap.is_trusted(today, false, now));
        }
    }

    #[test]
    fn a_jump_is_doubted_over_midnight_and_forgotten_when_the_clock_is_set_back() {
        let (mut leap, now) = (ClockJump::default(), Instant::now());

        assert!(!leap.is_trusted(400, true, now));
        assert!(!leap.is_trusted(401, false, now + MINUTE));
        assert!(leap.is_trusted(11, false, now + 2 * MINUTE));
        assert!(!leap.is_trusted(400, true, now + 3 * MINUTE));
        assert!(!leap.is_trusted(400, true, now + DOUBT_TIME + MINUTE));
    }
}
