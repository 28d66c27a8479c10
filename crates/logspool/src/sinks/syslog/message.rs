//! A record as a message of RFC 5424: `<PRI>1 TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG`.
//!
//! The input is the record's entry (`format/entry.rs`). MSGID is the name of the logger, and PROCID is the id of the
//! process. The structured data has the fields that follow the standard parts in the entry: extra and bound fields. MSG
//! is the message, followed by the traceback and the stack, each beginning on a new line. MSG is UTF-8 without a byte
//! order mark, which rsyslog and others would show. Line ends are kept: none of the framings in use ends at a line end.

use std::fmt::Write;

use crate::option::{OptionField, OptionShape};
use logspool_record::definition::OptionValue;
use logspool_record::format::entry::MAX_DEPTH;
use logspool_record::msgpack::{Item, ReadError, Reader};
use logspool_record::syslog::FACILITIES;

/// The part of the system that messages come from, as a number of RFC 5424.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facility(u8);

impl Default for Facility {
    /// `user`.
    fn default() -> Self {
        Self(1)
    }
}

impl OptionField for Facility {
    const SHAPE: OptionShape = OptionShape::Choice(&FACILITIES);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let name = String::from_value(value)?;
        let number = FACILITIES.iter().position(|known| *known == name);
        number.map(|number| Self(number as u8)).ok_or_else(|| format!("there is no facility {name:?}"))
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(FACILITIES[usize::from(self.0)].to_owned())
    }
}

/// The values that are the same in all messages of a sink.
#[derive(Debug)]
pub struct Header {
    facility: Facility,
    app_name: String,
    sd_id: String,
}

/// Maximum characters of the parts of a header, as RFC 5424, section 6, specifies.
const HOST_CHARACTERS: usize = 255;
const APP_NAME_CHARACTERS: usize = 48;
const PROCESS_CHARACTERS: usize = 128;
const MESSAGE_ID_CHARACTERS: usize = 32;
const SD_NAME_CHARACTERS: usize = 32;

/// Appended to the text of a message that was cut.
const CUT_MARK: &str = "...";

/// Names of the standard parts of an entry. The first value with such a name is the part. A later value of the same
/// name is a field.
const PARTS: [&[u8]; 14] = [
    b"level",
    b"logger",
    b"file",
    b"line",
    b"function",
    b"process",
    b"host",
    b"message",
    b"process_name",
    b"thread",
    b"thread_name",
    b"task",
    b"exception",
    b"stack",
];

/// The values of an entry that a message shows.
#[derive(Default)]
struct ShownEntry {
    seconds: u32,
    nanoseconds: u32,
    level: i128,
    logger: String,
    process: String,
    host: String,
    text: String,
    exception: String,
    stack: String,
    fields: String,
}

impl Header {
    /// Creates the header of a sink's messages.
    pub fn new(facility: Facility, app_name: Option<&str>, sd_id: &str) -> Self {
        let app_name = printable(app_name.unwrap_or_default(), APP_NAME_CHARACTERS);
        Self { facility, app_name, sd_id: name(sd_id.as_bytes()) }
    }

    /// Appends the message of an entry. The message has at most `most` bytes.
    pub fn push_message(&self, out: &mut Vec<u8>, entry: &[u8], most: usize) {
        let mut shown = ShownEntry::default();
        if shown.read(entry).is_err() && shown.text.is_empty() {
            shown.text = String::from_utf8_lossy(entry).into_owned();
        }
        let mut text = String::new();
        let priority = u16::from(self.facility.0) * 8 + severity(shown.level);
        let _ = write!(text, "<{priority}>1 ");
        push_time(&mut text, shown.seconds, shown.nanoseconds);
        for (part, most) in [
            (&shown.host, HOST_CHARACTERS),
            (&self.app_name, APP_NAME_CHARACTERS),
            (&shown.process, PROCESS_CHARACTERS),
            (&shown.logger, MESSAGE_ID_CHARACTERS),
        ] {
            text.push(' ');
            text.push_str(&printable(part, most));
        }
        // The brackets, a space and some text must fit, too. Otherwise the fields are omitted.
        if shown.fields.is_empty() || text.len() + self.sd_id.len() + shown.fields.len() + 4 + CUT_MARK.len() > most {
            text.push_str(" -");
        } else {
            let _ = write!(text, " [{}{}]", self.sd_id, shown.fields);
        }
        text.push(' ');
        text.push_str(&shown.text);
        for more in [&shown.exception, &shown.stack] {
            if !more.is_empty() {
                text.push('\n');
                text.push_str(more);
            }
        }
        if text.len() > most {
            let mut end = most - CUT_MARK.len();
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str(CUT_MARK);
        }
        out.extend_from_slice(text.as_bytes());
    }
}

