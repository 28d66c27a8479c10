//! A record as an entry of Fluent Forward: all of its parts under names, in MessagePack.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). If only Python can read a record,
//! `python/logspool/handlers/_service.py` lists its parts. The bindings write these parts with the functions of this
//! file. The rules:
//!
//! - `[time, {name: value, ...}]`. The time is an EventTime: extension 0, seconds and nanoseconds since the epoch, four
//!   bytes each, clamped to the range. The head of the map has two bytes of length, everything else its shortest form.
//! - The parts come in this order: `level` (the number), `logger`, `file` (the path), `line`, `function`, `process`
//!   (the id), `host`, `message`, `process_name`, `thread` (the id), `thread_name`, `task`, `exception`, `stack`, then
//! - A part that the record does not have is left out, as is an empty `exception` or `stack`. `file`, `line` and
//!   `function` are left out together.
//! - An extra field keeps its name even if a part has the same name. The part then comes first, and receivers of
//!   logspool keep both.
//! - Values: None is nil. A bool, a float and an int that fits `i64` are themselves; another int is its decimal digits.
//!   A single is a float of four bytes, and an address is the text `0x...`.
//!   A tuple, list or dict is an array or map. Any other value is the text `str(value)`.
//! - Every receiver limits the size of a record, and a refused record would hold up all records after it. So a text may
//!   take half of the bytes left of `MAX_BYTES`, and a name `MAX_NAME_BYTES`; a longer one is cut and ends with `...`.
//!   A record has at most `MAX_PARTS` parts. A last part, `fields_left_out`, holds the number of missing fields.

use super::event_time::{BEFORE_SECONDS, after_seconds, event_time};
use super::line_program::LinePiece;
use super::malformed::Malformed;
use super::needs::{Need, Needs};
use super::program_compiler::ProgramCompiler;
use super::render_state::{RenderError, RenderState};
use super::repr::push_str;
use super::spec::FormatSpec;
use super::view::{CompiledSite, ParsedRecord, RecordView};
use crate::msgpack::{self, Item, Reader};
use crate::record::Value;

/// Maximum bytes of the texts of an entry.
///
/// Chosen: logspool's service accepts entries of 10 MiB, Fluentd of 8 MiB by default.
const MAX_BYTES: usize = 6 * 1024 * 1024;

/// Maximum bytes of a field's name. Chosen: names are words. Even [`MAX_PARTS`] names of ten times this length would
/// fit.
const MAX_NAME_BYTES: usize = 250;

/// Maximum number of parts of a record. Chosen: logspool's service accepts 10,000 values, names included.
pub const MAX_PARTS: u16 = 1000;

/// Maximum depth to which nested values are encoded as arrays and maps.
///
/// Chosen: programs log values of less depth. The encoding of a list that contains itself ends at this depth.
pub const MAX_DEPTH: usize = 16;

/// A compiled entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryLayout {
    /// The encoded parts that are the same in all records of the process.
    process: Box<[u8]>,
    process_parts: u16,
    has_task: bool,
}

impl EntryLayout {
    pub(super) fn compile(spec: &FormatSpec) -> Self {
        let mut process = Vec::new();
        let mut process_parts = 1;
        if spec.process_id != 0 {
            process_parts += 1;
            msgpack::push_text(&mut process, b"process");
            msgpack::push_int(&mut process, i64::from(spec.process_id));
        }
        push_part(&mut process, b"host", host_name().as_bytes());
        Self { process: process.into(), process_parts, has_task: spec.cpython.has_task_name() }
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        for need in [Need::Site, Need::ThreadId, Need::ThreadName, Need::ProcessName, Need::Time, Need::AllFields] {
            needs.insert(need);
        }
        needs.insert(Need::Containers);
        if self.has_task {
            needs.insert(Need::TaskName);
        }
    }

