//! What a recovery delivered and removed, and why it kept the other files.

use std::fmt;
use std::path::{Path, PathBuf};

use super::damage::Damage;
use super::orphan::Retention;
use crate::sinks;

/// Result of [`recover`](super::recover()). The lists are in the order in which orphans were processed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Delivered records, one entry for each path.
    pub delivered: Vec<Delivered>,
    /// Orphans whose files stay in the folder.
    pub kept: Vec<Kept>,
    /// Orphans whose files were removed.
    pub removed: Vec<Removed>,
    /// Number of dropped records for files that were truncated by a later open, see
    /// [`FileAction::DropOlder`](super::FileAction::DropOlder).
    pub done_away: u64,
    /// Number of records that their destination refuses for ever. They are dropped.
    pub refused: u64,
    /// Number of lines torn by kills whose remaining bytes are unknown. Each was ended with a line feed.
    pub torn_lines: u64,
}

/// Records appended to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Path of the file, or address of the service.
    pub path: PathBuf,
    /// Number of records delivered.
    pub records: u64,
    /// Number of bytes delivered.
    pub bytes: u64,
    /// Whether an [`Adopter`](super::Adopter) took the records, so that they were not appended to the file.
    pub taken: bool,
}

/// The files of one dead process, which stay in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// `<pid namespace>-<pid>-<process start>-<exec>`, the beginning of the file names.
    pub name: String,
    /// Process id, in the pid namespace of that process.
    pub pid: u32,
    /// Bytes of memory that the files occupy.
    pub bytes: u64,
    /// Reasons for keeping the files. Never empty.
    pub reasons: Vec<Reason>,
    /// Whether the folder's cap leaves room for the files.
    pub retention: Retention,
}

/// The files of one dead process, which were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Name of the process, as in [`Kept::name`].
    pub name: String,
    /// Process id, as in [`Kept::pid`].
    pub pid: u32,
    /// Bytes of memory that the files occupied.
    pub bytes: u64,
    /// Number of records for terminals and pipes that were dropped with the files, as the caller chose.
    pub discarded: u64,
}

/// Why files of a dead process stay in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// There are records for a file that the caller does not want.
    Unwanted {
        /// Path of the unwanted file.
        path: PathBuf,
        /// Number of records.
        records: u64,
    },
    /// There are records for a terminal or pipe, which ended with the process.
    Undeliverable {
        /// Name of the sink.
        sink: String,
        /// Number of records.
        records: u64,
    },
    /// Records for a wanted file could not be written.
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Text of the error.
        error: String,
        /// Number of records that remain.
        records: u64,
    },
    /// Some parts are damaged; all other records are delivered.
    Damaged(Damage),
    /// The segment has another major version of the layout.
    OtherVersion {
        /// Major version of the segment.
        major: u32,
    },
    /// No part of the segment is readable.
    Unreadable {
        /// Text that describes what was wrong.
        why: String,
    },
    /// There are overflow or blob files without their segment, so their destination is unknown.
    NoSegment,
    /// The lock file is gone, and the process may still run, perhaps in another pid namespace.
    OwnerUnknown,
    /// Another process, or another thread of this process, is recovering the records.
    InWork,
    /// The recovery of these files panicked, which is a bug.
    Failed,
}

impl Report {
    /// Adds the contents of another report to this one.
    pub fn add(&mut self, other: Self) {
        for Delivered { path, records, bytes, taken } in other.delivered {
            self.add_delivered(path, records, bytes, taken);
        }
        self.kept.extend(other.kept);
        self.removed.extend(other.removed);
        self.done_away += other.done_away;
        self.refused += other.refused;
        self.torn_lines += other.torn_lines;
    }

    /// Number of records delivered to all files.
    pub fn records(&self) -> u64 {
        self.delivered.iter().map(|delivered| delivered.records).sum()
    }

    pub(super) fn add_delivered(&mut self, path: PathBuf, records: u64, bytes: u64, taken: bool) {
        let path = sinks::shown_place(&path);
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

fn shown(path: &Path) -> String {
    sinks::shown_place(path).display().to_string()
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwanted { path, records } => {
                write!(formatter, "{records} records for {}, which this program does not write", shown(path))
            }
            Self::Undeliverable { sink, records } => {
                write!(formatter, "{records} records for {sink} of the dead process, which is gone")
            }
            Self::Unwritable { path, error, records } => {
                write!(formatter, "cannot append {records} records to {}: {error}", shown(path))
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
