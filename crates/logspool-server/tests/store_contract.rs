//! Every store of the table meets the same contract: a repeated batch is stored once, queries find its records, they
//! are still there after the store is reopened, and an invalid address is refused with the valid form.

use crate::postgres;

use std::sync::Arc;
use std::time::Duration;

use logspool_server::batch::{Arrival, Batch};
use logspool_server::config::Retention;
use logspool_server::delivery::{Chunk, ChunkPosition, Delivery, Outcome};
use logspool_server::query::{Query, parse};
use logspool_server::record::Record;
use logspool_server::stores::kind::{StoreKind, StoreSettings};
use logspool_server::stores::private::Readers;
use logspool_server::stores::{self, AnswerRow, QueryReader, RowFlow, StoreAddress};
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
    let record = |(number, level): (i64, u16)| Record {
        time_ns: Some(now_ns() - 1_000_000_000 + number),
        level,
        logger: "shop".into(),
        message: format!("order {number} \u{e4}\0\"").into(),
        fields: vec![("order".into(), Value::Int(number))],
        ..Record::default()
    };
    (1..).zip([20, 30, 40]).map(record).collect()
}

/// Records 1 to 3 as the first chunk of a connection.
fn delivery(records: &[Record<'_>]) -> Arc<Delivery> {
    let mut batch = Batch::default();
    for record in records {
        batch.push(record, Arrival { time_ns: now_ns(), host: "" });
    }
    let position = ChunkPosition::First;
    let chunk = Chunk { stream: "client".to_owned(), epoch: 1, first: 1, last: 3, position, end: false };
    Delivery::new(batch, Some(chunk), 1, None).0
}

/// The records that match a filter, newest first.
fn find(reader: &dyn QueryReader, filter: &str) -> Vec<Record<'static>> {
    let filter = parse(filter, now_ns()).unwrap().filter;
    let mut found = Vec::new();
    let each = &mut |row: AnswerRow<'_>| {
        let AnswerRow::Record(record) = row else { panic!("expected a record, found {row:?}") };
        found.push(record.into_owned());
        RowFlow::Continue
    };
    reader.run(&Query { filter, stage: None, since_ns: None, until_ns: None, limit: None }, each).unwrap();
    found
}

#[test]
fn a_repeated_batch_is_stored_once_and_found_also_after_the_store_is_reopened() {
    for kind in stores::ALL {
        let folder = tempfile::tempdir().unwrap();
        let Some(address) = new_address(kind, &folder) else { continue };
        let records = records();
        let newest_first: Vec<_> = records.iter().rev().cloned().collect();
        let (mut store, reader) = address.open(&settings()).unwrap();

        let first = store.write(&[delivery(&records)]).unwrap();
        let second = store.write(&[delivery(&records)]).unwrap();
        assert_eq!((3, 0, 0, 0), (first.stored, first.repeated, first.missing, first.quarantined), "{}", kind.name);
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

#[test]
fn an_address_that_does_not_fit_is_refused_with_the_form() {
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
