//! Definitions behind the ids in records: call sites, routes, formats, sinks.
//!
//! Stop on the line: beside *capture*. A definition is written into the segment before its id is used, so that another
//! process can read every record of a dead process.

use crate::address::ServiceAddress;
use crate::record::{Encoder, Value, Values};

/// A place in the program that logs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteDefinition {
    /// `co_filename` of the caller.
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// Name of the function.
    pub function: String,
    /// The message template, if every call here has the same; `None` when messages travel in the records.
    pub template: Option<String>,
}

/// The destinations of the records of one logger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RouteDefinition {
    /// Name of the logger.
    pub logger: String,
    /// Handlers reached, in the order in which stock logging calls them.
    pub targets: Vec<Target>,
}

/// One handler that a record reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Id in the sink table.
    pub sink: u32,
    /// Id in the format table.
    pub format: u32,
    /// Records below this level do not go to the sink.
    pub min_level: u16,
}

/// Most targets of one route; a logger with more handlers stays on the stock path.
///
/// Chosen: programs have one to three handlers. The bound limits the work that a hostile segment can cause.
pub const MAX_TARGETS: usize = 64;

/// The kind of a sink and where it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkKind {
    /// A regular file, appended to.
    File {
        /// Absolute path, as configured.
        path: String,
    },
    /// A pipe, terminal, socket or device whose descriptor belongs to the program.
    Console {
        /// Number of the descriptor. With [`Descriptor::Open`] it is used directly and never closed.
        descriptor: i32,
    },
    /// A file that is rotated before it would grow beyond a size.
    RotatingFile {
        /// Absolute path, as configured.
        path: String,
        /// Size in bytes that the file stays below; 0 means never rotate.
        max_bytes: u64,
        /// Number of old files kept: `path.1`, `path.2`, ...
        backup_count: u32,
        /// Characters of the handler's `terminator`. The size rule of CPython counts one, whatever its length.
        terminator_chars: u32,
        /// Which releases of CPython to follow.
        rules: RotationRules,
    },
    /// A file that is rotated at points in time.
    TimedRotatingFile {
        /// Absolute path, as configured.
        path: String,
        /// When to rotate: a `when` of `logging.handlers.TimedRotatingFileHandler`.
        when: String,
        /// Units of `when` between two rotations.
        interval: u32,
        /// Number of old files kept; 0 keeps all.
        backup_count: u32,
        /// Rotate by UTC instead of local time.
        zone: Zone,
        /// Seconds after midnight at which daily and weekly rotation happens.
        at_time_seconds: Option<u32>,
        /// `rolloverAt` of the handler when logspool took it over, seconds since the epoch; `None`: the sink computes
        /// it.
        rollover_at: Option<i64>,
        /// Which releases of CPython to follow.
        rules: RotationRules,
    },
    /// A file that is opened again when its path refers to another file.
    WatchedFile {
        /// Absolute path, as configured.
        path: String,
    },
    /// A service that receives records over a socket.
    Service {
        /// Address of the service.
        address: ServiceAddress,
    },
    /// Accepts every record and writes nothing.
    Null,
}

/// The parameters that are needed to write to one destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkDefinition {
    /// Kind and place.
    pub kind: SinkKind,
    /// How the sink obtains its descriptor.
    pub descriptor: Descriptor,
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

/// Rules for rotating files: CPython's, or the rules for several processes.
///
/// CPython's rules changed inside minor versions, so capture distinguishes them by the code of the handler's class.
/// Size rules are early if `RotatingFileHandler.shouldRollover` calls `seek`. Time rules are early if
/// `TimedRotatingFileHandler.doRollover` has a local `newRolloverAt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RotationRules {
    /// Compared with 3.10.13, 3.11.7 and 3.12.1. An empty file is rotated too. The size is the size of the file. An
    /// existing backup is overwritten. `interval` is ignored for `midnight` and weekdays.
    Early,
    /// Compared with 3.12.10 and 3.13.0. An empty file is never rotated. The size is the handler's own position. While
    /// a backup of that name exists the file is not rotated. `interval` counts for every `when`.
    #[default]
    Current,
    /// Rules of logspool: several processes rotate one file, under the lock of its sidecar. They differ from `Current`
    /// in four points. The size is the size of the file. A rotation by another process is noticed before each write.
    /// The processes agree on the next time of a rotation by time. Backups close up to the first free number.
    Together {
        /// How backups are compressed; `None`: not at all.
        compress: Option<Compression>,
    },
}

