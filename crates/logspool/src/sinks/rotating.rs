//! A file rotated by size: `logging.handlers.RotatingFileHandler`, without `namer` and `rotator`.
//!
//! A rollover is due before a record when the bytes in the file plus the *characters* of the record reach `max_bytes`:
//! the standard library adds the length of a string to a position in bytes. As there, the record that made a rollover
//! due is written whatever its size. As there, a file without backups is not rotated: the path is opened again, and the
//! file grows.
//!
//! All records up to the next rollover are one write. The standard library checks for each record whether the path is a
//! regular file. This sink checks its open file, and the path only when a rollover is due.
//!
//! A failed step is tried again, and only that step: backups that have moved stay where they are. Until it succeeds the
//! old file stays open and nothing is written.
//!
//! Together with other processes (`RotationRules::Together`), all steps run under the lock of the open file's sidecar.
//! After the lock is taken, the path is checked. If it names another file, another process has rotated, and the lock of
//! that file is taken instead. A failed rollover is not remembered, because another process may have continued it.
//! Backups move up to the first free number, which repairs a rollover that was interrupted. With compression
//! (`compress.rs`), all forms of a backup count as one backup of its number.

use std::io;

use logspool_record::definition::Descriptor;

use super::compress::{CompressionHandle, Naming, forms};
use super::named::{NamedFile, remove_existing, rename_existing};
use super::torn::TornRecord;
use super::{Place, RotationRules, SinkOptions, Traits};
use crate::sidecar::steps::{AppendStep, reach};
use crate::sink::{Lines, SharedLog, Sink, SinkError, SyncError};

crate::options! {
    /// Appends lines to a file, and rotates it when it would grow beyond a size.
    pub struct RotatingFileOptions {
        /// Path of the file. Backups are `path.1`, `path.2` and so on.
        pub path: String as Path,
        /// Size that the file stays below; 0 never rotates.
        pub max_bytes: u64 ["bytes", 0..=18446744073709551615] = Whole(0),
        /// Number of backups that are kept; 0 never rotates.
        pub backup_count: u32 ["files", 0..=4294967295] = Whole(0),
        /// Characters at the end of each line. The size rule counts one for them, whatever they are.
        pub terminator_chars: u32 ["characters", 0..=4294967295] = Whole(1),
        /// Which rules to follow: those of CPython's releases, or those for several processes, with or without
        /// compression.
        pub rules: RotationRules = Text("together"),
    }
}

impl SinkOptions for RotatingFileOptions {
    const KIND: &'static str = "rotating";
    const TRAITS: Traits = Traits::ROTATING_FILE;

    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(RotatingFileSink::open(self, descriptor)?))
    }

    fn place(&self) -> Place {
        Place::File(self.path.clone())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        let sample =
            |rules| Self { path: path.to_owned(), max_bytes: 500, backup_count: 1000, terminator_chars: 1, rules };
        vec![sample(RotationRules::Early), sample(RotationRules::Current)]
    }
}

/// See the file head.
#[derive(Debug)]
pub struct RotatingFileSink {
    file: NamedFile,
    max_bytes: u64,
    backup_count: u32,
    terminator_chars: u64,
    rules: RotationRules,
    compressing: Option<CompressionHandle>,
    /// The next step of an unfinished rollover.
    next: Option<RolloverStep>,
    torn: TornRecord,
}

/// A step of a rollover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RolloverStep {
    /// Renames the backup of this number to the next number; number 0 is the live file.
    Shift(u32),
    /// Opens the path.
    Open,
}

