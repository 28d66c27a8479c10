//! Syslog: RFC 5424, RFC 3164, and the messages of Python's `SysLogHandler`, which are a priority and a text.
//!
//! The input is one message without its framing (LF, NUL, octet count).

mod rfc3164;
mod rfc5424;
mod times;

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use logspool_record::syslog::FACILITIES;
use syslog_loose::{Message, ProcId, Variant};

use super::levels::Scale;
use crate::record::Record;
use crate::value::Value;
use rfc5424::Rfc5424Message;

/// The message has no priority, so it is not syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingPriority;

impl fmt::Display for MissingPriority {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a syslog message begins with its priority, as in <14>")
    }
}

impl std::error::Error for MissingPriority {}

/// Reads one message that was received at `arrived`.
///
/// A time without a year gets the year that brings it nearest to `arrived`, and the UTC offset of `arrived`. Bytes that
/// are not UTF-8 become U+FFFD.
///
/// # Errors
///
/// The message does not begin with a priority.
pub fn read(message: &[u8], arrived: DateTime<FixedOffset>) -> Result<Record<'_>, MissingPriority> {
    let end = message.iter().rposition(|byte| !matches!(byte, 0 | b'\n' | b'\r')).map_or(0, |last| last + 1);
    match String::from_utf8_lossy(&message[..end]) {
        Cow::Borrowed(text) => read_text(text, arrived),
        Cow::Owned(text) => read_text(&text, arrived).map(Record::into_owned),
    }
}

fn read_text(text: &str, arrived: DateTime<FixedOffset>) -> Result<Record<'_>, MissingPriority> {
    let (priority, rest) = text.strip_prefix('<').and_then(|text| text.split_once('>')).ok_or(MissingPriority)?;
    let is_number = (1..=3).contains(&priority.len()) && priority.bytes().all(|byte| byte.is_ascii_digit());
    let priority: i64 = priority.parse().ok().filter(|_| is_number).ok_or(MissingPriority)?;
    // A priority beyond the last facility is accepted: its severity is valid.
    let severity = priority & 7;
    let level = Scale::Syslog.level(severity).unwrap_or_default();
    let mut record = Record { level, ..Record::default() };
    match rest.strip_prefix("1 ").and_then(rfc5424::read) {
        Some(found) => take_regular(&mut record, found),
        None => read_any(&mut record, text, rest, arrived),
    }
    let severity = Scale::Syslog.name_of(severity);
    record.fields.extend(severity.map(|name| (Cow::Borrowed("severity"), Value::text(name))));
    let facility = facility(priority >> 3);
    record.fields.extend(facility.map(|name| (Cow::Borrowed("facility"), Value::text(name))));
    Ok(record)
}

/// Reads a message of any form. `rest` is the text after its priority.
fn read_any<'a>(record: &mut Record<'a>, text: &'a str, rest: &'a str, arrived: DateTime<FixedOffset>) {
    let with_version = rest.strip_prefix("1 ");
    if let Some(message) = with_version.and_then(|_| parsed(text)) {
        return take(record, text, message);
    }
    if let Some((time, after)) = with_version.and_then(|rest| times::newer(rest, arrived)) {
        let regular = format!("<14>1 {}{after}", time.to_rfc3339_opts(SecondsFormat::Nanos, true));
        if let Some(message) = parsed(&regular) {
            let mut owned = Record { level: record.level, ..Record::default() };
            take(&mut owned, &regular, message);
            *record = owned.into_owned();
            return;
        }
        // Meraki sends a version and a time, and then host and text as in older messages.
        if let Some(message) = rfc3164::read_after(time, after) {
            return take_older(record, &message);
        }
    }
    match rfc3164::read(rest, arrived) {
        Some(message) => take_older(record, &message),
        // Without a header the text after the priority is the message.
        None => record.message = Cow::Borrowed(rest),
    }
}

/// Reads a message of RFC 5424.
fn parsed(text: &str) -> Option<Message<&str>> {
    syslog_loose::parse_message_with_year_exact(text, |_| 0, Variant::RFC5424).ok()
}

fn take_regular<'a>(record: &mut Record<'a>, found: Rfc5424Message<'a>) {
    record.time_ns = Some(found.time_ns);
    record.host = found.host.map(Cow::Borrowed);
    record.logger = found.app.map_or(Cow::Borrowed(""), Cow::Borrowed);
    set_message(record, found.message);
    set_process(record, found.process);
    record.fields.extend(found.msgid.map(|id| (Cow::Borrowed("msgid"), Value::text(id))));
}

