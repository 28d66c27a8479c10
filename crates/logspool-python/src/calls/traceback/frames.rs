//! The texts of the frames of a traceback. A text is made by Python once and then kept for its position in a code
//! object.
//!
//! The map holds the code objects, so that no address is reused. Its lock is only tried: a forked child may find it
//! locked for ever. Nothing is dropped and no Python code runs while it is held.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::pieces::small_int;
use crate::calls::traceback::sources::{CheckedSources, FrameSource};
use crate::calls::traceback::stock_functions::TracebackFunctions;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};

/// The text of one frame.
struct FrameText {
    /// Held, so that no other code object gets its address.
    _code: Owned,
    /// The lines that `traceback` prints.
    text: String,
    filename: Owned,
    name: Owned,
    /// The number of the line; `None` if it is not known.
    line: Option<i64>,
    /// The source of the text; `None` if the text must not be kept.
    source: Option<Arc<FrameSource>>,
}

impl FrameText {
    /// True if `traceback` counts this frame as a repetition of the other one.
    fn repeats(&self, other: &Self) -> bool {
        let same = |one: &Owned, two: &Owned| {
            // SAFETY: two exact `str`; comparing them runs no user Python code.
            one.as_ptr() == two.as_ptr() || unsafe { ffi::PyUnicode_Compare(one.as_ptr(), two.as_ptr()) } == 0
        };
        self.line.is_some()
            && self.line == other.line
            && same(&self.filename, &other.filename)
            && same(&self.name, &other.name)
    }
}

/// A position in a code object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PositionKey {
    code: usize,
    instruction: i32,
    line: i32,
}

/// One entry of a traceback.
struct Position {
    code: Owned,
    key: PositionKey,
}

#[derive(Default)]
struct FrameTexts {
    texts: HashMap<PositionKey, Arc<FrameText>>,
    /// The newest source of each file name.
    sources: HashMap<String, Arc<FrameSource>>,
}

impl FrameTexts {
    /// Sets the newest source of a file name. Returns the old one and the texts that were made from it: they are not
    /// valid any more, and would keep the old lines of the whole file in memory.
    fn put_source(&mut self, name: &str, made: Arc<FrameSource>) -> Option<(Arc<FrameSource>, Vec<Arc<FrameText>>)> {
        let old = self.sources.insert(name.to_owned(), made)?;
        let is_old = |text: &Arc<FrameText>| text.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, &old));
        let gone = self.texts.extract_if(|_, text| is_old(text)).map(|(_, text)| text).collect();
        Some((old, gone))
    }
}

static FRAMES: RwLock<Option<FrameTexts>> = RwLock::new(None);

/// Maximum number of texts in the map. When the map is full, all texts are dropped and made again as needed.
///
/// Chosen: this many texts take about 2 MB; programs raise from a few hundred positions.
const MAX_FRAMES: usize = 4096;

/// Number of repetitions of a frame that `traceback` prints.
const SHOWN_REPETITIONS: usize = 3;

/// Returns the texts of all frames of a traceback; nothing for None. `None` if only Python can make the texts.
///
/// # Errors
///
/// The Python code that makes the texts raised an exception.
pub fn texts(
    functions: &TracebackFunctions,
    checked: &mut CheckedSources,
    traceback: Object<'_, '_>,
) -> Result<Option<Vec<u8>>, Failure> {
    let py = traceback.py();
    let Some(positions) = walk(traceback) else { return Ok(None) };
    if positions.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let is_valid = |text: &Arc<FrameText>| text.source.as_ref().is_some_and(|source| checked.is_current(py, source));
    let texts = match known(&positions).filter(|texts| texts.iter().all(is_valid)) {
        Some(texts) => texts,
        None => {
            checked.forget();
            match ask(functions, traceback, &positions)? {
                Some(texts) => texts,
                None => return Ok(None),
            }
        }
    };
    let mut made = Vec::with_capacity(texts.len().min(64) * 128);
    add_folded(&texts, &mut made);
    Ok(Some(made))
}

/// Adds the texts as `StackSummary.format` does: of many repetitions only the first three are shown.
fn add_folded(texts: &[Arc<FrameText>], to: &mut Vec<u8>) {
    let mut rest = texts;
    while let Some(first) = rest.first() {
        // A frame without a line repeats no other frame, not even itself.
        let count = rest.iter().take_while(|text| text.repeats(first)).count().max(1);
        for text in &rest[..count.min(SHOWN_REPETITIONS)] {
            to.extend_from_slice(text.text.as_bytes());
        }
        if count > SHOWN_REPETITIONS {
            let more = count - SHOWN_REPETITIONS;
            let plural = if more > 1 { "s" } else { "" };
            to.extend_from_slice(format!("  [Previous line repeated {more} more time{plural}]\n").as_bytes());
        }
        rest = &rest[count..];
    }
}

