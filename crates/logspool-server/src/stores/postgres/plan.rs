//! The plan of one transaction. It says what the transaction does with a group of batches, and is made before anything
//! is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::text;
use crate::batch::{Batch, Row};
use crate::delivery::{Delivery, Outcome};
use crate::stores::WriteResult;
use crate::stores::watermark::{Verdict, Watermark, judge};

/// Maximum length of a stream's name in bytes. Chosen: clients use names like a UUID, which are far shorter. PostgreSQL
/// refuses keys longer than about 2,700 bytes.
const STREAM_BYTES: usize = 255;

/// The known watermarks, by the stored name of the stream. `None`: the store has no row for the stream.
pub(super) type Watermarks = HashMap<String, Option<Watermark>>;

/// A stream's watermark before and after the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WatermarkMove {
    pub(super) was: Option<Watermark>,
    pub(super) now: Option<Watermark>,
}

/// The batches and watermarks to write.
#[derive(Debug, Default)]
pub(super) struct TransactionPlan<'a> {
    /// Each batch with the number of rows at its beginning that are stored already.
    parts: Vec<(&'a Batch, usize)>,
    /// The moved watermarks, by the stored name of the stream. The names are sorted, so two services that move the same
    /// streams lock the rows in the same order and cannot deadlock.
    pub(super) moves: BTreeMap<Cow<'a, str>, WatermarkMove>,
    /// The result if the server accepts all records. Records that are later put into quarantine are counted as stored
    /// here.
    pub(super) written: WriteResult,
}

/// Returns the stored names of the streams of `deliveries` that are not in `marks`.
pub(super) fn unknown_streams<'a>(
    deliveries: impl IntoIterator<Item = &'a Delivery>,
    marks: &Watermarks,
) -> Vec<Cow<'a, str>> {
    let chunks = deliveries.into_iter().filter_map(|delivery| delivery.chunk.as_ref());
    let names = chunks.filter(|chunk| chunk.stream.len() <= STREAM_BYTES).map(|chunk| text::stored(&chunk.stream));
    let mut names: Vec<_> = names.filter(|name| !marks.contains_key(&**name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl<'a> TransactionPlan<'a> {
    /// Makes the plan for the batches, in order.
    pub(super) fn new(deliveries: impl IntoIterator<Item = &'a Delivery>, marks: &Watermarks) -> Self {
        let mut plan = Self::default();
        for delivery in deliveries {
            let outcome = plan.add(delivery, marks);
            plan.written.outcomes.push(outcome);
        }
        plan.moves.retain(|_, moved| moved.was != moved.now);
        plan.written.stored = plan.parts.iter().map(|(batch, skip)| (batch.len() - skip) as u64).sum();
        plan
    }

    fn add(&mut self, delivery: &'a Delivery, marks: &Watermarks) -> Outcome {
        let batch = &delivery.batch;
        let Some(chunk) = &delivery.chunk else {
            self.parts.push((batch, 0));
            return Outcome::Committed;
        };
        if chunk.stream.len() > STREAM_BYTES {
            return Outcome::Refused;
        }
        let name = text::stored(&chunk.stream);
        let was = marks.get(&*name).copied().flatten();
        let before = self.moves.get(&name).map_or(was, |moved| moved.now);
        let mut after = before;
        match judge(before, chunk) {
            Verdict::Refuse => return Outcome::Refused,
            Verdict::Known => self.written.repeated += batch.len() as u64,
            Verdict::Store { skip, missing } => {
                let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(batch.len());
                self.parts.push((batch, skip));
                self.written.repeated += skip as u64;
                self.written.missing += missing;
                after = Some(Watermark { epoch: chunk.epoch, last: chunk.last });
            }
        }
        if chunk.end {
            after = None;
        }
        if after != before {
            self.moves.entry(name).or_insert(WatermarkMove { was, now: None }).now = after;
        }
        Outcome::Committed
    }

    /// True if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.written.stored == 0 && self.moves.is_empty()
    }

    /// The rows to write, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        self.parts.iter().flat_map(|(batch, skip)| batch.rows().skip(*skip))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::Arrival;
    use crate::delivery::{Chunk, ChunkPosition};
    use crate::record::Record;

    fn delivery(stream: &str, first: u64, last: u64, end: bool) -> Arc<Delivery> {
        let mut batch = Batch::default();
        for number in first..=last {
            let record = Record { message: number.to_string().into(), ..Record::default() };
            batch.push(&record, Arrival { time_ns: 1, host: "" });
        }
        let chunk = Chunk { stream: stream.to_owned(), epoch: 1, first, last, position: ChunkPosition::First, end };
        Delivery::new(batch, Some(chunk), 1, None).0
    }

    fn messages(plan: &TransactionPlan<'_>) -> String {
        plan.rows().map(|row| row.message).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_group_is_judged_in_order_against_its_own_batches() {
        let group = [delivery("a", 1, 3, false), delivery("a", 2, 5, false), delivery("b", 3, 3, false)];
        let marks = Watermarks::from([("b".to_owned(), Some(Watermark { epoch: 1, last: 3 }))]);

        let plan = TransactionPlan::new(group.iter().map(|delivery| &**delivery), &marks);

        assert_eq!("1 2 3 4 5", messages(&plan));
        let moved = WatermarkMove { was: None, now: Some(Watermark { epoch: 1, last: 5 }) };
        assert_eq!(vec![(Cow::Borrowed("a"), moved)], plan.moves.into_iter().collect::<Vec<_>>());
        assert_eq!((5, 3, 0), (plan.written.stored, plan.written.repeated, plan.written.missing));
    }

    #[test]
    fn a_stream_that_ends_is_forgotten_and_can_begin_again() {
        let marks = Watermarks::from([("a".to_owned(), Some(Watermark { epoch: 1, last: 2 }))]);
        let ended = [delivery("a", 3, 2, true)];
        let begun_again = [delivery("a", 3, 2, true), delivery("a", 1, 1, false)];
        let begun_and_ended = [delivery("new", 1, 1, true)];

        let was = Some(Watermark { epoch: 1, last: 2 });
        let plan = TransactionPlan::new(ended.iter().map(|delivery| &**delivery), &marks);
        assert_eq!(Some(&WatermarkMove { was, now: None }), plan.moves.get("a"));
        let plan = TransactionPlan::new(begun_again.iter().map(|delivery| &**delivery), &marks);
        assert_eq!(Some(&WatermarkMove { was, now: Some(Watermark { epoch: 1, last: 1 }) }), plan.moves.get("a"));
        assert_eq!("1", messages(&plan));
        let plan = TransactionPlan::new(begun_and_ended.iter().map(|delivery| &**delivery), &marks);
        assert!(plan.moves.is_empty() && !plan.is_empty());
    }

    #[test]
    fn a_stream_whose_name_is_too_long_is_refused() {
        let group = [delivery(&"n".repeat(256), 1, 1, false), delivery(&"n".repeat(255), 1, 1, false)];
        let each = || group.iter().map(|delivery| &**delivery);

        assert_eq!(vec!["n".repeat(255)], unknown_streams(each(), &Watermarks::new()));
        assert_eq!(
            vec![Outcome::Refused, Outcome::Committed],
            TransactionPlan::new(each(), &Watermarks::new()).written.outcomes
        );
    }
}