fn take<'a>(record: &mut Record<'a>, text: &'a str, parsed: Message<&'a str>) {
    record.time_ns = parsed.timestamp.and_then(|time| time.timestamp_nanos_opt());
    record.host = parsed.hostname.map(Cow::Borrowed);
    record.logger = parsed.appname.map_or(Cow::Borrowed(""), Cow::Borrowed);
    set_message(record, indented(text, parsed.msg));
    set_process(record, parsed.procid);
    record.fields.extend(parsed.msgid.map(|id| (Cow::Borrowed("msgid"), Value::text(id))));
    for element in &parsed.structured_data {
        let values = element.params().map(|(name, value)| (Cow::Borrowed(*name), Value::text(value))).collect();
        record.fields.push((Cow::Borrowed(element.id), Value::Map(values)));
    }
}

fn take_older<'a>(record: &mut Record<'a>, message: &rfc3164::LegacyMessage<'a>) {
    record.time_ns = message.time_ns;
    record.host = message.host.map(Cow::Borrowed);
    record.logger = Cow::Borrowed(message.tag.unwrap_or_default());
    record.message = Cow::Borrowed(message.text);
    match message.process.map(|id| (id, id.parse())) {
        Some((_, Ok(id))) => record.process = Some(id),
        Some((name, Err(_))) => record.process_name = Some(Cow::Borrowed(name)),
        None => {}
    }
}

/// The message with its indentation. The parser drops all spaces before a message, but only the first one separates it.
fn indented<'a>(text: &'a str, message: &'a str) -> &'a str {
    let at = message.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    match (text.get(..at), text.get(at..at.saturating_add(message.len()))) {
        (Some(header), Some(found)) if found == message => {
            let spaces = header.len() - header.trim_end_matches(' ').len();
            &text[at - spaces.saturating_sub(1)..at + message.len()]
        }
        _ => message,
    }
}

/// RFC 5424, 6.4: a byte order mark means that the text is UTF-8.
fn set_message<'a>(record: &mut Record<'a>, message: &'a str) {
    record.message = Cow::Borrowed(message.trim_start_matches('\u{FEFF}'));
}

fn set_process<'a>(record: &mut Record<'a>, process: Option<ProcId<&'a str>>) {
    match process {
        Some(ProcId::PID(id)) => record.process = u64::try_from(id).ok(),
        Some(ProcId::Name(name)) => record.process_name = Some(Cow::Borrowed(name)),
        None => {}
    }
}

