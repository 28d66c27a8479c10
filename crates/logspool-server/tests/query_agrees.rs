//! A filter matches the same records in memory and in SQLite.

use crate::trees;

use std::time::Duration;

use logspool_server::batch::{Arrival, Batch, Row};
use logspool_server::cancel::{CancelToken, QueryDeadline};
use logspool_server::query::{Dialect, Field, Filter, Matcher, Parameter, Sql, functions, parse, plan};
use logspool_server::record::Record;
use logspool_server::value::Value;
use proptest::prelude::*;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params, params_from_iter};

const TABLE: &str = "CREATE TABLE records (place INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, arrived_ns INTEGER NOT NULL, level INTEGER NOT NULL,
    logger TEXT NOT NULL, message TEXT NOT NULL, file TEXT, line INTEGER, function TEXT, host TEXT, process INTEGER,
    process_name TEXT, thread INTEGER, thread_name TEXT, task TEXT, trace_id TEXT, span_id TEXT, exception TEXT,
    stack TEXT, fields TEXT)";

struct SqlParameter<'p>(&'p Parameter);

impl ToSql for SqlParameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Parameter::Int(number) => ValueRef::Integer(*number),
            Parameter::Float(number) => ValueRef::Real(*number),
            Parameter::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// A database with the records, numbered from 0.
fn stored(batch: &Batch) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    functions::register(&connection, &QueryDeadline::new(Duration::from_secs(600), &CancelToken::default())).unwrap();
    connection.execute_batch(TABLE).unwrap();
    for (place, row) in batch.rows().enumerate() {
        let Row { time_ns, arrived_ns, level, logger, message, file, line, function, host, process, .. } = row;
        let Row { process_name, thread, thread_name, task, trace_id, span_id, exception, stack, fields, .. } = row;
        let place = i64::try_from(place).unwrap();
        let (process, thread) = (process.map(|id| id as i64), thread.map(|id| id as i64));
        connection
            .execute(
                "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                    ?18, ?19, ?20)",
                params![
                    place, time_ns, arrived_ns, level, logger, message, file, line, function, host, process,
                    process_name, thread, thread_name, task, trace_id, span_id, exception, stack, fields
                ],
            )
            .unwrap();
    }
    connection
}

