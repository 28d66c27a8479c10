//! Begins the answer to a query, with or without steps.
//!
//! Before an answer begins, inner queries are replaced by their values, and stages that read records outside the named
//! time range extend it.

use std::collections::{BTreeMap, VecDeque};

use super::answer::{PipelineAnswer, PipelineError};
use super::item::Item;
use crate::cancel::CancelToken;
use crate::clock::now_ns;
use crate::identity::identity;
use crate::query::{
    AggregateFunction, Comparison, Expression, Field, FieldKind, Filter, Literal, Pipeline, PipelineStep, Query,
    QueryError, Reach, StepWork, plan,
};
use crate::query_memory::CountMemory;
use crate::record::Record;
use crate::record_id::RecordId;
use crate::remarks::{AskedQuery, Remarks};
use crate::stores::{AnswerProgress, AnswerRow, LeftOut, QueryAnswer, QueryReader, RowFlow};
use crate::value::Value;

/// Maximum number of different values of an inner query. Each is a comparison of the outer query.
const MAX_VALUES: usize = 1_000;

/// The range of `errors new` without a named start.
const DAY_NS: i64 = 86_400_000_000_000;

/// The first window in which later neighbours of a record are searched. Each further window is [`WINDOW_GROWTH`] times as
/// long.
const FIRST_WINDOW_NS: i64 = 1_000_000_000;
const WINDOW_GROWTH: i64 = 8;

/// Number of records that are read beyond the neighbours, because some may have the same time.
const SAME_TIME: usize = 16;

/// The answer to a query.
pub enum RunningQuery {
    /// The rows of the store are the answer.
    Store(Box<dyn QueryAnswer>),
    /// Steps run over the rows of the store.
    Steps(Box<PipelineAnswer>),
}

impl RunningQuery {
    /// Begins the answer. `memory` counts the memory of all queries.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or an inner query needs too much.
    pub fn begin(
        answers: &dyn QueryReader,
        asked: &AskedQuery,
        memory: &CountMemory,
        cancel: &CancelToken,
    ) -> Result<Self, PipelineError> {
        let asked = &Resolver { answers, memory, cancel }.resolve(asked)?;
        if asked.pipeline.steps.is_empty() {
            return Ok(Self::Store(answers.begin(&asked.query, cancel).map_err(PipelineError::Store)?));
        }
        let whole = Query { limit: None, ..asked.query.clone() };
        let from = answers.begin(&whole, cancel).map_err(PipelineError::Store)?;
        let answer = PipelineAnswer::new(from, &asked.query, &asked.pipeline, asked.range, memory);
        Ok(Self::Steps(Box::new(answer)))
    }

    /// Calls `each` with each further row, as [`QueryAnswer::resume`] does.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or a step needs too much.
    pub fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, PipelineError> {
        match self {
            Self::Store(answer) => answer.resume(each).map_err(PipelineError::Store),
            Self::Steps(answer) => answer.resume(each),
        }
    }

    /// The remarks on the answer, after its last row. `shown` is the number of its rows.
    pub fn remarks(&self, answers: &dyn QueryReader, asked: &AskedQuery, shown: u64, cancel: &CancelToken) -> Remarks {
        match self {
            Self::Store(answer) => {
                let cut = match answer.left_out() {
                    0 => LeftOut::Nothing,
                    count => LeftOut::Rows(count),
                };
                Remarks::of_answer(answers, asked, shown, cut, cancel)
            }
            Self::Steps(answer) => {
                let mut remarks = Remarks::of_answer(answers, asked, answer.read_rows(), answer.left_out(), cancel);
                remarks.warnings.splice(0..0, answer.remarks());
                remarks
            }
        }
    }
}

/// The reader of the store, for the queries before the answer.
struct Resolver<'r> {
    answers: &'r dyn QueryReader,
    memory: &'r CountMemory,
    cancel: &'r CancelToken,
}

