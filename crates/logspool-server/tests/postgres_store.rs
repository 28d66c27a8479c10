//! How the PostgreSQL store handles batches.

use crate::postgres;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use logspool_server::batch::{Arrival, Batch};
use logspool_server::delivery::Outcome::{Committed, Dropped};
use logspool_server::delivery::{Chunk, Delivery, DropReason};
use logspool_server::intake::Intake;
use logspool_server::metrics::Metrics;
use logspool_server::origin::Origin;
use logspool_server::query::Query;
use logspool_server::record::{LinePart, Record};
use logspool_server::stores::postgres::{PostgresConfig, PostgresReader, PostgresWriter};
use logspool_server::stores::{GapCounts, Store, StoreError, WriteResult};
use logspool_server::value::Value;
use postgres::batches::{all_records_query, chunk, config, now_ns, records, unnumbered, write, writer};
use postgres::{DEADLINE, Database, SMALL, Server, database};

const DAY_NS: i64 = 86_400_000_000_000;

fn message(text: &str) -> Record<'_> {
    Record { message: text.into(), ..Record::default() }
}

/// Sorts the fields, because PostgreSQL stores them in its own order.
fn sorted(mut record: Record<'static>) -> Record<'static> {
    record.fields.sort_by(|left, right| left.0.cmp(&right.0));
    record
}

#[test]
fn every_field_is_read_back_unchanged() {
    let Some(database) = database() else { return };
    let nasty = "'; DROP TABLE logspool.records; -- \\ \" \u{1}\r\n\t\u{1b}[31m \0\0\u{1}\u{2} \u{202E} ü\u{1F600}";
    let text = |name: &str| Some(format!("{name} {nasty}").into());
    let full = Record {
        time_ns: Some(-5),
        arrived_ns: Some(i64::MAX),
        level: u16::MAX,
        sent_level: None,
        lacks_zone: false,
        part: LinePart::Whole,
        logger: nasty.into(),
        message: nasty.into(),
        file: text("file"),
        line: Some(u32::MAX),
        function: text("function"),
        host: text("host"),
        process: Some(u64::MAX),
        process_name: text("process"),
        thread: Some(1 << 63),
        thread_name: text("thread"),
        task: text("task"),
        trace_id: text("trace"),
        span_id: text("span"),
        exception: text("exception"),
        stack: Some("".into()),
        fields: vec![
            ("".into(), Value::Null),
            ("a".into(), Value::Int(i64::MIN)),
            ("b".into(), Value::Float(-0.125)),
            ("c".into(), Value::List(vec![Value::Bool(true), Value::Bool(false), Value::text("\\u0000")])),
            (nasty.into(), Value::Map(vec![(nasty.into(), Value::text(nasty))])),
        ],
    };
    let bare = Record { time_ns: Some(-6), arrived_ns: Some(-7), ..Record::default() };
    let mut store = writer(&database.url);

    let written = store.write(&[unnumbered(&[full.clone(), bare.clone()])]).unwrap();

    assert_eq!(WriteResult { outcomes: vec![Committed], stored: 2, ..WriteResult::default() }, written);
    let found = records(&PostgresReader::new(&config(&database.url)), &all_records_query());
    assert_eq!(vec![sorted(full), bare], found.into_iter().map(sorted).collect::<Vec<_>>());
}

#[test]
fn a_stream_is_stored_exactly_once_over_resends_trims_gaps_and_epochs() {
    let older = Dropped(DropReason::OlderEpoch);
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    let written = |outcomes: &[_], stored, repeated, expired| WriteResult {
        outcomes: outcomes.to_vec(),
        stored,
        repeated,
        expired,
        quarantined: 0,
    };
    for (expected, group) in [
        (written(&[Committed, Committed], 10, 0, 0), vec![chunk("s", 1, 1, 5), chunk("s", 1, 6, 10)]),
        (written(&[Committed], 0, 5, 0), vec![chunk("s", 1, 6, 10)]),
        (written(&[Committed, Committed], 3, 3, 0), vec![chunk("s", 1, 8, 12), chunk("t", 7, 1, 1)]),
        (written(&[Committed], 2, 0, 0), vec![chunk("s", 1, 20, 21)]),
        (written(&[Committed], 3, 2, 0), vec![chunk("s", 1, 11, 15)]),
        (written(&[Committed, older], 2, 0, 4), vec![chunk("s", 2, 1, 2), chunk("s", 1, 22, 23)]),
    ] {
        // One writer knows the marks, another one has to read them.
        assert_eq!(expected, store.write(&group).unwrap());
        let again = writer(&database.url).write(&group).unwrap();
        assert_eq!((expected.outcomes, 0), (again.outcomes, again.stored));
    }

    assert_eq!(20, database.number("SELECT count(*) FROM logspool.records"));
    assert_eq!(20, database.number("SELECT count(DISTINCT message) FROM logspool.records"));
}

#[test]
fn a_stream_that_moves_between_two_services_is_stored_once() {
    let Some(database) = database() else { return };
    let (mut one, mut other) = (writer(&database.url), writer(&database.url));
    one.write(&[chunk("s", 1, 1, 10)]).unwrap();
    other.write(&[chunk("s", 1, 11, 20)]).unwrap();
    other.write(&[chunk("new", 1, 1, 5)]).unwrap();

    // The marks that the first writer knows are out of date now.
    let written = one.write(&[chunk("s", 1, 15, 25), chunk("new", 1, 1, 6)]).unwrap();

    assert_eq!((6, 11, 0), (written.stored, written.repeated, written.expired));
    assert_eq!(31, database.number("SELECT count(DISTINCT message) FROM logspool.records"));
    assert_eq!(31, database.number("SELECT count(*) FROM logspool.records"));
}

/// The end of a stream with these records.
fn end(stream: &str, last: u64) -> Arc<Delivery> {
    let empty = chunk(stream, 1, last + 1, last);
    let ended = Chunk { end: true, ..empty.chunk.clone().unwrap() };
    Delivery::new(empty.batch.clone(), Some(ended), 1, None).0
}

#[test]
fn the_mark_of_a_stream_stays_when_it_ends() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.write(&[chunk("s\0", 1, 1, 3)]).unwrap();

    assert_eq!(vec![Committed], store.write(&[end("s\0", 3)]).unwrap().outcomes);
    assert_eq!(1, database.number("SELECT count(*) FROM logspool.streams WHERE ended AND last = 3"));
    let late = writer(&database.url).write(&[chunk("s\0", 1, 1, 3)]).unwrap();
    assert_eq!((0, 3), (late.stored, late.repeated));
}

