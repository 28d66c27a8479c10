//! `QueueHandler.prepare`: merges the message of a record and copies the record, as the standard library does.
//!
//! Beside the line: it makes programs with a `QueueListener` as fast as the listener's handlers allow. Python's own
//! takes a third of such a program's time, most of it for `copy.copy()`. Whatever could run foreign code (a formatter,
//! arguments that are no builtin scalars, a traceback) is left to the stock function from its start.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::calls::record;
use crate::calls::stock::{Method, call_stock};
use crate::interpreter::failure::{self, Failure};
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};
use crate::plans::watched::Part;
use crate::plans::{environment, plan, python_half};

/// What `_queueing.py` tells.
pub struct Stock {
    /// Says what is as the standard library made it, and on which classes and objects that depends.
    pub describe: Owned,
    /// `QueueHandler`
    pub class: Owned,
    /// Attributes of a record that the stock function sets to `None`.
    pub cleared: Vec<Owned>,
    /// `copyreg.dispatch_table`: classes that are copied in another way.
    pub copied_otherwise: Owned,
    /// The class of a handler's lock.
    pub lock_class: Owned,
    /// Queues of the standard library.
    pub queue_classes: Vec<Owned>,
}

static STOCK: OnceLock<Stock> = OnceLock::new();

/// Whether the stock functions would do what the native ones do, as long as epoch and classes are as they were.
pub struct StockVerdict {
    epoch: u64,
    types: Vec<(Owned, u32)>,
    /// The formatter and its style.
    parts: Vec<Part>,
    /// Those that `prepare` runs.
    prepares: bool,
    /// Those that `handle` runs, too.
    pub hands_on: bool,
}

static VERDICT: Mutex<Option<Arc<StockVerdict>>> = Mutex::new(None);

/// Remembers what `_queueing.py` tells. The first call counts.
pub fn set_stock(stock: Stock) {
    let _ = STOCK.set(stock);
}

/// What `_queueing.py` has told. `None`: no `QueueHandler` was met yet.
#[inline]
pub fn stock() -> Option<&'static Stock> {
    STOCK.get()
}

/// `QueueHandler.prepare(record)`.
///
/// # Safety
///
/// As CPython calls a `METH_FASTCALL | METH_KEYWORDS` method.
pub unsafe fn prepare(
    handler: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: passed on.
    unsafe {
        if count == 1 && keywords.is_null() {
            match prepared_if_plain(handler, *arguments) {
                Ok(prepared) => return prepared.into_ptr(),
                Err(Failure::Raised) => return std::ptr::null_mut(),
                Err(Failure::Stock) => {}
            }
        }
        call_stock(Method::QueuePrepare, handler, arguments, count as usize, keywords)
    }
}

unsafe fn prepared_if_plain(handler: *mut PyObject, logged: *mut PyObject) -> Result<Owned, Failure> {
    // SAFETY: live objects, attached.
    unsafe {
        let stock = stock().ok_or(Failure::Stock)?;
        if ffi::Py_TYPE(handler).cast::<PyObject>() != stock.class.as_ptr() || !verdict(stock)?.prepares {
            return Err(Failure::Stock);
        }
        prepared(stock, handler, logged)
    }
}

/// The copy of a record for the queue of a handler that is a `QueueHandler`, under a verdict that says so.
///
/// # Errors
///
/// [`Failure::Stock`] where the stock function would run foreign code.
///
/// # Safety
///
/// Live objects; attached.
pub unsafe fn prepared(stock: &Stock, handler: *mut PyObject, logged: *mut PyObject) -> Result<Owned, Failure> {
    // SAFETY: live objects, attached; exact types are checked before their fields are read.
    unsafe {
        let class = python_half::record_class().ok_or(Failure::Stock)?;
        if ffi::Py_TYPE(logged).cast::<PyObject>() != class
            || !has_no_format(handler)?
            || !ffi::PyDict_GetItemWithError(stock.copied_otherwise.as_ptr(), class).is_null()
        {
            return Err(Failure::Stock);
        }
        let names = names();
        let attribute = |name: &Owned| object::attribute(logged, name.as_ptr()).ok_or(Failure::Stock);
        for name in [&names.exc_info, &names.exc_text, &names.stack_info] {
            if attribute(name)?.as_ptr() != ffi::Py_None() {
                return Err(Failure::Stock);
            }
        }
        let message = record::plain_text(attribute(&names.msg)?, &attribute(&names.args)?)?;
        // As the formatter leaves it; the copy has it from there.
        checked(ffi::PyObject_SetAttr(logged, names.message.as_ptr(), message.as_ptr()))?;
        let copy = empty_record(class)?;
        let attributes = own_attributes(copy.as_ptr())?;
        checked(ffi::PyDict_Update(attributes.as_ptr(), own_attributes(logged)?.as_ptr()))?;
        checked(ffi::PyDict_SetItem(attributes.as_ptr(), names.msg.as_ptr(), message.as_ptr()))?;
        for name in &stock.cleared {
            checked(ffi::PyDict_SetItem(attributes.as_ptr(), name.as_ptr(), ffi::Py_None()))?;
        }
        Ok(copy)
    }
}

