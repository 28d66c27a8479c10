//! The options of `install()`, and their rows.
//!
//! Each option needs only its row. The signature of `logspool.install`, its docstring, its checks and its reference
//! page are generated from the rows (`make generated`). The bindings read `keeper`, `crash_signals`, `uncaught`,
//! `defer_formatting` and the options of the rules (`redact_keys` and those after it). The writers of
//! sinks over HTTP read `flush_interval`; other sinks keep each value that it can have. No code has to read `flush_records`:
//! the collector keeps its least value anyway.

use std::path::PathBuf;
use std::time::Duration;

use crate::collector::LONGEST_PAUSE;
use crate::option::{self, OptionField, OptionShape, OptionTable, OptionValue};

crate::options! {
    /// Options of a process's queue, as `install()` and each handler of logspool take them.
    pub struct Options {
        /// How safe the record of a returned call is. `"memory"`: queued on the heap. `"process"`: on tmpfs, where it
        /// survives SIGKILL; this holds for all that follow. `"interval"`: files are also synced every `sync_interval`.
        /// `"checkpoint"`: and a call waits if it would leave `checkpoint_every` accepted records not durable. `"sync"`:
        /// each call returns when its record is durable.
        pub durability: Durability = Text("process"),
        // Chosen: with less than 32 KiB a lane has no room to grow. With more than 16 MiB, four lanes would exceed the
        // default limit of all queues.
        /// Limit of one thread's queue.
        pub queue_bytes: usize ["bytes", 32768..={MAX_QUEUE_BYTES}] = Whole(262144),
        /// Limit of all queues of the process, at least `queue_bytes`. None: the lesser of 64 MiB and 1/8 of the free
        /// tmpfs, or of the available memory if the queue has no folder.
        pub queue_total_bytes: Option<usize> ["bytes", 32768..=1099511627776] = Nothing,
        /// Folder of the queue. None: `LOGSPOOL_QUEUE_DIR`, else a folder of this user in `/dev/shm`. If it cannot be
        /// used, a keeper holds the queue. On a disk, calls may wait for that disk.
        pub queue_dir: Option<PathBuf> = Nothing,
        /// Levels (numbers or names) that may wait for room, up to `blocking_timeout`. None: ERROR and above.
        pub blocking_levels: Option<Vec<u16>> = Nothing,
        /// Longest wait of a call for room. None: 0.1; `float("inf")`: for ever.
        pub blocking_timeout: BlockingTimeout [seconds 0.0..={f64::INFINITY}] = Nothing,
        // The collector looks for records at least so often as the least value says: it keeps every value.
        /// A record is handed to the system, or sent in a request over HTTP, at most this long after its call. A sink with
        /// `gather_seconds` keeps to that.
        pub flush_interval: Duration [seconds {LONGEST_PAUSE.as_secs_f64()}..=3600.0] = Seconds(0.5),
        /// A record is handed to the system at most this many records later, to within 20 ms, also before
        /// `flush_interval` has passed. A request over HTTP gathers `batch_records`.
        pub flush_records: u32 ["records", 1..=1000000000] = Whole(100),
        // Chosen: a shorter interval than 10 ms would keep a disk busy with syncs.
        /// Longest time that written records stay without a sync in `"interval"` and `"checkpoint"`.
        pub sync_interval: Duration [seconds 0.01..=3600.0] = Seconds(1.0),
        /// With `"checkpoint"`, fewer than this many accepted records of the process are not durable.
        pub checkpoint_every: u64 ["records", 1..=1000000000] = Whole(50),
        /// Longest wait of a call for its record to become durable; then it returns and is counted.
        pub durability_timeout: Duration [seconds 0.0..={f64::INFINITY}] = Seconds(5.0),
        /// Levels (numbers or names) whose calls wait until their record is durable, in any `durability` but
        /// `"memory"`. None: no level.
        pub durable_levels: Vec<u16> = Nothing,
        /// Longest wait of the end of the process, and of `flush()` and `close()` of handlers.
        pub shutdown_timeout: Duration [seconds 0.0..={f64::INFINITY}] = Seconds(5.0),
        /// Where records of ERROR and above go if nothing else accepts them. None: nowhere.
        pub fallback: Fallback = Text("stderr"),
        /// Folder on disk where records wait if their output stalls for more than a second, or if the tmpfs for waiting
        /// records is half full; the first of them makes it. None: records wait only in the queue.
        pub spool_dir: Option<PathBuf> = Nothing,
        // The minimum is eight spool segments, each with room for a frame of 100 KiB.
        /// Limit of the spool of one output. Above it records stay on tmpfs, then are refused and counted.
        pub spool_bytes: u64 ["bytes", 1048576..=1125899906842624] = Whole(1073741824),
        /// Start a second process that delivers the records of this one after a kill.
        pub keeper: bool = Switch(false),
        /// A crash (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) waits at most 200 ms until queued records
        /// are written, then continues as without logspool. Handlers set earlier are called; those set later win. A
        /// handler without `install()` does so only if the option is passed.
        pub crash_signals: bool = Switch(true),
        /// Log an exception that ends the program or a thread, as CRITICAL of the logger `logspool.uncaught`, and one
        /// that Python ignores, as ERROR. Then wait for the write, and call the hook of `sys` or `threading` that was
        /// set before.
        pub uncaught: bool = Switch(false),
        /// Run formatters that only Python can run on a thread, not in the call: see `logspool.deferred`. A kill loses
        /// the records that wait for it.
        pub defer_formatting: bool = Switch(false),
        /// Names of fields whose values become `[REDACTED]` before the record is queued, also as `key=value` in texts. A
        /// name is also the end of a longer one: `token` is in `access_token`. `"default"` stands for ten usual names.
        pub redact_keys: Vec<String> = Nothing,
        /// Regular expressions of texts that become `[REDACTED]`: their groups, or all of a match. `"default"` stands
        /// for five usual ones. Look-around and references to groups are refused, because they can take exponential time.
        pub redact_patterns: Vec<String> = Nothing,
        /// Escape control characters and line ends in messages and fields, so that no text can forge a line or control a
        /// terminal. Lines of formatters that only Python can run stay as they are.
        pub escape_control: bool = Switch(false),
        // Chosen: longer windows than an hour would hide for how long a fault has lasted.
        /// Leave out a record for this long if its place, level, message and traceback equal an earlier one; then a record
        /// says how many. 0: keep all.
        pub deduplicate: Duration [seconds 0.0..=3600.0] = Seconds(0.0),
        /// Records per second below ERROR that one place in the program may log; then a record says how many were left
        /// out. 0: no limit.
        pub rate_limit: u32 ["records a second", 0..=1000000000] = Whole(0),
        /// Rules of sampling, as `"0.1 logger=uvicorn.access keep=status>=400"`: see docs/how-to/keep-logs-clean.md.
        pub sample: Vec<String> = Nothing,
        ;
        /// Maximum bytes of the overflow files of stalled sinks. `None`: the lesser of 256 MiB and 1/4 of the free
        /// tmpfs.
        pub overflow_bytes: Option<u64> = None,
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::defaults().expect("every option has a default, which its row has checked")
    }
}

