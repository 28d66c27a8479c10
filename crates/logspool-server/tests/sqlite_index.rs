//! An answer does not depend on the index: neither on its progress nor on its existence.

use crate::sqlite_support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use logspool_server::query::{Matcher, Query};
use logspool_server::record::Record;
use logspool_server::stores::Store;
use logspool_server::stores::sqlite::{Indexing, SqliteReader};
use logspool_server::value::Value;
use rusqlite::Connection;
use sqlite_support::{
    DAY, HOUR, ManualClock, Row, SECOND, TODAY, ask, close, indexed, messages, open, open_with, query, records, said,
    until, write,
};

/// A deterministic random generator (Steele and Vigna's splitmix64).
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn record(&mut self, number: usize) -> Record<'static> {
        let words = [
            "disk",
            "Disk",
            "full",
            "FULL.",
            "größe",
            "GRÖßE",
            "İstanbul",
            "a\0b",
            "x\u{301}y",
            "١٢",
            "don't",
            "10.0.0.1",
            "\u{e000}",
            "\"quoted\"",
            "OR",
            "AND",
            "NEAR(",
            "*",
            "漢字",
        ];
        let count = self.below(6);
        let message: Vec<_> = (0..count).map(|_| self.of(&words)).collect();
        let id = [5, u64::MAX, 1 << 63, 0][self.below(4)];
        Record {
            arrived_ns: Some(TODAY),
            time_ns: Some(TODAY - 2 * HOUR + self.below(4 * 3600) as i64 * SECOND + self.below(2) as i64),
            level: [10, 20, 30, 40, 50, 35][self.below(6)],
            logger: self.of(&["shop", "shop.db", "", "Ü"]).to_owned().into(),
            message: message.join(" ").into(),
            trace_id: (self.below(2) == 0).then(|| format!("t{}", self.below(40)).into()),
            process: (self.below(3) > 0).then_some(id),
            host: (self.below(3) > 0).then(|| self.of(&["web-1", "web-2"]).to_owned().into()),
            fields: vec![("n".into(), Value::Int(number as i64))],
            ..Record::default()
        }
    }
}

const QUERIES: [&str; 34] = [
    "",
    "disk",
    "\"disk full\"",
    "disk full",
    "größe",
    "istanbul",
    "\"a b\"",
    "x",
    "\u{661}\u{662}",
    "\"10.0.0.1\"",
    "\"or\"",
    "quoted",
    "漢字",
    "nowhere",
    "trace_id=t7",
    "trace_id=t7 disk",
    "trace_id=nowhere",
    "logger=shop",
    "logger=shop level>=40",
    "logger=shop level>=40 level!=50 disk",
    "logger=Ü level=35",
    "logger=\"\" level<20",
    "logger=nowhere",
    "logger=shop or logger=shop.db",
    "not logger=shop",
    "not disk",
    "not (disk or trace_id=t3) host=web-1",
    "disk or trace_id=t3",
    "pid>5",
    "pid<=5",
    "n>=900 n<950",
    "logger~\"^shop\" level=40",
    "message~\"(?i)disk.*full\"",
    "level>=40 host=web-2",
];

const COUNTS: [&str; 14] = [
    "| count by level",
    "| count by logger",
    "level>=40 | count by logger",
    "disk | count by logger",
    "trace_id=t7 | count by level",
    "logger=shop | count by host",
    "logger=shop | count by pid",
    "| histogram 1m",
    "| histogram 1h",
    "level=40 logger=shop | histogram 5m",
    "disk | histogram 1h",
    "| histogram 7s",
    "not logger~\"shop\" | histogram 1h",
    "trace_id=t7 or level=50 | histogram 1h",
];

