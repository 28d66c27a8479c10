//! Adoption: a service takes over the records that dead processes left for it, without a connection. It also delivers
//! the other records of these processes.
//!
//! Adoption is a recovery with three differences:
//! - Records for the service are passed to it inside this process.
//! - If the service runs as root, it may read the folders of other users. It opens no path and no address that a
//!   segment of another user names; it takes all records of that segment itself.
//! - Adoption runs repeatedly, so the adopter decides which orphans it has already seen and skips.

use std::io;
use std::path::Path;

use logspool_sys::folder::Folder;

use super::adopter::Adopter;
use super::file_action::{FileAction, RecoverOptions, Undeliverable};
use super::report::Report;
use super::run;

/// Delivers the records that dead processes left in `folder`, and removes files that hold nothing undelivered. Records
/// for terminals and pipes are dropped, and the report counts them.
///
/// Blocks while files and services accept the records. Skips orphans that another process is recovering.
///
/// # Errors
///
/// Returns an error if the folder is missing, cannot be read or is accessible to others. Also returns an error if it
/// belongs to a user whom this process does not serve.
pub fn adopt(folder: &Path, adopter: &dyn Adopter) -> io::Result<Report> {
    let folder = Folder::open_of_any_user(folder)?;
    let options = RecoverOptions { undeliverable: Undeliverable::Discard };
    let is_own = folder.is_own();
    let action_for = |place: &Path| if is_own { adopter.action(place) } else { FileAction::Take };
    run::run(&folder, action_for, options, Some(adopter))
}

/// Checks that a folder can be adopted, with the same rules as [`adopt`].
///
/// # Errors
///
/// Returns the errors of [`adopt`].
pub fn check(folder: &Path) -> io::Result<()> {
    Folder::open_of_any_user(folder).map(|_| ())
}
