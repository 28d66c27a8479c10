//! Lines of programs that are not Python's: a pattern of names in braces, and its rendering.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). The rules of a pattern:
//!
//! - `{time}`, `{level}`, `{logger}`, `{message}`, `{file}` (without its folder), `{path}`, `{line}`, `{function}`,
//!   `{thread}` (the id), `{thread_name}`, `{process}` (the id), `{fields}` (every extra field as `name=value`, with a
//!   space between two), `{fields.NAME}` (the value of one extra field, or nothing).
//! - `{time:FORMAT}` is a format of strftime. In it, `%3f`, `%6f` and `%9f` are milli-, micro- and nanoseconds, once.
//!   Without a format it is [`DEFAULT_TIME`]. A pattern has one time at most.
//! - The other names take fill, alignment and width after a colon: `{level:<8}`, `{line:>4}`.
//! - `{{` and `}}` are braces.
//!
//! A part that the record does not have is left out. An exception and a stack follow the line.

use super::attribute_values::AttributeValues;
use super::brace::BraceSpec;
use super::control::{self, LineEndRule};
use super::integer::{push_padded, push_signed};
use super::json_text;
use super::malformed::Malformed;
use super::moment::SecondCache;
use super::needs::{Need, Needs};
use super::program_compiler::ProgramCompiler;
use super::render_state::{RenderError, RenderState};
use super::repr::push_str;
use super::spec::{ControlRule, FormatSpec};
use super::time::{Pattern, unknown_directive};
use super::unsupported::Unsupported;
use super::view::{CompiledSite, ParsedRecord, RecordView};
use crate::record::Value;

/// The time of `{time}`.
pub const DEFAULT_TIME: &str = "%Y-%m-%d %H:%M:%S.%6f";

const NANOS: i64 = 1_000_000_000;

/// A part of a record that a pattern shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    Literal(Box<str>),
    Time,
    Level,
    Logger,
    Message,
    File,
    Path,
    Line,
    Function,
    Thread,
    ThreadName,
    Process,
    Fields,
    Field(Box<str>),
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct LinePattern {
    parts: Box<[(PatternPart, Option<BraceSpec>)]>,
    time: Option<TimeText>,
}

/// The format of a time: what is before the fraction of the second, the digits of the fraction, and what is after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TimeText {
    before: Pattern,
    digits: usize,
    after: Option<Pattern>,
}