/// The expected records: all in `all` that match the filter.
fn expected(all: &[Record<'static>], query: &Query) -> Vec<Record<'static>> {
    let matcher = Matcher::new(&query.filter);
    let in_time = |record: &Record<'_>| {
        let time_ns = record.time_ns.unwrap();
        query.since_ns.is_none_or(|since| time_ns >= since) && query.until_ns.is_none_or(|until| time_ns < until)
    };
    let mut found: Vec<_> =
        all.iter().filter(|record| in_time(record) && matcher.matches_record(record)).cloned().enumerate().collect();
    found.sort_by_key(|(place, record)| std::cmp::Reverse((record.time_ns, *place)));
    let found = found.into_iter().map(|(_, record)| record);
    found.take(query.limit.map_or(usize::MAX, |limit| limit as usize)).collect()
}

fn expected_counts(all: &[Record<'static>], query: &Query) -> Vec<Row> {
    use logspool_server::query::{Field, Stage};
    let found = expected(all, query);
    match query.stage.as_ref().unwrap() {
        Stage::CountBy(field) => {
            let mut counts: BTreeMap<Option<String>, u64> = BTreeMap::new();
            for record in &found {
                let value = match field {
                    Field::Level => Some(record.level.to_string()),
                    Field::Logger => Some(record.logger.to_string()),
                    Field::Host => record.host.as_ref().map(ToString::to_string),
                    Field::Process => record.process.map(|id| id.to_string()),
                    other => panic!("{other:?}"),
                };
                *counts.entry(value).or_default() += 1;
            }
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            counts.into_iter().map(|(value, count)| Row::Count(value, count)).collect()
        }
        Stage::LastBy(field) => panic!("last by {field} counts nothing"),
        Stage::Histogram { interval_ns } => {
            let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
            for record in &found {
                *counts.entry(record.time_ns.unwrap().div_euclid(*interval_ns) * interval_ns).or_default() += 1;
            }
            counts.into_iter().map(|(begins, count)| Row::Interval(begins, count)).collect()
        }
    }
}

/// All queries, each without and with a time range.
fn queries(texts: &[&str]) -> Vec<Query> {
    let mut queries = Vec::new();
    for text in texts {
        let whole = query(text);
        let times = [
            (None, None),
            (Some(TODAY - HOUR), Some(TODAY + HOUR)),
            (Some(TODAY + 17), None),
            (Some(TODAY - SECOND), Some(TODAY + 90 * SECOND + 1)),
            (Some(TODAY + SECOND), Some(TODAY + 3 * SECOND)),
        ];
        queries.extend(times.map(|(since_ns, until_ns)| Query { since_ns, until_ns, ..whole.clone() }));
        queries.push(Query { limit: Some(7), ..whole });
    }
    queries
}

fn check(answers: &SqliteReader, all: &[Record<'static>], state: &str) {
    for query in queries(&QUERIES) {
        assert!(expected(all, &query) == records(answers, &query), "{state}: {query:?}");
    }
    for query in queries(&COUNTS) {
        if query.limit.is_none() {
            assert_eq!(expected_counts(all, &query), ask(answers, &query).unwrap(), "{state}: {query:?}");
        }
    }
}

#[test]
fn each_record_of_a_trace_is_found_once_while_indexing_continues() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut chance = SeededRandom(2);
    let mut all: Vec<_> = (0..700).map(|number| chance.record(number)).collect();
    let mut store = open(folder.path(), &hand);
    write(&mut store, &all);
    close(store);

    let of_traces: Vec<_> = QUERIES.into_iter().filter(|text| text.contains("trace_id")).collect();
    let mut store = open_with(folder.path(), &hand, Indexing::Background);
    for part in 1..40 {
        hand.set(TODAY + part / 20 * DAY);
        let more: Vec<_> = (0..300).map(|_| chance.record(all.len())).collect();
        write(&mut store, &more);
        all.extend(more);
        if part % 13 == 0 {
            indexed(&store.reader());
        }
        for text in &of_traces {
            let query = query(text);
            assert!(expected(&all, &query) == records(&store.reader(), &query), "part {part}: {text}");
        }
    }
    indexed(&store.reader());
    check(&store.reader(), &all, "all of an index");
}

#[test]
fn answers_equal_those_of_a_scan_with_no_partial_and_complete_index() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut chance = SeededRandom(1);
    let mut all: Vec<_> = (0..1500).map(|number| chance.record(number)).collect();
    let mut store = open(folder.path(), &hand);
    write(&mut store, &all);
    check(&store.reader(), &all, "no index");

    close(store);
    let store = open_with(folder.path(), &hand, Indexing::Background);
    indexed(&store.reader());
    check(&store.reader(), &all, "all of an index");
    close(store);

    let mut store = open(folder.path(), &hand);
    let more: Vec<_> = (1500..2500).map(|number| chance.record(number)).collect();
    write(&mut store, &more);
    all.extend(more);
    assert_eq!(1000, store.reader().stats().unwrap().unindexed_rows);
    check(&store.reader(), &all, "half of an index");
    close(store);

    // Records in three files, with overlapping times.
    hand.set(TODAY + DAY);
    let mut store = open_with(folder.path(), &hand, Indexing::Background);
    let more: Vec<_> = (2500..3000).map(|number| chance.record(number)).collect();
    write(&mut store, &more);
    all.extend(more);
    hand.set(TODAY + 2 * DAY);
    let more: Vec<_> = (3000..3500).map(|number| chance.record(number)).collect();
    write(&mut store, &more);
    all.extend(more);
    check(&store.reader(), &all, "three files, while they are indexed");
    indexed(&store.reader());
    check(&store.reader(), &all, "three files");
    close(store);
}

#[test]
fn an_answer_is_complete_while_records_arrive_and_are_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open_with(folder.path(), &ManualClock::at(TODAY), Indexing::Background);
    let answers = store.reader();
    let deadline = Instant::now() + Duration::from_secs(4);
    let mut written = 0;
    while Instant::now() < deadline {
        written += write(&mut store, &vec![Record { trace_id: Some("t".into()), ..said(TODAY, "word") }; 150]).stored;
        for text in ["word", "trace_id=t", "logger=shop level=20"] {
            let found = records(&answers, &Query { limit: Some(u64::MAX), ..query(text) });
            assert_eq!(written, found.len() as u64, "{text}");
        }
    }
    assert!(answers.stats().unwrap().unindexed_rows < written, "nothing was indexed");
    close(store);
}

