//! Python functions that write a Python record in the core's formats: JSON lines, and entries for a service.

use logspool_record::format::{entry as parts_of_record, json};
use logspool_record::{Value, msgpack};
use logspool_rules::{REPLACEMENT, Rules};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::calls::emit;
use crate::calls::pieces::{kind_of, small_int};
use crate::calls::rules;
use crate::calls::template::Kind;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};

/// Maximum number of values, over all fields, that one entry contains as nested values.
///
/// Chosen: programs log fewer. The limit stops the expansion of a list that contains the same list a million times.
const MAX_VALUES: usize = 2000;

/// Format a record with a formatter, and queue the line for a handler. Return whether the line is queued; if not,
/// nothing was done.
#[pyfunction]
#[pyo3(signature = (handler, formatter, record, /))]
pub fn queue_formatted(
    handler: &Bound<'_, PyAny>,
    formatter: &Bound<'_, PyAny>,
    record: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    emit::queue_formatted(handler.as_borrowed(), formatter.as_borrowed(), record.as_borrowed())
        .ok_or_else(|| PyErr::fetch(handler.py()))
}

/// Return whether `handle` of a handler queues a record and waits for no output.
#[pyfunction]
#[pyo3(signature = (handler, /))]
pub fn is_adopted(handler: &Bound<'_, PyAny>) -> bool {
    emit::is_adopted(handler.as_borrowed())
}

/// Return one JSON object with these keys and values.
#[pyfunction]
#[pyo3(signature = (members, /))]
pub fn json_object<'py>(
    py: Python<'py>,
    members: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut out = vec![b'{'];
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_json(&mut out, key)?;
        out.push(b':');
        push_json(&mut out, value)?;
    }
    out.push(b'}');
    match String::from_utf8(out) {
        Ok(text) => Ok(PyString::new(py, &text).into_any()),
        Err(error) => PyBytes::new(py, error.as_bytes()).call_method1("decode", ("utf-8", "surrogatepass")),
    }
}

fn push_json(out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(plain) = plain(value) {
        json::push_value(out, plain);
        return Ok(());
    }
    let text = encoded(value, "surrogatepass")?;
    if object::is_exact_int(value.as_borrowed()) {
        out.extend_from_slice(&text);
    } else {
        json::push_string(out, &text);
    }
    Ok(())
}

/// Return how many records the rules of `install()` have changed or left out, as a dict.
#[pyfunction]
pub fn rule_counts(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in logspool_rules::counts().by_name() {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}

/// Count a call of a `..._once` function that logs nothing.
#[pyfunction]
pub fn note_once() {
    logspool_rules::note_once();
}

/// Return the entry of a record, with the time `created` and `parts` in their order.
#[pyfunction]
#[pyo3(signature = (created, parts, /))]
pub fn entry<'py>(
    py: Python<'py>,
    created: f64,
    parts: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let time_ns = if created >= 0.0 { (created * 1e9).round_ties_even() as i64 } else { 0 };
    let written = parts.len().min(usize::from(parts_of_record::MAX_PARTS));
    let left_out = parts.len() - written;
    let mut packed = Packed { bytes: Vec::new(), values_left: MAX_VALUES, rules: rules::current() };
    parts_of_record::push_head(&mut packed.bytes, time_ns, written as u16 + u16::from(left_out > 0));
    for (name, value) in &parts[..written] {
        packed.push_name(name)?;
        packed.push_part(name, value)?;
    }
    if left_out > 0 {
        parts_of_record::push_left_out(&mut packed.bytes, left_out as i64);
    }
    Ok(PyBytes::new(py, &packed.bytes))
}

struct Packed {
    bytes: Vec<u8>,
    values_left: usize,
    rules: Option<&'static Rules>,
}

impl Packed {
    /// Appends the value of a part, as the rules of `install()` leave it.
    fn push_part(&mut self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = if self.rules.is_some() { name.extract::<String>().unwrap_or_default() } else { String::new() };
        if self.push_secret(&name, value) {
            return Ok(());
        }
        if let Some(rules) = self.rules
            && let Ok(text) = value.extract::<String>()
        {
            let cleaned = rules.cleaned(&name, &text);
            parts_of_record::push_bounded(&mut self.bytes, 0, cleaned.unwrap_or(text).as_bytes());
            return Ok(());
        }
        self.push_field(value)
    }

