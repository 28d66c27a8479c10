//! The writer. It has one connection, and uses one transaction for each group of batches.
//!
//! Numbered chunks are stored exactly once. The transaction that stores the rows of a chunk also changes the mark of its
//! stream. It does so only if the mark still has the value that the plan was made for. That value can be outdated for
//! two reasons: another service changed the mark, or a commit with an unknown outcome took effect after all. In both
//! cases the transaction is rolled back, so no rows are stored twice. `COMMIT` is sent only after the server has
//! confirmed that every mark has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::{Client, Error, Row, Statement};

use super::connection::{Address, Backoff, ServerFailure, ServerLink};
use super::copy::copy;
use super::plan::{KnownMarks, TransactionPlan, unknown_streams};
use super::quarantine::store_or_quarantine;
use super::{PostgresConfig, rows, schema, tables};
use crate::clock::now_ns;
use crate::delivery::Delivery;
use crate::stores::clock_jump::ClockJump;
use crate::stores::mark::{Gaps, StreamMark};
use crate::stores::{GapCounts, Store, StoreError, WriteResult};

/// Maximum number of marks in memory. Beyond this number all of them are dropped and read again when needed.
const MAX_MARKS: usize = 100_000;

/// Maximum number of attempts to write a group while another service changes the marks of its streams.
const ATTEMPTS: usize = 3;

/// Time between two upkeep runs. Upkeep removes old records and marks, and creates partitions.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(3600);

/// Time before failed upkeep is tried again. Upkeep usually fails because the tables are in use.
const UPKEEP_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// How long the server may take to answer a check. Batches wait during a check. Chosen: it is longer than the pauses of
/// a busy machine, and short enough for monitoring.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

/// Time between two checks that also look at the tables. Chosen: about one in ten checks looks at them.
const TABLE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

const READ_MARKS: &str = "SELECT stream, epoch, last, gaps, ended FROM logspool.streams WHERE stream = ANY($1)";

/// Changes marks and returns the number of streams whose mark changed. `was_epoch IS NULL`: the stream had no row.
const CHANGE_MARKS: &str = "
    WITH given AS (
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::boolean[],
                $6::bigint[], $7::bigint[], $8::text[], $9::boolean[])
            AS given (stream, epoch, last, gaps, ended, was_epoch, was_last, was_gaps, was_ended)
    ), changed AS (
        UPDATE logspool.streams s SET epoch = g.epoch, last = g.last, gaps = g.gaps, ended = g.ended, seen = now()
            FROM given g
            WHERE s.stream = g.stream AND s.epoch = g.was_epoch AND s.last = g.was_last
                AND s.gaps IS NOT DISTINCT FROM g.was_gaps AND s.ended = g.was_ended
            RETURNING 1
    ), made AS (
        INSERT INTO logspool.streams (stream, epoch, last, gaps, ended, seen)
            SELECT stream, epoch, last, gaps, ended, now() FROM given WHERE was_epoch IS NULL
            ON CONFLICT (stream) DO NOTHING RETURNING 1
    )
    SELECT (SELECT count(*) FROM changed) + (SELECT count(*) FROM made)";

/// Deletes the marks of streams that were not seen for 7 days, and returns their gaps. If a client keeps unacknowledged
/// chunks for longer, they may be stored twice. The age of a mark is measured from the newest `seen` and not from now,
/// because the server's clock may be wrong by years. Values of `seen` later than now are ignored: they come from a time
/// when the clock was ahead.
const FORGET_MARKS: &str = "
    WITH gone AS (
        DELETE FROM logspool.streams WHERE seen <
            (SELECT max(seen) FROM logspool.streams WHERE seen <= now()) - interval '7 days' RETURNING gaps
    )
    SELECT gaps FROM gone WHERE gaps IS NOT NULL";

/// The gaps of all streams.
const READ_GAPS: &str = "SELECT gaps FROM logspool.streams WHERE gaps IS NOT NULL";

/// Writes records into PostgreSQL.
#[derive(Debug)]
pub struct PostgresWriter {
    config: PostgresConfig,
    session: Option<WriterSession>,
    backoff: Backoff,
    /// True if the server's last error was a full disk.
    is_full: bool,
    leap: ClockJump,
}

