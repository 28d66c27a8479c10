//! The header of older syslog (RFC 3164): a time, then `HOST TAG:`, or only `TAG:` from a program of this machine.
//!
//! RFC 3164 describes common practice, not a grammar. The text after the header is the message, unchanged: structured
//! data or a leading dash are part of it.

use chrono::format::{ParseResult, Parsed, StrftimeItems, parse_and_remainder};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDateTime, TimeZone};

/// The parts of a message.
#[derive(Debug, PartialEq, Eq)]
pub struct LegacyMessage<'a> {
    /// Time of sending, in nanoseconds since 1970.
    pub time_ns: Option<i64>,
    /// Name of the machine.
    pub host: Option<&'a str>,
    /// Name of the program.
    pub tag: Option<&'a str>,
    /// The process id: the text in brackets after the tag.
    pub process: Option<&'a str>,
    /// The message.
    pub text: &'a str,
}

/// Reads the text after the priority. `None`: it has no header.
pub fn read(text: &str, arrived: DateTime<FixedOffset>) -> Option<LegacyMessage<'_>> {
    let (time, rest) = time(text.trim_start_matches(' '), arrived)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let mut message =
        LegacyMessage { time_ns: time.timestamp_nanos_opt(), host: None, tag: None, process: None, text: rest };
    if let Some((host, rest)) = word(rest).and_then(forwarded_by_aix) {
        message.host = Some(host);
        message.text = rest;
        if let Some(tag) = word(rest).and_then(Tag::read) {
            message.take(tag);
        }
    } else if let Some(tag) = word(rest).and_then(Tag::alone) {
        message.take(tag);
    } else if let Some(host) = word(rest) {
        let length = host.find(' ').unwrap_or(host.len());
        let (host, rest) = host.split_at(length);
        message.host = Some(host).filter(|host| *host != "-");
        message.text = rest;
        if let Some(tag) = word(rest).and_then(Tag::read) {
            message.take(tag);
        }
    }
    let text = message.text.trim_start_matches(' ');
    message.text = match text.strip_prefix(':') {
        // Further spaces are the indentation of the text.
        Some(text) => text.strip_prefix(' ').unwrap_or(text),
        None => text,
    };
    Some(message)
}

impl<'a> LegacyMessage<'a> {
    fn take(&mut self, tag: Tag<'a>) {
        self.tag = Some(tag.name).filter(|name| *name != "-");
        self.process = tag.process;
        self.text = tag.rest;
    }
}

/// The text after a single space, if a word follows the space. Several spaces or a colon belong to the message.
fn word(text: &str) -> Option<&str> {
    let text = text.strip_prefix(' ')?;
    let first = text.chars().next()?;
    (!first.is_whitespace() && first != ':').then_some(text)
}

/// The host that AIX names in a message that it forwards, and the text after it.
fn forwarded_by_aix(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = text.strip_prefix("Message forwarded from ")?.split_once(':')?;
    (!host.is_empty() && !host.contains(' ')).then_some((host, rest))
}