impl Resolver<'_> {
    /// The query with its inner queries replaced by their values, and with its final time range.
    fn resolve(&self, asked: &AskedQuery) -> Result<AskedQuery, PipelineError> {
        let mut asked = asked.clone();
        let query = asked.query.clone();
        let text = asked.pipeline.text.clone();
        self.replace(&mut asked.query.filter, &query, &text)?;
        for step in &mut asked.pipeline.steps {
            match &mut step.work {
                StepWork::Where(filter) => self.replace(filter, &query, &text)?,
                StepWork::Group(grouping) => {
                    for aggregate in &mut grouping.aggregates {
                        if let AggregateFunction::Share(filter) = &mut aggregate.function {
                            self.replace(filter, &query, &text)?;
                        }
                    }
                }
                _ => {}
            }
        }
        for step in asked.pipeline.steps.clone() {
            let length = match &step.work {
                StepWork::Compare { length_ns, .. } => Some(*length_ns),
                StepWork::Patterns { only_new: true } => None,
                StepWork::Around { id, reach, by } => {
                    self.around(&mut asked, &step, id, *reach, by.as_ref())?;
                    continue;
                }
                _ => continue,
            };
            extend(&mut asked, &step, length)?;
        }
        Ok(asked)
    }

    fn replace(&self, filter: &mut Filter, outer: &Query, text: &str) -> Result<(), PipelineError> {
        match filter {
            Filter::And(filters) | Filter::Or(filters) => {
                filters.iter_mut().try_for_each(|filter| self.replace(filter, outer, text))
            }
            Filter::Not(inner) => self.replace(inner, outer, text),
            Filter::In(field, inner) => {
                *filter = self.values(field, inner, outer, text)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The condition that a field has one of the values of an inner query.
    fn values(&self, field: &Field, inner: &Expression, outer: &Query, text: &str) -> Result<Filter, PipelineError> {
        let Expression { filter, stage, pipeline } = inner.clone();
        let query = Query { filter, stage, limit: None, ..outer.clone() };
        let asked = AskedQuery::new(query, now_ns()).with_pipeline(pipeline);
        let mut values = BTreeMap::new();
        self.each_row(&asked, &mut |row| {
            let value = match row {
                AnswerRow::Row(values) => values.first().map(|(_, value)| value.clone()),
                AnswerRow::Count(value, _) => value.map(|text| Value::text(text.to_owned())),
                AnswerRow::Interval(time, _) => Some(Value::Int(time)),
                AnswerRow::Record(_) => None,
            };
            if let Some(value) = value.filter(|value| *value != Value::Null) {
                values.insert(identity(&value), value);
            }
            if values.len() > MAX_VALUES { RowFlow::Stop } else { RowFlow::Continue }
        })?;
        if values.len() > MAX_VALUES {
            let message = format!("the inner query has more than {MAX_VALUES} values: narrow it, or write | limit N");
            let position = text.find("in (").unwrap_or_default();
            return Err(PipelineError::Query(QueryError::while_running(text, position, message)));
        }
        let equal = |value: Value<'static>| {
            literal(field, value).map(|literal| Filter::Compare(field.clone(), Comparison::Equal, literal))
        };
        Ok(Filter::Or(values.into_values().filter_map(equal).collect()))
    }

    fn each_row(
        &self,
        asked: &AskedQuery,
        each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow,
    ) -> Result<(), PipelineError> {
        let mut answer = RunningQuery::begin(self.answers, asked, self.memory, self.cancel)?;
        while answer.resume(each)? == AnswerProgress::Paused {}
        Ok(())
    }

    /// Narrows the query to the neighbours of a record.
    fn around(
        &self,
        asked: &mut AskedQuery,
        step: &PipelineStep,
        id: &RecordId,
        reach: Reach,
        by: Option<&Field>,
    ) -> Result<(), PipelineError> {
        let text = asked.pipeline.text.clone();
        let error = |message: String| PipelineError::Query(QueryError::while_running(&text, step.position, message));
        let after = id.time_ns.saturating_add(1);
        let whole = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: None };
        let at = Query { since_ns: Some(id.time_ns), until_ns: Some(after), ..whole };
        let mut anchor: Option<Record<'static>> = None;
        self.each_row(&plain(at), &mut |row| match row {
            AnswerRow::Record(record) if RecordId::of(&record) == *id => {
                anchor = Some(record.into_owned());
                RowFlow::Stop
            }
            _ => RowFlow::Continue,
        })?;
        let Some(anchor) = anchor else {
            return Err(error(format!("no record has the id {id}: it may have been removed since")));
        };
        if let Some(field) = by {
            let value = Item::Record(Box::new(anchor)).value(field);
            let Some(literal) = value.and_then(|value| literal(field, value)) else {
                return Err(error(format!("this record has no text or number in `{}`: leave `by` out", field.name())));
            };
            let same = Filter::Compare(field.clone(), Comparison::Equal, literal);
            let all = std::mem::replace(&mut asked.query.filter, Filter::All);
            asked.query.filter = Filter::And(vec![all, same]);
        }
        let (since, until) = match reach {
            Reach::Time(length) => (Some(id.time_ns.saturating_sub(length)), Some(after.saturating_add(length))),
            Reach::Records(count) => {
                (self.earlier(asked, after, count + SAME_TIME)?, self.later(asked, id.time_ns, count + SAME_TIME)?)
            }
        };
        let range = asked.range;
        asked.query.since_ns = since.max(range.since_ns);
        asked.query.until_ns = until.into_iter().chain(range.until_ns).min();
        Ok(())
    }

    /// The time of the record that is this number of records before a time.
    fn earlier(&self, asked: &AskedQuery, until: i64, count: usize) -> Result<Option<i64>, PipelineError> {
        let limit = Some(count as u64);
        let query = Query { since_ns: asked.range.since_ns, until_ns: Some(until), limit, ..asked.query.clone() };
        let mut times = Vec::new();
        self.each_row(&plain(query), &mut |row| {
            if let AnswerRow::Record(record) = row {
                times.extend(record.time_ns);
            }
            RowFlow::Continue
        })?;
        Ok(times.get(count - 1).copied())
    }

    /// The time after the record that is this number of records after a time.
    fn later(&self, asked: &AskedQuery, since: i64, count: usize) -> Result<Option<i64>, PipelineError> {
        let mut length = FIRST_WINDOW_NS;
        let end = asked.range.until_ns.unwrap_or(i64::MAX);
        loop {
            let until = since.saturating_add(length).min(end);
            let query = Query { since_ns: Some(since), until_ns: Some(until), limit: None, ..asked.query.clone() };
            let mut times = VecDeque::new();
            self.each_row(&plain(query), &mut |row| {
                if let AnswerRow::Record(record) = row {
                    times.extend(record.time_ns);
                }
                if times.len() > count {
                    times.pop_front();
                }
                RowFlow::Continue
            })?;
            if times.len() >= count {
                return Ok(times.front().map(|time| time.saturating_add(1)));
            }
            if until == end {
                return Ok(None);
            }
            length = length.saturating_mul(WINDOW_GROWTH);
        }
    }
}

