//! What an answer says in addition to its rows: how many rows the limit cut off, how many records are from the future,
//! and likely mistakes in the query.
//!
//! A client gets the remarks as the last line of an answer in JSON, for example `{"left_out": 134}`.

mod count;
mod warnings;

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::cancel::CancelToken;
use crate::clock::now_ns;
use crate::query::plan::TimeRange;
use crate::query::{Pipeline, Query, Stage, plan};
pub use crate::stores::LeftOut;
use crate::stores::QueryReader;
use count::count;

/// Time limit for counting records for a remark. Chosen: a person still waits for it, and a store counts some hundred
/// thousand records within it.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// Maximum difference between the clocks of a service and of a client that asks for `time>now`, in nanoseconds. Chosen:
/// clocks that are kept by a time server differ by far less.
const CLOCKS_NS: i64 = 60_000_000_000;

/// The remarks on an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The rows that the limit cut off.
    pub left_out: LeftOut,
    /// Number of matching records after now. The answer does not have them, because the query has no end.
    pub future: u64,
    /// Likely mistakes in the query.
    pub warnings: Vec<String>,
}

/// A query that is being answered.
#[derive(Debug, Clone)]
pub struct AskedQuery {
    /// The query for the store.
    pub query: Query,
    /// The steps after the query of the store.
    pub pipeline: Pipeline,
    /// The time range, as far as the author of the query named it.
    pub range: TimeRange,
    /// The time of the question, if the query ends then because it names no end.
    ends_now: Option<i64>,
}

impl AskedQuery {
    /// Ends the query now if it names no time after now: a host whose clock is ahead would fill the newest rows.
    pub fn new(mut query: Query, now_ns: i64) -> Self {
        let (since, until) = plan::time_range(&query.filter);
        let asks_for_future = query.since_ns.max(since).is_some_and(|since| since >= now_ns.saturating_sub(CLOCKS_NS));
        let ends_now = (query.until_ns.is_none() && until.is_none() && !asks_for_future).then_some(now_ns);
        let since_ns = query.since_ns.max(since);
        // A series that begins at a named time ends now.
        let until_ns = query.until_ns.into_iter().chain(until).min().or(ends_now.filter(|_| since_ns.is_some()));
        query.until_ns = query.until_ns.or(ends_now);
        Self { query, pipeline: Pipeline::default(), range: TimeRange { since_ns, until_ns }, ends_now }
    }

    /// Adds the steps after the query of the store.
    pub fn with_pipeline(self, pipeline: Pipeline) -> Self {
        Self { pipeline, ..self }
    }

    /// The rows of the answer, for people.
    fn row_names(stage: Option<&Stage>, pipeline: &Pipeline) -> (&'static str, &'static str) {
        match (stage, pipeline.steps.is_empty() || pipeline.columns.is_none()) {
            (Some(Stage::Histogram { .. }), _) => ("intervals", "newest"),
            (_, false) => ("rows", "first"),
            (None, true) => ("records match", if pipeline.steps.is_empty() { "newest" } else { "first" }),
            (Some(Stage::CountBy(_)), true) => ("values", "most frequent"),
            (Some(Stage::LastBy(_)), true) => ("values", "newest"),
        }
    }
}

impl Remarks {
    /// The remarks on an answer with `shown` rows. `cut` are the rows that are known to be cut off. For a query with
    /// steps, `shown` is the number of rows that they read.
    pub fn of_answer(
        answers: &dyn QueryReader,
        asked: &AskedQuery,
        shown: u64,
        cut: LeftOut,
        cancel: &CancelToken,
    ) -> Self {
        let query = &asked.query;
        let left_out = match &query.stage {
            _ if cut != LeftOut::Nothing => cut,
            None if query.limit == Some(shown) && asked.pipeline.steps.is_empty() => {
                match count(answers, query, COUNT_TIME, cancel) {
                    Some(all) if all <= shown => LeftOut::Nothing,
                    Some(all) => LeftOut::Rows(all - shown),
                    None => LeftOut::Unknown,
                }
            }
            _ => LeftOut::Nothing,
        };
        let future = asked.ends_now.and_then(|asked_ns| {
            // Records that arrived since the question are not from the future.
            let since_ns = Some(now_ns().max(asked_ns));
            let later = Query { since_ns, until_ns: None, ..query.clone() };
            count(answers, &later, COUNT_TIME, cancel)
        });
        Self {
            left_out,
            future: future.unwrap_or(0),
            warnings: warnings::find(answers, query, &asked.pipeline, shown, cancel),
        }
    }

