//! Levels: the names that senders use, and the scales of their numbers.
//!
//! A record keeps its level on the scale of Python's `logging`. Which scale a number of a JSON object is on is decided
//! by the other keys of the object (`shapes.rs`), or by the option `levels` of the listener.

use std::borrow::Cow;

use crate::value::Value;

/// A scale of numeric levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// 10 DEBUG to 50 CRITICAL.
    Python,
    /// 10 trace to 60 fatal.
    Pino,
    /// 0 emergency to 7 debug.
    Syslog,
    /// 1 TRACE to 24 FATAL4.
    OpenTelemetry,
    /// 100 debug to 600 emergency.
    Monolog,
    /// 5,000 TRACE to 50,000 FATAL.
    Log4j,
}

/// A row of the table of scales.
#[derive(Debug)]
pub struct ScaleRow {
    /// The scale.
    pub scale: Scale,
    /// Its name in the option `levels` of a listener.
    pub name: &'static str,
    /// The senders that use it, for the reference page.
    pub senders: &'static str,
    /// The least number of each level, ascending, with the level on Python's scale.
    steps: &'static [(i64, u16)],
    /// The last number of the scale.
    last: i64,
}

/// All scales.
#[rustfmt::skip]
pub const SCALES: &[ScaleRow] = &[
    ScaleRow { scale: Scale::Python, name: "python", senders: "Python's `logging`", steps: &[], last: u16::MAX as i64 },
    ScaleRow {
        scale: Scale::Pino, name: "pino", senders: "pino, bunyan",
        steps: &[(1, 5), (20, 10), (30, 20), (40, 30), (50, 40), (60, 50)], last: 100,
    },
    ScaleRow {
        scale: Scale::Syslog, name: "syslog", senders: "syslog, GELF, journald",
        steps: &[(0, 50), (3, 40), (4, 30), (5, 20), (7, 10)], last: 7,
    },
    ScaleRow {
        scale: Scale::OpenTelemetry, name: "otel", senders: "OpenTelemetry",
        steps: &[(1, 5), (5, 10), (9, 20), (13, 30), (17, 40), (21, 50)], last: 24,
    },
    ScaleRow {
        scale: Scale::Monolog, name: "monolog", senders: "Monolog",
        steps: &[(100, 10), (200, 20), (300, 30), (400, 40), (500, 50)], last: 600,
    },
    ScaleRow {
        scale: Scale::Log4j, name: "log4j", senders: "log4j, logback, log4js",
        steps: &[(1, 5), (10_000, 10), (20_000, 20), (30_000, 30), (40_000, 40), (50_000, 50)], last: 100_000,
    },
];

impl Scale {
    /// The scale with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        SCALES.iter().find(|row| row.name == name).map(|row| row.scale)
    }

    /// The name of the scale.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// The level on Python's scale. `None`: the number is not on this scale.
    pub fn level(self, number: i64) -> Option<u16> {
        let row = self.row()?;
        if number > row.last {
            return None;
        }
        match self {
            Self::Python => u16::try_from(number).ok(),
            _ => row.steps.iter().rev().find(|(least, _)| *least <= number).map(|(_, level)| *level),
        }
    }

    /// The name of a number whose level has several numbers with different meanings.
    pub fn name_of(self, number: i64) -> Option<&'static str> {
        match (self, number) {
            (Self::Syslog, 0) | (Self::Monolog, 600) => Some("emerg"),
            (Self::Syslog, 1) | (Self::Monolog, 550) => Some("alert"),
            (Self::Syslog, 2) => Some("crit"),
            (Self::Syslog, 5) | (Self::Monolog, 250) => Some("notice"),
            _ => None,
        }
    }

    fn row(self) -> Option<&'static ScaleRow> {
        SCALES.iter().find(|row| row.scale == self)
    }
}

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedLevel {
    /// The level on Python's scale.
    pub level: u16,
    /// True if the name says more than the level, as `notice` does. It is then kept as a field.
    pub is_specific: bool,
}

/// The level with a name, by any of the names that logging libraries use. `None`: the name is unknown.
///
/// White space, colours of terminals and brackets around the name are ignored.
pub fn named(name: &str) -> Option<NamedLevel> {
    // The usual names need no copy without colours.
    let name = if name.contains('\u{1B}') { without_colours(name) } else { Cow::Borrowed(name) };
    let name = name.trim_matches(|character: char| character.is_whitespace() || "[]<>():|".contains(character));
    let mut lower = [0; 32];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    // The enum of OTLP.
    let lower = lower.strip_prefix(b"severity_number_").unwrap_or(lower);
    known(lower).or_else(|| numbered(lower))
}

fn known(name: &[u8]) -> Option<NamedLevel> {
    let plain = |level| Some(NamedLevel { level, is_specific: false });
    let specific = |level| Some(NamedLevel { level, is_specific: true });
    match name {
        b"notset" => plain(0),
        b"trace" | b"trc" | b"t" => plain(5),
        // winston, Java's `java.util.logging`
        b"silly" | b"finest" | b"finer" => specific(5),
        b"debug" | b"dbg" | b"d" => plain(10),
        b"fine" | b"config" | b"verbose" => specific(10),
        b"info" | b"information" | b"informational" | b"inf" | b"i" => plain(20),
        // `log` is of PostgreSQL, `http` of winston.
        b"notice" | b"success" | b"log" | b"http" => specific(20),
        b"warn" | b"warning" | b"wrn" | b"w" => plain(30),
        b"error" | b"err" | b"e" => plain(40),
        b"severe" => specific(40),
        b"critical" | b"fatal" | b"ftl" | b"f" => plain(50),
        b"crit" | b"alert" | b"emerg" | b"emergency" | b"panic" | b"dpanic" | b"fault" => specific(50),
        _ => None,
    }
}

