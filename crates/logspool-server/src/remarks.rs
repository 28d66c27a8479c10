//! What an answer says in addition to its rows: how many rows the limit cut off.
//!
//! A client gets the remarks as the last line of an answer in JSON, for example `{"left_out": 134}`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cancel::CancelToken;
use crate::query::{Query, Stage};
use crate::stores::{AnswerProgress, AnswerRow, QueryReader, RowFlow};

/// Time limit for counting the records that a limit cut off. Chosen: a person still waits for it, and a store counts
/// some hundred thousand records within it.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// An interval that has all times of a store but the years before 1970. Its length is in whole minutes, because SQLite
/// has stored counts of these.
const WHOLE_NS: i64 = i64::MAX / 60_000_000_000 * 60_000_000_000;

/// The rows that the limit of a query cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeftOut {
    /// The answer has all rows.
    #[default]
    Nothing,
    /// The answer lacks this number of rows.
    Rows(u64),
    /// The answer may lack rows. Counting them would have taken too long.
    Unknown,
}

/// The remarks on an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The rows that the limit cut off.
    pub left_out: LeftOut,
}

impl Remarks {
    /// The remarks on an answer with `shown` rows. `cut` is the number of rows that the store itself reports as cut off.
    pub fn of_answer(answers: &dyn QueryReader, query: &Query, shown: u64, cut: u64, cancel: &CancelToken) -> Self {
        let left_out = match &query.stage {
            Some(_) if cut > 0 => LeftOut::Rows(cut),
            None if query.limit == Some(shown) => match count(answers, query, cancel) {
                Some(all) if all <= shown => LeftOut::Nothing,
                Some(all) => LeftOut::Rows(all - shown),
                None => LeftOut::Unknown,
            },
            _ => LeftOut::Nothing,
        };
        Self { left_out }
    }

    /// The last line of an answer in JSON. `None`: there is nothing to say.
    pub fn to_json(&self) -> Option<String> {
        let left_out = match self.left_out {
            LeftOut::Nothing => return None,
            LeftOut::Rows(count) => json!(count),
            LeftOut::Unknown => Value::Null,
        };
        Some(json!({ "left_out": left_out }).to_string())
    }

    /// Reads the last line of an answer in JSON. `None`: the line is a row.
    pub fn from_json(line: &str) -> Option<Self> {
        // Parse only lines that begin like remarks. Of all rows, only a count by a field of this name also begins so.
        let line = line.strip_prefix("{\"left_out\":").map(|_| line)?;
        let Ok(Value::Object(said)) = serde_json::from_str(line) else { return None };
        if said.len() != 1 {
            return None;
        }
        let left_out = match &said["left_out"] {
            Value::Null => LeftOut::Unknown,
            count => LeftOut::Rows(count.as_u64()?),
        };
        Some(Self { left_out })
    }

    /// The remarks as sentences about an answer with `shown` rows. `all` is the option that removes the limit.
    pub fn sentences(&self, stage: Option<&Stage>, shown: u64, all: &str) -> Vec<String> {
        let (name, which) = match stage {
            None => ("records match", "newest"),
            Some(Stage::CountBy(_)) => ("values", "most frequent"),
            Some(Stage::LastBy(_)) => ("values", "newest"),
            Some(Stage::Histogram { .. }) => ("intervals", "newest"),
        };
        match self.left_out {
            LeftOut::Nothing => Vec::new(),
            LeftOut::Rows(count) => {
                let total = shown.saturating_add(count);
                vec![format!("{total} {name}, the {which} {shown} are shown ({all} shows all)")]
            }
            LeftOut::Unknown => {
                vec![format!(
                    "the {which} {shown} are shown, and more may match: counting them takes too long ({all} shows all)"
                )]
            }
        }
    }
}

/// Counts the records that match, without a limit. `None`: the store cannot count them in [`COUNT_TIME`].
fn count(answers: &dyn QueryReader, query: &Query, cancel: &CancelToken) -> Option<u64> {
    let counting = Query { stage: Some(Stage::Histogram { interval_ns: WHOLE_NS }), limit: None, ..query.clone() };
    let mut sum = 0;
    let mut each = |row: AnswerRow<'_>| {
        if let AnswerRow::Interval(_, count) = row {
            sum += count;
        }
        RowFlow::Continue
    };
    let mut answer = answers.begin_within(&counting, COUNT_TIME, cancel).ok()?;
    (answer.resume(&mut each).ok()? == AnswerProgress::Ended).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Field;

    #[test]
    fn remarks_are_read_as_they_were_written() {
        for left_out in [LeftOut::Rows(7), LeftOut::Unknown] {
            let remarks = Remarks { left_out };
            assert_eq!(Some(remarks.clone()), Remarks::from_json(&remarks.to_json().unwrap()));
        }
        assert_eq!(None, Remarks::default().to_json());
        for row in [r#"{"left_out":7,"count":5}"#, r#"{"message":"x"}"#, r#"{"left_out":"x"}"#, "{\"left_out\":", ""] {
            assert_eq!(None, Remarks::from_json(row), "{row}");
        }
    }

    #[test]
    fn a_cut_answer_is_described_in_words() {
        let said = |stage: Option<Stage>, left_out| Remarks { left_out }.sentences(stage.as_ref(), 100, "--limit 0");

        assert_eq!(Vec::<String>::new(), said(None, LeftOut::Nothing));
        let records = "234 records match, the newest 100 are shown (--limit 0 shows all)";
        assert_eq!(vec![records], said(None, LeftOut::Rows(134)));
        let values = "1133 values, the most frequent 100 are shown (--limit 0 shows all)";
        assert_eq!(vec![values], said(Some(Stage::CountBy(Field::Host)), LeftOut::Rows(1033)));
        assert!(said(None, LeftOut::Unknown)[0].contains("more may match"));
    }
}
