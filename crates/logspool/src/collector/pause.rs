//! How long the collector pauses after a turn.
//!
//! A ring holds the records of two pauses, because the sinks still write those of the first one. A pause that gathers
//! less than an eighth of every ring may be followed by one twice as long: two such longer pauses leave each ring less
//! than half full. So a thread that logs at a steady pace does not wake the collector, which would take it 13 us.

use std::time::Duration;

use super::CollectorTurn;

/// First and longest pause of a collector with little to do. With pauses of 5 ms it uses 0.1 to 0.4 % of a core.
///
/// A lane that is half full, an ERROR record or a flush wakes the collector earlier. So this limit applies only to
/// records that wake nobody.
const PAUSE_NS: std::ops::RangeInclusive<u64> = 500_000..=5_000_000;
/// Shortest pause while a lane fills quickly.
///
/// Chosen: two such pauses leave a first ring less than half full if it gets up to 60 MB a second, which is a million
/// records.
const SHORT_PAUSE_NS: u64 = 125_000;
/// Longest pause while a flush is under way, or while the outlets cannot take a batch.
const WAITING_PAUSE_NS: u64 = 1_000_000;
/// Longest pause of a collector: of one that had no records for a second. It uses some 0.3 % of a core.
///
/// It is also the least `flush_interval`: every interval that a program can ask for is kept.
pub const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The collector's next pause.
#[derive(Debug)]
pub struct Pause {
    nanoseconds: u64,
    last: u64,
}

impl Default for Pause {
    fn default() -> Self {
        Self { nanoseconds: *PAUSE_NS.start(), last: *PAUSE_NS.start() }
    }
}

impl Pause {
    /// Adapts the pause to the turn before it.
    pub fn follow(&mut self, turn: CollectorTurn) {
        match turn {
            CollectorTurn::Worked { fills_lane: false } => self.nanoseconds = *PAUSE_NS.start(),
            CollectorTurn::Worked { fills_lane: true } => self.nanoseconds = SHORT_PAUSE_NS,
            CollectorTurn::Few { fills_lane: true } => self.nanoseconds = self.nanoseconds.min(self.last),
            CollectorTurn::Few { fills_lane: false } | CollectorTurn::Idle | CollectorTurn::Held => {}
        }
    }

    /// Shortens the pause for a flush, or for outlets that cannot take a batch.
    pub fn shorten(&mut self) {
        self.nanoseconds = self.nanoseconds.min(WAITING_PAUSE_NS);
    }

    /// Returns the pause to make now, in nanoseconds, and doubles the next one.
    pub fn take(&mut self, is_quiet: bool) -> u64 {
        let longest = if is_quiet { LONGEST_PAUSE.as_nanos() as u64 } else { *PAUSE_NS.end() };
        self.last = self.nanoseconds;
        self.nanoseconds = (self.nanoseconds * 2).min(longest);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use logspool_lanes::segment::FIRST_RING_BYTES;

    use super::super::{LARGE_SHARE_DIVISOR, SMALL_BATCH_BYTES};
    use super::*;

    #[test]
    fn a_ring_stays_less_than_half_full_at_a_steady_pace() {
        for kilobytes_per_second in (500..=60_000).step_by(500) {
            let (mut pause, mut last) = (Pause::default(), 0);
            for round in 0..200 {
                let bytes = pause.take(false) * kilobytes_per_second / 1_000_000;
                let fills_lane = bytes >= FIRST_RING_BYTES / LARGE_SHARE_DIVISOR;
                pause.follow(if bytes < SMALL_BATCH_BYTES {
                    CollectorTurn::Few { fills_lane }
                } else {
                    CollectorTurn::Worked { fills_lane }
                });

                assert!(
                    round < 10 || last + bytes < FIRST_RING_BYTES / 2,
                    "{kilobytes_per_second} kB/s, round {round}: {last} + {bytes} bytes"
                );
                last = bytes;
            }
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_one() {
        let mut pause = Pause::default();
        let taken: Vec<u64> = (0..6).map(|_| pause.take(false) / 1000).collect();
        pause.shorten();

        assert_eq!(vec![500, 1000, 2000, 4000, 5000, 5000], taken);
        assert_eq!(WAITING_PAUSE_NS, pause.take(true));
        assert_eq!(vec![2, 4, 8, 16, 20], (0..5).map(|_| pause.take(true) / 1_000_000).collect::<Vec<_>>());
    }
}
