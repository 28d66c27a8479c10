//! The SQLite store removes whole files, the oldest first.

use crate::sqlite_support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use logspool_server::config::Config;
use logspool_server::delivery::{Delivery, Outcome};
use logspool_server::intake::Intake;
use logspool_server::limits::parts::Retention;
use logspool_server::metrics::Metrics;
use logspool_server::opening;
use logspool_server::origin::Origin;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteRetention, SqliteStore};
use logspool_server::stores::{Store, StoreError, WriteResult};
use sqlite_support::{DAY, ManualClock, TODAY, batch, messages, open, said, until, write};

/// A store with one record on each of five days.
fn five_days(folder: &Path, retention: SqliteRetention, indexing: Indexing) -> (SqliteStore, ManualClock) {
    let hand = ManualClock::at(TODAY);
    let options = SqliteOptions { retention, indexing, clock: hand.clock(), ..SqliteOptions::default() };
    let mut store = SqliteStore::open(folder, options).unwrap();
    for day in 0..5 {
        hand.set(TODAY + day * DAY);
        write(&mut store, &[said(day, &format!("day {day}"))]);
        store.maintain().unwrap();
    }
    (store, hand)
}

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn day_files(folder: &Path) -> usize {
    names(folder).iter().filter(|name| name.starts_with("20") && name.ends_with(".sqlite")).count()
}

#[test]
fn files_of_the_configured_number_of_days_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = five_days(folder.path(), SqliteRetention { days: Some(2), bytes: None }, Indexing::Off);

    assert_eq!(["day 4", "day 3", "day 2"], messages(&store.reader(), "").as_slice());
    assert!(!names(folder.path()).iter().any(|name| name.starts_with("2026-11-22") || name.starts_with("2026-11-23")));
}

#[test]
fn files_are_removed_until_the_rest_fits_and_the_file_of_today_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = five_days(folder.path(), SqliteRetention { days: None, bytes: Some(1) }, Indexing::Off);
    assert_eq!(["day 4"], messages(&store.reader(), "").as_slice());
    drop(store);

    let folder = tempfile::tempdir().unwrap();
    let (store, hand) = five_days(folder.path(), SqliteRetention::default(), Indexing::Off);
    drop(store);
    let bytes = open(folder.path(), &hand).reader().stats().unwrap().bytes;
    let retention = SqliteRetention { days: None, bytes: Some(bytes - 1) };
    let options = SqliteOptions { retention, indexing: Indexing::Off, clock: hand.clock(), ..SqliteOptions::default() };
    let mut store = SqliteStore::open(folder.path(), options).unwrap();
    store.maintain().unwrap();

    assert_eq!(["day 4", "day 3", "day 2", "day 1"], messages(&store.reader(), "").as_slice());
    assert!(store.reader().stats().unwrap().bytes < bytes);
}

/// A store on a disk that is full while it has files of earlier days.
struct FullDiskStore {
    store: SqliteStore,
    folder: PathBuf,
}

