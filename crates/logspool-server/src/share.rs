//! How peers share limited resources: places for queries, query threads, live tails.

use std::fmt;

/// A peer may take another one while this many are free for each one it holds. So a single peer gets a third of all,
/// the next one a third of the rest, and so on. One is left for a new peer until very many peers have taken their
/// share.
///
/// Chosen: with 1 a single peer gets half and three of them nearly all. With 3 a machine with many users gets only a
/// quarter.
const FREE_PER_HELD: usize = 2;

/// True if a peer that holds `held` may take another one while `free` are free.
pub fn may_take_more(held: usize, free: usize) -> bool {
    free > 0 && held * FREE_PER_HELD < free
}

/// Reason why a peer gets no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All are taken.
    Full {
        /// Number of all.
        limit: usize,
    },
    /// The peer already holds its share.
    Share {
        /// Number that the peer holds.
        held: usize,
        /// Number of all.
        limit: usize,
    },
}

impl Refusal {
    /// Checks that a peer that holds `held` may take another one while `free` are free.
    ///
    /// # Errors
    ///
    /// The reason why it may not.
    pub fn check(held: usize, free: usize, limit: usize) -> Result<(), Self> {
        match (may_take_more(held, free), free) {
            (true, _) => Ok(()),
            (false, 0) => Err(Self::Full { limit }),
            (false, _) => Err(Self::Share { held, limit }),
        }
    }

    /// The label of the metric.
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
