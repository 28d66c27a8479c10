//! A file that cannot be used is reported with a way to fix it. All other files stay usable.

use crate::sqlite_support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use logspool_server::query::Query;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteReader, SqliteStore};
use logspool_server::stores::{AnswerRow, QueryReader, RowFlow, Store, StoreError};
use rusqlite::Connection;
use sqlite_support::{
    DAY, ManualClock, TODAY, ask, chunk, close, indexed, messages, numbered, open, open_with, query, said, stored,
    until, write,
};

/// A store with one record on each of three days. The last one is today, 2026-11-24.
fn three_days(folder: &Path) -> ManualClock {
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder, &hand);
    for day in 0..3 {
        hand.set(TODAY + day * DAY);
        write(&mut store, &[said(TODAY + day * DAY, &format!("day {day}"))]);
        store.maintain().unwrap();
    }
    close(store);
    hand
}

fn problems(store: &SqliteStore) -> String {
    store.problems().join("\n")
}

/// A query for the records from a day on.
fn since(day: i64) -> Query {
    Query { since_ns: Some(TODAY + day * DAY), ..query("") }
}

/// Overwrites a part of a file.
fn damage_bytes(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0xff; 512], at).unwrap();
}

/// A way to damage a file.
type Damage<'d> = &'d dyn Fn(&Path);

#[test]
fn a_day_that_cannot_be_used_is_named_and_the_others_are_read_and_written() {
    let damages: [(&str, &str, Damage<'_>); 6] = [
        ("empty", "it is empty", &|path| fs::write(path, "").unwrap()),
        ("text", "file is not a database", &|path| fs::write(path, "this is a text".repeat(99)).unwrap()),
        ("cut", "it is truncated", &|path| {
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(8192).unwrap();
        }),
        ("foreign", "another program", &|path| {
            fs::remove_file(path).unwrap();
            Connection::open(path).unwrap().execute_batch("CREATE TABLE records(id)").unwrap();
        }),
        ("newer", "use a newer logspool", &|path| {
            Connection::open(path).unwrap().pragma_update(None, "user_version", 4).unwrap();
        }),
        ("short", "not a database", &|path| fs::write(path, "short").unwrap()),
    ];
    for (what, said_of_it, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        let hand = three_days(folder.path());
        let path = folder.path().join("2026-11-23.sqlite");
        let whole = fs::read(&path).unwrap();
        damage(&path);
        let damaged = fs::read(&path).unwrap();

        let mut store = open(folder.path(), &hand);
        write(&mut store, &[said(TODAY + 2 * DAY + 1, "more")]);
        let told = problems(&store);
        assert!(told.contains("2026-11-23.sqlite") && told.contains(said_of_it), "{what}: {told}");
        store.maintain().unwrap();
        let answers = store.reader();

        // Queries that do not need the file get an answer. Others get the rows of the other files, and then an error
        // that names it.
        let rows = ask(&answers, &since(2)).unwrap();
        assert_eq!(2, rows.len(), "{what}");
        let until_then = Query { until_ns: Some(TODAY + DAY), ..query("") };
        assert_eq!(1, ask(&answers, &until_then).unwrap().len(), "{what}");
        let error = ask(&answers, &query("")).unwrap_err().to_string();
        assert!(error.contains("2026-11-23.sqlite"), "{what}: {error}");
        let mut others = Vec::new();
        let read = answers.run(&query(""), &mut |found| {
            if let AnswerRow::Record(record) = found {
                others.push(record.message.into_owned());
            }
            RowFlow::Continue
        });
        assert!(read.is_err() && others == ["more", "day 2", "day 0"], "{what}: {others:?}");
        assert!(damaged == fs::read(&path).unwrap(), "{what}: it was written to");

        // A restored file is read again. A file that was moved away does not stop the store.
        fs::write(&path, &whole).unwrap();
        store.maintain().unwrap();
        assert_eq!("", problems(&store), "{what}");
        assert_eq!(["more", "day 2", "day 1", "day 0"], messages(&answers, "").as_slice(), "{what}");
        damage(&path);
        drop(store);
        let mut store = open(folder.path(), &hand);
        fs::rename(&path, folder.path().join("away")).unwrap();
        store.maintain().unwrap();
        assert_eq!("", problems(&store), "{what}");
        assert_eq!(["more", "day 2", "day 0"], messages(&store.reader(), "").as_slice(), "{what}");
    }
}

#[test]
fn the_file_of_today_that_lost_its_content_gets_a_successor_and_is_not_removed() {
    for content in ["", "this is a text of somebody, and long enough to be looked at"] {
        let folder = tempfile::tempdir().unwrap();
        let hand = three_days(folder.path());
        let path = folder.path().join("2026-11-24.sqlite");
        fs::write(&path, content).unwrap();

        let mut store = open(folder.path(), &hand);
        let told = problems(&store);
        assert!(told.contains("2026-11-24.sqlite") && told.contains("move it away"), "{told}");
        hand.set(TODAY + 2 * DAY + 5);
        write(&mut store, &[said(TODAY + 2 * DAY + 9, "more")]);
        assert_eq!(content, fs::read_to_string(&path).unwrap());
        assert!(folder.path().join("2026-11-24.2.sqlite").exists());
        assert!(ask(&store.reader(), &since(2)).unwrap_err().to_string().contains("2026-11-24.sqlite"));
        let later = Query { since_ns: Some(TODAY + 2 * DAY + 6), ..query("") };
        assert_eq!(1, ask(&store.reader(), &later).unwrap().len());
        close(store);

        // After a restart the problem is still reported, and the file is kept.
        let store = open(folder.path(), &hand);
        assert!(problems(&store).contains("2026-11-24.sqlite"));
        assert!(folder.path().join("2026-11-24.sqlite").exists());
    }
}

#[test]
fn a_foreign_file_in_the_folder_is_reported_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("2026-11-22.sqlite");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE records(id)").unwrap();
    let before = fs::read(&path).unwrap();

    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    write(&mut store, &[said(1, "a")]);
    assert!(problems(&store).contains("2026-11-22.sqlite: it belongs to another program"));
    assert_eq!(["a"], messages(&store.reader(), "").as_slice());
    assert!(before == fs::read(&path).unwrap());
}

