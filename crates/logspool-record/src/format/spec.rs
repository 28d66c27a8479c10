//! The settings of a Formatter, in the form that capture sends to the collector and writes into the segment.

use super::object_spec::ObjectSpec;
use super::style::Style;
use super::styled_spec::{DerivedAttribute, StyledSpec};
use crate::cpython::CpythonRules;
use crate::definition::Zone;

/// How a JSON line shows the extra fields that the layout's `fields` do not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Extras {
    /// They are omitted.
    #[default]
    Omit,
    /// Each is a top-level key of its own name. They follow the named keys, in the order of the record.
    Append,
}

/// The form of one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Layout {
    /// A `logging.Formatter`.
    Text {
        /// Placeholder syntax.
        style: Style,
        /// The format string.
        template: String,
    },
    /// A `logspool.JSONFormatter`: one JSON object a line. For the rules see [`json`](super::json).
    Json {
        /// Output keys, each with the attribute that it shows, in order.
        fields: Vec<(String, String)>,
        /// Treatment of extra fields that `fields` does not name.
        extras: Extras,
    },
    /// A text line with attributes that the formatter adds. For the rules see [`StyledSpec`].
    Styled(StyledSpec),
    /// One JSON object a line, as `json.dumps` writes it. For the rules see [`ObjectSpec`].
    Object(ObjectSpec),
    /// All parts of a record, to be sent to a service. For the rules see [`entry`](super::entry).
    Entry,
    /// A text line of a program that is not Python's. For the rules see [`line_pattern`](super::line_pattern).
    Pattern(String),
}

/// All settings that determine the text of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FormatSpec {
    /// The layout of one line.
    pub layout: Layout,
    /// `Formatter.datefmt`. If it is `None`, `default_time_format` and `default_msec_format` apply.
    pub date_format: Option<String>,
    /// `Formatter.default_time_format`.
    pub default_time_format: String,
    /// `Formatter.default_msec_format`. If it is `None`, `asctime` has no milliseconds.
    pub default_msec_format: Option<String>,
    /// The time zone of the text of `asctime`.
    pub zone: Zone,
    /// Names of the levels at the time when the Formatter was compiled. A level that is not listed is shown as `Level
    /// N`.
    pub level_names: Vec<(u16, String)>,
    /// `logging._startTime` in nanoseconds, for `relativeCreated`.
    ///
    /// If `_startTime` is a float, this is `round(Fraction(_startTime) * 10**9)`. That integer converts back to the
    /// same float.
    pub start_time_ns: i64,
    /// The release of CPython whose LogRecord the text follows. The default follows no release.
    pub cpython: CpythonRules,
    /// `record.process`. 0 is shown as `None`: `logging.logProcesses` is off.
    pub process_id: u32,
    /// Text at the end of each line.
    pub terminator: String,
    /// The treatment of control characters in the texts of a record. JSON escapes them by its own rules.
    pub control: ControlRule,
}

/// The form of control characters in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ControlRule {
    /// They stay as they are.
    #[default]
    Keep,
    /// They are escaped, so that no text can begin a line or control a terminal. Exceptions keep their line ends.
    Escape,
}

/// Names of the levels that stock logging defines.
const STOCK_LEVEL_NAMES: [(u16, &str); 6] =
    [(50, "CRITICAL"), (40, "ERROR"), (30, "WARNING"), (20, "INFO"), (10, "DEBUG"), (0, "NOTSET")];

impl FormatSpec {
    /// The spec of `logging.Formatter(template, style=style)`. It follows no release of CPython, uses local time, and
    /// ends lines with `\n`.
    pub fn text(style: Style, template: &str) -> Self {
        Self::with_layout(Layout::Text { style, template: template.to_owned() })
    }

    /// The spec of a JSON layout. It follows no release of CPython, and ends lines with `\n`.
    pub fn json(fields: &[(&str, &str)], extras: Extras) -> Self {
        let fields = fields.iter().map(|(key, attribute)| ((*key).to_owned(), (*attribute).to_owned())).collect();
        Self::with_layout(Layout::Json { fields, extras })
    }

    /// The spec of a text line with attributes of its own. It follows no release of CPython, and ends lines with `\n`.
    pub fn styled(spec: StyledSpec) -> Self {
        Self::with_layout(Layout::Styled(spec))
    }

    /// The attribute that the formatter adds under this name.
    pub(super) fn derived(&self, name: &str) -> Option<&DerivedAttribute> {
        match &self.layout {
            Layout::Styled(styled) => styled.derived(name),
            _ => None,
        }
    }

    /// The spec of a line that `json.dumps` makes. It follows no release of CPython, and ends lines with `\n`.
    pub fn object(spec: ObjectSpec) -> Self {
        Self::with_layout(Layout::Object(spec))
    }

    /// The spec of an entry for a service. `process_id` is the id of the process that logs.
    pub fn entry(process_id: u32) -> Self {
        Self { process_id, terminator: String::new(), ..Self::with_layout(Layout::Entry) }
    }

    /// The spec of a line of a program that is not Python's. Levels have the names of stock logging, times are local,
    /// and lines end with `\n`.
    ///
    /// ```
    /// use logspool_record::format::{Format, FormatSpec};
    ///
    /// let spec = FormatSpec::pattern("[{time:%Y-%m-%d %H:%M:%S.%3f}] [{level}] [{logger}] {message}");
    /// assert!(Format::compile(&spec).is_ok());
    /// ```
    pub fn pattern(pattern: &str) -> Self {
        Self::with_layout(Layout::Pattern(pattern.to_owned()))
    }

    fn with_layout(layout: Layout) -> Self {
        Self {
            layout,
            date_format: None,
            default_time_format: "%Y-%m-%d %H:%M:%S".to_owned(),
            default_msec_format: Some("%s,%03d".to_owned()),
            zone: Zone::Local,
            level_names: STOCK_LEVEL_NAMES.iter().map(|(level, name)| (*level, (*name).to_owned())).collect(),
            start_time_ns: 0,
            cpython: CpythonRules::default(),
            process_id: 0,
            terminator: "\n".to_owned(),
            control: ControlRule::Keep,
        }
    }
}