    pub(super) fn render(
        &self,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let start = out.len();
        push_head(out, record.time_ns, 0);
        let parts_at = out.len() - 2;
        out.extend_from_slice(
            state.constant.of(record, |constant| constant.add(|text| push_place(text, record))).get(0),
        );
        let mut parts = self.parts_before_message(record);
        out.extend_from_slice(&self.process);
        let mut message = std::mem::take(&mut state.scratch);
        message.clear();
        let rendered = record.push_message(&mut message).map_err(|Malformed| RenderError::Malformed);
        msgpack::push_text(out, b"message");
        push_bounded(out, start, &message);
        state.scratch = message;
        parts += 1;
        if let Some(name) = record.process_name {
            push_part(out, b"process_name", name.as_bytes());
            parts += 1;
        }
        if let Some(thread) = record.thread {
            msgpack::push_text(out, b"thread");
            msgpack::push_int(out, thread);
            parts += 1;
        }
        let is_there = |text: &&str| !text.is_empty();
        for (name, text) in [
            (&b"thread_name"[..], record.thread_name),
            (b"task", record.task_name),
            (b"exception", record.exception.filter(is_there)),
            (b"stack", record.stack.filter(is_there)),
        ] {
            if let Some(text) = text {
                msgpack::push_text(out, name);
                push_bounded(out, start, text.as_bytes());
                parts += 1;
            }
        }
        let mut left_out = 0;
        for (name, value) in record.fields() {
            if parts < MAX_PARTS {
                parts += 1;
                push_name(out, name.as_bytes());
                push_value(out, start, value);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            parts += 1;
            push_left_out(out, left_out);
        }
        out[parts_at..parts_at + 2].copy_from_slice(&parts.to_be_bytes());
        rendered
    }

    /// Adds the pieces of an entry to a program. Returns false if the message has a part that programs do not render.
    pub(super) fn add_to_program(&self, record: &RecordView<'_>, program: &mut ProgramCompiler) -> bool {
        let record_without_values = ParsedRecord::new(record);
        program.constant.extend_from_slice(&BEFORE_SECONDS);
        program.add_time();
        push_place(&mut program.constant, &record_without_values);
        program.constant.extend_from_slice(&self.process);
        msgpack::push_text(&mut program.constant, b"message");
        program.add_entry_start(self.parts_before_message(&record_without_values) + 1);
        let is_added = program.add_message(record.site.and_then(CompiledSite::template));
        program.add(LinePiece::EntryEnd);
        is_added
    }

    fn parts_before_message(&self, record: &ParsedRecord<'_>) -> u16 {
        self.process_parts + if record.site().is_some() { 5 } else { 2 }
    }
}

fn push_part(out: &mut Vec<u8>, name: &[u8], text: &[u8]) {
    msgpack::push_text(out, name);
    msgpack::push_text(out, text);
}

/// Writes the head of a record's entry: its time and its number of parts. Each part is a name and a value.
pub fn push_head(out: &mut Vec<u8>, time_ns: i64, parts: u16) {
    let (seconds, nanoseconds) = event_time(time_ns);
    out.extend_from_slice(&BEFORE_SECONDS);
    out.extend_from_slice(&seconds.to_be_bytes());
    out.extend_from_slice(&after_seconds(nanoseconds, parts));
}

/// Appends the name of a part.
pub fn push_name(out: &mut Vec<u8>, name: &[u8]) {
    push_cut(out, MAX_NAME_BYTES, name);
}

/// Appends the last part of a record that has more than [`MAX_PARTS`] parts: the number of missing fields.
pub fn push_left_out(out: &mut Vec<u8>, fields: i64) {
    push_name(out, b"fields_left_out");
    msgpack::push_int(out, fields);
}

/// Appends the parts that are the same for every record of one site, level and logger.
#[cold]
fn push_place(out: &mut Vec<u8>, record: &ParsedRecord<'_>) {
    msgpack::push_text(out, b"level");
    msgpack::push_int(out, i64::from(record.level));
    push_part(out, b"logger", record.logger.as_bytes());
    if record.site().is_some() {
        push_part(out, b"file", record.file().as_bytes());
        msgpack::push_text(out, b"line");
        msgpack::push_int(out, i64::from(record.line()));
        push_part(out, b"function", record.function().as_bytes());
    }
}

/// Appends a text to the entry that began at `start`, cut to half of the bytes left.
pub fn push_bounded(out: &mut Vec<u8>, start: usize, text: &[u8]) {
    let room = MAX_BYTES.saturating_sub(out.len() - start) / 2;
    push_cut(out, room, text);
}

/// Appends a text. A text of more than `room` bytes is cut.
fn push_cut(out: &mut Vec<u8>, mut room: usize, text: &[u8]) {
    if text.len() <= room {
        return msgpack::push_text(out, text);
    }
    while room > 0 && text[room] & 0xc0 == 0x80 {
        room -= 1;
    }
    msgpack::push_text(out, &[&text[..room], b"..."].concat());
}

/// Appends a value to the entry that began at `start`.
pub fn push_value(out: &mut Vec<u8>, start: usize, value: Value<'_>) {
    match value {
        Value::None => msgpack::push_nil(out),
        Value::Bool(value) => msgpack::push_bool(out, value),
        Value::Int(value) => msgpack::push_int(out, value),
        Value::Uint(value) => match i64::try_from(value) {
            Ok(value) => msgpack::push_int(out, value),
            Err(_) => push_bounded(out, start, value.to_string().as_bytes()),
        },
        Value::Float(value) => msgpack::push_float(out, value),
        Value::Float32(value) => msgpack::push_float32(out, value),
        Value::Str(text) | Value::Rendered(text) | Value::BigInt(text) => push_bounded(out, start, text.as_bytes()),
        // Values are encoded up to a limited depth.
        Value::Tuple(items) if items.count() <= usize::from(MAX_PARTS) => {
            msgpack::push_array(out, items.count());
            items.for_each(|item| push_value(out, start, item));
        }
        Value::Char(_) | Value::Pointer(_) | Value::Bytes(_) | Value::Tuple(_) => {
            let mut text = Vec::new();
            push_str(&mut text, value);
            push_bounded(out, start, &text);
        }
    }
}

/// The name of this machine, as `os.uname().nodename` has it.
fn host_name() -> String {
    // SAFETY: an all-zero utsname is a valid value of that plain struct, and uname only writes to it.
    let names = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&mut names);
        names
    };
    let name = names.nodename.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8(name).unwrap_or_default()
}