impl LinePattern {
    pub(super) fn compile(template: &str, spec: &FormatSpec) -> Result<Self, Unsupported> {
        let mut parts = Vec::new();
        let mut time = None;
        let mut literal = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let end = rest.find('}').filter(|_| brace == "{").ok_or(Unsupported::Syntax)?;
            let (name, format) = match rest[..end].split_once(':') {
                Some((name, format)) => (name, Some(format)),
                None => (&rest[..end], None),
            };
            rest = &rest[end + 1..];
            if !literal.is_empty() {
                parts.push((PatternPart::Literal(std::mem::take(&mut literal).into()), None));
            }
            let part = part(name)?;
            let padding = match (&part, format) {
                (PatternPart::Time, format) => {
                    let text = TimeText::compile(format.unwrap_or(DEFAULT_TIME), spec)?;
                    if time.replace(text).is_some() {
                        return Err(Unsupported::DateFormat);
                    }
                    None
                }
                (_, None) => None,
                (_, Some(format)) => Some(BraceSpec::parse(format).ok_or(Unsupported::Syntax)?),
            };
            if padding.is_some_and(|padding| padding.render(Value::Str(""), &mut Vec::new()).is_err()) {
                return Err(Unsupported::Conversion);
            }
            parts.push((part, padding));
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push((PatternPart::Literal(literal.into()), None));
        }
        Ok(Self { parts: parts.into(), time })
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        for (part, _) in &self.parts {
            match part {
                PatternPart::Time => needs.insert(Need::Time),
                PatternPart::File | PatternPart::Path | PatternPart::Line | PatternPart::Function => {
                    needs.insert(Need::Site);
                }
                PatternPart::Thread => needs.insert(Need::ThreadId),
                PatternPart::ThreadName => needs.insert(Need::ThreadName),
                PatternPart::Fields => needs.insert(Need::AllFields),
                PatternPart::Field(name) => needs.insert_field(name),
                PatternPart::Literal(_)
                | PatternPart::Level
                | PatternPart::Logger
                | PatternPart::Message
                | PatternPart::Process => {}
            }
        }
    }

    /// Appends the line of a record without its terminator.
    pub(super) fn render(
        &self,
        values: &AttributeValues,
        control: ControlRule,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let start = out.len();
        let mut result = Ok(());
        for part in &self.parts {
            if !record.has_room_for(out.len() - start) {
                break;
            }
            if self.push_padded_part(part, values, control, record, state, out).is_err() {
                result = Err(RenderError::Malformed);
            }
        }
        let end = out.len();
        record.push_attachments(start, out);
        if control == ControlRule::Escape {
            control::escape_from(end, LineEndRule::Keep, out);
        }
        result
    }

    /// Adds the pieces of a line without its terminator to a program, whose records have no context entries. Returns
    /// false if the pattern has a part that programs do not render.
    pub(super) fn add_to_program(
        &self,
        values: &AttributeValues,
        record: &RecordView<'_>,
        state: &mut RenderState,
        program: &mut ProgramCompiler,
    ) -> bool {
        let parsed = ParsedRecord::new(record);
        self.parts.iter().all(|part| match part {
            (PatternPart::Message, padding) => {
                padding.is_none() && program.add_message(record.site.and_then(CompiledSite::template))
            }
            (PatternPart::Time, _) => {
                let time = self.time.as_ref();
                program
                    .add_split_time(time.map_or(0, |time| time.digits), time.is_some_and(|time| time.after.is_some()));
                true
            }
            (PatternPart::Thread, None) => {
                program.add_thread();
                true
            }
            (PatternPart::ThreadName, None) => program.add_thread_name(),
            (PatternPart::Thread | PatternPart::ThreadName, Some(_)) => false,
            part => {
                // A line with control characters is rendered again, with escapes.
                let keep = ControlRule::Keep;
                self.push_padded_part(part, values, keep, &parsed, state, &mut program.constant).is_ok()
            }
        })
    }

    /// The second of a time and its fraction, in the digits that the pattern shows. `None`: the pattern shows no time.
    #[inline]
    pub(super) fn second_and_fraction(&self, time_ns: i64) -> Option<(i64, u32)> {
        let time = self.time.as_ref()?;
        let divisor = match time.digits {
            3 => 1_000_000,
            6 => 1_000,
            _ => 1,
        };
        Some((time_ns.div_euclid(NANOS), (time_ns.rem_euclid(NANOS) / divisor) as u32))
    }

    /// Appends the texts of a second, before and after its fraction.
    pub(super) fn push_second(&self, second: i64, before: &mut Vec<u8>, after: &mut Vec<u8>) {
        if let Some(time) = &self.time {
            time.before.push(second, before);
            time.after.iter().for_each(|pattern| pattern.push(second, after));
        }
    }

    fn push_padded_part(
        &self,
        (part, padding): &(PatternPart, Option<BraceSpec>),
        values: &AttributeValues,
        control: ControlRule,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let at = out.len();
        let pushed = self.push_part(part, values, record, state, out);
        if control == ControlRule::Escape && !matches!(part, PatternPart::Literal(_)) {
            control::escape_from(at, LineEndRule::Escape, out);
        }
        if let Some(padding) = padding {
            state.scratch.clear();
            state.scratch.extend_from_slice(&out[at..]);
            out.truncate(at);
            // `compile` accepted only specs that show every text.
            let _ = padding.render(Value::Str(&String::from_utf8_lossy(&state.scratch)), out);
        }
        pushed
    }

    #[inline]
    fn push_part(
        &self,
        part: &PatternPart,
        values: &AttributeValues,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        match part {
            PatternPart::Literal(text) => out.extend_from_slice(text.as_bytes()),
            PatternPart::Time => {
                if let Some(time) = &self.time {
                    time.push(record.time_ns, &mut state.asctime, &mut state.iso, out);
                }
            }
            PatternPart::Level => values.push_level_name(record.level, out),
            PatternPart::Logger => out.extend_from_slice(record.logger.as_bytes()),
            PatternPart::Message => return record.push_message(out),
            PatternPart::Thread => record.thread.into_iter().for_each(|id| push_signed(out, id)),
            PatternPart::ThreadName => {
                record.thread_name.into_iter().for_each(|name| out.extend_from_slice(name.as_bytes()));
            }
            PatternPart::Process => values.process_id.into_iter().for_each(|id| push_signed(out, id.into())),
            PatternPart::Field(name) => {
                record.field(name).into_iter().for_each(|value| push_str(out, record.in_its_language(value)));
            }
            PatternPart::Fields => push_fields(record, out),
            PatternPart::File | PatternPart::Path | PatternPart::Line | PatternPart::Function
                if record.site().is_none() => {}
            PatternPart::File => out.extend_from_slice(record.filename().as_bytes()),
            PatternPart::Path => out.extend_from_slice(record.file().as_bytes()),
            PatternPart::Line => push_signed(out, record.line().into()),
            PatternPart::Function => out.extend_from_slice(record.function().as_bytes()),
        }
        Ok(())
    }
}

