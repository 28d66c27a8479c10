//! The bytes of a simulated file, and a hash of these bytes.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// The bytes of a simulated file, with a cached hash. Files share a `Content` through `Rc`.
#[derive(Debug, Clone, Default)]
pub struct Content {
    bytes: Vec<u8>,
    /// The cached hash; `None` until it is asked for and after each change.
    hash: Cell<Option<u32>>,
}

impl Content {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, hash: Cell::new(None) }
    }

    /// Writes a piece at `offset`; zeros fill a gap before it.
    pub fn put(&mut self, offset: usize, piece: &[u8]) {
        self.hash.set(None);
        if self.bytes.len() < offset {
            self.bytes.resize(offset, 0);
        }
        let (over, behind) = piece.split_at(piece.len().min(self.bytes.len() - offset));
        self.bytes[offset..offset + over.len()].copy_from_slice(over);
        self.bytes.extend_from_slice(behind);
    }

    /// A hash of the bytes: equal for equal bytes, and mostly different for different bytes.
    pub fn hash(&self) -> u32 {
        let hash = self.hash.get().unwrap_or_else(|| crc32c::crc32c(&self.bytes));
        self.hash.set(Some(hash));
        hash
    }
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether two files hold the same bytes.
pub fn is_same(one: &Rc<Content>, other: &Rc<Content>) -> bool {
    Rc::ptr_eq(one, other) || one.hash() == other.hash() && one.bytes == other.bytes
}