impl RotationRules {
    /// How backups are compressed.
    pub fn compression(self) -> Option<Compression> {
        match self {
            Self::Together { compress } => compress,
            Self::Early | Self::Current => None,
        }
    }

    /// Whether several processes rotate the file.
    pub fn is_together(self) -> bool {
        matches!(self, Self::Together { .. })
    }
}

/// How a backup is compressed after it has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As `gzip` does, with `.gz` after the name.
    Gzip,
    /// As `zstd` does, with `.zst` after the name. Smaller and several times faster.
    Zstd,
}

impl Compression {
    /// The suffix that compression adds to the name of a backup.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
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

impl std::fmt::Display for SinkKind {
    /// The name of the sink in statistics, metrics and messages.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path }
            | Self::RotatingFile { path, .. }
            | Self::TimedRotatingFile { path, .. }
            | Self::WatchedFile { path } => formatter.write_str(path),
            Self::Console { descriptor: 1 } => formatter.write_str("stdout"),
            Self::Console { descriptor: 2 } => formatter.write_str("stderr"),
            Self::Console { descriptor } => write!(formatter, "descriptor {descriptor}"),
            Self::Service { address } => address.fmt(formatter),
            Self::Null => formatter.write_str("null"),
        }
    }
}

impl SinkKind {
    /// The destination to which a recoverer can deliver in place of this process: the path of a file or the address of
    /// a service.
    pub fn lasting(&self) -> Option<String> {
        match self {
            Self::Service { address } => Some(address.to_text()),
            kind => kind.path().map(str::to_owned),
        }
    }

    /// The path of a file; `None` for consoles and services.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File { path }
            | Self::RotatingFile { path, .. }
            | Self::TimedRotatingFile { path, .. }
            | Self::WatchedFile { path } => Some(path),
            Self::Console { .. } | Self::Service { .. } | Self::Null => None,
        }
    }
}

/// Identity of the file behind a descriptor: descriptors with equal places write to the same file, pipe or device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkPlace {
    device: u64,
    inode: u64,
}

impl SinkPlace {
    /// The place of a descriptor now; `None` when it is not open.
    pub fn of(descriptor: i32) -> Option<Self> {
        // SAFETY: an all-zero stat is a valid value of that plain struct.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fstat checks the number itself; `status` is a valid place for the result.
        let found = unsafe { libc::fstat(descriptor, &mut status) } == 0;
        found.then_some(Self { device: status.st_dev, inode: status.st_ino })
    }
}

impl SinkDefinition {
    /// Whether a sink of this definition holds a duplicate of a descriptor that the program may close. Until the
    /// sink is closed, a reader of that pipe does not see its end.
    pub fn is_lent(&self) -> bool {
        matches!((&self.kind, self.descriptor), (SinkKind::Console { .. }, Descriptor::Duplicate(_)))
    }

    /// The place of this definition's descriptor; `None` when its sinks are never shared.
    ///
    /// Rotating sinks are not shared: each handler decides by itself when to rotate.
    pub fn place(&self) -> Option<SinkPlace> {
        let descriptor = match (&self.kind, self.descriptor) {
            (SinkKind::File { .. } | SinkKind::WatchedFile { .. }, Descriptor::Duplicate(descriptor)) => descriptor,
            (SinkKind::Console { descriptor }, _) => *descriptor,
            _ => return None,
        };
        SinkPlace::of(descriptor)
    }

    /// Appends the part that a recoverer needs as one tuple, the form of the sink table.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(2);
        match self.kind.lasting() {
            Some(path) => encoder.str(&path),
            None => encoder.none(),
        };
        encoder.str(&self.kind.to_string());
    }

    /// The destination for a recoverer from the items of the tuple, see [`SinkKind::lasting`]. `Some(None)`: there is
    /// no such destination.
    pub fn decode_path(mut items: Values<'_>) -> Option<Option<String>> {
        match items.next()? {
            Value::Str(path) => Some(Some(path.to_owned())),
            Value::None => Some(None),
            _ => None,
        }
    }
}

impl SiteDefinition {
    /// Appends the definition as one tuple, the form of the site table and of inline `SITE` entries.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(4).str(&self.file).int(i64::from(self.line)).str(&self.function);
        match &self.template {
            Some(template) => encoder.str(template),
            None => encoder.none(),
        };
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
        })
    }
}

impl RouteDefinition {
    /// Appends the definition as one tuple, the form of the route table.
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