/// What a function of CPython's says that returns less than 0 with an error set.
unsafe fn checked(result: std::ffi::c_int) -> Result<(), Failure> {
    // SAFETY: attached, and an error is set where the result says so.
    if result < 0 { Err(unsafe { failure::failure() }) } else { Ok(()) }
}

/// `object.__new__(class)`
unsafe fn empty_record(class: *mut PyObject) -> Result<Owned, Failure> {
    // SAFETY: a live class with the `__new__` of `object`, as the verdict says.
    unsafe {
        let made = ffi::PyType_GenericAlloc(class.cast(), 0);
        Owned::steal(made).ok_or_else(|| failure::failure())
    }
}

/// `object.__dict__`
///
/// # Safety
///
/// A live instance of a Python class; attached.
pub unsafe fn own_attributes(object: *mut PyObject) -> Result<Owned, Failure> {
    // SAFETY: a live instance of a Python class, which has a dict.
    unsafe {
        Owned::steal(ffi::PyObject_GenericGetDict(object, std::ptr::null_mut())).ok_or_else(|| failure::failure())
    }
}

/// Whether classes and module globals are as the standard library made them.
///
/// # Errors
///
/// What asking raised.
///
/// # Safety
///
/// Attached.
pub unsafe fn verdict(stock: &Stock) -> Result<Arc<StockVerdict>, Failure> {
    // SAFETY: attached; the verdict keeps its classes.
    unsafe {
        if !environment::unmoved() {
            environment::refresh();
        }
        let epoch = environment::epoch();
        let known = VERDICT.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && known.holds(epoch)
        {
            return Ok(known);
        }
        let made = Arc::new(StockVerdict::ask(stock, epoch)?);
        let before = VERDICT.lock().unwrap_or_else(PoisonError::into_inner).replace(made.clone());
        drop(before);
        Ok(made)
    }
}

impl StockVerdict {
    fn ask(stock: &Stock, epoch: u64) -> Result<Self, Failure> {
        python_half::locked(|_, py| {
            // SAFETY: a live object, attached.
            let describe = unsafe { Bound::from_borrowed_ptr(py, stock.describe.as_ptr()) };
            let ask = || describe.call0()?.extract::<(bool, bool, Vec<Bound<'_, PyAny>>, Vec<Bound<'_, PyAny>>)>();
            let parts_of = |objects: &[Bound<'_, PyAny>]| {
                objects.iter().map(|object| Part::watch(object.as_ptr() as usize)).collect()
            };
            // Asked twice: a change between the first answer and the watch is in the second one.
            let parts: Vec<Part> = parts_of(&ask()?.3);
            let (prepares, hands_on, classes, _) = ask()?;
            // SAFETY: live types, attached.
            let tagged = |class: &Bound<'_, PyAny>| (Owned::of(class), unsafe { plan::assigned_tag(class.as_ptr()) });
            Ok(Self { epoch, types: classes.iter().map(tagged).collect(), parts, prepares, hands_on })
        })
    }

    fn holds(&self, epoch: u64) -> bool {
        // SAFETY: the verdict keeps its classes.
        let same = |(class, tag): &(Owned, u32)| *tag != 0 && unsafe { plan::version_tag(class.as_ptr()) } == *tag;
        self.epoch == epoch && self.types.iter().all(same) && self.parts.iter().all(Part::holds)
    }
}

/// Whether the handler itself has neither a formatter nor a method of that name.
unsafe fn has_no_format(handler: *mut PyObject) -> Result<bool, Failure> {
    // SAFETY: a live instance of a Python class, attached; looking up a `str` runs no foreign code.
    unsafe {
        let attributes = own_attributes(handler)?;
        let formatter = ffi::PyDict_GetItemWithError(attributes.as_ptr(), names().formatter.as_ptr());
        let format = ffi::PyDict_GetItemWithError(attributes.as_ptr(), names().format.as_ptr());
        Ok(formatter == ffi::Py_None() && format.is_null())
    }
}
