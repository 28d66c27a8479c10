//! What a recovery did, and why it left what it left.

use std::fmt;
use std::path::PathBuf;

use super::damage::Damage;
use super::orphan::Retention;

/// Everything that [`recover`](super::recover()) met, in the order in which it was dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// What was appended, one entry for each path.
    pub delivered: Vec<Delivered>,
    /// What stays in the folder.
    pub kept: Vec<Kept>,
    /// Whose files are gone.
    pub removed: Vec<Removed>,
    /// Records for files that were opened anew since, and done away with what these held.
    pub done_away: u64,
    /// Lines that kills had torn, whose rest could not be told: they were ended.
    pub torn_lines: u64,
}

/// Lines appended to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The file.
    pub path: PathBuf,
    /// Records appended.
    pub records: u64,
    /// Bytes appended.
    pub bytes: u64,
    /// Whether an [`Adopter`](super::Adopter) took them instead.
    pub taken: bool,
}

/// Files of one dead process that stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// `<pid namespace>-<pid>-<process start>-<exec>`, the beginning of their names.
    pub name: String,
    /// Its process id, in its pid namespace.
    pub pid: u32,
    /// Bytes of memory that they take.
    pub bytes: u64,
    /// Why; never empty.
    pub reasons: Vec<Reason>,
    /// Whether the folder's cap leaves room for them.
    pub retention: Retention,
}

/// Files of one dead process that were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// As [`Kept::name`].
    pub name: String,
    /// As [`Kept::pid`].
    pub pid: u32,
    /// Bytes of memory that they took.
    pub bytes: u64,
    /// Records for sinks without a file that were given up with them, as the caller chose.
    pub discarded: u64,
}

/// Why files stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Records for a file that the caller does not want.
    Unwanted {
        /// The file.
        path: PathBuf,
        /// How many.
        records: u64,
    },
    /// Records for a sink that ended with its process: a terminal, a pipe.
    Undeliverable {
        /// Name of the sink.
        sink: String,
        /// How many.
        records: u64,
    },
    /// Records for a wanted file that could not be written.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        error: String,
        /// How many there were before the attempt.
        records: u64,
    },
    /// Parts that make no sense; everything else is delivered.
    Damaged(Damage),
    /// A segment of another major version of the layout.
    OtherVersion {
        /// That version.
        major: u32,
    },
    /// A segment that cannot be read at all.
    Unreadable {
        /// What was wrong.
        why: String,
    },
    /// Overflow or blob files without their segment: where they belong is not known.
    NoSegment,
    /// The lock file is gone and the process may be there, perhaps in another pid namespace.
    OwnerUnknown,
    /// Another process, or a thread of this one, recovers it at the moment.
    InWork,
    /// Recovery itself failed on it, which is a bug.
    Failed,
}

impl Report {
    /// Adds what another recovery did.
    pub fn add(&mut self, other: Self) {
        for Delivered { path, records, bytes, taken } in other.delivered {
            self.add_delivered(path, records, bytes, taken);
        }
        self.kept.extend(other.kept);
        self.removed.extend(other.removed);
        self.done_away += other.done_away;
        self.torn_lines += other.torn_lines;
    }

    /// Records delivered in all.
    pub fn records(&self) -> u64 {
        self.delivered.iter().map(|delivered| delivered.records).sum()
    }

    pub(super) fn add_delivered(&mut self, path: PathBuf, records: u64, bytes: u64, taken: bool) {
        match self.delivered.iter_mut().find(|delivered| delivered.path == path && delivered.taken == taken) {
            Some(delivered) => {
                delivered.records += records;
                delivered.bytes += bytes;
            }
            None if records > 0 || bytes > 0 => self.delivered.push(Delivered { path, records, bytes, taken }),
            None => {}
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwanted { path, records } => {
                write!(formatter, "{records} records for {}, which this program does not write", path.display())
            }
            Self::Undeliverable { sink, records } => {
                write!(formatter, "{records} records for {sink} of the dead process, which is gone")
            }
            Self::Unwritable { path, error, records } => {
                write!(formatter, "cannot append {records} records to {}: {error}", path.display())
            }
            Self::Damaged(damage) => {
                write!(formatter, "{} bytes and {} records cannot be read", damage.bytes, damage.records)
            }
            Self::OtherVersion { major } => write!(formatter, "its segment has layout version {major}"),
            Self::Unreadable { why } => write!(formatter, "cannot read its segment: {why}"),
            Self::NoSegment => formatter.write_str("its segment is gone"),
            Self::OwnerUnknown => formatter.write_str("its lock is gone, and its process may be there"),
            Self::InWork => formatter.write_str("somebody else recovers it at the moment"),
            Self::Failed => formatter.write_str("recovery failed on it: please report this"),
        }
    }
}
