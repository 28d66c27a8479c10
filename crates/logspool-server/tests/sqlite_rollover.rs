//! A new day's file takes over all state of the streams, also if the process is killed between the steps.

use crate::sqlite_support;

use std::fs;
use std::path::Path;

use logspool_server::delivery::{Chunk, Outcome};
use logspool_server::stores::sqlite::{SqliteOptions, SqliteStore};
use logspool_server::stores::{GapCounts, Store, StoreError};
use rusqlite::Connection;
use sqlite_support::{
    DAY, HOUR, ManualClock, TODAY, ask, chunk, close, delivery, messages, numbered, open, query, said, stored, until,
    write,
};

fn days(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("20") && name.ends_with(".sqlite")).collect();
    names.sort();
    names
}

fn change(folder: &Path, name: &str, sql: &str) {
    Connection::open(folder.join(name)).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn the_day_changes_between_two_transactions_and_streams_continue() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY + DAY - 1);
    let mut store = open(folder.path(), &hand);
    store.write(&[numbered(chunk("s", 1, 1, 10))]).unwrap();
    hand.set(TODAY + DAY);

    let done = store.write(&[numbered(chunk("s", 1, 6, 15)), numbered(chunk("s", 1, 17, 18))]).unwrap();

    assert_eq!((vec![Outcome::Committed; 2], 7, 5), (done.outcomes, done.stored, done.repeated));
    assert_eq!(["2026-11-22.sqlite", "2026-11-23.sqlite"], days(folder.path()).as_slice());
    assert_eq!(17, stored(&store).len());
}

#[test]
fn a_sealed_file_needs_no_log_and_is_never_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    write(&mut store, &[said(TODAY, "a")]);
    hand.set(TODAY + DAY);
    store.maintain().unwrap();
    let path = folder.path().join("2026-11-22.sqlite");
    let sealed = fs::read(&path).unwrap();
    assert!(!folder.path().join("2026-11-22.sqlite-wal").exists());

    write(&mut store, &[said(TODAY, "b")]);
    store.maintain().unwrap();
    assert_eq!(["b", "a"], messages(&store.reader(), "").as_slice());
    close(store);
    close(open(folder.path(), &hand));

    assert!(sealed == fs::read(&path).unwrap());
}

#[test]
fn a_file_that_is_read_while_the_day_changes_is_sealed_later() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    write(&mut store, &[said(TODAY, "a")]);
    let reader = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM records").unwrap();
    hand.set(TODAY + DAY);

    store.maintain().unwrap();
    write(&mut store, &[said(TODAY, "b")]);
    assert_eq!(["b", "a"], messages(&store.reader(), "").as_slice());
    drop(reader);
    store.maintain().unwrap();

    assert!(!folder.path().join("2026-11-22.sqlite-wal").exists());
}

#[test]
fn a_clock_set_back_by_hours_changes_nothing_and_by_days_starts_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    write(&mut store, &[said(1, "a")]);
    hand.set(TODAY + 2 * DAY);
    write(&mut store, &[said(2, "b")]);
    hand.set(TODAY + 2 * DAY - HOUR);
    write(&mut store, &[said(3, "c")]);
    assert_eq!(["2026-11-22.sqlite", "2026-11-24.sqlite"], days(folder.path()).as_slice());

    hand.set(TODAY);
    write(&mut store, &[said(4, "d")]);
    close(store);
    let mut store = open(folder.path(), &hand);
    write(&mut store, &[said(5, "e")]);

    assert_eq!(["2026-11-22.2.sqlite", "2026-11-22.sqlite", "2026-11-24.sqlite"], days(folder.path()).as_slice());
    assert_eq!(["e", "d", "c", "b", "a"], messages(&store.reader(), "").as_slice());
}

#[test]
fn streams_that_are_silent_for_a_week_are_forgotten_when_the_day_changes() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    store.write(&[numbered(chunk("old", 1, 11, 13)), numbered(chunk("live", 1, 1, 3))]).unwrap();
    store.write(&[delivery(&[], Some(Chunk { end: true, ..chunk("old", 1, 14, 13) }))]).unwrap();
    hand.set(TODAY + 6 * DAY);
    store.write(&[numbered(chunk("live", 1, 1, 3))]).unwrap();
    assert_eq!(Some(GapCounts { open: 10, expired: 0 }), store.gap_counts());
    hand.set(TODAY + 8 * DAY);
    store.write(&[numbered(chunk("live", 1, 4, 4))]).unwrap();
    hand.set(TODAY + 9 * DAY);

    let done = store.write(&[numbered(chunk("live", 1, 1, 5)), numbered(chunk("old", 1, 1, 3))]).unwrap();

    assert_eq!((1 + 3, 4), (done.stored, done.repeated));
    assert_eq!(Some(GapCounts { open: 0, expired: 10 }), store.gap_counts());
    assert_eq!(Some(GapCounts::default()), store.gap_counts());
}

#[test]
fn streams_are_kept_although_the_clock_was_wrong_for_a_while() {
    for wrong in [30 * DAY, -400 * DAY] {
        let folder = tempfile::tempdir().unwrap();
        let hand = ManualClock::at(TODAY);
        let mut store = open(folder.path(), &hand);
        store.write(&[numbered(chunk("live", 1, 1, 1)), numbered(chunk("silent", 1, 1, 1))]).unwrap();
        hand.set(TODAY + wrong);
        store.write(&[numbered(chunk("other", 1, 1, 3))]).unwrap();
        hand.set(TODAY + 1);
        let done = store.write(&[numbered(chunk("live", 1, 2, 3)), numbered(chunk("other", 1, 1, 4))]).unwrap();
        assert_eq!((2 + 1, 3), (done.stored, done.repeated), "{wrong}");
        hand.set(TODAY + DAY);

        let done = store.write(&[numbered(chunk("live", 1, 1, 5)), numbered(chunk("silent", 1, 1, 2))]).unwrap();

        assert_eq!((3, 4, 0), (done.stored, done.repeated, done.expired), "{wrong}");
        assert_eq!(vec![Outcome::Committed; 2], done.outcomes);
    }
}