/// The severity of a level of `logging`.
fn severity(level: i128) -> u16 {
    match level {
        50.. => 2,
        40..50 => 3,
        30..40 => 4,
        20..30 => 6,
        _ => 7,
    }
}

/// Appends a time in the format of RFC 3339, in UTC, with microseconds.
fn push_time(text: &mut String, seconds: u32, nanoseconds: u32) {
    let (days, second) = (i64::from(seconds) / 86_400, seconds % 86_400);
    // Days are counted from 1 March of the year 0, so that a leap day is the last one of its year.
    let since = days + 719_468;
    let (era, day_of_era) = (since / 146_097, since % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let micros = nanoseconds / 1000;
    let _ = write!(text, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
}

/// Converts text to a part of a header: printable ASCII without spaces. Empty text becomes `-`.
fn printable(text: &str, most: usize) -> String {
    let shown: String = text.chars().take(most).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
    if shown.is_empty() { "-".to_owned() } else { shown }
}

/// Converts text to a valid name in structured data.
fn name(text: &[u8]) -> String {
    let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '=' | ']' | '"');
    let text = String::from_utf8_lossy(text);
    let shown: String = text.chars().take(SD_NAME_CHARACTERS).map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if shown.is_empty() { "_".to_owned() } else { shown }
}

impl ShownEntry {
    fn read(&mut self, entry: &[u8]) -> Result<(), ReadError> {
        let mut reader = Reader::new(entry);
        let (Item::Array(2), Item::Extension(0, time), Item::Map(count)) =
            (reader.item()?, reader.item()?, reader.item()?)
        else {
            return Err(ReadError::Invalid);
        };
        if let [a, b, c, d, e, f, g, h] = *time {
            self.seconds = u32::from_be_bytes([a, b, c, d]);
            self.nanoseconds = u32::from_be_bytes([e, f, g, h]);
        }
        let mut seen = [false; PARTS.len()];
        for _ in 0..count {
            let Item::Text(key) = reader.item()? else { return Err(ReadError::Invalid) };
            let part = PARTS.iter().position(|part| *part == key).filter(|part| !seen[*part]);
            let mut value = String::new();
            push_value(&mut value, &mut reader, 0)?;
            let Some(part) = part else {
                let _ = write!(self.fields, " {}=\"", name(key));
                for character in value.chars() {
                    if matches!(character, '"' | '\\' | ']') {
                        self.fields.push('\\');
                    }
                    self.fields.push(character);
                }
                self.fields.push('"');
                continue;
            };
            seen[part] = true;
            match key {
                b"level" => self.level = value.parse().unwrap_or(0),
                b"logger" => self.logger = value,
                b"process" => self.process = value,
                b"host" => self.host = value,
                b"message" => self.text = value,
                b"exception" => self.exception = value,
                b"stack" => self.stack = value,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends a value as text. Arrays and maps are shown as JSON.
fn push_value(out: &mut String, reader: &mut Reader<'_>, depth: usize) -> Result<(), ReadError> {
    if depth > MAX_DEPTH {
        out.push_str(CUT_MARK);
        return reader.skip();
    }
    match reader.item()? {
        Item::Nil => out.push_str("null"),
        Item::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Item::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Item::Float(number) => {
            let _ = write!(out, "{number}");
        }
        Item::Text(text) | Item::Bytes(text) if depth == 0 => out.push_str(&String::from_utf8_lossy(text)),
        Item::Text(text) | Item::Bytes(text) => {
            let _ = write!(out, "{:?}", String::from_utf8_lossy(text));
        }
        Item::Extension(..) => out.push_str(CUT_MARK),
        Item::Array(count) => {
            out.push('[');
            for index in 0..count {
                if index > 0 {
                    out.push_str(", ");
                }
                push_value(out, reader, depth + 1)?;
            }
            out.push(']');
        }
        Item::Map(count) => {
            out.push('{');
            for index in 0..count {
                if index > 0 {
                    out.push_str(", ");
                }
                push_value(out, reader, depth + 1)?;
                out.push_str(": ");
                push_value(out, reader, depth + 1)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use logspool_record::msgpack::{push_array, push_bool, push_int, push_map, push_nil, push_text};

    /// An entry with these parts and the level WARNING. Its time is 2024-02-29 12:34:56.789012345 UTC.
    pub fn entry(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut out = started(parts.len() + 1);
        for (name, value) in parts {
            push_text(&mut out, name.as_bytes());
            push_text(&mut out, value.as_bytes());
        }
        out
    }

    fn started(parts: usize) -> Vec<u8> {
        let mut out = vec![0x92, 0xd7, 0x00];
        out.extend_from_slice(&1_709_210_096_u32.to_be_bytes());
        out.extend_from_slice(&789_012_345_u32.to_be_bytes());
        push_map(&mut out, parts);
        push_text(&mut out, b"level");
        push_int(&mut out, 20);
        out
    }

    fn message(app_name: Option<&str>, entry: &[u8], most: usize) -> String {
        let mut out = Vec::new();
        Header::new(Facility::default(), app_name, "logspool@32473").push_message(&mut out, entry, most);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_part_has_its_place() {
        let parts = [
            ("logger", "shop.cart"),
            ("process", "77"),
            ("host", "web 1"),
            ("message", "grün\nzwei"),
            ("exception", "Traceback"),
            ("stack", "Stack"),
            ("user", "a\"n]n\\"),
            ("a b=", "ü"),
            ("message", "mine"),
        ];

        assert_eq!(
            "<14>1 2024-02-29T12:34:56.789012Z web_1 shop 77 shop.cart \
             [logspool@32473 user=\"a\\\"n\\]n\\\\\" a_b_=\"ü\" message=\"mine\"] grün\nzwei\nTraceback\nStack",
            message(Some("shop"), &entry(&parts), 8192)
        );
        assert_eq!("<14>1 2024-02-29T12:34:56.789012Z - - - - - x", message(None, &entry(&[("message", "x")]), 480));
    }

    #[test]
    fn values_of_every_type_are_text() {
        let mut out = started(3);
        push_text(&mut out, b"list");
        push_array(&mut out, 3);
        push_nil(&mut out);
        push_bool(&mut out, true);
        push_text(&mut out, b"b");
        push_text(&mut out, b"dict");
        push_map(&mut out, 1);
        push_text(&mut out, b"n");
        push_int(&mut out, -1);

        let expected = "[logspool@32473 list=\"[null, true, \\\"b\\\"\\]\" dict=\"{\\\"n\\\": -1}\"] ";
        assert!(message(None, &out, 8192).ends_with(expected), "{}", message(None, &out, 8192));
    }

    #[test]
    fn a_level_has_the_severity_of_its_range() {
        let levels = [(5, 7), (10, 7), (20, 6), (25, 6), (30, 4), (40, 3), (45, 3), (50, 2), (60, 2)];

        for (level, expected) in levels {
            assert_eq!(expected, severity(level), "{level}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        for most in [480, 481, 482] {
            let text = message(None, &entry(&[("message", &"ö".repeat(400)), ("user", "ann")]), most);

            assert!(text.len() <= most && text.len() + 2 > most, "{}", text.len());
            assert!(text.contains("user=\"ann\"") && text.ends_with("ö..."), "{text}");
        }
        let text = message(None, &entry(&[("message", "short"), ("user", &"x".repeat(480))]), 480);
        assert!(text.ends_with(" - - - - - short"), "{text}");
    }

    #[test]
    fn what_is_no_entry_is_sent_as_it_is_and_cut_bytes_do_not_panic() {
        assert!(message(None, b"not an entry", 480).ends_with(" not an entry"));
        let whole = entry(&[("message", "hello"), ("user", "ann")]);
        for cut in 0..whole.len() {
            message(None, &whole[..cut], 480);
        }
    }
}
