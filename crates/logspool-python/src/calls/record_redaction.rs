//! Redacts a record before Python code sees it: filters, formatters and handlers of the program.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The message, its arguments, the fields, and the texts of an exception
//! and a stack are changed on the record itself, so every handler gets it redacted. Without redaction a call reads one
//! pointer. Containers are copied before they are changed, because the program has them too.

use logspool_rules::{REPLACEMENT, Rules};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::calls::{keywords, rules};
use crate::interpreter::failure::{Failure, unless_stock};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object};

/// Attributes that no call sets to a text of its own.
const OWN_ATTRIBUTES: [&str; 18] = [
    "args",
    "asctime",
    "created",
    "exc_info",
    "filename",
    "funcName",
    "levelname",
    "levelno",
    "lineno",
    "module",
    "msecs",
    "msg",
    "name",
    "pathname",
    "process",
    "processName",
    "relativeCreated",
    "threadName",
];

/// Maximum depth of containers, and number of values in all of them.
///
/// Chosen: the text of what is beyond is still redacted in the line.
const MAX_DEPTH: usize = 16;
const MAX_VALUES: usize = 10_000;

/// Whether the text of the exception is made and redacted, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracebackMode {
    /// The handler makes it, and its line is redacted.
    OfHandler,
    /// The handler may write it anywhere.
    Made,
}

/// Redacts a record, if the rules in force redact. `None` with an exception set that leaves the call.
#[inline]
pub fn redact(record: Object<'_, '_>, traceback: TracebackMode) -> Option<()> {
    match rules::current().filter(|rules| rules.redacts()) {
        None => Some(()),
        Some(rules) => redact_by(rules, record, traceback),
    }
}

#[cold]
fn redact_by(rules: &'static Rules, record: Object<'_, '_>, traceback: TracebackMode) -> Option<()> {
    let changed = RecordRedaction { rules, values_left: MAX_VALUES }.change(record, traceback);
    match unless_stock(changed) {
        Ok(changed) => {
            if changed.unwrap_or(false) {
                logspool_rules::note_rewritten();
            }
            Some(())
        }
        Err(_) => None,
    }
}

struct RecordRedaction {
    rules: &'static Rules,
    values_left: usize,
}

impl RecordRedaction {
    /// Changes the attributes of a record, and returns whether any had a secret. May run user Python code.
    fn change(&mut self, record: Object<'_, '_>, traceback: TracebackMode) -> Result<bool, Failure> {
        let py = record.py();
        let own = object::own_attributes(record)?;
        let own = own.bind(py);
        let own = own.cast::<PyDict>().map_err(|_| Failure::Stock)?;
        let mut is_changed = self.change_message(record, &own)?;
        // A copy, because the loop sets items.
        for (name, value) in own.copy()?.iter() {
            let Some(text) = object::text(name.as_borrowed()) else { continue };
            if OWN_ATTRIBUTES.contains(&text) {
                continue;
            }
            if let Some(changed) = self.named(text, &value, 0)? {
                own.set_item(&name, changed)?;
                is_changed = true;
            }
        }
        if traceback == TracebackMode::Made {
            is_changed |= self.make_exception_text(&own)?;
        }
        Ok(is_changed)
    }

    /// Changes `msg` and `args`. A message whose arguments show the secret becomes its text.
    fn change_message(&mut self, record: Object<'_, '_>, own: &Bound<'_, PyDict>) -> Result<bool, Failure> {
        let py = record.py();
        let (Some(message), arguments) = (own.get_item("msg")?, own.get_item("args")?) else { return Ok(false) };
        let arguments = arguments.filter(|arguments| !arguments.is_none());
        let has_arguments = match &arguments {
            Some(arguments) => !arguments.cast_exact::<PyTuple>().is_ok_and(|values| values.is_empty()),
            None => false,
        };
        let is_container = message.cast_exact::<PyDict>().is_ok() || message.cast_exact::<PyList>().is_ok();
        if !has_arguments && (is_container || object::is_exact_str(message.as_borrowed())) {
            let changed = self.value(&message, 0)?;
            changed.iter().try_for_each(|changed| own.set_item("msg", changed))?;
            return Ok(changed.is_some());
        }
        let text = match leaving::method(record, &names().get_message) {
            Some(text) => Some(text),
            // The formatter reports the error.
            None => match Failure::of_error(py) {
                Failure::Stock => None,
                Failure::Raised => return Err(Failure::Raised),
            },
        };
        if let Some(text) = text
            && let Some(changed) = self.value(&text.bind(py), 0)?
        {
            own.set_item("msg", changed)?;
            own.set_item("args", PyTuple::empty(py))?;
            return Ok(true);
        }
        let changed = arguments.map(|arguments| self.value(&arguments, 0)).transpose()?.flatten();
        changed.iter().try_for_each(|changed| own.set_item("args", changed))?;
        Ok(changed.is_some())
    }

