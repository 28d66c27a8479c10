#![no_main]
//! Requests of OpenTelemetry, in both encodings.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::otlp::{self, OtlpLimits};

fuzz_target!(|body: &[u8]| {
    let limits = OtlpLimits { items: 1000, repeated: 1 << 20 };
    drop(otlp::read_protobuf(body, &limits, |record| drop(record.map(|record| check::record(&record)))));
    drop(otlp::read_json(body, &limits, |record| drop(record.map(|record| check::record(&record)))));
});
