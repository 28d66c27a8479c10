//! Folders that an earlier version has written are read, and get new records.

use crate::sqlite_support;

use std::path::Path;

use logspool_server::query::Query;
use logspool_server::stores::sqlite::SqliteReader;
use logspool_server::stores::{GapCounts, Store};
use rusqlite::Connection;
use sqlite_support::{
    DAY, HOUR, ManualClock, Row, SECOND, TODAY, ask, chunk, close, indexed, messages, numbered, open, open_with, query,
    records, said,
};

/// A day file as the version before the time of arrival made it, except its records and its state.
const VERSION_1: &str = "
    CREATE TABLE records(id INTEGER PRIMARY KEY, time_ns INTEGER, level INTEGER, logger TEXT, message TEXT,
        file TEXT, line INTEGER, function TEXT, host TEXT, process INTEGER, process_name TEXT,
        thread INTEGER, thread_name TEXT, task TEXT, trace_id TEXT, span_id TEXT, exception TEXT,
        stack TEXT, fields TEXT);
    CREATE INDEX records_by_time ON records(time_ns);
    CREATE TABLE rollup(minute INTEGER, logger TEXT, level INTEGER, count INTEGER,
        PRIMARY KEY(minute, logger, level)) WITHOUT ROWID;
    CREATE TABLE streams(stream TEXT PRIMARY KEY, epoch INTEGER, last INTEGER, seen_ns INTEGER) WITHOUT ROWID;
    CREATE TABLE quarantine(id INTEGER PRIMARY KEY, received_ns INTEGER, reason TEXT, record TEXT);
    CREATE TABLE file_state(one INTEGER PRIMARY KEY CHECK(one = 1), identity INTEGER, sequence INTEGER,
        ready INTEGER, sealed INTEGER, min_time_ns INTEGER, max_time_ns INTEGER, rows INTEGER);
    PRAGMA application_id = 0x6c734431;
    PRAGMA user_version = 1;
    PRAGMA journal_mode = WAL;";

const CATALOG: &str = "
    CREATE TABLE files(sequence INTEGER PRIMARY KEY, name TEXT UNIQUE, sealed INTEGER,
        min_time_ns INTEGER, max_time_ns INTEGER, rows INTEGER);
    PRAGMA application_id = 0x6c734331;
    PRAGMA user_version = 1;";

/// The change of version 2: the time of arrival.
const VERSION_2: &str = "ALTER TABLE records ADD COLUMN arrived_ns INTEGER; PRAGMA user_version = 2;";

