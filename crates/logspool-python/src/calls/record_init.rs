//! The native `LogRecord.__init__`, for records that a record factory or other Python code makes.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md). It sets the attributes that stock logging would
//! set, by the template of the record's source location as [`log_record`] does. The stock function initialises every
//! record for which that could make a difference: one with attributes, one whose class has attributes of these names,
//! arguments of unusual types.

use pyo3::ffi::PyObject;
use pyo3::prelude::*;

use crate::calls::log_record::{self, RecordValues};
use crate::calls::pieces::small_int;
use crate::calls::stock::{Method, call_stock};
use crate::calls::{record_class, record_site};
use crate::interpreter::dict;
use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::{callbacks, environment, logging_globals};

/// The native `record.__init__(name, level, pathname, lineno, msg, args, exc_info, func, sinfo)`.
pub fn init(record: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    match fill(record, &call) {
        Ok(()) => object::none(call.py()),
        Err(Failure::Stock) => call_stock(Method::RecordInit, record, call),
        Err(Failure::Raised) => std::ptr::null_mut(),
    }
}

/// Sets the attributes of a record that has none.
fn fill(record: Object<'_, '_>, call: &Call<'_, '_>) -> Result<(), Failure> {
    let py = call.py();
    let values: &[Object<'_, '_>; log_record::ARGUMENTS] = call.positional().try_into().map_err(|_| Failure::Stock)?;
    if call.has_keywords() {
        return Err(Failure::Stock);
    }
    let [name, level, path, line, msg, args, exc_info, function, stack_info] = *values;
    let class = callbacks::record_class().ok_or(Failure::Stock)?;
    environment::refresh(py);
    let globals =
        logging_globals::known(py).filter(|globals| globals.record_reason.is_empty()).ok_or(Failure::Stock)?;
    let is_plain = object::is_exact_str(path) && object::is_exact_str(function) && object::is_exact_int(level);
    let line = small_int(line).and_then(|line| u32::try_from(line).ok()).filter(|_| is_plain).ok_or(Failure::Stock)?;
    let place = record_site::find(py, Owned::of(&path), Owned::of(&function), line)?;
    let args = match object::tuple_items(args).ok_or(Failure::Stock)? {
        [only] => log_record::arguments(py, &[*only])?,
        _ => Owned::of(&args),
    };
    let given = |value: Object<'_, '_>| if value.is_none() { None } else { Some(Owned::of(&value)) };
    let values = RecordValues {
        name,
        levelno: level,
        msg,
        args: &[],
        exc_info: given(exc_info),
        stack_info: given(stack_info),
        extra: None,
    };
    let (attributes, _) = log_record::attributes(py, class, &place.site, &globals, &values, args.bind(py))?;
    if !record_class::is_plain(record) || !dict::is_empty(object::own_attributes(record)?.bind(py)) {
        return Err(Failure::Stock);
    }
    log_record::give(record, &attributes)
}
