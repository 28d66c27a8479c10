//! Plans the search of a file: chooses the index that narrows the search, and builds the SQL statements.
//!
//! An index covers records up to its *end*. Later records are the *tail*. They are read without an index, but for a
//! search by trace the writer's table of recent traces is used (see [`super::recent`]). The whole filter is applied to
//! the records that the index finds. So an index may find too many records, but never too few.

use rusqlite::types::Value;

use super::database::COLUMNS;
use super::insert::MINUTE_NS;
use crate::query::words::is_part;
use crate::query::{Comparison, Dialect, Field, Filter, Literal, Parameter, Phrase, Query, Sql};

/// The index that narrows a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IndexChoice {
    /// Use only the index on time.
    Time,
    /// Use the trace-id index, to find the records of this trace.
    Trace(String),
    /// Use the word index, to find messages with these words. The text is an FTS5 query.
    Words(String),
    /// Use the logger index, to find the records of this logger.
    Logger(String),
}

impl IndexChoice {
    /// Chooses the index that is likely to find the fewest records.
    pub fn of(filter: &Filter) -> Self {
        let mut way = Self::Time;
        let mut words = String::new();
        for filter in conjuncts(filter) {
            match filter {
                Filter::Compare(Field::TraceId, Comparison::Equal, Literal::Text(trace)) => {
                    return Self::Trace(trace.clone());
                }
                Filter::Compare(Field::Logger, Comparison::Equal, Literal::Text(logger)) => {
                    way = Self::Logger(logger.clone());
                }
                Filter::Phrase(phrase) => add_words(&mut words, phrase),
                _ => {}
            }
        }
        if words.is_empty() { way } else { Self::Words(words) }
    }
}

/// Splits a filter into conditions that must all be true.
fn conjuncts(filter: &Filter) -> Vec<&Filter> {
    match filter {
        Filter::And(filters) => filters.iter().flat_map(conjuncts).collect(),
        filter => vec![filter],
    }
}

fn add_words(to: &mut String, phrase: &Phrase) {
    // The index has whole words.
    let whole = phrase.words.len() - usize::from(phrase.is_prefix);
    for word in phrase.words[..whole].iter().filter(|word| !is_part(word)) {
        if !to.is_empty() {
            to.push_str(" AND ");
        }
        // Words consist of letters and digits, so nothing has to be escaped.
        to.push('"');
        to.push_str(word);
        to.push('"');
    }
}

/// True if records of this level may match the filter.
pub(super) fn may_have_level(filter: &Filter, level: i64) -> bool {
    conjuncts(filter).into_iter().all(|filter| match filter {
        Filter::Compare(Field::Level, comparison, Literal::Int(bound)) => match comparison {
            Comparison::Equal => level == *bound,
            Comparison::NotEqual => level != *bound,
            Comparison::Less => level < *bound,
            Comparison::LessOrEqual => level <= *bound,
            Comparison::Greater => level > *bound,
            Comparison::GreaterOrEqual => level >= *bound,
        },
        _ => true,
    })
}

/// True if the filter can match one of two records with the same minute, logger and level, and not the other. If not,
/// the rollup counts are enough to answer the query.
pub(super) fn needs_records(filter: &Filter) -> bool {
    match filter {
        Filter::All | Filter::Compare(Field::Level | Field::Logger, ..) | Filter::Matches(Field::Logger, _) => false,
        Filter::Compare(Field::Time, Comparison::GreaterOrEqual | Comparison::Less, Literal::Int(time)) => {
            time % MINUTE_NS != 0
        }
        Filter::And(filters) | Filter::Or(filters) => filters.iter().any(needs_records),
        Filter::Not(filter) => needs_records(filter),
        _ => true,
    }
}

/// A part of a file that a query reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FilePart {
    /// All records, in the order of their time.
    ByTime,
    /// Records after the end of the index.
    Tail(i64),
    /// Records after the first number, up to and including the second.
    Between(i64, i64),
    /// Records with these numbers.
    Listed(Vec<i64>),
    /// Indexed records of a trace.
    Trace(String),
    /// Indexed records with these words.
    Words(String),
    /// Indexed records of a logger and a level, in the order of their time.
    Logger(String, i64),
    /// Rollup counts instead of records, from the first minute up to but excluding the second.
    Rollup(i64, i64),
}

