//! Starts logging in a Rust program.

use std::fmt;
use std::path::PathBuf;

use logspool_record::format::{Format, FormatSpec, Style};

use super::Level;
use super::output::Output;
use super::registry::{self, Settings};
use crate::pipeline::{self, Options};

/// The default format of a line.
const FORMAT: &str = "%(asctime)s %(levelname)s %(name)s: %(message)s";

/// What a program logs, and where to. [`Self::start`] makes it take effect.
#[derive(Debug, Clone)]
pub struct Builder {
    outputs: Vec<Output>,
    level: Level,
    target_levels: Vec<(String, u16)>,
    format: FormatSpec,
    options: Options,
}

/// Begins to configure logging. Without an output, records go to standard error. The lowest level is
/// [`Level::Info`].
pub fn builder() -> Builder {
    let mut format = FormatSpec::text(Style::Percent, FORMAT);
    format.level_names = Level::names();
    format.process_id = std::process::id();
    Builder { outputs: Vec::new(), level: Level::Info, target_levels: Vec::new(), format, options: Options::default() }
}

/// Why logging did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The program has started logging before.
    AlreadyStarted,
    /// An option is out of its range.
    Options(String),
    /// The format of lines is not valid.
    Format(String),
    /// An output cannot be opened.
    Output(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => {
                formatter.write_str("logging has started before: call `start` once, at the beginning of `main`")
            }
            Self::Options(reason) | Self::Format(reason) => formatter.write_str(reason),
            Self::Output(reason) => write!(formatter, "an output cannot be opened: {reason}"),
        }
    }
}

impl std::error::Error for StartError {}

impl Builder {
    /// Adds an output.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.outputs.push(output);
        self
    }

    /// Appends lines to a file, which is created where it is missing. A relative path is completed by this call.
    #[must_use]
    pub fn file(self, path: impl Into<PathBuf>) -> Self {
        self.output(Output::file(path.into()))
    }

    /// Writes lines to standard output.
    #[must_use]
    pub fn stdout(self) -> Self {
        self.output(Output::stdout())
    }

    /// Writes lines to standard error.
    #[must_use]
    pub fn stderr(self) -> Self {
        self.output(Output::stderr())
    }

    /// Sends records to a logspool service: `tcp://host:port`, `tls://host:port` or `unix:///path`, or to one of several
    /// with one store: `tcp://a:9020,b:9020`.
    #[must_use]
    pub fn service(self, address: &str) -> Self {
        self.output(Output::service(address))
    }

    /// Sets the lowest level that is logged.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Sets the lowest level for a target and the modules inside it. The longest name decides. It can only raise the
    /// level of [`Self::level`].
    #[must_use]
    pub fn level_for(mut self, target: &str, level: Level) -> Self {
        self.target_levels.push((target.to_owned(), level as u16));
        self
    }

    /// Sets the form of a line, as a format of Python's logging in the style of `%`:
    /// `"%(asctime)s %(levelname)s %(message)s"`.
    #[must_use]
    pub fn format(mut self, template: &str) -> Self {
        self.format = FormatSpec { layout: FormatSpec::text(Style::Percent, template).layout, ..self.format };
        self
    }

    /// Changes details of the form of lines: the date, the names of levels, JSON.
    #[must_use]
    pub fn format_spec(mut self, change: impl FnOnce(&mut FormatSpec)) -> Self {
        change(&mut self.format);
        self
    }

    /// Sets the options of the queue. Relative folders are completed by this call.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options.with_absolute_folders();
        self
    }

    /// Opens the outputs, delivers what an earlier process left for them, and lets the macros log.
    ///
    /// The end of the process writes everything that is queued, also after `std::process::exit`, SIGTERM or a crash. A
    /// forked child logs to the same outputs.
    ///
    /// # Errors
    ///
    /// The [`StartError`]. Nothing is logged then.
    pub fn start(mut self) -> Result<(), StartError> {
        if self.outputs.is_empty() {
            self.outputs.push(Output::stderr());
        }
        if let Some(name) = self.options.python_only() {
            return Err(StartError::Options(format!("{name} works in Python only")));
        }
        let crash_signals = self.options.crash_signals;
        let formats = self.outputs.iter().filter_map(|output| output.format.as_ref());
        for format in std::iter::once(&self.format).chain(formats) {
            Format::compile(format).map_err(|error| StartError::Format(format!("the format is not valid: {error}")))?;
        }
        for output in &self.outputs {
            output.define().map_err(StartError::Output)?;
        }
        pipeline::configure(self.options).map_err(|error| StartError::Options(error.to_string()))?;
        let paths: Vec<PathBuf> = self.outputs.iter().filter_map(|output| Some(output.path()?.to_owned())).collect();
        // Files of an earlier process must never make a start fail: `logspool recover` lists what is left.
        let _ = pipeline::recover_targets(&paths);
        let settings = Settings::new(self.outputs, self.format, self.target_levels);
        registry::open_outputs(&settings).map_err(StartError::Output)?;
        if !registry::set(settings) {
            return Err(StartError::AlreadyStarted);
        }
        pipeline::handle_process_events(pipeline::ForkHooks::Libc, crash_signals);
        registry::set_min_level(self.level as u16);
        // `tracing` remembers which call sites are wanted; until now no site was.
        #[cfg(feature = "tracing")]
        tracing_core::callsite::rebuild_interest_cache();
        Ok(())
    }
}
