//! `JSONFormatter`: one JSON object a line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). If stock logging formats a record, `python/logspool/handlers/_json.py`
//! lists its members. The bindings write these members with the functions of this file. The rules:
//!
//! - `{"key":value,"key":value}`: no spaces, keys in the order of `fields`, then (with [`Extras::Append`]) the extra
//!   fields in the order of the record, then the terminator.
//! - Text is escaped as `json.dumps(text, ensure_ascii=False)` does: `\"`, `\\`, `\n`, `\r`, `\t`, `\b`, `\f`, other
//!   characters below U+0020 as `\u00xx` in lower case, everything else as UTF-8.
//! - int: decimal digits. float: `float.__repr__`, but `null` for nan and the infinities. bool: `true`, `false`.
//!   None: `null`. Any other value (bytes, tuples, objects): the text `str(value)`.
//! - Attributes are the LogRecord attributes with their Python types. Further names are `time`:
//!   `datetime.fromtimestamp(record.created, UTC)` as `YYYY-MM-DDTHH:MM:SS.ffffffZ`; `level`: `levelname`; `logger`:
//!   `name`; `exception`: the formatted traceback; `stack`: the formatted stack. `asctime` is text by the spec's date
//!   format. `msg`, `args`, `exc_info`, `exc_text`, `stack_info` are refused. Any other name is an extra field.
//! - A key is left out if its attribute is None, if its `exception` or `stack` is absent or empty, or if the record
//!   does not have its extra field. An extra field that is None is `null`.
//! - An extra field is not appended if its name is a key of `fields`, or if `fields` shows it already under another
//!   key. A key that `fields` lists twice is written twice: the list is the caller's.

use std::ops::Range;

use super::attribute::Attribute;
use super::attribute_values::AttributeValues;
use super::constant::ConstantTexts;
use super::json_escape::{first_escape, push_escaped};
use super::moment::push_iso;
use super::needs::{Need, Needs};
use super::program_compiler::ProgramCompiler;
use super::render_state::{RenderError, RenderState};
use super::repr::push_str;
use super::spec::Extras;
use super::unsupported::Unsupported;
use super::view::{CompiledSite, ParsedRecord, RecordView};
use crate::cpython::CpythonRules;
use crate::record::Value;

/// The source of the value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MemberValue {
    Attribute(Attribute),
    Time,
    Exception,
    Stack,
}

impl MemberValue {
    /// Whether the value is the same for every record of one site, level and logger.
    fn is_constant(&self) -> bool {
        use Attribute as A;
        matches!(
            self,
            Self::Attribute(
                A::Name | A::LevelNumber | A::LevelName | A::PathName | A::FileName | A::Module | A::Line | A::Function
            )
        )
    }

    /// Whether the value is always text, so that its opening quote can be written with the key.
    fn is_text(&self) -> bool {
        matches!(self, Self::Time | Self::Attribute(Attribute::Message | Attribute::AscTime | Attribute::LevelName))
    }
}

/// One member of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    key: Box<str>,
    /// `,"key":`, and the opening quote if the value is always text. One copy of these bytes begins the usual member.
    written_key: Box<[u8]>,
    source: MemberValue,
}

/// Consecutive members that are all constant, or all not constant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MemberRun {
    /// The members are cached as one text. The number is its index in the cache.
    Constant(usize, Range<usize>),
    /// The members are rendered for each record.
    PerRecord(Range<usize>),
}

/// A compiled JSON layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonLayout {
    members: Box<[Member]>,
    runs: Box<[MemberRun]>,
    extras: Extras,
}

impl JsonLayout {
    pub(super) fn compile(
        fields: &[(String, String)],
        extras: Extras,
        cpython: CpythonRules,
    ) -> Result<Self, Unsupported> {
        let member = |(key, attribute): &(String, String)| {
            let source = match attribute.as_str() {
                "time" => MemberValue::Time,
                "exception" => MemberValue::Exception,
                "stack" => MemberValue::Stack,
                "level" => MemberValue::Attribute(Attribute::LevelName),
                "logger" => MemberValue::Attribute(Attribute::Name),
                name => MemberValue::Attribute(Attribute::parse(name, cpython)?),
            };
            let mut written_key = vec![b','];
            push_string(&mut written_key, key.as_bytes());
            written_key.push(b':');
            if source.is_text() {
                written_key.push(b'"');
            }
            Ok(Member { key: key.as_str().into(), written_key: written_key.into(), source })
        };
        let members: Box<[Member]> = fields.iter().map(member).collect::<Result<_, _>>()?;
        let mut runs = Vec::new();
        let (mut start, mut kept) = (0, 0);
        for run in members.chunk_by(|left, right| left.source.is_constant() == right.source.is_constant()) {
            let range = start..start + run.len();
            start = range.end;
            if run[0].source.is_constant() {
                runs.push(MemberRun::Constant(kept, range));
                kept += 1;
            } else {
                runs.push(MemberRun::PerRecord(range));
            }
        }
        Ok(Self { members, runs: runs.into(), extras })
    }

