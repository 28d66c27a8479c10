//! The plan of one transaction. It says what the transaction does with a group of batches, and is made before anything
//! is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::text;
use crate::batch::{Batch, Row};
use crate::delivery::{Delivery, Outcome};
use crate::stores::WriteResult;
use crate::stores::mark::{StreamMark, Verdict, judge, new_rows};

/// The known marks, by the stored name of the stream. `None`: the store has no row for the stream.
pub(super) type KnownMarks = HashMap<String, Option<StreamMark>>;

/// A stream's mark before and after the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkChange {
    pub(super) was: Option<StreamMark>,
    pub(super) now: StreamMark,
}

/// The batches and marks to write.
#[derive(Debug, Default)]
pub(super) struct TransactionPlan<'a> {
    /// The rows to write, as indexes in their batches.
    parts: Vec<(&'a Batch, Range<usize>)>,
    /// The changed marks, by the stored name of the stream. The names are sorted, so two services that change the same
    /// streams lock the rows in the same order and cannot deadlock.
    pub(super) moves: BTreeMap<Cow<'a, str>, MarkChange>,
    /// The result if the server accepts all records. Records that are later put into quarantine are counted as stored
    /// here.
    pub(super) written: WriteResult,
}

/// Returns the stored names of the streams of `deliveries` that are not in `marks`.
pub(super) fn unknown_streams<'a>(
    deliveries: impl IntoIterator<Item = &'a Delivery>,
    marks: &KnownMarks,
) -> Vec<Cow<'a, str>> {
    let chunks = deliveries.into_iter().filter_map(|delivery| delivery.chunk.as_ref());
    let names = chunks.map(|chunk| text::stored(&chunk.stream));
    let mut names: Vec<_> = names.filter(|name| !marks.contains_key(&**name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl<'a> TransactionPlan<'a> {
    /// Makes the plan for the batches, in order.
    pub(super) fn new(deliveries: impl IntoIterator<Item = &'a Delivery>, marks: &KnownMarks) -> Self {
        let mut plan = Self::default();
        for delivery in deliveries {
            let outcome = plan.add(delivery, marks);
            plan.written.outcomes.push(outcome);
        }
        plan.written.stored = plan.parts.iter().map(|(_, rows)| rows.len() as u64).sum();
        plan
    }

    fn add(&mut self, delivery: &'a Delivery, marks: &KnownMarks) -> Outcome {
        let batch = &delivery.batch;
        let Some(chunk) = &delivery.chunk else {
            self.parts.push((batch, 0..batch.len()));
            return Outcome::Committed;
        };
        let name = text::stored(&chunk.stream);
        let was = marks.get(&*name).and_then(Option::as_ref);
        let before = self.moves.get(&name).map(|change| &change.now).or(was);
        let verdict = judge(before, chunk);
        let outcome = verdict.outcome();
        if let Verdict::Accept { new, mark, expired } = verdict {
            let rows = new_rows(batch.len(), chunk, &new);
            let stored: usize = rows.map(|rows| rows.len()).sum();
            self.parts.extend(new_rows(batch.len(), chunk, &new).map(|rows| (&**batch, rows)));
            self.written.repeated += (batch.len() - stored) as u64;
            self.written.expired = self.written.expired.saturating_add(expired);
            if before != Some(&mark) {
                let was = was.cloned();
                self.moves
                    .entry(name)
                    .and_modify(|change| change.now.clone_from(&mark))
                    .or_insert(MarkChange { was, now: mark });
            }
        }
        outcome
    }

    /// True if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.written.stored == 0 && self.moves.is_empty()
    }

    /// The rows to write, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        self.parts.iter().flat_map(|(batch, rows)| rows.clone().filter_map(|row| batch.row(row)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::Arrival;
    use crate::delivery::Chunk;
    use crate::record::Record;
    use crate::stores::mark::Gaps;

    fn delivery(stream: &str, first: u64, last: u64, end: bool) -> Arc<Delivery> {
        let mut batch = Batch::default();
        for number in first..=last {
            let record = Record { message: number.to_string().into(), ..Record::default() };
            batch.push(&record, Arrival { time_ns: 1, host: "" });
        }
        let chunk = Chunk { stream: stream.to_owned(), epoch: 1, first, last, end };
        Delivery::new(batch, Some(chunk), 1, None).0
    }

    fn messages(plan: &TransactionPlan<'_>) -> String {
        plan.rows().map(|row| row.message).collect::<Vec<_>>().join(" ")
    }

    fn mark(last: u64, ended: bool) -> StreamMark {
        StreamMark { epoch: 1, last, gaps: Gaps::default(), ended }
    }

    #[test]
    fn a_group_is_judged_in_order_against_its_own_batches() {
        let group = [delivery("a", 1, 3, false), delivery("a", 2, 5, false), delivery("b", 3, 3, false)];
        let marks = KnownMarks::from([("b".to_owned(), Some(mark(3, false)))]);

        let plan = TransactionPlan::new(group.iter().map(|delivery| &**delivery), &marks);

        assert_eq!("1 2 3 4 5", messages(&plan));
        let change = MarkChange { was: None, now: mark(5, false) };
        assert_eq!(vec![(Cow::Borrowed("a"), change)], plan.moves.clone().into_iter().collect::<Vec<_>>());
        assert_eq!((5, 3, 0), (plan.written.stored, plan.written.repeated, plan.written.expired));
    }

    #[test]
    fn the_mark_of_a_stream_stays_when_it_ends() {
        let marks = KnownMarks::from([("a".to_owned(), Some(mark(2, false)))]);
        let ended = [delivery("a", 3, 2, true)];
        let late = [delivery("a", 3, 2, true), delivery("a", 1, 1, false)];
        let end_first = [delivery("new", 3, 2, true), delivery("new", 1, 1, false)];

        let plan = TransactionPlan::new(ended.iter().map(|delivery| &**delivery), &marks);
        let change = MarkChange { was: Some(mark(2, false)), now: mark(2, true) };
        assert_eq!(Some(&change), plan.moves.get("a"));
        let plan = TransactionPlan::new(late.iter().map(|delivery| &**delivery), &marks);
        assert_eq!((Some(&change), ""), (plan.moves.get("a"), &*messages(&plan)));
        let plan = TransactionPlan::new(end_first.iter().map(|delivery| &**delivery), &marks);
        assert_eq!("1", messages(&plan));
        assert_eq!(Some("2-2".to_owned()), plan.moves["new"].now.gaps.text());
    }
}