#[test]
fn the_mark_of_an_ended_stream_takes_at_most_200_bytes() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    // Names in a random order, as those of programs.
    let name = |number: u128| format!("{:032x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    for group in 0..20 {
        let streams = (1..=1000).map(|number| name(group * 1000 + number));
        let parts: Vec<_> = streams.flat_map(|stream| [chunk(&stream, 1, 1, 1), end(&stream, 1)]).collect();
        assert_eq!(1000, store.write(&parts).unwrap().stored);
    }

    let bytes = database.number("SELECT pg_total_relation_size('logspool.streams')");
    assert_eq!(20_000, database.number("SELECT count(*) FROM logspool.streams WHERE ended"));
    println!("a mark takes {} bytes", bytes / 20_000);
    assert!(bytes / 20_000 <= 200, "{} bytes", bytes / 20_000);
}

#[test]
fn a_service_that_was_cut_off_stores_nothing_again_after_the_stream_went_on_and_ended_at_another() {
    let Some(database) = database() else { return };
    let (mut cut_off, mut other) = (writer(&database.url), writer(&database.url));
    // It knows that the stream is new.
    cut_off.write(&[chunk("other", 1, 1, 1)]).unwrap();
    let waiting = [chunk("s", 1, 1, 1000), chunk("s", 1, 1001, 2000)];
    other.write(&waiting).unwrap();
    other.write(&[end("s", 2000)]).unwrap();

    let back = cut_off.write(&waiting).unwrap();

    assert_eq!((0, 2000, vec![Committed; 2]), (back.stored, back.repeated, back.outcomes));
    assert_eq!(2001, database.number("SELECT count(*) FROM logspool.records"));
}