#[test]
fn an_incompletely_created_file_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap();
    close(store);
    // The state after a kill: the file exists, but its transaction is not committed.
    change(folder.path(), "2026-11-23.sqlite", "PRAGMA journal_mode = WAL");
    fs::write(folder.path().join("2026-11-24.sqlite"), "").unwrap();
    hand.set(TODAY + DAY);

    let mut store = open(folder.path(), &hand);
    assert_eq!(["2026-11-22.sqlite", "2026-11-23.sqlite"], days(folder.path()).as_slice());
    assert_eq!(3, store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap().repeated);
}

#[test]
fn a_complete_file_counts_even_if_the_process_was_killed_before_registering_it() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap();
    hand.set(TODAY + DAY);
    store.write(&[numbered(chunk("s", 1, 4, 5))]).unwrap();
    close(store);
    // As if neither the catalog nor the old file had been updated.
    change(folder.path(), "catalog.sqlite", "DELETE FROM files WHERE name LIKE '%23%'; UPDATE files SET sealed = 0");
    change(folder.path(), "2026-11-22.sqlite", "PRAGMA journal_mode = WAL; UPDATE file_state SET sealed = 0");

    let mut store = open(folder.path(), &hand);
    let done = store.write(&[numbered(chunk("s", 1, 1, 6))]).unwrap();

    assert_eq!((1, 5), (done.stored, done.repeated));
    assert_eq!(6, stored(&store).len());
    store.maintain().unwrap();
    let sealed = |name: &str| -> bool {
        let file = Connection::open(folder.path().join(name)).unwrap();
        file.query_row("SELECT sealed FROM file_state", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((true, false), (sealed("2026-11-22.sqlite"), sealed("2026-11-23.sqlite")));
}

#[test]
fn a_lost_or_damaged_catalog_is_rebuilt_from_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    for (day, damage) in [None, Some("no database, but long enough to look at".repeat(50))].into_iter().enumerate() {
        let mut store = open(folder.path(), &hand);
        write(&mut store, &[said(day as i64, "m")]);
        hand.set(TODAY + (day as i64 + 1) * DAY);
        write(&mut store, &[said(day as i64, "m")]);
        close(store);
        let catalog = folder.path().join("catalog.sqlite");
        match damage {
            Some(damage) => fs::write(catalog, damage).unwrap(),
            None => fs::remove_file(catalog).unwrap(),
        }

        let store = open(folder.path(), &hand);
        assert_eq!(2 * (day + 1), stored(&store).len());
        close(store);
    }
}

#[test]
fn if_the_newest_file_is_removed_the_previous_one_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap();
    hand.set(TODAY + DAY);
    store.write(&[numbered(chunk("s", 1, 4, 5))]).unwrap();
    store.maintain().unwrap();
    close(store);
    fs::remove_file(folder.path().join("2026-11-23.sqlite")).unwrap();
    hand.set(TODAY);

    let mut store = open(folder.path(), &hand);
    let done = store.write(&[numbered(chunk("s", 1, 1, 4))]).unwrap();

    assert_eq!((1, 3), (done.stored, done.repeated));
    assert_eq!(["2026-11-22.2.sqlite", "2026-11-22.sqlite"], days(folder.path()).as_slice());
}

#[test]
fn a_file_found_damaged_is_left_alone_and_its_streams_continue_in_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", 1, 1, 3))]).unwrap();
    // Damage a page of an index.
    let path = folder.path().join("2026-11-22.sqlite");
    let file = Connection::open(&path).unwrap();
    file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let sql = "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'records'";
    let (page, size): (i64, i64) = file.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    drop(file);
    use std::os::unix::fs::FileExt;
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0xff; 512], ((page - 1) * size) as u64).unwrap();
    // The pages in memory are still valid. A new process reads the damaged ones.
    drop(store);
    let mut store = open(folder.path(), &ManualClock::at(TODAY));

    let error = store.write(&[numbered(chunk("s", 1, 4, 5))]).unwrap_err();
    assert!(matches!(&error, StoreError::Retry(why) if why.contains("2026-11-22.sqlite")), "{error:?}");
    let done = store.write(&[numbered(chunk("s", 1, 1, 5))]).unwrap();

    assert_eq!((2, 3), (done.stored, done.repeated));
    assert_eq!(["2026-11-22.2.sqlite", "2026-11-22.sqlite"], days(folder.path()).as_slice());
    let error = ask(&store.reader(), &query("")).unwrap_err().to_string();
    assert!(error.contains("2026-11-22.sqlite") && error.contains(".recover"), "{error}");
    drop(store);
    close(open(folder.path(), &ManualClock::at(TODAY)));
}

#[test]
fn queries_skip_the_files_of_days_without_records() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    for day in 1..4 {
        hand.set(TODAY + day * DAY);
        store.maintain().unwrap();
    }
    write(&mut store, &[said(1, "a")]);

    assert_eq!(["a"], messages(&store.reader(), "").as_slice());
    assert_eq!((4, 1), (store.reader().stats().unwrap().files, store.reader().stats().unwrap().rows));
}

#[test]
fn the_system_clock_is_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(folder.path(), SqliteOptions::default()).unwrap();
    write(&mut store, &[said(1, "a")]);

    until("it is indexed", || store.reader().stats().is_ok_and(|stats| stats.unindexed_rows == 0));
    assert_eq!(["a"], messages(&store.reader(), "a").as_slice());
    close(store);
}