#[test]
fn dropped_tables_are_named_and_new_records_go_to_a_new_file() {
    for table in ["records", "rollup", "streams", "file_state"] {
        let folder = tempfile::tempdir().unwrap();
        let hand = ManualClock::at(TODAY);
        let mut store = open(folder.path(), &hand);
        store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap();
        let other = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
        other.execute_batch(&format!("DROP TABLE {table}")).unwrap();
        drop(other);

        let again = [numbered(chunk("s", 1, 1, 5)), numbered(chunk("t", 1, 1, 2))];
        let failed = store.write(&again).unwrap_err();
        assert!(matches!(&failed, StoreError::Retry(why) if why.contains("no such table")), "{failed:?}");
        let done = store.write(&again).unwrap();
        assert_eq!(2 + if table == "streams" { 5 } else { 2 }, done.stored, "{table}");
        store.maintain().unwrap();
        let told = problems(&store);
        assert!(told.contains("2026-11-22.sqlite") && told.contains("no such table"), "{table}: {told}");
        close(store);
        // The next start reports the table too.
        let store = open(folder.path(), &hand);
        assert!(problems(&store).contains("2026-11-22.sqlite"), "{table}: {}", problems(&store));
        close(store);
    }
}

#[test]
fn a_file_moved_away_while_it_is_written_gets_a_successor() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap();
    let path = folder.path().join("2026-11-22.sqlite");
    fs::rename(&path, folder.path().join("away")).unwrap();

    let done = store.write(&[numbered(chunk("s", 1, 1, 5))]).unwrap();
    assert_eq!((2, 3), (done.stored, done.repeated));
    store.maintain().unwrap();
    assert_eq!(["s 4", "s 5"], stored(&store).as_slice());
    close(store);
    assert_eq!(["s 4", "s 5"], stored(&open(folder.path(), &ManualClock::at(TODAY))).as_slice());
}

#[test]
fn damaged_pages_are_named_by_the_query_the_index_and_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    let many: Vec<_> = (0..2_000).map(|number| said(TODAY + number, &format!("record {number}"))).collect();
    write(&mut store, &many);
    hand.set(TODAY + DAY);
    write(&mut store, &[said(TODAY + DAY, "next")]);
    store.maintain().unwrap();
    close(store);
    let path = folder.path().join("2026-11-22.sqlite");
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(11).position(|window| window == b"record 1000").unwrap();
    damage_bytes(&path, (at / 4096 * 4096) as u64);

    for indexing in [Indexing::Off, Indexing::Background] {
        let store = open_with(folder.path(), &hand, indexing);
        let answers = store.reader();
        if indexing == Indexing::Off {
            assert_eq!("", problems(&store));
            for text in ["", "| count by host", "not nothing | histogram 7s", "| last by host"] {
                let mut rows = 0;
                let error = answers.run(&query(text), &mut |_| {
                    rows += 1;
                    RowFlow::Continue
                });
                let named = matches!(&error, Err(StoreError::Fatal(why)) if why.contains("2026-11-22.sqlite"));
                assert!(named && rows > 0, "{text}: {rows} {error:?}");
                // The counts are those of the whole files.
                assert!(text.is_empty() || rows == 1, "{text}: {rows}");
            }
        }
        until("the damage is known", || !store.problems().is_empty());
        let told = problems(&store);
        assert!(told.contains("2026-11-22.sqlite: database disk image is malformed") && told.contains(".recover"));
        assert_eq!(1, ask(&answers, &since(1)).unwrap().len());
        close(store);
    }
}