    /// The attributes that the layout shows.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.members.iter().filter_map(|member| match &member.source {
            MemberValue::Attribute(attribute) => Some(attribute),
            _ => None,
        })
    }

    /// Adds the needs of the members that are not attributes.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        if self.members.iter().any(|member| member.source == MemberValue::Time) {
            needs.insert(Need::Time);
        }
        if self.extras == Extras::Append {
            needs.insert(Need::AllFields);
        }
    }

    pub(super) fn render(
        &self,
        values: &AttributeValues,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let start = out.len();
        let mut result = Ok(());
        // The cache is taken out of the state, because rendering the members borrows the state.
        let mut cache = std::mem::take(&mut state.constant);
        let constant = cache.of(record, |constant| self.render_constant(values, record, state, constant));
        for run in &self.runs {
            match run {
                MemberRun::Constant(index, _) => out.extend_from_slice(constant.get(*index)),
                MemberRun::PerRecord(range) => {
                    for member in &self.members[range.clone()] {
                        if !record.has_room_for(out.len() - start) {
                            break;
                        }
                        if let PushOutcome::Damaged = member.push(values, record, state, out) {
                            result = Err(RenderError::Malformed);
                        }
                    }
                }
            }
        }
        state.constant = cache;
        if self.extras == Extras::Append {
            for (key, value) in record.fields().filter(|(key, _)| !self.shows_field(key)) {
                out.push(b',');
                push_string(out, key.as_bytes());
                out.push(b':');
                push_value(out, value);
            }
        }
        // Each member began with a comma; the first comma becomes the opening brace.
        match out.get_mut(start) {
            Some(comma) => *comma = b'{',
            None => out.push(b'{'),
        }
        out.push(b'}');
        result
    }

    #[cold]
    fn render_constant(
        &self,
        values: &AttributeValues,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        constant: &mut ConstantTexts,
    ) {
        for run in &self.runs {
            let MemberRun::Constant(_, range) = run else { continue };
            constant.add(|text| {
                for member in &self.members[range.clone()] {
                    if record.has_room_for(text.len()) {
                        member.push(values, record, state, text);
                    }
                }
            });
        }
    }

    /// Adds the pieces of a line without its terminator to a program. Returns false if a member differs between records
    /// of one site, level and logger in a way that programs do not render.
    pub(super) fn add_to_program(
        &self,
        values: &AttributeValues,
        record: &RecordView<'_>,
        state: &mut RenderState,
        program: &mut ProgramCompiler,
    ) -> bool {
        let parsed = ParsedRecord::new(record);
        let mut key_start = Some(b'{');
        for member in &self.members {
            let start = program.constant.len();
            let is_added = match &member.source {
                MemberValue::Exception | MemberValue::Stack => continue,
                MemberValue::Attribute(Attribute::Field(_)) => continue,
                MemberValue::Attribute(attribute @ (Attribute::Message | Attribute::AscTime)) => {
                    program.constant.extend_from_slice(&member.written_key);
                    let is_text = *attribute == Attribute::Message;
                    // The text of a time may need an escape, which its format decides.
                    is_text
                        && {
                            begin_object(&mut program.constant[start..], &mut key_start);
                            program.add_message(record.site.and_then(CompiledSite::template))
                        }
                        && {
                            program.constant.push(b'"');
                            true
                        }
                }
                MemberValue::Time => {
                    program.constant.extend_from_slice(&member.written_key);
                    begin_object(&mut program.constant[start..], &mut key_start);
                    program.add_split_time(6, false);
                    program.constant.extend_from_slice(b"Z\"");
                    true
                }
                MemberValue::Attribute(attribute @ (Attribute::Thread | Attribute::ThreadName)) => {
                    program.constant.extend_from_slice(&member.written_key);
                    begin_object(&mut program.constant[start..], &mut key_start);
                    program.add_json_thread(attribute)
                }
                MemberValue::Attribute(attribute) if attribute.is_constant() => {
                    member.push(values, &parsed, state, &mut program.constant);
                    begin_object(&mut program.constant[start..], &mut key_start);
                    true
                }
                MemberValue::Attribute(_) => false,
            };
            if !is_added {
                return false;
            }
        }
        program.constant.push(b'}');
        // An object without members is left to the general way.
        key_start.is_none()
    }

    fn shows_field(&self, name: &str) -> bool {
        self.members.iter().any(|member| {
            let by_attribute =
                matches!(&member.source, MemberValue::Attribute(Attribute::Field(field)) if **field == *name);
            by_attribute || *member.key == *name
        })
    }
}

