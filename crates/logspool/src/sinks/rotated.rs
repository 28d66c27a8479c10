//! A file that is rotated: the code that rotation by size (`rotating.rs`) and by time (`timed.rs`) share. A [`Rule`]
//! decides when a rollover is due, and defines the names of backups.
//!
//! All records before the next rollover are written by one write. A failed step is tried again. Until it succeeds, the
//! old file stays open and nothing is written.
//!
//! Together with other processes (`RotationRules::Together`), all steps run under the lock of the open file's sidecar.
//! After the lock is taken, the path is checked. If it names another file, another process has rotated, and the lock of
//! that file is taken instead. A failed rollover is not remembered, because another process may have continued it.

use std::io;
use std::path::Path;

use logspool_record::definition::Descriptor;

use super::RotationRules;
use super::compress::{CompressionHandle, Naming, forms};
use super::named::{NamedFile, rename_existing};
use super::torn::TornRecord;
use crate::sidecar::steps::{AppendStep, reach};
use crate::sink::{Lines, SharedLog, Sink, SinkError, SyncError};

/// Decides when a file is rotated, and defines the names of its backups.
pub trait Rule: std::fmt::Debug + Send {
    /// Does all rollovers that are due. Returns how many bytes of `lines` may then be written to the open file.
    ///
    /// # Errors
    ///
    /// The system's error. The next call continues the unfinished rollover.
    fn prepare(&mut self, log: &mut RotatedFile, lines: &Lines<'_>) -> io::Result<usize>;

    /// Called after another process has rotated the file, when the new file at the path is open.
    fn follow(&mut self, lines: &Lines<'_>);

    /// Called under the lock before `prepare`, if other processes rotate the file too. Forgets an unfinished rollover.
    fn agree(&mut self, log: &mut RotatedFile);
}

/// The open file of a rotating sink, with its backups.
#[derive(Debug)]
pub struct RotatedFile {
    pub file: NamedFile,
    pub rules: RotationRules,
    pub compressing: Option<CompressionHandle>,
    pub torn: TornRecord,
}

impl RotatedFile {
    /// Opens `path` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn open(path: &str, descriptor: Descriptor, rules: RotationRules, naming: Naming) -> io::Result<Self> {
        let file = NamedFile::open(path, descriptor)?;
        let compressing = rules.compression().map(|how| CompressionHandle::new(path, how, naming));
        Ok(Self { file, rules, compressing, torn: TornRecord::default() })
    }

    /// Whether a backup of this name exists, plain or compressed.
    pub fn has_backup(&self, path: &str) -> bool {
        Path::new(path).exists() || self.compressing.is_some() && forms::any_exists(path)
    }
}

/// Renames the log file or a backup, if it exists.
///
/// # Errors
///
/// The error of rename(2).
pub fn move_to(source: &str, backup: &str) -> io::Result<()> {
    rename_existing(source, backup)?;
    reach(AppendStep::Renamed);
    Ok(())
}

/// Appends lines to a file that a rule rotates.
#[derive(Debug)]
pub struct RotatedSink<R> {
    pub log: RotatedFile,
    pub rule: R,
}

impl<R: Rule> RotatedSink<R> {
    /// Like [`Rule::prepare`]. Also holds the lock of the file that is open afterwards.
    fn prepare(&mut self, lines: &Lines<'_>) -> Result<usize, SinkError> {
        let Self { log, rule } = self;
        if log.file.continues(lines) {
            return Ok(lines.bytes.len());
        }
        loop {
            log.file.enter()?;
            if !log.rules.is_together() {
                let part = rule.prepare(log, lines).map_err(SinkError::Retry)?;
                log.file.enter()?;
                return Ok(part);
            }
            if log.file.is_regular() && log.file.has_moved().map_err(SinkError::Retry)? {
                log.file.reopen().map_err(SinkError::Retry)?;
                rule.follow(lines);
                continue;
            }
            rule.agree(log);
            let rotation_count = log.file.rotation_count();
            let part = rule.prepare(log, lines).map_err(SinkError::Retry)?;
            if log.file.rotation_count() == rotation_count {
                return Ok(part);
            }
        }
    }
}

impl<R: Rule> Sink for RotatedSink<R> {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let part = self.prepare(&lines)?;
        let log = &mut self.log;
        let count = log.file.append(&lines, part)?;
        log.torn.note(&lines, count);
        if let Some(compressing) = &mut log.compressing {
            compressing.note_rotations(log.file.rotation_count(), || log.file.origin());
        }
        Ok(count)
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.log.compressing.as_ref()?.trouble()
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(self.log.file.shared())
    }

    fn rotation_count(&self) -> u64 {
        self.log.file.rotation_count()
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        self.log.file.sync()
    }

    fn keep_unsynced(&mut self) {
        self.log.file.keep_unsynced();
    }
}
