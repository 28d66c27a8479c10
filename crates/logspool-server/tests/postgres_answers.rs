//! Compares answers of the PostgreSQL store with the same query on records in memory.

use crate::postgres;
use crate::trees;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use logspool_server::batch::{Batch, Row};
use logspool_server::query::{Field, Filter, Matcher, Query, Stage, parse};
use logspool_server::record::Record;
use logspool_server::stores::postgres::{PostgresConfig, PostgresReader};
use logspool_server::stores::{AnswerRow, QueryReader, RowFlow, Store};
use logspool_server::value::Value;
use postgres::batches::{all_records_query, config, now_ns, records, unnumbered, writer};
use postgres::{connect, database};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Letters that both treat alike. They differ in the case of rare letters, and in which characters belong to a word.
fn is_known(char: char) -> bool {
    char.is_ascii() || "üключ\u{301}".contains(char)
}

/// Filters that both read alike. PostgreSQL only knows ASCII digits.
fn is_common(filter: &Filter) -> bool {
    let text = filter.to_string();
    text.chars().all(is_known) && !text.contains(r"\d")
}

/// Gives each record a different stack. Removes values with a repeated key, of which PostgreSQL would keep the last.
fn told_apart(mut records: Vec<Record<'static>>) -> Vec<Record<'static>> {
    for (number, record) in records.iter_mut().enumerate() {
        record.stack = Some(number.to_string().into());
        record.message = record.message.chars().map(|char| if is_known(char) { char } else { '?' }).collect();
        keep_first_of_each_key(&mut record.fields);
    }
    records
}

fn keep_first_of_each_key(pairs: &mut Vec<(Cow<'static, str>, Value<'static>)>) {
    let mut keys = Vec::new();
    pairs.retain(|(key, _)| {
        let is_first = !keys.contains(key);
        keys.push(key.clone());
        is_first
    });
    pairs.iter_mut().for_each(|(_, value)| keep_first_inside(value));
}

fn keep_first_inside(value: &mut Value<'static>) {
    match value {
        Value::Map(pairs) => keep_first_of_each_key(pairs),
        Value::List(values) => values.iter_mut().for_each(keep_first_inside),
        _ => {}
    }
}

#[test]
fn a_repeated_key_has_its_last_value() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.maintain().unwrap();
    let twice = Value::Map(vec![("a".into(), Value::text("first")), ("a".into(), Value::text("last"))]);
    let record = Record { stack: Some("0".into()), fields: vec![("x".into(), twice)], ..Record::default() };
    store.write(&[unnumbered(&[record])]).unwrap();
    let reader = PostgresReader::new(&config(&database.url));
    let count =
        |query: &str| records(&reader, &Query { filter: parse(query, 0).unwrap().filter, ..all_records_query() }).len();

    assert_eq!((0, 1), (count("x~first"), count("x~last")));
}

fn query() -> impl Strategy<Value = Query> {
    let time = || option::weighted(0.3, -3..60_i64);
    let filter = trees::filter().prop_filter("common letters", is_common);
    (filter, time(), time(), option::of(0..8_u64)).prop_map(|(filter, since_ns, until_ns, limit)| Query {
        filter,
        stage: None,
        since_ns,
        until_ns,
        limit,
    })
}

fn wanted<'a>(batch: &'a Batch, query: &Query) -> Vec<Row<'a>> {
    let matcher = Matcher::new(&query.filter);
    let is_in_time = |row: &Row<'_>| {
        query.since_ns.is_none_or(|since| row.time_ns >= since)
            && query.until_ns.is_none_or(|until| row.time_ns < until)
    };
    batch.rows().filter(|row| is_in_time(row) && matcher.matches_row(row)).collect()
}

fn newest_first(batch: &Batch, query: &Query) -> Vec<String> {
    let mut rows = wanted(batch, query);
    rows.reverse();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
    rows.truncate(query.limit.map_or(usize::MAX, |limit| limit as usize));
    rows.iter().map(|row| row.stack.unwrap().to_owned()).collect()
}

#[test]
fn the_server_finds_the_same_records_as_the_matcher() {
    let Some(database) = database() else { return };
    let store = RefCell::new(writer(&database.url));
    let reader = PostgresReader::new(&config(&database.url));
    store.borrow_mut().maintain().unwrap();
    let cases = (vec(trees::record(), 1..24).prop_map(told_apart), vec(query(), 1..24));

    TestRunner::new(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })
        .run(&cases, |(sent, queries)| {
            database.execute("TRUNCATE logspool.records");
            let delivery = unnumbered(&sent);
            store.borrow_mut().write(std::slice::from_ref(&delivery)).unwrap();
            for query in queries {
                let found = records(&reader, &query);
                let found: Vec<_> = found.into_iter().map(|record| record.stack.unwrap()).collect();

                prop_assert_eq!(newest_first(&delivery.batch, &query), found, "{} {:?}", &query.filter, query);
            }
            Ok(())
        })
        .unwrap();
}

/// The aggregate rows of an answer.
fn rows(reader: &PostgresReader, query: &Query) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut each = |row: AnswerRow<'_>| {
        found.push(match row {
            AnswerRow::Record(record) => panic!("expected a number, found {record:?}"),
            AnswerRow::Count(value, count) => (value.unwrap_or("-").to_owned(), count),
            AnswerRow::Interval(begin, count) => (begin.to_string(), count),
            AnswerRow::Row(values) => panic!("expected a number, found {values:?}"),
        });
        RowFlow::Continue
    };
    reader.run(query, &mut each).unwrap();
    found
}

