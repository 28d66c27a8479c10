//! The order of values, and their numbers.

use std::cmp::Ordering;

use crate::identity::identity;
use crate::query::{compare_numbers, number_in};
use crate::value::Value;

/// Compares two values: booleans come first, then numbers, text, and all others as JSON.
pub(super) fn compare(one: &Value<'_>, two: &Value<'_>) -> Ordering {
    match (one, two) {
        (Value::Bool(one), Value::Bool(two)) => one.cmp(two),
        (Value::Text(one), Value::Text(two)) => one.cmp(two),
        (one, two) => rank(one).cmp(&rank(two)).then_with(|| match (one, two) {
            (Value::Int(one), Value::Int(two)) => one.cmp(two),
            (Value::Int(one), Value::Float(two)) => compare_numbers((*one).into(), *two),
            (Value::Float(one), Value::Int(two)) => compare_numbers((*two).into(), *one).reverse(),
            (Value::Float(one), Value::Float(two)) => one.partial_cmp(two).unwrap_or(Ordering::Equal),
            (one, two) => identity(one).cmp(&identity(two)),
        }),
    }
}

/// Compares two values. A missing value comes first.
pub(super) fn compare_optional(one: Option<&Value<'_>>, two: Option<&Value<'_>>) -> Ordering {
    match (one, two) {
        (Some(one), Some(two)) => compare(one, two),
        (one, two) => one.is_some().cmp(&two.is_some()),
    }
}

fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::List(_) | Value::Map(_) => 4,
    }
}

/// The number that a value is. Text that is written as a number counts as one.
pub(super) fn number(value: &Value<'_>) -> Option<Value<'static>> {
    match value {
        Value::Int(number) => Some(Value::Int(*number)),
        Value::Float(number) if number.is_finite() => Some(Value::Float(*number)),
        Value::Text(text) => number_in(text),
        _ => None,
    }
}

/// A number as a double.
pub(super) fn double(value: &Value<'_>) -> Option<f64> {
    match number(value)? {
        Value::Int(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    }
}