#[test]
fn words_too_frequent_for_a_list_are_still_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open_with(folder.path(), &ManualClock::at(TODAY), Indexing::Background);
    let often: Vec<_> =
        (0..25_000).map(|at| Record { trace_id: Some("t".into()), ..said(TODAY + at % 100, "often said") }).collect();
    write(&mut store, &often);
    indexed(&store.reader());
    write(&mut store, &often);

    for text in ["often", "trace_id=t", "logger=shop", "logger=shop level=20"] {
        let found = records(&store.reader(), &query(text));
        assert_eq!(50_000, found.len(), "{text}");
        assert!(found.is_sorted_by_key(|record| std::cmp::Reverse(record.time_ns)));
    }
    assert_eq!(
        vec![Row::Count(Some("shop".to_owned()), 50_000)],
        ask(&store.reader(), &query("often | count by logger")).unwrap()
    );
    close(store);
}

/// Waits until the index of a file is complete, and returns its path.
fn finished(folder: &Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    until("an index is finished", || {
        let ask = |index: Connection| index.query_row("SELECT finished FROM progress", [], |row| row.get(0));
        path.exists() && Connection::open(&path).and_then(ask).unwrap_or(false)
    });
    path
}

#[test]
fn the_index_of_a_sealed_file_is_finished_and_needs_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open_with(folder.path(), &hand, Indexing::Background);
    write(&mut store, &[said(1, "first")]);
    hand.set(TODAY + DAY);
    write(&mut store, &[said(2, "second")]);

    store.maintain().unwrap();
    finished(folder.path(), "2026-11-22.index");
    until("no log is left", || !folder.path().join("2026-11-22.index-wal").exists());
    wait_until_store_is_sealed(&mut store, folder.path());
    assert_eq!(["first"], messages(&store.reader(), "first").as_slice());
    close(store);
}

