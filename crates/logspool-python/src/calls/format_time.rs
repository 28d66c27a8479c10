//! `logging.Formatter.formatTime`, which makes the text of a second once.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). A text is made by the formatter's `converter` and `time.strftime`,
//! as stock logging makes it, and kept for the other records of its second.

use std::sync::{Mutex, PoisonError};

use logspool_record::format::zone_changes;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use crate::interpreter::dict;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::environment;

/// The objects of the standard library from which a text follows.
pub struct TimeFunctions {
    /// `time.localtime`
    pub localtime: Owned,
    /// `time.gmtime`
    pub gmtime: Owned,
    /// `time.strftime`
    pub strftime: Owned,
    /// The module `time`.
    pub module: Owned,
    /// The dict of the module `time`.
    pub time: Owned,
    /// The dict of the module `logging`.
    pub logging: Owned,
}

/// The text of a second.
struct SecondText {
    format: Owned,
    converter: Owned,
    second: i64,
    zone: u64,
    /// The value of [`environment::descriptions`]: a tool may replace the C code of `time.localtime`.
    descriptions: u64,
    text: Owned,
}

/// The texts made last.
static TEXTS: Mutex<Vec<SecondText>> = Mutex::new(Vec::new());

/// Maximum number of texts that are kept.
///
/// Chosen: programs have two or three formats with a time.
const MAX_TEXTS: usize = 4;

/// Returns the result of the stock `formatter.formatTime(record, datefmt)`. `None`: Python code has to make it; no
/// exception is set, and nothing was done that a second attempt would show.
pub fn stock_text(
    functions: &TimeFunctions,
    formatter: Object<'_, '_>,
    record: Object<'_, '_>,
    datefmt: Object<'_, '_>,
) -> Option<Owned> {
    let py = record.py();
    let names = names();
    let is_real = |name: &Owned, module: &Owned, function: &Owned| {
        dict::get(module.bind(py), name).is_some_and(|found| found.as_ptr() == function.as_ptr())
    };
    if !is_real(&names.time, &functions.logging, &functions.module)
        || !is_real(&names.strftime, &functions.time, &functions.strftime)
    {
        return None;
    }
    let converter = object::attribute(formatter, &names.converter)?;
    if ![&functions.localtime, &functions.gmtime].iter().any(|known| known.as_ptr() == converter.as_ptr()) {
        return None;
    }
    let created = object::attribute(record, &names.created)?;
    let created = created.bind(py);
    let seconds = created.cast_exact::<PyFloat>().ok()?.value();
    // Times outside of these bounds are rare, and their second is rounded in other ways.
    if !(0.0..4e9).contains(&seconds) {
        return None;
    }
    let has_own = object::is_exact_str(datefmt) && length(datefmt) > 0;
    if !has_own && !datefmt.is_none() {
        return None;
    }
    let format = if has_own { Owned::of(&datefmt) } else { object::attribute(formatter, &names.default_time_format)? };
    if !object::is_exact_str(format.bind(py)) {
        return None;
    }
    let text = second_text(functions, &format, &converter, seconds as i64, created)?;
    if has_own {
        return Some(text);
    }
    let millis = object::attribute(formatter, &names.default_msec_format)?;
    if millis.bind(py).is_none() {
        return Some(text);
    }
    let msecs = object::attribute(record, &names.msecs)?;
    if !object::is_exact_str(millis.bind(py)) || length(millis.bind(py)) == 0 || !object::is_scalar(msecs.bind(py)) {
        return None;
    }
    let values = object::tuple(py, &[text.bind(py), msecs.bind(py)])?;
    // SAFETY: a live `str` and a tuple of a `str` and a number, and the thread is attached; a new reference or null
    // with an error set.
    let text = unsafe { Owned::steal(ffi::PyUnicode_Format(millis.as_ptr(), values.as_ptr())) };
    if text.is_none() {
        object::clear_error(py);
    }
    text
}

fn length(text: Object<'_, '_>) -> isize {
    // SAFETY: a live exact `str`.
    unsafe { ffi::PyUnicode_GetLength(text.as_ptr()) }
}

fn second_text(
    functions: &TimeFunctions,
    format: &Owned,
    converter: &Owned,
    second: i64,
    created: Object<'_, '_>,
) -> Option<Owned> {
    let py = created.py();
    let zone = zone_changes();
    environment::follow(py);
    let descriptions = environment::descriptions();
    {
        let texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &&SecondText| {
            known.second == second
                && known.zone == zone
                && known.descriptions == descriptions
                && known.format.as_ptr() == format.as_ptr()
                && known.converter.as_ptr() == converter.as_ptr()
        };
        if let Some(known) = texts.iter().find(is_it) {
            return Some(known.text.clone_ref(py));
        }
    }
    let made = leaving::call_with(converter.bind(py), created).and_then(|parts| {
        let values = [format.as_ptr(), parts.as_ptr()];
        let strftime = functions.strftime.bind(py);
        // SAFETY: two live values and no keywords; a new reference or null with an error set.
        unsafe { Owned::steal(leaving::vectorcall(strftime, values.as_ptr(), 2, std::ptr::null_mut())) }
    });
    let Some(text) = made else {
        object::clear_error(py);
        return None;
    };
    let new = SecondText {
        format: format.clone_ref(py),
        converter: converter.clone_ref(py),
        second,
        zone,
        descriptions,
        text: text.clone_ref(py),
    };
    // Dropped after the lock is released.
    let _old = {
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let same = texts.iter().position(|known| {
            known.format.as_ptr() == format.as_ptr() && known.converter.as_ptr() == converter.as_ptr()
        });
        let old = match same {
            Some(index) => Some(texts.remove(index)),
            None if texts.len() == MAX_TEXTS => Some(texts.remove(0)),
            None => None,
        };
        texts.push(new);
        old
    };
    Some(text)
}