impl Store for FullDiskStore {
    fn name(&self) -> &str {
        "full"
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError> {
        match day_files(&self.folder) {
            0 | 1 => self.store.write(deliveries),
            days => Err(StoreError::Retry(format!("no space left: {days} days are there"))),
        }
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        self.store.maintain()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Store::close(Box::new(self.store))
    }
}

#[test]
fn old_files_are_removed_even_while_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let (store, hand) = five_days(folder.path(), SqliteRetention::default(), Indexing::Off);
    drop(store);
    let retention = SqliteRetention { days: None, bytes: Some(1) };
    let options = SqliteOptions { retention, indexing: Indexing::Off, clock: hand.clock(), ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.path(), options).unwrap();
    let answers = store.reader();
    let store = FullDiskStore { store, folder: folder.path().to_owned() };
    let (intake, writers) = Intake::start(vec![Box::new(store)], 1 << 20, Arc::new(Metrics::default())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();

    let outcome = runtime.block_on(async {
        let late = batch(&[said(5, "after that")]);
        let room = intake.room_for(Origin::User(0), &late).await;
        let answer = intake.submit(late, None, room);
        tokio::time::timeout(Duration::from_secs(30), answer).await.expect("old files stay").unwrap()
    });

    assert_eq!(Outcome::Committed, outcome);
    assert_eq!(["after that", "day 4"], messages(&answers, "").as_slice());
    intake.close();
    assert!(writers.finish(Duration::from_secs(30)));
}

#[test]
fn a_file_removed_while_it_is_read_does_not_reappear() {
    let folder = tempfile::tempdir().unwrap();
    let retention = SqliteRetention { days: Some(1), bytes: None };
    let options = |hand: &ManualClock| SqliteOptions {
        retention,
        indexing: Indexing::Off,
        clock: hand.clock(),
        ..SqliteOptions::default()
    };
    let hand = ManualClock::at(TODAY);
    let mut store = SqliteStore::open(folder.path(), options(&hand)).unwrap();
    write(&mut store, &[said(1, "old")]);
    let reader = rusqlite::Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM records").unwrap();
    for day in 1..4 {
        hand.set(TODAY + day * DAY);
        store.maintain().unwrap();
        store.maintain().unwrap();
    }

    assert!(messages(&store.reader(), "").is_empty());
    assert_eq!(2, store.reader().stats().unwrap().files);
    drop((reader, store));
    let store = SqliteStore::open(folder.path(), options(&hand)).unwrap();
    assert!(!names(folder.path()).iter().any(|name| name.starts_with("2026-11-22")));
    assert!(messages(&store.reader(), "").is_empty());
}

#[test]
fn a_clock_that_jumps_ahead_and_back_removes_nothing_and_later_removal_works() {
    let folder = tempfile::tempdir().unwrap();
    let (store, hand) = five_days(folder.path(), SqliteRetention::default(), Indexing::Off);
    drop(store);
    let retention = SqliteRetention { days: Some(2), bytes: None };
    let open = || {
        SqliteStore::open(
            folder.path(),
            SqliteOptions { retention, indexing: Indexing::Off, clock: hand.clock(), ..SqliteOptions::default() },
        )
    };
    let mut store = open().unwrap();
    hand.set(TODAY + 404 * DAY);
    write(&mut store, &[said(404, "day 404")]);
    store.maintain().unwrap();
    // The same for a service that has only seen the wrong time, and over midnight.
    drop(store);
    let mut store = open().unwrap();
    store.maintain().unwrap();
    hand.set(TODAY + 405 * DAY);
    store.maintain().unwrap();
    assert_eq!(["day 404", "day 4", "day 3", "day 2", "day 1", "day 0"], messages(&store.reader(), "").as_slice());

    for day in 5..9 {
        hand.set(TODAY + day * DAY);
        write(&mut store, &[said(day, &format!("day {day}"))]);
        store.maintain().unwrap();
    }
    // The file with the wrong date is older than the file of the fifth day, so it is removed first.
    assert_eq!(["day 8", "day 7", "day 6"], messages(&store.reader(), "").as_slice());
    assert_eq!(3, day_files(folder.path()));
}

#[test]
fn a_clock_that_was_slow_makes_no_records_old() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, hand) = five_days(folder.path(), SqliteRetention { days: Some(2), bytes: None }, Indexing::Off);
    hand.set(1);
    write(&mut store, &[said(5, "day 4, later")]);
    store.maintain().unwrap();
    for day in 5..7 {
        hand.set(TODAY + day * DAY);
        store.maintain().unwrap();
    }

    assert_eq!(["day 4, later", "day 4"], messages(&store.reader(), "").as_slice());
}

#[test]
fn after_days_without_a_service_old_records_stay_for_a_while_within_the_byte_limit() {
    for (bytes, kept) in [(None, 5), (Some(1), 0)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, hand) = five_days(folder.path(), SqliteRetention::default(), Indexing::Off);
        drop(store);
        hand.set(TODAY + 40 * DAY);
        let retention = SqliteRetention { days: Some(2), bytes };
        let options =
            SqliteOptions { retention, indexing: Indexing::Off, clock: hand.clock(), ..SqliteOptions::default() };
        let mut store = SqliteStore::open(folder.path(), options).unwrap();
        store.maintain().unwrap();

        assert_eq!(kept, messages(&store.reader(), "").len(), "{bytes:?} bytes");
    }
}

#[test]
fn without_a_limit_nothing_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, hand) = five_days(folder.path(), SqliteRetention::default(), Indexing::Off);
    hand.set(TODAY + 1000 * DAY);
    store.maintain().unwrap();

    assert_eq!(5, messages(&store.reader(), "").len());
}

#[test]
fn indexes_are_removed_with_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let retention = SqliteRetention { days: Some(0), bytes: None };
    let (mut store, hand) = five_days(folder.path(), retention, Indexing::Background);
    until("there is an index", || names(folder.path()).iter().any(|name| name.ends_with(".index")));
    hand.set(TODAY + 5 * DAY);
    store.maintain().unwrap();

    Store::close(Box::new(store)).unwrap();
    drop(open(folder.path(), &hand));
    let mut left = names(folder.path());
    left.retain(|name| name.contains(".index") && !name.starts_with("2026-11-27"));
    assert_eq!(Vec::<String>::new(), left);
}

#[test]
fn the_configuration_sets_the_retention() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
    for (days, bytes, kept) in [(None, None, 5), (Some(2), None, 3), (None, Some(1), 1)] {
        let folder = tempfile::tempdir().unwrap();
        let hand = ManualClock::at(now - 4 * DAY);
        let mut store = open(folder.path(), &hand);
        for day in (0..5).rev() {
            hand.set(now - day * DAY);
            write(&mut store, &[said(day, &format!("{day} days ago"))]);
        }
        drop(store);
        let config = Config {
            store: vec![format!("sqlite:{}", folder.path().display()).parse().unwrap()],
            retention: Retention { days, bytes },
            ..Config::default()
        };
        let mut opened = opening::open(&config).unwrap();
        opened.stores[0].maintain().unwrap();

        assert_eq!(kept, day_files(folder.path()), "{days:?} days, {bytes:?} bytes");
    }
}
