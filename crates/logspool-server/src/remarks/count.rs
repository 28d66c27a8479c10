//! Counts the records that match a query.

use std::time::Duration;

use crate::cancel::CancelToken;
use crate::query::{Query, Stage};
use crate::stores::{AnswerProgress, AnswerRow, QueryReader, RowFlow};

/// An interval that has all times of a store but the years before 1970. Its length is in whole minutes, because SQLite
/// has stored counts of these.
const WHOLE_NS: i64 = i64::MAX / 60_000_000_000 * 60_000_000_000;

/// Counts the records that match, without a limit. `None`: the store cannot count them in this time.
pub(super) fn count(answers: &dyn QueryReader, query: &Query, time: Duration, cancel: &CancelToken) -> Option<u64> {
    let counting = Query { stage: Some(Stage::Histogram { interval_ns: WHOLE_NS }), limit: None, ..query.clone() };
    let mut sum = 0;
    let mut each = |row: AnswerRow<'_>| {
        if let AnswerRow::Interval(_, count) = row {
            sum += count;
        }
        RowFlow::Continue
    };
    let mut answer = answers.begin_within(&counting, time, cancel).ok()?;
    (answer.resume(&mut each).ok()? == AnswerProgress::Ended).then_some(sum)
}
