//! The source file of a frame text, and whether `linecache` would still show the lines from which the text was made.
//!
//! Stock logging calls `linecache.checkcache` for the files of each traceback. It drops an entry whose file has another
//! size or time of change than the entry.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

use crate::calls::pieces::{bytes_of, small_int};
use crate::calls::traceback::stock_functions::TracebackFunctions;
use crate::interpreter::dict;
use crate::interpreter::object::{self, Object, Owned};

/// What `linecache` knew about the source of a frame text when the text was made.
pub struct FrameSource {
    filename: Owned,
    /// True if Python may also look for the lines among the sources of interactive code.
    may_be_interactive: bool,
    /// The entry of the file name in `linecache.cache`. The reference keeps the address of the entry from being reused.
    entry: Option<Owned>,
    /// The file that the entry was read from; `None` for lines that did not come from a file.
    file: Option<SourceFile>,
}

/// A source file, as it was when its lines were read.
struct SourceFile {
    path: CString,
    stamp: FileStamp,
}

/// Size and time of the last change of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    size: i64,
    seconds: i64,
    nanoseconds: i64,
}

impl FileStamp {
    /// The stamp of the file now; `None` if it cannot be asked.
    fn of(path: &CStr) -> Option<Self> {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: a NUL-terminated path, and room for the result, which is read only if the call has filled it.
        let status = unsafe {
            if libc::stat(path.as_ptr(), status.as_mut_ptr()) != 0 {
                return None;
            }
            status.assume_init()
        };
        Some(Self { size: status.st_size, seconds: status.st_mtime, nanoseconds: status.st_mtime_nsec })
    }

    /// The time as `os.stat` computes it.
    fn time(self) -> f64 {
        self.seconds as f64 + 1e-9 * self.nanoseconds as f64
    }
}

impl FrameSource {
    /// The source of frames whose texts were made from an entry of `linecache.cache`; an `entry` of None means that
    /// there was no entry. `None` if it cannot be known how long such a text is valid.
    pub fn new(functions: &TracebackFunctions, filename: Object<'_, '_>, entry: Object<'_, '_>) -> Option<Self> {
        let py = filename.py();
        let name = object::text(filename)?;
        let may_be_interactive = name.starts_with('<');
        if may_be_interactive && functions.has_interactive_sources(py) {
            return None;
        }
        let made = |entry, file| Some(Self { filename: Owned::of(&filename), may_be_interactive, entry, file });
        if entry.is_none() {
            let has_brackets = may_be_interactive && name.ends_with('>');
            return if has_brackets && functions.absent_is_final { made(None, None) } else { None };
        }
        let Some([size, time, _lines, path]) = object::tuple_items(entry) else { return None };
        if time.is_none() {
            return made(Some(Owned::of(&entry)), None);
        }
        if !object::is_exact_str(*path) {
            return None;
        }
        // SAFETY: a live str, and the thread is attached; the result is a new reference or null with an error set.
        let encoded = unsafe { Owned::steal(ffi::PyUnicode_EncodeFSDefault(path.as_ptr())) };
        let Some(encoded) = encoded else {
            object::clear_error(py);
            return None;
        };
        let path = CString::new(bytes_of(encoded.bind(py))?).ok()?;
        let stamp = FileStamp::of(&path)?;
        let time = time.cast_exact::<PyFloat>().ok()?.value();
        // The file may have changed since the entry was made.
        if small_int(*size) != Some(stamp.size) || time != stamp.time() {
            return None;
        }
        made(Some(Owned::of(&entry)), Some(SourceFile { path, stamp }))
    }

    /// True if this source was made from the given entry.
    pub fn has_entry(&self, entry: Object<'_, '_>) -> bool {
        match &self.entry {
            Some(own) => own.as_ptr() == entry.as_ptr(),
            None => entry.is_none(),
        }
    }

    fn is_current(&self, functions: &TracebackFunctions, line_cache: Object<'_, '_>) -> bool {
        if self.may_be_interactive && functions.has_interactive_sources(line_cache.py()) {
            return false;
        }
        let entry = dict::get(line_cache, &self.filename);
        entry.map(|entry| entry.as_ptr()) == self.entry.as_ref().map(Owned::as_ptr)
            && self.file.as_ref().is_none_or(|file| FileStamp::of(&file.path) == Some(file.stamp))
    }
}

/// The sources that were current when this call checked them.
pub struct CheckedSources {
    functions: &'static TracebackFunctions,
    line_cache: Owned,
    current: Vec<*const FrameSource>,
}

impl CheckedSources {
    /// Nothing is checked yet.
    pub fn new(functions: &'static TracebackFunctions, line_cache: Owned) -> Self {
        Self { functions, line_cache, current: Vec::new() }
    }

    /// Forgets the answers, because Python code has run that may have changed a file.
    pub fn forget(&mut self) {
        self.current.clear();
    }

    /// True if `linecache` still shows the lines of this source. The answer is kept.
    pub fn is_current(&mut self, py: Python<'_>, source: &Arc<FrameSource>) -> bool {
        let address = Arc::as_ptr(source);
        if self.current.contains(&address) {
            return true;
        }
        let is_current = source.is_current(self.functions, self.line_cache.bind(py));
        if is_current {
            self.current.push(address);
        }
        is_current
    }
}