    /// The last line of an answer in JSON. `None`: there is nothing to say.
    pub fn to_json(&self) -> Option<String> {
        let mut said = Map::new();
        if self.future > 0 {
            said.insert("future".to_owned(), json!(self.future));
        }
        match self.left_out {
            LeftOut::Nothing => {}
            LeftOut::Rows(count) => drop(said.insert("left_out".to_owned(), json!(count))),
            LeftOut::Unknown => drop(said.insert("left_out".to_owned(), Value::Null)),
        }
        if !self.warnings.is_empty() {
            said.insert("warnings".to_owned(), json!(self.warnings));
        }
        (!said.is_empty()).then(|| Value::Object(said).to_string())
    }

    /// Reads the last line of an answer in JSON. `None`: the line is a row.
    pub fn from_json(line: &str) -> Option<Self> {
        // Parse only lines that begin like remarks. Of all rows, only a count by a field of such a name also begins so.
        if !["{\"future\":", "{\"left_out\":", "{\"warnings\":"].iter().any(|begin| line.starts_with(begin)) {
            return None;
        }
        let Ok(Value::Object(said)) = serde_json::from_str(line) else { return None };
        let mut remarks = Self::default();
        for (name, value) in &said {
            match (&**name, value) {
                ("left_out", Value::Null) => remarks.left_out = LeftOut::Unknown,
                ("left_out", count) => remarks.left_out = LeftOut::Rows(count.as_u64()?),
                ("future", count) => remarks.future = count.as_u64()?,
                ("warnings", Value::Array(warnings)) => {
                    remarks.warnings = warnings.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                }
                _ => return None,
            }
        }
        Some(remarks)
    }

    /// The remarks as sentences about an answer with `shown` rows. `all` is the option that removes the limit.
    pub fn sentences(&self, stage: Option<&Stage>, pipeline: &Pipeline, shown: u64, all: &str) -> Vec<String> {
        let (name, which) = AskedQuery::row_names(stage, pipeline);
        let cut = match self.left_out {
            LeftOut::Nothing => None,
            LeftOut::Rows(count) => {
                let total = shown.saturating_add(count);
                Some(format!("{total} {name}, the {which} {shown} are shown ({all} shows all)"))
            }
            LeftOut::Unknown => Some(format!(
                "the {which} {shown} are shown, and more may match: counting them takes too long ({all} shows all)"
            )),
        };
        let future = (self.future > 0).then(|| {
            let count = self.future;
            format!("{count} matching records are from the future: the clock of a host is ahead (time>now shows them)")
        });
        cut.into_iter().chain(future).chain(self.warnings.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Field, parse};

    #[test]
    fn remarks_are_read_as_they_were_written() {
        let warnings = vec!["no \"x\"".to_owned()];
        for (left_out, future, warnings) in [
            (LeftOut::Rows(7), 0, Vec::new()),
            (LeftOut::Unknown, 0, Vec::new()),
            (LeftOut::Rows(7), 8, warnings.clone()),
            (LeftOut::Nothing, 0, warnings),
        ] {
            let remarks = Remarks { left_out, future, warnings };
            assert_eq!(Some(remarks.clone()), Remarks::from_json(&remarks.to_json().unwrap()));
        }
        assert_eq!(None, Remarks::default().to_json());
        for row in [r#"{"left_out":7,"count":5}"#, r#"{"message":"x"}"#, r#"{"left_out":"x"}"#, "{\"left_out\":", ""] {
            assert_eq!(None, Remarks::from_json(row), "{row}");
        }
    }

    #[test]
    fn a_cut_answer_is_described_in_words() {
        let said = |stage: Option<Stage>, left_out| {
            Remarks { left_out, ..Remarks::default() }.sentences(stage.as_ref(), &Pipeline::default(), 100, "--limit 0")
        };

        assert_eq!(Vec::<String>::new(), said(None, LeftOut::Nothing));
        let records = "234 records match, the newest 100 are shown (--limit 0 shows all)";
        assert_eq!(vec![records], said(None, LeftOut::Rows(134)));
        let values = "1133 values, the most frequent 100 are shown (--limit 0 shows all)";
        assert_eq!(vec![values], said(Some(Stage::CountBy(Field::Host)), LeftOut::Rows(1033)));
        assert!(said(None, LeftOut::Unknown)[0].contains("more may match"));
    }

    #[test]
    fn a_query_ends_now_unless_it_names_the_future() {
        let ends = |text: &str, until_ns| {
            let filter = parse(text, 1_000_000_000_000).unwrap().filter;
            let query = Query { filter, stage: None, since_ns: None, until_ns, limit: None };
            AskedQuery::new(query, 1_000_000_000_000).query.until_ns
        };

        assert_eq!(Some(1_000_000_000_000), ends("a time>-5m", None));
        assert_eq!(Some(7), ends("a", Some(7)));
        assert_eq!(None, ends("time>now", None));
        // The clock of the client is behind.
        assert_eq!(None, ends("time>-10s", None));
        assert_eq!(None, ends("time<2027-01-01", None));
    }
}
