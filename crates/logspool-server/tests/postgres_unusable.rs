//! A database that is unusable until a person acts. The error says how to fix it, and the database is used after that.

use crate::postgres;

use std::thread;
use std::time::{Duration, Instant};

use logspool_server::stores::postgres::{PostgresReader, PostgresWriter};
use logspool_server::stores::{QueryReader, RowFlow, Store, StoreError};
use postgres::batches::{all_records_query, chunk, config, writer};
use postgres::{DEADLINE, database};

/// The result of a check of the store. Waits while the store pauses between attempts.
fn checked(store: &mut PostgresWriter) -> Result<(), StoreError> {
    let until = Instant::now() + DEADLINE;
    loop {
        if let Some(answered) = store.check() {
            return answered;
        }
        assert!(Instant::now() < until, "it is not asked");
        thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn assert_fatal<T: std::fmt::Debug>(result: Result<T, StoreError>, parts: &[&str]) {
    match result {
        Err(StoreError::Fatal(why)) => assert!(parts.iter().all(|part| why.contains(part)), "{why}"),
        other => panic!("not fatal: {other:?}"),
    }
}

#[test]
fn tables_that_were_dropped_or_changed_are_named_and_used_again_when_they_are_restored() {
    for (change, restore, named) in [
        (
            "ALTER TABLE logspool.records RENAME TO away",
            "ALTER TABLE logspool.away RENAME TO records",
            "the table logspool.records does not exist",
        ),
        (
            "ALTER TABLE logspool.streams RENAME TO away",
            "ALTER TABLE logspool.away RENAME TO streams",
            "the table logspool.streams does not exist",
        ),
        (
            "ALTER TABLE logspool.quarantine RENAME TO away",
            "ALTER TABLE logspool.away RENAME TO quarantine",
            "the table logspool.quarantine does not exist",
        ),
        (
            "ALTER TABLE logspool.records RENAME host TO away",
            "ALTER TABLE logspool.records RENAME away TO host",
            "logspool.records has no column host",
        ),
        (
            "ALTER TABLE logspool.records ALTER level TYPE text",
            "ALTER TABLE logspool.records ALTER level TYPE integer USING level::integer",
            "the column level of logspool.records is text instead of integer",
        ),
        (
            "ALTER TABLE logspool.streams ADD customer text NOT NULL",
            "ALTER TABLE logspool.streams DROP customer",
            "the column customer of logspool.streams is NOT NULL and has no default",
        ),
    ] {
        let Some(database) = database() else { return };
        writer(&database.url).write(&[chunk("s", 1, 1, 2)]).unwrap();
        if change.contains("customer") {
            database.execute("TRUNCATE logspool.streams");
        }
        database.execute(change);
        let mut store = PostgresWriter::new(&config(&database.url));

        assert_fatal(checked(&mut store), &[named, "DROP SCHEMA logspool CASCADE"]);
        assert_fatal(store.write(&[chunk("t", 1, 1, 2)]), &[named, "cannot write to postgres://"]);
        database.execute(restore);
        assert_eq!(2, store.write(&[chunk("t", 1, 1, 2)]).unwrap().stored, "{change}");
        checked(&mut store).unwrap();
    }
}

#[test]
fn added_columns_with_a_default_cause_no_error() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.write(&[chunk("s", 1, 1, 2)]).unwrap();
    database.execute("ALTER TABLE logspool.records ADD customer text, ADD place text NOT NULL DEFAULT 'here'");

    assert_eq!(2, writer(&database.url).write(&[chunk("s", 1, 3, 4)]).unwrap().stored);
}

#[test]
fn a_type_that_changes_while_the_service_writes_sends_no_record_to_quarantine() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.write(&[chunk("s", 1, 1, 2)]).unwrap();
    database.execute("ALTER TABLE logspool.records ALTER level TYPE text");

    assert_fatal(store.write(&[chunk("s", 1, 3, 4)]), &["the column level of logspool.records is text"]);
    database.execute("ALTER TABLE logspool.records ALTER level TYPE integer USING level::integer");
    assert_eq!(2, store.write(&[chunk("s", 1, 3, 4)]).unwrap().stored);
    assert_eq!(0, database.number("SELECT count(*) FROM logspool.quarantine"));
}

#[test]
fn a_newer_version_a_missing_database_and_a_missing_permission_are_named_with_a_fix() {
    let Some(database) = database() else { return };
    writer(&database.url).write(&[chunk("s", 1, 1, 2)]).unwrap();
    database.execute("UPDATE logspool.version SET version = 99");
    assert_fatal(checked(&mut writer(&database.url)), &["version 99", "use a newer logspool"]);
    database.execute("UPDATE logspool.version SET version = 1");

    let missing = database.url.replace(&database.name, "nowhere");
    assert_fatal(checked(&mut writer(&missing)), &["nowhere", "CREATE DATABASE"]);

    database.execute(&format!("CREATE ROLE reader_of_{} LOGIN", database.name));
    let reader = database.url.replace("logspool@", &format!("reader_of_{}@", database.name));
    assert_fatal(checked(&mut writer(&reader)), &["permission denied", "grant this permission"]);
}

#[test]
fn a_query_of_dropped_tables_fails_with_a_fix() {
    let Some(database) = database() else { return };
    writer(&database.url).write(&[chunk("s", 1, 1, 2)]).unwrap();
    database.execute("DROP TABLE logspool.records CASCADE");

    let answered = PostgresReader::new(&config(&database.url)).run(&all_records_query(), &mut |_| RowFlow::Continue);
    assert_fatal(answered, &["\"logspool.records\" does not exist", "DROP SCHEMA logspool CASCADE"]);
    database.execute("DROP SCHEMA logspool CASCADE");
    assert_eq!(2, writer(&database.url).write(&[chunk("s", 1, 1, 2)]).unwrap().stored);
}
