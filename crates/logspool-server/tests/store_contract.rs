//! Every store of the table meets the same contract: a repeated batch is stored once, queries find its records, they
//! are still there after the store is reopened, and an invalid address is refused with the valid form.

use crate::postgres;

use std::sync::Arc;
use std::time::Duration;

use logspool_server::batch::{Arrival, Batch};
use logspool_server::cancel::CancelToken;
use logspool_server::delivery::{Chunk, Delivery, Outcome};
use logspool_server::limits::parts::Retention;
use logspool_server::pipeline::RunningQuery;
use logspool_server::query::{Expression, Query, parse};
use logspool_server::query_memory::CountMemory;
use logspool_server::record::Record;
use logspool_server::remarks::{AskedQuery, LeftOut, Remarks};
use logspool_server::stores::kind::{StoreKind, StoreSettings};
use logspool_server::stores::private::Readers;
use logspool_server::stores::{self, AnswerProgress, AnswerRow, QueryReader, RowFlow, StoreAddress};
use logspool_server::value::Value;
use postgres::batches::now_ns;

/// The address of a new, empty store. `None`: tests run without its server.
fn new_address(kind: &StoreKind, folder: &tempfile::TempDir) -> Option<StoreAddress> {
    let text = match kind.name {
        "sqlite" => format!("sqlite:{}", folder.path().join("store").display()),
        "postgres" => postgres::database()?.url,
        other => panic!("the store {other} needs an address in this test"),
    };
    Some(text.parse().unwrap())
}

fn settings() -> StoreSettings {
    StoreSettings { retention: Retention::default(), readers: Readers::Owner, query_time: Duration::from_secs(30) }
}

/// Records 1 to 3 of a stream, each with another level.
fn records() -> Vec<Record<'static>> {
    let arrived_ns = now_ns();
    let record = |(number, level): (i64, u16)| Record {
        time_ns: Some(arrived_ns - 1_000_000_000 + number),
        arrived_ns: Some(arrived_ns),
        level,
        logger: "shop".into(),
        message: format!("order {number} \u{e4}\0\"").into(),
        fields: vec![("order".into(), Value::Int(number))],
        ..Record::default()
    };
    (1..).zip([20, 30, 40]).map(record).collect()
}

fn batch(records: &[Record<'_>]) -> Batch {
    let mut batch = Batch::default();
    for record in records {
        batch.push(record, Arrival { time_ns: record.arrived_ns.unwrap_or_else(now_ns), host: "" });
    }
    batch
}

/// Records 1 to 3 of a stream.
fn delivery(records: &[Record<'_>]) -> Arc<Delivery> {
    let batch = batch(records);
    let chunk = Chunk { stream: "client".to_owned(), epoch: 1, first: 1, last: 3, end: false };
    Delivery::new(batch, Some(chunk), 1, None).0
}

/// The records of a query's answer.
fn find(reader: &dyn QueryReader, text: &str) -> Vec<Record<'static>> {
    let Expression { filter, stage, .. } = parse(text, now_ns()).unwrap();
    let mut found = Vec::new();
    let each = &mut |row: AnswerRow<'_>| {
        let AnswerRow::Record(record) = row else { panic!("expected a record, found {row:?}") };
        found.push(record.into_owned());
        RowFlow::Continue
    };
    reader.run(&Query { filter, stage, since_ns: None, until_ns: None, limit: None }, each).unwrap();
    found
}

#[test]
fn a_repeated_batch_is_stored_once_and_found_even_after_the_store_is_reopened() {
    for kind in stores::ALL {
        let folder = tempfile::tempdir().unwrap();
        let Some(address) = new_address(kind, &folder) else { continue };
        let records = records();
        let newest_first: Vec<_> = records.iter().rev().cloned().collect();
        let (mut store, reader) = address.open(&settings()).unwrap();

        let first = store.write(&[delivery(&records)]).unwrap();
        let second = store.write(&[delivery(&records)]).unwrap();
        assert_eq!((3, 0, 0, 0), (first.stored, first.repeated, first.expired, first.quarantined), "{}", kind.name);
        assert_eq!((0, 3), (second.stored, second.repeated), "{}", kind.name);
        assert_eq!([vec![Outcome::Committed], vec![Outcome::Committed]], [first.outcomes, second.outcomes]);
        assert_eq!(newest_first, find(&*reader, ""), "{}", kind.name);
        assert_eq!(newest_first[..2], find(&*reader, "level>=warning order>1"), "{}", kind.name);
        store.close().unwrap();

        assert_eq!(newest_first, find(&*address.open_for_queries().unwrap(), ""), "{}", kind.name);
        let (mut store, reader) = address.open(&settings()).unwrap();
        let third = store.write(&[delivery(&records)]).unwrap();
        assert_eq!((0, 3), (third.stored, third.repeated), "{}", kind.name);
        assert_eq!(newest_first, find(&*reader, "logger=shop"), "{}", kind.name);
        store.close().unwrap();
    }
}