    /// Sets `exc_text`, which handlers use instead of the exception, if the text of the exception has a secret.
    fn make_exception_text(&mut self, own: &Bound<'_, PyDict>) -> Result<bool, Failure> {
        let py = own.py();
        let has_text = own.get_item("exc_text")?.is_some_and(|text| text.is_truthy().unwrap_or(true));
        let Some(exc_info) = own.get_item("exc_info")?.filter(|_| !has_text) else { return Ok(false) };
        if exc_info.cast_exact::<PyTuple>().map_or(true, |parts| parts.is_empty()) {
            return Ok(false);
        }
        let text = keywords::exception_text(exc_info.as_borrowed())?.into_str(py)?;
        let changed = self.value(&text.bind(py), 0)?;
        changed.iter().try_for_each(|changed| own.set_item("exc_text", changed))?;
        Ok(changed.is_some())
    }

    /// The changed value of a field; `None` if it has no secret.
    fn named<'py>(
        &mut self,
        name: &str,
        value: &Bound<'py, PyAny>,
        depth: usize,
    ) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        if value.is_none() || !self.rules.is_secret(name) {
            return self.value(value, depth);
        }
        let is_replaced = object::text(value.as_borrowed()) == Some(REPLACEMENT);
        Ok((!is_replaced).then(|| PyString::new(value.py(), REPLACEMENT).into_any()))
    }

    /// The changed value; `None` if it has no secret.
    fn value<'py>(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        let py = value.py();
        if depth > MAX_DEPTH || self.values_left == 0 {
            return Ok(None);
        }
        self.values_left -= 1;
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.to_string_lossy();
            let changed = self.rules.redacted(text.as_bytes());
            return Ok(changed.map(|changed| PyString::new(py, &String::from_utf8_lossy(&changed)).into_any()));
        }
        if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            return Ok(self.rules.redacted(bytes.as_bytes()).map(|changed| PyBytes::new(py, &changed).into_any()));
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            let mut changed = None;
            for (key, item) in dict.copy()?.iter() {
                let new = match object::text(key.as_borrowed()) {
                    Some(name) => self.named(name, &item, depth + 1)?,
                    None => self.value(&item, depth + 1)?,
                };
                if let Some(new) = new {
                    let copy = match changed.take() {
                        Some(copy) => copy,
                        None => dict.copy()?,
                    };
                    copy.set_item(&key, new)?;
                    changed = Some(copy);
                }
            }
            return Ok(changed.map(Bound::into_any));
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            let items: Vec<_> = list.iter().collect();
            let changed = self.items(items, depth)?;
            return Ok(changed.map(|items| PyList::new(py, items).map(Bound::into_any)).transpose()?);
        }
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            let items: Vec<_> = tuple.iter().collect();
            let changed = self.items(items, depth)?;
            return Ok(changed.map(|items| PyTuple::new(py, items).map(Bound::into_any)).transpose()?);
        }
        Ok(None)
    }

    /// The items with those changed that have a secret; `None` if none has one.
    fn items<'py>(
        &mut self,
        mut items: Vec<Bound<'py, PyAny>>,
        depth: usize,
    ) -> Result<Option<Vec<Bound<'py, PyAny>>>, Failure> {
        let mut is_changed = false;
        for item in &mut items {
            if let Some(changed) = self.value(item, depth + 1)? {
                *item = changed;
                is_changed = true;
            }
        }
        Ok(is_changed.then_some(items))
    }
}
