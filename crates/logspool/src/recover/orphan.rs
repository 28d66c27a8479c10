//! Lists the files that dead processes left, without changing anything.

use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use logspool_lanes::segment::layout::Header;
use logspool_sys::folder::Folder;

use super::damage::Damage;
use super::decoded::Decoded;
use super::image::UnreadableSegment;
use super::leftover::{self, Leftover, OwnerState};
use super::pending::PendingRecords;
use super::work;

/// Maximum number of bytes that the orphans of a folder should occupy. The cap is never more than an eighth of the
/// folder's file system.
///
/// Chosen: it is a quarter of the default overflow of four processes. Halving it would evict the records that one
/// frozen sink left; doubling it takes memory that the programs of a small container need.
pub const MAX_ORPHAN_BYTES: u64 = 256 * 1024 * 1024;

/// Files of one dead process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// `<pid namespace>-<pid>-<process start>-<exec>`, the beginning of the file names.
    pub name: String,
    /// Process id, in the pid namespace of the process.
    pub pid: u32,
    /// Creation time of the segment, or modification time of the newest file if no segment is readable.
    pub created: SystemTime,
    /// Time since `created`.
    pub age: Duration,
    /// Bytes of memory that the segment occupies.
    pub segment_bytes: u64,
    /// Bytes of memory that the overflow files occupy.
    pub overflow_bytes: u64,
    /// Bytes of memory that the files of large records occupy.
    pub blob_bytes: u64,
    /// Sinks with undelivered records.
    pub pending: Vec<PendingRecords>,
    /// How much of the orphan is readable.
    pub condition: Condition,
    /// Whether the orphan fits into the cap of the folder.
    pub retention: Retention,
}

/// How much of an orphan is readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// All parts of the orphan are readable.
    Whole,
    /// Some parts are not readable.
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
    /// There are overflow, blob or lock files, but no finished segment.
    NoSegment,
    /// The lock file is gone, and the process may still run.
    OwnerUnknown,
}

/// Whether an orphan fits into the cap of its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The orphan fits into the cap.
    Stay,
    /// Newer orphans fill the cap. `doctor` reports it. Living processes drop the orphan's records for terminals and
    /// pipes.
    ToBeEvicted,
}

/// Lists the orphans of this user in `folder`, oldest first.
///
/// The function changes nothing, takes no lock and does not wait.
///
/// # Errors
///
/// Returns an error if the folder cannot be read or is accessible to others. A missing folder counts as empty.
pub fn scan(folder: &Path) -> io::Result<Vec<Orphan>> {
    let folder = match Folder::open_existing(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut orphans = Vec::new();
    for leftover in leftover::list(&folder)? {
        let orphan = match work::owner(&folder, &leftover) {
            OwnerState::Alive => continue,
            OwnerState::Unknown => Orphan::of(&leftover, Condition::OwnerUnknown),
            OwnerState::Dead => match Orphan::look(&folder, &leftover) {
                // Read it again: a recoverer may have released memory while the orphan was read.
                Orphan { condition: Condition::Damaged(_), .. } => Orphan::look(&folder, &leftover),
                orphan => orphan,
            },
        };
        if orphan.condition == Condition::Whole || !is_passing(&folder, &leftover)? {
            orphans.push(orphan);
        }
    }
    orphans.sort_by_key(|orphan| orphan.created);
    let cap = cap(&folder);
    let mut taken = 0_u64;
    for orphan in orphans.iter_mut().rev() {
        taken = taken.saturating_add(orphan.bytes());
        orphan.retention = retention(taken, cap);
    }
    Ok(orphans)
}

/// Whether another process or thread is removing the files or has removed them. If so, missing files are no damage.
fn is_passing(folder: &Folder, leftover: &Leftover) -> io::Result<bool> {
    let now = Leftover::find(folder, &leftover.name)?;
    Ok(!now.is_there() || work::owner(folder, &now) == OwnerState::Alive)
}

/// Maximum number of bytes that the orphans of a folder may occupy.
pub(super) fn cap(folder: &Folder) -> u64 {
    folder.total_bytes().map_or(MAX_ORPHAN_BYTES, |bytes| (bytes / 8).min(MAX_ORPHAN_BYTES))
}

/// Retention of an orphan. `taken` is the number of bytes of this orphan and all newer ones.
pub(super) fn retention(taken: u64, cap: u64) -> Retention {
    if taken <= cap { Retention::Stay } else { Retention::ToBeEvicted }
}

impl Orphan {
    /// Bytes of memory that all files occupy.
    pub fn bytes(&self) -> u64 {
        self.segment_bytes + self.overflow_bytes + self.blob_bytes
    }

    fn of(leftover: &Leftover, condition: Condition) -> Self {
        let created = leftover.modified.unwrap_or(UNIX_EPOCH);
        Self {
            name: leftover.name.clone(),
            pid: leftover.pid(),
            created,
            age: created.elapsed().unwrap_or_default(),
            segment_bytes: leftover.segment_bytes,
            overflow_bytes: leftover.overflow_bytes,
            blob_bytes: leftover.blob_bytes,
            pending: Vec::new(),
            condition,
            retention: Retention::Stay,
        }
    }

    fn look(folder: &Folder, leftover: &Leftover) -> Self {
        if !leftover.segment {
            return Self::of(leftover, Condition::NoSegment);
        }
        let file = folder.open_file(&leftover.segment_name());
        let file = file.map_err(|error| UnreadableSegment::Broken(error.to_string()));
        let decoded = match file.and_then(|file| Decoded::read(folder, leftover, &file)) {
            Ok(decoded) => decoded,
            Err(UnreadableSegment::Unfinished) => return Self::of(leftover, Condition::NoSegment),
            Err(UnreadableSegment::OtherVersion(major)) => {
                return Self::of(leftover, Condition::OtherVersion { major });
            }
            Err(UnreadableSegment::Broken(why)) => return Self::of(leftover, Condition::Unreadable { why }),
        };
        let damage = decoded.survey.damage;
        let condition = if damage.is_any() { Condition::Damaged(damage) } else { Condition::Whole };
        let created_ns = decoded.image.header(offset_of!(Header, created_ns)) as i64;
        let created = UNIX_EPOCH + Duration::from_nanos(created_ns.max(0) as u64);
        Self {
            created,
            age: created.elapsed().unwrap_or_default(),
            pending: decoded.pending(),
            ..Self::of(leftover, condition)
        }
    }
}
