//! Decides when the collector warns that the queue fills up.
//!
//! The depth is the part of overflow and spool that is in use: lanes are emptied all the time, and a full lane says
//! nothing about the outputs. Each warning comes once per rise. It comes again only after the depth fell clearly below its
//! threshold, so a depth that moves around a threshold gives one warning.

/// A threshold, and the depth below which its warning may come again. Both in percent.
#[derive(Debug, Clone, Copy)]
struct Threshold {
    at: u64,
    again_below: u64,
}

/// Specified by the public contract: docs/how-to/monitor.md.
const THRESHOLDS: [Threshold; 3] = [
    Threshold { at: 50, again_below: 40 },
    Threshold { at: 80, again_below: 70 },
    Threshold { at: 100, again_below: 90 },
];

/// The end of each warning.
const REASON: &str = "outputs take records too slowly (fix: look at the outputs, statistics say which; a spool_dir gives \
                      the records room on disk)";

/// Number of thresholds that the depth has reached since it was low.
#[derive(Debug, Default)]
pub(super) struct DepthWatch {
    reached: usize,
    /// Percentage of a warning that no batch has taken along yet.
    due: Option<u64>,
}

impl DepthWatch {
    /// Notes how many of `limit` bytes are in use. The queue counts as full if fewer than `room` bytes are left.
    pub(super) fn note(&mut self, used: u64, limit: u64, room: u64) {
        if limit == 0 {
            return;
        }
        let percent = if limit.saturating_sub(used) < room { 100 } else { used.saturating_mul(100) / limit };
        while self.reached > 0 && percent < THRESHOLDS[self.reached - 1].again_below {
            self.reached -= 1;
        }
        let reached = THRESHOLDS.iter().take_while(|threshold| percent >= threshold.at).count();
        if reached > self.reached {
            self.reached = reached;
            self.due = Some(THRESHOLDS[reached - 1].at);
        }
    }

    /// The warning for the next batch, if one is due.
    pub(super) fn take(&mut self) -> Option<String> {
        Some(match self.due.take()? {
            100 => format!("the queue is full: {REASON}"),
            percent => format!("the queue is {percent} % full: {REASON}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The percentages of the warnings that these depths give, of 1000 bytes.
    fn warnings(depths: &[u64]) -> Vec<u64> {
        let mut watch = DepthWatch::default();
        let mut given = Vec::new();
        for depth in depths {
            watch.note(*depth, 1000, 50);
            given.extend(watch.due);
            watch.take();
        }
        given
    }

    #[test]
    fn each_threshold_warns_once_per_rise() {
        assert_eq!(vec![50, 80, 100], warnings(&[0, 499, 500, 500, 799, 800, 900, 949, 951, 1000, 1000]));
    }

    #[test]
    fn a_jump_warns_only_about_the_highest_threshold() {
        assert_eq!(vec![100], warnings(&[0, 1000, 1000, 900]));
    }

    #[test]
    fn a_depth_that_moves_around_a_threshold_warns_once() {
        assert_eq!(vec![50], warnings(&[500, 450, 510, 401, 600]));
    }

    #[test]
    fn a_warning_comes_again_after_the_depth_has_fallen() {
        assert_eq!(vec![50, 50], warnings(&[500, 399, 500]));
        assert_eq!(vec![80, 80], warnings(&[800, 699, 800]));
        assert_eq!(vec![100, 100], warnings(&[1000, 899, 1000]));
        assert_eq!(vec![100, 50, 80], warnings(&[1000, 0, 600, 850]));
    }

    #[test]
    fn an_overflow_of_zero_bytes_causes_no_warning() {
        let mut watch = DepthWatch::default();
        watch.note(0, 0, 50);
        assert_eq!(None, watch.take());
    }
}
