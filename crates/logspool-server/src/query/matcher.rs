//! Applies a filter to a record in memory, for live tails.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;

use super::{Comparison, Field, Filter, Literal, large_integer, path};
use crate::batch::Row;
use crate::record::Record;
use crate::value::Value;

/// A filter for records in memory.
#[derive(Debug, Clone)]
pub struct Matcher {
    filter: Filter,
}

impl Matcher {
    /// Creates a matcher with a copy of the filter.
    pub fn new(filter: &Filter) -> Self {
        Self { filter: filter.clone() }
    }

    /// True if the row matches the filter. The extra fields of the row are decoded at most once, and only if the result
    /// depends on them.
    pub fn matches_row(&self, row: &Row<'_>) -> bool {
        holds(&self.filter, &LazyRow { row, fields: OnceCell::new() })
    }

    /// True if the record matches the filter. For a record without a time every comparison with the time is false.
    pub fn matches_record(&self, record: &Record<'_>) -> bool {
        holds(&self.filter, record)
    }
}

/// The values of a record or row that a filter needs.
pub trait FieldValues<'a> {
    /// The value of a text field.
    fn text(&self, field: &Field) -> Option<&str>;

    /// The value of a number field.
    fn number(&self, field: &Field) -> Option<i128>;

    /// The value of an extra key.
    fn extra(&self, key: &str) -> Option<&Value<'a>>;
}

struct LazyRow<'r, 'a> {
    row: &'r Row<'a>,
    fields: OnceCell<Vec<(Cow<'a, str>, Value<'a>)>>,
}

impl<'a> FieldValues<'a> for LazyRow<'_, 'a> {
    fn text(&self, field: &Field) -> Option<&str> {
        let row = self.row;
        match field {
            Field::Logger => Some(row.logger),
            Field::Message => Some(row.message),
            Field::File => row.file,
            Field::Function => row.function,
            Field::Host => row.host,
            Field::ProcessName => row.process_name,
            Field::ThreadName => row.thread_name,
            Field::Task => row.task,
            Field::TraceId => row.trace_id,
            Field::SpanId => row.span_id,
            Field::Exception => row.exception,
            Field::Stack => row.stack,
            _ => None,
        }
    }

    fn number(&self, field: &Field) -> Option<i128> {
        let row = self.row;
        match field {
            Field::Time => Some(row.time_ns.into()),
            Field::Arrived => Some(row.arrived_ns.into()),
            Field::ArrivalDelay => Some(i128::from(row.arrived_ns) - i128::from(row.time_ns)),
            Field::Hour => Some(hour(row.time_ns)),
            Field::Weekday => Some(weekday(row.time_ns)),
            Field::Level => Some(row.level.into()),
            Field::Line => row.line.map(i128::from),
            Field::Process => row.process.map(i128::from),
            Field::Thread => row.thread.map(i128::from),
            _ => None,
        }
    }

    fn extra(&self, key: &str) -> Option<&Value<'a>> {
        let fields = self.fields.get_or_init(|| self.row.fields.map(Record::fields_from_json).unwrap_or_default());
        fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl<'a> FieldValues<'a> for Record<'a> {
    fn text(&self, field: &Field) -> Option<&str> {
        match field {
            Field::Logger => Some(&self.logger),
            Field::Message => Some(&self.message),
            Field::File => self.file.as_deref(),
            Field::Function => self.function.as_deref(),
            Field::Host => self.host.as_deref(),
            Field::ProcessName => self.process_name.as_deref(),
            Field::ThreadName => self.thread_name.as_deref(),
            Field::Task => self.task.as_deref(),
            Field::TraceId => self.trace_id.as_deref(),
            Field::SpanId => self.span_id.as_deref(),
            Field::Exception => self.exception.as_deref(),
            Field::Stack => self.stack.as_deref(),
            _ => None,
        }
    }

