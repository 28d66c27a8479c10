//! The numbers of one pool at one moment, for a metrics page.

use logspool_sys::histogram::HistogramCounts;

use crate::JobCounts;

/// The present load of a pool and its counters, at one moment.
#[derive(Debug, Clone)]
pub struct PoolReading {
    /// Name of the pool, different from the names of all other pools.
    pub name: String,
    /// Numbers of jobs and workers.
    pub counts: JobCounts,
    /// How long the oldest job has waited, in seconds.
    pub oldest_age: f64,
    /// Jobs without a future that raised an exception.
    pub failed: u64,
    /// Jobs that were dropped in favour of newer ones.
    pub dropped: u64,
    /// Jobs that ran longer than their time limit.
    pub timed_out: u64,
    /// How long jobs waited for a worker, in seconds.
    pub wait_seconds: HistogramCounts,
    /// How long jobs ran, in seconds.
    pub run_seconds: HistogramCounts,
}
