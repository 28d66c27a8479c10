//! A record of a numbered stream is stored once in SQLite, however often it is sent.

use crate::sqlite_support;

use logspool_server::delivery::{Chunk, DropReason, Outcome};
use logspool_server::stores::{GapCounts, Store, WriteResult};
use rusqlite::Connection;
use sqlite_support::{ManualClock, TODAY, chunk, close, delivery, numbered, open, said, stored, write};

fn written(outcomes: &[Outcome], [stored, repeated, expired, quarantined]: [u64; 4]) -> WriteResult {
    WriteResult { outcomes: outcomes.to_vec(), stored, repeated, expired, quarantined }
}

fn numbers(stream: &str, numbers: impl Iterator<Item = u64>) -> Vec<String> {
    let mut all: Vec<_> = numbers.map(|number| format!("{stream} {number}")).collect();
    all.sort_unstable();
    all
}

#[test]
fn repeated_records_are_skipped_across_transactions_and_restarts() {
    use Outcome::Committed;
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let whole = numbered(chunk("s", 1, 1, 100));
    assert_eq!(written(&[Committed], [100, 0, 0, 0]), store.write(std::slice::from_ref(&whole)).unwrap());
    assert_eq!(written(&[Committed], [0, 100, 0, 0]), store.write(std::slice::from_ref(&whole)).unwrap());

    close(store);
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    assert_eq!(written(&[Committed], [0, 100, 0, 0]), store.write(&[whole]).unwrap());
    let half_known = numbered(chunk("s", 1, 51, 150));
    assert_eq!(written(&[Committed], [50, 50, 0, 0]), store.write(&[half_known]).unwrap());

    assert_eq!(numbers("s", 1..=150), stored(&store));
}

#[test]
fn chunks_of_one_transaction_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let deliveries = [
        numbered(chunk("s", 1, 1, 60)),
        numbered(chunk("t", 9, 1, 5)),
        numbered(chunk("s", 1, 61, 70)),
        numbered(chunk("s", 1, 61, 70)),
        numbered(chunk("s", 1, 65, 80)),
        delivery(&[said(TODAY, "unnumbered")], None),
    ];

    let done = store.write(&deliveries).unwrap();

    assert_eq!(written(&[Outcome::Committed; 6], [80 + 5 + 1, 10 + 6, 0, 0]), done);
    let mut expected = numbers("s", 1..=80);
    expected.extend(numbers("t", 1..=5));
    expected.push("unnumbered".to_owned());
    assert_eq!(expected, stored(&store));
}

#[test]
fn records_that_are_missing_before_a_chunk_are_an_open_gap() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", 1, 1, 10))]).unwrap();

    let gap = store.write(&[numbered(chunk("s", 1, 12, 20)), numbered(chunk("s", 1, 15, 20))]).unwrap();

    assert_eq!(written(&[Outcome::Committed; 2], [9, 6, 0, 0]), gap);
    assert_eq!(numbers("s", (1..=10).chain(12..=20)), stored(&store));
    assert_eq!(Some(GapCounts { open: 1, expired: 0 }), store.gap_counts());
}

#[test]
fn a_late_chunk_fills_its_gap_once_also_after_a_restart_and_the_end_of_its_stream() {
    use Outcome::Committed;
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", 1, 101, 200))]).unwrap();
    let end = delivery(&[], Some(Chunk { end: true, ..chunk("s", 1, 301, 300) }));
    store.write(&[end]).unwrap();
    assert_eq!(Some(GapCounts { open: 200, expired: 0 }), store.gap_counts());
    close(store);
    let mut store = open(folder.path(), &ManualClock::at(TODAY));

    let late = [numbered(chunk("s", 1, 1, 100)), numbered(chunk("s", 1, 51, 250))];
    assert_eq!(written(&[Committed; 2], [150, 150, 0, 0]), store.write(&late).unwrap());
    assert_eq!(written(&[Committed; 2], [0, 300, 0, 0]), store.write(&late).unwrap());

    assert_eq!(numbers("s", 1..=250), stored(&store));
    assert_eq!(Some(GapCounts { open: 50, expired: 0 }), store.gap_counts());
}

#[test]
fn an_old_epoch_is_dropped_and_a_new_epoch_starts_at_record_one() {
    use Outcome::{Committed, Dropped};
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", u64::MAX - 1, 4, 10))]).unwrap();

    let deliveries = [numbered(chunk("s", u64::MAX, 1, 3)), numbered(chunk("s", u64::MAX - 1, 11, 12))];

    let outcomes = [Committed, Dropped(DropReason::OlderEpoch)];
    assert_eq!(written(&outcomes, [3, 0, 3, 0]), store.write(&deliveries).unwrap());
    assert_eq!(Some(GapCounts { open: 0, expired: 0 }), store.gap_counts());
}

