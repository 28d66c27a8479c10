//! Counts different values: exactly up to 100,000 values, and by an estimate above.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Number of different values that are counted exactly.
pub(super) const EXACT_VALUES: usize = 100_000;

/// Number of bits that choose a register. The standard error of the estimate is 0.8 %.
const REGISTER_BITS: u32 = 14;

/// Counts different values.
#[derive(Debug, Clone)]
pub(super) enum Distinct {
    /// The hashes of the values. Two of 100,000 values have the same hash of 128 bits with a chance below 1e-28.
    Exact(HashSet<(u64, u64)>),
    /// For each register the largest number of leading zeros of a hash, plus 1.
    Estimate(Vec<u8>),
}

impl Default for Distinct {
    fn default() -> Self {
        Self::Exact(HashSet::new())
    }
}

impl Distinct {
    /// Adds a value by its identity. Returns the bytes that this takes.
    pub fn add(&mut self, identity: &str) -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::new();
        let hash = (hasher.hash_one(identity), hasher.hash_one((identity, 1_u8)));
        match self {
            Self::Exact(known) => {
                let bytes = if known.insert(hash) { 2 * size_of::<(u64, u64)>() } else { 0 };
                if known.len() > EXACT_VALUES {
                    let mut registers = vec![0; 1 << REGISTER_BITS];
                    known.iter().for_each(|hash| note(&mut registers, hash.0));
                    *self = Self::Estimate(registers);
                }
                bytes
            }
            Self::Estimate(registers) => {
                note(registers, hash.0);
                0
            }
        }
    }

    /// True if the number is an estimate.
    pub fn is_estimate(&self) -> bool {
        matches!(self, Self::Estimate(_))
    }

    /// The number of different values.
    pub fn count(&self) -> u64 {
        match self {
            Self::Exact(known) => known.len() as u64,
            Self::Estimate(registers) => {
                let count = registers.len() as f64;
                let sum: f64 = registers.iter().map(|zeros| (-f64::from(*zeros)).exp2()).sum();
                let correction = 0.7213 / (1.0 + 1.079 / count);
                (correction * count * count / sum).round() as u64
            }
        }
    }
}

fn note(registers: &mut [u8], hash: u64) {
    let register = (hash >> (u64::BITS - REGISTER_BITS)) as usize;
    let zeros = (hash << REGISTER_BITS).leading_zeros().min(u64::BITS - REGISTER_BITS) as u8 + 1;
    registers[register] = registers[register].max(zeros);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_counted_exactly_and_many_estimated() {
        let mut found = Distinct::default();
        for number in 0..EXACT_VALUES {
            found.add(&number.to_string());
            found.add(&(number / 2).to_string());
        }
        assert_eq!((EXACT_VALUES as u64, false), (found.count(), found.is_estimate()));
        for number in 0..1_000_000 {
            found.add(&number.to_string());
        }
        assert!(found.is_estimate());
        assert!(found.count().abs_diff(1_000_000) < 30_000, "{}", found.count());
    }
}