impl RotatingFileSink {
    /// Opens the path of `options` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn open(options: &RotatingFileOptions, descriptor: Descriptor) -> io::Result<Self> {
        let RotatingFileOptions { path, max_bytes, backup_count, terminator_chars, rules } = options;
        Ok(Self {
            file: NamedFile::open(path, descriptor)?,
            max_bytes: *max_bytes,
            backup_count: *backup_count,
            terminator_chars: u64::from(*terminator_chars),
            rules: *rules,
            compressing: rules.compression().map(|how| CompressionHandle::new(path, how, Naming::Numbers)),
            next: None,
            torn: TornRecord::default(),
        })
    }

    /// Bytes of `lines` before the first record that makes a rollover due, or all of them if no record does.
    fn before_rollover(&mut self, lines: &Lines<'_>, first: First) -> io::Result<usize> {
        let all = lines.bytes.len();
        if self.max_bytes == 0 || !self.file.is_regular() {
            return Ok(all);
        }
        let end = self.file.end()?;
        if first == First::Judged && !lines.marks.is_empty() {
            let position = match self.rules {
                RotationRules::Early | RotationRules::Together { .. } => end,
                RotationRules::Current => self.file.position()?,
            };
            if self.is_due(position, lines, 0) {
                return Ok(0);
            }
        }
        // After the first of these records both rules use the end of the file as position: an append moves it there.
        let Some(others) = lines.marks.get(1..) else { return Ok(all) };
        // A record has at most as many characters as bytes, so no record before this one can be due.
        let candidate = 1 + others.partition_point(|mark| {
            end + (mark.end as usize - lines.before) as u64 + 1 < self.max_bytes + self.terminator_chars
        });
        let due = (candidate..lines.marks.len())
            .find(|index| self.is_due(end + start_of(lines, *index) as u64, lines, *index));
        Ok(due.map_or(all, |index| start_of(lines, index)))
    }

    /// Whether the record at `index` makes a rollover due, with the file at `position` before it.
    fn is_due(&self, position: u64, lines: &Lines<'_>, index: usize) -> bool {
        let nothing_to_rotate = self.rules != RotationRules::Early && position == 0;
        let record = &lines.bytes[start_of(lines, index)..lines.marks[index].end as usize - lines.before];
        !nothing_to_rotate && position + characters(record) + 1 >= self.max_bytes + self.terminator_chars
    }

    /// Continues the unfinished rollover until the new file is open.
    fn turn(&mut self) -> io::Result<()> {
        let _alone = self.compressing.as_ref().map(CompressionHandle::alone);
        while let Some(step) = self.next {
            match step {
                RolloverStep::Shift(number) => self.shift(number)?,
                RolloverStep::Open => self.file.reopen()?,
            }
            self.next = match step {
                RolloverStep::Shift(0) => Some(RolloverStep::Open),
                RolloverStep::Shift(number) => Some(RolloverStep::Shift(number - 1)),
                RolloverStep::Open => None,
            };
        }
        Ok(())
    }

    fn shift(&self, number: u32) -> io::Result<()> {
        let path = self.file.path();
        if self.compressing.is_some() {
            return forms::shift(path, number);
        }
        let target = format!("{path}.{}", number + 1);
        if number == 0 {
            remove_existing(&target)?;
            rename_existing(path, &target)?;
            reach(AppendStep::Renamed);
            return Ok(());
        }
        let source = format!("{path}.{number}");
        if std::path::Path::new(&source).exists() {
            remove_existing(&target)?;
            rename_existing(&source, &target)?;
            reach(AppendStep::Renamed);
        }
        Ok(())
    }

    /// The highest number that must move up.
    fn last_to_shift(&self) -> u32 {
        let last = self.backup_count - 1;
        match self.rules {
            RotationRules::Early | RotationRules::Current => last,
            RotationRules::Together { compress } => {
                let is_free = |number: &u32| {
                    let path = format!("{}.{number}", self.file.path());
                    !std::path::Path::new(&path).exists() && (compress.is_none() || !forms::any_exists(&path))
                };
                (1..=last).find(is_free).map_or(last, |free| free - 1)
            }
        }
    }

    /// As `prepare`, and holds the lock of the file that is open afterwards.
    fn prepare_together(&mut self, lines: &Lines<'_>) -> Result<usize, SinkError> {
        if self.file.continues(lines) {
            return Ok(lines.bytes.len());
        }
        loop {
            self.file.enter()?;
            if !self.rules.is_together() {
                let part = self.prepare(lines).map_err(SinkError::Retry)?;
                self.file.enter()?;
                return Ok(part);
            }
            self.next = None;
            if self.file.is_regular() && self.file.has_moved().map_err(SinkError::Retry)? {
                self.file.reopen().map_err(SinkError::Retry)?;
                continue;
            }
            let rotation_count = self.file.rotation_count();
            let part = self.prepare(lines).map_err(SinkError::Retry)?;
            if self.file.rotation_count() == rotation_count {
                return Ok(part);
            }
        }
    }

    /// Does all rollovers that are due. Returns how many bytes of `lines` may then be written to the open file.
    fn prepare(&mut self, lines: &Lines<'_>) -> io::Result<usize> {
        let all = lines.bytes.len();
        if self.next.is_some() {
            self.turn()?;
            return self.before_rollover(lines, First::Exempt);
        }
        let first = if self.torn.continues(lines) { First::Exempt } else { First::Judged };
        let part = self.before_rollover(lines, first)?;
        if part > 0 {
            return Ok(part);
        }
        if !self.file.may_rotate() {
            return Ok(all);
        }
        if self.backup_count == 0 {
            if self.file.has_moved()? {
                self.file.reopen()?;
            }
            return Ok(all);
        }
        self.next = Some(RolloverStep::Shift(self.last_to_shift()));
        self.turn()?;
        self.before_rollover(lines, First::Exempt)
    }
}

/// Whether the first of the given records can make a rollover due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// It can, as all others.
    Judged,
    /// It cannot: it has already caused a rollover, or its beginning is written.
    Exempt,
}

/// Offset of the record at `index` in the bytes of `lines`.
fn start_of(lines: &Lines<'_>, index: usize) -> usize {
    if index == 0 { 0 } else { lines.marks[index - 1].end as usize - lines.before }
}

/// Number of characters in UTF-8 text, which is the number of bytes that are no continuation bytes.
fn characters(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64
}

impl Sink for RotatingFileSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let part = self.prepare_together(&lines)?;
        let count = self.file.append(&lines, part)?;
        self.torn.note(&lines, count);
        if let Some(compressing) = &mut self.compressing {
            compressing.note_rotations(self.file.rotation_count(), || self.file.origin());
        }
        Ok(count)
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.compressing.as_ref()?.trouble()
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(self.file.shared())
    }

    fn rotation_count(&self) -> u64 {
        self.file.rotation_count()
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        self.file.sync()
    }

    fn keep_unsynced(&mut self) {
        self.file.keep_unsynced();
    }
}
