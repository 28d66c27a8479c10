//! Finds likely mistakes in a query: a field or value that no record has, and numbers that are compared with text.
//!
//! Fields are open, so an unknown one is no error. The warnings need further searches, which are bounded in time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use logspool::nearest::nearest;

use super::count::count;
use crate::cancel::CancelToken;
use crate::query::{Comparison, Expression, Field, Filter, Literal, Pattern, Pipeline, Query, Stage, path};
use crate::stores::{AnswerProgress, AnswerRow, QueryReader, RowFlow};
use crate::value::Value;

/// Maximum time of all searches for one answer. Chosen: a person still waits for it.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// Maximum number of conditions that are checked.
const MAX_CHECKS: usize = 3;

/// Number of newest records whose fields and values are suggested.
const SAMPLE_RECORDS: u64 = 1_000;

/// A number below all numbers that are compared exactly.
const SMALLEST: i128 = -99_999_999_999_999_999_999_999_999_999_999_999_999;

/// The warnings for a query whose answer has `shown` rows.
pub(super) fn find(
    answers: &dyn QueryReader,
    query: &Query,
    pipeline: &Pipeline,
    shown: u64,
    cancel: &CancelToken,
) -> Vec<String> {
    let mut conditions = Vec::new();
    collect(&query.filter, &mut conditions);
    let search = Search { answers, query, cancel, until: Instant::now() + SEARCH_TIME };
    let mut warnings: Vec<_> =
        conditions.iter().take(MAX_CHECKS).filter_map(|condition| search.texts_beside_numbers(condition)).collect();
    // Of a count by a field that no record has, the only row is for the records without the field.
    let counted = match &query.stage {
        Some(Stage::CountBy(field) | Stage::LastBy(field)) if shown <= 1 => Some(field),
        _ => None,
    };
    let in_stages: Vec<_> = match shown {
        0 => Vec::new(),
        _ if query.stage.is_some() => Vec::new(),
        _ => pipeline.record_fields().into_iter().filter(|field| matches!(field, Field::Extra(_))).collect(),
    };
    if shown == 0 || counted.is_some() || !in_stages.is_empty() {
        let sample = search.sample();
        let fields = counted
            .into_iter()
            .chain(in_stages.into_iter().take(MAX_CHECKS))
            .chain(conditions.iter().filter(|_| shown == 0).filter_map(|one| field(one)));
        let unknown: Vec<_> = fields.take(2 * MAX_CHECKS).filter(|field| search.is_unknown(field, &sample)).collect();
        warnings.extend(unknown.iter().map(|field| sample.describe_field(field)));
        if shown == 0 && unknown.is_empty() {
            let values = conditions.iter().take(MAX_CHECKS);
            warnings.extend(values.filter_map(|condition| search.unknown_value(condition, &sample)));
        }
        if shown == 0 && warnings.is_empty() {
            warnings.extend(search.without_match(&conditions));
        }
    }
    warnings
}

/// Collects the conditions that all matching records meet.
fn collect<'f>(filter: &'f Filter, found: &mut Vec<&'f Filter>) {
    match filter {
        Filter::And(filters) => filters.iter().for_each(|filter| collect(filter, found)),
        filter => found.push(filter),
    }
}

fn field(condition: &Filter) -> Option<&Field> {
    match condition {
        Filter::Compare(field, ..) | Filter::Matches(field, _) | Filter::Exists(field) => Some(field),
        // A list of values of one field.
        Filter::Or(filters) => filters.first().and_then(field),
        Filter::Not(filter) => field(filter),
        _ => None,
    }
}

/// The names of the extra keys of the newest records, each with its text values.
struct Sample(BTreeMap<String, BTreeSet<String>>);

impl Sample {
    fn describe_field(&self, field: &Field) -> String {
        let name = field.name();
        let known = Field::known().iter().map(Field::name).chain(self.0.keys().map(String::as_str));
        let near = nearest(name, known).map(|near| format!(": did you mean `{near}`?"));
        format!("no record of this time range has a field `{name}`{}", near.unwrap_or_default())
    }
}

struct Search<'a> {
    answers: &'a dyn QueryReader,
    query: &'a Query,
    cancel: &'a CancelToken,
    until: Instant,
}

