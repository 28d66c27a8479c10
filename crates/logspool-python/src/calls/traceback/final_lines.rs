//! The lines after the frames of an exception: its class, its text and its notes.

#[cfg(Py_3_11)]
use pyo3::exceptions::PyBaseExceptionGroup;
use pyo3::exceptions::{
    PyAttributeError, PyBaseException, PyImportError, PyModuleNotFoundError, PyNameError, PySyntaxError,
};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyListMethods, PyType};

use crate::calls::traceback::stock_functions::TracebackFunctions;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};

/// True if the exception has a class whose instances native code may read: Python finds its attributes, truth value and
/// class as those of `BaseException`.
pub fn is_plain(exception: Object<'_, '_>) -> bool {
    let py = exception.py();
    if !exception.is_instance_of::<PyBaseException>() {
        return false;
    }
    let (class, base) = (exception.get_type(), py.get_type::<PyBaseException>());
    if !has_plain_slots(&class, &base) {
        return false;
    }
    let names = names();
    let is_stock = |name: &Owned, base: &Bound<'_, PyType>| of_type(&class, name) == of_type(base, name);
    let read = [&names.cause, &names.context, &names.suppress_context, &names.traceback, &names.class];
    read.into_iter().all(|name| is_stock(name, &base))
        && group_class(py).is_none_or(|group| !is_a(exception, &group) || is_stock(&names.exceptions, &group))
}

/// True if Python reads attributes and the truth value of instances as it does for `BaseException`, and attributes of
/// the class as for any class.
fn has_plain_slots(class: &Bound<'_, PyType>, base: &Bound<'_, PyType>) -> bool {
    // SAFETY: two live types, whose slots are read; the thread is attached.
    unsafe {
        let (own, base) = (&*class.as_type_ptr(), &*base.as_type_ptr());
        let getter = |class: &ffi::PyTypeObject| class.tp_getattro.map(|getter| getter as usize);
        let has_truth_value = own.tp_as_number.as_ref().is_some_and(|slots| slots.nb_bool.is_some())
            || own.tp_as_mapping.as_ref().is_some_and(|slots| slots.mp_length.is_some())
            || own.tp_as_sequence.as_ref().is_some_and(|slots| slots.sq_length.is_some());
        std::ptr::eq(ffi::Py_TYPE(class.as_ptr()), &raw const ffi::PyType_Type)
            && getter(own) == getter(base)
            && !has_truth_value
    }
}

/// The address of an attribute of a class; null if it has none.
fn of_type(class: &Bound<'_, PyType>, name: &Owned) -> *mut PyObject {
    unsafe extern "C" {
        fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
    }
    // SAFETY: a live type and `str`, and the thread is attached; the result is borrowed, and only its address is used.
    unsafe { _PyType_Lookup(class.as_type_ptr(), name.as_ptr()) }
}

