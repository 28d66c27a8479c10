#![no_main]
//! JSON lines.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::json_line;

fuzz_target!(|line: &[u8]| {
    if let Ok(record) = json_line::read(line) {
        check::record(&record);
    }
});
