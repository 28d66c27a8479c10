//! The parts of a record's entry (`format/entry.rs`), for sinks that write them in a form of their own.
//!
//! The first value with the name of a standard part is that part. A later value of the same name is a field. Texts are
//! borrowed from the entry; bytes that are not UTF-8 are replaced.

use std::borrow::Cow;
use std::fmt::Write;

use logspool_record::format::entry::MAX_DEPTH;
use logspool_record::msgpack::{Item, ReadError, Reader};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Shown instead of a value that no form can show: one that is nested too deep, or an extension of MessagePack. It also
/// follows a text that was cut.
pub const CUT_MARK: &str = "...";

/// The parts of one record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordParts<'a> {
    /// Time of the record in seconds since the epoch.
    pub seconds: u32,
    /// The rest of the time.
    pub nanoseconds: u32,
    /// Number of the level; 0 if it is missing.
    pub level: i64,
    /// Name of the logger; empty if it is missing.
    pub logger: Cow<'a, str>,
    /// Path of the source file of the logging call.
    pub file: Option<Cow<'a, str>>,
    /// Line of the logging call.
    pub line: Option<i64>,
    /// Function of the logging call.
    pub function: Option<Cow<'a, str>>,
    /// Id of the process.
    pub process: Option<i64>,
    /// Name of the machine; empty if it is missing.
    pub host: Cow<'a, str>,
    /// The message. If the entry is damaged before its message, this is the whole entry as text.
    pub message: Cow<'a, str>,
    /// Name of the process.
    pub process_name: Option<Cow<'a, str>>,
    /// Id of the thread.
    pub thread: Option<i64>,
    /// Name of the thread.
    pub thread_name: Option<Cow<'a, str>>,
    /// Name of the task.
    pub task: Option<Cow<'a, str>>,
    /// The traceback, not empty.
    pub exception: Option<Cow<'a, str>>,
    /// The stack, not empty.
    pub stack: Option<Cow<'a, str>>,
    /// Extra and bound fields, in the order of the entry. A name can occur twice. A standard part with a value of the
    /// wrong type is here, too.
    pub fields: Vec<(Cow<'a, str>, PartValue<'a>)>,
    /// Why the entry could not be read to its end. The parts before the damage are set.
    pub damage: Option<ReadError>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum PartValue<'a> {
    /// None.
    Nil,
    /// A bool.
    Bool(bool),
    /// An integer of the range of `i64` or `u64`.
    Int(i128),
    /// A float; NaN and infinities are possible.
    Float(f64),
    /// Text, or bytes as text.
    Text(Cow<'a, str>),
    /// A list or tuple.
    Array(Vec<Self>),
    /// A dict.
    Map(Vec<(Self, Self)>),
    /// A value that is nested too deep, or is an extension.
    Omitted,
}

impl<'a> RecordParts<'a> {
    /// Reads an entry. Never fails: `damage` says whether parts are missing.
    pub fn read(entry: &'a [u8]) -> Self {
        let mut parts = Self::default();
        parts.damage = parts.fill(entry).err();
        if parts.damage.is_some() && parts.message.is_empty() {
            parts.message = String::from_utf8_lossy(entry);
        }
        parts
    }

