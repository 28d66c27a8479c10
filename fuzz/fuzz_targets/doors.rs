#![no_main]
//! Bodies of the senders of other services.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::{elastic, journal, loki, seq, splunk};

fuzz_target!(|body: &[u8]| {
    let each: loki::EachEntry<'_> = &mut |found| drop(found.map(check::record));
    drop(loki::read_json(body, each));
    drop(loki::read_protobuf(body, 1 << 20, each));
    drop(elastic::action(body));
    drop(elastic::document(body, "logs").map(|record| check::record(&record)));
    drop(seq::read_clef(body).map(|record| check::record(&record)));
    drop(seq::read_raw(body).map(|record| check::record(&record)));
    drop(splunk::objects(body, |object| drop(splunk::read(object).map(|record| check::record(&record)))));
    if let journal::EntryScan::Complete(length) = journal::scan(body) {
        drop(journal::read(&body[..length]).map(|record| record.map(|record| check::record(&record))));
    }
});
