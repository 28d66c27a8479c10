//! The LogRecord attributes that a format can show.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). A name that is not an attribute of LogRecord is an extra field.

use super::directive::ArgumentKind;
use super::needs::Need;
use super::styled_spec::DerivedAttribute;
use super::unsupported::Unsupported;
use crate::cpython::CpythonRules;

/// One attribute of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attribute {
    Name,
    LevelNumber,
    LevelName,
    PathName,
    FileName,
    Module,
    Line,
    Function,
    Created,
    AscTime,
    Msecs,
    RelativeCreated,
    Thread,
    ThreadName,
    TaskName,
    Process,
    ProcessName,
    Message,
    /// An attribute that the formatter adds.
    Derived(Box<DerivedAttribute>),
    /// An extra field.
    Field(Box<str>),
}

impl Attribute {
    /// Whether the attribute is the same for all records of one site, level and logger.
    pub(super) const fn is_constant(&self) -> bool {
        matches!(
            self,
            Self::Name
                | Self::LevelNumber
                | Self::LevelName
                | Self::PathName
                | Self::FileName
                | Self::Module
                | Self::Line
                | Self::Function
                | Self::Process
        )
    }

    /// The attribute called `name` in records that follow the rules `cpython`.
    pub(super) fn parse(name: &str, cpython: CpythonRules) -> Result<Self, Unsupported> {
        Ok(match name {
            "name" => Self::Name,
            "levelno" => Self::LevelNumber,
            "levelname" => Self::LevelName,
            "pathname" => Self::PathName,
            "filename" => Self::FileName,
            "module" => Self::Module,
            "lineno" => Self::Line,
            "funcName" => Self::Function,
            "created" => Self::Created,
            "asctime" => Self::AscTime,
            "msecs" => Self::Msecs,
            "relativeCreated" => Self::RelativeCreated,
            "thread" => Self::Thread,
            "threadName" => Self::ThreadName,
            "taskName" if cpython.has_task_name() => Self::TaskName,
            "process" => Self::Process,
            "processName" => Self::ProcessName,
            "message" => Self::Message,
            // These are objects of the calling program, which are never sent to the collector.
            "msg" | "args" | "exc_info" | "exc_text" | "stack_info" => return Err(Unsupported::Attribute),
            _ => Self::Field(name.into()),
        })
    }

    /// The type of the attribute's value, if the value is not None. Returns `None` for an extra field.
    pub(super) const fn kind(&self) -> Option<ArgumentKind> {
        match self {
            Self::LevelNumber | Self::Line | Self::Thread | Self::Process => Some(ArgumentKind::Int),
            Self::Created | Self::Msecs | Self::RelativeCreated => Some(ArgumentKind::Float),
            Self::Field(_) => None,
            _ => Some(ArgumentKind::Str),
        }
    }

    /// The part of a record that capture must send for this attribute.
    pub(super) const fn need(&self) -> Option<Need> {
        match self {
            Self::PathName | Self::FileName | Self::Module | Self::Line | Self::Function => Some(Need::Site),
            Self::Created | Self::AscTime | Self::Msecs | Self::RelativeCreated => Some(Need::Time),
            Self::Thread => Some(Need::ThreadId),
            Self::ThreadName => Some(Need::ThreadName),
            Self::TaskName => Some(Need::TaskName),
            Self::ProcessName => Some(Need::ProcessName),
            _ => None,
        }
    }
}