pub use logspool_lanes::segment::layout::MAX_QUEUE_BYTES;

/// Options that may change while the queue is in use. All others are fixed by the first record.
const CHANGEABLE: &[&str] = &[
    "queue_bytes",
    "blocking_levels",
    "blocking_timeout",
    "flush_interval",
    "flush_records",
    "durability_timeout",
    "shutdown_timeout",
    "fallback",
    "keeper",
    "crash_signals",
    "uncaught",
    "defer_formatting",
    "redact_keys",
    "redact_patterns",
    "escape_control",
    "deduplicate",
    "rate_limit",
    "sample",
];

/// Options that only the bindings of Python read.
const PYTHON_ONLY: &[&str] = &[
    "keeper",
    "uncaught",
    "defer_formatting",
    "redact_keys",
    "redact_patterns",
    "escape_control",
    "deduplicate",
    "rate_limit",
    "sample",
];

/// How long records of ERROR and above, or of the chosen levels, may wait for room. If no value is given, the default
/// applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockingTimeout(pub Duration);

impl Default for BlockingTimeout {
    fn default() -> Self {
        Self(Duration::from_millis(100))
    }
}

impl OptionField for BlockingTimeout {
    const SHAPE: OptionShape = OptionShape::Seconds;
    const IS_OPTIONAL: bool = true;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Nothing => Ok(Self::default()),
            value => Duration::from_value(value).map(Self),
        }
    }

    fn to_value(&self) -> OptionValue {
        self.0.to_value()
    }
}

/// How safe the record of a returned call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The lanes are on the heap: queued records are lost when the process is killed.
    Memory,
    /// The lanes are on tmpfs: queued records survive a kill of the process.
    Process,
    /// Like `Process`, and sinks are synced every `sync_interval`. A power cut loses only the records after the last
    /// sync.
    Interval,
    /// Like `Interval`. In addition a call waits for a sync if it would leave `checkpoint_every` accepted records of
    /// the process not durable. So a power cut loses fewer records than `checkpoint_every`.
    Checkpoint,
    /// Like `Process`, and each call returns only when its record is durable. So a power cut loses no record whose call
    /// has returned. Calls of several threads share a sync.
    Sync,
}

