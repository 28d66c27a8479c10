//! Classes and objects of the standard library that futures use.

use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::interpreter::object::Owned;

/// Classes and objects of the standard library that futures use.
pub struct Library {
    pub future: Owned,
    pub invalid_state: Owned,
    pub cancelled: Owned,
    pub timed_out: Owned,
    pub condition: Owned,
    pub logger: Owned,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

pub fn library() -> &'static Library {
    LIBRARY.get().expect("futures exist only after `init`")
}

impl Library {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let futures = py.import("concurrent.futures")?;
        let get = |name: &str| futures.getattr(name).map(|found| Owned::of(&found));
        Ok(Self {
            future: get("Future")?,
            invalid_state: Owned::of(&py.import("concurrent.futures._base")?.getattr("InvalidStateError")?),
            cancelled: get("CancelledError")?,
            timed_out: get("TimeoutError")?,
            condition: Owned::of(&py.import("threading")?.getattr("Condition")?),
            logger: Owned::of(&py.import("concurrent.futures._base")?.getattr("LOGGER")?),
        })
    }
}

/// Looks up all these classes and objects. The first call does it; later calls return the same result.
pub fn connect(py: Python<'_>) -> PyResult<&'static Library> {
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let made = Library::new(py)?;
    Ok(LIBRARY.get_or_init(|| made))
}