#[test]
fn late_chunks_and_an_early_end_are_stored_once_over_two_services() {
    let Some(database) = database() else { return };
    let (mut one, mut other) = (writer(&database.url), writer(&database.url));
    let stored = |written: WriteResult| (written.stored, written.repeated);
    assert_eq!((100, 0), stored(one.write(&[chunk("s", 1, 101, 200)]).unwrap()));
    assert_eq!((0, 0), stored(other.write(&[end("s", 300)]).unwrap()));
    assert_eq!(Some(GapCounts { open: 200, expired: 0 }), one.gap_counts());

    // The mark that the first writer knows has another gap.
    assert_eq!((150, 150), stored(one.write(&[chunk("s", 1, 1, 100), chunk("s", 1, 51, 250)]).unwrap()));
    assert_eq!((50, 250), stored(other.write(&[chunk("s", 1, 1, 300)]).unwrap()));

    assert_eq!(Some(GapCounts::default()), other.gap_counts());
    assert_eq!(300, database.number("SELECT count(*) FROM logspool.records"));
    assert_eq!(300, database.number("SELECT count(DISTINCT message) FROM logspool.records"));
}

#[test]
fn a_record_that_the_server_refuses_is_quarantined_alone() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.maintain().unwrap();
    database.execute("ALTER TABLE logspool.records ADD CHECK (message NOT LIKE '%/13' AND message NOT LIKE '%/14')");

    let group = [chunk("s", 1, 1, 40), chunk("t", 1, 1, 13)];
    let written = store.write(&group).unwrap();

    assert_eq!((vec![Committed, Committed], 50, 3), (written.outcomes, written.stored, written.quarantined));
    assert_eq!(50, database.number("SELECT count(*) FROM logspool.records"));
    let refused = database.query("SELECT reason, record::jsonb ->> 'message' FROM logspool.quarantine ORDER BY 2");
    let messages: Vec<&str> = refused.iter().map(|row| row.get(1)).collect();
    assert_eq!(vec!["s/1/13", "s/1/14", "t/1/13"], messages);
    assert!(refused[0].get::<_, &str>(0).contains("violates check constraint"));
    // The record counts as delivered: its mark has changed.
    assert_eq!(0, writer(&database.url).write(&group).unwrap().stored);
    assert_eq!(3, database.number("SELECT count(*) FROM logspool.quarantine"));
}

#[test]
fn records_beyond_the_limits_of_the_server_are_quarantined_alone() {
    let Some(database) = database() else { return };
    // The key exceeds the limit of an index and cannot be compressed. The nesting exceeds the server's stack.
    let trace: String =
        (0..10_000_u32).map(|n| char::from_u32(0x4E00 + n.wrapping_mul(7919) % 20_000).unwrap()).collect();
    let depth = 20_000;
    let mut deep = Value::Null;
    for _ in 0..depth {
        deep = Value::List(vec![deep]);
    }
    // The value needs a deep stack here, too.
    let roomy = thread::Builder::new().stack_size(512 << 20).spawn(move || {
        let deep = Record { message: "deep".into(), fields: vec![("k\0".into(), deep)], ..Record::default() };
        let long = Record { message: "long".into(), trace_id: Some(trace.into()), ..Record::default() };
        unnumbered(&[message("before"), deep, message("between"), long, message("after")])
    });
    let group = [roomy.unwrap().join().unwrap()];
    let mut store = writer(&database.url);

    let written = store.write(&group).unwrap();

    assert_eq!((3, 2), (written.stored, written.quarantined));
    let found = database.query("SELECT reason, length(record) FROM logspool.quarantine ORDER BY 2");
    let reasons: Vec<&str> = found.iter().map(|row| row.get(0)).collect();
    assert!(reasons[0].contains("index row"), "{reasons:?}");
    assert!(reasons[1].contains("stack depth limit exceeded"), "{reasons:?}");
    assert!(found[1].get::<_, i32>(1) > 2 * depth);
}

