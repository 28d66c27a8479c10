//! Entries of the systemd journal in its export format, which `systemd-journal-upload` sends.
//!
//! An entry is a list of fields and ends with an empty line. A field is `NAME=value` and a line feed. A value that is
//! not plain text has its length before it: `NAME`, a line feed, eight bytes of length, the value and a line feed.

use std::borrow::Cow;

use super::convert::{self, lossy};
use super::json_line;
use crate::record::Record;
use crate::value::Value;

/// The result of the search for the first entry in some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryScan {
    /// The entry takes this number of bytes, with the empty line after it.
    Complete(usize),
    /// The entry is not complete yet.
    Incomplete,
    /// The bytes are not in the export format.
    Malformed,
}

/// Finds the end of the first entry.
pub fn scan(bytes: &[u8]) -> EntryScan {
    let mut fields = JournalFields(bytes);
    loop {
        let at = bytes.len() - fields.0.len();
        match fields.next() {
            Some(Ok(_)) => {}
            Some(Err(scan)) => return scan,
            None if fields.0.first() == Some(&b'\n') => return EntryScan::Complete(at + 1),
            None => return EntryScan::Incomplete,
        }
    }
}

/// Reads a complete entry. `None`: it has no message and no other field of the program.
///
/// # Errors
///
/// The bytes are not an entry. The text has the reason.
pub fn read(entry: &[u8]) -> Result<Option<Record<'_>>, String> {
    let mut pairs = Vec::new();
    let mut severity = None;
    let (mut source_time, mut time) = (None, None);
    for field in JournalFields(entry) {
        let (name, value) = field.map_err(|_| "the entry is not in the export format of the journal".to_owned())?;
        let name = lossy(name);
        let text = lossy(value);
        let micros = || text.parse::<i64>().ok().and_then(|time| time.checked_mul(1_000));
        match &*name {
            "__REALTIME_TIMESTAMP" => time = micros(),
            "_SOURCE_REALTIME_TIMESTAMP" => source_time = micros(),
            "PRIORITY" => severity = text.parse().ok(),
            // Positions in the journal say nothing about the program.
            cursor if cursor.starts_with("__") => {}
            _ => {
                let number = is_number(&name).then(|| text.parse().ok().map(Value::Int)).flatten();
                let known = known(&name).map_or(name, Cow::Borrowed);
                pairs.push((known, number.unwrap_or(Value::Text(text))));
            }
        }
    }
    if pairs.is_empty() {
        return Ok(None);
    }
    let mut record = json_line::from_pairs(pairs);
    record.time_ns = source_time.or(time).or(record.time_ns);
    record.level = severity.and_then(convert::level_of_severity).unwrap_or(record.level);
    Ok(Some(record))
}

/// The key of a JSON line for a field of the journal.
fn known(name: &str) -> Option<&'static str> {
    Some(match name {
        "MESSAGE" => "message",
        "SYSLOG_IDENTIFIER" => "logger",
        "_HOSTNAME" => "host",
        "_PID" => "process",
        "_COMM" => "process_name",
        "TID" => "thread",
        "CODE_FILE" => "file",
        "CODE_LINE" => "line",
        "CODE_FUNC" => "function",
        _ => return None,
    })
}

fn is_number(name: &str) -> bool {
    matches!(name, "_PID" | "CODE_LINE" | "TID")
}

/// The fields of an entry. Ends before the empty line.
struct JournalFields<'a>(&'a [u8]);

impl<'a> Iterator for JournalFields<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), EntryScan>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.0.first(), None | Some(b'\n')) {
            return None;
        }
        let Some(end) = memchr::memchr(b'\n', self.0) else { return Some(Err(EntryScan::Incomplete)) };
        let (line, rest) = (&self.0[..end], &self.0[end + 1..]);
        if let Some(equals) = memchr::memchr(b'=', line) {
            self.0 = rest;
            return Some(Ok((&line[..equals], &line[equals + 1..])));
        }
        if !line.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_') {
            return Some(Err(EntryScan::Malformed));
        }
        let Some((length, rest)) = rest.split_first_chunk() else { return Some(Err(EntryScan::Incomplete)) };
        let Ok(length) = usize::try_from(u64::from_le_bytes(*length)) else {
            return Some(Err(EntryScan::Malformed));
        };
        let Some((value, rest)) = rest.split_at_checked(length) else { return Some(Err(EntryScan::Incomplete)) };
        match rest.first() {
            None => Some(Err(EntryScan::Incomplete)),
            Some(b'\n') => {
                self.0 = &rest[1..];
                Some(Ok((line, value)))
            }
            Some(_) => Some(Err(EntryScan::Malformed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ENTRY: &[u8] =
        b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1700000000125000\nPRIORITY=4\nMESSAGE\n\x05\0\0\0\0\0\0\0a\nb=c\n\
        SYSLOG_IDENTIFIER=cron\n_HOSTNAME=web-1\n_PID=17\nCODE_LINE=5\nUNIT=x.service\n\n";

    #[test]
    fn an_entry_is_read_with_values_of_several_lines() {
        assert_eq!(EntryScan::Complete(ENTRY.len()), scan(&[ENTRY, ENTRY].concat()));
        assert_eq!(
            json!({"time_ns": 1_700_000_000_125_000_000_i64, "level": 30, "logger": "cron", "message": "a\nb=c",
                "host": "web-1", "process": 17, "line": 5, "fields": {"UNIT": "x.service"}}),
            serde_json::to_value(read(ENTRY).unwrap().unwrap()).unwrap()
        );
    }

    #[test]
    fn a_part_of_an_entry_is_incomplete_and_other_bytes_are_malformed() {
        for length in 0..ENTRY.len() {
            assert_eq!(EntryScan::Incomplete, scan(&ENTRY[..length]), "{length} bytes");
        }
        for bad in [&b"no export\n"[..], b"A\n\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFx", b"A\n\x01\0\0\0\0\0\0\0xy\n\n"] {
            assert_ne!(EntryScan::Complete(bad.len()), scan(bad), "{bad:?}");
        }
        assert_eq!(None, read(b"__CURSOR=x\n\n").unwrap());
    }
}
