#![no_main]
//! Syslog messages.

mod check;

use chrono::{DateTime, FixedOffset};
use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::syslog;

fuzz_target!(|message: &[u8]| {
    if let Ok(record) = syslog::read(message, DateTime::<FixedOffset>::default()) {
        check::record(&record);
    }
});