#[test]
fn many_refused_records_need_no_more_messages_than_a_few() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    database.execute("ALTER TABLE logspool.records ADD CHECK (message NOT LIKE 'bad/%')");
    database.note_statements();
    let mut store = writer(&database.url);
    store.maintain().unwrap();
    let group = [chunk("bad", 1, 1, 5_000), chunk("s", 1, 1, 10), chunk("bad", 1, 5_001, 9_990)];
    let before = database.noted_statements();

    let written = store.write(&group).unwrap();

    let statements = database.noted_statements() - before;
    assert!((3..30).contains(&statements), "{statements}");
    assert_eq!((vec![Committed; 3], 10, 9_990), (written.outcomes, written.stored, written.quarantined));
    assert_eq!(10, database.number("SELECT count(*) FROM logspool.records WHERE message LIKE 's/%'"));
    assert_eq!(9_990, database.number("SELECT count(DISTINCT record::jsonb ->> 'message') FROM logspool.quarantine"));
}

#[test]
fn services_whose_records_are_refused_at_the_same_time_do_not_disturb_each_other() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    database.execute("ALTER TABLE logspool.records ADD CHECK (message NOT LIKE '%/1')");
    let services: Vec<_> = (0..4)
        .map(|number| {
            let url = database.url.clone();
            thread::spawn(move || {
                let mut store = writer(&url);
                let chunks = (1..=5).map(|epoch| chunk(&format!("s{number}"), epoch, 1, 500));
                chunks.map(|chunk| store.write(&[chunk]).unwrap().quarantined).sum::<u64>()
            })
        })
        .collect();

    for service in services {
        assert_eq!(5, service.join().unwrap());
    }
    assert_eq!(4 * 5 * 499, database.number("SELECT count(*) FROM logspool.records"));
}

#[test]
fn records_of_any_time_are_stored_and_found() {
    let Some(database) = database() else { return };
    let now = now_ns();
    let times =
        [i64::MIN, -1, 0, now - 400 * DAY_NS, now - DAY_NS, now, now + 2 * DAY_NS, now + 40_000 * DAY_NS, i64::MAX];
    let batch: Vec<_> = times.iter().map(|time| Record { time_ns: Some(*time), ..Record::default() }).collect();

    writer(&database.url).write(&[unnumbered(&batch)]).unwrap();

    let found = records(&PostgresReader::new(&config(&database.url)), &all_records_query());
    let newest_first: Vec<_> = times.iter().rev().map(|time| Some(*time)).collect();
    assert_eq!(newest_first, found.iter().map(|record| record.time_ns).collect::<Vec<_>>());
    assert_eq!(3, database.number("SELECT count(DISTINCT tableoid) - 1 FROM logspool.records"));
}