    /// The message, followed by the traceback and the stack, each beginning on a new line.
    pub fn full_message(&self) -> Cow<'_, str> {
        if self.exception.is_none() && self.stack.is_none() {
            return Cow::Borrowed(&self.message);
        }
        let mut text = self.message.clone().into_owned();
        for more in [&self.exception, &self.stack].into_iter().flatten() {
            text.push('\n');
            text.push_str(more);
        }
        Cow::Owned(text)
    }

    fn fill(&mut self, entry: &'a [u8]) -> Result<(), ReadError> {
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
        let mut seen = 0_u32;
        for _ in 0..count {
            let Item::Text(key) = reader.item()? else { return Err(ReadError::Invalid) };
            let value = PartValue::read(&mut reader, 0)?;
            if let Some(value) = self.set(key, value, &mut seen) {
                self.fields.push((String::from_utf8_lossy(key), value));
            }
        }
        Ok(())
    }

    /// Sets the standard part with this name. Returns the value if it is a field.
    fn set(&mut self, key: &[u8], value: PartValue<'a>, seen: &mut u32) -> Option<PartValue<'a>> {
        let (bit, part) = match key {
            b"level" => (0, PartSlot::Number(&mut self.level)),
            b"logger" => (1, PartSlot::Text(&mut self.logger)),
            b"file" => (2, PartSlot::OptionalText(&mut self.file)),
            b"line" => (3, PartSlot::OptionalNumber(&mut self.line)),
            b"function" => (4, PartSlot::OptionalText(&mut self.function)),
            b"process" => (5, PartSlot::OptionalNumber(&mut self.process)),
            b"host" => (6, PartSlot::Text(&mut self.host)),
            b"message" => (7, PartSlot::Text(&mut self.message)),
            b"process_name" => (8, PartSlot::OptionalText(&mut self.process_name)),
            b"thread" => (9, PartSlot::OptionalNumber(&mut self.thread)),
            b"thread_name" => (10, PartSlot::OptionalText(&mut self.thread_name)),
            b"task" => (11, PartSlot::OptionalText(&mut self.task)),
            b"exception" => (12, PartSlot::OptionalText(&mut self.exception)),
            b"stack" => (13, PartSlot::OptionalText(&mut self.stack)),
            _ => return Some(value),
        };
        if *seen & (1 << bit) != 0 {
            return Some(value);
        }
        *seen |= 1 << bit;
        match part {
            PartSlot::Text(place) => *place = value.into_text(),
            PartSlot::OptionalText(place) => *place = Some(value.into_text()).filter(|text| !text.is_empty()),
            PartSlot::Number(place) => match value.number() {
                Some(number) => *place = number,
                None => return Some(value),
            },
            PartSlot::OptionalNumber(place) => match value.number() {
                Some(number) => *place = Some(number),
                None => return Some(value),
            },
        }
        None
    }
}

/// The field of [`RecordParts`] that a value is stored in.
enum PartSlot<'p, 'a> {
    Text(&'p mut Cow<'a, str>),
    OptionalText(&'p mut Option<Cow<'a, str>>),
    Number(&'p mut i64),
    OptionalNumber(&'p mut Option<i64>),
}

impl<'a> PartValue<'a> {
    fn read(reader: &mut Reader<'a>, depth: usize) -> Result<Self, ReadError> {
        if depth > MAX_DEPTH {
            reader.skip()?;
            return Ok(Self::Omitted);
        }
        // A head may announce more items than there are bytes, so it does not determine how much memory is reserved.
        let sensible = |count: usize| count.min(64);
        Ok(match reader.item()? {
            Item::Nil => Self::Nil,
            Item::Bool(value) => Self::Bool(value),
            Item::Int(number) => Self::Int(number),
            Item::Float(number) => Self::Float(number),
            Item::Text(text) | Item::Bytes(text) => Self::Text(String::from_utf8_lossy(text)),
            Item::Extension(..) => Self::Omitted,
            Item::Array(count) => {
                let mut items = Vec::with_capacity(sensible(count));
                for _ in 0..count {
                    items.push(Self::read(reader, depth + 1)?);
                }
                Self::Array(items)
            }
            Item::Map(count) => {
                let mut members = Vec::with_capacity(sensible(count));
                for _ in 0..count {
                    members.push((Self::read(reader, depth + 1)?, Self::read(reader, depth + 1)?));
                }
                Self::Map(members)
            }
        })
    }

    /// The value as text: text as it is, and any other value as JSON.
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Omitted => Cow::Borrowed(CUT_MARK),
            other => Cow::Owned(serde_json::to_string(other).unwrap_or_else(|_| CUT_MARK.to_owned())),
        }
    }

    fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            other => Cow::Owned(other.as_text().into_owned()),
        }
    }

    /// The integer, also if it is written as text.
    fn number(&self) -> Option<i64> {
        match self {
            Self::Int(number) => i64::try_from(*number).ok(),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// In JSON, NaN and infinities become `null`, and keys of maps become text.
impl Serialize for PartValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nil => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => serializer.serialize_i64(number),
                (_, Ok(number)) => serializer.serialize_u64(number),
                _ => serializer.serialize_i128(*number),
            },
            Self::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Self::Float(_) => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Map(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(&*key.as_text(), value)?;
                }
                map.end()
            }
            Self::Omitted => serializer.serialize_str(CUT_MARK),
        }
    }
}

/// The name of a level of `logging`; `Level N` for a number without a name.
#[allow(dead_code, reason = "for sinks that name levels")]
pub fn level_name(level: i64) -> Cow<'static, str> {
    match level {
        50 => Cow::Borrowed("CRITICAL"),
        40 => Cow::Borrowed("ERROR"),
        30 => Cow::Borrowed("WARNING"),
        20 => Cow::Borrowed("INFO"),
        10 => Cow::Borrowed("DEBUG"),
        0 => Cow::Borrowed("NOTSET"),
        other => Cow::Owned(format!("Level {other}")),
    }
}

/// The severity of RFC 5424 for a level of `logging`: 2 (critical) to 7 (debug).
pub fn severity(level: i64) -> u8 {
    match level {
        50.. => 2,
        40..50 => 3,
        30..40 => 4,
        20..30 => 6,
        _ => 7,
    }
}