fn wait_until_store_is_sealed(store: &mut logspool_server::stores::sqlite::SqliteStore, folder: &Path) {
    until("the file is put away", || {
        store.maintain().unwrap();
        !folder.join("2026-11-22.sqlite-wal").exists()
    });
}

#[test]
fn a_damaged_or_foreign_index_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let index = folder.path().join("2026-11-22.index");
    let mut store = open_with(folder.path(), &hand, Indexing::Background);
    write(&mut store, &[said(1, "word")]);
    indexed(&store.reader());
    close(store);

    let change = |sql: &str| Connection::open(&index).unwrap().execute_batch(sql).unwrap();
    let damages: [(&str, &dyn Fn()); 5] = [
        ("text", &|| fs::write(&index, "no database".repeat(999)).unwrap()),
        ("nothing", &|| fs::write(&index, "").unwrap()),
        ("another file's", &|| change("UPDATE progress SET identity = identity + 1")),
        ("ahead", &|| change("UPDATE progress SET indexed_to = 2")),
        ("a newer version", &|| change("PRAGMA user_version = 2")),
    ];
    for (what, damage) in damages {
        damage();
        let store = open(folder.path(), &hand);
        assert_eq!(["word"], messages(&store.reader(), "word").as_slice(), "{what}");
        assert_eq!(1, store.reader().stats().unwrap().unindexed_rows, "{what}");
        close(store);
        let store = open_with(folder.path(), &hand, Indexing::Background);
        let whole = "SELECT indexed_to = 1 FROM progress, words WHERE words MATCH 'word'";
        until(what, || {
            let ask = |index: Connection| index.query_row(whole, [], |row| row.get(0));
            Connection::open(&index).and_then(ask).unwrap_or(false)
        });
        indexed(&store.reader());
        assert_eq!(["word"], messages(&store.reader(), "word").as_slice(), "{what}");
        close(store);
    }
}

#[test]
fn the_index_of_a_damaged_file_ends_before_the_damage_and_blocks_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    let many: Vec<_> = (0..12_000).map(|at| said(TODAY + at, &format!("record {at:05}"))).collect();
    write(&mut store, &many);
    hand.set(TODAY + DAY);
    store.maintain().unwrap();
    close(store);
    damage_page_of(&folder.path().join("2026-11-22.sqlite"), "record 11000");
    let path = folder.path().join("2026-11-22.index");

    let mut store = open_with(folder.path(), &hand, Indexing::Background);
    let indexed_to = || {
        let ask = |index: Connection| index.query_row("SELECT indexed_to FROM progress", [], |row| row.get(0));
        if path.exists() { Connection::open(&path).and_then(ask).unwrap_or(0) } else { 0 }
    };
    until("the sound part is indexed", || indexed_to() == 10_000);
    // Kept open, so that no other file gets its inode number.
    let index = fs::File::open(&path).unwrap();
    write(&mut store, &[said(TODAY + DAY, "of today")]);
    indexed(&store.reader());
    // Several rounds of the index thread.
    let deadline = Instant::now() + Duration::from_secs(3);
    while Instant::now() < deadline {
        let now = fs::metadata(&path).expect("the index stays");
        assert_eq!(index.metadata().unwrap().ino(), now.ino(), "the index is made again");
        std::thread::sleep(Duration::from_millis(10));
    }

    assert_eq!(10_000, indexed_to());
    let today = Query { since_ns: Some(TODAY + DAY), ..query("today") };
    assert_eq!(1, records(&store.reader(), &today).len());
    close(store);
}

/// Overwrites the page that contains a text.
fn damage_page_of(path: &Path, text: &str) {
    let bytes = fs::read(path).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("the text is there");
    let page_bytes = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0xff; 512], (at / page_bytes * page_bytes) as u64).unwrap();
}