/// The names of the durability modes.
const DURABILITIES: [(&str, Durability); 5] = [
    ("memory", Durability::Memory),
    ("process", Durability::Process),
    ("interval", Durability::Interval),
    ("checkpoint", Durability::Checkpoint),
    ("sync", Durability::Sync),
];

impl OptionField for Durability {
    const SHAPE: OptionShape = OptionShape::Choice(&["memory", "process", "interval", "checkpoint", "sync"]);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let mode = DURABILITIES.iter().find(|(word, _)| matches!(value, OptionValue::Text(text) if text == word));
        mode.map(|(_, mode)| *mode).ok_or_else(|| format!("there is no durability {value}"))
    }

    fn to_value(&self) -> OptionValue {
        let word = DURABILITIES.iter().find(|(_, mode)| mode == self).map_or("", |(word, _)| word);
        OptionValue::Text(word.to_owned())
    }
}

/// Where ERROR records and above are shown if no sink accepts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// They are printed on standard error, at most 10 lines a second. Further lines of the second are only counted.
    Stderr,
    /// They are not shown, only counted.
    None,
}

impl OptionField for Fallback {
    const SHAPE: OptionShape = OptionShape::Choice(&["stderr"]);
    const IS_OPTIONAL: bool = true;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Nothing => Ok(Self::None),
            OptionValue::Text(text) if text == "stderr" => Ok(Self::Stderr),
            other => Err(format!("there is no fallback {other}")),
        }
    }

    fn to_value(&self) -> OptionValue {
        match self {
            Self::Stderr => OptionValue::Text("stderr".to_owned()),
            Self::None => OptionValue::Nothing,
        }
    }
}

/// Why options were rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionsError {
    /// A value is out of its range.
    Range(String),
    /// The queue of the process is in use, so this option is fixed.
    InUse(String),
}

impl std::fmt::Display for OptionsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Range(text) | Self::InUse(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// The options with their folders from the root. They then name the same folders after the program has changed its
    /// working folder.
    #[must_use]
    pub fn with_absolute_folders(self) -> Self {
        let (queue_dir, spool_dir) = (self.queue_dir.map(option::absolute), self.spool_dir.map(option::absolute));
        Self { queue_dir, spool_dir, ..self }
    }

    /// Checks that the options that are fixed by the first record have the same values as in `begun`.
    pub(super) fn fits(&self, begun: &Self) -> Result<(), OptionsError> {
        let (now, then) = (self.values(), begun.values());
        let differs = |index: usize| now[index] != then[index] && !CHANGEABLE.contains(&Self::ROWS[index].name);
        let changed = (0..Self::ROWS.len()).find(|index| differs(*index)).map(|index| Self::ROWS[index].name);
        match changed.or((self.overflow_bytes != begun.overflow_bytes).then_some("overflow_bytes")) {
            None => Ok(()),
            Some(name) => Err(OptionsError::InUse(format!(
                "{name} cannot change any more: the queue of this process is in use since its first record; \
                 give it with the first install() or handler"
            ))),
        }
    }

    /// The first option that is not at its default although it has an effect only in Python.
    pub fn python_only(&self) -> Option<&'static str> {
        let (values, defaults) = (self.values(), Self::default().values());
        let is_given = |(index, row): &(usize, &crate::option::OptionRow)| {
            PYTHON_ONLY.contains(&row.name) && values[*index] != defaults[*index]
        };
        Self::ROWS.iter().enumerate().find(is_given).map(|(_, row)| row.name)
    }

    /// Checks each option by its row, then the options that depend on each other.
    ///
    /// # Errors
    ///
    /// The error names the option, the rejected value, and the allowed range.
    pub fn validate(&self) -> Result<(), OptionsError> {
        for (row, value) in Self::ROWS.iter().zip(self.values()) {
            row.check(&value).map_err(|error| OptionsError::Range(error.to_string()))?;
        }
        if self.spool_dir.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err(OptionsError::Range("spool_dir must be an absolute path".to_owned()));
        }
        if self.spool_dir.is_some() && self.durability == Durability::Memory {
            return Err(OptionsError::Range(
                "spool_dir needs a durability other than \"memory\": what a spool holds is found by the queue on tmpfs"
                    .to_owned(),
            ));
        }
        if !self.durable_levels.is_empty() && self.durability == Durability::Memory {
            return Err(OptionsError::Range(
                "durable_levels needs a durability other than \"memory\": what a killed process had queued in memory is \
                 lost"
                    .to_owned(),
            ));
        }
        if let Some(total) = self.queue_total_bytes
            && total < self.queue_bytes
        {
            return Err(OptionsError::Range(format!(
                "queue_total_bytes must be at least queue_bytes ({} bytes), not {total}",
                self.queue_bytes
            )));
        }
        Ok(())
    }
}
