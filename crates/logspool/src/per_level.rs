//! Counts of records per level class.

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::sync::{AtomicU64, Ordering};

/// One count for each level class.
pub type PerLevel = [u64; LEVEL_CLASSES];

/// Reads counters.
pub fn read(counters: &[AtomicU64; LEVEL_CLASSES]) -> PerLevel {
    std::array::from_fn(|class| counters[class].load(Ordering::Relaxed))
}

/// Adds `more` to `total`.
pub fn add(total: &mut PerLevel, more: PerLevel) {
    for (total, more) in total.iter_mut().zip(more) {
        *total += more;
    }
}
