//! The parts of a Formatter, in the form that travels from capture to the collector and into the segment.

use crate::cpython::CpythonRules;
use crate::definition::Zone;

/// Placeholder syntax of a text layout, `logging.Formatter(style=...)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Style {
    /// `%(message)s`.
    #[default]
    Percent,
    /// `{message}`.
    Brace,
    /// `$message` and `${message}`.
    Dollar,
}

/// How a JSON line shows the extra fields that its `fields` do not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Extras {
    /// Nothing.
    #[default]
    Omit,
    /// Each as a top-level key of its own name, after the named ones, in the order of the record.
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
        /// Output key and the attribute it shows, in order.
        fields: Vec<(String, String)>,
        /// Treatment of extra fields that `fields` does not name.
        extras: Extras,
    },
    /// All parts of a record, for a service. For the rules see [`entry`](super::entry).
    Entry,
}

/// Everything that decides the text of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FormatSpec {
    /// The form of one line.
    pub layout: Layout,
    /// `datefmt`; with `None`, `default_time_format` and `default_msec_format` apply.
    pub date_format: Option<String>,
    /// `Formatter.default_time_format`.
    pub default_time_format: String,
    /// `Formatter.default_msec_format`; `None` leaves the milliseconds out.
    pub default_msec_format: Option<String>,
    /// The time zone that `asctime` shows.
    pub zone: Zone,
    /// Names of the levels when the Formatter was compiled; others show as `Level N`.
    pub level_names: Vec<(u16, String)>,
    /// `logging._startTime` in nanoseconds, for `relativeCreated`.
    ///
    /// Where `_startTime` is a float, `round(Fraction(_startTime) * 10**9)`: that integer converts back to the same float.
    pub start_time_ns: i64,
    /// The release of CPython whose LogRecord is followed, if one is.
    pub cpython: CpythonRules,
    /// `record.process`; 0 shows as `None` (`logging.logProcesses` is off).
    pub process_id: u32,
    /// Ends the line.
    pub terminator: String,
}

/// Names of the levels that stock logging knows.
const STOCK_LEVEL_NAMES: [(u16, &str); 6] =
    [(50, "CRITICAL"), (40, "ERROR"), (30, "WARNING"), (20, "INFO"), (10, "DEBUG"), (0, "NOTSET")];

impl FormatSpec {
    /// The spec of `logging.Formatter(template, style=style)` without the rules of a release, local time, lines ended by `\n`.
    pub fn text(style: Style, template: &str) -> Self {
        Self::with_layout(Layout::Text { style, template: template.to_owned() })
    }

    /// The spec of a JSON layout without the rules of a release of CPython, lines ended by `\n`.
    pub fn json(fields: &[(&str, &str)], extras: Extras) -> Self {
        let fields = fields.iter().map(|(key, attribute)| ((*key).to_owned(), (*attribute).to_owned())).collect();
        Self::with_layout(Layout::Json { fields, extras })
    }

    /// The spec of an entry for a service, from the process with the id `process_id`.
    pub fn entry(process_id: u32) -> Self {
        Self { process_id, terminator: String::new(), ..Self::with_layout(Layout::Entry) }
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
        }
    }
}
