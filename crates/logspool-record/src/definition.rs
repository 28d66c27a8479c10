//! Definitions of the ids in records: call sites, routes, formats, sinks.
//!
//! Pipeline stage: capture (see ARCHITECTURE.md). A definition is written into the segment before its id is used. So
//! another process can read every record of a dead process.

use std::path::PathBuf;

use crate::record::{Encoder, Value, Values};
use crate::tag;

/// A place in the program that calls a logger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteDefinition {
    /// `co_filename` of the caller.
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// Name of the function.
    pub function: String,
    /// The message template, if every call at this site uses the same one. `None` if each record contains its message.
    pub template: Option<String>,
    /// The grammar of the template.
    pub grammar: Grammar,
}

/// The language in which a message template is written. It determines how a template shows its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Grammar {
    /// Python's `msg % args`. Without arguments the text is not parsed: `%%` stays as it is.
    #[default]
    Percent,
    /// C++: `std::format` and the library {fmt}. `{{` is an escape without arguments, too.
    Fmt,
    /// Rust: `format_args!`. `{{` is an escape without arguments, too.
    Rust,
    /// The template is the text. Nothing is replaced.
    Plain,
}

impl Grammar {
    /// The number of the grammar in a definition. Numbers are part of layout version 1 and are never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Percent => 0,
            Self::Fmt => 1,
            Self::Rust => 2,
            Self::Plain => 3,
        }
    }

    /// The grammar with a number. `None`: this version knows no such grammar.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Percent,
            1 => Self::Fmt,
            2 => Self::Rust,
            3 => Self::Plain,
            _ => return None,
        })
    }
}

/// The destinations of the records of one logger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RouteDefinition {
    /// Name of the logger.
    pub logger: String,
    /// Handlers that get the logger's records, in the order in which stock logging calls them.
    pub targets: Vec<Target>,
}

/// A handler that gets the records of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Id in the sink table.
    pub sink: u32,
    /// Id in the format table.
    pub format: u32,
    /// The sink gets no records below this level.
    pub min_level: u16,
}

/// Maximum number of targets of a route. A logger with more handlers stays on the stock path.
///
/// Chosen: programs have one to three handlers. The bound limits the work that a hostile segment can cause.
pub const MAX_TARGETS: usize = 64;

/// The parameters that are needed to write to one destination.
///
/// The table of sinks creates and reads it. The meaning of a kind's options is defined in the file of that kind.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkDefinition {
    /// Name of the sink's kind in the table of sinks.
    pub kind: &'static str,
    /// Values of the sink's options, in the order of the kind's rows.
    pub options: Vec<OptionValue>,
    /// How the sink obtains its descriptor.
    pub descriptor: Descriptor,
    /// The sink's name in statistics, metrics and messages.
    pub name: String,
    /// Where a recoverer delivers records that this process does not deliver. It is the path of a file, the address of
    /// a service, or another text that the table of sinks reads. `None`: a recoverer cannot deliver them.
    pub lasting: Option<String>,
}

/// The value of one option, encoded so that code that uses a definition need not know the option's type.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// The option is absent.
    Nothing,
    /// True or false.
    Switch(bool),
    /// A whole number.
    Whole(i128),
    /// A number of seconds, whole or not.
    Seconds(f64),
    /// Text, a path, or one of several words.
    Text(String),
    /// A path, which need not be UTF-8.
    Path(PathBuf),
    /// Numbers of levels.
    Levels(Vec<u16>),
    /// Several texts.
    Texts(Vec<String>),
}

impl std::fmt::Display for OptionValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("nothing"),
            Self::Switch(value) => write!(formatter, "{value}"),
            Self::Whole(number) => write!(formatter, "{number}"),
            Self::Seconds(number) => write!(formatter, "{number}"),
            Self::Text(text) => write!(formatter, "{text:?}"),
            Self::Path(path) => write!(formatter, "{path:?}"),
            Self::Levels(levels) => write!(formatter, "{levels:?}"),
            Self::Texts(texts) => write!(formatter, "{texts:?}"),
        }
    }
}

/// Source of the descriptor of a file or console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptor {
    /// The sink opens the path itself, in append mode, creating it with mode 0666 less the umask. A console sink uses
    /// the number directly.
    Open,
    /// The sink duplicates this descriptor when it is opened (close-on-exec) and closes only its own copy.
    Duplicate(i32),
}

/// The time zone of a wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Zone {
    /// `time.localtime`.
    #[default]
    Local,
    /// `time.gmtime`.
    Utc,
}