fn part(name: &str) -> Result<PatternPart, Unsupported> {
    Ok(match name {
        "time" => PatternPart::Time,
        "level" => PatternPart::Level,
        "logger" => PatternPart::Logger,
        "message" => PatternPart::Message,
        "file" => PatternPart::File,
        "path" => PatternPart::Path,
        "line" => PatternPart::Line,
        "function" => PatternPart::Function,
        "thread" => PatternPart::Thread,
        "thread_name" => PatternPart::ThreadName,
        "process" => PatternPart::Process,
        "fields" => PatternPart::Fields,
        name => match name.strip_prefix("fields.") {
            Some(field) if !field.is_empty() => PatternPart::Field(field.into()),
            _ => return Err(Unsupported::Attribute),
        },
    })
}

/// Appends every extra field as `name=value`. A text with a space, a quote, `=` or a control character is in quotes.
fn push_fields(record: &ParsedRecord<'_>, out: &mut Vec<u8>) {
    for (index, (name, value)) in record.fields().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        match value {
            Value::Str(text)
                if text.is_empty() || text.bytes().any(|byte| byte <= b' ' || matches!(byte, b'"' | b'=' | 0x7f)) =>
            {
                json_text::push_string(out, text, false);
            }
            value => push_str(out, record.in_its_language(value)),
        }
    }
}

impl TimeText {
    fn compile(format: &str, spec: &FormatSpec) -> Result<Self, Unsupported> {
        let mut at = 0;
        let mut fraction = None;
        while let Some(found) = format[at..].find('%') {
            at += found;
            let directive = format[at + 1..].chars().next().ok_or(Unsupported::DateFormat)?;
            if directive.is_ascii_digit() {
                let digits = match format.get(at..at + 3) {
                    Some("%3f") => 3,
                    Some("%6f") => 6,
                    Some("%9f") => 9,
                    _ => return Err(Unsupported::DateFormat),
                };
                if fraction.replace((at, digits)).is_some() {
                    return Err(Unsupported::DateFormat);
                }
            }
            at += 1 + directive.len_utf8();
        }
        let (before, digits, after) = match fraction {
            Some((at, digits)) => (&format[..at], digits, &format[at + 3..]),
            None => (format, 0, ""),
        };
        if unknown_directive(before).or_else(|| unknown_directive(after)).is_some() {
            return Err(Unsupported::DateFormat);
        }
        let compile = |text: &str| Pattern::compile(text, spec.zone);
        let after = (!after.is_empty()).then(|| compile(after)).transpose()?;
        Ok(Self { before: compile(before)?, digits, after })
    }

