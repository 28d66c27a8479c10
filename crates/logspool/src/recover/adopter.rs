//! A service that adopts what dead processes left for it, and the records that it gets.

use std::io;
use std::path::Path;

use super::want::Want;
use crate::sink::{Mark, Stream};

/// A service that adopts.
pub trait Adopter {
    /// Whether to look at the process whose files have this name, see [`Kept::name`](super::Kept::name).
    fn looks_at(&self, name: &str) -> bool;

    /// What becomes of records for a file or a service, of this user's processes. What other users' processes left is
    /// always taken.
    fn want(&self, place: &Path) -> Want;

    /// Takes records, and returns when they are safe. The same ones come again, under the same numbers, where this
    /// process or the next one dies before that was noted.
    ///
    /// # Errors
    ///
    /// They are not safe: they come again with another adoption.
    fn take(&self, taken: &Taken<'_>) -> io::Result<()>;
}

/// Records of one sink, for a service.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// Where they were meant to go: the path of a file, the address of a service.
    pub place: &'a Path,
    /// What tells them from others, with their numbers.
    pub stream: Stream,
    /// Number of the first.
    pub first: u64,
    /// Entries of Forward, where `place` is a service; lines, where it is a file.
    pub bytes: &'a [u8],
    /// Where each ends in `bytes`; never none.
    pub marks: &'a [Mark],
}

impl<'a> Taken<'a> {
    /// The records one by one, each with its mark.
    pub fn records(&self) -> impl Iterator<Item = (&'a [u8], &'a Mark)> {
        let Self { bytes, marks, .. } = *self;
        let starts = std::iter::once(0).chain(marks.iter().map(|mark| mark.end as usize));
        starts.zip(marks).map(move |(start, mark)| (&bytes[start..mark.end as usize], mark))
    }
}
