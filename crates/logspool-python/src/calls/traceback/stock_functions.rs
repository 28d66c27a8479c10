//! Whether the functions that make the text of an exception are those of the standard library.
//!
//! Programs patch `traceback` and `linecache`: the backport of exception groups, pretty printers, doctest, IPython. As
//! long as anything is patched, Python makes all texts.

use std::sync::{Arc, OnceLock, RwLock};

use logspool_record::traceback::OriginMessages;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::dict;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{Object, Owned};
use crate::plans::class_version::ClassVersion;

/// The functions of `_traceback.py`, and the objects of the standard library that stock logging uses for the text of an
/// exception.
pub struct TracebackFunctions {
    /// `is_stock() -> bool`
    pub is_stock: Owned,
    /// `frame_texts(traceback) -> list[tuple[str, int | None, entry]]`
    pub frame_texts: Owned,
    /// `final_lines(exception, traceback) -> str`
    pub final_lines: Owned,
    /// `final_line(name, text) -> str`
    pub final_line: Owned,
    /// The classes of `traceback` that make the text.
    pub classes: Vec<Py<PyType>>,
    /// The globals of `traceback`.
    pub traceback: NumberedDict,
    /// The globals of `linecache`.
    pub linecache: NumberedDict,
    /// The attributes of `sys`.
    pub sys: Owned,
    /// Dicts, names, and the values that the names must have.
    pub expected: Vec<(Owned, Owned, Owned)>,
    /// The texts between two exceptions.
    pub messages: OriginMessages,
    /// The dict of the sources of interactive code, which later releases of 3.13 have.
    pub interactive_sources: Option<Owned>,
    /// True if no source is found later for a file name in angle brackets that `linecache.cache` does not have.
    pub absent_is_final: bool,
}

static FUNCTIONS: OnceLock<TracebackFunctions> = OnceLock::new();

/// Sets the functions. Later calls change nothing.
pub fn set_traceback_functions(functions: TracebackFunctions) {
    let _ = FUNCTIONS.set(functions);
}

/// The result of `is_stock`, and the state of the modules and classes when it was called.
struct TracebackVerdict {
    is_stock: bool,
    /// `None` if the changes of a module are not numbered.
    versions: Option<[u64; 2]>,
    classes: Vec<ClassVersion>,
}

static VERDICT: RwLock<Option<Arc<TracebackVerdict>>> = RwLock::new(None);

/// Returns the functions if everything that stock logging calls for the text of an exception is the stock one, and no
/// limit of frames is set.
///
/// # Errors
///
/// `is_stock` raised an exception.
pub fn if_stock(py: Python<'_>) -> Result<Option<&'static TracebackFunctions>, Failure> {
    let Some(functions) = FUNCTIONS.get() else { return Ok(None) };
    let limit = dict::get(functions.sys.bind(py), &names().tracebacklimit);
    if limit.is_some_and(|limit| !limit.bind(py).is_none()) {
        return Ok(None);
    }
    let has = |(dict, name, value): &(Owned, Owned, Owned)| {
        dict::get(dict.bind(py), name).is_some_and(|found| found.as_ptr() == value.as_ptr())
    };
    if !functions.expected.iter().all(has) {
        return Ok(None);
    }
    Ok(functions.verdict(py)?.then_some(functions))
}

impl TracebackFunctions {
    /// The dict `linecache.cache`.
    pub fn line_cache(&self, py: Python<'_>) -> Option<Owned> {
        let found = dict::get(self.linecache.object().bind(py), &names().cache)?;
        found.bind(py).is_exact_instance_of::<PyDict>().then_some(found)
    }

    /// True if Python has sources of interactive code. It finds them by names, which other code may share.
    pub fn has_interactive_sources(&self, py: Python<'_>) -> bool {
        self.interactive_sources.as_ref().is_some_and(|sources| !dict::is_empty(sources.bind(py)))
    }

    fn verdict(&self, py: Python<'_>) -> Result<bool, Failure> {
        // The lock is only tried: a forked child may find it locked for ever.
        let known = VERDICT.try_read().ok().and_then(|verdict| verdict.clone());
        if let Some(known) = known
            && known.versions.is_some()
            && known.versions == self.versions()
            && known.classes.iter().all(ClassVersion::holds)
        {
            return Ok(known.is_stock);
        }
        self.examine(py)
    }

    fn versions(&self) -> Option<[u64; 2]> {
        Some([self.traceback.now()?, self.linecache.now()?])
    }

    #[cold]
    fn examine(&self, py: Python<'_>) -> Result<bool, Failure> {
        // The state is read first: a later change makes the verdict stale, not wrong.
        let versions = self.versions();
        let classes = self.classes.iter().map(|class| ClassVersion::assigned(class.bind(py))).collect();
        let answer = leaving::call(self.is_stock.bind(py)).ok_or_else(|| Failure::of_error(py))?;
        let is_stock = is_true(answer.bind(py));
        let made = Arc::new(TracebackVerdict { is_stock, versions, classes });
        let old = VERDICT.try_write().ok().and_then(|mut verdict| verdict.replace(made));
        drop(old);
        Ok(is_stock)
    }
}

fn is_true(answer: Object<'_, '_>) -> bool {
    answer.cast_exact::<pyo3::types::PyBool>().is_ok_and(|answer| answer.is_true())
}
