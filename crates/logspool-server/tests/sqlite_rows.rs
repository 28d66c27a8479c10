//! Records come back from the SQLite store unchanged, in the order of their times.

use crate::sqlite_support;

use logspool_server::query::Query;
use logspool_server::record::{LinePart, Record};
use logspool_server::stores::{QueryReader, RowFlow};
use logspool_server::value::Value;
use sqlite_support::{
    DAY, HOUR, ManualClock, Row, SECOND, TODAY, ask, close, messages, open, query, records, said, stored, write,
};

fn full(text: &str) -> Record<'static> {
    let text = || Some(text.to_owned().into());
    Record {
        time_ns: Some(TODAY + 1),
        arrived_ns: Some(TODAY + 2),
        level: u16::MAX,
        sent_level: None,
        lacks_zone: false,
        part: LinePart::Whole,
        logger: text().unwrap_or_default(),
        message: text().unwrap_or_default(),
        file: text(),
        line: Some(u32::MAX),
        function: text(),
        host: text(),
        process: Some(u64::MAX),
        process_name: text(),
        thread: Some(1 << 63),
        thread_name: text(),
        task: text(),
        trace_id: text(),
        span_id: text(),
        exception: text(),
        stack: text(),
        fields: text().map(|text| vec![(text.clone(), Value::Text(text))]).unwrap_or_default(),
    }
}

#[test]
fn every_field_is_returned_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    for text in [
        "plain",
        "",
        "\0",
        "a\0b",
        "\u{1}\u{7f}\u{9b}\u{202e}\r\n\t",
        "ü € \u{1F600} \u{FFFD} \u{10FFFF}",
        "'); DROP TABLE records; --",
        "\" OR 1=1 -- ?1 :x @y $z % _ * NULL",
        "{\"a\": [1, \"}\"]}",
    ] {
        let mut expected = full(text);
        // An empty host is stored as no host.
        expected.host = expected.host.filter(|host| !host.is_empty());
        let alone = Record {
            time_ns: Some(TODAY),
            arrived_ns: Some(TODAY),
            message: text.to_owned().into(),
            ..Record::default()
        };
        write(&mut store, &[expected.clone(), alone.clone()]);

        let mut found = records(&store.reader(), &Query { limit: Some(2), ..query("") });
        assert_eq!((Some(alone), Some(expected)), (found.pop(), found.pop()), "{text:?}");
        // Start with an empty store again, because the next round queries the newest records.
        close(store);
        std::fs::remove_dir_all(folder.path()).unwrap();
        store = open(folder.path(), &ManualClock::at(TODAY));
    }
}

#[test]
fn values_of_every_type_are_returned_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let list = vec![Value::Int(i64::MIN), Value::Float(0.1), Value::Bool(true), Value::Null, Value::text("\0")];
    let fields = vec![
        ("z".into(), Value::List(list)),
        ("a".into(), Value::Map(vec![("b".into(), Value::Int(i64::MAX)), ("".into(), Value::Null)])),
    ];
    let expected = Record { fields, ..said(TODAY, "m") };

    write(&mut store, std::slice::from_ref(&expected));

    assert_eq!(vec![expected], records(&store.reader(), &query("")));
}

#[test]
fn records_are_returned_newest_first_and_latest_arrival_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));

    write(&mut store, &[said(5, "b"), said(9, "a"), said(5, "c"), said(-3, "e"), said(i64::MIN, "f"), said(5, "d")]);

    assert_eq!(["a", "d", "c", "b", "e", "f"], messages(&store.reader(), "").as_slice());
}