/// A store of each kind that has these records, with its reader.
fn with_each_store(records: &[Record<'static>], check: impl Fn(&str, &dyn QueryReader)) {
    for kind in stores::ALL {
        let folder = tempfile::tempdir().unwrap();
        let Some(address) = new_address(kind, &folder) else { continue };
        let (mut store, reader) = address.open(&settings()).unwrap();
        let written = store.write(&[Delivery::new(batch(records), None, 1, None).0]).unwrap();

        assert_eq!((records.len() as u64, 0), (written.stored, written.quarantined), "{}", kind.name);
        check(kind.name, &*reader);
        store.close().unwrap();
    }
}

fn messages(records: &[Record<'_>]) -> String {
    records.iter().map(|record| &*record.message).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_time_of_arrival_can_be_queried() {
    let now = now_ns();
    let minute = 60_000_000_000;
    let record = |message: &'static str, time_ns, arrived_ns| Record {
        time_ns: Some(time_ns),
        arrived_ns: Some(arrived_ns),
        message: message.into(),
        ..Record::default()
    };
    let records = [
        record("right", now - 30 * minute, now - 30 * minute + 1),
        record("behind", now - 100 * minute, now - 2 * minute),
        record("ahead", now + 60 * minute, now - minute),
        record("extreme", i64::MIN, now - 90 * minute),
    ];
    with_each_store(&records, |kind, reader| {
        for (expected, text) in [
            ("ahead behind", "arrived>-10m"),
            ("right extreme", "arrived<=-10m"),
            ("behind extreme", "arrival_delay>5m"),
            ("ahead", "arrival_delay<-5m"),
            ("right", "arrival_delay=1ns"),
            ("ahead right", "not arrival_delay>1ns"),
            ("", "arrived=now"),
            ("", "arrived~5"),
        ] {
            // A number has no pattern.
            let Ok(_) = parse(text, now) else {
                assert_eq!("arrived~5", text);
                continue;
            };
            assert_eq!(expected, messages(&find(reader, text)), "{kind}: {text}");
        }
        let found = find(reader, "");
        assert_eq!(Some(now - minute), found[0].arrived_ns, "{kind}");
    });
}

#[test]
fn integers_above_63_bits_are_compared_as_numbers() {
    let now = now_ns();
    let record = |(place, n): (usize, Value<'static>)| Record {
        time_ns: Some(now - place as i64),
        message: place.to_string().into(),
        process: Some([7, 1 << 63, u64::MAX, 0][place % 4]),
        fields: vec![("n".into(), n)],
        ..Record::default()
    };
    let values = [
        Value::Int(i64::MAX),
        Value::text("9223372036854775808"),
        Value::text("18446744073709551616"),
        Value::text("-9223372036854775809"),
        Value::Float(1e19),
        Value::text("7"),
        Value::text("1000000000000000000"),
        Value::Int(6),
    ];
    let records: Vec<_> = values.into_iter().enumerate().map(record).collect();
    with_each_store(&records, |kind, reader| {
        for (expected, text) in [
            ("0 1 2 4 7", "n>5"),
            ("1 2 4", "n>9223372036854775807"),
            ("1 2 4", "n>=9223372036854775808"),
            ("1", "n=9223372036854775808"),
            ("1", "n=\"9223372036854775808\""),
            ("2", "n>1e19"),
            ("1 4", "n>9223372036854775807 n<18446744073709551616"),
            ("3", "n<0"),
            ("3", "n<=-9223372036854775809"),
            ("0 1 3 4 7", "n<18446744073709551616"),
            ("5", "n=\"7\""),
            ("0 2 3 4 5 6 7", "n!=9223372036854775808"),
            ("1 2 5 6", "pid>7"),
            ("1 2 5 6", "pid>=9223372036854775808"),
            ("2 6", "pid=18446744073709551615"),
            ("0 1 3 4 5 7", "pid<18446744073709551615"),
            ("0 3 4 7", "pid<9223372036854775808"),
        ] {
            assert_eq!(expected, messages(&find(reader, text)), "{kind}: {text}");
        }
    });
}

#[test]
fn the_newest_record_of_each_value_is_found() {
    let now = now_ns();
    let record = |(number, host, status): (i64, Option<&'static str>, i64)| Record {
        time_ns: Some(now - number),
        message: number.to_string().into(),
        host: host.map(Into::into),
        fields: vec![("status".into(), Value::Int(status))],
        ..Record::default()
    };
    let sent = [(5, Some("a"), 200), (1, Some("a"), 503), (3, Some("b"), 200), (4, None, 404), (2, None, 200)];
    with_each_store(&sent.map(record), |kind, reader| {
        for (expected, text) in [
            ("1 2 3", "| last by host"),
            ("1 2 4", "| last by status"),
            ("2 3 5", "status=200 | last by host"),
            ("1", "| last by level"),
            ("", "nothing | last by host"),
        ] {
            assert_eq!(expected, messages(&find(reader, text)), "{kind}: {text}");
        }
    });
}

/// The rows of an answer as text, and the remarks on it.
fn answer(reader: &dyn QueryReader, text: &str, limit: u64) -> (String, Remarks) {
    let Expression { filter, stage, pipeline } = parse(text, now_ns()).unwrap();
    let query = Query { filter, stage, since_ns: None, until_ns: None, limit: Some(limit) };
    let asked = AskedQuery::new(query, now_ns()).with_pipeline(pipeline);
    let mut rows = Vec::new();
    let mut each = |row: AnswerRow<'_>| {
        rows.push(match row {
            AnswerRow::Record(record) => record.message.into_owned(),
            AnswerRow::Count(value, count) => format!("{}:{count}", value.unwrap_or("-")),
            AnswerRow::Interval(time, count) => format!("{}:{count}", time / 60_000_000_000),
            AnswerRow::Row(values) => {
                let values: Vec<_> = values.iter().map(|(_, value)| serde_json::to_string(value).unwrap()).collect();
                values.join(":")
            }
        });
        RowFlow::Continue
    };
    let cancel = CancelToken::default();
    let mut found = RunningQuery::begin(reader, &asked, &CountMemory::default(), &cancel).unwrap();
    while found.resume(&mut each).unwrap() == AnswerProgress::Paused {}
    let shown = rows.len() as u64;
    (rows.join(" "), found.remarks(reader, &asked, shown, &cancel))
}

#[test]
fn an_answer_says_how_many_rows_its_limit_cut_off() {
    let record = |number: i64| Record {
        time_ns: Some(number * 60_000_000_000),
        message: number.to_string().into(),
        host: Some(if number < 4 { "a".into() } else { number.to_string().into() }),
        ..Record::default()
    };
    let sent: Vec<_> = (0..7).map(record).collect();
    with_each_store(&sent, |kind, reader| {
        for (expected, left_out, text, limit) in [
            ("6 5", LeftOut::Rows(5), "", 2),
            ("6 5", LeftOut::Rows(2), "host<a or 3", 2),
            ("6 5 4", LeftOut::Nothing, "host!=a", 3),
            ("6 5 4", LeftOut::Nothing, "host!=a", 4),
            ("a:4 4:1", LeftOut::Rows(2), "| count by host", 2),
            ("a:4 4:1 5:1 6:1", LeftOut::Nothing, "| count by host", 4),
            ("6 5", LeftOut::Rows(2), "| last by host", 2),
            // The newest intervals stay, in their order.
            ("4:1 5:1 6:1", LeftOut::Rows(4), "| histogram 1m", 3),
            ("0:1 1:1 2:1 3:1", LeftOut::Nothing, "host=a | histogram 1m", 4),
        ] {
            let remarks = Remarks { left_out, ..Remarks::default() };
            assert_eq!((expected.to_owned(), remarks), answer(reader, text, limit), "{kind}: {text}");
        }
    });
}

#[test]
fn words_of_scripts_without_spaces_are_found_inside_others() {
    let record = |(number, message): (i64, &'static str)| Record {
        time_ns: Some(number),
        message: message.into(),
        ..Record::default()
    };
    let sent = [(1, "商品を追加しました"), (2, "注文 商品 ok"), (3, "สินค้าหมด"), (4, "other")];
    with_each_store(&sent.map(record), |kind, reader| {
        for (expected, text) in [
            ("注文 商品 ok 商品を追加しました", "商品"),
            ("注文 商品 ok", "商品 ok"),
            ("商品を追加しました", "追加 not other"),
            ("สินค้าหมด", "หมด"),
            ("", "商店"),
        ] {
            assert_eq!(expected, answer(reader, text, 100).0, "{kind}: {text}");
        }
    });
}

#[test]
fn records_from_the_future_are_counted_but_not_shown() {
    const HOUR: i64 = 3_600_000_000_000;
    let now = now_ns();
    let record = |(message, age): (&'static str, i64)| Record {
        time_ns: Some(now - age),
        arrived_ns: Some(now),
        message: message.into(),
        ..Record::default()
    };
    let sent = [("past", HOUR), ("ahead a", -HOUR), ("ahead b", -30 * HOUR)].map(record);
    with_each_store(&sent, |kind, reader| {
        for (expected, future, text) in [
            ("past", 2, ""),
            ("", 1, "b"),
            ("-:1", 2, "| count by host"),
            ("past", 2, "| last by host"),
            ("ahead b ahead a", 0, "time>now"),
            ("ahead a past", 0, "time<2100-01-01 not b"),
        ] {
            let (rows, remarks) = answer(reader, text, 100);
            assert_eq!((expected, future), (&*rows, remarks.future), "{kind}: {text}");
        }
    });
}

#[test]
fn likely_mistakes_in_a_query_are_named() {
    let record = |(number, service): (i64, &'static str)| Record {
        message: number.to_string().into(),
        host: Some("web-1".into()),
        fields: vec![
            ("service".into(), Value::text(service)),
            ("billed".into(), if number < 2 { Value::Int(number * 1_000) } else { Value::text("1200") }),
        ],
        ..Record::default()
    };
    let sent = [(0, "checkout"), (1, "shop"), (2, "checkout"), (3, "shop")].map(record);
    with_each_store(&sent, |kind, reader| {
        for (expected, text) in [
            (vec!["no record of this time range has a field `mesage`: did you mean `message`?"], "mesage~\"x\""),
            (vec!["no record of this time range has a field `sevrice`: did you mean `service`?"], "not (sevrice!=a)"),
            (vec!["no record of this time range has a field `quux`"], "quux in (a, b) checkout"),
            (vec!["no record of this time range has a field `servce`: did you mean `service`?"], "| count by servce"),
            (
                vec!["no record of this time range has service=\"chekout\": did you mean service=\"checkout\"?"],
                "service=chekout",
            ),
            (vec!["no record of this time range has host=\"web-2\": did you mean host=\"web-1\"?"], "host=web-2"),
            (vec!["no record of this time range has service=\"zzz\""], "service=zzz"),
            (
                vec![
                    "2 records have text in `billed`, which is not compared with a number: they are left out of billed>",
                ],
                "billed>500",
            ),
            (
                vec![
                    "1 records have text in `billed`, which is not compared with a number: they are left out of billed<=",
                ],
                "billed<=500 service=shop | count by service",
            ),
            (vec!["no record of this time range matches nothing"], "nothing"),
            (vec!["no record of this time range matches nothing"], "service=shop host=web-1 nothing"),
            (vec!["no record of this time range matches all conditions together"], "service=shop billed=0"),
            (
                vec!["no record of this time range has a field `servce`: did you mean `service`?"],
                "| stats count by servce, host",
            ),
            (vec![], "| parse message /(?<x>.)/ | let y = x + 1 | count by x, y"),
            (vec![], "billed=\"1200\""),
            (vec![], "| count by service"),
            (vec![], "| count by host"),
        ] {
            assert_eq!(expected, answer(reader, text, 100).1.warnings, "{kind}: {text}");
        }
    });
}

#[test]
fn an_invalid_address_is_refused_with_the_valid_form() {
    let refused = |text: &str| match text.parse::<StoreAddress>() {
        Ok(address) => panic!("{text} is accepted as {address}"),
        Err(error) => error,
    };
    let unknown = refused("mongo://host/logs");
    for kind in stores::ALL {
        assert!(unknown.contains(kind.form), "{unknown}");
        for scheme in kind.schemes {
            for text in [format!("{scheme}:"), format!("{scheme}://")] {
                let error = refused(&text);
                assert!(error.contains(kind.form), "{text}: {error}");
            }
            let misspelled = refused(&format!("{scheme}x:somewhere"));
            assert!(misspelled.contains(&format!("did you mean {scheme}:?")), "{misspelled}");
        }
    }
}
