//! A record opened for formatting: its context entries are parsed once, its arguments not yet.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The collector creates a [`RecordView`], and formats read a
//! [`ParsedRecord`].

use std::sync::atomic::{AtomicU64, Ordering};

use super::braced::named_values;
use super::line_program::LinePieces;
use super::malformed::{MARKER, Malformed};
use super::program_compiler::message_pieces;
use super::template::SiteTemplate;
use crate::definition::{Grammar, SiteDefinition};
use crate::record::{Context, Entry, Value, Values, tag};

/// Texts that stock logging shows when it finds no caller.
const UNKNOWN_FILE: &str = "(unknown file)";
const UNKNOWN_FUNCTION: &str = "(unknown function)";

/// A call site, with all values that are derived from its definition once.
#[derive(Debug, Clone)]
pub struct CompiledSite {
    /// A unique number of each site. The caches of formats use it as their key.
    serial: u64,
    definition: SiteDefinition,
    template: Option<SiteTemplate>,
    /// The pieces of the message, for arguments of the frequent types.
    message: LinePieces,
    filename_at: usize,
    module_end: usize,
}

/// The serial number of the next site or program. It is atomic because the collector and a recoverer may compile sites
/// at the same time.
static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// A number that no other site and no program has. Never 0.
pub(super) fn next_serial() -> u64 {
    NEXT_SERIAL.fetch_add(1, Ordering::Relaxed)
}

impl CompiledSite {
    /// Derives file name and module, parses the template, and compiles its message to a flat program.
    pub fn new(definition: SiteDefinition) -> Self {
        let site = Self::of_one_record(definition);
        let message = site.template.as_ref().map(message_pieces).unwrap_or_default();
        Self { message, ..site }
    }

    /// Like [`new`](Self::new), without the flat program, which only pays off for many records.
    fn of_one_record(definition: SiteDefinition) -> Self {
        let template = definition.template.as_deref().map(|text| SiteTemplate::parse(definition.grammar, text));
        let filename_at = definition.file.rfind('/').map_or(0, |slash| slash + 1);
        let filename = &definition.file[filename_at..];
        let module_end = filename_at + stem_len(filename);
        let serial = next_serial();
        Self { serial, definition, template, message: LinePieces::default(), filename_at, module_end }
    }

    /// A number that no other site has.
    #[inline]
    pub(super) const fn serial(&self) -> u64 {
        self.serial
    }

    /// The definition from which the site was compiled.
    pub const fn definition(&self) -> &SiteDefinition {
        &self.definition
    }

    /// The message template, if every call at this site uses the same one.
    pub const fn template(&self) -> Option<&SiteTemplate> {
        self.template.as_ref()
    }

    /// `os.path.basename` of the file.
    pub fn filename(&self) -> &str {
        &self.definition.file[self.filename_at..]
    }

    /// The file name without its extension.
    pub fn module(&self) -> &str {
        &self.definition.file[self.filename_at..self.module_end]
    }
}

/// Length of `os.path.splitext(filename)[0]`: leading dots begin no extension.
fn stem_len(filename: &str) -> usize {
    let leading = filename.len() - filename.trim_start_matches('.').len();
    filename[leading..].rfind('.').map_or(filename.len(), |dot| leading + dot)
}

/// A record, as the collector reads it.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    /// Wall time of the call in nanoseconds since the epoch. A `TIME` entry among the values overrides it.
    pub time_ns: i64,
    /// Level number.
    pub level: u16,
    /// Name of the logger.
    pub logger: &'a str,
    /// The call site. An inline `SITE` entry among the values overrides it.
    pub site: Option<&'a CompiledSite>,
    /// The values of the record: first the context entries, then the arguments.
    pub values: Values<'a>,
}