    fn number(&self, field: &Field) -> Option<i128> {
        match field {
            Field::Time => self.time_ns.map(i128::from),
            Field::Arrived => self.arrived_ns.map(i128::from),
            Field::ArrivalDelay => Some(i128::from(self.arrived_ns?) - i128::from(self.time_ns?)),
            Field::Hour => self.time_ns.map(hour),
            Field::Weekday => self.time_ns.map(weekday),
            Field::Level => Some(self.level.into()),
            Field::Line => self.line.map(i128::from),
            Field::Process => self.process.map(i128::from),
            Field::Thread => self.thread.map(i128::from),
            _ => None,
        }
    }

    fn extra(&self, key: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

/// True if the values match the filter.
pub fn holds<'a>(filter: &Filter, parts: &impl FieldValues<'a>) -> bool {
    match filter {
        Filter::All => true,
        Filter::Phrase(phrase) => parts.text(&Field::Message).is_some_and(|message| phrase.is_in(message)),
        Filter::Compare(field, Comparison::NotEqual, literal) => {
            !holds(&Filter::Compare(field.clone(), Comparison::Equal, literal.clone()), parts)
        }
        Filter::Compare(Field::Extra(key), comparison, literal) => extras(parts, key)
            .into_iter()
            .any(|value| compare_value(value, literal).is_some_and(|order| comparison.accepts(order))),
        Filter::Compare(field, comparison, literal) => {
            order(parts, field, literal).is_some_and(|order| comparison.accepts(order))
        }
        Filter::Matches(Field::Extra(key), pattern) => {
            extras(parts, key).into_iter().filter_map(text_of).any(|text| pattern.is_match(&text))
        }
        Filter::Exists(Field::Extra(key)) => extras(parts, key).into_iter().any(|value| *value != Value::Null),
        Filter::Exists(field) => parts.text(field).is_some() || parts.number(field).is_some(),
        // Queries inside a filter were replaced by their values.
        Filter::In(..) => false,
        Filter::Matches(field, pattern) => parts.text(field).is_some_and(|text| pattern.is_match(text)),
        Filter::And(filters) => filters.iter().all(|filter| holds(filter, parts)),
        Filter::Or(filters) => filters.iter().any(|filter| holds(filter, parts)),
        Filter::Not(filter) => !holds(filter, parts),
    }
}

/// The values of an extra key or of a path.
fn extras<'v, 'a>(parts: &'v impl FieldValues<'a>, key: &str) -> Vec<&'v Value<'a>>
where
    'a: 'v,
{
    path::values(key, |key| parts.extra(key))
}

/// Number of nanoseconds in an hour and in a day.
const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

fn hour(time_ns: i64) -> i128 {
    (time_ns.rem_euclid(DAY_NS) / HOUR_NS).into()
}

/// 1970-01-01 was a Thursday, the fourth day.
fn weekday(time_ns: i64) -> i128 {
    ((time_ns.div_euclid(DAY_NS) + 3).rem_euclid(7) + 1).into()
}

/// Compares the value of a field with a literal. `None`: the field has no value, or its value has another type.
fn order<'a>(parts: &impl FieldValues<'a>, field: &Field, literal: &Literal) -> Option<Ordering> {
    match (field, literal) {
        (field, Literal::Int(number)) => Some(parts.number(field)?.cmp(&i128::from(*number))),
        (field, Literal::Large(number)) => Some(parts.number(field)?.cmp(number)),
        (field, Literal::Text(text)) => Some(parts.text(field)?.cmp(text)),
        _ => None,
    }
}

