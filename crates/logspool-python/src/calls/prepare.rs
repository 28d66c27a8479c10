//! The native `QueueHandler.prepare`: merges a record's message and copies the record, as the standard library does.
//!
//! This module is not a pipeline stage. It makes a program with a `QueueListener` as fast as the listener's handlers
//! allow. Python's own `prepare` takes a third of such a program's time, mostly for `copy.copy()`. Cases that could run
//! user Python code (a formatter, arguments that are not builtin scalars, a traceback) are left to the stock function.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::calls::record_message::plain_text;
use crate::calls::stock::{Method, call_stock};
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::callbacks::{locked, record_class};
use crate::plans::class_version::ClassVersion;
use crate::plans::environment;
use crate::plans::watched::WatchedPart;

/// The standard library's objects that `_queueing.py` passes to native code.
pub struct StockObjects {
    /// A function that returns whether `prepare` and `handle` may run natively, with the classes and objects that this
    /// depends on.
    pub describe: Owned,
    /// `QueueHandler`
    pub class: Owned,
    /// Attributes of a record that the stock function sets to `None`.
    pub cleared: Vec<Owned>,
    /// `copyreg.dispatch_table`: the classes that have a copy function of their own.
    pub copied_otherwise: Owned,
    /// The class of a handler's lock.
    pub lock_class: Owned,
    /// The queue classes of the standard library.
    pub queue_classes: Vec<Owned>,
}

static STOCK: OnceLock<StockObjects> = OnceLock::new();

/// Whether the native functions do the same as the stock ones. The answer is valid as long as the epoch, the classes
/// and the parts are unchanged.
pub struct StockVerdict {
    epoch: u64,
    types: Vec<ClassVersion>,
    /// The formatter and its style.
    parts: Vec<WatchedPart>,
    /// True if `prepare` may run natively.
    prepares: bool,
    /// True if `handle` may run natively as well.
    pub hands_on: bool,
}

static VERDICT: Mutex<Option<Arc<StockVerdict>>> = Mutex::new(None);

/// Sets the objects of `_queueing.py`. Later calls change nothing.
pub fn set_stock(stock: StockObjects) {
    let _ = STOCK.set(stock);
}

/// The objects of `_queueing.py`; `None` until the program first uses a `QueueHandler`.
#[inline]
pub fn stock() -> Option<&'static StockObjects> {
    STOCK.get()
}

/// The native `QueueHandler.prepare(record)`.
pub fn prepare(handler: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    match call.only().map(|record| prepared_if_plain(handler, record)) {
        Some(Ok(prepared)) => prepared.into_ptr(),
        Some(Err(Failure::Raised)) => std::ptr::null_mut(),
        Some(Err(Failure::Stock)) | None => call_stock(Method::QueuePrepare, handler, call),
    }
}

fn prepared_if_plain(handler: Object<'_, '_>, logged: Object<'_, '_>) -> Result<Owned, Failure> {
    let stock = stock().ok_or(Failure::Stock)?;
    let is_stock = object::class_of(handler).cast() == stock.class.as_ptr();
    if !is_stock || !verdict(logged.py(), stock)?.prepares {
        return Err(Failure::Stock);
    }
    prepared(stock, handler, logged)
}

