//! Calculates the value of an aggregate for one group.

use std::cmp::Ordering;

use super::distinct::Distinct;
use super::item::{self, Item};
use super::order::{compare, double, number};
use super::quantiles::Quantiles;
use crate::identity::{identity, whole};
use crate::query::{AggregateFunction, holds};
use crate::value::Value;

/// The state of an aggregate.
#[derive(Debug)]
pub(super) struct Accumulator {
    state: AccumulatorState,
    /// Number of values that were left out because they are not numbers.
    pub left_out: u64,
}

#[derive(Debug)]
enum AccumulatorState {
    Count(u64),
    Sum(NumberSum),
    Average(NumberSum, u64),
    /// The smallest number and the smallest other value. For the largest, the order is reversed.
    Extreme {
        wanted: Ordering,
        number: Option<Value<'static>>,
        other: Option<Value<'static>>,
        others: u64,
    },
    Percentile(u16, Quantiles, NumberKind),
    Distinct(Distinct),
    /// The value in the oldest or newest row.
    ByTime {
        wanted: Ordering,
        found: Option<(Option<i64>, Value<'static>)>,
    },
    Share {
        matching: u64,
        all: u64,
    },
}

/// Says whether all numbers are integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Integers,
    Doubles,
}

/// A sum. Integers are added exactly.
#[derive(Debug, Default)]
struct NumberSum {
    integers: i128,
    doubles: f64,
    has_integers: bool,
    has_doubles: bool,
}

impl NumberSum {
    fn add(&mut self, number: &Value<'_>) {
        match number {
            Value::Int(number) => {
                self.integers += i128::from(*number);
                self.has_integers = true;
            }
            Value::Float(number) => {
                self.doubles += number;
                self.has_doubles = true;
            }
            _ => {}
        }
    }

    fn double(&self) -> f64 {
        self.integers as f64 + self.doubles
    }

    fn value(&self) -> Value<'static> {
        match (self.has_doubles, i64::try_from(self.integers)) {
            (false, _) if !self.has_integers => Value::Null,
            (false, Ok(sum)) => Value::Int(sum),
            _ => Value::Float(self.double()),
        }
    }
}

impl Accumulator {
    pub fn new(function: &AggregateFunction) -> Self {
        use AggregateFunction as Function;
        let extreme = |wanted| AccumulatorState::Extreme { wanted, number: None, other: None, others: 0 };
        let by_time = |wanted| AccumulatorState::ByTime { wanted, found: None };
        let state = match function {
            Function::Count(_) => AccumulatorState::Count(0),
            Function::Sum(_) => AccumulatorState::Sum(NumberSum::default()),
            Function::Average(_) => AccumulatorState::Average(NumberSum::default(), 0),
            Function::Smallest(_) => extreme(Ordering::Less),
            Function::Largest(_) => extreme(Ordering::Greater),
            Function::Percentile(thousandths, _) => {
                AccumulatorState::Percentile(*thousandths, Quantiles::default(), NumberKind::Integers)
            }
            Function::Distinct(_) => AccumulatorState::Distinct(Distinct::default()),
            Function::First(_) => by_time(Ordering::Less),
            Function::Last(_) => by_time(Ordering::Greater),
            Function::Share(_) => AccumulatorState::Share { matching: 0, all: 0 },
        };
        Self { state, left_out: 0 }
    }

    /// Adds a row. Returns the bytes that this takes.
    pub fn add(&mut self, function: &AggregateFunction, row: &Item) -> usize {
        if let (AccumulatorState::Share { matching, all }, AggregateFunction::Share(condition)) =
            (&mut self.state, function)
        {
            *all += 1;
            *matching += u64::from(holds(condition, row));
            return 0;
        }
        match function.field() {
            None => {
                if let AccumulatorState::Count(count) = &mut self.state {
                    *count += 1;
                }
                0
            }
            Some(field) => row.value(field).map_or(0, |value| self.add_value(value, row)),
        }
    }

    fn add_value(&mut self, value: Value<'static>, row: &Item) -> usize {
        let as_number = number(&value);
        match &mut self.state {
            AccumulatorState::Count(count) => *count += 1,
            AccumulatorState::Distinct(distinct) => return distinct.add(&identity(&value)),
            AccumulatorState::ByTime { wanted, found } => {
                let time = row.time_ns();
                // Records come newest first, and the record that was stored last comes first. Other rows are in order.
                let is_reversed = matches!(row, Item::Record(_));
                let tie = if is_reversed { Ordering::Less } else { Ordering::Greater };
                let is_better = match found {
                    None => true,
                    Some((best, _)) => time.cmp(best).then(tie) == *wanted,
                };
                if is_better {
                    let bytes = item::bytes(&value);
                    let before = found.replace((time, value)).map_or(0, |(_, old)| item::bytes(&old));
                    return bytes.saturating_sub(before);
                }
            }
            AccumulatorState::Extreme { wanted, number, other, others } => {
                let is_number = as_number.is_some();
                *others += u64::from(!is_number);
                let (place, value) = if is_number { (number, as_number) } else { (other, Some(value)) };
                if let Some(value) = value
                    && place.as_ref().is_none_or(|best| compare(&value, best) == *wanted)
                {
                    let bytes = item::bytes(&value);
                    let before = place.replace(value).map_or(0, |old| item::bytes(&old));
                    return bytes.saturating_sub(before);
                }
            }
            AccumulatorState::Share { .. } => {}
            state => {
                let Some(number) = as_number else {
                    self.left_out += 1;
                    return 0;
                };
                match state {
                    AccumulatorState::Sum(sum) => sum.add(&number),
                    AccumulatorState::Average(sum, count) => {
                        sum.add(&number);
                        *count += 1;
                    }
                    AccumulatorState::Percentile(_, quantiles, kind) => {
                        if !matches!(number, Value::Int(_)) {
                            *kind = NumberKind::Doubles;
                        }
                        return double(&number).map_or(0, |number| quantiles.add(number));
                    }
                    _ => {}
                }
            }
        }
        0
    }

    /// True if the value is an estimate of a number of different values.
    pub fn is_estimate(&self) -> bool {
        matches!(&self.state, AccumulatorState::Distinct(distinct) if distinct.is_estimate())
    }

    /// The value for the rows added until now.
    pub fn finish(mut self) -> (Value<'static>, u64) {
        let integer = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        let value = match self.state {
            AccumulatorState::Count(count) => integer(count),
            AccumulatorState::Sum(sum) => sum.value(),
            AccumulatorState::Average(_, 0) => Value::Null,
            AccumulatorState::Average(sum, count) => Value::Float(sum.double() / count as f64),
            AccumulatorState::Extreme { number: Some(number), others, .. } => {
                self.left_out += others;
                number
            }
            AccumulatorState::Extreme { other, .. } => other.unwrap_or(Value::Null),
            AccumulatorState::Percentile(thousandths, quantiles, kind) => match quantiles.percentile(thousandths) {
                None => Value::Null,
                Some(number) => match whole(number) {
                    Some(number) if kind == NumberKind::Integers => Value::Int(number),
                    _ => Value::Float(number),
                },
            },
            AccumulatorState::Distinct(distinct) => integer(distinct.count()),
            AccumulatorState::ByTime { found, .. } => found.map_or(Value::Null, |(_, value)| value),
            AccumulatorState::Share { all: 0, .. } => Value::Null,
            AccumulatorState::Share { matching, all } => Value::Float(matching as f64 / all as f64),
        };
        (value, self.left_out)
    }
}
