//! Limits the warnings about a store that fails repeatedly. A warning is logged when the problem begins or changes, and
//! then once a minute.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Minimum time between two equal warnings. Chosen: a store that is unavailable for a night causes some hundred lines
/// in the log.
const PAUSE: Duration = Duration::from_secs(60);

/// The last warning of each kind, and its time.
#[derive(Debug, Default)]
pub(super) struct RepeatedWarnings(HashMap<&'static str, (String, Instant)>);

impl RepeatedWarnings {
    /// True if a warning of this kind has to be logged now.
    pub fn is_due(&mut self, kind: &'static str, text: &str, now: Instant) -> bool {
        match self.0.get(kind) {
            Some((last, logged)) if last == text && now.saturating_duration_since(*logged) < PAUSE => false,
            _ => {
                self.0.insert(kind, (text.to_owned(), now));
                true
            }
        }
    }

    /// Notes that the problem is over. Returns true if there was a warning of this kind.
    pub fn clear(&mut self, kind: &'static str) -> bool {
        self.0.remove(kind).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_logged_when_it_changes_and_once_a_minute() {
        let (mut repeated, began) = (RepeatedWarnings::default(), Instant::now());
        let mut due = |text, seconds| repeated.is_due("write", text, began + Duration::from_secs(seconds));

        assert!(due("full", 0) && !due("full", 5) && !due("full", 59));
        assert!(due("full", 60) && !due("full", 61));
        assert!(due("away", 62) && !due("away", 63));
        assert!(repeated.clear("write") && !repeated.clear("write"));
        assert!(repeated.is_due("write", "away", began + Duration::from_secs(64)));
    }
}
