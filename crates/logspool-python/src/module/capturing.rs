//! The Python class for lines that other code writes to a descriptor.

use std::os::fd::BorrowedFd;

use logspool::descriptor_capture::{CaptureDescriptors, CapturedLines, set_standard_error as print_to};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interpreter::leaving::detached;
use crate::options::timeout;

/// Lines with the numbers of bytes that were cut off, and whether they are the last ones.
type Taken<'py> = (Vec<(Bound<'py, PyBytes>, usize)>, bool);

/// Reads the pipe that is in place of a descriptor, on a native thread.
#[pyclass(frozen, name = "CapturedLines", module = "logspool._native")]
pub struct PyCapturedLines(CapturedLines);

#[pymethods]
impl PyCapturedLines {
    /// Start to read `pipe` until the write end of `restored` is closed. The descriptors are duplicated.
    #[new]
    #[pyo3(signature = (pipe, restored, original, max_line_bytes, /))]
    fn new(pipe: i32, restored: i32, original: i32, max_line_bytes: usize) -> PyResult<Self> {
        let own = |descriptor| {
            // SAFETY: the caller keeps the descriptor open during this call.
            unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()
        };
        let ends = CaptureDescriptors { pipe: own(pipe)?, restored: own(restored)?, original: own(original)? };
        let started = CapturedLines::start(ends, max_line_bytes);
        started.map(Self).ok_or_else(|| PyOSError::new_err("cannot start a thread for the captured lines"))
    }

    /// Wait for lines, at most for `seconds`. Return them, each with the number of bytes that were cut off, and whether
    /// they are the last ones.
    #[pyo3(signature = (seconds, /))]
    fn take<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Taken<'py>> {
        let patience = timeout(seconds)?;
        let (lines, is_over) = detached(py, || self.0.take(patience));
        Ok((lines.into_iter().map(|line| (PyBytes::new(py, &line.bytes), line.cut)).collect(), is_over))
    }

    /// The number of lines that were dropped because too many waited.
    fn dropped(&self) -> u64 {
        self.0.dropped()
    }
}

/// Print messages of logspool to this descriptor instead of standard error. It has to stay open.
#[pyfunction]
#[pyo3(signature = (descriptor, /))]
pub fn set_standard_error(descriptor: i32) {
    print_to(descriptor);
}