/// Names of zones that devices write after the time, with their offsets in hours.
const ZONES: [(&str, i32); 14] = [
    ("UTC", 0),
    ("GMT", 0),
    ("BST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("JST", 9),
    ("EST", -5),
    ("EDT", -4),
    ("CDT", -5),
    ("MST", -7),
    ("PST", -8),
    ("PDT", -7),
];

/// The zone after a time, and the text after the zone.
fn zone(text: &str) -> Option<(FixedOffset, &str)> {
    let text = text.strip_prefix(' ')?;
    let (name, hours) =
        ZONES.iter().find(|(name, _)| text.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
    Some((FixedOffset::east_opt(hours * 3600)?, &text[name.len()..]))
}

struct Tag<'a> {
    name: &'a str,
    process: Option<&'a str>,
    rest: &'a str,
}

impl<'a> Tag<'a> {
    /// The tag at the start: up to white space or a colon, with an optional id in brackets. A tag does not begin with a
    /// bracket.
    fn read(text: &'a str) -> Option<Self> {
        let ends = |character: char| character.is_whitespace() || character == ':';
        let (name, rest) = text.split_at(text.find(|character| ends(character) || character == '[')?);
        if name.is_empty() {
            return None;
        }
        let id = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if let Some((id, rest)) =
            id.filter(|(id, rest)| !id.contains(ends) && (rest.is_empty() || rest.starts_with(ends)))
        {
            return Some(Self { name, process: Some(id).filter(|id| !id.is_empty()), rest });
        }
        let (name, rest) = text.split_at(text.find(ends)?);
        Some(Self { name, process: None, rest })
    }

    /// Reads a tag without a host before it. Such a tag must have a colon or an id.
    fn alone(text: &'a str) -> Option<Self> {
        let is_alone = |tag: &Self| {
            let after_colon = tag.rest.strip_prefix(':');
            after_colon.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
                || (tag.process.is_some() && !tag.rest.starts_with(':'))
        };
        Self::read(text).filter(is_alone)
    }
}

/// The time at the start, and the text after it.
fn time(text: &str, arrived: DateTime<FixedOffset>) -> Option<(DateTime<FixedOffset>, &str)> {
    let word = text.split(' ').next().unwrap_or_default();
    if let Ok(time) = DateTime::parse_from_rfc3339(word) {
        return Some((time, &text[word.len()..]));
    }
    // This check is faster than searching for a month in each text that has no header.
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let (time, rest) = without_year(text, arrived).or_else(|_| with_year(text)).ok()?;
    let (zone, rest) = zone(rest).unwrap_or((*arrived.offset(), rest));
    Some((zone.from_local_datetime(&time).single()?, rest))
}

fn without_year(text: &str, arrived: DateTime<FixedOffset>) -> ParseResult<(NaiveDateTime, &str)> {
    let mut parsed = Parsed::new();
    let rest = parse_and_remainder(&mut parsed, text, StrftimeItems::new("%b %e %H:%M:%S%.f"))?;
    parsed.set_year(year_of(parsed.month().unwrap_or_default(), arrived).into())?;
    Ok((parsed.to_naive_datetime_with_offset(0)?, rest))
}

fn with_year(text: &str) -> ParseResult<(NaiveDateTime, &str)> {
    NaiveDateTime::parse_and_remainder(text, "%b %e %Y %H:%M:%S%.f")
}

/// The year of a date in this month: the year that puts it within half a year of `arrived`.
fn year_of(month: u32, arrived: DateTime<FixedOffset>) -> i32 {
    match i64::from(month) - i64::from(arrived.month()) {
        7.. => arrived.year() - 1,
        ..=-7 => arrived.year() + 1,
        _ => arrived.year(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Host, tag, id and text of the header after a time.
    fn parts(text: &str) -> (Option<&str>, Option<&str>, Option<&str>, &str) {
        let arrived = DateTime::parse_from_rfc3339("2026-11-22T15:00:00+01:00").unwrap();
        let message = read(text, arrived).unwrap();
        assert_eq!(Some(1_795_356_000_000_000_000), message.time_ns, "{text}");
        (message.host, message.tag, message.process, message.text)
    }

    #[test]
    fn a_time_is_written_in_several_ways() {
        for time in [
            "Nov 22 15:00:00",
            "nov 22 15:00:00.000",
            "Nov 22 2026 15:00:00",
            "Nov 22 15:00:00:",
            " Nov 22 15:00:00",
            "2026-11-22T14:00:00Z",
            "2026-11-22T15:00:00.000000+01:00",
        ] {
            let text = format!("{time} web shop[7]: paid");
            assert_eq!((Some("web"), Some("shop"), Some("7"), "paid"), parts(&text));
        }
    }

    #[test]
    fn a_tag_follows_a_host_or_is_alone() {
        let at = |rest: &str| format!("Nov 22 15:00:00{rest}").leak() as &str;
        assert_eq!((None, Some("shop"), Some("7"), "paid"), parts(at(" shop[7]: paid")));
        assert_eq!((None, Some("shop"), None, "paid"), parts(at(" shop: paid")));
        assert_eq!((None, Some("shop"), None, ""), parts(at(" shop:")));
        assert_eq!((None, Some("shop"), Some("7"), "paid"), parts(at(" shop[7] paid")));
        assert_eq!((Some("web"), Some("shop"), None, "paid: 7"), parts(at(" web shop: paid: 7")));
        assert_eq!((Some("web"), Some("shop"), None, "paid: 7"), parts(at(" web shop paid: 7")));
        assert_eq!((Some("2001:db8::1"), Some("shop"), None, "paid"), parts(at(" 2001:db8::1 shop:paid")));
        assert_eq!((None, Some("shop"), None, "paid"), parts(at(" - shop: paid")));
        assert_eq!((Some("web"), Some("a[1]b"), None, "paid"), parts(at(" web a[1]b: paid")));
    }

    #[test]
    fn the_text_after_the_header_is_the_unchanged_message() {
        let at = |rest: &str| format!("Nov 22 15:00:00{rest}").leak() as &str;
        for text in ["-5 degrees", "- 3 left", "[a b=\"c\"] d", "[worker 1] up", "{\"a\": 1}"] {
            assert_eq!((Some("web"), Some("shop"), None, text), parts(at(&format!(" web shop: {text}"))));
            assert_eq!((None, None, None, text), parts(at(&format!(" : {text}"))));
            assert_eq!((Some("web"), None, None, text), parts(at(&format!(" web  {text}"))));
        }
        assert_eq!((Some("web"), None, None, "[12.5] usb 1-1"), parts(at(" web [12.5] usb 1-1")));
        assert_eq!((None, None, None, ""), parts(at("")));
        assert_eq!((Some("web"), Some("shop"), Some("7"), "   at line 5"), parts(at(" web shop[7]:    at line 5")));
        assert_eq!((Some("web"), None, None, ""), parts(at(" web")));
    }

    #[test]
    fn zones_and_hosts_that_forward_are_known() {
        let time = "Nov 22 14:00:00 UTC";
        for (rest, expected) in [
            (" h a: m", (Some("h"), Some("a"), None, "m")),
            (" h a[7]: m", (Some("h"), Some("a"), Some("7"), "m")),
            (" shop: m", (None, Some("shop"), None, "m")),
        ] {
            assert_eq!(expected, parts(format!("{time}{rest}").leak()));
        }
        let aix = "Nov 22 15:00:00 Message forwarded from aix1: shop[7]: paid: 5";
        assert_eq!((Some("aix1"), Some("shop"), Some("7"), "paid: 5"), parts(aix));
        assert_eq!(
            (Some("Message"), Some("forwarded"), None, "by hand"),
            parts("Nov 22 15:00:00 Message forwarded by hand")
        );
    }

    #[test]
    fn a_message_without_a_time_has_no_header() {
        let arrived = DateTime::<FixedOffset>::default();
        for text in [
            "",
            "- 3 items left",
            "-> connecting to db",
            "shop: paid",
            "2026-11-22 10:00:00,125 INFO paid",
            "Nov 22 paid",
            "Nov 22 15:00:00paid",
            "Feb 30 15:00:00 web shop: paid",
            "März",
            "Nov",
        ] {
            assert_eq!(None, read(text, arrived), "{text}");
        }
    }
}