/// A record whose context entries are parsed, once for all formats that render it.
#[derive(Debug, Clone)]
pub struct ParsedRecord<'a> {
    pub(super) time_ns: i64,
    pub(super) level: u16,
    pub(super) logger: &'a str,
    pub(super) thread: Option<i64>,
    pub(super) thread_name: Option<&'a str>,
    pub(super) process_name: Option<&'a str>,
    pub(super) task_name: Option<&'a str>,
    pub(super) asctime: Option<&'a str>,
    pub(super) exception: Option<&'a str>,
    pub(super) stack: Option<&'a str>,
    site: Option<&'a CompiledSite>,
    inline_site: Option<Box<CompiledSite>>,
    message: Option<&'a str>,
    /// The values of the record, from the first extra field on.
    fields: Values<'a>,
    /// The values of the record, from the first item of the message on.
    items: Values<'a>,
    arguments: Values<'a>,
    malformed: bool,
    max_bytes: usize,
}

impl<'a> ParsedRecord<'a> {
    /// Reads the context entries of a record.
    pub fn new(record: &RecordView<'a>) -> Self {
        let mut open = Self {
            time_ns: record.time_ns,
            level: record.level,
            logger: record.logger,
            thread: None,
            thread_name: None,
            process_name: None,
            task_name: None,
            asctime: None,
            exception: None,
            stack: None,
            site: record.site,
            inline_site: None,
            message: None,
            fields: Values::new(&[]),
            items: Values::new(&[]),
            arguments: Values::new(&[]),
            malformed: false,
            max_bytes: usize::MAX,
        };
        open.read_context(record.values);
        open
    }

    /// Returns the record with a limit: rendering a line longer than `max_bytes` fails, and nothing of it is written.
    ///
    /// The length is checked before each part of the line. One part has at most seven times the bytes of the values
    /// that it shows.
    pub fn with_limit(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Whether a line that already has `bytes` bytes may grow further.
    #[inline]
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.max_bytes
    }

    fn read_context(&mut self, mut values: Values<'a>) {
        while values.rest().first().is_some_and(|tag| *tag >= tag::CONTEXT) {
            let here = values;
            let Some(Entry::Context(entry)) = values.next_entry() else {
                // After an entry that cannot be read, the following bytes cannot be trusted.
                self.malformed = true;
                return;
            };
            match entry {
                Context::Message(text) => self.message = Some(text),
                Context::Thread(id) => self.thread = Some(id),
                Context::ThreadName(text) => self.thread_name = Some(text),
                Context::ProcessName(text) => self.process_name = Some(text),
                Context::TaskName(text) => self.task_name = Some(text),
                Context::AscTime(text) => self.asctime = Some(text),
                Context::Exception(text) => self.exception = Some(text),
                Context::Stack(text) => self.stack = Some(text),
                Context::Time(time_ns) => self.time_ns = time_ns,
                Context::Field(..) if self.fields.rest().is_empty() => self.fields = here,
                Context::Item(..) if self.items.rest().is_empty() => self.items = here,
                Context::Field(..) | Context::Item(..) | Context::Blob(_) => {}
                Context::Site(items) => match SiteDefinition::decode(items) {
                    Some(definition) => self.inline_site = Some(Box::new(CompiledSite::of_one_record(definition))),
                    None => self.malformed = true,
                },
            }
        }
        self.arguments = values;
    }

    /// Whether the context entries end with bytes that are not an entry.
    pub const fn is_malformed(&self) -> bool {
        self.malformed
    }