#[test]
fn late_and_future_records_are_found_by_their_own_time_among_records_of_other_days() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    write(&mut store, &[said(TODAY, "first day"), said(TODAY + 2 * DAY, "future"), said(i64::MAX, "end of time")]);
    hand.set(TODAY + DAY);
    write(&mut store, &[said(TODAY + DAY, "second day"), said(TODAY - DAY, "late"), said(TODAY, "first day again")]);
    hand.set(TODAY + 2 * DAY);
    write(&mut store, &[said(TODAY + 2 * DAY, "third day"), said(i64::MIN, "begin of time")]);

    let answers = store.reader();
    let all =
        ["end of time", "third day", "future", "second day", "first day again", "first day", "late", "begin of time"];
    assert_eq!(all, messages(&answers, "").as_slice());
    let of_day = |since: i64| {
        let query = Query { since_ns: Some(since), until_ns: Some(since + DAY), ..query("") };
        records(&answers, &query).into_iter().map(|record| record.message.into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(vec!["late"], of_day(TODAY - DAY));
    assert_eq!(vec!["first day again", "first day"], of_day(TODAY));
    assert_eq!(vec!["third day", "future"], of_day(TODAY + 2 * DAY));
    assert_eq!(Vec::<String>::new(), of_day(TODAY + 3 * DAY));
}

#[test]
fn an_answer_ends_at_its_limit_and_when_its_reader_stops() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    for day in 0..3 {
        hand.set(TODAY + day * DAY);
        write(&mut store, &(0..100).map(|at| said(TODAY + day * DAY + at, "m")).collect::<Vec<_>>());
    }

    let answers = store.reader();
    for limit in [0, 1, 99, 100, 101, 250, 300, 301] {
        let found = records(&answers, &Query { limit: Some(limit), ..query("") });
        assert_eq!(limit.min(300), found.len() as u64);
        assert!(found.is_sorted_by_key(|record| std::cmp::Reverse(record.time_ns)));
    }
    let mut count = 0;
    let mut seven = |_: logspool_server::stores::AnswerRow<'_>| {
        count += 1;
        if count == 7 { RowFlow::Stop } else { RowFlow::Continue }
    };
    answers.run(&query(""), &mut seven).unwrap();
    assert_eq!(7, count);
}

#[test]
fn many_records_of_one_time_are_read_in_pages_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    let all: Vec<_> = (0..5000).map(|number| format!("{number:04}")).collect();
    write(&mut store, &all.iter().map(|message| said(TODAY, message)).collect::<Vec<_>>());

    assert_eq!(all, stored(&store));
}

#[test]
fn counts_are_sorted_from_the_greatest_and_intervals_from_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let hand = ManualClock::at(TODAY);
    let mut store = open(folder.path(), &hand);
    let of =
        |time_ns: i64, logger: &'static str, level: u16| Record { logger: logger.into(), level, ..said(time_ns, "m") };
    write(&mut store, &[of(0, "a", 20), of(-1, "b", 20), of(HOUR, "b", 40)]);
    hand.set(TODAY + DAY);
    write(&mut store, &[of(HOUR + SECOND, "c", 40), of(HOUR + 2, "b", 20)]);

    let answers = store.reader();
    let count = |value: &str, count| Row::Count(Some(value.to_owned()), count);
    assert_eq!(vec![count("b", 3), count("a", 1), count("c", 1)], ask(&answers, &query("| count by logger")).unwrap());
    assert_eq!(vec![count("20", 3), count("40", 2)], ask(&answers, &query("| count by level")).unwrap());
    assert_eq!(vec![Row::Count(None, 5)], ask(&answers, &query("| count by host")).unwrap());
    let hours = vec![Row::Interval(-HOUR, 1), Row::Interval(0, 1), Row::Interval(HOUR, 3)];
    assert_eq!(hours, ask(&answers, &query("| histogram 1h")).unwrap());
    let seconds = [(-SECOND, 1), (0, 1), (HOUR, 2), (HOUR + SECOND, 1)].map(|(at, count)| Row::Interval(at, count));
    assert_eq!(seconds.to_vec(), ask(&answers, &query("| histogram 1s")).unwrap());
    let limited = Query { limit: Some(1), ..query("| count by logger") };
    assert_eq!(vec![count("b", 3)], ask(&answers, &limited).unwrap());
}

#[test]
fn a_query_that_takes_too_long_ends_with_an_error_and_the_writer_continues() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path(), &ManualClock::at(TODAY));
    write(&mut store, &(0..20_000).map(|at| said(at, "m")).collect::<Vec<_>>());

    let hurried = store.reader().with_deadline(std::time::Duration::ZERO);
    let error = ask(&hurried, &query("message~\"x.*y\" | count by message")).unwrap_err().to_string();

    assert!(error.contains("takes too long"), "{error}");
    assert_eq!(1, write(&mut store, &[said(1, "m")]).stored);
}
