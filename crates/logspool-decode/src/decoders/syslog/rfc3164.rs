//! The header of older syslog (RFC 3164): a time, then `HOST TAG:`, or only `TAG:` from a program of this machine.
//!
//! RFC 3164 describes common practice, not a grammar. The text after the header is the message, unchanged: structured
//! data or a leading dash are part of it.

use chrono::{DateTime, FixedOffset};

use super::times;

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
    let text = text.trim_start_matches(' ');
    let (host, (time, rest)) = match times::older(text, arrived) {
        Some(found) => (None, found),
        None => {
            let (host, text) = times::without_counters(text)?;
            (host, times::older(text, arrived)?)
        }
    };
    let mut message = read_after(time, rest)?;
    message.host = message.host.or(host);
    Some(message)
}

/// Reads the text after the time.
pub fn read_after(time: DateTime<FixedOffset>, rest: &str) -> Option<LegacyMessage<'_>> {
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
    fn times_are_read_in_several_forms() {
        for time in [
            "Nov 22 15:00:00",
            "nov 22 15:00:00.000",
            "Nov 22 2026 15:00:00",
            "Nov 22 15:00:00:",
            " Nov 22 15:00:00",
            "2026-11-22T14:00:00Z",
            "2026-11-22T15:00:00.000000+01:00",
            "2026-11-22T15:00:00+0100",
            "2026-11-22T14:00:00,000+0000",
            "Nov 22 14:00:00 UTC",
            "Nov 22 2026 15:00:00.000 CET",
            "2026 Nov 22 14:00:00 UTC",
            "2026 Nov 22 15:00:00.000",
        ] {
            let text = format!("{time} web shop[7]: paid");
            assert_eq!((Some("web"), Some("shop"), Some("7"), "paid"), parts(&text));
        }
    }

    #[test]
    fn headers_of_cisco_are_read() {
        for (header, host) in [
            ("29: *Nov 22 15:00:00.000: ", None),
            ("29: .Nov 22 14:00:00.000 UTC: ", None),
            ("29: router: 000031: Nov 22 15:00:00.000: ", Some("router")),
            ("29: router: *Nov 22 14:00:00 UTC: ", Some("router")),
            (": 2026 Nov 22 14:00:00 UTC: ", None),
            ("2026 Nov 22 14:00:00.000 UTC: ", None),
            ("*Nov 22 15:00:00.000: ", None),
            ("Nov 22 2026 15:00:00: ", None),
        ] {
            let text = format!("{header}%SYS-5-CONFIG_I: Configured from console");
            assert_eq!((host, Some("%SYS-5-CONFIG_I"), None, "Configured from console"), parts(&text), "{header}");
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
    fn zones_and_forwarding_hosts_are_recognised() {
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
            "12: paid",
            ": paid",
            "*paid*",
            "2026 paid",
            "2026-11-22T10:00:00 INFO paid",
            "Feb 30 15:00:00 web shop: paid",
            "März",
            "Nov",
        ] {
            assert_eq!(None, read(text, arrived), "{text}");
        }
    }
}
