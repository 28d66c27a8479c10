//! A processor of structlog that adds the time in UTC, as its `TimeStamper(fmt="iso")` does.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::interpreter::native_code::WatchedFunction;
use logspool_record::format::push_isoformat;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyString};

/// Adds the time of the call to an event.
#[pyclass(frozen, subclass, module = "logspool._native")]
pub struct IsoStamper {
    key: Py<PyString>,
    /// The namespace of the module `datetime`, from which structlog takes its clock.
    module: Py<PyDict>,
    /// The name `datetime` in that module, and its unmodified value.
    clock: (Py<PyString>, Py<PyAny>),
    /// The C function `datetime.datetime.now`.
    now: WatchedFunction,
    /// structlog's own stamper, which is called if a program has replaced the clock.
    own: Py<PyAny>,
}

#[pymethods]
impl IsoStamper {
    /// A stamper that sets `key`.
    #[new]
    #[pyo3(signature = (key, own, /))]
    fn new(py: Python<'_>, key: &Bound<'_, PyString>, own: Py<PyAny>) -> PyResult<Self> {
        let module = py.import("datetime")?;
        let name = PyString::intern(py, "datetime");
        let clock = module.getattr(&name)?;
        // A program such as freezegun may have replaced the class already, or time-machine the code of its method.
        let now = WatchedFunction::of(&clock.getattr("now")?).filter(WatchedFunction::is_original);
        let Some(now) =
            now.filter(|_| clock.getattr("__module__").is_ok_and(|name| name.eq("datetime").unwrap_or(false)))
        else {
            return Err(PyValueError::new_err("datetime.datetime is replaced"));
        };
        Ok(Self {
            key: key.clone().unbind(),
            module: module.dict().unbind(),
            clock: (name.unbind(), clock.unbind()),
            now,
            own,
        })
    }

    /// Add the time; the arguments are those of structlog's processors.
    #[pyo3(signature = (logger, name, event_dict, /))]
    fn stamp<'py>(
        &self,
        logger: &Bound<'py, PyAny>,
        name: &Bound<'py, PyAny>,
        event_dict: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = logger.py();
        let clock = self.module.bind(py).get_item(&self.clock.0)?;
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_nanos()).ok());
        let (Some(time_ns), true) = (now, self.now.holds() && clock.is_some_and(|clock| clock.is(&self.clock.1)))
        else {
            return self.own.bind(py).call1((logger, name, event_dict));
        };
        let mut text = Vec::with_capacity(27);
        push_isoformat(time_ns, &mut text);
        let text = PyString::from_bytes(py, &text)?;
        match event_dict.cast_exact::<PyDict>() {
            Ok(event) => event.set_item(&self.key, text)?,
            Err(_) => event_dict.set_item(&self.key, text)?,
        }
        Ok(event_dict.clone())
    }
}
