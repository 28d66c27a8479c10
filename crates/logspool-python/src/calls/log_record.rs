//! Makes an exact `logging.LogRecord` without calling `LogRecord.__init__`.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The attributes of a record are a copy of a template, in which the
//! values that differ between calls are replaced. The first record of a call site is made by `LogRecord` itself, and
//! its attributes become the template of the site. So every record has the attributes of this version of Python, in its
//! order.

use std::sync::Arc;

use logspool_record::format::RecordTimes;
use logspool_sys::clock;
use pyo3::exceptions::PyKeyError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::calls::context::{self, CallContext};
use crate::calls::message;
use crate::calls::record_attributes::RecordTime;
use crate::calls::record_template::{KeptValue, RecordTemplate};
use crate::calls::site::Site;
use crate::calls::stock::{Method, call_stock};
use crate::interpreter::dict::{self, DictWalk, NewDict};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::callbacks::record_class;
use crate::plans::logging_globals::LoggingGlobals;

/// The values of a record that a call gives, named as the attributes of `LogRecord`.
pub struct RecordValues<'a, 'py> {
    /// The logger's name.
    pub name: Object<'a, 'py>,
    /// The level, an exact `int`.
    pub levelno: Object<'a, 'py>,
    /// The message.
    pub msg: Object<'a, 'py>,
    /// The positional arguments after the message.
    pub args: &'a [Object<'a, 'py>],
    /// The exception as a tuple of three, if the call has one.
    pub exc_info: Option<Owned>,
    /// The text of the caller's stack, if the call asks for it.
    pub stack_info: Option<Owned>,
    /// The fields of `extra`: an exact dict with `str` keys, none of which is the name of an attribute of `LogRecord`.
    pub extra: Option<&'a Owned>,
}

/// A new record, with its time.
pub struct MadeRecord {
    /// The record.
    pub record: Owned,
    /// How its time was made; `None` for a record that Python code has made.
    pub time: Option<RecordTime>,
}

/// Makes the record of a call at `site`. May run user Python code: `__bool__` of a mapping, the name of the thread.
///
/// # Errors
///
/// [`Failure::Stock`] if only stock logging can make the record; [`Failure::Raised`] if user Python code raised an
/// error that no handler catches.
pub fn make(
    py: Python<'_>,
    site: &Site,
    globals: &LoggingGlobals,
    values: &RecordValues<'_, '_>,
) -> Result<MadeRecord, Failure> {
    if let Some(factory) = &globals.record_factory {
        return Ok(MadeRecord { record: made_by(factory.bind(py), site, values)?, time: None });
    }
    let class = record_class().ok_or(Failure::Stock)?;
    let args = arguments(py, values.args)?;
    let (attributes, time) = attributes(py, class, site, globals, values, args.bind(py))?;
    if let Some(extra) = values.extra {
        let mut walk = DictWalk::of(extra.bind(py));
        while let Some((key, value)) = walk.next() {
            attributes.set_key(key, value)?;
        }
    }
    context::add_bound_fields(&attributes)?;
    Ok(MadeRecord { record: with_attributes(class, &attributes)?, time: Some(time) })
}

/// The attributes that `LogRecord.__init__` sets for these values, and the time that they show. `args` is the value of
/// `record.args`; `extra` is ignored.
///
/// # Errors
///
/// [`Failure::Stock`] if only stock logging can set them.
pub fn attributes<'py>(
    py: Python<'py>,
    class: &Py<PyAny>,
    site: &Site,
    globals: &LoggingGlobals,
    values: &RecordValues<'_, '_>,
    args: Object<'_, '_>,
) -> Result<(NewDict<'py>, RecordTime), Failure> {
    let template = template_of(py, class, site)?;
    let moment = CallMoment::now(py, globals, values.levelno)?;
    moment.attributes(py, template, values, args)
}

/// The template of a site. The first call makes it.
///
/// # Errors
///
/// [`Failure::Stock`] if only stock logging can make the records of the site.
pub fn template_of<'a>(py: Python<'_>, class: &Py<PyAny>, site: &'a Site) -> Result<&'a Arc<RecordTemplate>, Failure> {
    if let Some(template) = site.record_template().get() {
        return Ok(template);
    }
    let made = template(py, class, site)?;
    // Another thread may have set the template first; `made` is then dropped.
    let _ = site.record_template().set(Arc::new(made));
    site.record_template().get().ok_or(Failure::Stock)
}

