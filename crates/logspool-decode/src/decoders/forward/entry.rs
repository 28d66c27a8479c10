//! Reads an entry of a message, which is a time and a map, as a record.

use std::borrow::Cow;

use super::group::Group;
use super::msgpack::{self, Token, TokenReader};
use super::problem::ForwardProblem;
use crate::decoders::convert;
use crate::decoders::draft::Draft;
use crate::decoders::parts::Part;
use crate::record::{LinePart, Record};
use crate::value::Value;

/// How to read the entries of a message.
#[derive(Debug, Clone, Copy)]
pub struct EntryReader<'a> {
    /// True if there is no list around the time and the map.
    pub is_bare: bool,
    /// True if a record that has its own logger keeps the tag as a field.
    pub keeps_tag: bool,
    /// Tag of the message: the logger of a record that has no logger of its own.
    pub tag: &'a str,
    /// Maximum number of values in an entry.
    pub items: usize,
}

/// An entry of a message.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every entry is a record, which is passed on at once")]
pub enum Entry<'a> {
    /// A record.
    Record(Record<'a>),
    /// Fluent Bit begins a group of records with an entry that has values about all of them.
    GroupStart(Group),
    /// The end of a group.
    GroupEnd,
}

/// The seconds of Fluent Bit's entries that begin and end a group: -1 and -2 in 32 bits.
const GROUP_START: i64 = 0xFFFF_FFFF;
const GROUP_END: i64 = 0xFFFF_FFFE;

impl<'t> EntryReader<'t> {
    /// Reads an entry.
    pub fn read<'a>(&self, reader: &mut TokenReader<'a>) -> Result<Entry<'a>, ForwardProblem>
    where
        't: 'a,
    {
        let mut items = self.items;
        let rest = match self.is_bare {
            true => 0,
            false => match reader.token()? {
                list @ Token::List(count @ 2..) => {
                    msgpack::take_items(&mut items, list)?;
                    u64::from(count) - 2
                }
                _ => return Err(ForwardProblem::Unexpected("an entry: a list of a time and a map")),
            },
        };
        let mut draft = draft(reader, items)?;
        reader.skip(rest)?;
        match draft.record.time_ns.map(|time| time.div_euclid(1_000_000_000)) {
            Some(GROUP_START) if !self.is_bare => match Group::of(&draft.record) {
                Some(group) => return Ok(Entry::GroupStart(group)),
                // A group with too many bytes is a record of its own.
                None => draft.record.time_ns = None,
            },
            Some(GROUP_END) if !self.is_bare => return Ok(Entry::GroupEnd),
            _ => {}
        }
        if !self.tag.is_empty() && !draft.has_logger {
            draft.record.logger = Cow::Borrowed(self.tag);
        } else if self.keeps_tag && !self.tag.is_empty() {
            draft.record.fields.push((Cow::Borrowed("tag"), Value::text(self.tag)));
        }
        let mut record = draft.finish();
        if !self.keeps_tag {
            // Our own client numbers its records, and none of them is a part of another.
            record.part = LinePart::Whole;
        }
        Ok(Entry::Record(record))
    }
}

/// Reads a time and a map with at most `items` values.
fn draft<'a>(reader: &mut TokenReader<'a>, mut items: usize) -> Result<Draft<'a>, ForwardProblem> {
    let mut draft = Draft::default();
    time(reader, &mut draft, &mut items)?;
    let map = reader.token()?;
    if let Token::Map(count) = map {
        msgpack::take_items(&mut items, map)?;
        for _ in 0..count {
            let name = reader.key(&mut items)?;
            let value = reader.value(&mut items)?;
            draft.set(name, value);
        }
    } else {
        // The protocol requires a map. Any other value is kept as the message.
        draft.record.message = match reader.value_of(map, &mut items)? {
            Value::Text(text) => text,
            other => Cow::Owned(other.printed()),
        };
    }
    Ok(draft)
}

/// Reads the time of an entry. As in Fluentd, zero and nil mean that the sender knows no time.
fn time<'a>(reader: &mut TokenReader<'a>, draft: &mut Draft<'a>, items: &mut usize) -> Result<(), ForwardProblem> {
    let at = match reader.token()? {
        // Newer versions of Fluent Bit send a list of the time and a map with metadata of the entry.
        list @ Token::List(count @ 1..) => {
            msgpack::take_items(items, list)?;
            let time = reader.token()?;
            reader.skip(time.values())?;
            for _ in 1..count {
                metadata(reader, draft, items)?;
            }
            time
        }
        time => time,
    };
    let nanoseconds = match at {
        Token::Int(seconds) => convert::seconds(&Value::Int(seconds)),
        Token::Float(seconds) => convert::seconds(&Value::Float(seconds)),
        Token::Extension(kind, bytes) => msgpack::time(kind, bytes)
            .and_then(|(seconds, nanoseconds)| seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds.into())),
        Token::Nil | Token::Large(_) => None,
        _ => return Err(ForwardProblem::Unexpected("a time")),
    };
    draft.record.time_ns = nanoseconds.filter(|time| *time != 0);
    Ok(())
}

/// Reads the metadata of an entry. Records that Fluent Bit received by OTLP have their severity and ids there.
fn metadata<'a>(reader: &mut TokenReader<'a>, draft: &mut Draft<'a>, items: &mut usize) -> Result<(), ForwardProblem> {
    for_each_pair(reader, items, |reader, name, items| match (&*name, { *reader }.token()?) {
        ("otlp", Token::Map(_)) => for_each_pair(reader, items, |reader, name, items| {
            if let ("trace_id" | "span_id", Token::Text(id)) = (&*name, { *reader }.token()?) {
                reader.skip(1)?;
                let part = if name == "trace_id" { Part::TraceId } else { Part::SpanId };
                draft.put(part, &name, Value::Text(id_text(id)));
                return Ok(());
            }
            let value = reader.value(items)?;
            let unused = match &*name {
                "severity_number" => draft.put(Part::OtelLevel, &name, value),
                "severity_text" => draft.put(Part::Level, &name, value),
                "attributes" => draft.put(Part::Fields, &name, value),
                // The entry has its time.
                "timestamp" | "observed_timestamp" => None,
                _ => Some(value),
            };
            draft.record.fields.extend(unused.map(|value| (name, value)));
            Ok(())
        }),
        _ => {
            let value = reader.value(items)?;
            draft.record.fields.push((name, value));
            Ok(())
        }
    })
}

/// Calls `each` at the value of each pair of a map. Other values are skipped.
fn for_each_pair<'a>(
    reader: &mut TokenReader<'a>,
    items: &mut usize,
    mut each: impl FnMut(&mut TokenReader<'a>, Cow<'a, str>, &mut usize) -> Result<(), ForwardProblem>,
) -> Result<(), ForwardProblem> {
    let map = reader.token()?;
    let Token::Map(count) = map else { return reader.skip(map.values()) };
    msgpack::take_items(items, map)?;
    for _ in 0..count {
        let name = reader.key(items)?;
        each(reader, name, items)?;
    }
    Ok(())
}

/// An id as hex. Fluent Bit sends its bytes, other senders its text.
fn id_text(id: &[u8]) -> Cow<'_, str> {
    let is_text = id.iter().all(u8::is_ascii_hexdigit) && id.len() >= 16;
    match std::str::from_utf8(id) {
        Ok(text) if is_text => Cow::Borrowed(text),
        _ => Cow::Owned(id.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}
