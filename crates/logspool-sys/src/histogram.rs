//! Histograms that any thread may add to, and their counts at one moment.
//!
//! The atomics are relaxed, so a reader may see one counter that is a moment older than another.

use std::sync::atomic::{AtomicU64, Ordering};

/// A histogram with fixed bounds.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    buckets: [AtomicU64; N],
    rest: AtomicU64,
    /// Sum in millionths, so that it fits an integer.
    sum_millionths: AtomicU64,
}

/// The counts of a [`Histogram`] at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramCounts {
    /// Each bucket's upper bound, with the number of observations at or below it (cumulative).
    pub cumulative: Vec<(f64, u64)>,
    /// Number of all observations.
    pub count: u64,
    /// Sum of all observations.
    pub sum: f64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            rest: AtomicU64::new(0),
            sum_millionths: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Histogram<N> {
    /// Counts one observation.
    pub fn observe(&self, bounds: &[f64; N], value: f64) {
        let bucket = bounds.iter().position(|bound| value <= *bound);
        bucket.map_or(&self.rest, |bucket| &self.buckets[bucket]).fetch_add(1, Ordering::Relaxed);
        self.sum_millionths.fetch_add((value * 1e6) as u64, Ordering::Relaxed);
    }

    /// The counts at this moment.
    pub fn counts(&self, bounds: &[f64; N]) -> HistogramCounts {
        let mut count = 0;
        let cumulative = bounds
            .iter()
            .zip(&self.buckets)
            .map(|(bound, bucket)| {
                count += bucket.load(Ordering::Relaxed);
                (*bound, count)
            })
            .collect();
        count += self.rest.load(Ordering::Relaxed);
        HistogramCounts { cumulative, count, sum: self.sum_millionths.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}