impl Search<'_> {
    /// The time that is left for a search.
    fn time(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Counts the records of the time range that match a filter.
    fn count(&self, filter: Filter) -> Option<u64> {
        count(self.answers, &Query { filter, ..self.query.clone() }, self.time(), self.cancel)
    }

    /// Calls `each` with the rows of a query about the time range. If it takes too long, the rows until then count.
    fn rows(&self, stage: Option<Stage>, limit: Option<u64>, each: &mut dyn FnMut(AnswerRow<'_>)) {
        let query = Query { filter: Filter::All, stage, limit, ..self.query.clone() };
        let mut each = |row: AnswerRow<'_>| {
            each(row);
            RowFlow::Continue
        };
        if let Ok(mut answer) = self.answers.begin_within(&query, self.time(), self.cancel) {
            while matches!(answer.resume(&mut each), Ok(AnswerProgress::Paused)) {}
        }
    }

    fn sample(&self) -> Sample {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        self.rows(None, Some(SAMPLE_RECORDS), &mut |row| {
            if let AnswerRow::Record(record) = row {
                for (name, value) in record.fields {
                    let values = names.entry(name.into_owned()).or_default();
                    if let Value::Text(text) = value {
                        values.insert(text.into_owned());
                    }
                }
            }
        });
        Sample(names)
    }

    /// True if no record of the time range has this extra key. False if that takes too long to find out.
    fn is_unknown(&self, field: &Field, sample: &Sample) -> bool {
        let Field::Extra(key) = field else { return false };
        let Ok(anything) = Pattern::new("") else { return false };
        let has = Filter::Or(vec![
            Filter::Matches(field.clone(), anything),
            Filter::Compare(field.clone(), Comparison::Equal, Literal::Null),
        ]);
        !sample.0.contains_key(key) && !sample.0.contains_key(path::first_key(key)) && self.count(has) == Some(0)
    }

    /// The warning for an empty answer whose conditions have no likely mistake.
    fn without_match(&self, conditions: &[&Filter]) -> Option<String> {
        let own: Vec<_> = conditions.iter().filter(|condition| !matches!(condition, Filter::All)).collect();
        let is_empty = |condition: &&&&Filter| self.count((***condition).clone()) == Some(0);
        match own.iter().take(MAX_CHECKS).find(is_empty) {
            Some(condition) => Some(format!("no record of this time range matches {condition}")),
            None if own.len() > 1 => Some("no record of this time range matches all conditions together".to_owned()),
            None => None,
        }
    }

    /// The warning for a text that no record of the time range has in the field.
    fn unknown_value(&self, condition: &Filter, sample: &Sample) -> Option<String> {
        let Filter::Compare(field, Comparison::Equal, Literal::Text(text)) = condition else { return None };
        if matches!(field, Field::Message | Field::Exception | Field::Stack) || self.count(condition.clone()) != Some(0)
        {
            return None;
        }
        let mut values = match field {
            Field::Extra(key) => sample.0.get(key).cloned().unwrap_or_default(),
            _ => BTreeSet::new(),
        };
        self.rows(Some(Stage::CountBy(field.clone())), None, &mut |row| {
            if let AnswerRow::Count(Some(value), _) = row {
                values.insert(value.to_owned());
            }
        });
        let near = nearest(text, values.iter().map(String::as_str)).map(|near| {
            let near = Filter::Compare(field.clone(), Comparison::Equal, Literal::Text(near.to_owned()));
            format!(": did you mean {}?", Expression::from(near))
        });
        Some(format!("no record of this time range has {condition}{}", near.unwrap_or_default()))
    }

    /// The warning for a comparison of order with a number, if the field has text in some records.
    fn texts_beside_numbers(&self, condition: &Filter) -> Option<String> {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let Filter::Compare(
            field @ Field::Extra(_),
            comparison @ (Greater | GreaterOrEqual | Less | LessOrEqual),
            Literal::Int(_) | Literal::Large(_) | Literal::Float(_),
        ) = condition
        else {
            return None;
        };
        let compare = |literal| Filter::Compare(field.clone(), GreaterOrEqual, literal);
        let is_text = [compare(Literal::Text(String::new())), Filter::Not(Box::new(compare(Literal::Large(SMALLEST))))];
        let mut others = Vec::new();
        collect(&self.query.filter, &mut others);
        let others = others.into_iter().filter(|other| *other != condition).cloned();
        let texts = self.count(Filter::And(others.chain(is_text).collect())).filter(|count| *count > 0)?;
        Some(format!(
            "{texts} records have text in `{}`, which is not compared with a number: they are left out of {}{comparison}",
            field.name(),
            field.name(),
        ))
    }
}
