//! A file rotated by size: `logging.handlers.RotatingFileHandler`, without `namer` and `rotator`.
//!
//! A rollover is due before a record if the bytes in the file plus the *characters* of the record reach `max_bytes`.
//! The standard library does the same: it adds the length of a string to a position in bytes. As in the standard
//! library, the record that made a rollover due is written whatever its size. A file without backups is not rotated:
//! the path is opened again, and the file grows.
//!
//! The standard library checks for each record whether the path is a regular file. This sink checks its open file, and
//! the path only when a rollover is due.
//!
//! A failed step is tried again without repeating earlier steps: backups that were renamed are not renamed again.
//! Together with other processes, backups move up to the first free number, which repairs an interrupted rollover. With
//! compression (`compress.rs`), all forms of a backup count as one backup of its number.

use std::io;

use logspool_record::definition::Descriptor;

use super::compress::{CompressionHandle, Naming, forms};
use super::named::remove_existing;
use super::rotated::{RotatedFile, RotatedSink, Rule, move_to};
use super::{Place, RotationRules, SinkOptions, Traits};
use crate::sink::{Lines, Sink};

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
        let rule = SizeRule {
            max_bytes: self.max_bytes,
            backup_count: self.backup_count,
            terminator_chars: u64::from(self.terminator_chars),
            next: None,
        };
        Ok(Box::new(RotatedSink { log: RotatedFile::open(&self.path, descriptor, self.rules, Naming::Numbers)?, rule }))
    }

    fn place(&self) -> Place {
        Place::File(self.path.clone())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        let sample =
            |rules| Self { path: path.to_owned(), max_bytes: 500, backup_count: 1000, terminator_chars: 1, rules };
        vec![sample(RotationRules::EARLY), sample(RotationRules::CURRENT)]
    }
}

/// Rotation by size: when a rollover is due, and which of its steps is next. See the module documentation.
#[derive(Debug)]
struct SizeRule {
    max_bytes: u64,
    backup_count: u32,
    terminator_chars: u64,
    /// The next step of an unfinished rollover.
    next: Option<RolloverStep>,
}

/// A step of a rollover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RolloverStep {
    /// Rename the backup of this number to the next number. Number 0 is the live file.
    Shift(u32),
    /// Open the path again.
    Open,
}

impl SizeRule {
    /// Returns the number of bytes of `lines` before the first record that makes a rollover due. Returns the length of
    /// all `lines` if no record does.
    fn before_rollover(&self, log: &mut RotatedFile, lines: &Lines<'_>, first: First) -> io::Result<usize> {
        let all = lines.bytes.len();
        if self.max_bytes == 0 || !log.file.is_regular() {
            return Ok(all);
        }
        let end = log.file.end()?;
        if first == First::Judged && !lines.marks.is_empty() {
            let is_of_file = log.rules.is_together() || log.rules.cpython().measures_the_file();
            let position = if is_of_file { end } else { log.file.position()? };
            if self.is_due(log.rules, position, lines, 0) {
                return Ok(0);
            }
        }
        // For the first record the rules use different positions. After it, all rules use the end of the file, because
        // an append moves the position there.
        let Some(others) = lines.marks.get(1..) else { return Ok(all) };
        // A record has at most as many characters as bytes, so no record before this one can make a rollover due.
        let candidate = 1 + others.partition_point(|mark| {
            end + (mark.end as usize - lines.before) as u64 + 1 < self.max_bytes + self.terminator_chars
        });
        let due = (candidate..lines.marks.len())
            .find(|index| self.is_due(log.rules, end + start_of(lines, *index) as u64, lines, *index));
        Ok(due.map_or(all, |index| start_of(lines, index)))
    }

    /// Whether the record at `index` makes a rollover due, if it would be written at `position`.
    fn is_due(&self, rules: RotationRules, position: u64, lines: &Lines<'_>, index: usize) -> bool {
        let nothing_to_rotate = !rules.cpython().rotates_empty_files() && position == 0;
        let record = &lines.bytes[start_of(lines, index)..lines.marks[index].end as usize - lines.before];
        !nothing_to_rotate && position + characters(record) + 1 >= self.max_bytes + self.terminator_chars
    }

    /// Continues the unfinished rollover until its last step has opened the new file.
    fn turn(&mut self, log: &mut RotatedFile) -> io::Result<()> {
        let _alone = log.compressing.as_ref().map(CompressionHandle::alone);
        while let Some(step) = self.next {
            match step {
                RolloverStep::Shift(number) => shift(log, number)?,
                RolloverStep::Open => log.file.reopen()?,
            }
            self.next = match step {
                RolloverStep::Shift(0) => Some(RolloverStep::Open),
                RolloverStep::Shift(number) => Some(RolloverStep::Shift(number - 1)),
                RolloverStep::Open => None,
            };
        }
        Ok(())
    }

    /// The highest number of a backup that must be renamed.
    fn last_to_shift(&self, log: &RotatedFile) -> u32 {
        let last = self.backup_count - 1;
        if !log.rules.is_together() {
            return last;
        }
        let is_free = |number: &u32| !log.has_backup(&format!("{}.{number}", log.file.path()));
        (1..=last).find(is_free).map_or(last, |free| free - 1)
    }
}

impl Rule for SizeRule {
    fn prepare(&mut self, log: &mut RotatedFile, lines: &Lines<'_>) -> io::Result<usize> {
        let all = lines.bytes.len();
        if self.next.is_some() {
            self.turn(log)?;
            return self.before_rollover(log, lines, First::Exempt);
        }
        let first = if log.torn.continues(lines) { First::Exempt } else { First::Judged };
        let part = self.before_rollover(log, lines, first)?;
        if part > 0 {
            return Ok(part);
        }
        if !log.file.may_rotate() {
            return Ok(all);
        }
        if self.backup_count == 0 {
            if log.file.has_moved()? {
                log.file.reopen()?;
            }
            return Ok(all);
        }
        self.next = Some(RolloverStep::Shift(self.last_to_shift(log)));
        self.turn(log)?;
        self.before_rollover(log, lines, First::Exempt)
    }

    fn follow(&mut self, _: &Lines<'_>) {}

    fn agree(&mut self, _: &mut RotatedFile) {
        self.next = None;
    }
}

/// Renames the backup `number` to the next number; number 0 is the live file.
fn shift(log: &RotatedFile, number: u32) -> io::Result<()> {
    let path = log.file.path();
    if log.compressing.is_some() {
        return forms::shift(path, number);
    }
    let target = format!("{path}.{}", number + 1);
    let source = if number == 0 { path.to_owned() } else { format!("{path}.{number}") };
    if number > 0 && !std::path::Path::new(&source).exists() {
        return Ok(());
    }
    remove_existing(&target)?;
    move_to(&source, &target)
}

/// Whether the first of the given records can make a rollover due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// It can, like all other records.
    Judged,
    /// It cannot: it has already caused a rollover, or its beginning is already written.
    Exempt,
}

/// Offset of the record at `index` in the bytes of `lines`.
fn start_of(lines: &Lines<'_>, index: usize) -> usize {
    if index == 0 { 0 } else { lines.marks[index - 1].end as usize - lines.before }
}

/// Number of characters in UTF-8 text: the number of bytes that are not continuation bytes.
fn characters(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64
}
