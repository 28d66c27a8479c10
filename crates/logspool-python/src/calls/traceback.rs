//! The text of an exception, as `logging.Formatter.formatException` makes it.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The texts of the frames are kept ([`frames`]), as long as the
//! `linecache` of Python would show the same lines ([`sources`]). Causes, contexts and groups are followed here, in the
//! order of `TracebackException`. The [`final_lines`] are added, and [`logspool_record::traceback`] puts everything
//! together. Where Python treats an exception in a special way, its own functions make the final lines or the whole
//! text. They make every text while anything that stock logging calls for it is patched ([`stock_functions`]).

mod final_lines;
mod frames;
mod sources;
mod stock_functions;

use logspool_record::traceback::{self as layout, ExceptionOrigin, ExceptionPart};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::traceback::sources::CheckedSources;
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};

pub use stock_functions::{TracebackFunctions, set_traceback_functions};

/// Maximum number of exceptions in chains and groups. Python makes the text of more.
///
/// Chosen: programs chain a handful; the exceptions that were seen are compared one by one.
const MAX_EXCEPTIONS: usize = 64;

/// Makes the text of an exception and a traceback, without the newline at its end. `None` if only Python can make it.
///
/// # Errors
///
/// Python code that makes a part of the text raised an exception. [`Failure::Stock`] also for text that cannot be
/// encoded.
pub fn text(exception: Object<'_, '_>, traceback: Object<'_, '_>) -> Result<Option<Vec<u8>>, Failure> {
    let py = exception.py();
    let Some(functions) = stock_functions::if_stock(py)? else { return Ok(None) };
    // Looked at before any code of an exception runs, because Python would run the same code again afterwards.
    let all_plain = Followed::all(exception, |_| Ok(Some(())))?.is_some();
    let (true, Some(line_cache)) = (all_plain, functions.line_cache(py)) else { return Ok(None) };
    let mut checked = CheckedSources::new(functions, line_cache);
    let mut given = Some(Owned::of(&traceback));
    let followed = Followed::all(exception, |exception| {
        // The exception that is logged is shown with the traceback that was given with it.
        let traceback = given.take().unwrap_or_else(|| traceback_of(exception));
        let Some(frames) = frames::texts(functions, &mut checked, traceback.bind(py))? else { return Ok(None) };
        let mut final_lines = Vec::new();
        if final_lines::add(functions, exception, traceback.bind(py), &mut final_lines)? {
            checked.forget();
        }
        Ok(Some((frames, final_lines)))
    })?;
    let Some(followed) = followed else { return Ok(None) };
    let shown = followed.into_iter().map(|followed| {
        let Followed { made: (frames, final_lines), earlier, members, .. } = followed;
        ExceptionPart { frames, final_lines, earlier, members }
    });
    let mut text = layout::text(&functions.messages, &shown.collect::<Vec<_>>());
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    Ok(Some(text))
}

/// An exception that the text shows, and the value that was made of it before its causes were read.
struct Followed<T> {
    exception: Owned,
    made: T,
    earlier: Option<(usize, ExceptionOrigin)>,
    members: Option<Vec<usize>>,
}

impl<T> Followed<T> {
    /// Follows causes, contexts and groups in the order of `TracebackException`, and makes something of each exception
    /// before its causes are read. `None` if native code may not read one of them, or `make` returned `None`.
    fn all(
        exception: Object<'_, '_>,
        mut make: impl FnMut(Object<'_, '_>) -> Result<Option<T>, Failure>,
    ) -> Result<Option<Vec<Self>>, Failure> {
        let py = exception.py();
        let mut all: Vec<Self> = Vec::with_capacity(1);
        let mut add = |all: &mut Vec<Self>, exception: Owned| {
            if all.len() == MAX_EXCEPTIONS || !final_lines::is_plain(exception.bind(py)) {
                return Ok(None);
            }
            let Some(made) = make(exception.bind(py))? else { return Ok(None) };
            all.push(Self { exception, made, earlier: None, members: None });
            Ok::<_, Failure>(Some(all.len() - 1))
        };
        let Some(first) = add(&mut all, Owned::of(&exception))? else { return Ok(None) };
        let mut queue = vec![first];
        while let Some(index) = queue.pop() {
            let current = all[index].exception.clone_ref(py);
            // `all` keeps the exceptions alive whose addresses are compared.
            if let Some((earlier, origin)) = earlier(current.bind(py), &all)? {
                let Some(earlier) = add(&mut all, earlier)? else { return Ok(None) };
                all[index].earlier = Some((earlier, origin));
                queue.push(earlier);
            }
            let Some(group) = final_lines::members(current.bind(py))? else { continue };
            let mut members = Vec::new();
            for member in object::tuple_items(group.bind(py)).ok_or(Failure::Stock)? {
                let Some(member) = add(&mut all, Owned::of(member))? else { return Ok(None) };
                members.push(member);
            }
            queue.extend_from_slice(&members);
            all[index].members = Some(members);
        }
        Ok(Some(all))
    }
}

/// The exception that is shown before this one: its cause, or else its context if that is not suppressed. An exception
/// that is shown already is not shown again.
fn earlier<T>(exception: Object<'_, '_>, all: &[Followed<T>]) -> Result<Option<(Owned, ExceptionOrigin)>, Failure> {
    let py = exception.py();
    let is_new = |found: &Owned| all.iter().all(|followed| followed.exception.as_ptr() != found.as_ptr());
    // SAFETY: a live exception, and the thread is attached; a new reference or null.
    let cause = unsafe { Owned::steal(ffi::PyException_GetCause(exception.as_ptr())) };
    if let Some(cause) = cause.filter(is_new) {
        return Ok(Some((cause, ExceptionOrigin::Cause)));
    }
    let suppressed = object::attribute(exception, &names().suppress_context).ok_or(Failure::Stock)?;
    if suppressed.bind(py).is_truthy()? {
        return Ok(None);
    }
    // SAFETY: a live exception, and the thread is attached; a new reference or null.
    let context = unsafe { Owned::steal(ffi::PyException_GetContext(exception.as_ptr())) };
    Ok(context.filter(is_new).map(|context| (context, ExceptionOrigin::Context)))
}

/// The traceback of an exception, or None.
pub fn traceback_of(exception: Object<'_, '_>) -> Owned {
    // SAFETY: a live exception, and the thread is attached; a new reference or null.
    let found = unsafe { Owned::steal(ffi::PyException_GetTraceback(exception.as_ptr())) };
    found.unwrap_or_else(|| Owned::none(exception.py()))
}