#[test]
fn few_records_of_a_day_move_from_the_default_partition_to_their_own_and_many_stay() {
    let Some(database) = database() else { return };
    // Two future days lose their partition; then the default partition gets few records of one and many of the other.
    let today = now_ns().div_euclid(DAY_NS);
    let days = [(today + 2, 3, 0), (today + 3, 10_001, 10_002)];
    for (day, few_or_many, others) in days {
        let mut store = writer(&database.url);
        store.maintain().unwrap();
        database.execute(&format!("DROP TABLE logspool.{}; ANALYZE logspool.records_other", partition(day)));
        let of_day = |number: i64| Record {
            time_ns: Some(day * DAY_NS + number),
            arrived_ns: Some(number),
            message: number.to_string().into(),
            fields: vec![("n".into(), Value::Int(number))],
            ..Record::default()
        };
        store
            .write(&[unnumbered(&(1..few_or_many).map(of_day).collect::<Vec<_>>()), unnumbered(&[of_day(0)])])
            .unwrap();
        assert_eq!(few_or_many, database.number("SELECT count(*) FROM logspool.records_other"));

        let mut next = writer(&database.url);
        next.maintain().unwrap();
        next.write(&[unnumbered(&[of_day(few_or_many)])]).unwrap();

        assert_eq!(others, database.number("SELECT count(*) FROM logspool.records_other"));
        let found = records(
            &PostgresReader::new(&config(&database.url)),
            &Query { since_ns: Some(day * DAY_NS), ..all_records_query() },
        );
        let newest_first: Vec<_> = (0..=few_or_many).rev().map(of_day).collect();
        assert!(newest_first == found, "{} of {}", found.len(), newest_first.len());
        let indexes = format!("SELECT count(*) FROM pg_indexes WHERE tablename = '{}'", partition(day));
        assert_eq!(if others == 0 { 2 } else { 0 }, database.number(&indexes));
    }
}

#[test]
fn records_that_cannot_move_to_a_partition_do_not_keep_others_from_being_stored() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.maintain().unwrap();
    let tomorrow = now_ns().div_euclid(DAY_NS) + 1;
    let record = Record { time_ns: Some(tomorrow * DAY_NS), ..Record::default() };
    database.execute(&format!(
        "DROP TABLE logspool.{}; ALTER TABLE logspool.records ADD day bigint GENERATED ALWAYS AS (time_ns / 86400) STORED",
        partition(tomorrow)
    ));
    store.write(&[unnumbered(std::slice::from_ref(&record))]).unwrap();

    let mut next = writer(&database.url);
    next.maintain().unwrap();
    next.write(&[unnumbered(&[record])]).unwrap();

    assert_eq!(2, database.number("SELECT count(*) FROM logspool.records_other"));
}

#[test]
fn partitions_are_created_once_the_tables_are_unlocked() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    let tomorrow = partition(now_ns().div_euclid(DAY_NS) + 1);
    database.execute(&format!("DROP TABLE logspool.{tomorrow}"));
    let (runtime, holder) = postgres::connect(&database.url).unwrap();
    runtime.block_on(holder.batch_execute("BEGIN; LOCK logspool.records_other IN ACCESS SHARE MODE")).unwrap();

    let mut store = writer(&database.url);
    let written = store.write(&[unnumbered(&[message("taken all the same")])]).unwrap();
    let error = store.maintain().unwrap_err().to_string();

    assert_eq!(1, written.stored);
    assert!(error.contains("lock timeout"), "{error}");
    runtime.block_on(holder.batch_execute("COMMIT")).unwrap();
    writer(&database.url).maintain().unwrap();
    assert_eq!(1, database.number(&format!("SELECT count(*) FROM pg_class WHERE relname = '{tomorrow}'")));
}

#[test]
fn old_records_and_marks_are_removed() {
    let Some(database) = database() else { return };
    let config = PostgresConfig { retention_days: Some(30), ..config(&database.url) };
    let mut store = PostgresWriter::new(&config);
    store.write(&[chunk("old", 1, 5, 5), chunk("new", 1, 1, 1)]).unwrap();
    let old_day = now_ns().div_euclid(DAY_NS) - 31;
    let (name, from, to) = (add_partition(&database, old_day), old_day * DAY_NS, (old_day + 1) * DAY_NS);
    // As from a service that ran all the time.
    add_partition(&database, now_ns().div_euclid(DAY_NS) - 2);
    database.execute("UPDATE logspool.streams SET seen = now() - interval '8 days' WHERE stream = 'old'");
    let at = |time_ns| Record { time_ns: Some(time_ns), ..Record::default() };
    store.write(&[unnumbered(&[at(from), at(0), at(to)])]).unwrap();

    store.maintain().unwrap();

    assert_eq!(3, database.number("SELECT count(*) FROM logspool.records"));
    assert_eq!(0, database.number(&format!("SELECT count(*) FROM pg_class WHERE relname = '{name}'")));
    assert_eq!(to, database.number("SELECT min(time_ns) FROM logspool.records"));
    assert_eq!("new", database.query("SELECT stream FROM logspool.streams")[0].get::<_, &str>(0));
    assert_eq!(Some(GapCounts { open: 0, expired: 4 }), store.gap_counts());
    // The removed mark is also gone from the store's memory, so the repeated chunk is stored.
    assert_eq!(1, store.write(&[chunk("old", 1, 1, 1)]).unwrap().stored);
}

