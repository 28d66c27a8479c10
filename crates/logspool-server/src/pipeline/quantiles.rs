//! Percentiles of numbers: exact for few numbers, and within 1 % for many.

use std::collections::BTreeMap;

/// Number of values that are kept. More values are counted in buckets, which would need as much memory.
const EXACT_VALUES: usize = 2_048;

/// The largest value of a bucket, divided by its smallest. The middle of a bucket differs from its values by 0.8 % at
/// most.
const BUCKET_GROWTH: f64 = 1.016;

/// Numbers whose percentiles can be calculated.
#[derive(Debug, Clone, Default)]
pub(super) struct Quantiles {
    count: u64,
    exact: Vec<f64>,
    /// The number of values in each bucket. The key is the sign and the exponent of the bucket, in the order of the
    /// values.
    buckets: BTreeMap<(i8, i32), u64>,
}

impl Quantiles {
    /// Adds a number. Returns the bytes that this takes.
    pub fn add(&mut self, number: f64) -> usize {
        self.count += 1;
        if self.buckets.is_empty() {
            self.exact.push(number);
            if self.exact.len() <= EXACT_VALUES {
                return size_of::<f64>();
            }
            let before = self.exact.len() * size_of::<f64>();
            for number in std::mem::take(&mut self.exact) {
                self.count_in_bucket(number);
            }
            return (self.buckets.len() * BUCKET_BYTES).saturating_sub(before);
        }
        let buckets = self.buckets.len();
        self.count_in_bucket(number);
        (self.buckets.len() - buckets) * BUCKET_BYTES
    }

    fn count_in_bucket(&mut self, number: f64) {
        *self.buckets.entry(bucket(number)).or_default() += 1;
    }

    /// The smallest number that is not less than this share of all numbers, in thousandths.
    pub fn percentile(&self, thousandths: u16) -> Option<f64> {
        let rank = (u128::from(self.count) * u128::from(thousandths)).div_ceil(1000).max(1);
        if self.buckets.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_by(f64::total_cmp);
            return sorted.get(usize::try_from(rank).ok()? - 1).copied();
        }
        let mut seen = 0;
        for (key, count) in &self.buckets {
            seen += u128::from(*count);
            if seen >= rank {
                return Some(middle(*key));
            }
        }
        None
    }
}

/// Bytes of a bucket in the map.
const BUCKET_BYTES: usize = 32;

fn bucket(number: f64) -> (i8, i32) {
    if number == 0.0 {
        return (0, 0);
    }
    // The exponents of doubles are far below the limits of the type.
    let exponent = (number.abs().ln() / BUCKET_GROWTH.ln()).ceil() as i32;
    if number > 0.0 { (1, exponent) } else { (-1, -exponent) }
}

fn middle((sign, exponent): (i8, i32)) -> f64 {
    let (sign, exponent) = match sign {
        0 => return 0.0,
        1 => (1.0, exponent),
        _ => (-1.0, -exponent),
    };
    let largest = BUCKET_GROWTH.powi(exponent);
    sign * largest * 2.0 / (1.0 + BUCKET_GROWTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl IntoIterator<Item = f64>) -> Quantiles {
        let mut found = Quantiles::default();
        for number in numbers {
            found.add(number);
        }
        found
    }

    #[test]
    fn few_numbers_have_exact_percentiles() {
        let found = of([5.0, 1.0, 3.0, -2.0]);

        assert_eq!([Some(1.0), Some(5.0), Some(-2.0)], [500, 950, 1].map(|share| found.percentile(share)));
        assert_eq!(None, of([]).percentile(500));
    }

    #[test]
    fn many_numbers_have_percentiles_within_one_percent() {
        for scale in [1e-9, 1.0, 7e15] {
            let numbers: Vec<f64> = (-5_000..20_000).map(|number| f64::from(number).powi(3) * scale).collect();
            let found = of(numbers.iter().rev().copied());
            for share in [1, 10, 200, 500, 950, 990, 999] {
                let exact = numbers[numbers.len() * usize::from(share) / 1000 - 1];
                let percentile = found.percentile(share).unwrap();
                assert!((percentile - exact).abs() <= exact.abs() * 0.01, "{share}: {percentile} {exact}");
            }
            assert!(found.buckets.len() < 5_000);
        }
    }
}
