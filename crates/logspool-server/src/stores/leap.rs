//! Doubt about a clock that says that days have passed at once.
//!
//! A clock that is wrong by years for a moment, as at the start of a machine that has not asked for the time yet, would
//! make all records old, and removing them cannot be taken back. So whoever removes for age asks here first: a day that
//! does not follow the one before it, as far as the store can tell, is believed only after a while. A service that was
//! away for days looks the same; it keeps what is old for that while longer.

use std::time::{Duration, Instant};

/// How long a leap is doubted. Chosen: far longer than a machine takes to get the right time; at half of it a person
/// has less time to mend it, and with more of it a service that runs for some hours a week would never remove anything.
const DOUBT: Duration = Duration::from_secs(2 * 3600);

/// The last leap, as long as it is doubted.
#[derive(Debug, Default)]
pub(super) struct Leap {
    /// When it was found, and the day that it led to, counted from 1970.
    doubted: Option<(Instant, i64)>,
    /// The latest day on which this was asked.
    last: Option<i64>,
}

impl Leap {
    /// Whether today is believed. `was_away`: as far as the store can tell, the service was not there yesterday.
    pub(super) fn is_believed(&mut self, today: i64, was_away: bool, now: Instant) -> bool {
        if self.doubted.is_some_and(|(_, day)| today < day) {
            // It was set back: so it was wrong.
            *self = Self::default();
        }
        let leapt = was_away || self.last.is_some_and(|last| today > last + 1);
        self.last = self.last.max(Some(today));
        // One that goes on leaping is doubted anew.
        self.doubted = self.doubted.filter(|(_, day)| today <= day + 1);
        match self.doubted {
            Some((since, _)) if now.duration_since(since) < DOUBT => false,
            Some(_) => {
                // All day long it looks like a leap; then it is over.
                self.doubted = self.doubted.filter(|_| leapt);
                true
            }
            None if leapt => {
                tracing::warn!(
                    "days have passed since the store was written to: in case the clock is wrong, nothing is removed \
                     for its age within the next {} hours",
                    DOUBT.as_secs() / 3600
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
    fn a_leap_is_believed_after_a_while_and_days_that_follow_each_other_at_once() {
        let (mut leap, now) = (Leap::default(), Instant::now());

        assert!(leap.is_believed(10, false, now));
        assert!(leap.is_believed(11, false, now));
        // In its own eyes, and in those of the store, which go on seeing it.
        assert!(!leap.is_believed(400, false, now));
        assert!(!leap.is_believed(400, true, now + DOUBT - MINUTE));
        assert!(leap.is_believed(400, true, now + DOUBT));
        assert!(leap.is_believed(400, true, now + DOUBT + MINUTE));
        assert!(leap.is_believed(401, false, now + 2 * DOUBT));
        assert!(!leap.is_believed(403, false, now + 3 * DOUBT));
    }

    #[test]
    fn a_clock_that_is_behind_for_a_while_has_not_leapt_when_it_is_right_again() {
        let (mut leap, now) = (Leap::default(), Instant::now());

        for today in [10, 0, 11] {
            assert!(leap.is_believed(today, false, now));
        }
    }

    #[test]
    fn a_leap_is_doubted_over_midnight_and_forgotten_when_the_clock_is_set_back() {
        let (mut leap, now) = (Leap::default(), Instant::now());

        assert!(!leap.is_believed(400, true, now));
        assert!(!leap.is_believed(401, false, now + MINUTE));
        assert!(leap.is_believed(11, false, now + 2 * MINUTE));
        assert!(!leap.is_believed(400, true, now + 3 * MINUTE));
        assert!(!leap.is_believed(400, true, now + DOUBT + MINUTE));
    }
}