#[test]
fn a_damaged_index_does_not_count_as_damage_of_its_day() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open_with(folder.path(), &hand, Indexing::Background);
    let many: Vec<_> = (0..5_000).map(|number| said(number, "x")).collect();
    write(&mut store, &many);
    indexed(&store.reader());
    hand.set(TODAY + DAY);
    store.maintain().unwrap();
    let path = folder.path().join("2026-11-22.index");
    until("the index stands alone", || {
        store.maintain().unwrap();
        !folder.path().join("2026-11-22.index-wal").exists()
    });
    let bytes = fs::read(&path).unwrap();
    // A leaf page with loggers, which is read late in the answer.
    let has_loggers = |page: &[u8]| page[0] == 10 && page.windows(4).filter(|part| part == b"shop").count() > 50;
    let leaves: Vec<_> = bytes.chunks(4096).enumerate().filter(|(_, page)| has_loggers(page)).collect();
    damage_bytes(&path, leaves[leaves.len() / 2].0 as u64 * 4096);

    let error = ask(&store.reader(), &query("logger=shop")).map(|rows| rows.len()).unwrap_err();
    assert!(matches!(&error, StoreError::Retry(why) if why.contains("2026-11-22.index: ")), "{error:?}");
    assert_eq!("", problems(&store));
}

/// A folder after a kill, with this number of transactions of one record in the log.
fn folder_after_kill(folder: &Path, transactions: i64) -> std::path::PathBuf {
    let original = tempfile::tempdir().unwrap();
    let mut store = open(original.path(), &ManualClock::at(TODAY));
    for number in 0..transactions {
        write(&mut store, &[said(number, &format!("record {number}"))]);
    }
    for name in ["catalog.sqlite", "2026-11-22.sqlite", "2026-11-22.sqlite-wal"] {
        fs::copy(original.path().join(name), folder.join(name)).unwrap();
    }
    folder.join("2026-11-22.sqlite-wal")
}

#[test]
fn transactions_lost_in_a_damaged_log_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder_after_kill(folder.path(), 40);
    damage_bytes(&log, fs::metadata(&log).unwrap().len() / 2);

    // A query does not change the log that the service checks.
    let before = fs::read(&log).unwrap();
    let read = messages(&SqliteReader::open(folder.path()).unwrap(), "").len();
    assert!((1..40).contains(&read));
    assert!(before == fs::read(&log).unwrap());
    let store = open(folder.path(), &ManualClock::at(TODAY));
    let told = problems(&store);
    let lost =
        told.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse::<usize>().unwrap();
    assert!(told.contains("2026-11-22.sqlite-wal is damaged"), "{told}");
    assert!(lost <= 40 - read && lost + 2 >= 40 - read, "{lost} of {} lost ones are told", 40 - read);
    close(store);
    assert_eq!("", problems(&open(folder.path(), &ManualClock::at(TODAY))));
}

#[test]
fn records_in_an_index_that_are_missing_in_its_file_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_with(folder.path(), &ManualClock::at(TODAY), Indexing::Background);
    let path = folder.path().join("2026-11-22.sqlite");
    let before = tempfile::tempdir().unwrap();
    let copy = before.path().join("copy");
    close(store);
    fs::copy(&path, &copy).unwrap();
    let mut store = open_with(folder.path(), &ManualClock::at(TODAY), Indexing::Background);
    write(&mut store, &[said(1, "a"), said(2, "b")]);
    indexed(&store.reader());
    close(store);
    // As if the log with both records had never existed.
    fs::copy(&copy, &path).unwrap();

    let store = open_with(folder.path(), &ManualClock::at(TODAY), Indexing::Background);
    until("the loss is told", || problems(&store).contains("2026-11-22.sqlite has lost the last 2 records"));
}

#[test]
fn a_log_with_a_damaged_header_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder_after_kill(folder.path(), 20);
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.write_all_at(&[0xff; 4], 24).unwrap();

    let told = problems(&open(folder.path(), &ManualClock::at(TODAY)));
    assert!(told.contains("2026-11-22.sqlite-wal is damaged"), "{told}");
}

#[test]
fn an_unfinished_transaction_after_a_kill_is_not_a_loss() {
    for cut in [0, 1, 100, 4_000, 4_120, 9_000] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder_after_kill(folder.path(), 20);
        let bytes = fs::metadata(&log).unwrap().len();
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(bytes - cut).unwrap();

        let store = open(folder.path(), &ManualClock::at(TODAY));
        assert_eq!("", problems(&store), "{cut}");
        assert!(stored(&store).len() >= 17, "{cut}");
    }
    // An unfinished transaction, over frames of an earlier round.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("2026-11-22.sqlite");
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let many: Vec<_> = (0..500).map(|number| said(number, "before")).collect();
    write(&mut store, &many);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA wal_checkpoint(RESTART); PRAGMA cache_size = 1; PRAGMA cache_spill = 1").unwrap();
    write(&mut store, &[said(501, "after")]);
    other.execute_batch("BEGIN IMMEDIATE; UPDATE records SET message = hex(randomblob(200))").unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["catalog.sqlite", "2026-11-22.sqlite", "2026-11-22.sqlite-wal"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }

    let store = open(copy.path(), &ManualClock::at(TODAY));
    assert_eq!("", problems(&store));
    assert_eq!(501, stored(&store).len());
    assert!(SqliteStore::open(copy.path(), SqliteOptions::default()).is_err());
}