/// `BaseExceptionGroup`, which Python has since 3.11.
fn group_class(py: Python<'_>) -> Option<Bound<'_, PyType>> {
    #[cfg(Py_3_11)]
    return Some(py.get_type::<PyBaseExceptionGroup>());
    #[cfg(not(Py_3_11))]
    {
        let _ = py;
        None
    }
}

/// The exceptions of a group, for which [`is_plain`] was true; `None` for any other exception.
///
/// # Errors
///
/// The group has no exceptions.
pub fn members(exception: Object<'_, '_>) -> Result<Option<Owned>, Failure> {
    match group_class(exception.py()) {
        Some(group) if is_a(exception, &group) => {
            object::attribute(exception, &names().exceptions).map(Some).ok_or(Failure::Stock)
        }
        _ => Ok(None),
    }
}

/// True if the exception is an instance of a built-in class.
fn is_a(exception: Object<'_, '_>, class: &Bound<'_, PyType>) -> bool {
    // SAFETY: two live types; only their bases are compared.
    unsafe { ffi::PyType_IsSubtype(object::class_of(exception), class.as_type_ptr()) != 0 }
}

/// True if `TracebackException` treats the exception in a way of its own: syntax errors, and since 3.12 errors for
/// which it looks for a similar name.
fn is_special(exception: Object<'_, '_>) -> bool {
    let py = exception.py();
    if is_a(exception, &py.get_type::<PySyntaxError>()) {
        return true;
    }
    if cfg!(not(Py_3_12)) {
        return false;
    }
    let names = names();
    let has_name =
        is_a(exception, &py.get_type::<PyNameError>()) || is_a(exception, &py.get_type::<PyAttributeError>());
    has_name && may_have(exception, &names.name)
        || is_a(exception, &py.get_type::<PyImportError>()) && may_have(exception, &names.name_from)
        // Since 3.15 the text depends on the names of the standard library's modules.
        || cfg!(Py_3_15) && is_a(exception, &py.get_type::<PyModuleNotFoundError>())
}

/// True if an attribute, which is a member of a built-in class, is not None, or could run Python code.
fn may_have(exception: Object<'_, '_>, name: &Owned) -> bool {
    let found = object::of_class(exception, name.bind(exception.py()));
    // SAFETY: the attribute of a live class, or null.
    let is_member =
        !found.is_null() && std::ptr::eq(unsafe { ffi::Py_TYPE(found) }, &raw const ffi::PyMemberDescr_Type);
    !is_member || object::attribute(exception, name).is_none_or(|value| !value.bind(exception.py()).is_none())
}

/// Adds the final lines of an exception for which [`is_plain`] was true, with the traceback that is shown for it.
/// Returns true if Python code may have run.
///
/// # Errors
///
/// The Python code that makes the lines raised an exception. [`Failure::Stock`] also for text that cannot be encoded.
pub fn add(
    functions: &TracebackFunctions,
    exception: Object<'_, '_>,
    traceback: Object<'_, '_>,
    to: &mut Vec<u8>,
) -> Result<bool, Failure> {
    let py = exception.py();
    let class = if is_special(exception) { None } else { class_name(exception) };
    let (Some(class), Notes::None | Notes::Plain(_)) = (class, notes(exception)?) else {
        return ask(functions, exception, traceback, to).map(|()| true);
    };
    let (text, ran) = match own_text(exception) {
        Some(text) => (Some(text), false),
        None => (leaving::str(exception), true),
    };
    let made: Owned;
    let text: &[u8] = match &text {
        Some(text) if object::is_exact_str(text.bind(py)) => object::utf8(text.bind(py)).ok_or(Failure::Stock)?,
        Some(text) => {
            made = final_line(functions, &class, text.bind(py))?;
            to.extend_from_slice(object::utf8(made.bind(py)).ok_or(Failure::Stock)?);
            return add_notes(exception, to).map(|()| true);
        }
        None => {
            object::clear_error(py);
            let failed = failed_text(exception)?;
            add_line(&class, failed.as_bytes(), to);
            return add_notes(exception, to).map(|()| true);
        }
    };
    add_line(&class, text, to);
    add_notes(exception, to)?;
    Ok(ran)
}

fn add_line(class: &str, text: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(class.as_bytes());
    if !text.is_empty() {
        to.extend_from_slice(b": ");
        to.extend_from_slice(text);
    }
    to.push(b'\n');
}

/// The name of an exception's class as it is shown; `None` if an attribute of the class is no plain text.
fn class_name(exception: Object<'_, '_>) -> Option<String> {
    let py = exception.py();
    let class = exception.get_type();
    let text = |name: &Owned| {
        let found = object::attribute(class.as_any().as_borrowed(), name)?;
        if object::is_exact_str(found.bind(py)) { object::text(found.bind(py)).map(str::to_owned) } else { None }
    };
    let (name, module) = (text(&names().qualname)?, text(&names().module_of_class)?);
    Some(if matches!(module.as_str(), "__main__" | "builtins") { name } else { format!("{module}.{name}") })
}

/// The text of an exception whose class has the `__str__` of `BaseException`, and whose only argument is a `str`.
fn own_text(exception: Object<'_, '_>) -> Option<Owned> {
    let py = exception.py();
    // SAFETY: an instance of `BaseException`, whose struct begins with these fields; its arguments are a tuple.
    unsafe {
        let text = |class: *mut ffi::PyTypeObject| (*class).tp_str.map(|text| text as usize);
        if text(object::class_of(exception)) != text(ffi::PyExc_BaseException.cast()) {
            return None;
        }
        let args = (*exception.as_ptr().cast::<ffi::PyBaseExceptionObject>()).args;
        let args = Owned::of(&*Borrowed::from_ptr_or_opt(py, args)?);
        match object::tuple_items(args.bind(py))? {
            [text] if object::is_exact_str(*text) => Some(Owned::of(text)),
            _ => None,
        }
    }
}

/// The text that is shown for an exception whose `__str__` raises.
fn failed_text(exception: Object<'_, '_>) -> Result<String, Failure> {
    if cfg!(Py_3_11) {
        return Ok("<exception str() failed>".to_owned());
    }
    let name = exception.get_type().name()?;
    Ok(format!("<unprintable {name} object>"))
}

/// The notes of an exception.
enum Notes {
    /// It has none.
    None,
    /// A list whose items are exact `str`.
    Plain(Owned),
    /// Anything else.
    Other,
}

fn notes(exception: Object<'_, '_>) -> Result<Notes, Failure> {
    if cfg!(not(Py_3_11)) {
        return Ok(Notes::None);
    }
    let py = exception.py();
    let name = &names().notes;
    if !object::of_class(exception, name.bind(py)).is_null() {
        return Ok(Notes::Other);
    }
    let found = leaving::optional_attribute(exception, name).ok_or_else(|| Failure::of_error(py))?;
    let Some(found) = found else { return Ok(Notes::None) };
    let bound = found.bind(py);
    let Ok(list) = bound.cast_exact::<pyo3::types::PyList>() else { return Ok(Notes::Other) };
    if list.iter().all(|note| object::is_exact_str(note.as_borrowed())) {
        return Ok(Notes::Plain(found));
    }
    Ok(Notes::Other)
}

/// Adds the notes. They are read again, because `__str__` may have changed them.
fn add_notes(exception: Object<'_, '_>, to: &mut Vec<u8>) -> Result<(), Failure> {
    let py = exception.py();
    match notes(exception)? {
        Notes::None => Ok(()),
        Notes::Plain(notes) => {
            let notes = notes.bind(py);
            let notes = notes.cast::<pyo3::types::PyList>().map_err(|_| Failure::Stock)?;
            for note in notes.iter() {
                // Each line of a note ends with a newline, also an empty last one.
                to.extend_from_slice(object::utf8(note.as_borrowed()).ok_or(Failure::Stock)?);
                to.push(b'\n');
            }
            Ok(())
        }
        Notes::Other => Err(Failure::Stock),
    }
}

/// Lets Python make the final line for a text that is an instance of a subclass of `str`.
#[cold]
fn final_line(functions: &TracebackFunctions, class: &str, text: Object<'_, '_>) -> Result<Owned, Failure> {
    let py = text.py();
    let class = pyo3::types::PyString::new(py, class);
    let arguments = [class.as_ptr(), text.as_ptr()];
    // SAFETY: two live values, no keywords, and the thread is attached; a new reference or null with an error set.
    let made = unsafe {
        let made = leaving::vectorcall(functions.final_line.bind(py), arguments.as_ptr(), 2, std::ptr::null_mut());
        Owned::steal(made)
    };
    made.ok_or_else(|| Failure::of_error(py))
}

/// Lets Python make all final lines.
#[cold]
fn ask(
    functions: &TracebackFunctions,
    exception: Object<'_, '_>,
    traceback: Object<'_, '_>,
    to: &mut Vec<u8>,
) -> Result<(), Failure> {
    let py = exception.py();
    let arguments = [exception.as_ptr(), traceback.as_ptr()];
    // SAFETY: two live values, no keywords, and the thread is attached; a new reference or null with an error set.
    let made = unsafe {
        let made = leaving::vectorcall(functions.final_lines.bind(py), arguments.as_ptr(), 2, std::ptr::null_mut());
        Owned::steal(made)
    };
    let made = made.ok_or_else(|| Failure::of_error(py))?;
    to.extend_from_slice(object::utf8(made.bind(py)).ok_or(Failure::Stock)?);
    Ok(())
}
