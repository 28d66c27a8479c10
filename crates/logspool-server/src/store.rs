//! The interfaces of a store: [`Store`] takes records, and [`QueryReader`] answers queries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cancel::CancelToken;
use crate::delivery::{Delivery, Outcome};
use crate::query::Query;
use crate::record::Record;
use crate::value::Value;

/// Takes records. A store has one writer thread, so all writes to it happen in one order.
pub trait Store: Send {
    /// The store's name in messages and metrics.
    fn name(&self) -> &str;

    /// Writes the batches in one transaction and returns when all of them are durable. There is one outcome for each
    /// batch.
    ///
    /// Chunks follow the rules of [`crate::stores::mark::judge`]; the mark of the stream changes in the same transaction.
    /// If the store cannot take a record, the same transaction puts the record into quarantine, with the reason.
    ///
    /// # Errors
    ///
    /// Nothing was stored, or the outcome of the commit is unknown. In both cases the caller may write the same batches
    /// again.
    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError>;

    /// Does maintenance that is due: creates a new day's file and removes old records. The caller calls it about once a
    /// second, also while writing fails.
    ///
    /// # Errors
    ///
    /// The maintenance failed. The caller tries again.
    fn maintain(&mut self) -> Result<(), StoreError>;

    /// Checks that the store still answers. The caller calls it about once a second while nothing is written. `None`:
    /// the store has no cheap check, or cannot check now.
    fn check(&mut self) -> Option<Result<(), StoreError>> {
        None
    }

    /// The missing records of numbered streams. The caller calls it after maintenance. `None`: the store does not know
    /// them now.
    fn gap_counts(&mut self) -> Option<GapCounts> {
        None
    }

    /// Problems with stored records that do not stop reads and writes of other records. Each text says how to repair
    /// it.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Closes all files and connections.
    ///
    /// # Errors
    ///
    /// Closing failed. Records that were written before are safe.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// The result of one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteResult {
    /// The outcome of each batch.
    pub outcomes: Vec<Outcome>,
    /// Records stored.
    pub stored: u64,
    /// Records that were skipped because they are stored already.
    pub repeated: u64,
    /// Missing records of streams that the store would not take any more, because their gaps have expired.
    pub expired: u64,
    /// Records that were put into quarantine.
    pub quarantined: u64,
}

/// The missing records of numbered streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GapCounts {
    /// Records that are missing now and may still arrive.
    pub open: u64,
    /// Records that were forgotten with the marks of their streams since the last call.
    pub expired: u64,
}

/// Answers queries on any thread, concurrently with the writer.
pub trait QueryReader: Send + Sync {
    /// Begins an answer. The answer ends with an error soon after `cancel` is set.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn begin(&self, query: &Query, cancel: &CancelToken) -> Result<Box<dyn QueryAnswer>, StoreError>;

    /// Begins an answer that ends with an error after `time`, if the time limit of the store is not shorter.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or not in this time.
    fn begin_within(
        &self,
        query: &Query,
        time: Duration,
        cancel: &CancelToken,
    ) -> Result<Box<dyn QueryAnswer>, StoreError>;

    /// Maximum number of queries that the store answers at the same time, if there are `threads` query threads.
    fn max_parallel(&self, threads: usize) -> usize {
        threads
    }

    /// Calls `each` with each row of the answer until there are no more rows or `each` returns [`RowFlow::Stop`].
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn run(&self, query: &Query, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<(), StoreError> {
        let mut answer = self.begin(query, &CancelToken::default())?;
        while answer.resume(each)? == AnswerProgress::Paused {}
        Ok(())
    }
}

/// An answer that has begun. It can pause, and any thread can resume it. All its rows are from one snapshot, which is
/// taken when the answer first reads the store. The rows have a fixed order, and each row is returned once.
///
/// While the answer exists the store keeps old data for it, so the answer has to end in limited time.
pub trait QueryAnswer: Send {
    /// Calls `each` with each further row. Stops when there are no more rows, or when `each` returns anything but
    /// [`RowFlow::Continue`].
    ///
    /// # Errors
    ///
    /// The store cannot be read, the answer took too long, or it was cancelled. After an error the answer cannot be
    /// resumed.
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError>;

    /// Number of rows that the limit of the query cut off, after the last row. It is 0 for records, because the store
    /// does not read those beyond the limit.
    fn left_out(&self) -> u64 {
        0
    }
}

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

/// Progress of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProgress {
    /// There are no more rows, or the reader needs no more rows.
    Ended,
    /// The reader asked for a pause. The next call of [`QueryAnswer::resume`] continues the answer.
    Paused,
}

/// A row of an answer.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerRow<'a> {
    /// A record.
    Record(Record<'a>),
    /// A value of the field and the number of records with it. `None`: the records without the field.
    Count(Option<&'a str>, u64),
    /// The time at which an interval begins, in nanoseconds since 1970, and the number of records in it.
    Interval(i64, u64),
    /// The columns of a row with their values, in order. Times are integers.
    Row(&'a RowValues),
}

/// The columns of a row, each with its value.
pub type RowValues = Vec<(Arc<str>, Value<'static>)>;

/// Whether the reader of an answer wants more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFlow {
    /// Send more rows.
    Continue,
    /// The reader needs no more rows.
    Stop,
    /// Pause the answer until the reader can take more rows.
    Pause,
}

/// Error of an answer whose client reads too slowly. The store keeps old data while an answer runs, so the answer has
/// to end.
pub const ANSWER_UNREAD: &str = "the answer was not read in time; use a shorter time range, or fewer records";

/// Error of an answer that was cancelled.
pub const QUERY_CANCELLED: &str = "the query was cancelled";

/// Reason why a request to a store failed.
#[derive(Debug)]
pub enum StoreError {
    /// The request may succeed later. Examples are a full disk and an unreachable server.
    Retry(String),
    /// The request fails until a person repairs the store. An example is a store of another kind or version.
    Fatal(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(why) | Self::Fatal(why) => to.write_str(why),
        }
    }
}

impl std::error::Error for StoreError {}