/// Each member begins with a comma; that of the first one becomes the opening brace.
fn begin_object(member: &mut [u8], opening: &mut Option<u8>) {
    if let (Some(first), true) = (member.first_mut(), opening.is_some()) {
        *first = opening.take().unwrap_or(*first);
    }
}

enum PushOutcome {
    Written,
    Damaged,
    Absent,
}

impl Member {
    /// Appends key and value; appends nothing if the record does not have the value.
    #[inline]
    fn push(
        &self,
        values: &AttributeValues,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        let before = out.len();
        let shown = match &self.source {
            MemberValue::Attribute(attribute) => {
                out.extend_from_slice(&self.written_key);
                push_attribute(values, attribute, record, state, out)
            }
            MemberValue::Time => {
                out.extend_from_slice(&self.written_key);
                push_iso(values.clock.created(record.time_ns), &mut state.iso, out);
                out.push(b'"');
                PushOutcome::Written
            }
            MemberValue::Exception => self.push_text(out, record.exception),
            MemberValue::Stack => self.push_text(out, record.stack),
        };
        if let PushOutcome::Absent = shown {
            out.truncate(before);
        }
        shown
    }

    fn push_text(&self, out: &mut Vec<u8>, text: Option<&str>) -> PushOutcome {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return PushOutcome::Absent };
        out.extend_from_slice(&self.written_key);
        push_string(out, text.as_bytes());
        PushOutcome::Written
    }
}

#[inline]
fn push_attribute(
    values: &AttributeValues,
    attribute: &Attribute,
    record: &ParsedRecord<'_>,
    state: &mut RenderState,
    out: &mut Vec<u8>,
) -> PushOutcome {
    if matches!(attribute, Attribute::Message | Attribute::AscTime | Attribute::LevelName) {
        let start = out.len();
        let pushed = values.push_plain(attribute, record, state, out);
        escape_from(out, start, &mut state.scratch);
        out.push(b'"');
        return if pushed.is_ok() { PushOutcome::Written } else { PushOutcome::Damaged };
    }
    match (attribute, values.get(attribute, record)) {
        (_, Err(_)) => return PushOutcome::Absent,
        (Attribute::Field(_), Ok(value)) => push_value(out, value),
        (_, Ok(Value::None)) => return PushOutcome::Absent,
        (_, Ok(value)) => push_value(out, value),
    }
    PushOutcome::Written
}

