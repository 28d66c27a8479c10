#![no_main]
//! Requests of `logging.handlers.HTTPHandler`.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::form;

fuzz_target!(|form: &[u8]| {
    if let Ok(record) = form::read(form) {
        check::record(&record);
    }
});
