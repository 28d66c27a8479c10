//! A file rotated by time: `logging.handlers.TimedRotatingFileHandler`, without `namer` and `rotator`.
//!
//! The time of the record determines its file, not the time of the write. So records that are written late are in the
//! same files as with the standard library.
//!
//! If a backup with the due name exists, the early rules remove it. The current rules assume that another process
//! created it, and do not rotate while it exists. The due time then does not change. So this process rotates again only
//! after the backup is removed, as in the standard library. The standard library checks for the backup with each
//! record. This sink checks with each write and each new second.
//!
//! If several processes rotate the file, the sidecar holds the time of the next rotation. So one process rotates for
//! all. The other processes notice that the path names a new file, and compute the next time from its time.
//!
//! A backup that cannot be removed is reported once per rollover, and is kept. The next rollover tries to remove it
//! again.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use logspool_record::definition::{Descriptor, Zone};

use super::compress::{CompressionHandle, Naming};
use super::expired;
use super::named::remove_existing;
use super::rotated::{RotatedFile, RotatedSink, Rule, move_to};
use super::schedule::{Schedule, ScheduleOptions};
use super::{Place, RotationRules, SinkOptions, Traits};
use crate::sink::{Lines, Mark, Sink};

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
        let Self { path, when, interval, backup_count, zone, at_time_seconds, rollover_at, rules } = self;
        let (interval, zone, at_time_seconds, rules) = (*interval, *zone, *at_time_seconds, *rules);
        let schedule =
            Schedule::parse(ScheduleOptions { when, interval, zone, at_time_seconds, rules: rules.cpython() })?;
        let log = RotatedFile::open(path, descriptor, rules, Naming::Stamps(schedule.precision))?;
        let rollover_at = rollover_at.unwrap_or_else(|| schedule.compute(last_change(Path::new(path))));
        let rule = TimeRule { schedule, backup_count: *backup_count, rollover_at, under_way: None };
        Ok(Box::new(RotatedSink { log, rule }))
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
        vec![sample(RotationRules::EARLY), sample(RotationRules::CURRENT)]
    }
}

/// Rotation by time: the schedule, and the unfinished rollover. See the module documentation.
#[derive(Debug)]
struct TimeRule {
    schedule: Schedule,
    backup_count: u32,
    rollover_at: i64,
    /// The rollover that is not finished yet.
    under_way: Option<Turn>,
}

/// A rollover whose file was already renamed.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Time of the record that made the rollover due.
    now: i64,
    /// Whether removing the expired backups was tried, or there are none to remove.
    expired_removed: bool,
}

/// The result of a rollover that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The new file is open.
    Turned,
    /// The file is not rotated: the path is not a regular file, or the file was already rotated. The time of the next
    /// rotation is computed.
    Irregular,
    /// A backup with that name exists.
    Taken,
}

impl TimeRule {
    /// Rotates for a record with the time `now`.
    fn roll(&mut self, log: &mut RotatedFile, now: i64) -> io::Result<Outcome> {
        if !log.file.may_rotate() {
            self.rollover_at = self.schedule.compute(now);
            return Ok(Outcome::Irregular);
        }
        let backup = format!("{}.{}", log.file.path(), self.schedule.suffix(self.rollover_at, now));
        match log.rules {
            RotationRules::Alone(cpython) if cpython.replaces_backups() => remove_existing(&backup)?,
            RotationRules::Alone(_) if log.has_backup(&backup) => return Ok(Outcome::Taken),
            RotationRules::Together { .. } if log.has_backup(&backup) => {
                // A process has already rotated the file for this time, and was killed before it wrote the new time to
                // the sidecar.
                self.rollover_at = self.schedule.after_rollover(now);
                log.file.shared().set_due(self.rollover_at);
                return Ok(Outcome::Irregular);
            }
            RotationRules::Alone(_) | RotationRules::Together { .. } => {}
        }
        move_to(log.file.path(), &backup)?;
        self.finish(log, Turn { now, expired_removed: self.backup_count == 0 })
    }

    /// Finishes a rollover after the file was renamed.
    fn finish(&mut self, log: &mut RotatedFile, mut turn: Turn) -> io::Result<Outcome> {
        let _alone = log.compressing.as_ref().map(CompressionHandle::alone);
        self.under_way = Some(turn);
        if !turn.expired_removed {
            turn.expired_removed = true;
            self.under_way = Some(turn);
            expired::remove(Path::new(log.file.path()), self.backup_count, self.schedule.precision, log.rules)?;
        }
        log.file.reopen()?;
        self.rollover_at = self.schedule.after_rollover(turn.now);
        self.under_way = None;
        Ok(Outcome::Turned)
    }
}

impl Rule for TimeRule {
    fn prepare(&mut self, log: &mut RotatedFile, lines: &Lines<'_>) -> io::Result<usize> {
        let Some((first, others)) = lines.marks.split_first() else { return Ok(lines.bytes.len()) };
        let mut outcome = Outcome::Turned;
        if let Some(turn) = self.under_way {
            outcome = self.finish(log, turn)?;
        } else if first.seconds >= self.rollover_at && !log.torn.continues(lines) {
            outcome = self.roll(log, first.seconds)?;
        }
        let due = |mark: &Mark| {
            let judged = outcome == Outcome::Taken && mark.seconds == first.seconds;
            mark.seconds >= self.rollover_at && !judged
        };
        Ok(match others.iter().position(due) {
            // Write up to the end of the record before the one that makes a rollover due.
            Some(index) => lines.marks[index].end as usize - lines.before,
            None => lines.bytes.len(),
        })
    }

    fn follow(&mut self, lines: &Lines<'_>) {
        // Another process, or an interrupted rollover of this sink, has rotated the file. The file that is or will be
        // at the path is the next one. Only its sidecar shows whether another process has written to it.
        let turn = self.under_way.take();
        let now = turn.map(|turn| turn.now).or(lines.marks.first().map(|mark| mark.seconds));
        if let Some(now) = now.filter(|now| *now >= self.rollover_at) {
            self.rollover_at = self.schedule.after_rollover(now);
        }
    }

    fn agree(&mut self, log: &mut RotatedFile) {
        self.under_way = None;
        self.rollover_at = log.file.shared().propose_due(self.rollover_at);
    }
}

/// Time of the last change of the file at `path` in seconds since the epoch. The current time if there is no such file.
fn last_change(path: &Path) -> i64 {
    use std::os::unix::fs::MetadataExt;

    match std::fs::metadata(path) {
        Ok(metadata) => metadata.mtime(),
        Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64),
    }
}
