//! Shares limited resources among peers: places for queries, query threads, and live tails.

use std::fmt;

/// A peer may take another unit while more than this number of units are free for each unit that it holds. So a single
/// peer gets a third of all units, the next peer a third of the remaining units, and so on. A new peer finds a free
/// unit until very many peers have taken their share.
///
/// Chosen: with 1, a single peer would get half of the units, and three peers nearly all. With 3, a machine with many
/// users would get only a quarter.
const FREE_PER_HELD: usize = 2;

/// True if a peer that holds `held` units may take another one while `free` units are free.
pub fn may_take_more(held: usize, free: usize) -> bool {
    free > 0 && held * FREE_PER_HELD < free
}

/// Reason why a peer gets no further unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All units are in use.
    Full {
        /// Number of all units, free or in use.
        limit: usize,
    },
    /// The peer already holds its share of the units.
    Share {
        /// Number of units that the peer holds.
        held: usize,
        /// Number of all units, free or in use.
        limit: usize,
    },
}

impl Refusal {
    /// Checks that a peer that holds `held` units may take another one while `free` units are free.
    ///
    /// # Errors
    ///
    /// The reason why the peer may not take another unit.
    pub fn check(held: usize, free: usize, limit: usize) -> Result<(), Self> {
        match (may_take_more(held, free), free) {
            (true, _) => Ok(()),
            (false, 0) => Err(Self::Full { limit }),
            (false, _) => Err(Self::Share { held, limit }),
        }
    }

    /// The value of the label `reason` in the metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Full { .. } => "too_many",
            Self::Share { .. } => "too_many_of_peer",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { limit } => write!(to, "all {limit} are in use"),
            Self::Share { held, limit } => {
                write!(to, "this peer already has its share, {held} of {limit}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_gets_a_third_and_there_is_one_left_for_the_next() {
        for (expected, limit) in [(1, 1), (1, 2), (1, 3), (2, 4), (22, 64), (86, 256)] {
            let most = (0..).find(|held| !may_take_more(*held, limit - held));
            assert_eq!(Some(expected), most, "{limit}");
        }
        let mut free = 64;
        let peers = (0..).take_while(|_| {
            let before = free;
            while may_take_more(before - free, free) {
                free -= 1;
            }
            before > free
        });
        assert!(peers.count() > 8);
        assert_eq!(Err(Refusal::Full { limit: 9 }), Refusal::check(0, 0, 9));
        assert_eq!(Err(Refusal::Share { held: 3, limit: 9 }), Refusal::check(3, 6, 9));
    }
}