#[test]
fn record_numbers_up_to_the_maximum_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let last = numbered(chunk("s", 1, u64::MAX, u64::MAX));

    assert_eq!(written(&[Outcome::Committed], [1, 0, 0, 0]), store.write(std::slice::from_ref(&last)).unwrap());
    assert_eq!(written(&[Outcome::Committed], [0, 1, 0, 0]), store.write(&[last]).unwrap());
}

#[test]
fn the_mark_of_a_stream_stays_when_it_ends() {
    use Outcome::Committed;
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    store.write(&[numbered(chunk("s", 1, 1, 10))]).unwrap();
    let ended = || -> Vec<bool> {
        let file = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
        let mut read = file.prepare("SELECT ended FROM streams").unwrap();
        read.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };

    assert_eq!(vec![false], ended());
    let end = delivery(&[], Some(Chunk { end: true, ..chunk("s", 1, 11, 10) }));
    assert_eq!(written(&[Committed], [0; 4]), store.write(std::slice::from_ref(&end)).unwrap());
    assert_eq!(vec![true], ended());
    assert_eq!(written(&[Committed], [0; 4]), store.write(&[end]).unwrap());
    assert_eq!(vec![true], ended());
    // A copy that another service kept is not stored again.
    assert_eq!(written(&[Committed], [0, 10, 0, 0]), store.write(&[numbered(chunk("s", 1, 1, 10))]).unwrap());
}

#[test]
fn the_mark_of_an_ended_stream_takes_at_most_200_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let bytes = || -> i64 {
        let file = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
        file.query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get(0))
            .unwrap()
    };
    let before = bytes();
    // Names in a random order, as those of programs.
    let name = |number: u128| format!("{:032x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    for group in 0..20 {
        let ends = (1..=1000).map(|number| Chunk { end: true, ..chunk(&name(group * 1000 + number), 1 << 60, 1, 0) });
        store.write(&ends.map(|end| delivery(&[], Some(end))).collect::<Vec<_>>()).unwrap();
    }

    println!("a mark takes {} bytes", (bytes() - before) / 20_000);
    assert!((bytes() - before) / 20_000 <= 200, "{} bytes", (bytes() - before) / 20_000);
}

/// Makes SQLite refuse records, by a constraint that the store does not have.
fn refuse(folder: &std::path::Path, condition: &str) {
    let file = Connection::open(folder.join("2026-11-22.sqlite")).unwrap();
    let sql = format!(
        "CREATE TRIGGER refuse AFTER INSERT ON records WHEN {condition} BEGIN SELECT RAISE(ABORT, 'poison'); END"
    );
    file.execute_batch(&sql).unwrap();
}

#[test]
fn a_record_that_is_refused_goes_to_quarantine_and_the_others_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    refuse(folder.path(), "NEW.message IN ('s 3', 's 70', 's 120')");
    let deliveries = [numbered(chunk("s", 1, 1, 100)), numbered(chunk("s", 1, 101, 120))];

    let done = store.write(&deliveries).unwrap();

    assert_eq!(written(&[Outcome::Committed; 2], [117, 0, 0, 3]), done);
    assert_eq!(numbers("s", (1..=120).filter(|number| ![3, 70, 120].contains(number))), stored(&store));
    let file = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
    let sql = "SELECT record ->> 'message', reason, received_ns FROM quarantine ORDER BY id";
    let mut statement = file.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(String, String, i64)> = rows.map(Result::unwrap).collect();
    assert_eq!(["s 3", "s 70", "s 120"].map(|message| (message.to_owned(), "poison".to_owned(), TODAY)).to_vec(), rows);
}

#[test]
fn a_quarantined_record_is_not_accepted_again_and_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    refuse(folder.path(), "NEW.message = 's 2'");
    let deliveries = [numbered(chunk("s", 1, 1, 3))];
    store.write(&deliveries).unwrap();

    assert_eq!(written(&[Outcome::Committed], [0, 3, 0, 0]), store.write(&deliveries).unwrap());
    assert_eq!(2, store.reader().stats().unwrap().rows);
    let file = Connection::open(folder.path().join("2026-11-22.sqlite")).unwrap();
    let counted: i64 = file.query_row("SELECT sum(count) FROM rollup", [], |row| row.get(0)).unwrap();
    assert_eq!(2, counted);
}

#[test]
fn all_records_of_a_transaction_can_be_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    refuse(folder.path(), "TRUE");

    assert_eq!(125, write(&mut store, &vec![said(TODAY, "m"); 125]).quarantined);
    assert_eq!(0, store.reader().stats().unwrap().rows);
}
