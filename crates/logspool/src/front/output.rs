//! Where the lines of a Rust program go.

use std::path::{Path, PathBuf};

use logspool_record::definition::{Descriptor, SinkDefinition};
use logspool_record::format::{ControlRule, FormatSpec};

use super::Level;
use crate::option::{self, OptionValue};
use crate::sinks::{self, ConsoleOptions, FileOptions, SinkOptions};

/// A destination of lines, with its own lowest level and its own format.
#[derive(Debug, Clone)]
pub struct Output {
    kind: OutputKind,
    pub(super) min_level: u16,
    pub(super) format: Option<FormatSpec>,
    control: Option<ControlRule>,
}

#[derive(Debug, Clone)]
enum OutputKind {
    File(PathBuf),
    Descriptor(i32),
    Sink(&'static str, Vec<(String, OptionValue)>),
}

impl Output {
    fn of(kind: OutputKind) -> Self {
        Self { kind, min_level: 0, format: None, control: None }
    }

    /// Appends to a file, which is created where it is missing. A relative path is completed by this call: it names the
    /// same file when the program has changed its working folder.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Self::of(OutputKind::File(option::absolute(path.as_ref().to_owned())))
    }

    /// Writes to standard output.
    pub fn stdout() -> Self {
        Self::of(OutputKind::Descriptor(1))
    }

    /// Writes to standard error.
    pub fn stderr() -> Self {
        Self::of(OutputKind::Descriptor(2))
    }

    /// Any other sink, by the name of its kind and its options: see the reference of sinks. Relative paths are completed
    /// by this call.
    pub fn sink(kind: &'static str, options: impl IntoIterator<Item = (String, OptionValue)>) -> Self {
        Self::of(OutputKind::Sink(kind, sinks::absolute_paths(kind, options)))
    }

    /// Sends records to a logspool service: `tcp://host:port`, `tls://host:port` or `unix:///path`, or to one of several
    /// with one store: `tcp://a:9020,b:9020`.
    pub fn service(address: &str) -> Self {
        let address = ("address".to_owned(), OptionValue::Text(address.to_owned()));
        Self::sink("service", [address]).format(FormatSpec::entry(std::process::id()))
    }

    /// Accepts only records of this level and above.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.min_level = level as u16;
        self
    }

    /// Shows the lines of this output in a format of its own, with the names of [`Level`].
    #[must_use]
    pub fn format(mut self, format: FormatSpec) -> Self {
        self.format = Some(FormatSpec { level_names: Level::names(), ..format });
        self
    }

    /// Sets whether control characters and line ends in the texts of records are escaped. The default is
    /// [`ControlRule::Escape`] for standard output and standard error, where a text must not control a terminal, and the
    /// rule of the format elsewhere.
    #[must_use]
    pub fn control(mut self, rule: ControlRule) -> Self {
        self.control = Some(rule);
        self
    }

    /// The format of its lines; `common` is that of the builder.
    pub(super) fn resolved_format(&self, common: &FormatSpec) -> FormatSpec {
        let format = self.format.clone().unwrap_or_else(|| common.clone());
        let control = match (self.control, &self.kind) {
            (Some(rule), _) => rule,
            (None, OutputKind::Descriptor(_)) => ControlRule::Escape,
            (None, _) => format.control,
        };
        FormatSpec { control, ..format }
    }

    /// The file, if this output is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.kind {
            OutputKind::File(path) => Some(path),
            OutputKind::Descriptor(_) | OutputKind::Sink(..) => None,
        }
    }

    /// The definition of the sink.
    ///
    /// # Errors
    ///
    /// The text of the reason: an unknown kind or option, or a value that it does not accept.
    pub(super) fn define(&self) -> Result<SinkDefinition, String> {
        match &self.kind {
            OutputKind::File(path) => {
                let Some(path) = path.to_str() else {
                    return Err(format!("the path {} is not UTF-8: rename the file", path.display()));
                };
                Ok(FileOptions { path: path.to_owned() }.define(Descriptor::Open))
            }
            OutputKind::Descriptor(number) => Ok(ConsoleOptions { descriptor: *number }.define(Descriptor::Open)),
            OutputKind::Sink(kind, options) => {
                sinks::define(kind, options.clone(), Descriptor::Open).map_err(|error| error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use logspool_record::format::Style;

    use super::*;

    #[test]
    fn a_text_cannot_control_a_console_unless_the_program_allows_it() {
        let common = FormatSpec::text(Style::Percent, "%(message)s");
        let rule = |output: Output| output.resolved_format(&common).control;
        let own = FormatSpec { control: ControlRule::Escape, ..common.clone() };

        assert_eq!(ControlRule::Escape, rule(Output::stdout()));
        assert_eq!(ControlRule::Escape, rule(Output::stderr().format(common.clone())));
        assert_eq!(ControlRule::Keep, rule(Output::stdout().control(ControlRule::Keep)));
        assert_eq!(ControlRule::Keep, rule(Output::file("a.log")));
        assert_eq!(ControlRule::Escape, rule(Output::file("a.log").format(own.clone())));
        assert_eq!(ControlRule::Keep, rule(Output::file("a.log").format(own).control(ControlRule::Keep)));
    }
}
