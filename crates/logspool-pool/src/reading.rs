//! The numbers of one pool at one moment, for a page of metrics.

use logspool_sys::histogram::HistogramCounts;

use crate::Counts;

/// What a pool holds and has done, at one moment.
#[derive(Debug, Clone)]
pub struct PoolReading {
    /// Its name, different from those of other pools.
    pub name: String,
    /// Jobs and workers.
    pub counts: Counts,
    /// How long the oldest job has waited, in seconds.
    pub oldest_age: f64,
    /// Jobs without a future that raised.
    pub failed: u64,
    /// Jobs that gave way to newer ones.
    pub dropped: u64,
    /// Jobs that ran longer than they may.
    pub timed_out: u64,
    /// How long jobs waited for a worker, in seconds.
    pub wait_seconds: HistogramCounts,
    /// How long they ran, in seconds.
    pub run_seconds: HistogramCounts,
}
