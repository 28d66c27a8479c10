//! Definitions and large records of an orphan, for whoever renders its records.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};

use super::claim::Claim;
use super::image::Image;
use super::walk::Damage;
use crate::blob::MAX_BLOB_BYTES;
use crate::record::Values;
use crate::render::Definitions;
use crate::segment::folder::Folder;
use crate::segment::layout::Table;

/// See the file head.
pub struct Source<'a> {
    folder: &'a Folder,
    claim: &'a Claim<'a>,
    image: &'a Image,
    /// Blobs that were read: each belongs to one record.
    read: RefCell<HashSet<u64>>,
    /// Why the last record cannot be read now, though it may be there.
    error: RefCell<Option<io::Error>>,
}

impl<'a> Source<'a> {
    /// Of the orphan that `claim` has, whose segment is `image`.
    pub fn new(folder: &'a Folder, claim: &'a Claim<'a>, image: &'a Image) -> Self {
        Self { folder, claim, image, read: RefCell::default(), error: RefCell::default() }
    }

    /// What kept a record from being read since this was asked last. Damage does not count.
    pub fn take_error(&self) -> Option<io::Error> {
        self.error.take()
    }

    fn read_blob(&self, number: u64) -> io::Result<Vec<u8>> {
        let file: File = self.folder.open_file(&self.claim.leftover.blob_name(number))?;
        let length = file.metadata()?.len();
        if length > MAX_BLOB_BYTES as u64 || !self.read.borrow_mut().insert(number) {
            return Err(io::Error::from(ErrorKind::InvalidData));
        }
        let mut values = Vec::new();
        file.take(length).read_to_end(&mut values)?;
        Ok(values)
    }
}

impl Definitions for Source<'_> {
    fn definition(&self, table: Table, id: u32) -> Option<Values<'_>> {
        self.image.definition(table, id)
    }

    fn blob(&self, number: u64) -> Option<Vec<u8>> {
        match self.read_blob(number) {
            Ok(values) => return Some(values),
            Err(error) if Damage::is_told_by(&error) => {}
            Err(error) => *self.error.borrow_mut() = Some(error),
        }
        None
    }
}
