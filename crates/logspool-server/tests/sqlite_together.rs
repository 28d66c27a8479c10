//! Readers, the writer, the indexer and the retention work on one folder of the SQLite store at the same time.

use crate::sqlite_support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use logspool_server::query::Query;
use logspool_server::stores::Store;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteReader, SqliteRetention, SqliteStore};
use sqlite_support::{DAY, ManualClock, TODAY, ask, close, messages, query, records, said, write};

/// Sets a flag when it is dropped, also by a panic, to end the other threads.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn no_answer_fails_while_days_change_and_files_are_indexed_and_removed() {
    const KEPT: i64 = 3;
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let options = SqliteOptions {
        retention: SqliteRetention { days: Some(KEPT as u32), bytes: None },
        indexing: Indexing::Background,
        clock: hand.clock(),
        ..SqliteOptions::default()
    };
    let mut store = SqliteStore::open(folder.path(), options).unwrap();
    let done = AtomicBool::new(false);
    let newest = AtomicU64::new(0);
    let mut day = 0;
    thread::scope(|scope| {
        for text in ["", "word", "logger=shop level>=20", "| count by logger", "word | histogram 1h"] {
            let (done, newest) = (&done, &newest);
            // One reader like in another process, the others like in this one.
            let answers = match text {
                "" => SqliteReader::open(folder.path()).unwrap(),
                _ => store.reader(),
            };
            scope.spawn(move || {
                let mut asked = 0;
                while !done.load(Ordering::SeqCst) {
                    let known = newest.load(Ordering::SeqCst);
                    let query = Query { limit: Some(50), ..query(text) };
                    if query.stage.is_some() {
                        ask(&answers, &query).unwrap();
                    } else if let Some(first) = records(&answers, &query).first() {
                        // Records committed before the query are in the answer.
                        assert!(first.time_ns.unwrap() as u64 >= known, "{text}");
                    }
                    asked += 1;
                }
                assert!(asked > 3, "{text}");
            });
        }
        let _ends = StopOnDrop(&done);
        let end = Instant::now() + Duration::from_secs(5);
        let mut number = 0;
        while Instant::now() < end {
            hand.set(TODAY + day * DAY);
            for _ in 0..5 {
                write(&mut store, &(1..=40).map(|more| said(number + more, "a word")).collect::<Vec<_>>());
                number += 40;
                newest.store(number as u64, Ordering::SeqCst);
            }
            store.maintain().unwrap();
            day += 1;
        }
    });

    assert!(day > KEPT, "the machine is too slow for this test");
    store.maintain().unwrap();
    assert_eq!(200 * KEPT as usize + 200, messages(&store.reader(), "").len());
    close(store);
}
