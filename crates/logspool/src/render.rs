//! Renders a record from its lane into bytes in the chunks of its sinks.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The collector calls it for records of its own process, and the
//! recoverer for the segment of a dead process. A definition is decoded when its id first occurs, so any process that
//! has the segment can render the segment's records.

use logspool_lanes::queue::reader::PeekedRecord;
use logspool_lanes::segment::layout::{Table, level_class};
use logspool_record::definition::{RouteDefinition, SiteDefinition};
use logspool_record::format::{
    CompiledSite, Format, FormatSpec, ParsedRecord, ProgramKey, RecordView, RenderError, RenderState,
};
use logspool_record::{Context, Encoder, Entry, Head, Value, Values, flags, tag};

use crate::chunk::Chunk;
use crate::sink::Mark;

/// Source of the definitions and large records of a segment.
pub trait Definitions {
    /// The items of the tuple that a definition consists of. `None` if there is no such id.
    fn definition(&self, table: Table, id: u32) -> Option<Values<'_>>;

    /// The values of large record `number`, if they are readable.
    fn blob(&self, number: u64) -> Option<Vec<u8>>;
}

/// Destination of finished lines.
pub trait Chunks {
    /// The chunk to which lines for `sink` are appended. `None` if lines for this sink are not wanted.
    fn chunk(&mut self, sink: u32) -> Option<&mut Chunk>;
}

/// Result of rendering one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenRecord {
    /// Number of the record's blob (the file of a large record), if it has one.
    pub blob: Option<u64>,
    /// Bytes of the values in the blob.
    pub blob_bytes: usize,
    /// Whether all parts of the record were available: its values, route, site and formats.
    pub whole: bool,
}

/// A compiled format, and the state that rendering keeps between records.
struct Compiled {
    format: Format,
    state: RenderState,
}

/// Decoded definitions, by id.
#[derive(Default)]
pub struct Renderer {
    sites: Vec<Slot<CompiledSite>>,
    routes: Vec<Slot<RouteDefinition>>,
    formats: Vec<Slot<Compiled>>,
    /// For each slot of the sink table, the sink and format of the newest record. Used for messages of logspool itself.
    newest_format: Vec<(u32, u32)>,
    /// Maximum bytes of all lines of one record.
    max_bytes: Option<usize>,
    /// How records of frequent kinds were rendered, by a hash of site, route and level.
    shortcuts: Vec<Shortcut>,
}

/// Number of shortcuts. After a collision, a shortcut is replaced.
///
/// Chosen: as many as programs of one format, so that a program is seldom without its shortcut.
const SHORTCUTS: usize = 64;

/// The only target of the records of one site, route and level, and the program that renders them there.
///
/// The next such record needs no lookup of site, route and targets. Ids are never used twice, so a shortcut stays right
/// as long as its format holds the program.
#[derive(Debug, Clone, Copy, Default)]
struct Shortcut {
    site: u32,
    /// 0: the place is empty. No route has this id.
    route: u32,
    level: u16,
    sink: u32,
    format: u32,
    program: ProgramKey,
}

impl Shortcut {
    /// Index of the shortcut for records with this head.
    #[inline]
    fn place(head: Head) -> usize {
        (head.site.wrapping_add(head.route.wrapping_mul(7)).wrapping_add(31 * u32::from(head.level))) as usize
            % SHORTCUTS
    }

    #[inline]
    fn is_for(&self, head: Head) -> bool {
        self.site == head.site && self.route == head.route && self.level == head.level && head.route != 0
    }
}

/// A slot of a table, with the id that last occurred for this slot.
enum Slot<T> {
    Unmet,
    Unusable(u32),
    Ready(u32, Box<T>),
}

impl<T> Slot<T> {
    fn holds(&self, id: u32) -> bool {
        matches!(self, Self::Unusable(held) | Self::Ready(held, _) if *held == id)
    }
}

/// The decoded definition of `id`. `load` decodes it when the id first occurs. An invalid definition is not decoded
/// again.
#[inline]
fn by_id<T>(table: &mut Vec<Slot<T>>, ids: Table, id: u32, load: impl FnOnce() -> Option<T>) -> Option<&mut T> {
    let index = ids.slot(id);
    if index >= table.len() || !table[index].holds(id) {
        if table.len() <= index {
            table.resize_with(index + 1, || Slot::Unmet);
        }
        table[index] = load().map_or(Slot::Unusable(id), |loaded| Slot::Ready(id, Box::new(loaded)));
    }
    match &mut table[index] {
        Slot::Ready(_, ready) => Some(ready),
        Slot::Unmet | Slot::Unusable(_) => None,
    }
}