/// Appends one value as JSON.
pub fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::None => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Float(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        Value::Float32(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Float32(_) => push_str(out, value),
        Value::BigInt(digits) if is_integer(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Str(text) | Value::Rendered(text) | Value::BigInt(text) => push_string(out, text.as_bytes()),
        Value::Char(_) | Value::Pointer(_) | Value::Bytes(_) | Value::Tuple(_) => {
            let mut text = Vec::new();
            push_str(&mut text, value);
            push_string(out, String::from_utf8_lossy(&text).as_bytes());
        }
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leads = digits.len() == 1 || !digits.starts_with('0');
    leads && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Appends `text` as a JSON string, quotes included. Bytes that are no UTF-8 stay as they are.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Escapes the text from `start` on; copies nothing when no byte needs an escape.
fn escape_from(out: &mut Vec<u8>, start: usize, scratch: &mut Vec<u8>) {
    if first_escape(&out[start..]).is_none() {
        return;
    }
    scratch.clear();
    scratch.extend_from_slice(&out[start..]);
    out.truncate(start);
    push_escaped(out, scratch);
}

#[cfg(test)]
mod tests {
    use super::super::FormatSpec;
    use super::super::RecordView;
    use super::super::compile::Format;
    use super::*;
    use crate::record::{Encoder, Values, tag};

    fn line(fields: &[(&str, &str)], extras: Extras, encoder: &Encoder) -> String {
        let format = Format::compile(&FormatSpec::json(fields, extras)).expect("supported");
        let values = Values::new(&encoder.bytes);
        let record = RecordView { time_ns: 1_500_000_000, level: 30, logger: "app", site: None, values };
        let mut out = Vec::new();
        format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn members_are_in_order_and_absent_ones_are_omitted() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, "a \"b\"\n\x01é").context_int(tag::THREAD, 7);
        let fields = [
            ("ts", "time"),
            ("level", "level"),
            ("n", "levelno"),
            ("logger", "logger"),
            ("msg", "message"),
            ("tid", "thread"),
            ("tn", "threadName"),
            ("exc", "exception"),
            ("u", "user"),
            ("c", "created"),
        ];

        assert_eq!(
            "{\"ts\":\"1970-01-01T00:00:01.500000Z\",\"level\":\"WARNING\",\"n\":30,\"logger\":\"app\",\
             \"msg\":\"a \\\"b\\\"\\n\\u0001é\",\"tid\":7,\"c\":1.5}\n",
            line(&fields, Extras::Omit, &encoder)
        );
    }

    #[test]
    fn extra_fields_follow_unless_a_key_shows_them() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, "m");
        encoder.field("message").str("hidden").field("user").str("ann").field("nan").float(f64::NAN);
        encoder.field("none").none().field("raw").raw_bytes(b"\"").field("t").tuple(1).int(1).field("b").bool(true);

        assert_eq!(
            "{\"message\":\"m\",\"who\":\"ann\",\"nan\":null,\"none\":null,\"raw\":\"b'\\\"'\",\"t\":\"(1,)\",\"b\":true}\n",
            line(&[("message", "message"), ("who", "user")], Extras::Append, &encoder)
        );
    }

    #[test]
    fn the_first_escape_is_found_at_every_position() {
        // Two words and a remainder; Miri takes minutes for longer texts.
        for len in 0..if cfg!(miri) { 18 } else { 40 } {
            let mut text = vec![b'\xff'; len];

            assert_eq!(None, first_escape(&text));
            for at in 0..len {
                for special in [0, 0x1f, b'"', b'\\'] {
                    text[at] = special;
                    assert_eq!(Some(at), first_escape(&text));
                }
                text[at] = b' ';
                assert_eq!(None, first_escape(&text));
                text[at] = [b'!', b'#', b'[', b']', 0x7f, 0x80][at % 6];
            }
        }
    }

    #[test]
    fn text_cached_for_a_site_level_and_logger_is_never_used_for_another() {
        use crate::definition::SiteDefinition;

        let members =
            [("t", "time"), ("l", "level"), ("n", "logger"), ("m", "message"), ("f", "funcName"), ("i", "lineno")];
        let format = Format::compile(&FormatSpec::json(&members, Extras::Omit)).expect("supported");
        let site = |line: u32| SiteDefinition { line, function: format!("f{line}"), ..SiteDefinition::default() };
        let sites: Vec<_> = (0..150).map(|line| CompiledSite::new(site(line))).collect();
        let mut inline = Encoder::new();
        site(777).encode_inline(&mut inline);
        inline.context_str(tag::MESSAGE, "m");
        let mut plain = Encoder::new();
        plain.context_str(tag::MESSAGE, "m");
        let mut kept = RenderState::default();
        for number in 0..if cfg!(miri) { 60 } else { 20_000_usize } {
            let values = Values::new(if number % 7 == 0 { &inline.bytes } else { &plain.bytes });
            let record = RecordView {
                time_ns: number as i64 * 1_000_000,
                level: [10, 20, 41][number % 3],
                logger: ["a", "b", "a.b"][number / 5 % 3],
                site: (number % 11 != 0).then(|| &sites[number * number % sites.len()]),
                values,
            };
            let (mut with_kept, mut anew) = (Vec::new(), Vec::new());
            format.render(&record, &mut kept, &mut with_kept).expect("the record fits");
            format.render(&record, &mut RenderState::default(), &mut anew).expect("the record fits");

            assert_eq!(String::from_utf8(anew), String::from_utf8(with_kept));
        }
    }

    #[test]
    fn an_object_without_members_is_empty() {
        assert_eq!("{}\n", line(&[("u", "user")], Extras::Omit, &Encoder::new()));
    }
}
