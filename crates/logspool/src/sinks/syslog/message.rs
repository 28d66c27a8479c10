//! A record as a message of RFC 5424: `<PRI>1 TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG`.
//!
//! The input is the record's entry (`format/entry.rs`). MSGID is the name of the logger, and PROCID is the id of the
//! process. The structured data has the fields that follow the standard parts in the entry: extra and bound fields. MSG
//! is the message, followed by the traceback and the stack, each beginning on a new line. MSG is UTF-8 without a byte
//! order mark, which rsyslog and others would show. Line ends are kept: none of the framings in use ends at a line end.

use std::borrow::Cow;
use std::fmt::Write;

use crate::option::{OptionField, OptionShape};
use crate::sinks::parts::{CUT_MARK, PartValue, RecordParts, cut, push_time, severity};
use logspool_record::definition::OptionValue;
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

impl Header {
    /// Creates the header of a sink's messages.
    pub fn new(facility: Facility, app_name: Option<&str>, sd_id: &str) -> Self {
        let app_name = printable(app_name.unwrap_or_default(), APP_NAME_CHARACTERS);
        Self { facility, app_name, sd_id: name(sd_id) }
    }

    /// The message of a record, with at most `most` bytes. Also returns whether the record was cut.
    pub fn message(&self, parts: &RecordParts<'_>, most: usize) -> (String, bool) {
        let mut text = String::new();
        let priority = u16::from(self.facility.0) * 8 + u16::from(severity(parts.level));
        let _ = write!(text, "<{priority}>1 ");
        push_time(&mut text, parts.seconds, parts.nanoseconds);
        let process = parts.process.map(|id| id.to_string()).unwrap_or_default();
        for (part, most) in [
            (&*parts.host, HOST_CHARACTERS),
            (&self.app_name, APP_NAME_CHARACTERS),
            (&process, PROCESS_CHARACTERS),
            (&parts.logger, MESSAGE_ID_CHARACTERS),
        ] {
            text.push(' ');
            text.push_str(&printable(part, most));
        }
        let fields = structured(&parts.fields);
        // The brackets, a space and some text must fit, too. Otherwise the fields are omitted.
        let is_long = text.len() + self.sd_id.len() + fields.len() + 4 + CUT_MARK.len() > most;
        if fields.is_empty() || is_long {
            text.push_str(" -");
        } else {
            let _ = write!(text, " [{}{fields}]", self.sd_id);
        }
        text.push(' ');
        text.push_str(&parts.full_message());
        let is_cut = cut(&mut text, most);
        (text, is_cut || (is_long && !fields.is_empty()))
    }
}

/// Converts text to a part of a header: printable ASCII without spaces. Empty text becomes `-`.
fn printable(text: &str, most: usize) -> String {
    let shown: String = text.chars().take(most).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
    if shown.is_empty() { "-".to_owned() } else { shown }
}

/// Converts text to a valid name in structured data.
fn name(text: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '=' | ']' | '"');
    let shown: String = text.chars().take(SD_NAME_CHARACTERS).map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if shown.is_empty() { "_".to_owned() } else { shown }
}

/// The fields of a record as the parameters of structured data.
fn structured(fields: &[(Cow<'_, str>, PartValue<'_>)]) -> String {
    let (mut all, mut shown) = (String::new(), String::new());
    for (key, value) in fields {
        shown.clear();
        push_value(&mut shown, value, 0);
        let _ = write!(all, " {}=\"", name(key));
        for character in shown.chars() {
            if matches!(character, '"' | '\\' | ']') {
                all.push('\\');
            }
            all.push(character);
        }
        all.push('"');
    }
    all
}

/// Appends a value as text. Arrays and maps are shown as JSON.
fn push_value(out: &mut String, value: &PartValue<'_>, depth: usize) {
    match value {
        PartValue::Nil => out.push_str("null"),
        PartValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        PartValue::Int(number) => {
            let _ = write!(out, "{number}");
        }
        PartValue::Float(number) => {
            let _ = write!(out, "{number}");
        }
        PartValue::Text(text) if depth == 0 => out.push_str(text),
        PartValue::Text(text) => {
            let _ = write!(out, "{text:?}");
        }
        PartValue::Omitted => out.push_str(CUT_MARK),
        PartValue::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                push_value(out, item, depth + 1);
            }
            out.push(']');
        }
        PartValue::Map(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                push_value(out, key, depth + 1);
                out.push_str(": ");
                push_value(out, value, depth + 1);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::{entry, started};
    use logspool_record::msgpack::{push_array, push_bool, push_int, push_map, push_nil, push_text};

    fn message(app_name: Option<&str>, entry: &[u8], most: usize) -> String {
        Header::new(Facility::default(), app_name, "logspool@32473").message(&RecordParts::read(entry), most).0
    }

    #[test]
    fn every_part_of_a_record_is_in_its_place() {
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
        let mut out = started(2);
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
    fn bytes_that_are_not_an_entry_are_sent_unchanged_and_truncated_ones_do_not_panic() {
        assert!(message(None, b"not an entry", 480).ends_with(" not an entry"));
        let whole = entry(&[("message", "hello"), ("user", "ann")]);
        for cut in 0..whole.len() {
            message(None, &whole[..cut], 480);
        }
    }
}