/// Appends a time in the format of RFC 3339, in UTC, with microseconds.
pub fn push_time(text: &mut String, seconds: u32, nanoseconds: u32) {
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

/// Cuts `text` at a character so that it has at most `most` bytes and ends with [`CUT_MARK`]. Returns whether it was
/// longer.
pub fn cut(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    let mut end = most.saturating_sub(CUT_MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(CUT_MARK);
    true
}

#[cfg(test)]
pub(in crate::sinks) mod tests {
    use super::*;
    use logspool_record::msgpack::{
        push_array, push_bool, push_bytes, push_float, push_int, push_map, push_nil, push_text,
    };

    /// An entry with these parts and the level INFO. Its time is 2024-02-29 12:34:56.789012345 UTC.
    pub fn entry(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut out = started(parts.len());
        for (name, value) in parts {
            push_text(&mut out, name.as_bytes());
            push_text(&mut out, value.as_bytes());
        }
        out
    }

    /// The beginning of such an entry, with its level. This number of parts must follow.
    pub fn started(parts: usize) -> Vec<u8> {
        let mut out = vec![0x92, 0xd7, 0x00];
        out.extend_from_slice(&1_709_210_096_u32.to_be_bytes());
        out.extend_from_slice(&789_012_345_u32.to_be_bytes());
        push_map(&mut out, parts + 1);
        push_text(&mut out, b"level");
        push_int(&mut out, 20);
        out
    }

    fn read(entry: &[u8]) -> RecordParts<'_> {
        RecordParts::read(entry)
    }

    #[test]
    fn the_first_value_of_a_name_is_the_part_and_later_ones_are_fields() {
        let bytes = entry(&[
            ("logger", "shop"),
            ("process", "77"),
            ("line", "no number"),
            ("message", "paid"),
            ("exception", ""),
            ("user", "ann"),
            ("message", "mine"),
            ("logger", "other"),
        ]);
        let parts = read(&bytes);

        assert_eq!((1_709_210_096, 789_012_345, 20), (parts.seconds, parts.nanoseconds, parts.level));
        assert_eq!(("shop", "paid", Some(77), None), (&*parts.logger, &*parts.message, parts.process, parts.line));
        assert_eq!((None, None), (parts.exception, parts.damage));
        let fields: Vec<_> = parts.fields.iter().map(|(name, value)| format!("{name}={}", value.as_text())).collect();
        assert_eq!(["line=no number", "user=ann", "message=mine", "logger=other"], *fields);
        assert!(matches!(parts.message, Cow::Borrowed(_)));
    }

    #[test]
    fn the_full_message_has_the_traceback_and_the_stack() {
        let parts = [("message", "m"), ("exception", "Traceback"), ("stack", "Stack")];

        assert_eq!("m\nTraceback\nStack", read(&entry(&parts)).full_message());
        assert_eq!("m\nStack", read(&entry(&[parts[0], parts[2]])).full_message());
        assert_eq!("m", read(&entry(&parts[..1])).full_message());
    }

    #[test]
    fn values_of_every_type_are_json() {
        let mut out = started(1);
        push_text(&mut out, b"all");
        push_array(&mut out, 10);
        push_nil(&mut out);
        push_bool(&mut out, true);
        push_int(&mut out, i64::MIN);
        out.extend_from_slice(&[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        push_float(&mut out, 0.5);
        push_float(&mut out, f64::NAN);
        push_float(&mut out, f64::NEG_INFINITY);
        push_bytes(&mut out, b"a\"\xff");
        out.extend_from_slice(&[0xd4, 1, 0]);
        push_map(&mut out, 2);
        push_text(&mut out, b"key");
        push_int(&mut out, 1);
        push_int(&mut out, 2);
        push_array(&mut out, 0);
        let parts = read(&out);

        assert_eq!(
            "[null,true,-9223372036854775808,18446744073709551615,0.5,null,null,\"a\\\"\u{fffd}\",\"...\",\
             {\"key\":1,\"2\":[]}]",
            parts.fields[0].1.as_text()
        );
    }

    #[test]
    fn nested_values_end_at_the_greatest_depth() {
        let mut out = started(2);
        push_text(&mut out, b"deep");
        for _ in 0..100 {
            push_array(&mut out, 1);
        }
        push_nil(&mut out);
        push_text(&mut out, b"next");
        push_int(&mut out, 7);
        let parts = read(&out);

        let depth = MAX_DEPTH + 1;
        assert_eq!(format!("{}\"...\"{}", "[".repeat(depth), "]".repeat(depth)), parts.fields[0].1.as_text());
        assert_eq!(PartValue::Int(7), parts.fields[1].1);
    }

    #[test]
    fn a_damaged_entry_is_shown_as_far_as_it_can_be_read() {
        assert_eq!(Some(ReadError::Invalid), read(b"not an entry").damage);
        assert_eq!("not an entry", read(b"not an entry").message);
        let whole = entry(&[("message", "hello"), ("user", "ann")]);
        for length in 0..whole.len() {
            let parts = read(&whole[..length]);
            assert_eq!(Some(ReadError::Incomplete), parts.damage, "{length}");
            assert!(length == 0 || !parts.message.is_empty(), "{length}");
        }
        assert_eq!("hello", read(&whole[..whole.len() - 1]).message);
        // A head that announces more items than there are bytes takes no memory for them.
        let mut out = started(1);
        push_text(&mut out, b"items");
        push_array(&mut out, u32::MAX as usize);
        assert_eq!(Some(ReadError::Incomplete), read(&out).damage);
    }

    #[test]
    fn a_level_has_a_name_and_the_severity_of_its_range() {
        let levels = [(5, 7), (10, 7), (20, 6), (25, 6), (30, 4), (40, 3), (45, 3), (50, 2), (60, 2)];

        for (level, expected) in levels {
            assert_eq!(expected, severity(level), "{level}");
        }
        assert_eq!(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], [10, 20, 30, 40, 50].map(level_name));
        assert_eq!("Level 35", level_name(35));
    }

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (1_709_210_096, "2024-02-29T12:34:56.000000Z"),
            (u32::MAX, "2106-02-07T06:28:15.000000Z"),
        ] {
            let mut text = String::new();
            push_time(&mut text, seconds, 999);
            assert_eq!(expected, text);
        }
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        let cut_to = |most| {
            let mut text = "aöb\u{20ac}c".to_owned();
            let was_cut = cut(&mut text, most);
            (text, was_cut)
        };

        assert_eq!(("aöb\u{20ac}c".to_owned(), false), cut_to(8));
        assert_eq!(("aöb...".to_owned(), true), cut_to(7));
        assert_eq!(("a...".to_owned(), true), cut_to(5));
        assert_eq!(("...".to_owned(), true), cut_to(1));
    }
}