/// The time of a call, with everything else that may be another value later.
pub struct CallMoment {
    time_ns: i64,
    times: RecordTimes,
    level_name: Owned,
    context: CallContext,
}

impl CallMoment {
    /// The moment of the running call of a level.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if only stock logging can find a value.
    #[inline]
    pub fn now(py: Python<'_>, globals: &LoggingGlobals, levelno: Object<'_, '_>) -> Result<Self, Failure> {
        Ok(Self {
            level_name: globals.name_of_level(levelno).ok_or(Failure::Stock)?,
            times: RecordTimes::of(globals.cpython.arithmetic(), globals.start_time_ns),
            time_ns: clock::wall_ns(),
            context: CallContext::read(py, globals.of_records)?,
        })
    }

    /// The attributes of a record of this moment, and the time that they show; see [`attributes`].
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn attributes<'py>(
        &self,
        py: Python<'py>,
        template: &RecordTemplate,
        values: &RecordValues<'_, '_>,
        args: Object<'_, '_>,
    ) -> Result<(NewDict<'py>, RecordTime), Failure> {
        let names = names();
        let copy = template.copy(py)?;
        let attributes = &copy.attributes;
        copy.set(KeptValue::Name, values.name)?;
        copy.set(KeptValue::Message, values.msg)?;
        attributes.set(&names.args, args)?;
        copy.set(KeptValue::LevelName, self.level_name.bind(py))?;
        copy.set(KeptValue::LevelNumber, values.levelno)?;
        if let Some(exc_info) = &values.exc_info {
            attributes.set(&names.exc_info, exc_info.bind(py))?;
        }
        if let Some(stack_info) = &values.stack_info {
            attributes.set(&names.stack_info, stack_info.bind(py))?;
        }
        let seconds = self.times.created(self.time_ns);
        let created = attributes.set_float(&names.created, seconds)?;
        let msecs = attributes.set_float(&names.msecs, self.times.msecs(self.time_ns, seconds))?;
        attributes.set_float(&names.relative_created, self.times.relative_created(self.time_ns))?;
        self.context.set_on(&copy)?;
        Ok((copy.attributes, RecordTime { time_ns: self.time_ns, created, msecs }))
    }
}

/// Makes a `LogRecord` without attributes.
fn allocate(py: Python<'_>, class: &Py<PyAny>) -> Result<Owned, Failure> {
    // SAFETY: `LogRecord` is a class made by Python code, and the thread is attached. A new reference or null with an
    // error set.
    unsafe { Owned::steal(ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0)) }.ok_or_else(|| Failure::of_error(py))
}

/// Makes a `LogRecord` with these attributes.
///
/// # Errors
///
/// There is not enough memory.
pub fn with_attributes(class: &Py<PyAny>, attributes: &NewDict<'_>) -> Result<Owned, Failure> {
    let py = attributes.py();
    let record = allocate(py, class)?;
    give(record.bind(py), attributes)?;
    Ok(record)
}

/// Makes a dict the `__dict__` of a record, which has no attributes yet.
///
/// # Errors
///
/// There is not enough memory.
pub fn give(record: Object<'_, '_>, attributes: &NewDict<'_>) -> Result<(), Failure> {
    let (record_at, attributes) = (record.as_ptr(), attributes.as_ptr());
    // SAFETY: live objects of an attached thread; an error is reported by a negative number. Since CPython 3.13 it is the
    // setter of the class, because `PyObject_GenericSetDict` leaves values beside the dict valid.
    let failed = unsafe {
        if cfg!(Py_3_13) {
            ffi::PyObject_SetAttr(record_at, names().dict.as_ptr(), attributes) < 0
        } else {
            ffi::PyObject_GenericSetDict(record_at, attributes, std::ptr::null_mut()) < 0
        }
    };
    if failed {
        return Err(Failure::of_error(record.py()));
    }
    Ok(())
}