/// A sealed file of yesterday and an open one of today, 2026-11-22, with two records each.
fn folder_of_version(number: i64, folder: &Path) {
    let catalog = Connection::open(folder.join("catalog.sqlite")).unwrap();
    catalog.execute_batch(CATALOG).unwrap();
    for (sequence, name, day, sealed) in
        [(1, "2026-11-21.sqlite", TODAY - DAY, true), (2, "2026-11-22.sqlite", TODAY, false)]
    {
        let file = Connection::open(folder.join(name)).unwrap();
        file.execute_batch(VERSION_1).unwrap();
        if number == 2 {
            file.execute_batch(VERSION_2).unwrap();
        }
        for number in 1..=2 {
            file.execute(
                "INSERT INTO records(time_ns, level, logger, message, host, trace_id) VALUES(?, 20, 'shop', ?, 'old', ?)",
                (day + number * SECOND, format!("old {sequence} {number}"), format!("t{number}")),
            )
            .unwrap();
        }
        file.execute("INSERT INTO rollup VALUES(?, 'shop', 20, 2)", [day / 60 / SECOND]).unwrap();
        file.execute("INSERT INTO streams VALUES('s', 1, 3, ?)", [day]).unwrap();
        file.execute(
            "INSERT INTO file_state VALUES(1, 7, ?, 1, ?, ?, ?, 2)",
            (sequence, sealed, day + SECOND, day + 2 * SECOND),
        )
        .unwrap();
        let (oldest, newest, rows) =
            if sealed { (Some(day + SECOND), Some(day + 2 * SECOND), 2) } else { (None, None, 0) };
        catalog
            .execute("INSERT INTO files VALUES(?, ?, ?, ?, ?, ?)", (sequence, name, sealed, oldest, newest, rows))
            .unwrap();
    }
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_one("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

const OLD: [&str; 4] = ["old 2 2", "old 2 1", "old 1 2", "old 1 1"];

#[test]
fn a_folder_of_an_earlier_version_is_read_without_a_change() {
    for number in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        folder_of_version(number, folder.path());
        let reader = SqliteReader::open(folder.path()).unwrap();

        assert_eq!(OLD.as_slice(), messages(&reader, ""));
        let part = records(&reader, &Query { until_ns: Some(TODAY + 2 * SECOND), limit: Some(2), ..query("") });
        assert_eq!(OLD[1..3], part.iter().map(|record| &*record.message).collect::<Vec<_>>());
        assert!(records(&reader, &query("")).iter().all(|record| record.arrived_ns.is_none()));
        assert_eq!(0, records(&reader, &query("arrived>1970-01-01 or arrived<now or arrival_delay>=0s")).len());
        assert_eq!(4, records(&reader, &query("not arrived>1970-01-01")).len());
        assert_eq!(vec![Row::Count(Some("shop".to_owned()), 4)], ask(&reader, &query("| count by logger")).unwrap());
        assert_eq!(vec![Row::Count(None, 4)], ask(&reader, &query("| count by arrived")).unwrap());
        assert_eq!(OLD[..1], messages(&reader, "| last by host"));
        for name in ["2026-11-21.sqlite", "2026-11-22.sqlite"] {
            assert_eq!(number, version(&folder.path().join(name)), "{name}");
        }
    }
}

#[test]
fn a_folder_of_an_earlier_version_gets_new_records_gaps_and_an_index() {
    use logspool_server::stores::sqlite::Indexing;
    for number in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        folder_of_version(number, folder.path());
        let clock = ManualClock::at(TODAY + HOUR);
        let mut store = open_with(folder.path(), &clock, Indexing::Background);
        assert_eq!(Vec::<String>::new(), store.problems());

        let written = store.write(&[numbered(chunk("s", 1, 3, 4))]).unwrap();
        assert_eq!((1, 1), (written.stored, written.repeated));
        store.write(&[numbered(chunk("s", 1, 6, 6))]).unwrap();
        assert_eq!(Some(GapCounts { open: 1, expired: 0 }), store.gap_counts());
        store.write(&[numbered(chunk("s", 1, 5, 6))]).unwrap();
        sqlite_support::write(&mut store, &[said(TODAY + HOUR, "new")]);
        let reader = store.reader();
        indexed(&reader);
        let all = [&["new"][..], &OLD[..2], &["s 5", "s 6", "s 4"], &OLD[2..]].concat();
        assert_eq!(all, messages(&reader, ""));
        assert_eq!(["new", "s 5", "s 6", "s 4"], messages(&reader, "arrived>=2026-11-22").as_slice());
        assert_eq!(["old 2 1", "old 1 1"], messages(&reader, "trace_id=t1 old").as_slice());
        assert_eq!(3, version(&folder.path().join("2026-11-22.sqlite")));
        assert_eq!(number, version(&folder.path().join("2026-11-21.sqlite")));
        drop(reader);
        close(store);

        assert_eq!(all, messages(&open(folder.path(), &clock).reader(), ""));
    }
}

#[test]
fn the_marks_of_an_earlier_version_are_taken_into_a_new_file() {
    for number in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        folder_of_version(number, folder.path());
        // The newest file is lost, so the marks are those of the sealed file of yesterday.
        std::fs::write(folder.path().join("2026-11-22.sqlite"), "damaged").unwrap();
        let mut store = open(folder.path(), &ManualClock::at(TODAY + HOUR));

        let written = store.write(&[numbered(chunk("s", 1, 2, 4))]).unwrap();

        assert_eq!((1, 2), (written.stored, written.repeated), "{number}");
    }
}
