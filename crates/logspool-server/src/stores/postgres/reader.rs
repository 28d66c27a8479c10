//! Answers: each on a connection of its own, in a transaction that only reads, and sees one moment.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::connection::{Failure, Link};
use super::{Config, rows, text};
use crate::clock::now_ns;
use crate::query::{Dialect, Field, Parameter, Query, Sql, Stage, plan};
use crate::stores::{Answers, Found, Next, StoreError};

/// Connections kept for the next questions.
const IDLE: usize = 4;

/// How far back the first search goes, and how many times as far each further one: see [`windows`].
const FIRST_WINDOW_NS: i64 = 60 * 1_000_000_000;
const GROWTH: i64 = 10;

/// How many searches go back a fixed time, up to 70 days; the last one goes to the beginning.
const WINDOWS: u32 = 6;

/// The server's word for a query that took too long.
const CANCELED: &str = "57014";

/// Answers queries from PostgreSQL. It blocks: not for threads that run async code.
#[derive(Debug)]
pub struct Reader {
    config: Config,
    idle: Mutex<Vec<Link>>,
}

impl Reader {
    /// A reader that connects when it is first asked. The tables are the writer's business.
    pub fn new(config: &Config) -> Self {
        Self { config: config.clone(), idle: Mutex::default() }
    }

    /// A connection with a transaction.
    fn begin(&self) -> Result<Link, Failure> {
        let begin = format!(
            // What is compiled for a query costs more than it saves: few rows of a log are ever looked at twice.
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; SET LOCAL statement_timeout = {}",
            self.config.query_timeout.as_millis()
        );
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut link) = kept
            && link.run(async |client| Ok(client.batch_execute(&begin).await?)).is_ok()
        {
            return Ok(link);
        }
        // One that was lost meanwhile is no failure.
        let mut link = Link::open(&self.config.address)?;
        link.run(async |client| Ok(client.batch_execute(&begin).await?))?;
        Ok(link)
    }

    fn try_answer(&self, query: &Query, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<(), Failure> {
        let mut link = self.begin()?;
        let end = link.run(async |client| {
            let end = match &query.stage {
                None => records(client, query, each).await?,
                Some(Stage::CountBy(field)) => counts(client, query, field, each).await?,
                Some(Stage::Histogram { interval_ns }) => histogram(client, query, *interval_ns, each).await?,
            };
            if end == Next::More {
                client.batch_execute("COMMIT").await?;
            }
            Ok(end)
        })?;
        // Where the rest was not wanted, the connection goes: the rows that are still on their way end with it.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if end == Next::More && idle.len() < IDLE {
            idle.push(link);
        }
        Ok(())
    }
}

