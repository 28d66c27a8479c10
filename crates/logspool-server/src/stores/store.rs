//! Stores: they take records, and answer queries.

use std::fmt;
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::delivery::{Delivery, Outcome};
use crate::query::Query;
use crate::record::Record;

/// Takes records. A store has one writer, on a thread of its own, so all that is written to it is in one order.
pub trait Store: Send {
    /// Its name in messages and metrics.
    fn name(&self) -> &str;

    /// Writes the batches in one transaction, and returns when all of them are durable: one outcome for each.
    ///
    /// Chunks follow the rules of [`super::watermark::judge`]; the watermark moves in the same transaction. A record that the
    /// store cannot take goes to its quarantine, with the reason, in the same transaction.
    ///
    /// # Errors
    ///
    /// Nothing of it is stored, or it cannot be told whether it is: the same batches may be written again.
    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<Written, StoreError>;

    /// Does what is due besides: a new day's file, old records removed. Called about once a second: when idle, and also
    /// while writing fails.
    ///
    /// # Errors
    ///
    /// As for [`Store::write`]; it is tried again.
    fn maintain(&mut self) -> Result<(), StoreError>;

    /// Asks whether it still answers: about once a second while nothing is written. `None`: it cannot be told cheaply,
    /// or not now.
    fn check(&mut self) -> Option<Result<(), StoreError>> {
        None
    }

    /// What is wrong with records that are stored, while others can be written and read: each with its mend.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Puts away all that is open.
    ///
    /// # Errors
    ///
    /// What is written is safe even so.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// What one transaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// What became of each batch.
    pub outcomes: Vec<Outcome>,
    /// Records stored.
    pub stored: u64,
    /// Records that were known already.
    pub repeated: u64,
    /// Records that are missing in streams.
    pub missing: u64,
    /// Records in quarantine.
    pub quarantined: u64,
}

/// Answers queries, from any thread, beside the writer.
pub trait Answers: Send + Sync {
    /// Begins an answer. It ends with an error soon after `cancel` is set.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn ask(&self, query: &Query, cancel: &Cancel) -> Result<Box<dyn Answer>, StoreError>;

    /// How many questions it may be asked at once, where there are so many query threads.
    fn at_once(&self, threads: usize) -> usize {
        threads
    }

    /// Calls `each` with each row of the answer, until there are no more or it says [`Next::Enough`].
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn answer(&self, query: &Query, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<(), StoreError> {
        let mut answer = self.ask(query, &Cancel::default())?;
        while answer.go_on(each)? == Progress::Paused {}
        Ok(())
    }
}

/// An answer that has begun. It can pause, on any thread, and goes on where it stopped: all its rows are of the moment
/// at which the store was first read for it, in one order, and none comes twice.
///
/// While it exists the store keeps what is old for it, so it has to end in limited time.
pub trait Answer: Send {
    /// Calls `each` with each further row, until there are no more or it says something else than [`Next::More`].
    ///
    /// # Errors
    ///
    /// The store cannot be read, the answer took too long, or it was cancelled. It cannot go on then.
    fn go_on(&mut self, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<Progress, StoreError>;
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There are no more rows, or no more were wanted.
    Ended,
    /// It goes on with the next call.
    Paused,
}

/// A row of an answer.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug, Clone, PartialEq)]
pub enum Found<'a> {
    /// A record.
    Record(Record<'a>),
    /// How many records have this value in the field; `None`: those without it.
    Count(Option<&'a str>, u64),
    /// How many records fall into the interval that begins then, in nanoseconds since 1970.
    Interval(i64, u64),
}

/// Whether an answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More, please.
    More,
    /// Enough.
    Enough,
    /// No more now: the reader has to catch up.
    Pause,
}

/// Why an answer ends that its client did not read in time: the store keeps what is old as long as it goes on.
pub const UNREAD: &str = "the answer was not read in time; ask for less time, or fewer records";

/// Why an answer ends that nobody waits for.
pub const CANCELLED: &str = "the query was cancelled";

/// Why a store could not do what was asked.
#[derive(Debug)]
pub enum StoreError {
    /// It may work later: a full disk, a server that is away.
    Retry(String),
    /// It will not: the store is of another kind or version.
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
