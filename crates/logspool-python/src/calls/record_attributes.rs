//! The attributes of a finished record, read from its `__dict__`.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md). Each is looked up by its name: a walk over the
//! whole `__dict__` costs as much as some 15 lookups, and most formats need fewer.

use std::sync::Arc;

use logspool_record::cpython::TimeArithmetic;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use crate::calls::attribute::Attribute;
use crate::calls::pieces::small_int;
use crate::calls::record_site::{self, RecordSite};
use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::logging_globals::LoggingGlobals;

/// The time of a record, and the values that show it.
pub struct RecordTime {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: i64,
    /// The value of `created`.
    pub created: Owned,
    /// The value of `msecs`.
    pub msecs: Owned,
}

impl RecordTime {
    /// True if a record still has the values that were made for it.
    fn is_shown_by(&self, attributes: &RecordAttributes<'_, '_>) -> bool {
        Attribute::Created.is_at(attributes.own, self.created.as_ptr() as usize)
            && Attribute::Milliseconds.is_at(attributes.own, self.msecs.as_ptr() as usize)
    }
}

/// The attributes of a record, which are all in its `__dict__`.
pub struct RecordAttributes<'a, 'py> {
    /// `record.__dict__`.
    pub own: Object<'a, 'py>,
}

impl RecordAttributes<'_, '_> {
    /// The value of an attribute.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if the record does not have it.
    #[inline]
    pub fn get(&self, attribute: Attribute) -> Result<Owned, Failure> {
        attribute.of(self.own).ok_or(Failure::Stock)
    }

    /// An attribute whose value is an exact `str`.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if it has another value.
    pub fn exact_str(&self, attribute: Attribute) -> Result<Owned, Failure> {
        let found = self.get(attribute)?;
        if object::is_exact_str(found.bind(self.own.py())) { Ok(found) } else { Err(Failure::Stock) }
    }

    /// An attribute whose value is an exact `int` within `i64`.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if it has another value.
    pub fn small_int(&self, attribute: Attribute) -> Result<i64, Failure> {
        small_int(self.get(attribute)?.bind(self.own.py())).ok_or(Failure::Stock)
    }

    fn shows(&self, attribute: Attribute, text: &str) -> Result<bool, Failure> {
        let found = self.exact_str(attribute)?;
        Ok(object::utf8(found.bind(self.own.py())) == Some(text.as_bytes()))
    }

    /// The level's number, if the record's level name is the registered name of that number.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if it is not.
    pub fn level(&self, globals: &LoggingGlobals) -> Result<u16, Failure> {
        let level = self.get(Attribute::LevelNumber)?;
        let level = level.bind(self.own.py());
        let number = small_int(level).and_then(|number| u16::try_from(number).ok()).ok_or(Failure::Stock)?;
        let is_at = |known: Owned| Attribute::LevelName.is_at(self.own, known.as_ptr() as usize);
        if globals.name_of_level(level).is_some_and(is_at) {
            return Ok(number);
        }
        let index = globals.level_names.binary_search_by_key(&number, |(number, _)| *number);
        let (_, known) = &globals.level_names[index.map_err(|_| Failure::Stock)?];
        if self.shows(Attribute::LevelName, known)? { Ok(number) } else { Err(Failure::Stock) }
    }

    /// The time in nanoseconds from which the collector computes exactly the `created` and `msecs` of the record. `made`
    /// is the time with which the running logging call has made the record.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if there is no such time.
    pub fn time(&self, arithmetic: TimeArithmetic, made: Option<&RecordTime>) -> Result<i64, Failure> {
        if let Some(made) = made.filter(|made| made.is_shown_by(self)) {
            return Ok(made.time_ns);
        }
        let float = |attribute| {
            let found = self.get(attribute)?;
            let found = found.bind(self.own.py());
            found.cast_exact::<PyFloat>().map(|found| found.value()).map_err(|_| Failure::Stock)
        };
        let (created, msecs) = (float(Attribute::Created)?, float(Attribute::Milliseconds)?);
        nanoseconds(created, msecs, arithmetic).ok_or(Failure::Stock)
    }

    /// The source location in the record. If a format shows the file name, the record's `filename` and `module` must
    /// match its path.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if they do not, or if an attribute has a value of another type.
    pub fn place(&self, shows_file: bool) -> Result<Arc<RecordSite>, Failure> {
        let path = self.exact_str(Attribute::Path)?;
        let function = self.exact_str(Attribute::Function)?;
        let line = u32::try_from(self.small_int(Attribute::Line)?).map_err(|_| Failure::Stock)?;
        let place = record_site::find(self.own.py(), path, function, line)?;
        if !shows_file
            || self.shows(Attribute::File, place.compiled.filename())?
                && self.shows(Attribute::Module, place.compiled.module())?
        {
            Ok(place)
        } else {
            Err(Failure::Stock)
        }
    }
}

/// Nanoseconds per second.
const NANOS: i64 = 1_000_000_000;

/// Finds a time in nanoseconds that `arithmetic` turns into exactly `created` and `msecs`.
fn nanoseconds(created: f64, msecs: f64, arithmetic: TimeArithmetic) -> Option<i64> {
    // Larger times do not fit into `i64` nanoseconds. Before the Unix epoch, Python truncates in the other direction.
    if !(0.0..9e9).contains(&created) {
        return None;
    }
    let second = created.trunc();
    let near = second as i64 * NANOS + ((created - second) * 1e9).round() as i64;
    let seconds_of = |time: i64| {
        if arithmetic != TimeArithmetic::Nanoseconds && time % NANOS == 0 {
            (time / NANOS) as f64
        } else {
            time as f64 / 1e9
        }
    };
    // A double of this size has steps of about 240 ns, and the integer is rounded before it is divided by 1e9.
    let time = [0, 64, -64, 128, -128].into_iter().map(|step| near + step).find(|time| seconds_of(*time) == created)?;
    match arithmetic {
        TimeArithmetic::FloatFraction => ((created - second) * 1000.0 == msecs).then_some(time),
        TimeArithmetic::FloatWhole => (((created - second) * 1000.0).trunc() + 0.0 == msecs).then_some(time),
        TimeArithmetic::Nanoseconds => {
            if !(0.0..=999.0).contains(&msecs) || msecs.fract() != 0.0 {
                return None;
            }
            let first = time.div_euclid(NANOS) * NANOS + msecs as i64 * 1_000_000;
            let time = time.clamp(first, first + 999_999);
            // At the end of a second CPython corrects `msecs`; a record with such a time is formatted in the caller.
            let whole = time / NANOS == second as i64;
            (whole && seconds_of(time) == created).then_some(time)
        }
    }
}
