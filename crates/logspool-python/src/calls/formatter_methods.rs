//! The native `format`, `formatTime` and `formatMessage` of `logging.Formatter`, for formatters that call them by
//! `super()`.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). They leave everything to the stock functions that runs Python
//! code of the program, or raises.

use pyo3::ffi::PyObject;

use crate::calls::formatting;
use crate::calls::stock::{Method, call_stock};
use crate::interpreter::object::{Call, Object, Owned};

/// The native `formatter.format(record)`.
pub fn format(formatter: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    match call.only().and_then(|record| formatting::stock_line(formatter, record)) {
        Some(line) => line.into_ptr(),
        None => call_stock(Method::FormatterFormat, formatter, call),
    }
}

/// The native `formatter.formatTime(record, datefmt=None)`.
pub fn format_time(formatter: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    match time(formatter, &call) {
        Some(text) => text.into_ptr(),
        None => call_stock(Method::FormatterTime, formatter, call),
    }
}

/// The native `formatter.formatMessage(record)`.
pub fn format_message(formatter: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    match call.only().and_then(|record| formatting::stock_message_of(formatter, record)) {
        Some(line) => line.into_ptr(),
        None => call_stock(Method::FormatterMessage, formatter, call),
    }
}

fn time(formatter: Object<'_, '_>, call: &Call<'_, '_>) -> Option<Owned> {
    let none = Owned::none(call.py());
    match call.positional() {
        [record] if !call.has_keywords() => formatting::stock_time_of(formatter, *record, none.bind(call.py())),
        [record, datefmt] if !call.has_keywords() => formatting::stock_time_of(formatter, *record, *datefmt),
        _ => None,
    }
}