    #[inline]
    fn push(&self, time_ns: i64, before: &mut SecondCache, after: &mut SecondCache, out: &mut Vec<u8>) {
        let second = time_ns.div_euclid(NANOS);
        out.extend_from_slice(before.text(second, |text| self.before.push(second, text)));
        let nanoseconds = time_ns.rem_euclid(NANOS) as u64;
        match self.digits {
            0 => {}
            3 => push_padded(out, nanoseconds / 1_000_000, 3),
            6 => push_padded(out, nanoseconds / 1_000, 6),
            _ => push_padded(out, nanoseconds, 9),
        }
        if let Some(pattern) = &self.after {
            out.extend_from_slice(after.text(second, |text| pattern.push(second, text)));
        }
    }
}

/// The error of a pattern that [`super::Format::compile`] refuses for the reason `why`, with the wrong part.
pub fn pattern_error(pattern: &str, why: Unsupported) -> String {
    let opened = pattern.replace("{{", "");
    let names = opened.split('{').skip(1).map(|rest| rest.split([':', '}']).next().unwrap_or_default());
    match why {
        Unsupported::Syntax => {
            "a brace has no partner, or a width is wrong; {{ and }} are braces of the line".to_owned()
        }
        Unsupported::Attribute => {
            let unknown = names.into_iter().find(|name| part(name).is_err()).unwrap_or_default();
            format!(
                "there is no {{{unknown}}}; the names are time, level, logger, message, file, path, line, function, \
                 thread, thread_name, process, fields and fields.NAME"
            )
        }
        Unsupported::Conversion => "all names but {time} take a fill, an alignment and a width only".to_owned(),
        Unsupported::DateFormat => {
            "{time:FORMAT} takes a format of strftime with one of %3f, %6f and %9f, once in a pattern".to_owned()
        }
    }
}

/// How a native program writes the names of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelWords {
    /// `INFO`.
    Upper,
    /// `info`.
    Lower,
    /// `INF`.
    Short,
    /// `I`.
    Letter,
}

