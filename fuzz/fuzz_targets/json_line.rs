#![no_main]
//! JSON lines, and JSON lists of such objects.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::{json_line, json_list};

fuzz_target!(|line: &[u8]| {
    if let Ok(record) = json_line::read(line) {
        check::record(&record);
    }
    let list = json_list::read(line, |value| {
        if let Ok(record) = json_line::read(value) {
            check::record(&record);
        }
    });
    let _ = list;
});