impl FilePart {
    /// Appends `FROM` and the condition of this part. The caller can extend the condition with `AND`.
    fn from(&self, sql: &mut Sql) {
        match self {
            Self::ByTime => sql.push(" FROM records WHERE TRUE"),
            Self::Tail(end) => sql.push(" FROM records WHERE id > ").bind(Parameter::Int(*end)),
            Self::Between(after, to) => sql
                .push(" FROM records WHERE id > ")
                .bind(Parameter::Int(*after))
                .push(" AND id <= ")
                .bind(Parameter::Int(*to)),
            Self::Listed(ids) => sql
                .push(" FROM records WHERE id IN (SELECT value FROM json_each(")
                .bind(Parameter::Text(serde_json::to_string(ids).unwrap_or_default()))
                .push("))"),
            Self::Trace(trace) => sql
                .push(" FROM ix.by_trace CROSS JOIN records ON id = record WHERE of_trace = ")
                .bind(Parameter::Text(trace.clone())),
            Self::Words(words) => sql
                .push(" FROM ix.words CROSS JOIN records ON id = words.rowid WHERE words MATCH ")
                .bind(Parameter::Text(words.clone())),
            Self::Logger(logger, level) => sql
                .push(" FROM ix.by_logger CROSS JOIN records ON id = record WHERE of_logger = ")
                .bind(Parameter::Text(logger.clone()))
                .push(" AND of_level = ")
                .bind(Parameter::Int(*level)),
            Self::Rollup(from, to) => sql
                .push(
                    " FROM (SELECT CAST(minute * 60000000000 AS INTEGER) AS time_ns, logger, level, count AS records ",
                )
                .push("FROM rollup WHERE minute >= ")
                .bind(Parameter::Int(*from))
                .push(" AND minute < ")
                .bind(Parameter::Int(*to))
                .push(") WHERE TRUE"),
        };
    }

    /// Appends the time range of a query. If the part uses an index other than the one on time, `+` prevents SQLite
    /// from using the index on time.
    fn between(&self, sql: &mut Sql, since: Option<i64>, until: Option<i64>) {
        let (from, to) = match self {
            Self::ByTime => (" AND time_ns >= ", " AND time_ns < "),
            _ => (" AND +time_ns >= ", " AND +time_ns < "),
        };
        for (text, bound) in [(from, since), (to, until)] {
            if let Some(bound) = bound {
                sql.push(text).bind(Parameter::Int(bound));
            }
        }
    }

    /// A statement that returns whether the index has more than `most` candidates, without reading the records. `None`:
    /// this part has no such statement.
    pub fn exceeds(&self, most: i64) -> Option<BoundStatement> {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("SELECT count(*) > ").bind(Parameter::Int(most));
        match self {
            Self::Trace(trace) => {
                sql.push(" FROM (SELECT 1 FROM ix.by_trace WHERE of_trace = ").bind(Parameter::Text(trace.clone()))
            }
            Self::Words(words) => {
                sql.push(" FROM (SELECT 1 FROM ix.words WHERE words MATCH ").bind(Parameter::Text(words.clone()))
            }
            _ => return None,
        };
        sql.push(" LIMIT ").bind(Parameter::Int(most + 1)).push(")");
        Some(BoundStatement::of(&sql))
    }

    /// A statement for the times and numbers of the matching records, at most `most`.
    pub fn candidates(&self, query: &Query, most: usize) -> BoundStatement {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("SELECT time_ns, id");
        self.from(&mut sql);
        self.between(&mut sql, query.since_ns, query.until_ns);
        sql.push(" AND ").condition(&query.filter).push(" LIMIT ");
        sql.bind(Parameter::Int(i64::try_from(most).unwrap_or(i64::MAX)));
        BoundStatement::of(&sql)
    }

    /// Statements for the matching records, newest first, in pages.
    pub fn page(&self, query: &Query) -> PageStatements {
        let (same_time, before) = match self {
            Self::Logger(..) => (
                [" AND at_ns = ", " AND record < ", " ORDER BY record DESC LIMIT "],
                [" AND at_ns < ", " ORDER BY at_ns DESC, record DESC LIMIT "],
            ),
            _ => (
                [" AND time_ns = ", " AND id < ", " ORDER BY id DESC LIMIT "],
                [" AND time_ns < ", " ORDER BY time_ns DESC, id DESC LIMIT "],
            ),
        };
        PageStatements { same_time: self.ordered(query, &same_time), before: self.ordered(query, &before) }
    }

