//! The native methods of `logging.LoggerAdapter`: they call the adapter's logger with the adapter's `extra`.
//!
//! Pipeline stage: *call site* (see ARCHITECTURE.md). The method does what `LoggerAdapter.process` and
//! `LoggerAdapter.log` do, without a Python frame, and passes the call to [`capture`]. An adapter with a `process`,
//! `log` or `isEnabledFor` of its own, and one whose `logger` is no `logging.Logger`, uses the stock methods.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyType};

use crate::calls::capture::{self, Outcome};
use crate::calls::handler_methods::methods;
use crate::calls::stock::{Method, call_stock};
use crate::interpreter::dict;
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::callbacks::locked;
use crate::plans::class_version::{self, ClassVersion};

/// What native code needs to know about adapters.
struct AdapterClasses {
    /// The function `is_plain(cls) -> bool` of `_adapters.py`.
    is_plain: Owned,
    /// The class `logging.Logger`.
    logger: Owned,
    /// The tuple `("extra",)`: the keyword names of most calls.
    only_extra: Owned,
}

static CLASSES: OnceLock<AdapterClasses> = OnceLock::new();

/// Sets the function `is_plain(cls)` and the class `logging.Logger`. Later calls change nothing.
pub fn set_classes(is_plain: &Bound<'_, PyAny>, logger: &Bound<'_, PyType>) {
    let py = is_plain.py();
    if let Some(only_extra) = object::tuple(py, &[names().extra.bind(py)]) {
        let _ = CLASSES.set(AdapterClasses { is_plain: Owned::of(is_plain), logger: Owned::of(logger), only_extra });
    }
}

/// Number of classes of adapters whose answer is kept.
///
/// Chosen: programs have one or two. A class that loses its place is asked about again.
const KEPT: usize = 16;

/// Kept answers of `is_plain`, each with the class and its version; see [`kept_key`]. The lowest bit is the answer.
static ANSWERS: [AtomicU64; KEPT] = [const { AtomicU64::new(0) }; KEPT];

/// A number that another state of a class, or another class, does not have. The lowest bit is 0.
fn kept_key(class: *mut ffi::PyTypeObject, tag: u32) -> u64 {
    u64::from(tag) << 32 | (class as u64 >> 3 & 0xFFFF_FFFE)
}

/// True if adapters of this class have the stock methods `process`, `log` and `isEnabledFor`.
///
/// # Errors
///
/// The errors of [`locked`].
#[inline]
fn is_plain(classes: &AdapterClasses, adapter: Object<'_, '_>) -> Result<bool, Failure> {
    let class = object::class_of(adapter);
    let tag = class_version::tag_of_class(adapter);
    if tag != 0 {
        let kept = ANSWERS[tag as usize % KEPT].load(Relaxed);
        if kept & !1 == kept_key(class, tag) {
            return Ok(kept & 1 == 1);
        }
    }
    ask(classes, adapter)
}

#[cold]
#[inline(never)]
fn ask(classes: &AdapterClasses, adapter: Object<'_, '_>) -> Result<bool, Failure> {
    let py = adapter.py();
    let class = adapter.get_type();
    // The version is read first: a later change makes the answer stale, not wrong.
    let tag = ClassVersion::assigned(&class).tag();
    let answer = locked(py, |_| classes.is_plain.bind(py).call1((&class,))?.extract::<bool>())?;
    if tag != 0 {
        let key = kept_key(class.as_type_ptr(), tag);
        ANSWERS[tag as usize % KEPT].store(key | u64::from(answer), Relaxed);
    }
    Ok(answer && tag != 0)
}

/// The attributes of an adapter that a call uses.
struct Context {
    logger: Owned,
    /// What the logger gets as `extra`, unless it is merged with the call's.
    extra: Owned,
    /// True if the call's own `extra` is merged into the adapter's (since Python 3.13).
    merges: bool,
}

/// Reads the attributes of a plain adapter. `None` if only the stock methods can do the call.
fn context(classes: &AdapterClasses, adapter: Object<'_, '_>) -> Option<Context> {
    let names = names();
    let py = adapter.py();
    let attributes = object::own_attributes(adapter).map_err(|_| object::clear_error(py)).ok()?;
    let attributes = attributes.bind(py);
    let logger = dict::get(attributes, &names.logger)?;
    // SAFETY: a live object and a live class; only the bases of its type are compared.
    let is_logger = unsafe { ffi::PyObject_TypeCheck(logger.as_ptr(), classes.logger.as_ptr().cast()) } != 0;
    if !is_logger {
        return None;
    }
    let extra = dict::get(attributes, &names.extra)?;
    let mut known = 2;
    let mut merges = false;
    if cfg!(Py_3_13) {
        merges = dict::get(attributes, &names.merge_extra)?.bind(py).cast_exact::<PyBool>().ok()?.is_true();
        known += 1;
    }
    // SAFETY: a live dict of an attached thread.
    let has_more = unsafe { ffi::PyDict_Size(attributes.as_ptr()) } != known;
    if has_more && [&names.process, &names.log, &names.is_enabled_for].iter().any(|name| dict::has(attributes, name)) {
        return None;
    }
    Some(Context { logger, extra, merges })
}

/// Maximum number of values, with those of the keywords, that are passed on without a heap allocation.
const INLINE: usize = 12;

