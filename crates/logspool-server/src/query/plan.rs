//! Finds limits that all records of a filter meet. A store uses them to narrow its search.

use super::{Comparison, Field, Filter, Literal};

/// The time range of a query, as far as its author named it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The start, inclusive.
    pub since_ns: Option<i64>,
    /// The end, exclusive.
    pub until_ns: Option<i64>,
}

/// The time range of a filter in nanoseconds since 1970. The start is inclusive and the end exclusive. All matching
/// records are in the range, but not every record in the range matches.
pub fn time_range(filter: &Filter) -> (Option<i64>, Option<i64>) {
    let (mut since, mut until): (Option<i64>, Option<i64>) = (None, None);
    for_each_condition(filter, &mut |part| {
        let Filter::Compare(Field::Time, comparison, Literal::Int(time)) = *part else { return };
        let (from, before) = match comparison {
            Comparison::Equal => (Some(time), time.checked_add(1)),
            Comparison::GreaterOrEqual => (Some(time), None),
            Comparison::Greater => (Some(time.saturating_add(1)), None),
            Comparison::Less => (None, Some(time)),
            Comparison::LessOrEqual => (None, time.checked_add(1)),
            Comparison::NotEqual => (None, None),
        };
        since = since.max(from);
        until = until.into_iter().chain(before).min();
    });
    (since, until)
}

/// The earliest time of arrival of a filter in nanoseconds since 1970. All matching records arrived then or later.
pub fn arrived_since(filter: &Filter) -> Option<i64> {
    let mut since = None;
    for_each_condition(filter, &mut |part| {
        if let Filter::Compare(
            Field::Arrived,
            Comparison::Equal | Comparison::Greater | Comparison::GreaterOrEqual,
            Literal::Int(time),
        ) = *part
        {
            since = since.max(Some(time));
        }
    });
    since
}

/// Calls `found` with each condition that every matching record meets.
fn for_each_condition<'f>(filter: &'f Filter, found: &mut impl FnMut(&'f Filter)) {
    match filter {
        Filter::And(filters) => filters.iter().for_each(|filter| for_each_condition(filter, found)),
        filter => found(filter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::parse;

    fn filter(text: &str) -> Filter {
        parse(text, 0).unwrap().filter
    }

    #[test]
    fn times_are_bounded_by_the_required_conditions() {
        let at = |second: i64| Some(second * 1_000_000_000);
        for (expected, text) in [
            ((None, None), "a"),
            ((at(1), None), "time>=1970-01-01T00:00:01Z a"),
            ((at(2), at(4)), "time>=1970-01-01T00:00:01Z (time>=1970-01-01T00:00:02Z time<1970-01-01T00:00:04Z)"),
            ((None, None), "time>=1970-01-01T00:00:01Z or a"),
            ((None, None), "not time>=1970-01-01T00:00:01Z time!=now"),
            ((Some(1), None), "time>1970-01-01T00:00:00Z"),
            ((None, Some(1)), "time<=now"),
            ((Some(0), Some(1)), "time=now"),
        ] {
            assert_eq!(expected, time_range(&filter(text)), "{text}");
        }
        assert_eq!(at(2), arrived_since(&filter("arrived>1970-01-01T00:00:01Z arrived>=1970-01-01T00:00:02Z a")));
        assert_eq!(None, arrived_since(&filter("(arrived>now or a) arrived<now not arrived>now")));
        let end = Filter::Compare(Field::Time, Comparison::LessOrEqual, Literal::Int(i64::MAX));
        assert_eq!((None, None), time_range(&end));
    }
}
