//! The description of a formatter, in a form that the collector can use.

use logspool_record::definition::Zone;
use logspool_record::format::{Extras, FormatSpec, Layout, Style};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::plans::logging_globals::LoggingGlobals;

/// The part of a [`FormatSpec`] that depends only on the formatter.
#[derive(Clone)]
pub struct FormatParts {
    layout: Layout,
    date_format: Option<String>,
    default_time_format: String,
    default_msec_format: Option<String>,
    zone: Zone,
    /// Names of levels in this formatter's output; `None` uses the level names of `logging`.
    level_names: Option<Vec<(u16, String)>>,
}

impl FormatParts {
    /// Reads the description of a formatter that `_adopt.py` made.
    ///
    /// # Errors
    ///
    /// The error that Python raised, or `ValueError` for an unknown style.
    pub fn read(answer: &Bound<'_, PyAny>) -> PyResult<Self> {
        let get = |name: &str| answer.getattr(name);
        let style: String = get("style")?.extract()?;
        let layout = match style.as_str() {
            "json" => Layout::Json {
                fields: get("fields")?.extract()?,
                extras: if get("extras")?.extract()? { Extras::Append } else { Extras::Omit },
            },
            "entry" => Layout::Entry,
            _ => Layout::Text {
                style: match style.as_str() {
                    "%" => Style::Percent,
                    "{" => Style::Brace,
                    "$" => Style::Dollar,
                    other => return Err(PyValueError::new_err(format!("unknown style: {other}"))),
                },
                template: get("template")?.extract()?,
            },
        };
        Ok(Self {
            layout,
            date_format: get("datefmt")?.extract()?,
            default_time_format: get("default_time_format")?.extract()?,
            default_msec_format: get("default_msec_format")?.extract()?,
            zone: if get("utc")?.extract()? { Zone::Utc } else { Zone::Local },
            level_names: get("level_names")?.extract()?,
        })
    }

    /// True if the format shows the attribute, or may show it.
    pub fn mentions(&self, attribute: &str) -> bool {
        match &self.layout {
            Layout::Text { template, .. } => template.contains(attribute),
            Layout::Json { fields, .. } => fields.iter().any(|(_, shown)| shown == attribute),
            Layout::Entry => true,
        }
    }

    /// True if the format passes the attributes of a record as keywords (styles `{` and `$`, JSON and entries).
    /// Attribute names then have to be `str`.
    pub fn takes_keywords(&self) -> bool {
        !matches!(self.layout, Layout::Text { style: Style::Percent, .. })
    }

    /// The complete specification, for lines that end with `terminator`.
    pub fn spec(&self, globals: &LoggingGlobals, terminator: &str) -> FormatSpec {
        FormatSpec {
            layout: self.layout.clone(),
            date_format: self.date_format.clone(),
            default_time_format: self.default_time_format.clone(),
            default_msec_format: self.default_msec_format.clone(),
            zone: self.zone,
            level_names: self.level_names.as_ref().unwrap_or(&globals.level_names).clone(),
            start_time_ns: globals.start_time_ns,
            cpython: globals.cpython,
            process_id: if globals.shows_process { std::process::id() } else { 0 },
            terminator: terminator.to_owned(),
        }
    }
}
