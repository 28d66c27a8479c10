//! Decides what a store does with a chunk. The decision depends on the mark of the chunk's stream: which of its records
//! are stored, and which are still missing.
//!
//! Copies of a chunk arrive in any order and over any service, for example after a connection broke. A copy can even
//! arrive after the end of its stream. So the mark keeps its place: it remembers gaps, and it stays when the stream
//! ends. A record is stored once in every order of copies (`model.rs` tries all of them), until the store forgets the
//! mark of a stream that was silent for 7 days.

#[cfg(test)]
mod model;

use std::fmt;
use std::num::ParseIntError;
use std::ops::Range;

use crate::delivery::{Chunk, DropReason, Outcome};

/// Maximum number of gaps of a stream. Chosen: a program makes a gap only if several of its services fail at the same
/// time. 64 gaps take less than 3 KB.
pub const MAX_GAPS: usize = 64;

/// Numbers of consecutive records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberRange {
    /// The first number.
    pub first: u64,
    /// The last number; not less than the first.
    pub last: u64,
}

impl NumberRange {
    fn len(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

/// The records of a stream that are missing although later ones are stored. In ascending order.
///
/// A store keeps them as text: `1-100,150-150`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gaps(Vec<NumberRange>);

impl Gaps {
    /// Reads the text of a store. `None` means that there are no gaps.
    ///
    /// # Errors
    ///
    /// The text was not written by a store. The error has the text.
    pub fn parse(text: Option<&str>) -> Result<Self, String> {
        let range = |text: &str| -> Result<NumberRange, ParseIntError> {
            let (first, last) = text.split_once('-').unwrap_or_default();
            Ok(NumberRange { first: first.parse()?, last: last.parse()? })
        };
        let ranges = text.into_iter().flat_map(|text| text.split(',')).map(range).collect::<Result<Vec<_>, _>>();
        let is_valid = |range: &NumberRange| range.first > 0 && range.first <= range.last;
        match ranges {
            Ok(ranges) if ranges.iter().all(is_valid) => Ok(Self(ranges)),
            _ => Err(format!("{:?} is not a list of gaps", text.unwrap_or_default())),
        }
    }

    /// The text for a store. `None` if there are no gaps.
    pub fn text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.to_string())
    }

    /// Number of missing records.
    pub fn records(&self) -> u64 {
        self.0.iter().fold(0, |sum, gap| sum.saturating_add(gap.len()))
    }

    /// Removes the numbers of `chunk` from the gaps, and returns the removed numbers.
    fn take(&mut self, chunk: NumberRange) -> Vec<NumberRange> {
        let (mut left, mut taken) = (Vec::with_capacity(self.0.len()), Vec::new());
        for gap in &self.0 {
            let (first, last) = (gap.first.max(chunk.first), gap.last.min(chunk.last));
            if first > last {
                left.push(*gap);
                continue;
            }
            taken.push(NumberRange { first, last });
            if gap.first < first {
                left.push(NumberRange { first: gap.first, last: first - 1 });
            }
            if last < gap.last {
                left.push(NumberRange { first: last + 1, last: gap.last });
            }
        }
        self.0 = left;
        taken
    }

    /// Removes the oldest gaps beyond the limit. Returns the number of their records.
    fn expire(&mut self) -> u64 {
        let excess = self.0.len().saturating_sub(MAX_GAPS);
        Self(self.0.drain(..excess).collect()).records()
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, NumberRange { first, last }) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(to, "{comma}{first}-{last}")?;
        }
        Ok(())
    }
}

/// The place of a stream: the records of its newest epoch that are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMark {
    /// The newest epoch of the stream.
    pub epoch: u64,
    /// The highest number that has arrived. All records up to it are stored, except those in `gaps`.
    pub last: u64,
    /// The records that may still arrive.
    pub gaps: Gaps,
    /// True if the stream has ended. Copies of its chunks may still arrive.
    pub ended: bool,
}

/// The decision about a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Store the new records, and then the mark.
    Accept {
        /// The numbers of the chunk's records that are not stored yet, in ascending order.
        new: Vec<NumberRange>,
        /// The mark of the stream with these records.
        mark: StreamMark,
        /// Number of missing records that can never be stored from now on.
        expired: u64,
    },
    /// No record of the chunk can ever be stored.
    Drop(DropReason),
}

/// Decides what to do with a chunk. `mark` is the mark of its stream; `None`: the store does not know the stream.
pub fn judge(mark: Option<&StreamMark>, chunk: &Chunk) -> Verdict {
    let mut expired = 0;
    let mut mark = match mark {
        Some(mark) if chunk.epoch < mark.epoch => return Verdict::Drop(DropReason::OlderEpoch),
        Some(mark) if chunk.epoch == mark.epoch => mark.clone(),
        older => {
            expired = older.map_or(0, |mark| mark.gaps.records());
            StreamMark { epoch: chunk.epoch, last: 0, gaps: Gaps::default(), ended: false }
        }
    };
    let mut new = mark.gaps.take(NumberRange { first: chunk.first, last: chunk.last });
    let next = mark.last.saturating_add(1);
    if chunk.first > next {
        mark.gaps.0.push(NumberRange { first: next, last: chunk.first - 1 });
        expired = expired.saturating_add(mark.gaps.expire());
        mark.last = chunk.first - 1;
    }
    if chunk.last > mark.last {
        new.push(NumberRange { first: chunk.first.max(next), last: chunk.last });
        mark.last = chunk.last;
        mark.ended = false;
    }
    mark.ended |= chunk.end;
    Verdict::Accept { new, mark, expired }
}