/// Makes the template of a site from a record that the stock `LogRecord.__init__` has filled.
#[cold]
fn template(py: Python<'_>, class: &Py<PyAny>, site: &Site) -> Result<RecordTemplate, Failure> {
    let (text, zero) = (PyString::new(py, ""), PyInt::new(py, 0));
    let (text, zero) = (text.as_any().as_borrowed(), zero.as_any().as_borrowed());
    let empty =
        RecordValues { name: text, levelno: zero, msg: text, args: &[], exc_info: None, stack_info: None, extra: None };
    let record = allocate(py, class)?;
    let done = with_arguments(py, site, &empty, |arguments| {
        let call = Call::positional_only(py, arguments);
        // SAFETY: a new reference or null with an error set.
        unsafe { Owned::steal(call_stock(Method::RecordInit, record.bind(py), call)) }
    });
    done.ok_or_else(|| Failure::of_error(py))?;
    RecordTemplate::new(object::own_attributes(record.bind(py))?.bind(py))
}

/// Passes the arguments of `LogRecord` for a call at `site` to a function. `None` with an exception set.
fn with_arguments(
    py: Python<'_>,
    site: &Site,
    values: &RecordValues<'_, '_>,
    run: impl FnOnce(&[Object<'_, '_>]) -> Option<Owned>,
) -> Option<Owned> {
    let [path, function, line] = site.objects(py)?;
    let args = object::tuple(py, values.args)?;
    let none = Owned::none(py);
    let exc_info = values.exc_info.as_ref().unwrap_or(&none);
    let stack_info = values.stack_info.as_ref().unwrap_or(&none);
    run(&[
        values.name,
        values.levelno,
        path.bind(py),
        line.bind(py),
        values.msg,
        args.bind(py),
        exc_info.bind(py),
        function.bind(py),
        stack_info.bind(py),
    ])
}

/// Calls a function that makes records, with the arguments of `LogRecord`. `None` with an exception set.
fn call(factory: Object<'_, '_>, site: &Site, values: &RecordValues<'_, '_>) -> Option<Owned> {
    with_arguments(factory.py(), site, values, |arguments| {
        // SAFETY: live values, no keywords, and the thread is attached; a new reference or null with an error set.
        unsafe {
            let arguments = arguments.as_ptr().cast();
            Owned::steal(leaving::vectorcall(factory, arguments, ARGUMENTS, std::ptr::null_mut()))
        }
    })
}

/// Makes the record by the function of `logging.setLogRecordFactory`, then adds fields as `Logger.makeRecord` does.
///
/// # Errors
///
/// [`Failure::Raised`]: the function raised, or a field would replace an attribute of its record. An exception of this
/// function leaves the logging call.
fn made_by(factory: Object<'_, '_>, site: &Site, values: &RecordValues<'_, '_>) -> Result<Owned, Failure> {
    let py = factory.py();
    let record = call(factory, site, values).ok_or(Failure::Raised)?;
    let bound = context::bound_fields(py)?;
    if values.extra.is_none() && bound.is_none() {
        return Ok(record);
    }
    let attributes = leaving::attribute(record.bind(py), &names().dict).ok_or(Failure::Raised)?;
    let attributes = attributes.bind(py);
    let set = |key: Object<'_, '_>, value: Object<'_, '_>| {
        attributes.set_item(key, value).map_err(|error| Failure::raised(py, error))
    };
    let has = |key: Object<'_, '_>| attributes.contains(key).map_err(|error| Failure::raised(py, error));
    if let Some(extra) = values.extra {
        let copied = dict::copy(extra.bind(py))?;
        let mut walk = DictWalk::of(copied.bind(py));
        while let Some((key, value)) = walk.next() {
            if has(key)? {
                let error = PyKeyError::new_err(format!("Attempt to overwrite {} in LogRecord", key.repr()?));
                return Err(Failure::raised(py, error));
            }
            set(key, value)?;
        }
    }
    if let Some(bound) = bound {
        let mut walk = DictWalk::of(bound.bind(py));
        while let Some((key, value)) = walk.next() {
            if !has(key)? {
                set(key, value)?;
            }
        }
    }
    Ok(record)
}

/// Number of arguments of `LogRecord`.
pub const ARGUMENTS: usize = 9;

/// Returns `record.args`: the arguments as a tuple, or the only argument if it is a mapping that is not empty.
///
/// # Errors
///
/// The truth value of the mapping could not be read, or there is not enough memory.
pub fn arguments(py: Python<'_>, values: &[Object<'_, '_>]) -> Result<Owned, Failure> {
    if let [value] = values
        && !object::is_scalar(*value)
        && message::is_mapping(*value)?
    {
        return Ok(Owned::of(value));
    }
    object::tuple(py, values).ok_or_else(|| Failure::of_error(py))
}
