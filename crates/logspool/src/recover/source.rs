//! Definitions and large records of an orphan, for whoever renders its records.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};

use logspool_lanes::blob::MAX_BLOB_BYTES;
use logspool_lanes::segment::layout::{DEFINITION_BYTES, Table};
use logspool_record::Values;
use logspool_sys::folder::Folder;

use super::claim::Claim;
use super::image::Image;
use super::walk::Damage;
use crate::render::Definitions;

/// Bytes of definitions that are read: whoever renders keeps each of them.
///
/// Chosen: twice what a segment holds, since an id may be met again after another one had its place; in a hostile one
/// thousands of ids may share a definition.
const MAX_DEFINITION_BYTES: u64 = 2 * DEFINITION_BYTES;

/// See the file head.
pub struct Source<'a> {
    folder: &'a Folder,
    claim: &'a Claim<'a>,
    image: &'a Image,
    /// Bytes of definitions that were read.
    definition_bytes: Cell<u64>,
    /// Blobs that were read: each belongs to one record.
    read: RefCell<HashSet<u64>>,
    /// Why the last record cannot be read now, though it may be there.
    error: RefCell<Option<io::Error>>,
}

impl<'a> Source<'a> {
    /// Of the orphan that `claim` has, whose segment is `image`.
    pub fn new(folder: &'a Folder, claim: &'a Claim<'a>, image: &'a Image) -> Self {
        let definition_bytes = Cell::new(0);
        Self { folder, claim, image, definition_bytes, read: RefCell::default(), error: RefCell::default() }
    }

    /// What kept a record from being read since this was asked last. Damage does not count.
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

impl Definitions for Source<'_> {
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
