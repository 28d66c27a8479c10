//! Adoption: a service takes what dead processes left for it, without a connection, and delivers the rest for them.
//!
//! It is a recovery with three differences. Records for the service are handed to it in this process. It may look into
//! folders of other users, as root: no path or address that stands in such a segment is opened, the service takes
//! everything itself. And it looks again and again, so it says which orphans it has seen and has to leave.

use std::io;
use std::path::Path;

use logspool_sys::folder::Folder;

use super::adopter::Adopter;
use super::report::Report;
use super::run;
use super::want::{Options, Undeliverable, Want};

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