impl PostgresWriter {
    /// Creates a writer. It connects when the connection is first needed, and again whenever the connection is lost.
    pub fn new(config: &PostgresConfig) -> Self {
        let (session, backoff, leap) = (None, Backoff::new(), ClockJump::default());
        Self { config: config.clone(), session, backoff, is_full: false, leap }
    }

    /// Returns the connection, and opens it if there is none.
    fn session(&mut self) -> Result<&mut WriterSession, ServerFailure> {
        match &mut self.session {
            Some(session) => Ok(session),
            none => Ok(none.insert(WriterSession::open(&self.config.address)?)),
        }
    }

    /// Drops the connection after a failure. The next connection starts in a known state and reads the marks again.
    fn failed(&mut self, failure: ServerFailure, what: &str) -> StoreError {
        self.session = None;
        self.is_full = failure.code() == schema::DISK_FULL;
        self.backoff.failed();
        failure.explain(what, &self.config.address)
    }
}

impl Store for PostgresWriter {
    fn name(&self) -> &str {
        "postgres"
    }

    /// Sleeps first until the pause after the last failure is over (at most 5 s and a quarter more). So the caller can
    /// retry at once.
    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError> {
        thread::sleep(self.backoff.remaining());
        let done = self.session().and_then(|session| session.write(deliveries));
        match done {
            Ok(written) => {
                self.backoff.succeeded();
                self.is_full = false;
                Ok(written)
            }
            Err(failure) => Err(self.failed(failure, "write to")),
        }
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        // Upkeep does not wait while the disk is full, because removing old records frees space.
        if !self.is_full && !self.backoff.remaining().is_zero() {
            return Ok(());
        }
        if let Err(failure) = self.session() {
            return Err(self.failed(failure, "connect to"));
        }
        let Some(session) = &mut self.session else { return Ok(()) };
        if Instant::now() < session.upkeep_at && schema::day_of(now_ns()) == session.upkeep_day {
            return Ok(());
        }
        match session.maintain(self.config.retention_days, &mut self.leap) {
            Ok(()) => Ok(()),
            // The server answered, so the connection can still be used and stays open.
            Err(failure) if !failure.code().is_empty() => Err(failure.explain("tidy up", &self.config.address)),
            Err(failure) => Err(self.failed(failure, "tidy up")),
        }
    }

    fn check(&mut self) -> Option<Result<(), StoreError>> {
        if !self.backoff.remaining().is_zero() {
            return None;
        }
        match self.session().and_then(WriterSession::check) {
            Ok(()) => {
                self.backoff.succeeded();
                Some(Ok(()))
            }
            Err(failure) => Some(Err(self.failed(failure, "reach"))),
        }
    }

    fn gap_counts(&mut self) -> Option<GapCounts> {
        // The next write or check reports a lost connection.
        self.session.as_mut()?.gap_counts().ok()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        if let Some(session) = self.session {
            session.link.close();
        }
        Ok(())
    }
}

/// The state of one connection.
#[derive(Debug)]
struct WriterSession {
    link: ServerLink,
    statements: Statements,
    /// The marks that this connection has read or committed.
    marks: KnownMarks,
    tables_at: Instant,
    upkeep_at: Instant,
    upkeep_day: i64,
    /// Records in the gaps of forgotten marks, since the last call of `gap_counts`.
    expired: u64,
}

#[derive(Debug)]
struct Statements {
    copy: Statement,
    read_marks: Statement,
    change_marks: Statement,
}

