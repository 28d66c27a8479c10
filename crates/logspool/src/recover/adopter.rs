//! The interface of a service that adopts orphans, and the records that are passed to it.

use std::io;
use std::path::Path;

use super::file_action::FileAction;
use crate::sink::{Mark, Stream};

/// A service that adopts orphans.
pub trait Adopter {
    /// Whether to process the orphan with this name, see [`Kept::name`](super::Kept::name).
    fn looks_at(&self, name: &str) -> bool;

    /// What to do with records for a file or service, for orphans of this user. Records of other users' orphans are
    /// always taken.
    fn action(&self, place: &Path) -> FileAction;

    /// Takes records, and returns when they are safe. The same records come again, under the same numbers, if this
    /// process or the next one dies before their arrival is noted.
    ///
    /// # Errors
    ///
    /// When the records are not safe. They come again with a later adoption.
    fn take(&self, taken: &AdoptedRecords<'_>) -> io::Result<()>;
}

/// Records of one sink, passed to the service.
#[derive(Debug, Clone, Copy)]
pub struct AdoptedRecords<'a> {
    /// Destination that the dead process configured: the path of a file, or the address of a service.
    pub place: &'a Path,
    /// Stream of the records. Stream and number together identify a record.
    pub stream: Stream,
    /// Number of the first record.
    pub first: u64,
    /// Forward entries if `place` is a service, lines if it is a file.
    pub bytes: &'a [u8],
    /// End of each record in `bytes`. Never empty.
    pub marks: &'a [Mark],
}

impl<'a> AdoptedRecords<'a> {
    /// Iterates over the records, each with its mark.
    pub fn records(&self) -> impl Iterator<Item = (&'a [u8], &'a Mark)> {
        let Self { bytes, marks, .. } = *self;
        let starts = std::iter::once(0).chain(marks.iter().map(|mark| mark.end as usize));
        starts.zip(marks).map(move |(start, mark)| (&bytes[start..mark.end as usize], mark))
    }
}