impl Verdict {
    /// The outcome for the sender of the chunk.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Accept { .. } => Outcome::Committed,
            Self::Drop(why) => Outcome::Dropped(*why),
        }
    }
}

/// The indexes of the rows whose numbers are in `new`; a chunk has `rows` rows. If it has more rows than numbers, the
/// last number decides for the rest.
pub fn new_rows(rows: usize, chunk: &Chunk, new: &[NumberRange]) -> impl Iterator<Item = Range<usize>> {
    let index = move |number: u64| usize::try_from(number - chunk.first).unwrap_or(usize::MAX).min(rows);
    new.iter().map(move |range| {
        let end = if range.last == chunk.last { rows } else { index(range.last + 1) };
        index(range.first).min(end)..end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(epoch: u64, last: u64, gaps: &str) -> StreamMark {
        let gaps = Gaps::parse((!gaps.is_empty()).then_some(gaps)).unwrap();
        StreamMark { epoch, last, gaps, ended: false }
    }

    fn chunk(epoch: u64, first: u64, last: u64) -> Chunk {
        Chunk { stream: "s".to_owned(), epoch, first, last, end: false }
    }

    #[test]
    fn a_chunk_is_stored_once_and_opens_and_fills_gaps() {
        let stored = Some(mark(2, 10, ""));
        let open = Some(mark(2, 20, "3-5,8-8,12-15"));
        for (new, after, expired, stored, chunk) in [
            ("1-5", mark(1, 5, ""), 0, &None, chunk(1, 1, 5)),
            ("11-12", mark(2, 12, ""), 0, &stored, chunk(2, 11, 12)),
            ("1-4", mark(3, 4, ""), 0, &stored, chunk(3, 1, 4)),
            ("", mark(2, 10, ""), 0, &stored, chunk(2, 3, 10)),
            ("", mark(2, 10, ""), 0, &stored, chunk(2, 10, 9)),
            ("11-12", mark(2, 12, ""), 0, &stored, chunk(2, 8, 12)),
            ("15-20", mark(2, 20, "11-14"), 0, &stored, chunk(2, 15, 20)),
            ("7-7", mark(1, 7, "1-6"), 0, &None, chunk(1, 7, 7)),
            ("11-18446744073709551615", mark(2, u64::MAX, ""), 0, &stored, chunk(2, 10, u64::MAX)),
            ("3-5", mark(2, 20, "8-8,12-15"), 0, &open, chunk(2, 1, 6)),
            ("4-4", mark(2, 20, "3-3,5-5,8-8,12-15"), 0, &open, chunk(2, 4, 4)),
            ("5-5,8-8,12-13", mark(2, 20, "3-4,14-15"), 0, &open, chunk(2, 5, 13)),
            ("14-15,21-22", mark(2, 22, "3-5,8-8,12-13"), 0, &open, chunk(2, 14, 22)),
            ("", mark(2, 20, "3-5,8-8,12-15"), 0, &open, chunk(2, 16, 20)),
            ("5-6", mark(3, 6, "1-4"), 8, &open, chunk(3, 5, 6)),
        ] {
            let expected = Verdict::Accept {
                new: Gaps::parse(Some(new).filter(|new| !new.is_empty())).unwrap().0,
                mark: after,
                expired,
            };

            assert_eq!(expected, judge(stored.as_ref(), &chunk), "{stored:?} {chunk:?}");
        }
        assert_eq!(Verdict::Drop(DropReason::OlderEpoch), judge(stored.as_ref(), &chunk(1, 11, 20)));
    }

    #[test]
    fn an_end_keeps_the_mark_and_opens_a_gap_for_records_that_are_on_their_way() {
        let end = Chunk { end: true, ..chunk(1, 101, 100) };
        let ended = |gaps| StreamMark { ended: true, ..mark(1, 100, gaps) };
        for (before, gaps) in [(None, "1-100"), (Some(mark(1, 100, "")), ""), (Some(ended("7-9")), "7-9")] {
            let expected = Verdict::Accept { new: Vec::new(), mark: ended(gaps), expired: 0 };

            assert_eq!(expected, judge(before.as_ref(), &end), "{before:?}");
        }
        // The records of an ended stream are stored, too.
        let Verdict::Accept { new, mark, .. } = judge(Some(&ended("")), &chunk(1, 99, 102)) else {
            panic!("it is accepted")
        };
        assert_eq!((101, 102, false), (new[0].first, mark.last, mark.ended));
    }

    #[test]
    fn the_oldest_gap_expires_when_there_are_too_many() {
        let (mut known, mut expired) = (None, 0);
        for number in 1..=70 {
            let chunk = chunk(1, number * 10, number * 10);
            let Verdict::Accept { mark, expired: lost, .. } = judge(known.as_ref(), &chunk) else {
                panic!("it is accepted")
            };
            (known, expired) = (Some(mark), expired + lost);
        }
        let gaps = known.unwrap().gaps;

        assert_eq!((MAX_GAPS, 64 * 9, 6 * 9), (gaps.0.len(), gaps.records(), expired));
        assert!(gaps.to_string().starts_with("61-69,"));
        assert!(gaps.to_string().len() < 700);
    }

    #[test]
    fn gaps_are_read_back_and_other_texts_are_refused() {
        for text in [None, Some("1-100,150-150"), Some("1-18446744073709551615")] {
            assert_eq!(text, Gaps::parse(text).unwrap().text().as_deref());
        }
        for wrong in ["", "1", "0-4", "5-4", "1-2,", "a-b", "1-99999999999999999999"] {
            let parsed = Gaps::parse(Some(wrong));

            assert!(parsed.is_err(), "{parsed:?}");
        }
    }
}