impl WriterSession {
    fn open(address: &Address) -> Result<Self, ServerFailure> {
        let mut link = ServerLink::open(address)?;
        let today = schema::day_of(now_ns());
        let statements = link.run(async |client| {
            schema::prepare(client).await?;
            match schema::make_partitions(client, today).await {
                // The tables are locked, for example by a backup, or old records have to be removed first. Records can
                // be stored without the new partitions, in the default partition.
                Err(failure) if schema::is_passing(failure.code()) => {}
                done => done?,
            }
            Ok(Statements {
                copy: client.prepare(&format!("COPY logspool.records ({}) FROM STDIN BINARY", rows::COLUMNS)).await?,
                read_marks: client.prepare(READ_MARKS).await?,
                change_marks: client.prepare(CHANGE_MARKS).await?,
            })
        })?;
        let now = Instant::now();
        Ok(Self {
            link,
            statements,
            marks: HashMap::new(),
            tables_at: now + TABLE_CHECK_INTERVAL,
            upkeep_at: now,
            upkeep_day: today,
            expired: 0,
        })
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, ServerFailure> {
        let Self { link, statements, marks, .. } = self;
        link.run(async |client| {
            for _ in 0..ATTEMPTS {
                read_marks(client, statements, marks, deliveries).await?;
                let plan = TransactionPlan::new(deliveries.iter().map(|delivery| &**delivery), marks);
                if plan.is_empty() {
                    return Ok(plan.written.clone());
                }
                if let Some(quarantined) = commit(client, statements, &plan).await? {
                    let now =
                        plan.moves.iter().map(|(name, change)| (name.clone().into_owned(), Some(change.now.clone())));
                    marks.extend(now);
                    let stored = plan.written.stored - quarantined;
                    return Ok(WriteResult { stored, quarantined, ..plan.written.clone() });
                }
                marks.clear();
            }
            Err(ServerFailure::Retry("another service is writing the same streams".to_owned()))
        })
    }

    fn gap_counts(&mut self) -> Result<GapCounts, ServerFailure> {
        let ask = async |client: &Client| records_of(&client.query(READ_GAPS, &[]).await?);
        let open = self.link.run(async |client| match timeout(CHECK_TIMEOUT, ask(client)).await {
            Ok(answered) => answered,
            Err(_) => Err(ServerFailure::Retry(format!("no answer within {CHECK_TIMEOUT:?}"))),
        })?;
        Ok(GapCounts { open, expired: std::mem::take(&mut self.expired) })
    }

    fn check(&mut self) -> Result<(), ServerFailure> {
        let looks_at_tables = Instant::now() >= self.tables_at;
        if looks_at_tables {
            self.tables_at = Instant::now() + TABLE_CHECK_INTERVAL;
        }
        let ask = async |client: &Client| match looks_at_tables {
            true => tables::check(client).await,
            false => Ok(client.batch_execute("").await?),
        };
        self.link.run(async |client| match timeout(CHECK_TIMEOUT, ask(client)).await {
            Ok(answered) => answered,
            Err(_) => Err(ServerFailure::Retry(format!("no answer within {CHECK_TIMEOUT:?}"))),
        })
    }

    fn maintain(&mut self, retention_days: Option<u32>, leap: &mut ClockJump) -> Result<(), ServerFailure> {
        let Self { link, marks, .. } = self;
        let today = schema::day_of(now_ns());
        (self.upkeep_at, self.upkeep_day) = (Instant::now() + UPKEEP_RETRY_PAUSE, today);
        let (more, expired) = link.run(async |client| {
            let is_believed = leap.is_trusted(today, schema::was_away(client, today).await?, Instant::now());
            // Remove old records first: on a full disk, removal frees space for the other steps. Partitions are created
            // even if removal fails.
            let removed = match retention_days {
                Some(days) if is_believed => schema::remove_before(client, today - i64::from(days)).await,
                _ => Ok(false),
            };
            schema::make_partitions(client, today).await?;
            let more = removed?;
            if !is_believed {
                return Ok((more, 0));
            }
            let forgotten = client.query(FORGET_MARKS, &[]).await?;
            marks.clear();
            Ok((more, records_of(&forgotten)?))
        })?;
        self.expired += expired;
        self.upkeep_at = Instant::now() + if more { Duration::ZERO } else { UPKEEP_INTERVAL };
        Ok(())
    }
}

/// Reads the marks of streams that are not in `marks` yet.
async fn read_marks(
    client: &Client,
    statements: &Statements,
    marks: &mut KnownMarks,
    deliveries: &[Arc<Delivery>],
) -> Result<(), ServerFailure> {
    if marks.len() > MAX_MARKS {
        marks.clear();
    }
    let names = unknown_streams(deliveries.iter().map(|delivery| &**delivery), marks);
    if names.is_empty() {
        return Ok(());
    }
    for row in client.query(&statements.read_marks, &[&names]).await? {
        let (epoch, last): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
        let gaps = Gaps::parse(row.try_get(3)?).map_err(unreadable_mark)?;
        let (epoch, last) = (epoch.cast_unsigned(), last.cast_unsigned());
        let mark = StreamMark { epoch, last, gaps, ended: row.try_get(4)? };
        marks.insert(row.try_get(0)?, Some(mark));
    }
    for name in names {
        marks.entry(name.into_owned()).or_insert(None);
    }
    Ok(())
}

fn unreadable_mark(why: String) -> ServerFailure {
    ServerFailure::Fatal(format!("in logspool.streams, {why}; set gaps to NULL there"))
}

/// Number of records in the gaps of rows.
fn records_of(rows: &[Row]) -> Result<u64, ServerFailure> {
    rows.iter().try_fold(0, |sum: u64, row| {
        let gaps = Gaps::parse(row.try_get(0)?).map_err(unreadable_mark)?;
        Ok(sum.saturating_add(gaps.records()))
    })
}

/// Writes the plan in one transaction and returns the number of quarantined records. `None`: a mark differed from the
/// one that the plan was made for, so nothing was written.
async fn commit(
    client: &Client,
    statements: &Statements,
    plan: &TransactionPlan<'_>,
) -> Result<Option<u64>, ServerFailure> {
    client.batch_execute("BEGIN").await?;
    let mut quarantined = 0;
    if plan.written.stored > 0 {
        match copy(client, &statements.copy, plan.rows(), rows::put).await {
            Err(error) if is_refusal(&error) => {
                client.batch_execute("ROLLBACK; BEGIN").await?;
                quarantined = store_or_quarantine(client, plan.rows()).await?;
            }
            done => done?,
        }
    }
    if !plan.moves.is_empty() {
        let names: Vec<_> = plan.moves.keys().collect();
        let now = MarkColumns::of(plan.moves.values().map(|change| Some(&change.now)));
        let was = MarkColumns::of(plan.moves.values().map(|change| change.was.as_ref()));
        let row = client
            .query_one(
                &statements.change_marks,
                &[
                    &names,
                    &now.epochs,
                    &now.lasts,
                    &now.gaps,
                    &now.ended,
                    &was.epochs,
                    &was.lasts,
                    &was.gaps,
                    &was.ended,
                ],
            )
            .await?;
        if usize::try_from(row.try_get::<_, i64>(0)?) != Ok(names.len()) {
            client.batch_execute("ROLLBACK").await?;
            return Ok(None);
        }
    }
    client.batch_execute("COMMIT").await?;
    Ok(Some(quarantined))
}

/// Marks as one list for each column.
#[derive(Default)]
struct MarkColumns {
    epochs: Vec<Option<i64>>,
    lasts: Vec<Option<i64>>,
    gaps: Vec<Option<String>>,
    ended: Vec<Option<bool>>,
}

impl MarkColumns {
    fn of<'a>(marks: impl Iterator<Item = Option<&'a StreamMark>>) -> Self {
        let mut columns = Self::default();
        for mark in marks {
            columns.epochs.push(mark.map(|mark| mark.epoch.cast_signed()));
            columns.lasts.push(mark.map(|mark| mark.last.cast_signed()));
            columns.gaps.push(mark.and_then(|mark| mark.gaps.text()));
            columns.ended.push(mark.map(|mark| mark.ended));
        }
        columns
    }
}

/// True if the server refuses a row because of its data. The server cannot read the data (class 22), the data breaks a
/// constraint (23) or a server limit (54), or a trigger refuses the data (P0). Other errors may not occur again at the
/// next attempt.
fn is_refusal(error: &Error) -> bool {
    let code = error.code().map_or("", |code| code.code());
    // 22P04 reports malformed COPY data. This service encodes the COPY data, so the error is not the fault of a row.
    code != "22P04" && ["22", "23", "54", "P0"].iter().any(|class| code.starts_with(class))
}
