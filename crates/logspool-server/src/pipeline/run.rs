//! Begins the answer to a query, with or without steps.

use super::answer::{PipelineAnswer, PipelineError};
use super::resolve::Resolver;
use crate::cancel::CancelToken;
use crate::query::Query;
use crate::query_memory::CountMemory;
use crate::remarks::{AskedQuery, Remarks};
use crate::stores::{AnswerProgress, AnswerRow, LeftOut, QueryAnswer, QueryReader, RowFlow};

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