#[test]
fn old_records_of_the_default_partition_are_removed_in_pieces() {
    let Some(database) = database() else { return };
    let mut store = PostgresWriter::new(&PostgresConfig { retention_days: Some(30), ..config(&database.url) });
    store.write(&[unnumbered(&[message("new")])]).unwrap();
    database.execute(
        "INSERT INTO logspool.records (time_ns, level, logger, message) SELECT n, 20, '', 'old' FROM generate_series(1, 25000) n;
         INSERT INTO logspool.quarantine SELECT to_timestamp(0), '', '' FROM generate_series(1, 12000)",
    );

    for (others, quarantined) in [(15_000, 2_000), (5_000, 0), (0, 0)] {
        store.maintain().unwrap();
        assert_eq!(others, database.number("SELECT count(*) FROM logspool.records_other"));
        assert_eq!(quarantined, database.number("SELECT count(*) FROM logspool.quarantine"));
    }
    assert_eq!(1, database.number("SELECT count(*) FROM logspool.records"));
}

#[test]
fn no_stream_is_forgotten_because_the_server_clock_is_or_was_ahead() {
    let Some(database) = database() else { return };
    let mut store = writer(&database.url);
    store.write(&[chunk("live", 1, 1, 1), chunk("other", 1, 1, 1)]).unwrap();
    for seen in ["now() - interval '30 days'", "now() - interval '1 day'"] {
        database.execute(&format!("UPDATE logspool.streams SET seen = {seen}"));
        database.execute("UPDATE logspool.streams SET seen = now() + interval '30 days' WHERE stream = 'other'");

        writer(&database.url).maintain().unwrap();

        assert_eq!(2, database.number("SELECT count(*) FROM logspool.streams"), "{seen}");
    }
}

#[test]
fn old_records_and_marks_stay_for_a_while_if_the_clock_may_have_jumped() {
    let Some(database) = database() else { return };
    let mut store = PostgresWriter::new(&PostgresConfig { retention_days: Some(2), ..config(&database.url) });
    store.write(&[chunk("s", 1, 1, 1)]).unwrap();
    // The last known days are over a year ago.
    let today = now_ns().div_euclid(DAY_NS);
    let old: Vec<_> = (400..405).map(|days| add_partition(&database, today - days)).collect();
    let at = |time_ns| Record { time_ns: Some(time_ns), ..Record::default() };
    store.write(&[unnumbered(&[at(0), at((today - 402) * DAY_NS)])]).unwrap();
    database.execute(
        "UPDATE logspool.streams SET seen = now() - interval '400 days';
         INSERT INTO logspool.streams VALUES ('new', 1, 1, now())",
    );

    store.maintain().unwrap();

    assert_eq!(3, database.number("SELECT count(*) FROM logspool.records"));
    assert_eq!(2, database.number("SELECT count(*) FROM logspool.streams"));
    for name in old {
        assert_eq!(1, database.number(&format!("SELECT count(*) FROM pg_class WHERE relname = '{name}'")));
    }
}

