//! Answers queries. Each query has its own connection, and a read-only transaction with one snapshot.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::vec::IntoIter;

use futures_util::TryStreamExt;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, RowStream};

use super::connection::{CONNECT_TIMEOUT, ServerFailure, ServerLink};
use super::{PostgresConfig, rows, text};
use crate::cancel::{CancelToken, QueryDeadline};
use crate::clock::now_ns;
use crate::query::{Dialect, Field, Parameter, Query, Sql, Stage, plan};
use crate::stores::{
    ANSWER_UNREAD, AnswerProgress, AnswerRow, QUERY_CANCELLED, QueryAnswer, QueryReader, RowFlow, StoreError,
};

/// Maximum number of idle connections that are kept for later queries.
const MAX_IDLE_LINKS: usize = 4;

/// The length of the first search window. Each later window is [`GROWTH`] times as long as the one before: see
/// [`windows`].
const FIRST_WINDOW_NS: i64 = 60 * 1_000_000_000;
const GROWTH: i64 = 10;

/// Number of windows with a fixed length. Together they cover about 77 days. The last search covers all earlier
/// records.
const WINDOWS: u32 = 6;

/// The server's SQLSTATE for a query that took too long.
const CANCELED: &str = "57014";

/// Answers queries from PostgreSQL. It blocks, so it must not be called on threads that run async code.
#[derive(Debug)]
pub struct PostgresReader(Arc<ReaderParts>);

/// The parts of a reader that all its answers share.
#[derive(Debug)]
struct ReaderParts {
    config: PostgresConfig,
    idle: Mutex<Vec<ServerLink>>,
}

impl PostgresReader {
    /// Creates a reader, which connects at its first query. The reader does not create the tables; the writer does.
    pub fn new(config: &PostgresConfig) -> Self {
        Self(Arc::new(ReaderParts { config: config.clone(), idle: Mutex::default() }))
    }
}

impl QueryReader for PostgresReader {
    /// Queries use half of the threads. The server does the work, and there it has no low priority.
    fn max_parallel(&self, threads: usize) -> usize {
        (threads / 2).max(1)
    }

    fn begin(&self, query: &Query, cancel: &CancelToken) -> Result<Box<dyn QueryAnswer>, StoreError> {
        self.begin_within(query, self.0.config.query_timeout, cancel)
    }

    fn begin_within(
        &self,
        query: &Query,
        time: Duration,
        cancel: &CancelToken,
    ) -> Result<Box<dyn QueryAnswer>, StoreError> {
        let time = time.min(self.0.config.query_timeout);
        let until = QueryDeadline::new(CONNECT_TIMEOUT + time, cancel);
        let link = self.0.begin(&until).map_err(|failure| self.0.explain(failure, &until))?;
        let until = QueryDeadline::new(time, cancel);
        let searches = match &query.stage {
            None => {
                let (since_ns, until_ns) = plan::time_range(&query.filter);
                let until_ns = until_ns.into_iter().chain(query.until_ns).min();
                windows(since_ns.max(query.since_ns), until_ns, now_ns()).collect()
            }
            Some(_) => vec![(query.since_ns, query.until_ns)],
        };
        Ok(Box::new(PostgresAnswer {
            shared: self.0.clone(),
            link: Some(link),
            until,
            query: query.clone(),
            searches: searches.into_iter(),
            rows: None,
            left: query.limit.unwrap_or(u64::MAX),
            cut: 0,
        }))
    }
}

impl ReaderParts {
    /// Returns a connection on which the transaction of a query has begun.
    fn begin(&self, until: &QueryDeadline) -> Result<ServerLink, ServerFailure> {
        // JIT is off: compiling a query costs more than it saves, because rows of a log are rarely read twice. Parallel
        // workers are off, so that each query uses one server process, as the writer does.
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; \
             SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL statement_timeout = {}",
            self.config.query_timeout.as_millis()
        );
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut link) = kept
            && link
                .run(async |client| self.in_time(until, async { Ok(client.batch_execute(&begin).await?) }).await)
                .is_ok()
        {
            return Ok(link);
        }
        // A lost idle connection is not an error: connect again.
        let mut link = ServerLink::open_unless(&self.config.address, until.cancel.cancelled())?;
        link.run(async |client| self.in_time(until, async { Ok(client.batch_execute(&begin).await?) }).await)?;
        Ok(link)
    }

    /// Runs `work` unless the deadline passes or the query is cancelled first.
    async fn in_time<T>(
        &self,
        until: &QueryDeadline,
        work: impl Future<Output = Result<T, ServerFailure>>,
    ) -> Result<T, ServerFailure> {
        tokio::select! {
            biased;
            done = work => done,
            () = until.cancel.cancelled() => Err(ServerFailure::Retry(QUERY_CANCELLED.to_owned())),
            () = tokio::time::sleep_until(until.deadline.into()) => Err(self.too_late()),
        }
    }

    fn too_late(&self) -> ServerFailure {
        let timeout = self.config.query_timeout;
        ServerFailure::Retry(format!("no answer within {timeout:?}: use a shorter time range, or fewer rows"))
    }

    fn explain(&self, failure: ServerFailure, until: &QueryDeadline) -> StoreError {
        if until.cancel.is_cancelled() {
            return StoreError::Retry(QUERY_CANCELLED.to_owned());
        }
        let failure = if failure.code() == CANCELED { self.too_late() } else { failure };
        failure.explain("query", &self.config.address)
    }
}