    /// A statement for whole records. It ends with the texts of `end`, each followed by a parameter. Their values are
    /// set later.
    fn ordered(&self, query: &Query, end: &[&'static str]) -> BoundStatement {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("SELECT id, ").push(COLUMNS);
        self.from(&mut sql);
        if let Some(since) = query.since_ns {
            sql.push(if matches!(self, Self::Logger(..)) { " AND at_ns >= " } else { " AND time_ns >= " });
            sql.bind(Parameter::Int(since));
        }
        sql.push(" AND ").condition(&query.filter);
        for text in end {
            sql.push(text).bind(Parameter::Int(0));
        }
        BoundStatement::of(&sql)
    }

    /// A statement for the newest matching record of each value of a field: the value, the record's time and its number.
    /// SQLite takes the number from the row with the maximum.
    pub fn newest(&self, query: &Query, field: &Field, since: Option<i64>, until: Option<i64>) -> BoundStatement {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("SELECT ").value(field).push(", max(time_ns), id");
        self.from(&mut sql);
        self.between(&mut sql, since, until);
        sql.push(" AND ").condition(&query.filter).push(" GROUP BY 1");
        BoundStatement::of(&sql)
    }

    /// A statement for the number of matching records per key.
    pub fn counts(&self, query: &Query, key: &CountKey<'_>, since: Option<i64>, until: Option<i64>) -> BoundStatement {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("SELECT ");
        match key {
            CountKey::Value(field) => sql.value(field),
            CountKey::Interval(interval_ns) => sql.interval(*interval_ns),
        };
        sql.push(if matches!(self, Self::Rollup(..)) { ", sum(records)" } else { ", count(*)" });
        self.from(&mut sql);
        self.between(&mut sql, since, until);
        sql.push(" AND ").condition(&query.filter).push(" GROUP BY 1");
        BoundStatement::of(&sql)
    }
}

/// The key that records are counted by.
#[derive(Debug, Clone, Copy)]
pub(super) enum CountKey<'a> {
    /// The value of a field.
    Value(&'a Field),
    /// The interval that contains the time of the record. The number is the length of an interval in nanoseconds.
    Interval(i64),
}

/// A statement with the values of its parameters.
#[derive(Debug, Clone)]
pub(super) struct BoundStatement {
    /// The SQL text.
    pub sql: String,
    /// The values of the parameters, in order.
    pub values: Vec<Value>,
}

impl BoundStatement {
    /// Replaces the last `N` values, and returns the statement.
    fn end_with<const N: usize>(&mut self, numbers: [i64; N]) -> &Self {
        let end = self.values.len().saturating_sub(N);
        self.values.splice(end.., numbers.map(Value::Integer));
        self
    }

    fn of(sql: &Sql) -> Self {
        let value = |parameter: &Parameter| match parameter {
            Parameter::Int(number) => Value::Integer(*number),
            Parameter::Float(number) => Value::Real(*number),
            Parameter::Text(text) => Value::Text(text.clone()),
        };
        Self { sql: sql.text().to_owned(), values: sql.parameters().iter().map(value).collect() }
    }
}

/// Two statements that read records in pages. A single statement would, for each page, read all records with the same
/// time again.
#[derive(Debug, Clone)]
pub(super) struct PageStatements {
    same_time: BoundStatement,
    before: BoundStatement,
}

impl PageStatements {
    /// A statement for up to `rows` records with the same time as the position. They follow it in the answer, so their
    /// numbers are smaller.
    pub fn same_time(&mut self, (time_ns, id): (i64, i64), rows: i64) -> &BoundStatement {
        self.same_time.end_with([time_ns, id, rows])
    }

    /// A statement for up to `rows` records that are older than the time of the position.
    pub fn before(&mut self, (time_ns, _): (i64, i64), rows: i64) -> &BoundStatement {
        self.before.end_with([time_ns, rows])
    }
}
