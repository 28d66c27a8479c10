//! A file rotated by time: `logging.handlers.TimedRotatingFileHandler`, without `namer` and `rotator`.
//!
//! The time of the record decides, not the time of the write. So a backlog is spread over the files as the standard
//! library would have spread it. All records up to the next rollover are one write.
//!
//! If a backup with the due name exists, early rules remove it. Current rules take it for the work of another process
//! and do not rotate while it exists. The due time then stays, so this process rotates again only after the backup is
//! removed, as in the standard library. The standard library checks for it with each record, this sink with each write
//! and each new second.
//!
//! Together with other processes (`RotationRules::Together`), all steps run under the lock of the open file's sidecar,
//! as in `rotating.rs`. The sidecar holds the time of the next rotation, so that one process rotates for all. The
//! others notice it at the path, and compute the next time from there.
//!
//! Failures: renaming and opening are retried until they succeed. Meanwhile the old file stays open and nothing is
//! written. A backup that cannot be removed is reported once per rollover and stays; the next rollover tries again.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use logspool_record::definition::{Descriptor, Zone};

use super::compress::{CompressionHandle, Naming, forms};
use super::expired;
use super::named::{NamedFile, remove_existing, rename_existing};
use super::schedule::{Schedule, ScheduleOptions};
use super::torn::TornRecord;
use super::{Place, RotationRules, SinkOptions, Traits};
use crate::sidecar::steps::{AppendStep, reach};
use crate::sink::{Lines, Mark, SharedLog, Sink, SinkError, SyncError};

crate::options! {
    /// Appends lines to a file, and rotates it at points in time.
    pub struct TimedRotatingFileOptions {
        /// Path of the file. The name of a backup ends with its time.
        pub path: String as Path,
        /// When to rotate, in the words of `logging.handlers.TimedRotatingFileHandler`: `S`, `M`, `H`, `D`, `midnight`,
        /// `W0` to `W6`.
        pub when: String = Text("h"),
        /// Units of `when` between two rotations.
        pub interval: u32 ["", 1..=4294967295] = Whole(1),
        /// Number of backups that are kept; 0 keeps all.
        pub backup_count: u32 ["files", 0..=4294967295] = Whole(0),
        /// Which clock decides.
        pub zone: Zone = Text("local"),
        /// Time of the day of daily and weekly rotation.
        pub at_time_seconds: Option<u32> ["seconds after midnight", 0..=86399] = Nothing,
        /// When to rotate first, in seconds since the epoch; without it the last change of the file decides.
        pub rollover_at: Option<i64> ["seconds"] = Nothing,
        /// Which rules to follow: those of CPython's releases, or those for several processes, with or without
        /// compression.
        pub rules: RotationRules = Text("together"),
    }
}

impl SinkOptions for TimedRotatingFileOptions {
    const KIND: &'static str = "timed";
    const TRAITS: Traits = Traits::ROTATING_FILE;

    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(TimedRotatingFileSink::open(self, descriptor)?))
    }

    fn place(&self) -> Place {
        Place::File(self.path.clone())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        let sample = |rules| Self {
            path: path.to_owned(),
            when: "S".to_owned(),
            interval: 1,
            backup_count: 0,
            zone: Zone::Utc,
            at_time_seconds: None,
            rollover_at: Some(1),
            rules,
        };
        vec![sample(RotationRules::Early), sample(RotationRules::Current)]
    }
}

/// See the file head.
#[derive(Debug)]
pub struct TimedRotatingFileSink {
    file: NamedFile,
    schedule: Schedule,
    backup_count: u32,
    rules: RotationRules,
    compressing: Option<CompressionHandle>,
    rollover_at: i64,
    /// The unfinished rollover.
    under_way: Option<Turn>,
    torn: TornRecord,
}

/// A rollover after the file was renamed.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Time of the record that made it due.
    now: i64,
    /// Whether the removal of expired backups was tried, or none has to be removed.
    expired_removed: bool,
}

/// The result of a rollover that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The new file is open.
    Turned,
    /// The path is no regular file, or was rotated already; the next time is computed.
    Irregular,
    /// A backup with that name exists.
    Taken,
}

