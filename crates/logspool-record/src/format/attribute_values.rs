//! The values of a record's attributes, as a format shows them.

use super::attribute::Attribute;
use super::integer::{push_signed, push_unsigned};
use super::malformed::Malformed;
use super::moment::RecordTimes;
use super::render_state::{RenderError, RenderState};
use super::repr::push_str;
use super::time::AscTime;
use super::view::ParsedRecord;
use crate::record::Value;

/// The settings of a format that values of attributes depend on.
#[derive(Debug, Clone)]
pub(super) struct AttributeValues {
    pub(super) asctime: Option<AscTime>,
    pub(super) clock: RecordTimes,
    pub(super) levels: LevelNames,
    pub(super) process_id: Option<u32>,
}

impl AttributeValues {
    /// Appends `str(attribute)`.
    #[inline]
    pub(super) fn push_plain(
        &self,
        attribute: &Attribute,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        match attribute {
            Attribute::Message => record.push_message(out).map_err(|Malformed| RenderError::Malformed)?,
            Attribute::AscTime => match (record.asctime, &self.asctime) {
                (Some(text), _) => out.extend_from_slice(text.as_bytes()),
                (None, Some(asctime)) => asctime.push(record.time_ns, self.clock, &mut state.asctime, out),
                (None, None) => {}
            },
            Attribute::Derived(derived) => derived.push(self, record, state, out)?,
            Attribute::Name => out.extend_from_slice(record.logger.as_bytes()),
            Attribute::LevelName => self.push_level_name(record.level, out),
            Attribute::Line => push_unsigned(out, u64::from(record.line())),
            Attribute::FileName => out.extend_from_slice(record.filename().as_bytes()),
            Attribute::Field(_) => push_str(out, record.in_its_language(self.get(attribute, record)?)),
            attribute => push_str(out, self.get(attribute, record)?),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn push_level_name(&self, level: u16, out: &mut Vec<u8>) {
        match self.levels.get(level) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => {
                out.extend_from_slice(b"Level ");
                push_signed(out, i64::from(level));
            }
        }
    }

    /// The value of an attribute that has a value of its own, without being composed of other attributes.
    pub(super) fn get<'r>(
        &self,
        attribute: &Attribute,
        record: &'r ParsedRecord<'_>,
    ) -> Result<Value<'r>, RenderError> {
        let text = |text: Option<&'r str>| text.map_or(Value::None, Value::Str);
        let time_ns = record.time_ns;
        Ok(match attribute {
            Attribute::Name => Value::Str(record.logger),
            Attribute::LevelNumber => Value::Int(i64::from(record.level)),
            Attribute::PathName => Value::Str(record.file()),
            Attribute::FileName => Value::Str(record.filename()),
            Attribute::Module => Value::Str(record.module()),
            Attribute::Line => Value::Int(i64::from(record.line())),
            Attribute::Function => Value::Str(record.function()),
            Attribute::Created => Value::Float(self.clock.created(time_ns)),
            Attribute::Msecs => Value::Float(self.clock.msecs(time_ns, self.clock.created(time_ns))),
            Attribute::RelativeCreated => Value::Float(self.clock.relative_created(time_ns)),
            Attribute::Thread => record.thread.map_or(Value::None, Value::Int),
            Attribute::ThreadName => text(record.thread_name),
            Attribute::TaskName => text(record.task_name),
            Attribute::ProcessName => text(record.process_name),
            Attribute::Process => self.process_id.map_or(Value::None, |id| Value::Int(i64::from(id))),
            Attribute::Field(name) => record.field(name).ok_or(RenderError::MissingField)?,
            Attribute::Message | Attribute::AscTime | Attribute::LevelName | Attribute::Derived(_) => Value::None,
        })
    }
}

/// Names of levels: a table for the numbers of stock logging, and a list for other numbers.
#[derive(Debug, Clone)]
pub(super) struct LevelNames {
    low: Box<[Option<Box<str>>]>,
    high: Box<[(u16, Box<str>)]>,
}

/// Levels below this number are looked up by index. Chosen: the highest stock level is 50.
const INDEXED_LEVELS: u16 = 64;

impl LevelNames {
    pub(super) fn new(names: &[(u16, String)]) -> Self {
        let mut low = vec![None; usize::from(INDEXED_LEVELS)];
        let mut high = Vec::new();
        for (level, name) in names {
            match low.get_mut(usize::from(*level)) {
                Some(place) => *place = Some(name.as_str().into()),
                None => high.push((*level, name.as_str().into())),
            }
        }
        Self { low: low.into(), high: high.into() }
    }

    /// The name of `level`. `None`: the level has no name, and Python shows `Level N`.
    #[inline]
    pub(super) fn get(&self, level: u16) -> Option<&str> {
        match self.low.get(usize::from(level)) {
            Some(name) => name.as_deref(),
            None => self.high.iter().find(|(known, _)| *known == level).map(|(_, name)| &**name),
        }
    }
}
