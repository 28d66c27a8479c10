//! The records of one request, until each of them has arrived or is refused.

use std::collections::VecDeque;

use super::RecordOutcome;

/// A record that was taken from the queue.
#[derive(Debug)]
pub struct KeptRecord {
    /// The record's entry.
    pub entry: Vec<u8>,
    /// Number of the record in the stream.
    pub number: u64,
    /// Level class of the record.
    pub class: u16,
    /// Number of the batch that the record belongs to.
    pub batch: u64,
}

/// Records that are sent together. After a refusal they are sent in smaller groups, until the bad record is alone.
#[derive(Debug, Default)]
pub struct Parcel {
    records: Vec<Option<KeptRecord>>,
    /// Groups that are not sent yet, as indices of records. The first one is on its way or comes next.
    groups: VecDeque<Vec<usize>>,
}

impl Parcel {
    /// Makes a parcel whose records are sent as one group.
    pub fn new(records: Vec<KeptRecord>) -> Self {
        let groups = if records.is_empty() { VecDeque::new() } else { VecDeque::from([(0..records.len()).collect()]) };
        Self { records: records.into_iter().map(Some).collect(), groups }
    }

    /// Whether nothing is left to send.
    pub fn is_done(&self) -> bool {
        self.groups.is_empty()
    }

    /// Number of records of the next group.
    pub fn group_len(&self) -> usize {
        self.groups.front().map_or(0, Vec::len)
    }

    /// The records of the next group.
    pub fn group(&self) -> impl Iterator<Item = &KeptRecord> {
        self.groups.front().into_iter().flatten().filter_map(|index| self.records[*index].as_ref())
    }

    /// Splits the next group into two.
    pub fn halve(&mut self) {
        if let Some(mut first) = self.groups.pop_front() {
            let second = first.split_off(first.len() / 2);
            self.groups.push_front(second);
            self.groups.push_front(first);
        }
    }

    /// Settles the next group. Calls `settled` with each record that is accepted or refused; the others are sent again,
    /// as one group.
    pub fn settle(
        &mut self,
        outcome: impl Fn(usize) -> RecordOutcome,
        mut settled: impl FnMut(&KeptRecord, RecordOutcome),
    ) {
        let Some(group) = self.groups.pop_front() else { return };
        let mut again = Vec::new();
        for (position, index) in group.into_iter().enumerate() {
            match outcome(position) {
                RecordOutcome::Again => again.push(index),
                outcome => {
                    if let Some(record) = self.records[index].take() {
                        settled(&record, outcome);
                    }
                }
            }
        }
        if !again.is_empty() {
            self.groups.push_front(again);
        }
    }
}