impl Renderer {
    /// A renderer for untrusted definitions: all lines of one record take at most `max_bytes`. Lines that do not fit
    /// are left out.
    pub fn within(max_bytes: usize) -> Self {
        Self { max_bytes: Some(max_bytes), ..Self::default() }
    }

    /// Renders one record for each of its targets.
    #[inline]
    pub fn take(
        &mut self,
        definitions: &impl Definitions,
        chunks: &mut impl Chunks,
        peeked: PeekedRecord<'_>,
        time_ns: i64,
    ) -> TakenRecord {
        if peeked.head.flags == 0 && self.render_by_shortcut(chunks, peeked, time_ns) {
            return TakenRecord { blob: None, blob_bytes: 0, whole: true };
        }
        if peeked.head.flags & flags::BLOB == 0 {
            let whole = self.render(definitions, chunks, peeked, time_ns);
            return TakenRecord { blob: None, blob_bytes: 0, whole };
        }
        let blob = blob_number(&peeked);
        let Some(values) = blob.and_then(|number| definitions.blob(number)) else {
            return TakenRecord { blob, blob_bytes: 0, whole: false };
        };
        let whole = self.render(definitions, chunks, PeekedRecord { values: &values, ..peeked }, time_ns);
        TakenRecord { blob, blob_bytes: values.len(), whole }
    }

    /// Renders a record as the newest record of its site, route and level was rendered. Returns false if there is no
    /// shortcut, or if the record needs the general way; nothing is written then.
    #[inline]
    fn render_by_shortcut(&mut self, chunks: &mut impl Chunks, peeked: PeekedRecord<'_>, time_ns: i64) -> bool {
        let head = peeked.head;
        let Some(shortcut) = self.shortcuts.get(Shortcut::place(head)).filter(|shortcut| shortcut.is_for(head)) else {
            return false;
        };
        let Some(Slot::Ready(id, compiled)) = self.formats.get_mut(Table::Formats.slot(shortcut.format)) else {
            return false;
        };
        if *id != shortcut.format {
            return false;
        }
        let Some(chunk) = chunks.chunk(shortcut.sink) else { return false };
        let Compiled { format, state } = &mut **compiled;
        if !format.render_again(shortcut.program, time_ns, peeked.values, state, &mut chunk.bytes) {
            return false;
        }
        if let Some(newest) = self.newest_format.get_mut(Table::Sinks.slot(shortcut.sink)) {
            *newest = (shortcut.sink, shortcut.format);
        }
        mark(chunk, head.level, time_ns);
        true
    }

    /// Returns whether all parts of the record were available.
    #[inline(never)]
    fn render(
        &mut self,
        definitions: &impl Definitions,
        chunks: &mut impl Chunks,
        peeked: PeekedRecord<'_>,
        time_ns: i64,
    ) -> bool {
        let head = peeked.head;
        if head.flags & flags::TEXT != 0 {
            let Some(Value::Bytes(line)) = Values::new(peeked.values).next_value() else { return false };
            if let Some(chunk) = chunks.chunk(head.route) {
                chunk.bytes.extend_from_slice(line);
                mark(chunk, head.level, time_ns);
            }
            return true;
        }
        let Self { sites, routes, formats, newest_format, max_bytes, shortcuts } = self;
        let Some(route) = by_id(routes, Table::Routes, head.route, || {
            RouteDefinition::decode(definitions.definition(Table::Routes, head.route)?)
        }) else {
            return false;
        };
        let site = match head.site {
            0 => None,
            id => by_id(sites, Table::Sites, id, || {
                SiteDefinition::decode(definitions.definition(Table::Sites, id)?).map(CompiledSite::new)
            }),
        };
        let mut whole = head.site == 0 || site.is_some();
        let view = RecordView {
            time_ns,
            level: head.level,
            logger: &route.logger,
            site: site.as_deref(),
            values: Values::new(peeked.values),
        };
        let mut room = max_bytes.unwrap_or(usize::MAX);
        let mut targets = route.targets.iter().filter(|target| head.level >= target.min_level);
        let is_only_one = targets.next().is_some() && targets.next().is_none();
        for target in route.targets.iter().filter(|target| head.level >= target.min_level) {
            let compiled = by_id(formats, Table::Formats, target.format, || {
                let spec = FormatSpec::decode(definitions.definition(Table::Formats, target.format)?)?;
                Some(Compiled { format: Format::compile(&spec).ok()?, state: RenderState::default() })
            });
            let Some(compiled) = compiled else {
                whole = false;
                continue;
            };
            let Some(chunk) = chunks.chunk(target.sink) else { continue };
            let slot = Table::Sinks.slot(target.sink);
            if newest_format.len() <= slot {
                newest_format.resize(slot + 1, (0, 0));
            }
            newest_format[slot] = (target.sink, target.format);
            let start = chunk.bytes.len();
            let rendered = if max_bytes.is_none() {
                compiled.format.render(&view, &mut compiled.state, &mut chunk.bytes)
            } else {
                let record = ParsedRecord::new(&view).with_limit(room);
                compiled.format.render_parsed(&record, &mut compiled.state, &mut chunk.bytes)
            };
            if max_bytes.is_some() {
                compiled.state.shrink(chunk.bytes.len() - start);
            }
            if rendered == Err(RenderError::TooLong) {
                chunk.bytes.shrink_to_fit();
                whole = false;
                continue;
            }
            if is_only_one
                && max_bytes.is_none()
                && head.flags == 0
                && let Some(program) = compiled.state.program_of(&view)
            {
                shortcuts.resize(SHORTCUTS, Shortcut::default());
                let Head { site, route, level, .. } = head;
                let (sink, format) = (target.sink, target.format);
                shortcuts[Shortcut::place(head)] = Shortcut { site, route, level, sink, format, program };
            }
            // A record that cannot be rendered completely is written as far as possible, with a marker. So no record is
            // silently missing.
            room -= chunk.bytes.len() - start;
            mark(chunk, head.level, time_ns);
        }
        whole
    }
}

