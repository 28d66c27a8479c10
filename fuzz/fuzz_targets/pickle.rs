#![no_main]
//! Pickled log records, and arbitrary pickles.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::log_record;
use logspool_server::decoders::pickle::{self, PickleLimits};

fuzz_target!(|frame: &[u8]| {
    if let Ok(record) = log_record::read(frame, PickleLimits::default()) {
        check::record(&record);
    }
    if let Ok(pickle) = pickle::read(frame, PickleLimits::default()) {
        serde_json::to_string(&pickle.value()).expect("a value has a form in JSON");
    }
});