/// Shows an entry as one line of text with its newline, for output that no service receives. `None`: the bytes are not
/// an entry.
pub fn readable(entry: &[u8]) -> Option<String> {
    let mut reader = Reader::new(entry);
    let Ok((Item::Array(2), Item::Extension(..), Item::Map(parts))) =
        (|| Ok::<_, msgpack::ReadError>((reader.item()?, reader.item()?, reader.item()?)))()
    else {
        return None;
    };
    let (mut level, mut logger, mut message, mut exception) = (0, String::new(), String::new(), String::new());
    for _ in 0..parts {
        let name = reader.item().ok()?;
        let value = { reader }.item().ok()?;
        reader.skip().ok()?;
        match (name, value) {
            (Item::Text(b"level"), Item::Int(number)) => level = number,
            (Item::Text(b"logger"), Item::Text(text)) if logger.is_empty() => logger = lossy_text(text),
            (Item::Text(b"message"), Item::Text(text)) if message.is_empty() => message = lossy_text(text),
            (Item::Text(b"exception"), Item::Text(text)) => exception = format!("\n{}", lossy_text(text)),
            _ => {}
        }
    }
    let level = match level {
        50 => "CRITICAL".to_owned(),
        40 => "ERROR".to_owned(),
        30 => "WARNING".to_owned(),
        20 => "INFO".to_owned(),
        10 => "DEBUG".to_owned(),
        other => format!("Level {other}"),
    };
    Some(format!("{level}:{logger}:{message}{exception}\n"))
}

