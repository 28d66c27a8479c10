//! Errors of the SQLite store, and the records that it keeps, when its folder has a problem.

use crate::small_place;
use crate::sqlite_support;

use std::fs;

use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteReader, SqliteRetention, SqliteStore};
use logspool_server::stores::{Store, StoreError};
use rusqlite::Connection;
use small_place::{limit, run_in_a_small_place};
use sqlite_support::{DAY, ManualClock, TODAY, chunk, close, messages, numbered, open, said, stored, write};

fn fatal(result: Result<SqliteStore, StoreError>) -> String {
    match result {
        Err(StoreError::Fatal(why)) => why,
        other => panic!("not fatal: {other:?}"),
    }
}

#[test]
fn two_services_cannot_write_to_one_folder_and_a_reader_can_use_it_beside_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    write(&mut store, &[said(1, "a")]);

    let why = fatal(SqliteStore::open(folder.path(), SqliteOptions::default()));
    assert!(why.contains(&format!("process {} does", std::process::id())), "{why}");
    assert_eq!(["a"], messages(&SqliteReader::open(folder.path()).unwrap(), "").as_slice());
    close(store);
    assert_eq!(["a"], messages(&SqliteReader::open(folder.path()).unwrap(), "").as_slice());
    close(open(folder.path(), &ManualClock::at(TODAY)));
}

#[test]
fn a_new_folder_is_accessible_only_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    close(open(&folder, &ManualClock::at(TODAY)));

    assert_eq!(0o700, fs::metadata(&folder).unwrap().permissions().mode() & 0o777);
}

#[test]
fn a_path_where_no_folder_can_be_created_is_reported() {
    let parent = tempfile::NamedTempFile::new().unwrap();
    let folder = parent.path().join("logs");

    match SqliteStore::open(&folder, SqliteOptions::default()) {
        Err(StoreError::Retry(why)) => assert!(why.contains(folder.to_str().unwrap()), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(SqliteReader::open(&folder).is_err());
}

#[test]
fn a_file_of_a_newer_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    close(open(folder.path(), &ManualClock::at(TODAY)));
    let file = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
    file.pragma_update(None, "user_version", 4).unwrap();
    drop(file);

    let why = fatal(SqliteStore::open(folder.path(), SqliteOptions::default()));
    assert!(why.contains("2026-11-22.sqlite") && why.contains("newer logspool"), "{why}");
}

#[test]
fn a_file_that_is_locked_by_another_program_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let other = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let deliveries = [numbered(chunk("s", 1, 1, 3))];

    match store.write(&deliveries) {
        Err(StoreError::Retry(why)) => assert!(why.contains("locked"), "{why}"),
        other => panic!("{other:?}"),
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(3, store.write(&deliveries).unwrap().stored);
}

#[test]
fn a_full_disk_is_reported_and_unwritten_records_are_written_later() {
    run_in_a_small_place(&own_test!("full_disk"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", 1, 1, 100))]).unwrap();
    let many = numbered(chunk("s", 1, 91, 20_000));
    limit("200000");

    for _ in 0..3 {
        match store.write(std::slice::from_ref(&many)) {
            Err(StoreError::Retry(why)) => assert!(why.contains("2026-11-22.sqlite"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(100, store.reader().stats().unwrap().rows);
    }
    limit("unlimited");
    let done = store.write(&[many]).unwrap();

    assert_eq!((19_900, 10), (done.stored, done.repeated));
    assert_eq!(20_000, stored(&store).len());
}

#[test]
fn a_new_day_without_room_begins_later_and_loses_nothing() {
    run_in_a_small_place(&own_test!("no_room_for_a_day"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn no_room_for_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    store.write(&[numbered(chunk("s", 1, 1, 100))]).unwrap();
    hand.set(TODAY + DAY);
    let again = numbered(chunk("s", 1, 91, 110));
    // From no room at all to a little more than enough, so that each step can fail.
    for bytes in (0..100_000).step_by(3_000) {
        limit(&bytes.to_string());
        match store.write(std::slice::from_ref(&again)) {
            Err(StoreError::Retry(why)) => assert!(why.contains("2026-11-2"), "{why}"),
            Err(error) => panic!("{error:?}"),
            Ok(done) => {
                assert_eq!((10, 10), (done.stored, done.repeated));
                limit("unlimited");
                assert_eq!(110, stored(&store).len());
                // Failed attempts leave no files.
                let mut names: Vec<_> =
                    fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
                names.retain(|name| name.extension().is_some_and(|end| end == "sqlite"));
                names.sort();
                let expected = ["2026-11-22.sqlite", "2026-11-23.sqlite", "catalog.sqlite"];
                assert_eq!(expected.map(|name| folder.path().join(name)).to_vec(), names);
                return;
            }
        }
    }
    panic!("it never had enough room");
}

#[test]
fn a_full_disk_does_not_keep_old_files_from_being_removed() {
    run_in_a_small_place(&own_test!("full_disk_of_old_files"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn full_disk_of_old_files() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    for day in 0..3 {
        hand.set(TODAY + day * DAY);
        write(&mut store, &[said(day, &format!("day {day}"))]);
        store.maintain().unwrap();
    }
    close(store);
    // The file of the third day still has to be sealed.
    hand.set(TODAY + 3 * DAY);
    let retention = SqliteRetention { days: None, bytes: Some(1) };
    let options = SqliteOptions { retention, indexing: Indexing::Off, clock: hand.clock(), ..SqliteOptions::default() };
    let mut store = SqliteStore::open(folder.path(), options).unwrap();
    let left = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("20") && name.ends_with(".sqlite")).collect();
        names.sort();
        names
    };
    limit("0");

    let error = store.maintain().unwrap_err();
    let beside = (left(), messages(&store.reader(), ""));
    limit("unlimited");
    store.maintain().unwrap();

    assert!(error.to_string().contains("2026-11-24.sqlite"), "{error}");
    assert_eq!(
        (vec!["2026-11-24.sqlite".to_owned(), "2026-11-25.sqlite".to_owned()], vec!["day 2".to_owned()]),
        beside
    );
    assert_eq!(["2026-11-25.sqlite"], left().as_slice());
    assert_eq!(1, store.reader().stats().unwrap().files);
}

#[test]
fn files_of_a_killed_process_can_be_read_without_a_service() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    write(&mut store, &[said(1, "a")]);
    let path = |end: &str| folder.path().join(format!("2026-11-22.sqlite{end}"));
    // The files while the log is being checkpointed and a page is half written.
    let file = Connection::open(path("")).unwrap();
    file.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop((file, store));
    let file = Connection::open(path("")).unwrap();
    let sql = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE; DELETE FROM records;
               WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 5000)
               INSERT INTO records(message) SELECT hex(randomblob(400)) FROM n";
    file.execute_batch(sql).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["2026-11-22.sqlite", "2026-11-22.sqlite-journal", "catalog.sqlite"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }

    assert_eq!(["a"], messages(&SqliteReader::open(copy.path()).unwrap(), "").as_slice());
}
