//! Limits the rate of warnings that may come often, for example because a peer triggers them.
//!
//! The first warning of a kind is logged at once. Later at most one warning per [`PAUSE`] is logged, with the number of
//! suppressed warnings. The metrics also count the suppressed ones.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::peer::Peer;

/// Minimum time between two logged warnings of the same kind.
///
/// Chosen: a person can still read twelve lines a minute per kind. With a longer pause, a log would take longer to show
/// that a second peer causes the same warning.
const PAUSE: Duration = Duration::from_secs(5);

/// Logs a warning, unless a warning of the same kind was logged within [`PAUSE`]. `kind` is also the label `reason` of
/// the metric, if the metric has this label.
pub fn warn(kind: &'static str, peer: Option<&Peer>, message: impl FnOnce() -> String) {
    static KINDS: LazyLock<Mutex<WarningTimes>> = LazyLock::new(Mutex::default);
    // Do not move this line into the `let ... else`: the lock would then be held while the message is written.
    let turn = KINDS.lock().unwrap_or_else(PoisonError::into_inner).admit(kind, Instant::now());
    let Some(left_out) = turn else { return };
    let (peer, message) = (peer.map(Peer::name), message());
    match left_out {
        0 => tracing::warn!(peer, "{message}"),
        _ => tracing::warn!(peer, "{message} ({left_out} more of this kind were not logged)"),
    }
}

/// For each kind: the time of the last logged warning, and the number of warnings suppressed since then.
#[derive(Debug, Default)]
struct WarningTimes(HashMap<&'static str, (Instant, u64)>);

impl WarningTimes {
    /// Returns the number of warnings suppressed since the last logged one. `None`: this warning must be suppressed
    /// too.
    fn admit(&mut self, kind: &'static str, now: Instant) -> Option<u64> {
        match self.0.get_mut(kind) {
            Some((logged, left_out)) if now.saturating_duration_since(*logged) < PAUSE => {
                *left_out += 1;
                None
            }
            _ => Some(self.0.insert(kind, (now, 0)).map_or(0, |(_, left_out)| left_out)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_kind_is_logged_at_once_and_the_rest_are_counted() {
        let (mut kinds, began) = (WarningTimes::default(), Instant::now());
        let mut turn = |kind, tenths: u64| kinds.admit(kind, began + Duration::from_millis(tenths * 100));

        assert_eq!(Some(0), turn("tls", 0));
        assert_eq!((None, None), (turn("tls", 1), turn("tls", 49)));
        assert_eq!(Some(0), turn("network", 49));
        assert_eq!(Some(2), turn("tls", 50));
        assert_eq!(None, turn("tls", 51));
        assert_eq!(Some(1), turn("tls", 200));
    }
}
