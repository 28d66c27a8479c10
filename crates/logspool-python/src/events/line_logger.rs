//! The type of the loggers of `logspool.structlog`: each call queues its text as one line of a handler.

use pyo3::prelude::*;

use crate::calls::emit::LineOutcome;
use crate::calls::text_line::{self, LastSink};

/// Maximum number of attempts to queue one line.
///
/// Chosen: the second attempt is enough, unless a program keeps closing handlers in another thread.
const MAX_TRIES: usize = 3;

/// A logger whose methods take a finished line.
#[pyclass(frozen, subclass, weakref, module = "logspool._native")]
pub struct LineLogger {
    handler: Py<PyAny>,
    /// A function `pass_on(handler, level, text)`, which gives the handler a record with the text.
    pass_on: Py<PyAny>,
    last: LastSink,
}

impl LineLogger {
    fn write(&self, level: u16, text: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = text.py();
        let handler = self.handler.bind(py);
        for _ in 0..MAX_TRIES {
            match text_line::queue(&self.last, handler.as_borrowed(), level, text.as_borrowed()) {
                LineOutcome::Queued => return Ok(()),
                LineOutcome::Raised => return Err(PyErr::fetch(py)),
                LineOutcome::Again => {}
                LineOutcome::Stock | LineOutcome::StockAfterQueue | LineOutcome::Uninstalling => break,
            }
        }
        self.pass_on.bind(py).call1((handler, level, text)).map(drop)
    }
}

macro_rules! levels {
    ($($name:ident: $level:literal;)*) => {
        #[pymethods]
        impl LineLogger {
            /// A logger that writes to a handler of logspool's own.
            #[new]
            #[pyo3(signature = (handler, pass_on, /))]
            fn new(handler: Py<PyAny>, pass_on: Py<PyAny>) -> Self {
                Self { handler, pass_on, last: LastSink::default() }
            }

            /// The handler that writes the lines.
            #[getter]
            fn handler(&self, py: Python<'_>) -> Py<PyAny> {
                self.handler.clone_ref(py)
            }

            /// Queue a line with a level.
            #[pyo3(signature = (level, message, /))]
            fn put(&self, level: u16, message: &Bound<'_, PyAny>) -> PyResult<()> {
                self.write(level, message)
            }

            $(
                /// Queue a line with the level of the method's name.
                #[pyo3(signature = (message, /))]
                fn $name(&self, message: &Bound<'_, PyAny>) -> PyResult<()> {
                    self.write($level, message)
                }
            )*
        }
    };
}

levels! {
    msg: 20;
    log: 20;
    debug: 10;
    info: 20;
    warn: 30;
    warning: 30;
    err: 40;
    error: 40;
    failure: 40;
    exception: 40;
    fatal: 50;
    critical: 50;
}
