//! The type of the renderers of `logspool.structlog`: a processor of structlog that returns the text of an event.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};

use super::console::ConsoleLayout;
use super::json;
use super::key_values::KeyValues;
use crate::interpreter::object::{self, Object};

/// A layout of events.
enum EventLayout {
    Json,
    KeyValues(KeyValues),
    Console(ConsoleLayout),
}

impl EventLayout {
    fn push(&self, out: &mut Vec<u8>, event: Object<'_, '_>) -> bool {
        match self {
            Self::Json => json::push_dict(out, event),
            Self::KeyValues(layout) => layout.push(out, event),
            Self::Console(layout) => layout.push(out, event),
        }
    }
}

/// A processor that renders events natively where it can, and else by a renderer of structlog.
#[pyclass(frozen, subclass, module = "logspool._native")]
pub struct EventRenderer {
    layout: EventLayout,
    /// structlog's own renderer with the same options.
    own: Py<PyAny>,
}

#[pymethods]
impl EventRenderer {
    /// A renderer with a layout ("json", "key_values" or "console") and its options.
    #[new]
    #[pyo3(signature = (layout, options, own, /))]
    fn new(layout: &str, options: &Bound<'_, PyDict>, own: Py<PyAny>) -> PyResult<Self> {
        let layout = match layout {
            "json" => EventLayout::Json,
            "key_values" => EventLayout::KeyValues(KeyValues {
                key_order: option(options, "key_order")?,
                sort_keys: option(options, "sort_keys")?,
                drop_missing: option(options, "drop_missing")?,
                repr_native_str: option(options, "repr_native_str")?,
            }),
            "console" => EventLayout::Console(ConsoleLayout {
                event_width: option(options, "event_width")?,
                level_width: option(options, "level_width")?,
                repr_native_str: option(options, "repr_native_str")?,
                sort_keys: option(options, "sort_keys")?,
                event_key: option(options, "event_key")?,
                timestamp_key: option(options, "timestamp_key")?,
            }),
            other => return Err(PyValueError::new_err(format!("no layout is named {other:?}"))),
        };
        Ok(Self { layout, own })
    }

    /// Render an event; the arguments are those of structlog's processors.
    #[pyo3(signature = (logger, name, event_dict, /))]
    fn render<'py>(
        &self,
        logger: &Bound<'py, PyAny>,
        name: &Bound<'py, PyAny>,
        event_dict: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = logger.py();
        if event_dict.is_exact_instance_of::<PyDict>() {
            let mut out = Vec::with_capacity(EXPECTED);
            if self.layout.push(&mut out, event_dict.as_borrowed()) {
                let text = object::str_of(py, &out);
                return text.map(|text| text.bind(py).to_owned()).ok_or_else(|| PyErr::fetch(py));
            }
        }
        self.own.bind(py).call1((logger, name, event_dict))
    }
}

/// Bytes that are allocated for a line at first.
///
/// Chosen: most lines of structlog are shorter.
const EXPECTED: usize = 320;

fn option<'py, T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<T> {
    let Some(value) = options.get_item(name)? else {
        return Err(PyValueError::new_err(format!("the layout has the option {name}")));
    };
    value.extract().map_err(Into::into)
}
