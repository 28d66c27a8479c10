//! The description of a formatter, in a form that the collector can use.

use logspool_record::definition::Zone;
use logspool_record::format::{AssignedValue, ControlRule, Extras, FormatSpec, Layout, Style};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::plans::field_texts::FieldTexts;
use crate::plans::known_parts;
use crate::plans::logging_globals::LoggingGlobals;

/// A method of a formatter that a program has replaced, and that is called for each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledMethod {
    /// `formatTime`. The record then goes through the queue by its values, with the text of its time.
    Time,
    /// `formatMessage`. The finished line then goes through the queue.
    Message,
}

/// Methods of a formatter that a program has replaced, and that are called for single texts.
#[derive(Clone, Default)]
pub struct OwnTexts {
    /// The method that is called for each record, and why.
    pub each_record: Option<(CalledMethod, String)>,
    /// Which of the others are called.
    pub for_record: FormatterTexts,
}

/// Texts of a record that only methods of its formatter can make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FormatterTexts {
    /// The text of an exception, by `formatException`.
    pub exception: bool,
    /// The text of a stack, by `formatStack`.
    pub stack: bool,
}

impl FormatterTexts {
    /// The texts of `self` and of `other` together.
    pub fn union(self, other: Self) -> Self {
        Self { exception: self.exception || other.exception, stack: self.stack || other.stack }
    }
}

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
    /// How the texts of extra fields are made that the collector does not render.
    field_texts: FieldTexts,
    /// The methods of the program that make texts of the records.
    pub own_texts: OwnTexts,
}

impl FormatParts {
    /// Reads the description of a formatter that `_handler_formats.py` made.
    ///
    /// # Errors
    ///
    /// The error that Python raised, or `ValueError` for an unknown style.
    pub fn read(answer: &Bound<'_, PyAny>) -> PyResult<Self> {
        let get = |name: &str| answer.getattr(name);
        let style: String = get("style")?.extract()?;
        let mut field_texts = FieldTexts::Str;
        let layout = match style.as_str() {
            "object" => {
                let (object, texts) = known_parts::read_object(&get("known")?)?;
                field_texts = texts;
                Layout::Object(object)
            }
            "json" => Layout::Json {
                fields: get("fields")?.extract()?,
                extras: if get("extras")?.extract()? { Extras::Append } else { Extras::Omit },
            },
            "entry" => Layout::Entry,
            placeholders => {
                let style = match placeholders {
                    "%" => Style::Percent,
                    "{" => Style::Brace,
                    "$" => Style::Dollar,
                    other => return Err(PyValueError::new_err(format!("unknown style: {other}"))),
                };
                let template = get("template")?.extract()?;
                let known = get("known")?;
                if known.is_none() {
                    Layout::Text { style, template }
                } else {
                    Layout::Styled(known_parts::read_styled(&known, style, template)?)
                }
            }
        };
        let own_texts = get("own_texts")?;
        let reason = |method: &str| own_texts.call_method1("get", (method,))?.extract::<Option<String>>();
        let called = match (reason("formatTime")?, reason("formatMessage")?) {
            (Some(reason), _) => Some((CalledMethod::Time, reason)),
            (None, Some(reason)) => Some((CalledMethod::Message, reason)),
            (None, None) => None,
        };
        let own_texts = OwnTexts {
            each_record: called.map(|(method, reason)| (method, format!("{reason}: it is called for each record"))),
            for_record: FormatterTexts {
                exception: reason("formatException")?.is_some(),
                stack: reason("formatStack")?.is_some(),
            },
        };
        Ok(Self {
            layout,
            date_format: get("datefmt")?.extract()?,
            default_time_format: get("default_time_format")?.extract()?,
            default_msec_format: get("default_msec_format")?.extract()?,
            zone: if get("utc")?.extract()? { Zone::Utc } else { Zone::Local },
            level_names: get("level_names")?.extract()?,
            field_texts,
            own_texts,
        })
    }

    /// True if the format shows the attribute, or may show it.
    pub fn mentions(&self, attribute: &str) -> bool {
        match &self.layout {
            Layout::Text { template, .. } => template.contains(attribute),
            Layout::Styled(styled) => styled.template.contains(attribute),
            Layout::Json { fields, .. } => fields.iter().any(|(_, shown)| shown == attribute),
            Layout::Object(object) => object.assignments.iter().any(|(_, assigned)| match assigned {
                AssignedValue::Attribute(shown) => shown == attribute,
                _ => false,
            }),
            Layout::Entry => true,
            // No Formatter has this layout.
            Layout::Pattern(pattern) => pattern.contains(attribute),
        }
    }

    /// True if the format passes the attributes of a record as keywords (styles `{` and `$`, JSON and entries).
    /// Attribute names then have to be `str`.
    pub fn takes_keywords(&self) -> bool {
        match &self.layout {
            Layout::Text { style, .. } => *style != Style::Percent,
            Layout::Styled(styled) => styled.style != Style::Percent,
            Layout::Json { .. } | Layout::Object(_) | Layout::Entry | Layout::Pattern(_) => true,
        }
    }

    /// How the texts of extra fields are made that the collector does not render.
    pub fn field_texts(&self) -> FieldTexts {
        self.field_texts
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
            control: ControlRule::Keep,
        }
    }
}
