//! Computes when rotation by time is due, and the name of the backup. The arithmetic is that of
//! `logging.handlers.TimedRotatingFileHandler`.
//!
//! The results equal the standard library's, including its errors. In zones whose daylight saving time is half an hour,
//! both correct by a whole hour, which is wrong.

use std::io;

use super::calendar::{Precision, WallTime};
use logspool_record::cpython::CpythonRules;
use logspool_record::definition::Zone;

const DAY: i64 = 24 * 60 * 60;
const HOUR: i64 = 60 * 60;

/// The unit of rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// When this unit of time, multiplied by the interval, has passed since the last rotation.
    Every(Precision),
    /// At midnight, or at a time of the day.
    Midnight,
    /// At the end of a weekday, or at a time of that day; 0 is Monday.
    Weekday(i64),
}

/// The schedule of a definition.
#[derive(Debug, Clone)]
pub struct Schedule {
    when: When,
    /// Seconds between two rotations.
    interval: i64,
    zone: Zone,
    /// Seconds after midnight.
    at_time: Option<i64>,
    rules: CpythonRules,
    /// Precision of the time in the name of a backup.
    pub precision: Precision,
}

/// The options of [`Schedule::parse`], in the form that the handler has.
#[derive(Debug, Clone, Copy)]
pub struct ScheduleOptions<'a> {
    /// `S`, `M`, `H`, `D`, `midnight`, `W0` to `W6`, in either case.
    pub when: &'a str,
    /// Number of units of `when` between two rotations.
    pub interval: u32,
    /// Local time or UTC.
    pub zone: Zone,
    /// Time of the day, in seconds after midnight.
    pub at_time_seconds: Option<u32>,
    /// The rules of CPython's releases to follow.
    pub rules: CpythonRules,
}

impl Schedule {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a `when` that the standard library refuses, and for an interval of 0 if the standard library
    /// would loop for ever.
    pub fn parse(options: ScheduleOptions<'_>) -> io::Result<Self> {
        let ScheduleOptions { when, interval, zone, at_time_seconds, rules } = options;
        let upper = when.to_uppercase();
        let (when, unit, precision) = match upper.as_bytes() {
            b"S" => (When::Every(Precision::Second), 1, Precision::Second),
            b"M" => (When::Every(Precision::Minute), 60, Precision::Minute),
            b"H" => (When::Every(Precision::Hour), HOUR, Precision::Hour),
            b"D" => (When::Every(Precision::Day), DAY, Precision::Day),
            b"MIDNIGHT" => (When::Midnight, DAY, Precision::Day),
            [b'W', digit @ b'0'..=b'6'] => (When::Weekday(i64::from(digit - b'0')), 7 * DAY, Precision::Day),
            _ => return Err(refused(format!("no such time to rotate at: {when}"))),
        };
        if interval == 0 && rules.steps_into_the_future() {
            return Err(refused("an interval of 0 between two rotations".to_owned()));
        }
        let interval = unit * i64::from(interval);
        Ok(Self { when, interval, zone, at_time: at_time_seconds.map(i64::from), rules, precision })
    }

    /// `computeRollover`: returns when the next rotation is due, computed at the time `now`.
    pub fn compute(&self, now: i64) -> i64 {
        if let When::Every(_) = self.when {
            return now + self.interval;
        }
        let wall = WallTime::at(now, self.zone);
        let mut weekday = wall.weekday;
        let mut wait = self.at_time.unwrap_or(DAY) - wall.second_of_day();
        if wait < 0 || wait == 0 && !self.rules.is_due_at_once() {
            wait += DAY;
            weekday = (weekday + 1) % 7;
        }
        let mut due = now + wait;
        let days = match self.when {
            When::Weekday(target) => (target - weekday).rem_euclid(7),
            _ => 0,
        };
        due += days * DAY;
        if self.rules.counts_days() {
            due += self.interval - if let When::Weekday(_) = self.when { 7 * DAY } else { DAY };
            if self.zone == Zone::Local {
                let skipped = !wall.is_dst && !is_dst(due - HOUR);
                due += if skipped { 0 } else { hour_shift(wall.is_dst, due) };
            }
        } else if days > 0 && self.zone == Zone::Local {
            due += hour_shift(wall.is_dst, due);
        }
        due
    }

    /// Returns when the next rotation is due, after a rotation at `now`.
    pub fn after_rollover(&self, now: i64) -> i64 {
        let mut due = self.compute(now);
        if self.rules.steps_into_the_future() {
            while due <= now {
                due += self.interval;
            }
            if self.zone == Zone::Local && !matches!(self.when, When::Every(_)) {
                due += hour_shift(is_dst(now), due);
            }
        }
        due
    }

    /// The suffix of a backup. The rotation was due at `rollover_at` and takes place at `now`.
    pub fn suffix(&self, rollover_at: i64, now: i64) -> String {
        let begun = rollover_at - self.interval;
        let mut wall = WallTime::at(begun, self.zone);
        if self.zone == Zone::Local {
            let dst_now = is_dst(now);
            if dst_now != wall.is_dst {
                wall = WallTime::at(begun + if dst_now { HOUR } else { -HOUR }, self.zone);
            }
        }
        wall.stamp(self.precision)
    }
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn is_dst(second: i64) -> bool {
    WallTime::at(second, Zone::Local).is_dst
}

/// Correction in seconds if daylight saving time changes between now and `due`. `is_dst_now`: it is in force now.
fn hour_shift(is_dst_now: bool, due: i64) -> i64 {
    match (is_dst_now, is_dst(due)) {
        (false, true) => -HOUR,
        (true, false) => HOUR,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(when: &str, at_time_seconds: Option<u32>, rules: CpythonRules) -> Schedule {
        Schedule::parse(ScheduleOptions { when, interval: 1, zone: Zone::Utc, at_time_seconds, rules }).unwrap()
    }

    #[test]
    fn midnight_itself_is_due_at_once_by_early_rules_and_a_day_later_by_current_ones() {
        let midnight = 1_700_006_400;

        assert_eq!(midnight + DAY, schedule("midnight", None, CpythonRules::EARLY_ROTATION).compute(midnight));
        assert_eq!(midnight, schedule("midnight", Some(0), CpythonRules::EARLY_ROTATION).compute(midnight));
        assert_eq!(midnight + DAY, schedule("midnight", Some(0), CpythonRules::CURRENT_ROTATION).compute(midnight));
    }

    #[test]
    fn schedules_that_stock_logging_refuses_are_refused() {
        for when in ["", "W", "W7", "W00", "Y", "MID"] {
            let options = ScheduleOptions {
                when,
                interval: 1,
                zone: Zone::Utc,
                at_time_seconds: None,
                rules: CpythonRules::CURRENT_ROTATION,
            };
            assert!(Schedule::parse(options).is_err(), "{when}");
        }
    }
}