/// A name with a number after it: `ERROR+4` of Go's `slog`, `ERROR2` of OpenTelemetry, `DEBUG5` of PostgreSQL.
fn numbered(name: &[u8]) -> Option<NamedLevel> {
    let end = name.iter().position(|byte| !byte.is_ascii_alphabetic()).filter(|end| *end > 1)?;
    let (name, rest) = name.split_at(end);
    let number: i32 = std::str::from_utf8(rest).ok()?.parse().ok().filter(|number| (-100..=100).contains(number))?;
    let base = known(name)?.level;
    let level = match rest[0] {
        // slog has four numbers for each level, Python ten. A level that is set is above NOTSET.
        b'+' | b'-' => u16::try_from((i32::from(base) + number * 10 / 4).clamp(1, 100)).ok()?,
        _ if (1..=5).contains(&number) => base,
        _ => return None,
    };
    Some(NamedLevel { level, is_specific: true })
}

/// The text without the escape sequences that set colours (`ESC [ ... m`).
pub fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1B}') {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split('\u{1B}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let sequence = piece.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        plain.push_str(match sequence {
            Some((codes, rest)) if codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') => rest,
            _ => piece,
        });
    }
    Cow::Owned(plain)
}

/// A level as a number, from an integer, a double without a fraction, or text.
pub fn number(value: &Value<'_>) -> Option<i64> {
    let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 1e9).then_some(number as i64);
    match value {
        Value::Int(number) => Some(*number),
        Value::Float(number) => whole(*number),
        Value::Text(text) => {
            let text = text.trim();
            // `parse` also reads "inf" and "nan".
            let is_number =
                text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
            text.parse().ok().filter(|_| is_number).and_then(whole)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_libraries_are_known() {
        let cases: &[(u16, &str, &[&str])] = &[
            (0, "plain", &["NOTSET"]),
            (5, "plain", &["trace", "TRC"]),
            (5, "specific", &["silly", "FINEST", "finer", "TRACE3", "DEBUG-2"]),
            (10, "plain", &["Debug", "DBG", "D", "\u{1B}[34mdebug\u{1B}[39m", "SEVERITY_NUMBER_DEBUG"]),
            (10, "specific", &["verbose", "CONFIG", "DEBUG5", "SEVERITY_NUMBER_DEBUG2"]),
            (20, "plain", &["INFO", "Information", "\u{1B}[1;32mINFO\u{1B}[0m", " [info] ", "I"]),
            (20, "specific", &["notice", "success", "LOG", "http", "INFO4"]),
            (25, "specific", &["INFO+2"]),
            (30, "plain", &["WARN ", "Warning", "WRN"]),
            (40, "plain", &["ERROR", "err"]),
            (40, "specific", &["SEVERE", "Error3"]),
            (50, "plain", &["Critical", "FATAL"]),
            (50, "specific", &["crit", "alert", "EMERG", "panic", "dpanic", "ERROR+4", "FATAL2"]),
        ];
        for (level, kind, names) in cases {
            for name in *names {
                let expected = NamedLevel { level: *level, is_specific: *kind == "specific" };
                assert_eq!(Some(expected), named(name), "{name:?}");
            }
        }
        for unknown in ["", "loud", "a name that is far too long for any level", "ERROR+", "ERROR99", "x+4", "4", "é"]
        {
            assert_eq!(None, named(unknown), "{unknown:?}");
        }
    }

    #[test]
    fn each_scale_has_its_numbers() {
        type Numbers = &'static [(i64, Option<u16>)];
        let cases: &[(Scale, Numbers)] = &[
            (Scale::Python, &[(10, Some(10)), (25, Some(25)), (-1, None), (70_000, None)]),
            (Scale::Pino, &[(10, Some(5)), (20, Some(10)), (30, Some(20)), (35, Some(20)), (60, Some(50)), (0, None)]),
            (Scale::Syslog, &[(0, Some(50)), (3, Some(40)), (5, Some(20)), (6, Some(20)), (7, Some(10)), (8, None)]),
            (Scale::OpenTelemetry, &[(1, Some(5)), (9, Some(20)), (12, Some(20)), (24, Some(50)), (25, None)]),
            (Scale::Monolog, &[(100, Some(10)), (250, Some(20)), (550, Some(50)), (30, None)]),
            (Scale::Log4j, &[(5_000, Some(5)), (20_000, Some(20)), (40_000, Some(40))]),
        ];
        assert_eq!(SCALES.len(), cases.len());
        for (scale, numbers) in cases {
            assert_eq!(Some(*scale), Scale::by_name(scale.name()));
            for (number, level) in *numbers {
                assert_eq!(*level, scale.level(*number), "{scale:?} {number}");
            }
        }
        assert_eq!(Some("notice"), Scale::Syslog.name_of(5));
    }

    #[test]
    fn a_number_can_be_a_double_or_text() {
        let texts = ["40", " 40 ", "40.0"].map(Value::text);
        for value in texts.iter().chain(&[Value::Int(40), Value::Float(40.0)]) {
            assert_eq!(Some(40), number(value), "{value:?}");
        }
        for none in [Value::text("inf"), Value::text("4.5"), Value::Float(f64::NAN), Value::Float(0.5), Value::Null] {
            assert_eq!(None, number(&none), "{none:?}");
        }
    }
}
