//! The records to send. They are numbered, so that each can be counted once, and have the same length.

use std::time::{SystemTime, UNIX_EPOCH};

use rmp::encode;

/// Number of parts in an entry, the same as logspool's client sends for `logger.info(...)`.
const PARTS: u32 = 11;

/// The message of record `number`.
pub fn message(number: u64) -> String {
    format!("client 0 sends record {number:09} of a request that took 1.250 ms")
}

/// Appends a Forward entry.
pub fn push_entry(to: &mut Vec<u8>, number: u64) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    to.extend([0x92, 0xD7, 0x00]);
    to.extend(u32::try_from(since.as_secs()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(since.subsec_nanos().to_be_bytes());
    encode::write_map_len(to, PARTS).expect("a Vec takes every byte");
    put_number(to, "level", 20);
    put_text(to, "logger", "native");
    put_text(to, "file", "/srv/shop/bench/services/native_client.py");
    put_number(to, "line", 42);
    put_text(to, "function", "main");
    put_number(to, "process", 4711);
    put_text(to, "host", "web-1.example.org");
    put_text(to, "message", &message(number));
    put_text(to, "process_name", "MainProcess");
    put_number(to, "thread", 139_712_345_678_656);
    put_text(to, "thread_name", "MainThread");
}

/// Appends a name and its text.
pub fn put_text(to: &mut Vec<u8>, name: &str, text: &str) {
    encode::write_str(to, name).expect("a Vec takes every byte");
    encode::write_str(to, text).expect("a Vec takes every byte");
}

/// Appends a name and its number.
pub fn put_number(to: &mut Vec<u8>, name: &str, number: u64) {
    encode::write_str(to, name).expect("a Vec takes every byte");
    encode::write_uint(to, number).expect("a Vec takes every byte");
}
