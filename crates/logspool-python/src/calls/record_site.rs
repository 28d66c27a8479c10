//! The source locations that records name, for records that were made by `LogRecord` itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use logspool_record::format::CompiledSite;
use pyo3::prelude::*;

use crate::calls::site::Site;
use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Owned};

/// A source location that records name.
pub struct RecordSite {
    /// Held, so that no other object gets the address of the path or the function.
    _texts: [Owned; 2],
    /// The site.
    pub site: Site,
    /// The site with the parts of its path.
    pub compiled: CompiledSite,
}

/// Addresses of path and function, and the line.
type Key = (usize, usize, u32);

static PLACES: Mutex<Option<HashMap<Key, Arc<RecordSite>>>> = Mutex::new(None);

/// Maximum number of places in the map. When the map is full, all places are dropped and created again as needed.
///
/// Chosen: this many places take about 2 MB; programs have a few hundred.
const MAX_PLACES: usize = 4096;

/// The place of a path and a function, exact `str`, and a line.
///
/// # Errors
///
/// [`Failure::Stock`] if a text cannot be encoded.
pub fn find(py: Python<'_>, path: Owned, function: Owned, line: u32) -> Result<Arc<RecordSite>, Failure> {
    let key = (path.as_ptr() as usize, function.as_ptr() as usize, line);
    let known = {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        places.get_or_insert_default().get(&key).cloned()
    };
    // Each place in the map holds the objects whose addresses are its key, so no address is reused.
    if let Some(known) = known {
        return Ok(known);
    }
    let text = |object: &Owned| object::text(object.bind(py)).map(str::to_owned).ok_or(Failure::Stock);
    let site = Site::of_record(text(&path)?, line, text(&function)?);
    let compiled = CompiledSite::new(site.definition().clone());
    let made = Arc::new(RecordSite { _texts: [path, function], site, compiled });
    let gone = {
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let places = places.get_or_insert_default();
        let gone = (places.len() >= MAX_PLACES).then(|| std::mem::take(places));
        places.insert(key, made.clone());
        gone
    };
    drop(gone);
    Ok(made)
}
