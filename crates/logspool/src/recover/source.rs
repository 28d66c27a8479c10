//! Reads definitions and large records of an orphan for the renderer.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};

use logspool_lanes::blob::MAX_BLOB_BYTES;
use logspool_lanes::segment::layout::{DEFINITION_BYTES, Table};
use logspool_record::Values;
use logspool_sys::folder::Folder;

use super::claim::Claim;
use super::damage::Damage;
use super::image::Image;
use crate::render::Definitions;

/// Maximum number of bytes of definitions that are read. The renderer keeps each definition in memory.
///
/// Chosen: it is twice the capacity of a segment, since an id can recur after another id had its slot. In a hostile
/// segment thousands of ids may share a definition.
const MAX_DEFINITION_BYTES: u64 = 2 * DEFINITION_BYTES;

/// Definitions and large records of one orphan, which the renderer asks for.
pub struct OrphanSource<'a> {
    folder: &'a Folder,
    claim: &'a Claim<'a>,
    image: &'a Image,
    /// Number of bytes of definitions that were read until now.
    definition_bytes: Cell<u64>,
    /// Numbers of the blobs that were read until now. Each blob belongs to one record only.
    read: RefCell<HashSet<u64>>,
    /// Transient error due to which the last record could not be read.
    error: RefCell<Option<io::Error>>,
}

impl<'a> OrphanSource<'a> {
    /// Makes a source for the orphan of `claim`, whose segment is `image`.
    pub fn new(folder: &'a Folder, claim: &'a Claim<'a>, image: &'a Image) -> Self {
        let definition_bytes = Cell::new(0);
        Self { folder, claim, image, definition_bytes, read: RefCell::default(), error: RefCell::default() }
    }

    /// Returns and clears the transient error due to which a record could not be read. Damage is no such error.
    pub fn take_error(&self) -> Option<io::Error> {
        self.error.take()
    }

    fn read_blob(&self, number: u64) -> io::Result<Vec<u8>> {
        let file: File = self.folder.open_file(&self.claim.leftover.blob_name(number))?;
        let length = file.metadata()?.len();
        if length > MAX_BLOB_BYTES as u64 || self.read.borrow().contains(&number) {
            return Err(io::Error::from(ErrorKind::InvalidData));
        }
        let mut values = Vec::new();
        file.take(length).read_to_end(&mut values)?;
        self.read.borrow_mut().insert(number);
        Ok(values)
    }
}

impl Definitions for OrphanSource<'_> {
    fn definition(&self, table: Table, id: u32) -> Option<Values<'_>> {
        let items = self.image.definition(table, id)?;
        let bytes = self.definition_bytes.get() + items.rest().len() as u64;
        self.definition_bytes.set(bytes);
        (bytes <= MAX_DEFINITION_BYTES).then_some(items)
    }

    fn blob(&self, number: u64) -> Option<Vec<u8>> {
        Damage::in_read(|| self.read_blob(number)).unwrap_or_else(|error| {
            *self.error.borrow_mut() = Some(error);
            None
        })
    }
}