impl LevelWords {
    /// The names of the levels trace (5) to critical (50), for [`FormatSpec::level_names`].
    pub fn names(self) -> Vec<(u16, String)> {
        const NAMES: [(u16, [&str; 4]); 6] = [
            (5, ["TRACE", "trace", "TRC", "T"]),
            (10, ["DEBUG", "debug", "DBG", "D"]),
            (20, ["INFO", "info", "INF", "I"]),
            (30, ["WARNING", "warning", "WRN", "W"]),
            (40, ["ERROR", "error", "ERR", "E"]),
            (50, ["CRITICAL", "critical", "CRT", "C"]),
        ];
        NAMES.iter().map(|(level, names)| (*level, names[self as usize].to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CompiledSite, Format, RecordView, Style};
    use super::*;
    use crate::definition::{Grammar, SiteDefinition, Zone};
    use crate::record::{Encoder, Values, tag};

    fn spec(pattern: &str) -> FormatSpec {
        let mut spec = FormatSpec::pattern(pattern);
        spec.zone = Zone::Utc;
        spec.process_id = 77;
        spec
    }

    fn line(spec: &FormatSpec, time_ns: i64, encoder: &Encoder) -> String {
        let site = CompiledSite::new(SiteDefinition {
            file: "/src/app.cc".to_owned(),
            line: 12,
            function: "run".to_owned(),
            template: Some("did {}".to_owned()),
            grammar: Grammar::Fmt,
        });
        let values = Values::new(&encoder.bytes);
        let record = RecordView { time_ns, level: 20, logger: "net", site: Some(&site), values };
        let format = Format::compile(spec).expect("supported");
        let mut out = Vec::new();
        format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");
        String::from_utf8(out).expect("UTF-8")
    }

    fn record() -> Encoder {
        let mut encoder = Encoder::new();
        encoder.context_int(tag::THREAD, 9).context_str(tag::THREAD_NAME, "io");
        encoder.field("user").str("ann lee").field("n").int(3).field("ok").str("yes").int(5);
        encoder
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no wcsftime")]
    fn a_line_has_the_parts_of_its_pattern() {
        for (pattern, expected) in [
            (
                "[{time:%Y-%m-%d %H:%M:%S.%3f}] [{level:<5}] [{logger}] {message}",
                "[2001-09-09 01:46:40.012] [INFO ] [net] did 5\n",
            ),
            ("{time} {message:>6}|", "2001-09-09 01:46:40.012345  did 5|\n"),
            ("{time:%9f %%3f|%S.} {{{line:>4}}}", "012345678 %3f|40. {  12}\n"),
            ("{time:%H.%6f%z}", "01.012345+0000\n"),
            ("{file}:{line} {path} {function}", "app.cc:12 /src/app.cc run\n"),
            ("{thread} {thread_name} {process}", "9 io 77\n"),
            ("{fields} {fields.n}{fields.absent}", "user=\"ann lee\" n=3 ok=yes 3\n"),
        ] {
            assert_eq!(expected, line(&spec(pattern), 1_000_000_000_012_345_678, &record()), "{pattern}");
        }
    }

    #[test]
    fn a_bool_is_shown_in_the_language_of_its_site() {
        let mut encoder = Encoder::new();
        encoder.field("ok").bool(true).int(5);

        assert_eq!("ok=true true did 5\n", line(&spec("{fields} {fields.ok} {message}"), 0, &encoder));
        let template = FormatSpec::text(Style::Percent, "%(ok)s %(message)s");
        assert_eq!("true did 5\n", line(&template, 0, &encoder));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no wcsftime")]
    fn times_before_the_epoch_and_at_the_end_of_a_second_are_exact() {
        assert_eq!("59.999999999\n", line(&spec("{time:%S.%9f}"), -1, &record()));
        assert_eq!("00.999\n", line(&spec("{time:%S.%3f}"), 999_999_999, &record()));
    }

    #[test]
    fn levels_are_shown_with_the_configured_words() {
        for (words, expected) in [
            (LevelWords::Upper, "INFO\n"),
            (LevelWords::Lower, "info\n"),
            (LevelWords::Short, "INF\n"),
            (LevelWords::Letter, "I\n"),
        ] {
            let mut spec = spec("{level}");
            spec.level_names = words.names();

            assert_eq!(expected, line(&spec, 0, &record()));
        }
    }

    #[test]
    fn an_exception_follows_the_line() {
        let mut encoder = Encoder::new();
        encoder.context_str(tag::EXCEPTION, "std::runtime_error: x").int(1);

        assert_eq!("did 1\nstd::runtime_error: x\n", line(&spec("{message}"), 0, &encoder));
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for (pattern, reason) in [
            ("{", Unsupported::Syntax),
            ("}", Unsupported::Syntax),
            ("{lvl}", Unsupported::Attribute),
            ("{}", Unsupported::Attribute),
            ("{fields.}", Unsupported::Attribute),
            ("{level:+5}", Unsupported::Conversion),
            ("{level:zz}", Unsupported::Syntax),
            ("{level:5000}", Unsupported::Syntax),
            ("{time:%}", Unsupported::DateFormat),
            ("{time:%4f}", Unsupported::DateFormat),
            ("{time:%3f%6f}", Unsupported::DateFormat),
            ("{time}{time}", Unsupported::DateFormat),
        ] {
            assert_eq!(Some(reason), Format::compile(&spec(pattern)).err(), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_needs_only_the_parts_that_it_shows() {
        let needs = |pattern| Format::compile(&spec(pattern)).expect("supported").needs().clone();
        assert!(needs("{file}").contains(Need::Site));
        assert!(needs("{fields}").contains(Need::AllFields));
        assert_eq!(["x"], needs("{fields.x}").fields());
        assert!(!needs("{level} {message}").contains(Need::Time));
    }
}