impl SinkDefinition {
    /// Whether `other` describes the same sink. The sources of their descriptors may differ.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.kind == other.kind && self.options == other.options
    }

    /// Appends the part that a recoverer needs, as one tuple in the form of the sink table.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(2);
        match &self.lasting {
            Some(place) => encoder.str(place),
            None => encoder.none(),
        };
        encoder.str(&self.name);
    }

    /// Appends the definition of an id whose records sink `shared` writes, together with its own.
    pub fn encode_shared(shared: u32, encoder: &mut Encoder) {
        encoder.tuple(1);
        encoder.int(i64::from(shared));
    }

    /// Decodes the id of the sink that writes the records of this one; see [`SinkDefinition::encode_shared`]. `None`:
    /// the sink writes its own records.
    pub fn decode_shared(mut items: Values<'_>) -> Option<u32> {
        match items.next()? {
            Value::Int(id) => u32::try_from(id).ok(),
            _ => None,
        }
    }

    /// Decodes the destination for a recoverer from the items of the tuple (see [`SinkDefinition::lasting`]).
    /// `Some(None)`: there is no such destination.
    pub fn decode_path(mut items: Values<'_>) -> Option<Option<String>> {
        match items.next()? {
            Value::Str(path) => Some(Some(path.to_owned())),
            Value::None => Some(None),
            _ => None,
        }
    }
}

impl SiteDefinition {
    /// Appends the definition as one tuple. The site table and inline `SITE` entries use this form.
    ///
    /// The fifth item is the grammar. It is absent for [`Grammar::Percent`], as in definitions of earlier versions.
    pub fn encode(&self, encoder: &mut Encoder) {
        let has_grammar = self.grammar != Grammar::Percent;
        encoder.tuple(4 + u32::from(has_grammar)).str(&self.file).int(i64::from(self.line)).str(&self.function);
        match &self.template {
            Some(template) => encoder.str(template),
            None => encoder.none(),
        };
        if has_grammar {
            encoder.int(i64::from(self.grammar.number()));
        }
    }

    /// Appends the definition as the value of a record whose site has no id.
    pub fn encode_inline(&self, encoder: &mut Encoder) {
        encoder.bytes.push(tag::SITE);
        self.encode(encoder);
    }

    /// Decodes the items of a tuple that [`SiteDefinition::encode`] wrote.
    pub fn decode(mut items: Values<'_>) -> Option<Self> {
        Some(Self {
            file: text(items.next())?,
            line: number(items.next())?,
            function: text(items.next())?,
            template: match items.next()? {
                Value::Str(template) => Some(template.to_owned()),
                Value::None => None,
                _ => return None,
            },
            grammar: match items.next() {
                None if items.rest().is_empty() => Grammar::Percent,
                item => Grammar::from_number(number(item)?)?,
            },
        })
    }
}

impl RouteDefinition {
    /// Appends the definition as one tuple, in the form of the route table.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(1 + 3 * self.targets.len() as u32).str(&self.logger);
        for target in &self.targets {
            encoder.int(i64::from(target.sink)).int(i64::from(target.format)).int(i64::from(target.min_level));
        }
    }

    /// Decodes the items of a tuple that [`RouteDefinition::encode`] wrote.
    pub fn decode(mut items: Values<'_>) -> Option<Self> {
        let logger = text(items.next())?;
        let mut targets = Vec::new();
        while let Some(sink) = items.next() {
            if targets.len() == MAX_TARGETS {
                return None;
            }
            targets.push(Target {
                sink: number(Some(sink))?,
                format: number(items.next())?,
                min_level: number(items.next())?,
            });
        }
        Some(Self { logger, targets })
    }
}

fn text(value: Option<Value<'_>>) -> Option<String> {
    match value? {
        Value::Str(text) => Some(text.to_owned()),
        _ => None,
    }
}

fn number<T: TryFrom<i64>>(value: Option<Value<'_>>) -> Option<T> {
    match value? {
        Value::Int(number) => T::try_from(number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoder: &Encoder) -> Option<SiteDefinition> {
        let Some(Value::Tuple(items)) = Values::new(&encoder.bytes).next() else { return None };
        SiteDefinition::decode(items)
    }

    fn site(template: Option<&str>, grammar: Grammar) -> SiteDefinition {
        let template = template.map(str::to_owned);
        SiteDefinition { file: "a.cc".to_owned(), line: 7, function: "f".to_owned(), template, grammar }
    }

    #[test]
    fn a_site_is_read_back_unchanged() {
        for grammar in [Grammar::Percent, Grammar::Fmt, Grammar::Rust, Grammar::Plain] {
            for template in [None, Some("user {}")] {
                let site = site(template, grammar);
                let mut encoder = Encoder::new();
                site.encode(&mut encoder);

                assert_eq!(Some(site), decoded(&encoder));
            }
        }
    }

    #[test]
    fn a_site_of_four_items_has_a_percent_template() {
        let mut encoder = Encoder::new();
        encoder.tuple(4).str("a.cc").int(7).str("f").str("user %s");

        assert_eq!(Some(site(Some("user %s"), Grammar::Percent)), decoded(&encoder));
        let mut written = Encoder::new();
        site(Some("user %s"), Grammar::Percent).encode(&mut written);
        assert_eq!(encoder.bytes, written.bytes);
    }

    #[test]
    fn an_unknown_grammar_is_refused() {
        for number in [-1, 4, 256, i64::MAX] {
            let mut encoder = Encoder::new();
            encoder.tuple(5).str("a.cc").int(7).str("f").str("{}").int(number);

            assert_eq!(None, decoded(&encoder), "{number}");
        }
        let mut encoder = Encoder::new();
        encoder.tuple(5).str("a.cc").int(7).str("f").str("{}").str("fmt");
        assert_eq!(None, decoded(&encoder));
    }
}
