//! Stores: they take records, and answer queries.

use std::fmt;
use std::sync::Arc;

use crate::cancel::CancelToken;
use crate::delivery::{Delivery, Outcome};
use crate::query::Query;
use crate::record::Record;

/// Takes records. A store has one writer thread, so everything written to it is in one order.
pub trait Store: Send {
    /// The store's name in messages and metrics.
    fn name(&self) -> &str;

    /// Writes the batches in one transaction and returns when all of them are durable. There is one outcome for each
    /// batch.
    ///
    /// Chunks follow the rules of [`super::watermark::judge`]; the watermark moves in the same transaction. A record
    /// that the store cannot take goes to its quarantine, with the reason, in the same transaction.
    ///
    /// # Errors
    ///
    /// Nothing was stored, or the outcome of the commit is unknown. In both cases the same batches may be written
    /// again.
    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError>;

    /// Does maintenance that is due: a new day's file, removal of old records. Called about once a second when idle,
    /// and also while writing fails.
    ///
    /// # Errors
    ///
    /// As for [`Store::write`]; the caller tries again.
    fn maintain(&mut self) -> Result<(), StoreError>;

    /// Checks that the store still answers. Called about once a second while nothing is written. `None`: the store
    /// cannot check cheaply, or not now.
    fn check(&mut self) -> Option<Result<(), StoreError>> {
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
    /// Closing failed. Written records are safe all the same.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// The result of one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteResult {
    /// The outcome of each batch.
    pub outcomes: Vec<Outcome>,
    /// Records stored.
    pub stored: u64,
    /// Records that were stored before and are skipped.
    pub repeated: u64,
    /// Records missing in streams.
    pub missing: u64,
    /// Records in quarantine.
    pub quarantined: u64,
}

/// Answers queries on any thread, concurrently with the writer.
pub trait QueryReader: Send + Sync {
    /// Begins an answer. It ends with an error soon after `cancel` is set.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn begin(&self, query: &Query, cancel: &CancelToken) -> Result<Box<dyn QueryAnswer>, StoreError>;

    /// Number of queries that the store takes at once, given `threads` query threads.
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

/// An answer that has begun. It can pause, and resume on any thread where it stopped. All its rows are from one
/// snapshot, taken when the answer first reads the store, in one order and each once.
///
/// While the answer exists the store keeps old data for it, so the answer has to end in limited time.
pub trait QueryAnswer: Send {
    /// Calls `each` with each further row until there are no more rows or `each` returns anything but [`RowFlow::Continue`].
    ///
    /// # Errors
    ///
    /// The store cannot be read, the answer took too long, or it was cancelled. The answer cannot be resumed then.
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError>;
}

/// Progress of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerProgress {
    /// There are no more rows, or the reader wants no more.
    Ended,
    /// The next call resumes the answer.
    Paused,
}

/// A row of an answer.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerRow<'a> {
    /// A record.
    Record(Record<'a>),
    /// Number of records with this value in the field; `None`: records without the field.
    Count(Option<&'a str>, u64),
    /// Number of records in the interval that begins at this time, in nanoseconds since 1970.
    Interval(i64, u64),
}

/// Whether the reader of an answer wants more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFlow {
    /// Send more rows.
    Continue,
    /// The reader needs no more rows.
    Stop,
    /// Pause: the reader has to catch up.
    Pause,
}

/// Error of an answer whose client reads too slowly. The store keeps old data while an answer runs, so it has to end.
pub const ANSWER_UNREAD: &str = "the answer was not read in time; use a shorter time range, or fewer records";

/// Error of an answer that was cancelled.
pub const QUERY_CANCELLED: &str = "the query was cancelled";

/// Reason why a request to a store failed.
#[derive(Debug)]
pub enum StoreError {
    /// It may work later: a full disk, a server that is away.
    Retry(String),
    /// It will not work later: the store is of another kind or version.
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