#[test]
fn old_records_are_removed_even_while_the_disk_of_the_server_is_full() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    let today = now_ns().div_euclid(DAY_NS);
    add_partition(&database, today - 2);
    let old = add_partition(&database, today - 31);
    // Simulates a disk that is full while the old partition exists.
    database.execute(&format!(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF to_regclass('logspool.{old}') IS NOT NULL THEN
                RAISE EXCEPTION 'could not extend file: no space left on device' USING ERRCODE = 'disk_full';
            END IF;
            RETURN NEW;
         END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON logspool.records FOR EACH ROW EXECUTE FUNCTION full_disk()"
    ));
    let store = PostgresWriter::new(&PostgresConfig { retention_days: Some(30), ..config(&database.url) });
    let (intake, writers) = Intake::start(vec![Box::new(store)], 1 << 20, Arc::new(Metrics::default())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut batch = Batch::default();
    batch.push(&message("x"), Arrival { time_ns: now_ns(), host: "" });

    let outcome = runtime.block_on(async {
        let room = intake.room_for(Origin::User(0), &batch).await;
        let answer = intake.submit(batch, None, room);
        tokio::time::timeout(DEADLINE, answer).await.expect("the old partition stays").unwrap()
    });

    assert_eq!(Committed, outcome);
    intake.close();
    assert!(writers.finish(DEADLINE));
}

#[test]
fn services_that_start_together_create_the_tables_once() {
    let Some(database) = database() else { return };
    let services: Vec<_> = (0..4)
        .map(|number| {
            let url = database.url.clone();
            thread::spawn(move || writer(&url).write(&[chunk(&format!("s{number}"), 1, 1, 10)]).unwrap())
        })
        .collect();

    for service in services {
        assert_eq!(10, service.join().unwrap().stored);
    }
    assert_eq!(40, database.number("SELECT count(*) FROM logspool.records"));
}

/// The tables as the version before the time of arrival made them.
const VERSION_1: &str = "
    CREATE SCHEMA logspool;
    CREATE TABLE logspool.records (
        time_ns bigint NOT NULL, process bigint, thread bigint, line bigint, level integer NOT NULL,
        logger text NOT NULL, message text NOT NULL, file text, function text, host text, process_name text,
        thread_name text, task text, trace_id text, span_id text, exception text, stack text, fields jsonb
    ) PARTITION BY RANGE (time_ns);
    CREATE TABLE logspool.records_other PARTITION OF logspool.records DEFAULT;
    CREATE INDEX records_time ON logspool.records USING brin (time_ns) WITH (autosummarize = on);
    CREATE INDEX records_trace ON logspool.records (trace_id) WHERE trace_id IS NOT NULL;
    CREATE TABLE logspool.streams (
        stream text PRIMARY KEY, epoch bigint NOT NULL, last bigint NOT NULL, seen timestamptz NOT NULL
    ) WITH (fillfactor = 50);
    CREATE TABLE logspool.quarantine (
        received timestamptz NOT NULL DEFAULT now(), reason text NOT NULL, record text NOT NULL
    );
    CREATE TABLE logspool.version (version integer NOT NULL);
    INSERT INTO logspool.version VALUES (1);
    INSERT INTO logspool.streams VALUES ('s', 1, 3, now());";

#[test]
fn tables_of_earlier_versions_are_migrated_with_their_records() {
    const VERSION_2: &str =
        "ALTER TABLE logspool.records ADD COLUMN arrived_ns bigint; UPDATE logspool.version SET version = 2";
    for newer in ["", VERSION_2] {
        let Some(database) = database() else { return };
        database.execute(VERSION_1);
        database.execute(newer);
        check_migration(&database);
    }
}