/// An answer, with its own connection and transaction.
struct PostgresAnswer {
    shared: Arc<ReaderParts>,
    /// `None` once the answer has ended.
    link: Option<ServerLink>,
    until: QueryDeadline,
    query: Query,
    /// The time windows that are not searched yet; see [`windows`]. The table `records` has no index that is ordered by
    /// time. So without time bounds each query for the newest records would read and sort all rows.
    searches: IntoIter<(Option<i64>, Option<i64>)>,
    /// The rows of the current search.
    rows: Option<Pin<Box<RowStream>>>,
    /// Maximum number of rows that are still to be returned.
    left: u64,
    /// Number of rows that the limit cut off.
    cut: u64,
}

impl QueryAnswer for PostgresAnswer {
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
        let Some(mut link) = self.link.take() else { return Ok(AnswerProgress::Ended) };
        let (shared, until) = (self.shared.clone(), self.until.clone());
        match link.run(async |client| shared.in_time(&until, self.read(client, each)).await) {
            Ok(RowFlow::Pause) => {
                self.link = Some(link);
                return Ok(AnswerProgress::Paused);
            }
            Ok(RowFlow::Continue) => {
                let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MAX_IDLE_LINKS {
                    idle.push(link);
                }
            }
            Ok(RowFlow::Stop) => self.abandon(link),
            Err(failure) => {
                self.abandon(link);
                return Err(self.shared.explain(failure, &until));
            }
        }
        Ok(AnswerProgress::Ended)
    }

    fn left_out(&self) -> u64 {
        self.cut
    }
}

impl PostgresAnswer {
    /// Passes rows to `each`. Returns [`RowFlow::Continue`] if all rows were passed and the transaction has ended.
    async fn read(
        &mut self,
        client: &Client,
        each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow,
    ) -> Result<RowFlow, ServerFailure> {
        while self.left > 0 {
            let rows = match &mut self.rows {
                Some(rows) => rows,
                none => {
                    let Some(times) = self.searches.next() else { break };
                    none.insert(Box::pin(search(client, &self.query, times, self.left).await?))
                }
            };
            let Some(row) = rows.try_next().await? else {
                self.rows = None;
                continue;
            };
            if self.until.has_passed() {
                return Err(ServerFailure::Retry(ANSWER_UNREAD.to_owned()));
            }
            self.left -= 1;
            if let (Some(_), Some(limit)) = (&self.query.stage, self.query.limit) {
                let all: i64 = row.try_get("all_rows")?;
                self.cut = all.cast_unsigned().saturating_sub(limit);
            }
            match emit_row(&self.query, &row, each)? {
                RowFlow::Continue => {}
                end => return Ok(end),
            }
        }
        self.rows = None;
        client.batch_execute("COMMIT").await?;
        Ok(RowFlow::Continue)
    }

    /// Closes the connection because the remaining rows are not needed, so the server stops sending them.
    fn abandon(&mut self, link: ServerLink) {
        self.rows = None;
        link.abandon(&self.shared.config.address);
    }
}

impl Drop for PostgresAnswer {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            self.abandon(link);
        }
    }
}

