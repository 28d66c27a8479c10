//! The template of the records of one call site: the attributes of the last record, without those of the call.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Most records of a site have the same logger, level, message, thread
//! and process as the record before. So a template remembers the values that it holds, and a copy of it needs to be
//! changed only where they differ.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::attribute::Attribute;
use crate::interpreter::dict::{self, NewDict};
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};

/// The attributes of a `LogRecord`, from which further records of its site are made.
pub struct RecordTemplate {
    dict: Owned,
    /// Addresses of the values that show the source location, which the template holds.
    place: [usize; 5],
    /// Addresses of the values that the template holds for each [`KeptValue`], or 0 for a value that was not kept.
    values: [AtomicUsize; KeptValue::Task as usize + 1],
    /// The thread that the template shows, or 0.
    thread: AtomicU64,
    /// The process that the template shows, or 0.
    process: AtomicU64,
    /// True if the dict has room for attributes that are added to copies of it.
    has_room: AtomicBool,
    /// Number of changes. A thread that finds another number than that of its copy does not compare values with it.
    changes: AtomicU64,
}

/// Attributes whose value is usually that of the last record.
#[derive(Clone, Copy)]
pub enum KeptValue {
    Name,
    LevelNumber,
    LevelName,
    Message,
    ThreadName,
    ProcessName,
    Task,
}

impl RecordTemplate {
    /// Makes a template of the attributes of a record of the site.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if the record has no source location.
    pub fn new(attributes: Object<'_, '_>) -> Result<Self, Failure> {
        let py = attributes.py();
        // Not `copy`: the dict of an instance shares its keys with other instances, and copies of it are slower to
        // make.
        // SAFETY: live objects of an attached thread. A new reference or null with an error set; the second function
        // reports an error by a negative number.
        let dict = unsafe {
            let dict = Owned::steal(ffi::PyDict_New()).ok_or_else(|| Failure::of_error(py))?;
            if ffi::PyDict_Update(dict.as_ptr(), attributes.as_ptr()) < 0 {
                return Err(Failure::of_error(py));
            }
            dict
        };
        let mut place = [0; 5];
        for (address, attribute) in place.iter_mut().zip(PLACE) {
            *address = attribute.of(dict.bind(py)).ok_or(Failure::Stock)?.as_ptr() as usize;
        }
        Ok(Self {
            dict,
            place,
            values: Default::default(),
            thread: AtomicU64::new(0),
            process: AtomicU64::new(0),
            has_room: AtomicBool::new(false),
            changes: AtomicU64::new(0),
        })
    }

    /// A copy of the template, from which a record is made.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn copy<'a, 'py>(&'a self, py: Python<'py>) -> Result<TemplateCopy<'a, 'py>, Failure> {
        let before = self.changes.load(Relaxed);
        let attributes = NewDict::copy_of(self.dict.bind(py))?;
        // Making a dict may start a garbage collection, whose finalizers may log.
        let is_current = MAY_KEEP && before == self.changes.load(Relaxed);
        Ok(TemplateCopy { template: self, attributes, changes: Cell::new(is_current.then_some(before)) })
    }

    /// Notes the attributes of a record that filters and formatters have seen. If they have added more than the dict of
    /// a record takes, later copies have room for them: making room in each of them costs more than half of a copy.
    pub fn note_growth(&self, attributes: Object<'_, '_>) {
        if !MAY_KEEP || self.has_room.load(Relaxed) || dict::len(attributes) <= SMALL_DICT {
            return;
        }
        self.has_room.store(true, Relaxed);
        let py = attributes.py();
        // A dict gets a larger table when it is full, and keeps it when keys are removed. Copies have the same table.
        let (dict, none) = (self.dict.bind(py), Owned::none(py));
        for name in [&names().message, &names().asctime] {
            if dict::set(dict, name, &none).is_err() {
                object::clear_error(py);
            }
        }
        for name in [&names().message, &names().asctime] {
            dict::remove(dict, name);
        }
    }

    /// True if a record has the source location of the template, as the same objects. Its file name and its module,
    /// which follow from its path, are compared only if a line shows them.
    pub fn has_place_of(&self, attributes: Object<'_, '_>, shows_file: bool) -> bool {
        let compared = if shows_file { self.place.len() } else { INDEPENDENT };
        let mut places = PLACE.into_iter().zip(self.place).take(compared);
        places.all(|(attribute, address)| attribute.is_at(attributes, address))
    }
}

