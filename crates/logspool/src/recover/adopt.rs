//! Adoption: a service takes over the records that dead processes left for it, without a connection. It also delivers
//! their other records for them.
//!
//! Adoption is a recovery with three differences:
//! - Records for the service are passed to it inside this process.
//! - As root it may read the folders of other users. It opens no path and no address that such a segment names; the
//!   service takes all records itself.
//! - It runs repeatedly, so the adopter decides which orphans it has already seen and skips.

use std::io;
use std::path::Path;

use logspool_sys::folder::Folder;

use super::Report;
use super::run::{self, Options, Undeliverable, Want};
use crate::sink::{Mark, Stream};

/// A service that adopts orphans.
pub trait Adopter {
    /// Whether to process the orphan with this name, see [`Kept::name`](super::Kept::name).
    fn looks_at(&self, name: &str) -> bool;

    /// What to do with records for a file or service, for orphans of this user. Records of other users' orphans are
    /// always taken.
    fn want(&self, place: &Path) -> Want;

    /// Takes records, and returns when they are safe. The same records come again, under the same numbers, if this
    /// process or the next one dies before their arrival is noted.
    ///
    /// # Errors
    ///
    /// When the records are not safe. They come again with a later adoption.
    fn take(&self, taken: &Taken<'_>) -> io::Result<()>;
}

/// Records of one sink, passed to the service.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
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

impl<'a> Taken<'a> {
    /// Iterates over the records, each with its mark.
    pub fn records(&self) -> impl Iterator<Item = (&'a [u8], &'a Mark)> {
        let Self { bytes, marks, .. } = *self;
        let starts = std::iter::once(0).chain(marks.iter().map(|mark| mark.end as usize));
        starts.zip(marks).map(move |(start, mark)| (&bytes[start..mark.end as usize], mark))
    }
}

/// Delivers the records that dead processes left in `folder`, and removes files that hold nothing undelivered. Records
/// for terminals and pipes are dropped, and counted in the report.
///
/// Blocks while files and services accept the records. Skips orphans that another process is recovering.
///
/// # Errors
///
/// When the folder is missing, cannot be read, is accessible to others, or belongs to a user whom this process does not
/// serve.
pub fn adopt(folder: &Path, adopter: &dyn Adopter) -> io::Result<Report> {
    let folder = Folder::open_of_any_user(folder)?;
    let options = Options { undeliverable: Undeliverable::Discard };
    let is_own = folder.is_own();
    let want = |place: &Path| if is_own { adopter.want(place) } else { Want::Take };
    run::run(&folder, want, options, Some(adopter))
}

/// Checks that a folder can be adopted, with the same rules as [`adopt`].
///
/// # Errors
///
/// As for [`adopt`].
pub fn check(folder: &Path) -> io::Result<()> {
    Folder::open_of_any_user(folder).map(|_| ())
}