fn compare_value(value: &Value<'_>, literal: &Literal) -> Option<Ordering> {
    match (value, literal) {
        (Value::Int(value), Literal::Int(literal)) => Some(value.cmp(literal)),
        (Value::Int(value), Literal::Large(literal)) => Some(i128::from(*value).cmp(literal)),
        (Value::Int(value), Literal::Float(literal)) => Some(compare_numbers((*value).into(), *literal)),
        (Value::Float(value), Literal::Int(literal)) if value.is_finite() => {
            Some(compare_numbers((*literal).into(), *value).reverse())
        }
        (Value::Float(value), Literal::Large(literal)) if value.is_finite() => {
            Some(compare_numbers(*literal, *value).reverse())
        }
        // An integer that is too large for a number is text.
        (Value::Text(value), Literal::Int(literal)) => Some(large_integer(value)?.cmp(&i128::from(*literal))),
        (Value::Text(value), Literal::Large(literal)) => Some(large_integer(value)?.cmp(literal)),
        (Value::Text(value), Literal::Float(literal)) => Some(compare_numbers(large_integer(value)?, *literal)),
        (Value::Float(value), Literal::Float(literal)) if value.is_finite() => value.partial_cmp(literal),
        (Value::Bool(value), Literal::Bool(literal)) => (value == literal).then_some(Ordering::Equal),
        (Value::Null, Literal::Null) => Some(Ordering::Equal),
        (Value::Text(value), Literal::Text(literal)) => Some((**value).cmp(literal)),
        // Infinities and NaN become text when a record is written as JSON.
        (Value::Float(number), Literal::Text(literal)) if !number.is_finite() => Some((*text_of(value)?).cmp(literal)),
        _ => None,
    }
}

/// Compares an integer with a finite double exactly. The integer is not converted to a double, because that would round
/// large integers.
pub fn compare_numbers(whole: i128, other: f64) -> Ordering {
    // The cast drops the fraction and saturates at the limits of the integer type.
    whole.cmp(&(other as i128)).then_with(|| 0.0.partial_cmp(&other.fract()).unwrap_or(Ordering::Equal))
}

/// The text to which a pattern is applied. A text value is used unchanged, and other values are written as JSON.
/// `None`: the value is null.
pub(super) fn text_of<'v>(value: &'v Value<'_>) -> Option<Cow<'v, str>> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Float(number) if !number.is_finite() => Some(Cow::Borrowed(if number.is_nan() {
            "nan"
        } else if *number > 0.0 {
            "inf"
        } else {
            "-inf"
        })),
        other => serde_json::to_string(other).ok().map(Cow::Owned),
    }
}

impl Comparison {
    /// True if the comparison holds for two values with this ordering.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Arrival, Batch};
    use crate::query::parse;

    #[test]
    fn numbers_that_json_lacks_are_text() {
        for (name, number) in [("nan", f64::NAN), ("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY)] {
            let filter = parse(&format!("a=\"{name}\" a~^{name}$ not a>0 not a<0"), 0).unwrap().filter;
            let record = Record { fields: vec![("a".into(), Value::Float(number))], ..Record::default() };
            let mut batch = Batch::default();
            batch.push(&record, Arrival { time_ns: 0, host: "" });

            assert!(Matcher::new(&filter).matches_record(&record), "{name}");
            assert!(Matcher::new(&filter).matches_row(&batch.row(0).unwrap()), "{name}");
        }
    }

    #[test]
    fn a_record_without_a_time_is_neither_before_nor_after() {
        let holds = |text| Matcher::new(&parse(text, 0).unwrap().filter).matches_record(&Record::default());
        assert!(!holds("time<=now or time>now"));
        assert!(holds("not time<=now time!=now"));
    }

    #[test]
    fn numbers_are_compared_exactly() {
        use Ordering::{Equal, Greater, Less};
        for (expected, whole, other) in [
            (Equal, 1, 1.0),
            (Equal, 0, -0.0),
            (Less, 1, 1.5),
            (Greater, -1, -1.5),
            (Less, -2, -1.5),
            (Greater, (1 << 53) + 1, 9_007_199_254_740_992.0),
            (Less, i64::MAX.into(), 9_223_372_036_854_775_808.0),
            (Equal, i64::MIN.into(), -9_223_372_036_854_775_808.0),
            (Less, i64::MAX.into(), 1e300),
            (Greater, i64::MIN.into(), -1e300),
            (Greater, 1_i128 << 64, 18_446_744_073_709_549_568.0),
        ] {
            assert_eq!(expected, compare_numbers(whole, other), "{whole} {other}");
        }
    }
}
