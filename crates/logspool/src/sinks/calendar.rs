//! Broken-down time as Python's `time.localtime` and `time.gmtime` give it, for rotation by time.

use std::mem::MaybeUninit;

use logspool_record::definition::Zone;

/// A second on the wall clock of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime {
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    second: i32,
    /// 0 is Monday.
    pub weekday: i64,
    /// Whether daylight saving time is in force.
    pub is_dst: bool,
}

/// Precision of the time in the name of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// `2024-02-29`.
    Day,
    /// `2024-02-29_23`.
    Hour,
    /// `2024-02-29_23-59`.
    Minute,
    /// `2024-02-29_23-59-58`.
    Second,
}

impl WallTime {
    /// The time at `second` since the epoch, or the epoch itself if libc cannot compute the date.
    pub fn at(second: i64, zone: Zone) -> Self {
        let mut tm = MaybeUninit::<libc::tm>::zeroed();
        // SAFETY: both pointers are valid for the call. The _r functions write only through the second one, and a
        // zeroed `tm` is valid.
        let tm = unsafe {
            match zone {
                Zone::Local => libc::localtime_r(&second, tm.as_mut_ptr()),
                Zone::Utc => libc::gmtime_r(&second, tm.as_mut_ptr()),
            };
            tm.assume_init()
        };
        Self {
            year: tm.tm_year.saturating_add(1900),
            month: tm.tm_mon + 1,
            day: tm.tm_mday,
            hour: tm.tm_hour,
            minute: tm.tm_min,
            second: tm.tm_sec,
            weekday: i64::from((tm.tm_wday + 6) % 7),
            is_dst: tm.tm_isdst > 0,
        }
    }

    /// Seconds since midnight, computed from hour, minute and second.
    pub fn second_of_day(&self) -> i64 {
        (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second)
    }

    /// The time in the form that names of backups use.
    pub fn stamp(&self, precision: Precision) -> String {
        let mut text = format!("{}-{:02}-{:02}", self.year, self.month, self.day);
        if precision >= Precision::Hour {
            text.push_str(&format!("_{:02}", self.hour));
        }
        if precision >= Precision::Minute {
            text.push_str(&format!("-{:02}", self.minute));
        }
        if precision >= Precision::Second {
            text.push_str(&format!("-{:02}", self.second));
        }
        text
    }
}

impl Precision {
    /// Whether `text` has the form of a stamp: digits and separators at the right positions. The date is not checked.
    pub fn is_stamp(self, text: &[u8]) -> bool {
        let form = match self {
            Self::Day => &b"0000-00-00"[..],
            Self::Hour => b"0000-00-00_00",
            Self::Minute => b"0000-00-00_00-00",
            Self::Second => b"0000-00-00_00-00-00",
        };
        text.len() == form.len()
            && text
                .iter()
                .zip(form)
                .all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_the_configured_precision_and_is_recognised_again() {
        let time = WallTime::at(1_709_251_198, Zone::Utc);

        assert_eq!("2024-02-29", time.stamp(Precision::Day));
        assert_eq!("2024-02-29_23-59-58", time.stamp(Precision::Second));
        assert_eq!(3, time.weekday);
        assert_eq!(86_398, time.second_of_day());
        assert!(Precision::Minute.is_stamp(time.stamp(Precision::Minute).as_bytes()));
        assert!(!Precision::Hour.is_stamp(time.stamp(Precision::Minute).as_bytes()));
    }
}
