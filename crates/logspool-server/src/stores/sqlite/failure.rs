//! What an error of SQLite means: try again, give up, or one record alone is at fault.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode};
use rustix::fs::{Access, access};

use crate::stores::StoreError;

/// How a damaged file is mended.
pub(super) const MEND_DAMAGE: &str = "restore it from a backup or move it away (`sqlite3 FILE .recover` extracts what can \
                                      be read); all other days can be read and written meanwhile";

/// The error of a store, from one of SQLite: what was tried, on which file, why, and the mend.
pub(super) fn failed(tried: &str, path: &Path, error: &Error) -> StoreError {
    let what = format!("cannot {tried} {}: {error}", path.display());
    match error.sqlite_error_code() {
        _ if is_damage(error) => StoreError::Fatal(format!("{what}; {MEND_DAMAGE}")),
        Some(ErrorCode::OperationInterrupted) => {
            StoreError::Retry(format!("{what}: it takes too long; ask for less time, or fewer records"))
        }
        Some(ErrorCode::DiskFull) => StoreError::Retry(format!("{what}; make room, or let [retention] keep less")),
        Some(ErrorCode::ReadOnly) => StoreError::Retry(format!(
            "{what}; the user of the service has to be allowed to write to the file and its folder, and the disk must \
             not be mounted read-only"
        )),
        // SQLite does not say why. The file is not opened to find out: closing it would drop SQLite's locks on it.
        Some(ErrorCode::CannotOpen) => StoreError::Retry(match access(path, Access::READ_OK) {
            Err(error) => format!("cannot {tried} {}: {}", path.display(), io::Error::from(error)),
            Ok(()) => format!("{what}; can its folder be written to?"),
        }),
        _ => StoreError::Retry(what),
    }
}

/// The same for a file that is no database.
pub(super) fn failed_io(tried: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::Retry(format!("cannot {tried} {}: {error}", path.display()))
}

/// Whether the file is damaged, or its tables are others than those that were made.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)) || is_altered(error)
}

/// Whether a table or a column is missing: SQLite has one code for this and for mistakes in a statement.
fn is_altered(error: &Error) -> bool {
    let text = match error {
        Error::SqliteFailure(_, Some(text)) => text,
        Error::SqlInputError { msg, .. } => msg,
        _ => return false,
    };
    ["no such table", "no such column", "has no column named"].iter().any(|part| text.contains(part))
}

/// Whether the error is that of one record, which would come again with it, and with no other.
pub(super) fn is_of_a_record(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
    )
}