/// Tries to do a call of an adapter's method. `call` begins with the message.
#[inline]
fn delegate(adapter: Object<'_, '_>, level: Object<'_, '_>, call: &Call<'_, '_>, of_exception: bool) -> Outcome {
    let Some(classes) = CLASSES.get() else { return Outcome::Stock };
    match is_plain(classes, adapter) {
        Ok(true) => {}
        Ok(false) | Err(Failure::Stock) => return Outcome::Stock,
        Err(Failure::Raised) => return Outcome::Raised,
    }
    let Some(context) = context(classes, adapter) else { return Outcome::Stock };
    let py = call.py();
    let logger = context.logger.bind(py);
    if !call.has_keywords() && !of_exception && call.count() < INLINE {
        let mut values = [ptr::null_mut(); INLINE];
        for (place, value) in values.iter_mut().zip(call.positional()) {
            *place = value.as_ptr();
        }
        values[call.count()] = context.extra.as_ptr();
        // SAFETY: as many live values as the count says, then one for the only name of the tuple.
        let call = unsafe { Call::new(py, values.as_ptr(), call.count() as isize, classes.only_extra.as_ptr()) };
        return capture::for_adapter(logger, level, &call);
    }
    with_keywords(&context, level, call, of_exception).unwrap_or_else(|failure| match failure {
        Failure::Stock => Outcome::Stock,
        Failure::Raised => Outcome::Raised,
    })
}

/// Passes on a call that has keywords, or that logs an exception.
#[inline(never)]
fn with_keywords(
    context: &Context,
    level: Object<'_, '_>,
    call: &Call<'_, '_>,
    of_exception: bool,
) -> Result<Outcome, Failure> {
    let py = call.py();
    let all = names();
    // SAFETY: `True` is never freed.
    let truth = unsafe { Borrowed::from_ptr(py, ffi::Py_True()) };
    let of_call = call.named().find(|(name, _)| object::has_text(*name, &all.extra)).map(|(_, value)| value);
    let extra = match of_call.filter(|_| context.merges) {
        Some(of_call) => merge(context.extra.bind(py), of_call)?,
        None => context.extra.clone_ref(py),
    };
    let mut keywords: Vec<Object<'_, '_>> = Vec::new();
    let mut values: Vec<Object<'_, '_>> = call.positional().to_vec();
    let mut has_exception = false;
    for (name, value) in call.named() {
        if object::has_text(name, &all.extra) {
            continue;
        }
        // The frames of the stock methods count as levels before Python 3.11.
        if cfg!(not(Py_3_11)) && object::has_text(name, &all.stacklevel) {
            return Err(Failure::Stock);
        }
        has_exception |= object::has_text(name, &all.exc_info);
        keywords.push(name);
        values.push(value);
    }
    if of_exception && !has_exception {
        keywords.push(all.exc_info.bind(py));
        values.push(truth);
    }
    keywords.push(all.extra.bind(py));
    values.push(extra.bind(py));
    let keywords = object::tuple(py, &keywords).ok_or_else(|| Failure::of_error(py))?;
    // SAFETY: the values of the call, then one live value for each name of the tuple.
    let call = unsafe { Call::new(py, values.as_ptr().cast(), call.count() as isize, keywords.as_ptr()) };
    Ok(capture::for_adapter(context.logger.bind(py), level, &call))
}

/// The dict `{**extra, **of_call}`.
fn merge(extra: Object<'_, '_>, of_call: Object<'_, '_>) -> Result<Owned, Failure> {
    if !extra.is_exact_instance_of::<PyDict>() || !of_call.is_exact_instance_of::<PyDict>() {
        return Err(Failure::Stock);
    }
    let merged = dict::copy(extra)?;
    // SAFETY: two exact dicts, of which no other code has the first.
    if unsafe { ffi::PyDict_Update(merged.as_ptr(), of_call.as_ptr()) } < 0 {
        return Err(Failure::of_error(extra.py()));
    }
    Ok(merged)
}

/// Does a call natively if possible, otherwise with the stock method. Argument number `message` is the message.
#[inline]
fn finish(
    outcome: Outcome,
    method: Method,
    adapter: Object<'_, '_>,
    call: Call<'_, '_>,
    message: usize,
) -> *mut PyObject {
    match outcome {
        Outcome::Done => object::none(call.py()),
        Outcome::Stock => capture::stock_call(method, adapter, call, message),
        Outcome::Raised => ptr::null_mut(),
    }
}

fn level_call(method: Method, index: usize, adapter: Object<'_, '_>, call: &Call<'_, '_>) -> *mut PyObject {
    match capture::standard_level(call.py(), index) {
        // A message that is passed as a keyword is left to the stock method.
        Some(level) if call.count() >= 1 => {
            let outcome = delegate(adapter, level, call, method == Method::AdapterException);
            finish(outcome, method, adapter, *call, 0)
        }
        _ => call_stock(method, adapter, *call),
    }
}

fn log_call(adapter: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    match call.split_first() {
        Some((level, rest)) if !rest.positional().is_empty() => {
            finish(delegate(adapter, level, &rest, false), Method::AdapterLog, adapter, call, 1)
        }
        _ => call_stock(Method::AdapterLog, adapter, call),
    }
}

methods! {
    debug: |adapter, call| level_call(Method::AdapterDebug, 0, adapter, &call);
    info: |adapter, call| level_call(Method::AdapterInfo, 1, adapter, &call);
    warning: |adapter, call| level_call(Method::AdapterWarning, 2, adapter, &call);
    error: |adapter, call| level_call(Method::AdapterError, 3, adapter, &call);
    exception: |adapter, call| level_call(Method::AdapterException, 3, adapter, &call);
    critical: |adapter, call| level_call(Method::AdapterCritical, 4, adapter, &call);
    log: log_call;
}