impl TimedRotatingFileSink {
    /// Opens the path of `options` or duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// What the system said; `InvalidInput` for a time that stock refuses.
    pub fn open(options: &TimedRotatingFileOptions, descriptor: Descriptor) -> io::Result<Self> {
        let TimedRotatingFileOptions { path, when, interval, backup_count, zone, at_time_seconds, rollover_at, rules } =
            options;
        let (interval, zone, at_time_seconds, rules) = (*interval, *zone, *at_time_seconds, *rules);
        let schedule = Schedule::parse(ScheduleOptions { when, interval, zone, at_time_seconds, rules })?;
        let file = NamedFile::open(path, descriptor)?;
        let rollover_at = rollover_at.unwrap_or_else(|| schedule.compute(last_change(Path::new(path))));
        let naming = Naming::Stamps(schedule.precision);
        let compressing = rules.compression().map(|how| CompressionHandle::new(path, how, naming));
        Ok(Self {
            file,
            schedule,
            backup_count: *backup_count,
            rules,
            compressing,
            rollover_at,
            under_way: None,
            torn: TornRecord::default(),
        })
    }

    /// Rotates for a record with the time `now`.
    fn roll(&mut self, now: i64) -> io::Result<Outcome> {
        if !self.file.may_rotate() {
            self.rollover_at = self.schedule.compute(now);
            return Ok(Outcome::Irregular);
        }
        let backup = format!("{}.{}", self.file.path(), self.schedule.suffix(self.rollover_at, now));
        match self.rules {
            RotationRules::Early => remove_existing(&backup)?,
            RotationRules::Current if Path::new(&backup).exists() => return Ok(Outcome::Taken),
            RotationRules::Together { compress }
                if Path::new(&backup).exists() || compress.is_some() && forms::any_exists(&backup) =>
            {
                // Rotated for this time already, by a process that was killed before it wrote the new time to the
                // sidecar.
                self.rollover_at = self.schedule.after_rollover(now);
                self.file.shared().set_due(self.rollover_at);
                return Ok(Outcome::Irregular);
            }
            RotationRules::Current | RotationRules::Together { .. } => {}
        }
        rename_existing(self.file.path(), &backup)?;
        reach(AppendStep::Renamed);
        self.finish(Turn { now, expired_removed: self.backup_count == 0 })
    }

    /// Finishes a rollover after the file was renamed.
    fn finish(&mut self, mut turn: Turn) -> io::Result<Outcome> {
        let _alone = self.compressing.as_ref().map(CompressionHandle::alone);
        self.under_way = Some(turn);
        if !turn.expired_removed {
            turn.expired_removed = true;
            self.under_way = Some(turn);
            expired::remove(Path::new(self.file.path()), self.backup_count, self.schedule.precision, self.rules)?;
        }
        self.file.reopen()?;
        self.rollover_at = self.schedule.after_rollover(turn.now);
        self.under_way = None;
        Ok(Outcome::Turned)
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
            let turn = self.under_way.take();
            if self.file.is_regular() && self.file.has_moved().map_err(SinkError::Retry)? {
                // Rotated by another process, or by an interrupted rollover of this sink. The file at the path, now or
                // later, is the next one. Its sidecar knows better whether another process has written to it.
                let now = turn.map(|turn| turn.now).or(lines.marks.first().map(|mark| mark.seconds));
                self.file.reopen().map_err(SinkError::Retry)?;
                if let Some(now) = now.filter(|now| *now >= self.rollover_at) {
                    self.rollover_at = self.schedule.after_rollover(now);
                }
                continue;
            }
            self.rollover_at = self.file.shared().propose_due(self.rollover_at);
            let rotation_count = self.file.rotation_count();
            let part = self.prepare(lines).map_err(SinkError::Retry)?;
            if self.file.rotation_count() == rotation_count {
                return Ok(part);
            }
        }
    }

    /// Does all rollovers that are due. Returns how many bytes of `lines` may then be written to the open file.
    fn prepare(&mut self, lines: &Lines<'_>) -> io::Result<usize> {
        let Some((first, others)) = lines.marks.split_first() else { return Ok(lines.bytes.len()) };
        let mut outcome = Outcome::Turned;
        if let Some(turn) = self.under_way {
            outcome = self.finish(turn)?;
        } else if first.seconds >= self.rollover_at && !self.torn.continues(lines) {
            outcome = self.roll(first.seconds)?;
        }
        let due = |mark: &Mark| {
            let judged = outcome == Outcome::Taken && mark.seconds == first.seconds;
            mark.seconds >= self.rollover_at && !judged
        };
        Ok(match others.iter().position(due) {
            // The end of the record before the one that is due.
            Some(index) => lines.marks[index].end as usize - lines.before,
            None => lines.bytes.len(),
        })
    }
}

/// Time of the last change of the file at `path`, or the current time without such a file; in seconds since the epoch.
fn last_change(path: &Path) -> i64 {
    use std::os::unix::fs::MetadataExt;

    match std::fs::metadata(path) {
        Ok(metadata) => metadata.mtime(),
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64),
    }
}

impl Sink for TimedRotatingFileSink {
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
