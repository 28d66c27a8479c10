//! Adoption: a service takes what dead processes left for it, without a connection, and delivers the rest for them.
//!
//! It is a recovery with three differences. Records for the service are handed to it in this process. It may look into
//! folders of other users, as root: no path or address that stands in such a segment is opened, the service takes
//! everything itself. And it looks again and again, so it says which orphans it has seen and has to leave.

use std::io;
use std::path::Path;

use logspool_sys::folder::Folder;

use super::Report;
use super::run::{self, Options, Undeliverable, Want};
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

/// Delivers what dead processes left in `folder`, and removes what holds nothing any more. Records for terminals and
/// pipes are given up, and counted in the report.
///
/// Blocks for as long as files and services take; passes over what another process recovers.
///
/// # Errors
///
/// When the folder is missing, cannot be read, is open to others, or of a user whom this process does not serve.
pub fn adopt(folder: &Path, adopter: &dyn Adopter) -> io::Result<Report> {
    let folder = Folder::open_of_any_user(folder)?;
    let options = Options { undeliverable: Undeliverable::Discard };
    let is_own = folder.is_own();
    let want = |place: &Path| if is_own { adopter.want(place) } else { Want::Take };
    run::run(&folder, want, options, Some(adopter))
}

/// Looks whether a folder can be adopted, as [`adopt`] does.
///
/// # Errors
///
/// As for [`adopt`].
pub fn check(folder: &Path) -> io::Result<()> {
    Folder::open_of_any_user(folder).map(|_| ())
}
