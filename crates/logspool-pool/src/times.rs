//! How long jobs waited and ran, in histograms that cost a worker two additions a job.
//!
//! Each worker has its own counters, so that no two workers write to the same memory. A reader adds up the counters.

use std::array;
use std::sync::OnceLock;

use logspool_sys::clock;
use logspool_sys::histogram::HistogramCounts;
use logspool_sys::sync::{AtomicU64, Ordering};

/// Number of buckets, including the one without an upper bound.
pub const BUCKETS: usize = 16;

/// Upper bound of the first bucket in nanoseconds, a power of two. Every other bound is four times the one before.
///
/// Chosen: the bounds range from about a microsecond, the cost of handing over a job, to about four and a half minutes.
const FIRST_NS: u64 = 1 << 10;

/// A histogram that one thread writes.
#[derive(Debug)]
struct WorkerHistogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl WorkerHistogram {
    fn new() -> Self {
        Self { buckets: array::from_fn(|_| AtomicU64::new(0)), sum_ns: AtomicU64::new(0) }
    }

    #[inline]
    fn note(&self, ns: u64) {
        // A time equal to a bound belongs to the bucket below it.
        let exponent = (ns.saturating_sub(1) / FIRST_NS).checked_ilog2().map_or(0, |exponent| exponent / 2 + 1);
        let bucket = &self.buckets[(exponent as usize).min(BUCKETS - 1)];
        // This thread is the only writer, so no atomic addition is needed.
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.sum_ns.store(self.sum_ns.load(Ordering::Relaxed).wrapping_add(ns), Ordering::Relaxed);
    }

    fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> HistogramCounts {
        let (mut buckets, mut sum_ns) = ([0; BUCKETS], 0u64);
        for each in all {
            for (total, bucket) in buckets.iter_mut().zip(&each.buckets) {
                *total += bucket.load(Ordering::Relaxed);
            }
            sum_ns = sum_ns.wrapping_add(each.sum_ns.load(Ordering::Relaxed));
        }
        let mut count = 0;
        let mut cumulative: Vec<_> = buckets
            .iter()
            .enumerate()
            .map(|(index, bucket)| {
                count += bucket;
                ((FIRST_NS << (2 * index)) as f64 / 1e9, count)
            })
            .collect();
        cumulative.pop();
        HistogramCounts { cumulative, count, sum: sum_ns as f64 / 1e9 }
    }
}

fn ns_per_tick() -> f64 {
    static NS_PER_TICK: OnceLock<f64> = OnceLock::new();
    *NS_PER_TICK.get_or_init(|| clock::first_point().ns_per_tick)
}

/// The time between two readings of [`clock::ticks`], in seconds.
pub fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 * ns_per_tick() / 1e9
}

/// The times of the jobs of one worker.
#[derive(Debug)]
pub struct WorkerTimes {
    wait: WorkerHistogram,
    run: WorkerHistogram,
    ns_per_tick: f64,
}

impl Default for WorkerTimes {
    fn default() -> Self {
        Self::new()
    }
}

impl WorkerTimes {
    /// Makes empty counters. The first call in a process takes 0.1 ms, because it measures the length of a tick.
    pub fn new() -> Self {
        Self { wait: WorkerHistogram::new(), run: WorkerHistogram::new(), ns_per_tick: ns_per_tick() }
    }

    /// Counts a job that was queued, begun and ended at these [`clock::ticks`]. Only one thread may call it.
    #[inline]
    pub fn note(&self, taken: u64, begun: u64, ended: u64) {
        // The ticks of two cores may differ, by less than the time for handing over a job. A negative time counts as 0.
        let ns = |from: u64, to: u64| (to.saturating_sub(from) as f64 * self.ns_per_tick) as u64;
        self.wait.note(ns(taken, begun));
        self.run.note(ns(begun, ended));
    }

    /// Adds up several workers: the histogram of waiting times and the histogram of run times, in seconds.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> (HistogramCounts, HistogramCounts) {
        (WorkerHistogram::sum(all.clone().map(|each| &each.wait)), WorkerHistogram::sum(all.map(|each| &each.run)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bucket_of(ns: u64) -> usize {
        let series = WorkerHistogram::new();
        series.note(ns);
        series.buckets.iter().position(|bucket| bucket.load(Ordering::Relaxed) == 1).unwrap()
    }

    #[test]
    fn each_bucket_ends_at_its_bound() {
        for index in 0..BUCKETS - 1 {
            let bound = FIRST_NS << (2 * index);
            assert_eq!((index, index + 1), (bucket_of(bound), bucket_of(bound + 1)), "{bound} ns");
        }
        assert_eq!((0, BUCKETS - 1), (bucket_of(0), bucket_of(u64::MAX)));
    }

    #[test]
    fn the_sum_of_workers_is_cumulative() {
        let workers = [WorkerTimes::new(), WorkerTimes::new()];
        let ticks = |seconds: f64| (seconds * 1e9 / workers[0].ns_per_tick) as u64;
        workers[0].note(0, ticks(0.5), ticks(0.6));
        workers[1].note(0, ticks(1.5), ticks(301.5));
        let (wait, run) = WorkerTimes::sum(workers.iter());
        assert_eq!((2, 2), (wait.count, run.count));
        assert!((wait.sum - 2.0).abs() < 1e-3 && (run.sum - 300.1).abs() < 1e-3);
        let at_most = |counts: &HistogramCounts, seconds: f64| {
            counts.cumulative.iter().rfind(|(bound, _)| *bound <= seconds).map(|(_, count)| *count)
        };
        assert_eq!((Some(0), Some(1), Some(2)), (at_most(&wait, 0.3), at_most(&wait, 1.1), at_most(&wait, 5.0)));
        assert_eq!(Some(1), run.cumulative.last().map(|(_, count)| *count), "five minutes are above all bounds");
    }

    #[test]
    fn clocks_that_differ_a_little_count_as_nothing() {
        let times = WorkerTimes::new();
        times.note(10, 9, 8);
        let (wait, run) = WorkerTimes::sum(std::iter::once(&times));
        assert_eq!((1, 0.0, 1, 0.0), (wait.cumulative[0].1, wait.sum, run.cumulative[0].1, run.sum));
    }
}
