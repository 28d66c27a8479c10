//! Fast path for the usual form of RFC 5424: a time in UTC, single spaces, no structured data.
//!
//! Most messages from a network have this form. The general parser reads all others, odd or invalid, and gives the same
//! result for messages of this form.

use chrono::NaiveDate;
use syslog_loose::ProcId;

/// Years whose times fit `i64` nanoseconds, with a margin.
const YEARS: std::ops::Range<i32> = 1700..2200;

/// The parts after priority and version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rfc5424Message<'a> {
    pub time_ns: i64,
    pub host: Option<&'a str>,
    pub app: Option<&'a str>,
    pub process: Option<ProcId<&'a str>>,
    pub msgid: Option<&'a str>,
    pub message: &'a str,
}

/// Reads the text after the version and its space. `None`: it does not have the usual form.
pub(super) fn read(text: &str) -> Option<Rfc5424Message<'_>> {
    let (time, mut rest) = text.split_once(' ')?;
    let time_ns = time_ns(time.as_bytes())?;
    let host = word(&mut rest)?;
    // The general parser treats a colon as the end of the header.
    if host.is_some_and(|host| host.ends_with(':')) {
        return None;
    }
    let (app, process, msgid) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
    let message = match rest.strip_prefix('-')? {
        "" => "",
        rest => rest.strip_prefix(' ')?,
    };
    let is_trimmed = message.starts_with([' ', '\t']) || message.ends_with(char::is_whitespace);
    (!is_trimmed).then(|| Rfc5424Message { time_ns, host, app, process: process.map(ProcId::from), msgid, message })
}

/// Reads a word and the single space after it; `-` means no value.
fn word<'a>(rest: &mut &'a str) -> Option<Option<&'a str>> {
    let end = rest.bytes().position(|byte| !byte.is_ascii_graphic())?;
    let (word, behind) = rest.split_at(end);
    *rest = behind.strip_prefix(' ')?;
    match word {
        "" | ":" => None,
        "-" => Some(None),
        word => Some(Some(word)),
    }
}

/// Parses `2003-10-11T22:14:15.003Z`, with up to nine decimal places, to nanoseconds since 1970.
fn time_ns(text: &[u8]) -> Option<i64> {
    let (whole, rest) = text.split_first_chunk::<19>()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| whole[*at] != *mark) {
        return None;
    }
    let two = |at: usize| number(&whole[at..at + 2]);
    let year = i32::try_from(number(&whole[..4])?).ok().filter(|year| YEARS.contains(year))?;
    let date = NaiveDate::from_ymd_opt(year, two(5)?, two(8)?)?;
    let fraction = match rest.strip_suffix(b"Z")? {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            number(digits)? * 10_u32.pow(9 - u32::try_from(digits.len()).ok()?)
        }
        _ => return None,
    };
    date.and_hms_nano_opt(two(11)?, two(14)?, two(17)?, fraction)?.and_utc().timestamp_nanos_opt()
}

/// Parses up to nine digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}