/// The name of a facility.
fn facility(code: i64) -> Option<&'static str> {
    FACILITIES.get(usize::try_from(code).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(message: &[u8]) -> serde_json::Value {
        let arrived = DateTime::parse_from_rfc3339("2024-01-02T00:00:00+01:00").unwrap();
        serde_json::to_value(read(message, arrived).unwrap()).unwrap()
    }

    #[test]
    fn a_python_message_has_a_priority_and_a_text() {
        let fields = serde_json::json!({"facility": "user"});
        for end in ["", "\0", "\n", "\r\n"] {
            assert_eq!(
                serde_json::json!({
                    "level": 20, "logger": "", "message": "shop: order 7 took 5 ms", "fields": fields,
                }),
                json(format!("<14>shop: order 7 took 5 ms{end}").as_bytes())
            );
        }
        assert_eq!(
            serde_json::json!({"level": 40, "logger": "", "message": "first\nsecond", "fields": fields}),
            json(b"<11>first\nsecond\0")
        );
        assert_eq!(serde_json::json!({"level": 20, "logger": "", "message": "", "fields": fields}), json(b"<14>\0"));
    }

    #[test]
    fn messages_of_rfc_3164_are_read() {
        assert_eq!(
            serde_json::json!({
                "time_ns": 1_703_977_200_000_000_000_i64, "level": 30, "logger": "sshd", "message": "Failed password",
                "host": "web1", "process": 42, "fields": {"facility": "auth"},
            }),
            // Near the turn of the year, a date in December belongs to the year before the arrival.
            json(b"<36>Dec 31 00:00:00 web1 sshd[42]: Failed password\n")
        );
    }

    #[test]
    fn the_indentation_of_a_message_is_kept() {
        let headers = ["<14>1 2023-11-14T22:13:20Z h a - - -", "<14>1 2023-11-14T22:13:20+05:30 h a 7 - [x@1 a=\"b\"]"];
        for header in headers {
            for text in ["    indented", "plain", " one", "a  b"] {
                assert_eq!(text, json(format!("{header} {text}").as_bytes())["message"], "{header}");
            }
            assert_eq!("", json(format!("{header} ").as_bytes())["message"]);
        }
    }

    #[test]
    fn messages_of_rfc_5424_are_read() {
        let message = "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 \
            [exampleSDID@32473 iut=\"3\" eventSource=\"App \\\"x\\\"\"] \u{FEFF}An application event";

        assert_eq!(
            serde_json::json!({
                "time_ns": 1_065_910_455_003_000_000_i64, "level": 20, "logger": "evntslog",
                "message": "An application event", "host": "mymachine.example.com",
                "fields": {
                    "msgid": "ID47", "exampleSDID@32473": {"iut": "3", "eventSource": "App \"x\""},
                    "severity": "notice", "facility": "local4",
                },
            }),
            json(message.as_bytes())
        );
        let short = json(b"<34>1 - - - - - - ");
        assert_eq!((Some(50), Some("")), (short["level"].as_u64(), short["message"].as_str()));
    }

    #[test]
    fn times_of_rfc_5424_in_other_forms_are_read() {
        for time in [
            "2026-09-21T14:13:20.125+0000",
            "2026-09-21 14:13:20.125Z",
            "2026-09-21T14:13:20,125Z",
            "2026-09-21 16:13:20,125 +0200",
            "2026-09-21T15:13:20.125",
            "2026-09-21 15:13:20.125",
        ] {
            assert_eq!(
                serde_json::json!({
                    "time_ns": 1_790_000_000_125_000_000_i64, "level": 20, "logger": "app", "message": "m", "host": "h",
                    "process": 7, "fields": {"facility": "user"},
                }),
                json(format!("<14>1 {time} h app 7 - - m").as_bytes()),
                "{time}"
            );
        }
        let meraki = json(b"<134>1 1790000000.125000000 MX84 urls src=192.0.2.1:80 request: GET http://x/");
        assert_eq!(
            serde_json::json!({
                "time_ns": 1_790_000_000_125_000_000_i64, "level": 20, "logger": "urls", "host": "MX84",
                "message": "src=192.0.2.1:80 request: GET http://x/", "fields": {"facility": "local0"},
            }),
            meraki
        );
    }

    /// The general parser reads every message of the fast path to the same record.
    #[test]
    fn the_fast_path_agrees_with_the_general_parser() {
        let arrived = DateTime::<FixedOffset>::default();
        let times = [
            "2003-10-11T22:14:15.003Z",
            "2024-02-29T23:59:59Z",
            "2023-02-29T00:00:00Z",
            "2024-12-31T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "1969-12-31T23:59:59.999999999Z",
            "1970-01-01T00:00:00.1234567890Z",
            "1970-01-01T00:00:00.Z",
            "2262-04-11T23:47:16Z",
            "0001-01-01T00:00:00Z",
            "2003-10-11t22:14:15z",
            "2003-10-11T22:14:15+02:00",
            "2003-10-11 22:14:15Z",
            "-",
        ];
        let words = ["web-1.example.org", "app[1]:", "::1", ":", "-", "--", "4711", "-5", "99999999999", "é", " x", ""];
        let rests = [
            "-",
            "- ",
            "- m",
            "-m",
            "-  m",
            "- \tm",
            "- m ",
            "- m\u{2003}",
            "- \u{FEFF}m",
            "- - [a b]",
            "[a b=\"c\"] m",
        ];
        let mut regular = 0;
        let mut check = |message: &str| {
            let rest = message.strip_prefix("<14>").unwrap();
            let mut general = Record { level: 20, ..Record::default() };
            read_any(&mut general, message, rest, arrived);
            general.fields.push(("facility".into(), Value::text("user")));
            regular += usize::from(rest.strip_prefix("1 ").is_some_and(|rest| rfc5424::read(rest).is_some()));
            assert_eq!(general, read_text(message, arrived).unwrap(), "{message:?}");
        };
        for time in times {
            for rest in rests {
                check(&format!("<14>1 {time} host app 1 id {rest}"));
            }
        }
        for first in words {
            for second in words {
                check(&format!("<14>1 {} {first} {second} 1 - - m", times[0]));
                check(&format!("<14>1 {} host app {first} {second} - m", times[0]));
            }
        }
        check("<14>1");
        check("<14>1 ");
        check("<14>1 2003-10-11T22:14:15.003Z host");

        assert!(regular > 100, "{regular}");
    }

    #[test]
    fn odd_messages_lose_nothing() {
        assert_eq!("1 no header", json(b"<14>1 no header")["message"]);
        assert_eq!("- 3 items left", json(b"<14>- 3 items left")["message"]);
        let local = json(b"<13>Dec 31 00:00:00 shop: -5 degrees");
        assert_eq!((Some("shop"), Some("-5 degrees")), (local["logger"].as_str(), local["message"].as_str()));
        assert_eq!(None, local.get("host"));
        assert_eq!("caf\u{FFFD}", json(b"<14>caf\xE9")["message"]);
        assert_eq!(serde_json::json!({"level": 10, "logger": "", "message": "?"}), json(b"<999>?"));
        let arrived = DateTime::<FixedOffset>::default();
        for none in [&b""[..], b"text", b"<>x", b"<1234>x", b"<-1>x", b"<14", b"<+1>x"] {
            assert_eq!(Err(MissingPriority), read(none, arrived), "{none:?}");
        }
    }
}