/// A query for records.
fn plain(query: Query) -> AskedQuery {
    let now = query.until_ns.unwrap_or(i64::MAX);
    AskedQuery::new(Query { stage: None, ..query }, now).with_pipeline(Pipeline::default())
}

/// Extends the time range of a query to the time before it.
fn extend(asked: &mut AskedQuery, step: &PipelineStep, length_ns: Option<i64>) -> Result<(), PipelineError> {
    if plan::time_range(&asked.query.filter) != (None, None) {
        let message = "this stage compares with the time before: name the time range by since and until, not by `time`";
        let text = &asked.pipeline.text;
        return Err(PipelineError::Query(QueryError::while_running(text, step.position, message)));
    }
    let until = asked.query.until_ns.unwrap_or_else(now_ns);
    let since = asked.query.since_ns.unwrap_or_else(|| until.saturating_sub(length_ns.unwrap_or(DAY_NS)));
    let before = length_ns.unwrap_or_else(|| until.saturating_sub(since));
    asked.range.since_ns = Some(since);
    asked.range.until_ns = Some(until);
    asked.query.since_ns = Some(since.saturating_sub(before));
    Ok(())
}

/// The value as a literal for a comparison with the field. `None`: it cannot be compared.
fn literal(field: &Field, value: Value<'static>) -> Option<Literal> {
    let is_text = field.kind() == FieldKind::Text;
    Some(match value {
        Value::Bool(value) => Literal::Bool(value),
        Value::Int(number) if is_text => Literal::Text(number.to_string()),
        Value::Int(number) => Literal::Int(number),
        Value::Float(number) => Literal::Float(number),
        Value::Text(text) if field.kind() == FieldKind::Number => Literal::Int(text.parse().ok()?),
        Value::Text(text) => Literal::Text(text.into_owned()),
        Value::Null | Value::List(_) | Value::Map(_) => return None,
    })
}
