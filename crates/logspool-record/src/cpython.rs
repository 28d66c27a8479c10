//! The differences between releases of CPython, in one type.
//!
//! Bindings for another language use [`CpythonRules::default`]. It is no release, and follows no rule of an old
//! release. No other code in the crates below the bindings depends on the release of CPython.

/// The rules that one release of CPython's `logging` follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CpythonRules {
    /// Minor version; 0 for another language.
    minor: u8,
    arithmetic: TimeArithmetic,
    rotation: Rotation,
}

/// How LogRecord computes `msecs` and `relativeCreated`. CPython 3.10 to 3.14 have three ways.
///
/// Capture distinguishes them by the source code of `logging`, not by the minor version: 3.10 changed between patch
/// releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimeArithmetic {
    /// `msecs = (ct - int(ct)) * 1000`: 3.10 before the fix of gh-89047.
    FloatFraction,
    /// `msecs = int((ct - int(ct)) * 1000) + 0.0`: later 3.10, 3.11, 3.12.
    FloatWhole,
    /// Computed from `time_ns()`: `msecs = (ct % 10**9) // 10**6 + 0.0`, `relativeCreated = (ct - start) / 1e6`. Used
    /// by 3.13 and later.
    #[default]
    Nanoseconds,
}

/// How a rotating handler rotates.
///
/// CPython's rules changed between patch releases of one minor version. So capture distinguishes them by the code of
/// the handler's class. Size rules are early if `RotatingFileHandler.shouldRollover` calls `seek`. Time rules are early
/// if `TimedRotatingFileHandler.doRollover` has a local variable `newRolloverAt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Rotation {
    /// The early rules, compared with CPython 3.10.13, 3.11.7 and 3.12.1.
    Early,
    /// The current rules, compared with CPython 3.12.10 and 3.13.0.
    #[default]
    Current,
}

/// First minor version whose LogRecord has `taskName`.
const TASK_NAME_MINOR: u8 = 12;

impl CpythonRules {
    /// The rules of a rotating handler of CPython 3.10.13, 3.11.7 or 3.12.1.
    pub const EARLY_ROTATION: Self = Self { rotation: Rotation::Early, ..Self::CURRENT_ROTATION };

    /// The rules of a rotating handler of CPython 3.12.10 or later.
    pub const CURRENT_ROTATION: Self =
        Self { minor: 0, arithmetic: TimeArithmetic::Nanoseconds, rotation: Rotation::Current };

    /// The rules for records of Python 3.`minor`.
    pub const fn of_records(minor: u8, arithmetic: TimeArithmetic) -> Self {
        Self { minor, arithmetic, rotation: Rotation::Current }
    }

    /// The minor version, for the encoded form of a format; 0 for another language.
    pub(crate) const fn minor(self) -> u8 {
        self.minor
    }

    /// How `msecs` and `relativeCreated` are computed.
    pub const fn arithmetic(self) -> TimeArithmetic {
        self.arithmetic
    }

    /// Whether a record has the attribute `taskName`.
    pub const fn has_task_name(self) -> bool {
        self.minor >= TASK_NAME_MINOR
    }

    /// Whether an empty file is rotated, too.
    pub const fn rotates_empty_files(self) -> bool {
        self.is_early()
    }

    /// Whether the size rule uses the size of the file, which includes bytes of other writers. Otherwise it uses the
    /// handler's own position.
    pub const fn measures_the_file(self) -> bool {
        self.is_early()
    }

    /// Whether an existing backup is replaced. If not, the file is not rotated while a backup of that name exists.
    pub const fn replaces_backups(self) -> bool {
        self.is_early()
    }

    /// Whether `interval` is also used for `midnight` and weekdays.
    pub const fn counts_days(self) -> bool {
        !self.is_early()
    }

    /// For rotation at a time of the day: whether it is due at once if it is that time now.
    pub const fn is_due_at_once(self) -> bool {
        self.is_early()
    }

    /// Whether the next time is moved by whole intervals until it is in the future. With an interval of 0 this never
    /// ends.
    pub const fn steps_into_the_future(self) -> bool {
        self.is_early()
    }

    /// Whether any part of a name between two dots can be the time of a backup.
    pub const fn finds_times_in_any_part(self) -> bool {
        self.is_early()
    }

    const fn is_early(self) -> bool {
        matches!(self.rotation, Rotation::Early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_languages_have_no_rules_of_old_python_releases() {
        let rules = CpythonRules::default();

        assert_eq!(CpythonRules::CURRENT_ROTATION, rules);
        assert!(!rules.has_task_name() && !rules.rotates_empty_files());
        assert_eq!(TimeArithmetic::Nanoseconds, rules.arithmetic());
    }

    #[test]
    fn the_task_name_exists_from_its_release_on() {
        let has = |minor| CpythonRules::of_records(minor, TimeArithmetic::FloatWhole).has_task_name();

        assert_eq!([false, true, true], [11, 12, 14].map(has));
    }
}
