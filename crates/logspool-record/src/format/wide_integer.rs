//! Integers of up to 128 bits.
//!
//! Pipeline stage: format (see ARCHITECTURE.md).

use std::io::Write;

use super::integer::{Base, push_based, push_unsigned};
use crate::record::Value;

/// Sign and magnitude of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WideInteger {
    pub(super) negative: bool,
    pub(super) magnitude: u128,
}

impl WideInteger {
    /// The integer of a value. `None`: the value is not one of up to 128 bits.
    #[inline]
    pub(super) fn of(value: Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Int(number) => Self { negative: number < 0, magnitude: number.unsigned_abs().into() },
            Value::Uint(number) => Self { negative: false, magnitude: number.into() },
            Value::Bool(truth) => Self { negative: false, magnitude: truth.into() },
            Value::BigInt(text) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                Self { negative: digits.len() < text.len(), magnitude: digits.parse().ok()? }
            }
            _ => return None,
        })
    }

    /// The bits of the integer in two's complement, with 64 bits if it fits them.
    pub(super) const fn bits(self) -> u128 {
        match (self.negative, self.magnitude) {
            (false, magnitude) => magnitude,
            (true, magnitude) if magnitude <= 1 << 63 => (magnitude as u64).wrapping_neg() as u128,
            (true, magnitude) => magnitude.wrapping_neg(),
        }
    }
}

/// Appends a magnitude in a base, or in decimal.
#[inline]
pub(super) fn push_wide(out: &mut Vec<u8>, magnitude: u128, base: Option<Base>) {
    match (u64::try_from(magnitude), base) {
        (Ok(magnitude), None) => push_unsigned(out, magnitude),
        (Ok(magnitude), Some(base)) => push_based(out, magnitude, base),
        (Err(_), base) => match base {
            None => write!(out, "{magnitude}"),
            Some(Base::Binary) => write!(out, "{magnitude:b}"),
            Some(Base::Octal) => write!(out, "{magnitude:o}"),
            Some(Base::LowerHex) => write!(out, "{magnitude:x}"),
            Some(Base::UpperHex) => write!(out, "{magnitude:X}"),
        }
        .expect("a vector takes every byte"),
    }
}