fn lossy_text(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use crate::definition::SiteDefinition;
    use crate::record::{Encoder, Values, tag};

    fn entry(spec: &FormatSpec, site: Option<&CompiledSite>, time_ns: i64, values: &Encoder) -> Vec<u8> {
        let format = Format::compile(spec).unwrap();
        let values = Values::new(&values.bytes);
        let record = RecordView { time_ns, level: 30, logger: "shop", site, values };
        let mut out = Vec::new();
        format.render(&record, &mut RenderState::default(), &mut out).unwrap();
        out
    }

    /// Returns the map of an entry as text, and the bytes of its time.
    fn read(entry: &[u8]) -> (Vec<String>, Vec<u8>) {
        let mut reader = Reader::new(entry);
        assert_eq!(Ok(Item::Array(2)), reader.item());
        let Ok(Item::Extension(0, time)) = reader.item() else { panic!("the time comes first") };
        let Ok(Item::Map(parts)) = reader.item() else { panic!("the parts are a map") };
        let shown = |item: Item<'_>| match item {
            Item::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => format!("{other:?}"),
        };
        let mut read = Vec::new();
        for _ in 0..parts {
            let name = shown(reader.item().unwrap());
            let value = reader.item().unwrap();
            if let Item::Array(len) = value {
                let items: Vec<String> = (0..len).map(|_| shown(reader.item().unwrap())).collect();
                read.push(format!("{name}={}", items.join(" ")));
            } else {
                read.push(format!("{name}={}", shown(value)));
            }
        }
        assert!(reader.rest().is_empty());
        (read, time.to_vec())
    }

    #[test]
    fn every_part_of_a_record_is_stored_under_its_name() {
        let definition = SiteDefinition {
            file: "/srv/shop.py".to_owned(),
            line: 300,
            function: "pay".to_owned(),
            template: Some("%s paid %d".to_owned()),
            ..SiteDefinition::default()
        };
        let mut values = Encoder::new();
        values.context_int(tag::THREAD, 139_000_000_000_000).context_str(tag::THREAD_NAME, "MainThread");
        values.context_str(tag::PROCESS_NAME, "MainProcess").context_str(tag::TASK_NAME, "Task-1");
        values.context_str(tag::EXCEPTION, "Traceback").context_str(tag::STACK, "Stack");
        values.field("user").str("ann").field("none").none().field("yes").bool(true).field("few").int(-3);
        values.field("share").float(0.5).field("raw").raw_bytes(b"x").field("pair").tuple(2).int(1).str("b");
        values.str("ann").int(5);
        let bytes = entry(&FormatSpec::entry(77), Some(&CompiledSite::new(definition)), 5_000_000_007, &values);
        let (parts, time) = read(&bytes);
        let host = format!("host={}", host_name());

        assert_eq!([0, 0, 0, 5, 0, 0, 0, 7], *time);
        assert_eq!(
            [
                "level=Int(30)",
                "logger=shop",
                "file=/srv/shop.py",
                "line=Int(300)",
                "function=pay",
                "process=Int(77)",
                &host,
                "message=ann paid 5",
                "process_name=MainProcess",
                "thread=Int(139000000000000)",
                "thread_name=MainThread",
                "task=Task-1",
                "exception=Traceback",
                "stack=Stack",
                "user=ann",
                "none=Nil",
                "yes=Bool(true)",
                "few=Int(-3)",
                "share=Float(0.5)",
                "raw=b'x'",
                "pair=Int(1) b",
            ],
            *parts
        );
        assert_eq!(Some("WARNING:shop:ann paid 5\nTraceback\n".to_owned()), readable(&bytes));
    }

    #[test]
    fn missing_parts_of_a_record_are_omitted() {
        let mut values = Encoder::new();
        values.context_str(tag::MESSAGE, "m").context_str(tag::EXCEPTION, "");
        let (parts, time) = read(&entry(&FormatSpec::entry(0), None, -1, &values));

        assert_eq!(["level=Int(30)", "logger=shop", &format!("host={}", host_name()), "message=m"], *parts);
        assert_eq!([0; 8], *time);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes minutes for megabytes of text")]
    fn a_record_too_large_for_every_receiver_is_cut() {
        let mut values = Encoder::new();
        values.context_str(tag::MESSAGE, &"\u{20ac}".repeat(2_000_000)).context_str(tag::STACK, "the stack");
        values.field(&"n".repeat(1000)).str("long name");
        for number in 1..2000 {
            values.field(&format!("field {number}")).str("text");
        }
        let bytes = entry(&FormatSpec::entry(1), None, 0, &values);
        let (parts, _) = read(&bytes);
        let message = parts.iter().find(|part| part.starts_with("message=")).unwrap();

        assert!(bytes.len() < MAX_BYTES, "{}", bytes.len());
        assert!(message.len() > MAX_BYTES / 2 - 1000 && message.ends_with("\u{20ac}..."));
        assert!(parts.contains(&"stack=the stack".to_owned()));
        let name = parts.iter().find(|part| part.ends_with("=long name")).unwrap();
        assert_eq!(format!("{}...=long name", "n".repeat(250)), *name);
        assert_eq!((1001, "fields_left_out=Int(1006)"), (parts.len(), parts.last().unwrap().as_str()));
    }

    #[test]
    fn only_the_entry_format_shows_containers() {
        let json = Format::compile(&FormatSpec::json(&[], super::super::Extras::Append)).unwrap();

        assert!(Format::compile(&FormatSpec::entry(1)).unwrap().needs().contains(Need::Containers));
        assert!(!json.needs().contains(Need::Containers));
    }

    #[test]
    fn bytes_that_are_not_an_entry_are_not_shown() {
        let mut values = Encoder::new();
        values.context_str(tag::MESSAGE, "m");
        let bytes = entry(&FormatSpec::entry(1), None, 0, &values);
        for cut in 0..bytes.len() {
            assert_eq!(None, readable(&bytes[..cut]), "{cut}");
        }
        assert_eq!(None, readable(b"a line of text"));
    }

    #[test]
    fn values_of_other_languages_are_numbers_where_they_are_exact() {
        let pushed = |value| {
            let mut out = Vec::new();
            push_value(&mut out, 0, value);
            out
        };
        assert_eq!([&[0xca][..], &0.1_f32.to_be_bytes()].concat(), pushed(Value::Float32(0.1)));
        assert_eq!(b"\xa60x1000", &pushed(Value::Pointer(4096))[..]);
        assert_eq!(b"\xa2\xc3\xa9", &pushed(Value::Char('\u{e9}'))[..]);
        assert_eq!(pushed(Value::Int(7)), pushed(Value::Uint(7)));
    }
}
