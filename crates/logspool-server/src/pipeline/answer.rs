//! An answer that runs the steps of a query over the rows of a store.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use super::item::Item;
use super::memory::StepContext;
use super::start;
use super::step::{RunningStep, StepFlow};
use crate::query::plan::TimeRange;
use crate::query::{Bucket, Field, FieldKind, Pipeline, Query, QueryError, Stage, StepWork};
use crate::query_memory::CountMemory;
use crate::stores::{AnswerProgress, AnswerRow, LeftOut, QueryAnswer, RowFlow, StoreError};
use crate::value::Value;

/// Maximum time of counting the rows after the last row of the answer.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// Reason why an answer ended early.
#[derive(Debug)]
pub enum PipelineError {
    /// The store cannot answer.
    Store(StoreError),
    /// The query needs too much. The error has the place and the repair.
    Query(QueryError),
}

impl fmt::Display for PipelineError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(to),
            Self::Query(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for PipelineError {}

/// An answer with the steps of a query.
pub struct PipelineAnswer {
    from: Box<dyn QueryAnswer>,
    /// The names of the first columns, if the store groups the records.
    grouped: Option<Field>,
    steps: Vec<Box<dyn RunningStep>>,
    positions: Vec<usize>,
    context: StepContext,
    /// Maximum number of rows, and whether the newest rows are at the end.
    limit: Option<u64>,
    keeps_end: bool,
    draws_intervals: bool,
    /// Rows that are not returned yet.
    ready: VecDeque<Item>,
    returned: u64,
    state: PipelineState,
    /// Set when the limit is reached: until then the rest is counted.
    count_until: Option<Instant>,
    /// Number of rows of the store.
    read: u64,
    left_out: LeftOut,
    /// Damage of the store. The answer ends with it, after the rows of the other files.
    damage: Option<StoreError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipelineState {
    Reading,
    Finishing,
}

impl PipelineAnswer {
    /// Runs the steps over the answer of a store, which must have no limit.
    pub fn new(
        from: Box<dyn QueryAnswer>,
        query: &Query,
        pipeline: &Pipeline,
        range: TimeRange,
        memory: &CountMemory,
    ) -> Self {
        let grouped = match &query.stage {
            Some(Stage::CountBy(field)) => Some(field.clone()),
            _ => None,
        };
        let works = || pipeline.steps.iter().map(|step| &step.work);
        let is_series = |work: &StepWork| match work {
            StepWork::Fill { .. } => true,
            StepWork::Group(grouping) => grouping.keys.iter().any(|key| matches!(key.bucket, Some(Bucket::Time(_)))),
            _ => false,
        };
        let is_order = |work: &&StepWork| {
            matches!(
                work,
                StepWork::Sort(_)
                    | StepWork::Top { .. }
                    | StepWork::Limit(_)
                    | StepWork::Group(_)
                    | StepWork::Fill { .. }
            )
        };
        let context = StepContext {
            memory: memory.part(),
            text: pipeline.text.clone(),
            position: 0,
            remarks: BTreeMap::new(),
            cut: 0,
        };
        Self {
            from,
            grouped,
            steps: start::start(pipeline, range, query.limit),
            positions: pipeline.steps.iter().map(|step| step.position).collect(),
            context,
            limit: query.limit,
            keeps_end: works().rfind(is_order).is_some_and(is_series),
            draws_intervals: works().all(|work| matches!(work, StepWork::Fill { by: None, .. })),
            ready: VecDeque::new(),
            returned: 0,
            state: PipelineState::Reading,
            count_until: None,
            read: 0,
            left_out: LeftOut::Nothing,
            damage: None,
        }
    }

    /// Calls `each` with each further row, as [`QueryAnswer::resume`] does.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or a step needs too much.
    pub fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, PipelineError> {
        match self.emit(each) {
            RowFlow::Continue => {}
            RowFlow::Pause => return Ok(AnswerProgress::Paused),
            RowFlow::Stop => return Ok(AnswerProgress::Ended),
        }
        if self.state == PipelineState::Reading {
            match self.read(each)? {
                RowFlow::Continue => {}
                RowFlow::Pause => return Ok(AnswerProgress::Paused),
                RowFlow::Stop => return Ok(AnswerProgress::Ended),
            }
            self.state = PipelineState::Finishing;
            self.finish().map_err(PipelineError::Query)?;
            match self.emit(each) {
                RowFlow::Continue => {}
                RowFlow::Pause => return Ok(AnswerProgress::Paused),
                RowFlow::Stop => return Ok(AnswerProgress::Ended),
            }
        }
        match self.damage.take() {
            Some(damage) => Err(PipelineError::Store(damage)),
            None => Ok(AnswerProgress::Ended),
        }
    }

    /// The rows that the limit cut off, after the last row.
    pub fn left_out(&self) -> LeftOut {
        match self.left_out {
            LeftOut::Rows(count) => LeftOut::Rows(count + self.context.cut),
            LeftOut::Nothing if self.context.cut > 0 => LeftOut::Rows(self.context.cut),
            left_out => left_out,
        }
    }

    /// Number of rows of the store that were read.
    pub fn read_rows(&self) -> u64 {
        self.read
    }

    /// Remarks on the values of the answer.
    pub fn remarks(&self) -> Vec<String> {
        self.context.remarks.iter().map(|(text, count)| format!("{text}: {count}")).collect()
    }

    /// Reads the rows of the store. Returns [`RowFlow::Continue`] when there are no more, or no more are needed.
    fn read(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<RowFlow, PipelineError> {
        let mut from = std::mem::replace(&mut self.from, Box::new(NoAnswer));
        let mut failed = None;
        let mut stopped = RowFlow::Continue;
        let mut take = |row: AnswerRow<'_>| {
            let fed = self.feed(row);
            match fed {
                Err(error) => {
                    failed = Some(error);
                    return RowFlow::Stop;
                }
                Ok(StepFlow::Full) => return RowFlow::Stop,
                Ok(StepFlow::Continue) => {}
            }
            if self.keeps_end || self.ready.is_empty() {
                return RowFlow::Continue;
            }
            stopped = self.emit(each);
            stopped
        };
        let resumed = from.resume(&mut take);
        self.from = from;
        if let Some(error) = failed {
            return Err(PipelineError::Query(error));
        }
        match resumed {
            Ok(_) => Ok(stopped),
            // A file is damaged. The rows of the others are complete.
            Err(error @ StoreError::Fatal(_)) => {
                self.damage = Some(error);
                Ok(RowFlow::Continue)
            }
            Err(error) => Err(PipelineError::Store(error)),
        }
    }

    fn feed(&mut self, row: AnswerRow<'_>) -> Result<StepFlow, QueryError> {
        if let Some(until) = self.count_until
            && Instant::now() > until
        {
            self.left_out = LeftOut::Unknown;
            return Ok(StepFlow::Full);
        }
        self.read += 1;
        let item = self.item(row);
        self.pass(vec![item], 0)
    }

    fn item(&self, row: AnswerRow<'_>) -> Item {
        let integer = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        match row {
            AnswerRow::Record(record) => Item::Record(Box::new(record.into_owned())),
            AnswerRow::Count(value, count) => {
                let field = self.grouped.clone().unwrap_or(Field::Message);
                let value = match (value, field.kind()) {
                    (None, _) => Value::Null,
                    (Some(text), FieldKind::Number) => {
                        text.parse().map_or_else(|_| Value::text(text.to_owned()), Value::Int)
                    }
                    (Some(text), _) => Value::text(text.to_owned()),
                };
                Item::Row(vec![(field.name().into(), value), ("count".into(), integer(count))])
            }
            AnswerRow::Interval(begins, count) => {
                Item::Row(vec![("time".into(), Value::Int(begins)), ("count".into(), integer(count))])
            }
            AnswerRow::Row(values) => Item::Row(values.clone()),
        }
    }

    /// Passes rows to the steps from this one on.
    fn pass(&mut self, mut rows: Vec<Item>, from: usize) -> Result<StepFlow, QueryError> {
        let mut flow = StepFlow::Continue;
        for (step, position) in self.steps.iter_mut().zip(&self.positions).skip(from) {
            self.context.position = *position;
            let mut next = Vec::new();
            for row in rows {
                if step.take(row, &mut next, &mut self.context)? == StepFlow::Full {
                    flow = StepFlow::Full;
                }
            }
            rows = next;
            if rows.is_empty() {
                return Ok(flow);
            }
        }
        self.ready.extend(rows);
        Ok(flow)
    }

    fn finish(&mut self) -> Result<(), QueryError> {
        for at in 0..self.steps.len() {
            let mut rows = Vec::new();
            self.context.position = self.positions[at];
            self.steps[at].finish(&mut rows, &mut self.context)?;
            if !rows.is_empty() {
                self.pass(rows, at + 1)?;
            }
        }
        if let (true, Some(limit)) = (self.keeps_end, self.limit) {
            let cut = self.ready.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
            self.ready.drain(..cut);
            self.left_out = if cut > 0 { LeftOut::Rows(cut as u64) } else { LeftOut::Nothing };
        }
        Ok(())
    }

    /// Returns the rows that are ready. Counts them once the limit is reached.
    fn emit(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> RowFlow {
        while let Some(item) = self.ready.pop_front() {
            if self.limit.is_some_and(|limit| self.returned >= limit) {
                self.count_until.get_or_insert_with(|| Instant::now() + COUNT_TIME);
                self.left_out = match self.left_out {
                    LeftOut::Nothing => LeftOut::Rows(1),
                    LeftOut::Rows(count) => LeftOut::Rows(count + 1),
                    LeftOut::Unknown => LeftOut::Unknown,
                };
                continue;
            }
            self.returned += 1;
            let flow = match item {
                Item::Record(record) => each(AnswerRow::Record(*record)),
                Item::Row(values) => match (self.draws_intervals, &values[..]) {
                    (true, [(_, Value::Int(time)), (_, Value::Int(count))]) => {
                        each(AnswerRow::Interval(*time, count.cast_unsigned()))
                    }
                    _ => each(AnswerRow::Row(&values)),
                },
            };
            if flow != RowFlow::Continue {
                return flow;
            }
        }
        RowFlow::Continue
    }
}

/// An answer without rows, in place of one that is being read.
struct NoAnswer;

impl QueryAnswer for NoAnswer {
    fn resume(&mut self, _: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
        Ok(AnswerProgress::Ended)
    }
}
