//! A text file as a store.

use crate::small_place;

use std::fs;
use std::sync::Arc;

use logspool_server::batch::{Arrival, Batch};
use logspool_server::delivery::Delivery;
use logspool_server::record::Record;
use logspool_server::stores::file::FileStore;
use logspool_server::stores::private::Readers;
use logspool_server::stores::{Store, StoreError};
use small_place::{limit, run_in_a_small_place};

fn delivery(first: u64, last: u64) -> Arc<Delivery> {
    let mut batch = Batch::default();
    for number in first..=last {
        let record = Record { message: format!("number {number}").into(), level: 20, ..Record::default() };
        batch.push(&record, Arrival { time_ns: 5, host: "" });
    }
    Delivery::new(batch, None, 1, None).0
}

/// The numbers in the lines of a file, in order. Checks that all lines are complete.
fn numbers(text: &str) -> Vec<u64> {
    assert!(text.ends_with('\n'));
    let number = |line: &str| {
        let (before, number) = line.split_once("number ").unwrap_or_else(|| panic!("{line:?}"));
        assert_eq!("1970-01-01T00:00:00.000Z INFO", before.trim_end());
        number.parse().unwrap_or_else(|_| panic!("{line:?}"))
    };
    text.lines().map(number).collect()
}

#[test]
fn a_line_cut_by_a_full_disk_is_finished_later() {
    run_in_a_small_place(&own_test!("full_disk_in_a_line"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn full_disk_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut store = FileStore::open(&path, Readers::Owner).unwrap();
    let group = [delivery(1, 500), delivery(501, 1_000)];
    limit("20011");

    for _ in 0..3 {
        match store.write(&group) {
            Err(StoreError::Retry(why)) => assert!(why.contains(path.to_str().unwrap()), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(20_011, fs::metadata(&path).unwrap().len());
    }
    assert!(!fs::read_to_string(&path).unwrap().ends_with('\n'));
    limit("unlimited");
    let written = store.write(&group).unwrap();
    store.write(&[delivery(1_001, 1_010)]).unwrap();

    assert_eq!((1_000, 2), (written.stored, written.outcomes.len()));
    assert!((1..=1_010).eq(numbers(&fs::read_to_string(&path).unwrap())));
}

#[test]
fn a_file_removed_from_a_full_disk_is_closed() {
    run_in_a_small_place(&own_test!("full_disk_and_no_file"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn full_disk_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut store = FileStore::open(&path, Readers::Owner).unwrap();
    let group = [delivery(1, 700)];
    limit("20011");
    store.write(&group).unwrap_err();
    fs::remove_file(&path).unwrap();

    assert_eq!(700, store.write(&group).unwrap().stored);

    // The content of the removed file is gone, and so is the beginning of a line.
    let text = fs::read_to_string(&path).unwrap();
    let (_, whole) = text.split_once('\n').unwrap();
    let numbers = numbers(whole);
    assert!((numbers[0]..=700).eq(numbers));
}