fn batch(records: &[Record<'_>]) -> Batch {
    let mut batch = Batch::default();
    for record in records {
        batch.push(record, Arrival { time_ns: record.arrived_ns.unwrap_or_default(), host: "" });
    }
    batch
}

/// Runs SQL whose rows have one column.
fn ask<T: rusqlite::types::FromSql>(connection: &Connection, sql: &Sql) -> Vec<T> {
    let mut statement = connection.prepare(sql.text()).unwrap_or_else(|error| panic!("{error}: {}", sql.text()));
    let parameters = params_from_iter(sql.parameters().iter().map(SqlParameter));
    statement.query_map(parameters, |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The indices of the records that match a filter.
fn found(connection: &Connection, filter: &Filter) -> Vec<usize> {
    let mut sql = Sql::new(Dialect::Sqlite);
    sql.push("SELECT place FROM records WHERE ").condition(filter).push(" ORDER BY place");
    ask::<i64>(connection, &sql).into_iter().map(|place| place as usize).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_sqlite_agree(
        records in prop::collection::vec(trees::record(), 1..24),
        filters in prop::collection::vec(trees::filter(), 1..8),
    ) {
        let batch = batch(&records);
        let connection = stored(&batch);
        for filter in filters {
            let matcher = Matcher::new(&filter);
            let rows = batch.rows().enumerate();
            let expected: Vec<_> = rows.filter(|(_, row)| matcher.matches_row(row)).map(|(place, _)| place).collect();

            prop_assert_eq!(&expected, &found(&connection, &filter), "{}", filter);
            let (since, until) = plan::time_range(&filter);
            for time in expected.iter().map(|place| batch.row(*place).unwrap().time_ns) {
                prop_assert!(since.is_none_or(|since| since <= time), "{}", filter);
                prop_assert!(until.is_none_or(|until| time < until), "{}", filter);
            }
            let rows = batch.rows().enumerate();
            let in_records: Vec<_> =
                rows.filter(|(_, row)| matcher.matches_record(&row.record())).map(|(place, _)| place).collect();
            prop_assert_eq!(expected, in_records, "{}", filter);
        }
    }
}

#[test]
fn examples_find_the_stated_records() {
    let records = [
        Record { message: "Disk full on /var".into(), level: 40, host: Some("web-1".into()), ..Record::default() },
        Record { message: "disk is full".into(), level: 30, thread: Some(u64::MAX), ..Record::default() },
        Record {
            message: "GET /".into(),
            level: 20,
            thread_name: Some("MainThread".into()),
            fields: vec![
                ("status".into(), Value::Int(503)),
                ("user.id".into(), Value::text("7")),
                ("ok".into(), Value::Bool(false)),
                ("a\"b".into(), Value::Null),
            ],
            ..Record::default()
        },
    ];
    let batch = batch(&records);
    let connection = stored(&batch);
    for (expected, text) in [
        (vec![0, 1, 2], ""),
        (vec![0, 1], "disk"),
        (vec![0], r#""disk full""#),
        (vec![0, 1], "level>=warning"),
        (vec![1, 2], "host!=web-1"),
        (vec![1, 2], "not host=web-1"),
        (vec![], "host<web-1"),
        (vec![2], "thread=MainThread"),
        (vec![1], "thread>5"),
        (vec![], "thread<5"),
        (vec![2], "status>=500"),
        (vec![2], "status=503.0"),
        (vec![], r#"status="503""#),
        (vec![2], "status~^5..$"),
        (vec![2], r#"user.id="7""#),
        (vec![], "user.id=7"),
        (vec![2], "ok=false"),
        (vec![0, 1], "ok!=false"),
        (vec![2], r#""a\"b"=null"#),
        (vec![0, 1, 2], "missing!=null"),
        (vec![0, 2], "full and not is or status=503"),
        (vec![0, 1, 2], "full or status=503 and not is"),
    ] {
        let filter = parse(text, 0).unwrap().filter;
        let matcher = Matcher::new(&filter);
        let rows = batch.rows().enumerate();

        assert_eq!(
            expected,
            rows.filter(|(_, row)| matcher.matches_row(row)).map(|(at, _)| at).collect::<Vec<_>>(),
            "{text}"
        );
        assert_eq!(expected, found(&connection, &filter), "{text}");
    }
}

#[test]
fn values_are_counted_as_text() {
    let with = |value: Value<'static>| Record { fields: vec![("k".into(), value)], ..Record::default() };
    let records = [
        Record { process: Some(u64::MAX), level: 40, ..with(Value::text("x\u{1}")) },
        Record { process: Some(7), ..with(Value::Float(1.5)) },
        with(Value::Bool(true)),
        with(Value::Null),
        with(Value::List(vec![Value::Int(1), Value::text("a")])),
        Record::default(),
    ];
    let connection = stored(&batch(&records));
    let values = |field: &Field| {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("SELECT ").value(field).push(" FROM records ORDER BY place");
        ask::<Option<String>>(&connection, &sql)
    };
    let texts = |texts: [&str; 6]| texts.map(|text| (text != "-").then(|| text.to_owned())).to_vec();

    assert_eq!(texts(["x\u{1}", "1.5", "true", "-", "[1,\"a\"]", "-"]), values(&Field::Extra("k".to_owned())));
    assert_eq!(texts(["18446744073709551615", "7", "-", "-", "-", "-"]), values(&Field::Process));
    assert_eq!(texts(["40", "0", "0", "0", "0", "0"]), values(&Field::Level));
    assert_eq!(texts(["-", "-", "-", "-", "-", "-"]), values(&Field::TraceId));
}

#[test]
fn intervals_begin_at_multiples_also_before_1970() {
    let at = |time_ns| Record { time_ns: Some(time_ns), ..Record::default() };
    let times = [0, 59, 60, -1, -60, -61, i64::MAX, i64::MIN];
    let connection = stored(&batch(&times.map(at)));
    let mut sql = Sql::new(Dialect::Sqlite);
    sql.push("SELECT ").interval(60).push(" FROM records ORDER BY place");

    assert_eq!(times.map(|time: i64| time.div_euclid(60)).to_vec(), ask::<i64>(&connection, &sql));
}

#[test]
fn the_largest_queries_are_accepted() {
    let connection = stored(&batch(&[Record { message: "a".into(), ..Record::default() }]));
    let wide = vec!["status=1"; 999].join(" or ") + " or a";
    let deep = "not (".repeat(32) + "a" + &")".repeat(32);
    let deep_and_wide = (0..62).fold("a".to_owned(), |inner, _| format!("({inner} {})", "a ".repeat(15)));
    for text in [wide, deep, deep_and_wide] {
        let filter = parse(&text, 0).unwrap().filter;
        assert_eq!(vec![0], found(&connection, &filter));
    }
}

#[test]
fn user_input_is_only_in_the_parameters() {
    let text = r#"host="';--" "a'b"="'" "';--x" message~"';--" '=1 "'">1.5 "'"!=true level>=40 thread<7"#;
    let filter = parse(text, 0).unwrap().filter;
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let mut sql = Sql::new(dialect);
        sql.condition(&filter);

        assert!(!sql.text().contains("--"), "{}", sql.text());
        assert!(sql.parameters().len() >= 10);
    }
}

#[test]
fn sql_for_postgres_uses_its_dialect() {
    for (expected, text) in [
        ("(level >= $1::int8)", "level>=30"),
        ("((host = $1::text) IS NOT TRUE)", "host!=a"),
        ("(host COLLATE \"C\" < $1::text)", "host<a"),
        ("(message ~* $1::text)", "\"disk full\""),
        ("(logger ~ $1::text)", "logger~^a"),
        ("((fields ->> $1::text) ~ $2::text)", "k~^a"),
        ("((fields -> $1::text)::text = 'true')", "k=true"),
        ("(jsonb_typeof((fields -> $1::text)) = 'string' AND (fields ->> $1::text) = $2::text)", "k=a"),
        (
            "(CASE WHEN jsonb_typeof((fields -> $1::text)) = 'number' \
                THEN (fields ->> $1::text)::numeric > $2::int8 \
                WHEN jsonb_typeof((fields -> $1::text)) = 'string' \
                THEN CASE WHEN (fields ->> $1::text) ~ '^-?[1-9][0-9]{18,37}$' \
                THEN (fields ->> $1::text)::numeric NOT BETWEEN -9223372036854775808 AND 9223372036854775807 \
                AND (fields ->> $1::text)::numeric > $2::int8 END END)",
            "k>1",
        ),
        ("((host = $1::text) OR ((level < $2::int8) IS NOT TRUE))", "not (host!=a level<30)"),
        ("(jsonb_typeof((fields -> $1::text)) <> 'null')", "k=*"),
        (
            "(EXISTS (SELECT FROM jsonb_path_query(CASE WHEN fields ? $1::text \
                THEN jsonb_build_array(fields -> $1::text) ELSE fields END, \
                (CASE WHEN fields ? $1::text THEN 'strict $[0]' ELSE $2::text END)::jsonpath) AS found (value) \
                WHERE jsonb_typeof(found.value) = 'string' AND (found.value #>> '{}') = $3::text))",
            "a.b[*].c=x",
        ),
    ] {
        let mut sql = Sql::new(Dialect::Postgres);
        sql.condition(&parse(text, 0).unwrap().filter);

        assert_eq!(expected, sql.text(), "{text}");
    }
    let mut sql = Sql::new(Dialect::Postgres);
    sql.condition(&parse("\"Disk full\"", 0).unwrap().filter);
    let pattern = "(^|[^[:alnum:]])disk[^[:alnum:]]+full([^[:alnum:]]|$)";
    assert_eq!([Parameter::Text(pattern.to_owned())], sql.parameters());
}

#[test]
fn conditions_that_must_hold_can_use_an_index() {
    let connection = stored(&Batch::default());
    connection.execute_batch("CREATE INDEX by_trace ON records(trace_id)").unwrap();
    for (expected, text) in [(true, "trace_id=t disk not host!=h"), (false, "trace_id!=t"), (false, "not trace_id=t")] {
        let mut sql = Sql::new(Dialect::Sqlite);
        sql.push("EXPLAIN QUERY PLAN SELECT place FROM records WHERE ").condition(&parse(text, 0).unwrap().filter);
        let mut statement = connection.prepare(sql.text()).unwrap();
        let parameters = params_from_iter(sql.parameters().iter().map(SqlParameter));
        let steps: Vec<String> =
            statement.query_map(parameters, |row| row.get(3)).unwrap().map(Result::unwrap).collect();

        assert_eq!(expected, steps.concat().contains("USING INDEX by_trace"), "{text}: {steps:?}");
    }
}
