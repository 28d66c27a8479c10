//! The interface of a service that adopts orphans, and the type of the records that are passed to it.

use std::io;
use std::path::Path;

use super::file_action::FileAction;
use crate::sink::{Mark, Stream};

/// A service that adopts orphans.
pub trait Adopter {
    /// Whether to process the orphan with this name, see [`Kept::name`](super::Kept::name).
    fn looks_at(&self, name: &str) -> bool;

    /// What to do with records for the file or service `place`. It is asked only for orphans of this user. Records of
    /// other users' orphans are always taken.
    fn action(&self, place: &Path) -> FileAction;

    /// Takes records, and returns when they are safe. If this process or the next one dies before their arrival is
    /// noted, the same records are passed again, under the same numbers.
    ///
    /// # Errors
    ///
    /// Returns an error if the records are not safe. A later adoption then passes them again.
    fn take(&self, taken: &AdoptedRecords<'_>) -> io::Result<()>;
}

/// Records of one sink that are passed to the service.
#[derive(Debug, Clone, Copy)]
pub struct AdoptedRecords<'a> {
    /// Destination that the dead process configured: the path of a file, or the address of a service.
    pub place: &'a Path,
    /// Stream of the records. Stream and number together identify one record.
    pub stream: Stream,
    /// Number of the first record in the stream.
    pub first: u64,
    /// The encoded records. They are Forward entries if `place` is a service, and lines if it is a file.
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