impl Answers for Reader {
    fn answer(&self, query: &Query, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<(), StoreError> {
        self.try_answer(query, each).map_err(|failure| {
            let timeout = self.config.query_timeout;
            let failure = match failure.code() {
                CANCELED => {
                    Failure::Retry(format!("no answer within {timeout:?}: ask for a shorter time, or fewer rows"))
                }
                _ => failure,
            };
            failure.explain("query", &self.config.address)
        })
    }
}

/// The records, newest first: window after window until there are enough. `records` has no index that is in order of
/// time, so without an end each question for the newest ones would read and sort them all.
async fn records(client: &Client, query: &Query, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<Next, Failure> {
    let mut left = query.limit;
    let (since_ns, until_ns) = plan::bounds(&query.filter);
    let (since_ns, until_ns) = (since_ns.max(query.since_ns), until_ns.into_iter().chain(query.until_ns).min());
    for (since_ns, until_ns) in windows(since_ns, until_ns, now_ns()) {
        let mut sql = Sql::new(Dialect::Postgres);
        sql.push("SELECT ").push(rows::SELECTED);
        filter(&mut sql, &Query { since_ns, until_ns, ..query.clone() });
        // Of records with the same time, the one that was stored last.
        sql.push(" ORDER BY time_ns DESC, ctid DESC");
        limit(&mut sql, left);
        let mut count = 0;
        let end = ask(client, &sql, |row| {
            count += 1;
            Ok(each(Found::Record(rows::read(row)?)))
        })
        .await?;
        left = left.map(|left| left.saturating_sub(count));
        if end == Next::Enough || left == Some(0) {
            return Ok(end);
        }
    }
    Ok(Next::More)
}

async fn counts(
    client: &Client,
    query: &Query,
    field: &Field,
    each: &mut dyn FnMut(Found<'_>) -> Next,
) -> Result<Next, Failure> {
    let mut sql = Sql::new(Dialect::Postgres);
    sql.push("SELECT ").value(field).push(", count(*)");
    filter(&mut sql, query);
    sql.push(" GROUP BY 1 ORDER BY 2 DESC, 1");
    limit(&mut sql, query.limit);
    ask(client, &sql, |row| {
        let (value, count): (Option<&str>, i64) = (row.try_get(0)?, row.try_get(1)?);
        let value = match (field, value) {
            // Kept as negative numbers with the same bits.
            (Field::Process | Field::Thread, Some(id)) => {
                Some(id.parse().map_or_else(|_| id.to_owned(), |id: i64| id.cast_unsigned().to_string()).into())
            }
            (_, value) => value.map(text::original),
        };
        Ok(each(Found::Count(value.as_deref(), count.cast_unsigned())))
    })
    .await
}

async fn histogram(
    client: &Client,
    query: &Query,
    interval_ns: i64,
    each: &mut dyn FnMut(Found<'_>) -> Next,
) -> Result<Next, Failure> {
    if interval_ns <= 0 {
        return Err(Failure::Retry("an interval is longer than nothing".to_owned()));
    }
    let mut sql = Sql::new(Dialect::Postgres);
    sql.push("SELECT ").interval(interval_ns).push(", count(*)");
    filter(&mut sql, query);
    sql.push(" GROUP BY 1 ORDER BY 1");
    limit(&mut sql, query.limit);
    ask(client, &sql, |row| {
        let (number, count): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(each(Found::Interval(number.saturating_mul(interval_ns), count.cast_unsigned())))
    })
    .await
}

/// From where, and which records.
fn filter(sql: &mut Sql, query: &Query) {
    sql.push(" FROM logspool.records WHERE ").condition(&query.filter);
    if let Some(since_ns) = query.since_ns {
        sql.push(" AND time_ns >= ").bind(Parameter::Int(since_ns));
    }
    if let Some(until_ns) = query.until_ns {
        sql.push(" AND time_ns < ").bind(Parameter::Int(until_ns));
    }
}

fn limit(sql: &mut Sql, rows: Option<u64>) {
    if let Some(rows) = rows {
        sql.push(" LIMIT ").bind(Parameter::Int(i64::try_from(rows).unwrap_or(i64::MAX)));
    }
}

/// Asks, and hands each row on as it comes.
async fn ask(
    client: &Client,
    sql: &Sql,
    mut each: impl FnMut(&Row) -> Result<Next, tokio_postgres::Error>,
) -> Result<Next, Failure> {
    let parameters = sql.parameters().iter().map(|parameter| -> (Box<dyn ToSql + Sync>, Type) {
        match parameter {
            Parameter::Int(number) => (Box::new(*number), Type::INT8),
            Parameter::Float(number) => (Box::new(*number), Type::FLOAT8),
            Parameter::Text(text) => (Box::new(text::stored(text).into_owned()), Type::TEXT),
        }
    });
    let mut rows = pin!(client.query_typed_raw(sql.text(), parameters.collect::<Vec<_>>()).await?);
    while let Some(row) = rows.try_next().await? {
        if each(&row)? == Next::Enough {
            return Ok(Next::Enough);
        }
    }
    Ok(Next::More)
}

/// Parts of the time asked for, from the newest to the oldest, each longer than the one before: the last minute with
/// all that is later, the ten minutes before it, and so on. What is found early is cheap; what is not costs little more
/// than one search through everything.
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