#[test]
fn records_are_counted_by_the_value_of_a_field() {
    let Some(database) = database() else { return };
    let with = |process, value: Value<'static>| Record {
        process,
        message: "ü\0".into(),
        fields: vec![("k\0".into(), value)],
        ..Record::default()
    };
    let sent = [
        with(Some(u64::MAX), Value::text("a\0")),
        with(Some(u64::MAX), Value::text("a\0")),
        with(Some(7), Value::Int(1)),
        with(None, Value::Null),
        Record::default(),
    ];
    writer(&database.url).write(&[unnumbered(&sent)]).unwrap();
    let reader = PostgresReader::new(&config(&database.url));
    let by = |field: Field, limit| Query { stage: Some(Stage::CountBy(field)), limit, ..all_records_query() };
    let counts = |counts: &[(&str, u64)]| counts.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect();

    let expected: Vec<_> = counts(&[("a\0", 2), ("-", 2), ("1", 1)]);
    let mut found = rows(&reader, &by(Field::Extra("k\0".to_owned()), None));
    found.sort_by_key(|(value, count)| (std::cmp::Reverse(*count), value == "-"));
    assert_eq!(expected, found);
    let largest: Vec<_> = counts(&[("18446744073709551615", 2)]);
    assert!(rows(&reader, &by(Field::Process, None)).contains(&largest[0]));
    assert_eq!(1, rows(&reader, &by(Field::Process, Some(1))).len());
    assert_eq!(counts(&[("ü\0", 4), ("", 1)]) as Vec<_>, rows(&reader, &by(Field::Message, None)));
    let some = Query { filter: parse("pid=7", 0).unwrap().filter, ..by(Field::Level, None) };
    assert_eq!(counts(&[("0", 1)]) as Vec<_>, rows(&reader, &some));
}

#[test]
fn records_are_counted_by_intervals_also_before_1970() {
    let Some(database) = database() else { return };
    let times = [i64::MIN, -61, -60, -1, 0, 59, 60, i64::MAX];
    let sent = times.map(|time| Record { time_ns: Some(time), ..Record::default() });
    writer(&database.url).write(&[unnumbered(&sent)]).unwrap();
    let reader = PostgresReader::new(&config(&database.url));
    let histogram = |interval_ns| Query { stage: Some(Stage::Histogram { interval_ns }), ..all_records_query() };
    let mut expected = BTreeMap::new();
    for time in times {
        *expected.entry(time.div_euclid(60).saturating_mul(60)).or_insert(0) += 1;
    }

    let expected: Vec<_> = expected.into_iter().map(|(begin, count)| (begin.to_string(), count)).collect();
    assert_eq!(expected, rows(&reader, &histogram(60)));
    assert!(reader.run(&histogram(0), &mut |_| RowFlow::Continue).is_err());
}

#[test]
fn words_of_all_languages_are_separated() {
    let Some(database) = database() else { return };
    let message = |text: &'static str| Record { message: text.into(), ..Record::default() };
    let sent = [message("GRÖSSE überlauf"), message("größe ÜBERLAUF"), message("überlauf"), message("лог-файл")];
    writer(&database.url).write(&[unnumbered(&sent)]).unwrap();
    let reader = PostgresReader::new(&config(&database.url));
    let count = |text: &str| {
        let query = Query { filter: parse(text, 0).unwrap().filter, ..all_records_query() };
        records(&reader, &query).len()
    };

    assert_eq!(3, count("überlauf"));
    assert_eq!(0, count("berlauf"));
    assert_eq!(1, count("\"größe überlauf\""));
    assert_eq!(1, count("ФАЙЛ"));
}

#[test]
fn an_answer_ends_at_its_limit() {
    let Some(database) = database() else { return };
    let now = now_ns();
    let sent: Vec<_> = (0..500).map(|age| Record { time_ns: Some(now - age), ..Record::default() }).collect();
    writer(&database.url).write(&[unnumbered(&sent)]).unwrap();
    let reader = PostgresReader::new(&config(&database.url));
    let mut found = 0;

    let mut each = |_: AnswerRow<'_>| {
        found += 1;
        if found == 3 { RowFlow::Stop } else { RowFlow::Continue }
    };
    reader.run(&all_records_query(), &mut each).unwrap();

    assert_eq!(3, found);
    // The next query does not get the rest of this answer.
    assert_eq!(500, records(&reader, &all_records_query()).len());
}

#[test]
fn a_query_that_takes_too_long_is_ended() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    let (runtime, holder) = connect(&database.url).unwrap();
    runtime.block_on(holder.batch_execute("BEGIN; LOCK TABLE logspool.records IN ACCESS EXCLUSIVE MODE")).unwrap();
    let reader =
        PostgresReader::new(&PostgresConfig { query_timeout: Duration::from_millis(500), ..config(&database.url) });

    let error = reader.run(&all_records_query(), &mut |_| RowFlow::Continue).unwrap_err().to_string();

    assert!(error.contains("no answer within 500ms: use a shorter time range"), "{error}");
    runtime.block_on(holder.batch_execute("COMMIT")).unwrap();
    assert!(records(&reader, &all_records_query()).is_empty());
}

#[test]
fn a_reader_can_be_dropped_inside_async_code() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    let reader = PostgresReader::new(&config(&database.url));
    assert!(records(&reader, &all_records_query()).is_empty());

    tokio::runtime::Runtime::new().unwrap().block_on(async { drop(reader) });
}