    /// Wall time of the call, nanoseconds since the epoch.
    pub const fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// The formatted traceback.
    pub const fn exception(&self) -> Option<&'a str> {
        self.exception
    }

    /// The call site, if the record names one.
    pub fn site(&self) -> Option<&CompiledSite> {
        self.inline_site.as_deref().or(self.site)
    }

    /// A number that identifies the site; 0 without a site. `None` if the definition of the site is in the record
    /// itself, so that no other record has this site.
    #[inline]
    pub(super) fn site_serial(&self) -> Option<u64> {
        match (&self.inline_site, self.site) {
            (Some(_), _) => None,
            (None, Some(site)) => Some(site.serial),
            (None, None) => Some(0),
        }
    }

    /// The extra field called `name`; the first one if there are several.
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        self.fields().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The value as a text shows it in the language of the call site: a bool of C++, Nim or Rust is `true`, not `True`.
    #[inline]
    pub(super) fn in_its_language<'v>(&self, value: Value<'v>) -> Value<'v> {
        let Value::Bool(truth) = value else { return value };
        match self.site().map(|site| site.definition.grammar) {
            Some(Grammar::Fmt | Grammar::Rust) => Value::Rendered(if truth { "true" } else { "false" }),
            _ => value,
        }
    }

    /// The extra fields in the order of the record.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        named_values(self.fields)
    }

    /// The items of a message that is a dict, in the order of the dict.
    pub(super) fn items(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let mut values = self.items;
        std::iter::from_fn(move || {
            while values.rest().first().is_some_and(|tag| *tag >= tag::CONTEXT) {
                if let Entry::Context(Context::Item(key, value)) = values.next_entry()? {
                    return Some((key, value));
                }
            }
            None
        })
    }

    /// Appends the message: the message of the record if it is complete, else the site's template with the arguments.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if there is no message or the arguments do not fit. The text then contains the marker `<?>`.
    #[inline]
    pub fn push_message(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if let Some(message) = self.message {
            out.extend_from_slice(message.as_bytes());
            return Ok(());
        }
        let site = self.site();
        if let Some(CompiledSite { message, .. }) = site
            && !message.pieces.is_empty()
            && !self.malformed
            && message.run(0, 0, self.arguments.rest(), out)
        {
            return Ok(());
        }
        self.push_message_by_template(site.and_then(CompiledSite::template), out)
    }

    #[inline(never)]
    fn push_message_by_template(&self, template: Option<&SiteTemplate>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let Some(template) = template else {
            out.extend_from_slice(MARKER.as_bytes());
            return Err(Malformed);
        };
        let SiteTemplate::Percent(template) = template else {
            let rendered = template.render(self.arguments, self.fields, out);
            return if self.malformed { Err(Malformed) } else { rendered };
        };
        if self.arguments.rest().is_empty() {
            // As in stock logging: without arguments the text is not parsed as a template.
            out.extend_from_slice(template.source().as_bytes());
            return if self.malformed { Err(Malformed) } else { Ok(()) };
        }
        template.render(&mut { self.arguments }, out)
    }

    /// Appends exception and stack, each on lines of its own, to the line that begins at `start`.
    #[inline]
    pub(super) fn push_attachments(&self, start: usize, out: &mut Vec<u8>) {
        for text in [self.exception, self.stack].into_iter().flatten().filter(|text| !text.is_empty()) {
            if out[start..].last() != Some(&b'\n') {
                out.push(b'\n');
            }
            out.extend_from_slice(text.as_bytes());
        }
    }

    pub(super) fn file(&self) -> &str {
        self.site().map_or(UNKNOWN_FILE, |site| &site.definition.file)
    }

    pub(super) fn filename(&self) -> &str {
        self.site().map_or(UNKNOWN_FILE, CompiledSite::filename)
    }

    pub(super) fn module(&self) -> &str {
        self.site().map_or(UNKNOWN_FILE, CompiledSite::module)
    }

    pub(super) fn line(&self) -> u32 {
        self.site().map_or(0, |site| site.definition.line)
    }

    pub(super) fn function(&self) -> &str {
        self.site().map_or(UNKNOWN_FUNCTION, |site| &site.definition.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_and_module_equal_those_of_os_path() {
        for (file, filename, module) in [
            ("/a/b/app.py", "app.py", "app"),
            ("app", "app", "app"),
            ("/x/a.tar.gz", "a.tar.gz", "a.tar"),
            ("/x/.bashrc", ".bashrc", ".bashrc"),
            ("/x/..a.b", "..a.b", "..a"),
            ("/x/...", "...", "..."),
            ("<string>", "<string>", "<string>"),
            ("/x/", "", ""),
        ] {
            let site = CompiledSite::new(SiteDefinition { file: file.to_owned(), ..SiteDefinition::default() });

            assert_eq!((filename, module), (site.filename(), site.module()));
        }
    }
}