    /// Appends the replacement of a secret, if the field has the name of one.
    fn push_secret(&mut self, name: &str, value: &Bound<'_, PyAny>) -> bool {
        let is_secret = !value.is_none() && self.rules.is_some_and(|rules| rules.is_secret(name));
        if is_secret {
            parts_of_record::push_bounded(&mut self.bytes, 0, REPLACEMENT.as_bytes());
        }
        is_secret
    }

    fn push_name(&mut self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        parts_of_record::push_name(&mut self.bytes, &encoded(name, "backslashreplace")?);
        Ok(())
    }

    fn push_text(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = encoded(value, "backslashreplace")?;
        let cleaned = self.rules.and_then(|rules| rules.cleaned("", std::str::from_utf8(&text).unwrap_or_default()));
        let shown = cleaned.as_deref().map_or(text.as_slice(), str::as_bytes);
        parts_of_record::push_bounded(&mut self.bytes, 0, shown);
        Ok(())
    }

    /// Appends the value of a part, or the text of the value if the value is too large.
    fn push_field(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (start, values_left) = (self.bytes.len(), self.values_left);
        if self.push(value, 0)? {
            return Ok(());
        }
        self.bytes.truncate(start);
        self.values_left = values_left;
        self.push_text(value)
    }

    /// Appends a value at nesting depth `depth`. `false`: the value is nested too deep or contains too many values.
    fn push(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
        if depth > 0 {
            if depth > parts_of_record::MAX_DEPTH || self.values_left == 0 {
                return Ok(false);
            }
            self.values_left -= 1;
        }
        if let Some(plain) = plain(value) {
            parts_of_record::push_value(&mut self.bytes, 0, plain);
        } else if value.is_instance_of::<PyDict>() {
            // `str` of a key or value may run user Python code that changes the container, so a copy is read.
            let items = leaving::method(value.as_borrowed(), &names().items).ok_or_else(|| PyErr::fetch(value.py()))?;
            let items = items_of(&items.bind(value.py()))?;
            msgpack::push_map(&mut self.bytes, items.len());
            for item in items {
                let (key, item) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                self.push_name(&key)?;
                let is_secret =
                    self.rules.is_some() && key.extract::<String>().is_ok_and(|name| self.push_secret(&name, &item));
                if !is_secret && !self.push(&item, depth + 1)? {
                    return Ok(false);
                }
            }
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let items = items_of(value)?;
            msgpack::push_array(&mut self.bytes, items.len());
            for item in &items {
                if !self.push(item, depth + 1)? {
                    return Ok(false);
                }
            }
        } else {
            self.push_text(value)?;
        }
        Ok(true)
    }
}

fn items_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    value.try_iter()?.collect()
}

/// The value of `None`, a `bool`, a `float` or an `int` that fits `i64`; `None` for any other object.
fn plain(value: &Bound<'_, PyAny>) -> Option<Value<'static>> {
    let value = value.as_borrowed();
    match kind_of(value) {
        Kind::None => Some(Value::None),
        Kind::Bool => value.is_truthy().ok().map(Value::Bool),
        Kind::Float => value.extract().ok().map(Value::Float),
        Kind::Int => small_int(value).map(Value::Int),
        _ => None,
    }
}

/// The bytes of `str(value)`. `errors` is the error handler for lone surrogates.
fn encoded(value: &Bound<'_, PyAny>, errors: &str) -> PyResult<Vec<u8>> {
    let py = value.py();
    let text: Owned = leaving::str(value.as_borrowed()).ok_or_else(|| PyErr::fetch(py))?;
    if let Some(bytes) = object::utf8(text.bind(py)) {
        return Ok(bytes.to_vec());
    }
    let text = &*text.bind(py);
    py.get_type::<PyString>().call_method1("encode", (text, "utf-8", errors))?.extract()
}