fn check_migration(database: &Database) {
    let now = now_ns();
    let insert = |time: i64| {
        let columns = "time_ns, level, logger, message, fields";
        database
            .execute(&format!("INSERT INTO logspool.records ({columns}) VALUES ({time}, 20, 'shop', 'old', '{{}}')"));
    };
    insert(now - 1);
    insert(-1);
    let mut store = writer(&database.url);

    let stored = store.write(&[chunk("s", 1, 2, 4)]).unwrap();
    store.maintain().unwrap();

    assert_eq!((1, 2), (stored.stored, stored.repeated));
    let reader = PostgresReader::new(&config(&database.url));
    let found = records(&reader, &all_records_query());
    let found: Vec<_> = found.iter().map(|record| (&*record.message, record.arrived_ns.is_some())).collect();
    assert_eq!(vec![("s/1/4", true), ("old", false), ("old", false)], found);
    assert_eq!(3, database.number("SELECT version::int8 FROM logspool.version"));
    store.write(&[chunk("s", 1, 7, 8)]).unwrap();
    assert_eq!(1, store.write(&[chunk("s", 1, 6, 7)]).unwrap().stored);
    let gaps = database.query("SELECT gaps FROM logspool.streams WHERE last = 8 AND NOT ended");
    assert_eq!("5-5", gaps[0].get::<_, &str>(0));
    // The next start finds nothing to do.
    writer(&database.url).maintain().unwrap();
}

#[test]
fn tables_of_a_newer_version_are_not_touched() {
    let Some(database) = database() else { return };
    writer(&database.url).maintain().unwrap();
    database.execute("UPDATE logspool.version SET version = 99");

    let error = writer(&database.url).write(&[unnumbered(&[message("x")])]).unwrap_err();

    assert!(matches!(&error, StoreError::Fatal(why) if why.contains("have version 99")), "{error}");
}

#[test]
fn a_database_that_cannot_hold_all_text_is_refused() {
    let Some(database) = database() else { return };
    database.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let url = database.url.replace(&database.name, "latin");

    let error = writer(&url).maintain().unwrap_err();

    assert!(matches!(&error, StoreError::Fatal(why) if why.contains("encoding LATIN1")), "{error}");
}

#[test]
fn commits_wait_for_the_disk_even_if_the_role_says_otherwise() {
    let Some(database) = database() else { return };
    database.execute(&format!("ALTER DATABASE {} SET synchronous_commit = off", database.name));
    let mut store = writer(&database.url);
    store.maintain().unwrap();
    database.execute(
        "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.message := current_setting('synchronous_commit'); RETURN NEW; END $$;
         CREATE TRIGGER tell BEFORE INSERT ON logspool.records FOR EACH ROW EXECUTE FUNCTION tell()",
    );

    store.write(&[unnumbered(&[message("x")])]).unwrap();

    assert_eq!("on", database.query("SELECT message FROM logspool.records")[0].get::<_, &str>(0));
}

#[test]
fn a_server_that_is_down_at_the_start_is_used_once_it_is_up() {
    let Some(server) = Server::prepare(SMALL) else { return };
    let mut store = writer(&server.url("postgres"));
    let group = [chunk("s", 1, 1, 10)];
    let error = store.write(&group).unwrap_err();
    assert!(matches!(&error, StoreError::Retry(why) if why.starts_with("cannot write to postgres:///tmp/")), "{error}");

    server.start_again();

    assert_eq!(10, write(&mut store, &group).stored);
    Box::new(store).close().unwrap();
    // The store closed its connections: no session is left on the server.
    let until = Instant::now() + DEADLINE;
    let (runtime, client) = postgres::connect(&server.url("postgres")).unwrap();
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'logspool'";
    while runtime.block_on(client.query_one(left, &[])).unwrap().get::<_, i64>(0) > 0 {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Creates the partition of a day, and returns its name.
fn add_partition(database: &Database, day: i64) -> String {
    let (name, from, to) = (partition(day), day * DAY_NS, (day + 1) * DAY_NS);
    database.execute(&format!(
        "CREATE TABLE logspool.{name} PARTITION OF logspool.records FOR VALUES FROM ({from}) TO ({to})"
    ));
    name
}

/// The name of a day's partition.
fn partition(day: i64) -> String {
    chrono::DateTime::from_timestamp(day * 86_400, 0).unwrap().format("records_%Y_%m_%d").to_string()
}