/// The entries of a traceback, outermost first; none for None. `None` if the object is not a traceback.
fn walk(traceback: Object<'_, '_>) -> Option<Vec<Position>> {
    let py = traceback.py();
    let mut positions = Vec::new();
    if traceback.is_none() {
        return Some(positions);
    }
    if !std::ptr::eq(object::class_of(traceback), &raw const ffi::PyTraceBack_Type) {
        return None;
    }
    let mut entry = traceback.as_ptr().cast::<ffi::PyTracebackObject>();
    while !entry.is_null() {
        // SAFETY: a live traceback, whose struct is the same in all supported versions; the next one is a traceback or
        // null. No Python code runs in this loop, so the first traceback keeps all others alive. A frame has a code
        // object, to which the function returns a new reference.
        unsafe {
            let code = Owned::steal(ffi::PyFrame_GetCode((*entry).tb_frame).cast())?;
            let key = PositionKey {
                code: code.bind(py).as_ptr() as usize,
                instruction: (*entry).tb_lasti,
                line: (*entry).tb_lineno,
            };
            positions.push(Position { code, key });
            entry = (*entry).tb_next;
        }
    }
    Some(positions)
}

/// The kept texts of all positions; `None` if one is missing.
fn known(positions: &[Position]) -> Option<Vec<Arc<FrameText>>> {
    let frames = FRAMES.try_read().ok()?;
    let frames = frames.as_ref()?;
    let mut texts: Vec<Arc<FrameText>> = Vec::with_capacity(positions.len());
    for (index, position) in positions.iter().enumerate() {
        let text = match index.checked_sub(1) {
            Some(before) if positions[before].key == position.key => &texts[before],
            _ => frames.texts.get(&position.key)?,
        };
        let text = text.clone();
        texts.push(text);
    }
    Some(texts)
}

/// Lets Python make the texts of all frames, and keeps them. `None` if a text cannot be encoded.
#[cold]
#[inline(never)]
fn ask(
    functions: &TracebackFunctions,
    traceback: Object<'_, '_>,
    positions: &[Position],
) -> Result<Option<Vec<Arc<FrameText>>>, Failure> {
    let py = traceback.py();
    let answer = leaving::call_with(functions.frame_texts.bind(py), traceback).ok_or_else(|| Failure::of_error(py))?;
    let answer = answer.bind(py);
    let made = answer.cast::<pyo3::types::PyList>().map_err(|_| Failure::Stock)?;
    if made.len() != positions.len() {
        return Ok(None);
    }
    let mut sources: Vec<(Owned, Option<Arc<FrameSource>>)> = Vec::new();
    let mut texts = Vec::with_capacity(positions.len());
    for (made, position) in made.iter().zip(positions) {
        let Some([text, line, entry]) = object::tuple_items(made.as_borrowed()) else { return Ok(None) };
        let Some(text) = object::text(*text) else { return Ok(None) };
        let attribute = |name| object::attribute(position.code.bind(py), name).ok_or(Failure::Stock);
        let (filename, name) = (attribute(&names().co_filename)?, attribute(&names().co_name)?);
        if !object::is_exact_str(filename.bind(py)) || !object::is_exact_str(name.bind(py)) {
            return Ok(None);
        }
        let found = sources.iter().find(|(known, _)| known.as_ptr() == filename.as_ptr());
        let source = match found {
            Some((_, source)) => source.clone(),
            None => {
                let source = source(functions, filename.bind(py), *entry);
                sources.push((filename.clone_ref(py), source.clone()));
                source
            }
        };
        let code = position.code.clone_ref(py);
        let text = text.to_owned();
        texts.push(Arc::new(FrameText { _code: code, text, filename, name, line: small_int(*line), source }));
    }
    keep(positions, &texts);
    Ok(Some(texts))
}

/// The source of a file name whose lines came from this entry; the known source if it has the same entry.
fn source(functions: &TracebackFunctions, filename: Object<'_, '_>, entry: Object<'_, '_>) -> Option<Arc<FrameSource>> {
    let name = object::text(filename)?;
    let known = {
        let frames = FRAMES.try_read().ok()?;
        frames.as_ref().and_then(|frames| frames.sources.get(name).cloned())
    };
    if let Some(known) = known
        && known.has_entry(entry)
    {
        return Some(known);
    }
    let made = Arc::new(FrameSource::new(functions, filename, entry)?);
    // Dropped after the lock is released.
    let gone = {
        let mut frames = FRAMES.try_write().ok()?;
        frames.get_or_insert_default().put_source(name, made.clone())
    };
    drop(gone);
    Some(made)
}

fn keep(positions: &[Position], texts: &[Arc<FrameText>]) {
    // Dropped after the lock is released.
    let mut gone = Vec::new();
    let mut full = None;
    if let Ok(mut frames) = FRAMES.try_write() {
        let frames = frames.get_or_insert_default();
        if frames.texts.len() + texts.len() > MAX_FRAMES {
            full = Some(std::mem::take(frames));
        }
        for (position, text) in positions.iter().zip(texts) {
            if text.source.is_some() {
                gone.push(frames.texts.insert(position.key, text.clone()));
            }
        }
    }
    drop((gone, full));
}
