//! Hands a record to the thread that formats later, for a handler whose formatter is deferred.
//!
//! Pipeline stage: between *capture* and *queue* (see ARCHITECTURE.md). `python/logspool/thread/_deferring.py` has the
//! thread. The record is captured by value: if the program could change one of its values, or has the record itself,
//! the thread gets a copy. If no other code sees the record, the thread also makes it, from the values of the call.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::attribute::Attribute;
use crate::calls::log_record::{self, RecordValues};
use crate::calls::record::SeenBy;
use crate::calls::record_queue::RecordQueue;
use crate::calls::site::Site;
use crate::calls::unmade_record::UnmadeRecord;
use crate::interpreter::dict::{self, DictWalk, NewDict};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::callbacks::record_class;
use crate::plans::logging_globals::LoggingGlobals;

/// Bytes that a waiting record takes, apart from its message; `thread/_record.py` gives the source of this number.
pub const RECORD_BYTES: u64 = 1200;

/// Puts a record that has passed the handler's filters into the queue of `deferral`, a `_deferring.Deferral`.
///
/// # Errors
///
/// [`Failure::Stock`]: the caller has to format the line. [`Failure::Raised`]: an exception is set that leaves the
/// call.
pub fn put(deferral: &Owned, handler: Object<'_, '_>, record: Object<'_, '_>, seen_by: SeenBy) -> Result<(), Failure> {
    let py = record.py();
    let mut own = object::own_attributes(record)?;
    let plain = record_class().filter(|class| object::class_of(record).cast() == class.as_ptr());
    let kept = match plain.filter(|_| never_changes(own.bind(py))) {
        Some(_) if seen_by == SeenBy::Nobody => Owned::of(&record),
        Some(class) => log_record::with_attributes(class, &NewDict::copy_of(own.bind(py))?)?,
        None => {
            let function = attribute(deferral.bind(py), &names().captured)?;
            let captured = leaving::call_with(function.bind(py), record).ok_or_else(|| Failure::of_error(py))?;
            own = object::own_attributes(captured.bind(py))?;
            captured
        }
    };
    let message = Attribute::Message.of(own.bind(py)).ok_or(Failure::Stock)?;
    queue(deferral, handler, &kept, message.bind(py))
}

/// Puts the values of the running call into the queue of a deferral, whose thread then makes the record. Returns
/// `false` if the record has to be made now, because the program could change one of the values.
///
/// # Errors
///
/// As [`put`].
pub fn put_unmade(
    deferral: &Owned,
    handler: Object<'_, '_>,
    site: &Site,
    globals: &LoggingGlobals,
    values: &RecordValues<'_, '_>,
) -> Result<bool, Failure> {
    let py = handler.py();
    if !is_fixed(values.msg) || !values.args.iter().all(|value| is_fixed(*value)) {
        return Ok(false);
    }
    let class = record_class().ok_or(Failure::Stock)?;
    let unmade = UnmadeRecord::of(py, class, site, globals, values)?;
    let unmade = Py::new(py, unmade).map_err(|error| Failure::raised(py, error))?;
    queue(deferral, handler, &Owned::of(unmade.bind(py).as_any()), values.msg)?;
    Ok(true)
}

fn attribute(object: Object<'_, '_>, name: &Owned) -> Result<Owned, Failure> {
    object::attribute(object, name).ok_or(Failure::Stock)
}

/// Puts a record, or the values of one, into the queue of a deferral, with the handler and its formatter.
fn queue(deferral: &Owned, handler: Object<'_, '_>, record: &Owned, message: Object<'_, '_>) -> Result<(), Failure> {
    let py = handler.py();
    let formatter = attribute(handler, &names().formatter)?;
    let size = RECORD_BYTES + object::utf8(message).map_or(0, <[u8]>::len) as u64;
    let writer = attribute(deferral.bind(py), &names().writer)?;
    let queue = attribute(writer.bind(py), &names().queue)?;
    let queue = queue.bind(py);
    let queue = queue.cast::<RecordQueue>().map_err(|_| Failure::Stock)?;
    let waiting = object::tuple(py, &[record.bind(py), handler, formatter.bind(py)]);
    let waiting = waiting.ok_or_else(|| Failure::of_error(py))?;
    let Some(outcome) = queue.get().put(py, waiting.bind(py).to_owned().unbind(), size) else {
        return Ok(());
    };
    let size = Owned::of(pyo3::types::PyInt::new(py, size).as_any());
    let arguments = [deferral.bind(py), waiting.bind(py), size.bind(py), outcome.as_any().as_borrowed()];
    leaving::method_of_values(&names().put_slowly, &arguments).map(drop).ok_or(Failure::Raised)
}

/// True if the program cannot change the values of a record. `exc_info` is not looked at: it refers to the exception
/// and its frames.
fn never_changes(attributes: Object<'_, '_>) -> bool {
    // Without a GIL another thread could change the dict, so a copy is read in such builds.
    let copied = if cfg!(Py_GIL_DISABLED) { dict::copy(attributes) } else { Ok(Owned::of(&attributes)) };
    let Ok(copied) = copied else { return false };
    let mut walk = DictWalk::of(copied.bind(attributes.py()));
    while let Some((key, value)) = walk.next() {
        if !is_fixed(value) && !object::has_text(key, &names().exc_info) {
            return false;
        }
    }
    true
}

/// True if the program cannot change a value.
pub fn is_fixed(value: Object<'_, '_>) -> bool {
    let class = object::class_of(value).cast_const();
    object::is_scalar(value)
        || value.is_none()
        || class == &raw const ffi::PyBool_Type
        || class == &raw const ffi::PyBytes_Type
        || object::tuple_items(value).is_some_and(|items| items.iter().all(|item| is_fixed(*item)))
}