/// Begins a search between two times. It returns at most `most` rows.
async fn search(
    client: &Client,
    query: &Query,
    (since_ns, until_ns): (Option<i64>, Option<i64>),
    most: u64,
) -> Result<RowStream, ServerFailure> {
    let mut sql = Sql::new(Dialect::Postgres);
    if let Some(Stage::Histogram { .. }) = &query.stage {
        sql.push("SELECT * FROM (");
    }
    sql.push("SELECT ");
    // The number of all rows, including the rows that the limit cuts off.
    let all_rows = if most < u64::MAX { ", count(*) OVER () AS all_rows" } else { "" };
    match &query.stage {
        None => sql.push(rows::SELECTED),
        Some(Stage::LastBy(field)) => {
            sql.push(rows::SELECTED).push(all_rows);
            sql.push(" FROM (SELECT DISTINCT ON (1) ").value(field).push(" AS of_value, records.*")
        }
        Some(Stage::CountBy(field)) => sql.value(field).push(", count(*)").push(all_rows),
        Some(Stage::Histogram { interval_ns }) if *interval_ns <= 0 => {
            return Err(ServerFailure::Retry("an interval must be positive".to_owned()));
        }
        Some(Stage::Histogram { interval_ns }) => sql.interval(*interval_ns).push(", count(*)").push(all_rows),
    };
    sql.push(" FROM logspool.records WHERE ").condition(&query.filter);
    if let Some(since_ns) = since_ns {
        sql.push(" AND time_ns >= ").bind(Parameter::Int(since_ns));
    }
    if let Some(until_ns) = until_ns {
        sql.push(" AND time_ns < ").bind(Parameter::Int(until_ns));
    }
    sql.push(match &query.stage {
        // If records have the same time, the one that was stored last comes first.
        None => " ORDER BY time_ns DESC, ctid DESC",
        Some(Stage::LastBy(_)) => " ORDER BY 1, time_ns DESC, ctid DESC) newest ORDER BY time_ns DESC",
        Some(Stage::CountBy(_)) => " GROUP BY 1 ORDER BY 2 DESC, 1",
        // The limit keeps the newest intervals.
        Some(Stage::Histogram { .. }) => " GROUP BY 1 ORDER BY 1 DESC",
    });
    if most < u64::MAX {
        sql.push(" LIMIT ").bind(Parameter::Int(i64::try_from(most).unwrap_or(i64::MAX)));
    }
    if let Some(Stage::Histogram { .. }) = &query.stage {
        sql.push(") newest ORDER BY 1");
    }
    let parameters = sql.parameters().iter().map(|parameter| -> (Box<dyn ToSql + Sync>, Type) {
        match parameter {
            Parameter::Int(number) => (Box::new(*number), Type::INT8),
            Parameter::Float(number) => (Box::new(*number), Type::FLOAT8),
            Parameter::Text(text) => (Box::new(text::stored(text).into_owned()), Type::TEXT),
        }
    });
    Ok(client.query_typed_raw(sql.text(), parameters.collect::<Vec<_>>()).await?)
}

/// Passes one row to `each`.
fn emit_row(
    query: &Query,
    row: &Row,
    each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow,
) -> Result<RowFlow, tokio_postgres::Error> {
    Ok(match &query.stage {
        None | Some(Stage::LastBy(_)) => each(AnswerRow::Record(rows::read(row)?)),
        Some(Stage::CountBy(field)) => {
            let (value, count): (Option<&str>, i64) = (row.try_get(0)?, row.try_get(1)?);
            let value = match (field, value) {
                // Large ids are stored as negative numbers with the same bits.
                (Field::Process | Field::Thread, Some(id)) => {
                    Some(id.parse().map_or_else(|_| id.to_owned(), |id: i64| id.cast_unsigned().to_string()).into())
                }
                (_, value) => value.map(text::original),
            };
            each(AnswerRow::Count(value.as_deref(), count.cast_unsigned()))
        }
        Some(Stage::Histogram { interval_ns }) => {
            let (number, count): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            each(AnswerRow::Interval(number.saturating_mul(*interval_ns), count.cast_unsigned()))
        }
    })
}

/// Splits the requested time range into windows, newest first. Each window is ten times as long as the one before. The
/// first window covers the last minute and all later times, the second covers the ten minutes before, and so on. Recent
/// records are found cheaply, in the first windows. A query without recent matches costs little more than one search of
/// the whole time range.
fn windows(since: Option<i64>, until: Option<i64>, now_ns: i64) -> impl Iterator<Item = (Option<i64>, Option<i64>)> {
    let newest = until.map_or(now_ns, |until| until.min(now_ns));
    let mut edges: Vec<_> = (0..WINDOWS)
        .scan((newest, FIRST_WINDOW_NS), |(edge, length), _| {
            *edge = edge.saturating_sub(*length);
            *length *= GROWTH;
            Some(*edge)
        })
        .take_while(|edge| since.is_none_or(|since| since < *edge))
        .map(Some)
        .collect();
    edges.push(since);
    let ends: Vec<_> = std::iter::once(until).chain(edges.iter().copied()).collect();
    edges.into_iter().zip(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = FIRST_WINDOW_NS;

    #[test]
    fn windows_follow_each_other_without_a_gap() {
        let now = 1_000_000 * MINUTE;
        for (since, until) in [
            (None, None),
            (Some(now - 5 * MINUTE), None),
            (Some(now - MINUTE), Some(now)),
            (None, Some(now - 1000 * MINUTE)),
            (Some(i64::MIN), Some(i64::MAX)),
            (Some(now + 1), None),
            (Some(5), Some(5)),
        ] {
            let windows: Vec<_> = windows(since, until, now).collect();

            assert_eq!(until, windows[0].1);
            assert_eq!(since, windows[windows.len() - 1].0);
            assert!(windows.windows(2).all(|pair| pair[0].0 == pair[1].1 && pair[0].0.is_some()), "{windows:?}");
        }
    }

    #[test]
    fn each_window_is_longer_than_the_one_before() {
        let found: Vec<_> = windows(Some(-200 * MINUTE), None, 0).collect();

        let edges = [-MINUTE, -11 * MINUTE, -111 * MINUTE, -200 * MINUTE].map(Some);
        assert_eq!(vec![(edges[0], None), (edges[1], edges[0]), (edges[2], edges[1]), (edges[3], edges[2])], found);
    }
}