impl Renderer {
    /// Adds a message of logspool itself, at WARNING, to every sink that had records.
    pub fn tell(&mut self, chunks: &mut impl Chunks, message: &str, time_ns: i64) {
        let values = message_line(message);
        let view = message_record(Values::new(&values.bytes), time_ns);
        for (sink, format) in &self.newest_format {
            let slot = self.formats.get_mut(Table::Formats.slot(*format));
            let Some(Slot::Ready(_, compiled)) = slot.filter(|slot| slot.holds(*format)) else { continue };
            let Some(chunk) = chunks.chunk(*sink) else { continue };
            let _ = compiled.format.render(&view, &mut compiled.state, &mut chunk.bytes);
            mark(chunk, WARNING, time_ns);
        }
    }
}

/// Adds a message of logspool itself, at WARNING, to a chunk.
pub fn tell(chunk: &mut Chunk, format: &FormatSpec, message: &str, time_ns: i64) {
    let values = message_line(message);
    if let Ok(format) = Format::compile(format) {
        let view = message_record(Values::new(&values.bytes), time_ns);
        let _ = format.render(&view, &mut RenderState::default(), &mut chunk.bytes);
        mark(chunk, WARNING, time_ns);
    }
}

fn message_line(message: &str) -> Encoder {
    let mut values = Encoder::new();
    values.context_str(tag::MESSAGE, message);
    values
}

fn message_record(values: Values<'_>, time_ns: i64) -> RecordView<'_> {
    RecordView { time_ns, level: WARNING, logger: "logspool", site: None, values }
}

/// Number of the blob (the file of a large record) to which a record with [`flags::BLOB`] refers.
pub fn blob_number(peeked: &PeekedRecord<'_>) -> Option<u64> {
    match Values::new(peeked.values).next_entry() {
        Some(Entry::Context(Context::Blob(number))) => Some(number),
        _ => None,
    }
}

/// Numeric value of WARNING in Python's logging.
const WARNING: u16 = 30;

/// Seconds since the epoch, rounded down.
#[inline]
fn whole_seconds(time_ns: i64) -> i64 {
    const NANOSECONDS: u64 = 1_000_000_000;
    // A division of numbers without a sign takes half of the instructions.
    match u64::try_from(time_ns) {
        Ok(time_ns) => (time_ns / NANOSECONDS) as i64,
        Err(_) => time_ns.div_euclid(NANOSECONDS as i64),
    }
}

/// Ends a record in a chunk: adds the record's mark and counts the record.
#[inline]
fn mark(chunk: &mut Chunk, level: u16, time_ns: i64) {
    let class = level_class(level);
    chunk.counts[class] += 1;
    chunk.marks.push(Mark {
        end: chunk.bytes.len() as u32,
        level,
        class: class as u8,
        member: chunk.member,
        seconds: whole_seconds(time_ns),
    });
}