/// Copies a record for the queue of a `QueueHandler` whose verdict allows the native copy.
///
/// # Errors
///
/// [`Failure::Stock`] if the stock function would run user Python code.
pub fn prepared(stock: &StockObjects, handler: Object<'_, '_>, logged: Object<'_, '_>) -> Result<Owned, Failure> {
    let py = logged.py();
    let class = record_class().ok_or(Failure::Stock)?;
    if object::class_of(logged).cast() != class.as_ptr()
        || !has_no_format(handler)?
        || item(py, &stock.copied_otherwise, class.as_ptr()).is_some()
    {
        return Err(Failure::Stock);
    }
    let names = names();
    let attribute = |name: &Owned| object::attribute(logged, name).ok_or(Failure::Stock);
    for name in [&names.exc_info, &names.exc_text, &names.stack_info] {
        if !attribute(name)?.bind(py).is_none() {
            return Err(Failure::Stock);
        }
    }
    let message = plain_text(py, attribute(&names.msg)?, &attribute(&names.args)?)?;
    let checked = |result: std::ffi::c_int| if result < 0 { Err(Failure::of_error(py)) } else { Ok(()) };
    // SAFETY: live objects, and the thread is attached. The verdict says that the record's class has the stock
    // `__setattr__` and the `__new__` of `object`. Each function reports an error by a negative number or by null.
    unsafe {
        // The stock formatter also sets `message` on the record, and the copy contains that attribute.
        checked(ffi::PyObject_SetAttr(logged.as_ptr(), names.message.as_ptr(), message.as_ptr()))?;
        let copy = Owned::steal(ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0));
        let copy = copy.ok_or_else(|| Failure::of_error(py))?;
        let attributes = object::own_attributes(copy.bind(py))?;
        checked(ffi::PyDict_Update(attributes.as_ptr(), object::own_attributes(logged)?.as_ptr()))?;
        checked(ffi::PyDict_SetItem(attributes.as_ptr(), names.msg.as_ptr(), message.as_ptr()))?;
        for name in &stock.cleared {
            checked(ffi::PyDict_SetItem(attributes.as_ptr(), name.as_ptr(), ffi::Py_None()))?;
        }
        Ok(copy)
    }
}

/// The address of a dict's value for `key`. Comparing `key` must not run user Python code.
fn item(_attached: Python<'_>, dict: &Owned, key: *mut PyObject) -> Option<*mut PyObject> {
    // SAFETY: a live dict and key; the token shows that the thread is attached. Only the address is returned.
    let found = unsafe { ffi::PyDict_GetItemWithError(dict.as_ptr(), key) };
    (!found.is_null()).then_some(found)
}

/// Returns whether the classes and module globals that `prepare` and `handle` depend on are unmodified.
///
/// # Errors
///
/// The error that the check raised.
pub fn verdict(py: Python<'_>, stock: &StockObjects) -> Result<Arc<StockVerdict>, Failure> {
    environment::follow(py);
    let epoch = environment::epoch();
    let known = VERDICT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(known) = known
        && known.holds(epoch)
    {
        return Ok(known);
    }
    let made = Arc::new(StockVerdict::examine(py, stock, epoch)?);
    let before = VERDICT.lock().unwrap_or_else(PoisonError::into_inner).replace(made.clone());
    drop(before);
    Ok(made)
}

impl StockVerdict {
    fn examine(py: Python<'_>, stock: &StockObjects, epoch: u64) -> Result<Self, Failure> {
        locked(py, |_| {
            let describe = stock.describe.bind(py);
            let ask = || describe.call0()?.extract::<(bool, bool, Vec<Bound<'_, PyType>>, Vec<Bound<'_, PyAny>>)>();
            let parts_of = |objects: &[Bound<'_, PyAny>]| {
                objects.iter().map(|object| WatchedPart::watch(object.as_ptr() as usize)).collect()
            };
            // `ask` is called twice. If something changes between the first call and the start of the watch, the second
            // call sees the change.
            let parts: Vec<WatchedPart> = parts_of(&ask()?.3);
            let (prepares, hands_on, classes, _) = ask()?;
            Ok(Self { epoch, types: classes.iter().map(ClassVersion::assigned).collect(), parts, prepares, hands_on })
        })
    }

    fn holds(&self, epoch: u64) -> bool {
        self.epoch == epoch && self.types.iter().all(ClassVersion::holds) && self.parts.iter().all(WatchedPart::holds)
    }
}

/// True if the handler instance has no formatter and does not override `format`.
fn has_no_format(handler: Object<'_, '_>) -> Result<bool, Failure> {
    let py = handler.py();
    let attributes = object::own_attributes(handler)?;
    let formatter = item(py, &attributes, names().formatter.as_ptr());
    Ok(formatter == Some(Owned::none(py).as_ptr()) && item(py, &attributes, names().format.as_ptr()).is_none())
}
