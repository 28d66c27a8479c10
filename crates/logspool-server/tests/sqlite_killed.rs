//! A process that writes into the SQLite store is killed at any moment. All committed records are stored, once.
//!
//! `LOGSPOOL_KILLS` sets the number of kills; a few by default.

use crate::sqlite_support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use logspool_server::stores::Store;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteStore};
use sqlite_support::{DAY, ManualClock, TODAY, chunk, close, indexed, messages, numbered, open, open_with, stored};

/// Writes chunks of a stream from a number on, and prints the last number after each commit. A day has 500 records.
#[test]
#[ignore = "the process that the other test kills"]
fn writes_until_it_is_killed() {
    let read = |name: &str| std::env::var(name).unwrap();
    let mut first: u64 = read("LOGSPOOL_TEST_FIRST").parse().unwrap();
    let day = |number: u64| TODAY + (number / 500) as i64 * DAY;
    let hand = ManualClock::at(day(first));
    let options = SqliteOptions { indexing: Indexing::Background, clock: hand.clock(), ..SqliteOptions::default() };
    let mut store = SqliteStore::open(read("LOGSPOOL_TEST_FOLDER"), options).unwrap();
    let mut out = std::io::stdout();
    loop {
        let last = first + 20 + first % 173;
        hand.set(day(last));
        let done = store.write(&[numbered(chunk("s", 1, first, last))]).unwrap();
        assert_eq!((0, last + 1 - first), (store.gap_counts().unwrap().open, done.stored + done.repeated));
        writeln!(out, "\ncommitted {last}").unwrap();
        out.flush().unwrap();
        store.maintain().unwrap();
        first = last + 1;
    }
}

#[test]
fn a_killed_writer_loses_and_duplicates_no_committed_record() {
    let folder = tempfile::tempdir().unwrap();
    let kills = std::env::var("LOGSPOOL_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let mut committed = 0;
    for round in 0..kills {
        // Records whose commit was not reported are sent again.
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &own_test!("writes_until_it_is_killed"), "--ignored", "--nocapture"])
            .env("LOGSPOOL_TEST_FOLDER", folder.path())
            .env("LOGSPOOL_TEST_FIRST", (committed + 1).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (say, said) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(last) = line.strip_prefix("committed ") {
                    _ = say.send(last.parse::<u64>().unwrap());
                }
            }
        });
        let first = said.recv_timeout(Duration::from_secs(60)).expect("a first commit");
        // A pseudo-random moment: between the steps of a transaction, a checkpoint, or a change of the day.
        std::thread::sleep(Duration::from_micros(997 * (round * 37 % 101)));
        child.kill().unwrap();
        child.wait().unwrap();
        reader.join().unwrap();
        committed = said.try_iter().last().unwrap_or(first);
    }

    let store = open(folder.path(), &ManualClock::at(TODAY));
    let mut numbers: Vec<u64> =
        stored(&store).iter().map(|message| message.strip_prefix("s ").unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    close(store);
    let store = open_with(folder.path(), &ManualClock::at(TODAY), Indexing::Background);
    indexed(&store.reader());
    let by_index = messages(&store.reader(), "s logger=shop").len();
    close(store);

    assert!(numbers.len() as u64 >= committed, "{committed} were committed, {} are there", numbers.len());
    assert_eq!((1..=numbers.len() as u64).collect::<Vec<_>>(), numbers);
    assert_eq!(numbers.len(), by_index);
}