/// The attributes of a record that is being made: a copy of a template.
pub struct TemplateCopy<'a, 'py> {
    template: &'a RecordTemplate,
    /// The attributes.
    pub attributes: NewDict<'py>,
    /// The number of changes of the template that the copy shows; `None` if it is not known which it shows.
    changes: Cell<Option<u64>>,
}

impl TemplateCopy<'_, '_> {
    /// Sets an attribute, unless the copy has this value already.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set(&self, which: KeptValue, value: Object<'_, '_>) -> Result<(), Failure> {
        let kept = &self.template.values[which as usize];
        let (known, is_current) = (kept.load(Relaxed), self.is_current());
        // The template keeps the value alive, so no other object has its address.
        if is_current && known == value.as_ptr() as usize {
            return Ok(());
        }
        let name = which.name();
        self.attributes.set(name, value)?;
        // Messages may differ at each call, so only the first one is kept.
        let is_kept = is_current && (known == 0 || !matches!(which, KeptValue::Message));
        if is_kept && (object::is_exact_str(value) || object::is_exact_int(value) || value.is_none()) {
            self.keep(name, value)?;
            kept.store(value.as_ptr() as usize, Relaxed);
        }
        Ok(())
    }

    /// Sets `thread`, unless the copy has this value already.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set_thread(&self, thread: u64) -> Result<(), Failure> {
        self.set_number(&names().thread, &self.template.thread, thread)
    }

    /// Sets `process`, unless the copy has this value already.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set_process(&self, process: u64) -> Result<(), Failure> {
        self.set_number(&names().process, &self.template.process, process)
    }

    #[inline]
    fn set_number(&self, name: &Owned, kept: &AtomicU64, number: u64) -> Result<(), Failure> {
        let is_current = self.is_current();
        if is_current && kept.load(Relaxed) == number {
            return Ok(());
        }
        let py = self.attributes.py();
        // SAFETY: the thread is attached; a new reference or null with an error set.
        let value = unsafe { Owned::steal(ffi::PyLong_FromUnsignedLongLong(number)) };
        let value = value.ok_or_else(|| Failure::of_error(py))?;
        self.attributes.set(name, value.bind(py))?;
        if is_current {
            self.keep(name, value.bind(py))?;
            kept.store(number, Relaxed);
        }
        Ok(())
    }

    /// True if the template has the values of the copy, apart from those that were set since.
    #[inline]
    fn is_current(&self) -> bool {
        self.changes.get().is_some_and(|seen| seen == self.template.changes.load(Relaxed))
    }

    /// Sets an attribute of the template too. The replaced value is a `str`, an `int` or `None`, so no user Python code
    /// runs when it is freed.
    fn keep(&self, name: &Owned, value: Object<'_, '_>) -> Result<(), Failure> {
        let template = self.template;
        // SAFETY: our own dict, and live objects of an attached thread.
        if unsafe { ffi::PyDict_SetItem(template.dict.as_ptr(), name.as_ptr(), value.as_ptr()) } < 0 {
            return Err(Failure::of_error(self.attributes.py()));
        }
        let changes = template.changes.load(Relaxed) + 1;
        template.changes.store(changes, Relaxed);
        self.changes.set(Some(changes));
        Ok(())
    }
}

/// Number of keys that a dict of the size of a new record takes before CPython gives it a larger table: two thirds of 32
/// places.
const SMALL_DICT: usize = 21;

/// True if a template may change after it was made. Without a GIL, other threads copy it meanwhile.
const MAY_KEEP: bool = cfg!(not(Py_GIL_DISABLED));

impl KeptValue {
    fn name(self) -> &'static Owned {
        let names = names();
        match self {
            Self::Name => &names.name,
            Self::LevelNumber => &names.levelno,
            Self::LevelName => &names.levelname,
            Self::Message => &names.msg,
            Self::ThreadName => &names.thread_name,
            Self::ProcessName => &names.process_name,
            Self::Task => &names.task_name,
        }
    }
}

/// The attributes that show the source location. The last two follow from the path.
const PLACE: [Attribute; 5] =
    [Attribute::Path, Attribute::Line, Attribute::Function, Attribute::File, Attribute::Module];

/// Number of the attributes in [`PLACE`] that do not follow from another one.
const INDEPENDENT: usize = 3;
