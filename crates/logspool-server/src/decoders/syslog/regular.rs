//! The usual form of RFC 5424, read in one go: a time in UTC, single spaces, no structured data.
//!
//! Most of what comes over a network looks like this. Anything else, odd or wrong, is left to the general parser, which
//! says the same of what is read here.

use chrono::NaiveDate;
use syslog_loose::ProcId;

/// Years whose nanoseconds fit, with room.
const YEARS: std::ops::Range<i32> = 1700..2200;

/// What stands behind priority and version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Regular<'a> {
    pub time_ns: i64,
    pub host: Option<&'a str>,
    pub app: Option<&'a str>,
    pub process: Option<ProcId<&'a str>>,
    pub msgid: Option<&'a str>,
    pub message: &'a str,
}

/// Reads what stands behind the version and its space; `None`: it is not of this form.
pub(super) fn read(text: &str) -> Option<Regular<'_>> {
    let (time, mut rest) = text.split_once(' ')?;
    let time_ns = time_ns(time.as_bytes())?;
    let host = word(&mut rest)?;
    // The general parser takes the colon for what separates header and message.
    if host.is_some_and(|host| host.ends_with(':')) {
        return None;
    }
    let (app, process, msgid) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
    let message = match rest.strip_prefix('-')? {
        "" => "",
        rest => rest.strip_prefix(' ')?,
    };
    let is_trimmed = message.starts_with([' ', '\t']) || message.ends_with(char::is_whitespace);
    (!is_trimmed).then(|| Regular { time_ns, host, app, process: process.map(ProcId::from), msgid, message })
}

/// Takes a word and the one space behind it; `-` stands for none.
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

/// `2003-10-11T22:14:15.003Z`, with none to nine digits behind the point, in nanoseconds since 1970.
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

/// At most nine digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}
