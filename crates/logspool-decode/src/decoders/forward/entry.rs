//! Reads an entry of a message, which is a time and a map, as a record.

use std::borrow::Cow;

use super::group::Group;
use super::msgpack::{self, Token, TokenReader};
use super::problem::ForwardProblem;
use crate::decoders::convert::{self, into_text};
use crate::decoders::json_line::{self, PartsSet};
use crate::record::Record;
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
        let (mut record, has) = record(reader, items)?;
        reader.skip(rest)?;
        match record.time_ns.map(|time| time.div_euclid(1_000_000_000)) {
            Some(GROUP_START) if !self.is_bare => match Group::of(&record) {
                Some(group) => return Ok(Entry::GroupStart(group)),
                // A group with too many bytes is a record of its own.
                None => record.time_ns = None,
            },
            Some(GROUP_END) if !self.is_bare => return Ok(Entry::GroupEnd),
            _ => {}
        }
        let is_logger = !has.logger;
        let is_field = has.logger && self.keeps_tag && !self.tag.is_empty();
        if is_logger {
            record.logger = Cow::Borrowed(self.tag);
        }
        if is_field {
            record.fields.push((Cow::Borrowed("tag"), Value::text(self.tag)));
        }
        Ok(Entry::Record(record))
    }
}

/// Reads a time and a map with at most `items` values.
fn record<'a>(reader: &mut TokenReader<'a>, mut items: usize) -> Result<(Record<'a>, PartsSet), ForwardProblem> {
    let mut record = Record { time_ns: time(reader)?, ..Record::default() };
    let mut has = PartsSet::default();
    let map = reader.token()?;
    if let Token::Map(count) = map {
        msgpack::take_items(&mut items, map)?;
        for _ in 0..count {
            let name = reader.key(&mut items)?;
            let value = reader.value(&mut items)?;
            if let Some(field) = set(&mut record, &mut has, name, value) {
                record.fields.push(field);
            }
        }
    } else {
        // The protocol requires a map. Any other value is kept as the message.
        record.message = match reader.value_of(map, &mut items)? {
            Value::Text(text) => text,
            other => Cow::Owned(other.printed()),
        };
    }
    Ok((record, has))
}

/// Stores a value in the part of the record to which it belongs. Returns the pair if there is no such part.
fn set<'a>(
    record: &mut Record<'a>,
    has: &mut PartsSet,
    name: Cow<'a, str>,
    value: Value<'a>,
) -> Option<(Cow<'a, str>, Value<'a>)> {
    match (&*name, &value) {
        // Docker and collectors that read files send the message as `log`.
        ("log", Value::Text(_)) if !has.message => {
            record.message = into_text(value);
            has.message = true;
        }
        // By default, fluent-logger for Python sends the logger's name as `sys_name`.
        ("sys_name", Value::Text(_)) if !has.logger => {
            record.logger = into_text(value);
            has.logger = true;
        }
        ("sys_host", Value::Text(_)) if record.host.is_none() => record.host = Some(into_text(value)),
        _ => return json_line::set(record, has, name, value),
    }
    None
}

/// The time of an entry, in nanoseconds since 1970. As in Fluentd, zero and nil mean that the sender knows no time.
fn time(reader: &mut TokenReader<'_>) -> Result<Option<i64>, ForwardProblem> {
    let at = match reader.token()? {
        // Newer versions of Fluent Bit send a list of the time and a map with metadata of the entry.
        Token::List(count @ 1..) => {
            let time = reader.token()?;
            reader.skip(u64::from(count) - 1 + time.values())?;
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
    Ok(nanoseconds.filter(|time| *time != 0))
}
