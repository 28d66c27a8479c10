//! Classifies SQLite errors: retry, fatal, or the fault of a single record.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode};
use rustix::fs::{Access, access};

use crate::stores::StoreError;

/// Advice for messages about a damaged file.
pub(super) const REPAIR_DAMAGE: &str = "restore it from a backup or move it away (`sqlite3 FILE .recover` \
    extracts what can \
                                      be read); all other days remain usable";

/// Turns a SQLite error into a store's error: the operation, the file, the reason and how to repair it.
pub(super) fn failed(tried: &str, path: &Path, error: &Error) -> StoreError {
    let what = format!("cannot {tried} {}: {error}", path.display());
    match error.sqlite_error_code() {
        _ if is_damage(error) => StoreError::Fatal(format!("{what}; {REPAIR_DAMAGE}")),
        Some(ErrorCode::OperationInterrupted) => {
            StoreError::Retry(format!("{what}: it takes too long; use a shorter time range, or fewer records"))
        }
        Some(ErrorCode::DiskFull) => StoreError::Retry(format!("{what}; free disk space, or lower [retention]")),
        Some(ErrorCode::ReadOnly) => StoreError::Retry(format!(
            "{what}; the user of the service has to be allowed to write to the file and its folder, and the disk must \
             not be mounted read-only"
        )),
        // SQLite does not report the reason. Use access(2) to find it. Do not open the file: closing it would release
        // SQLite's locks on it.
        Some(ErrorCode::CannotOpen) => StoreError::Retry(match access(path, Access::READ_OK) {
            Err(error) => format!("cannot {tried} {}: {}", path.display(), io::Error::from(error)),
            Ok(()) => format!("{what}; is its folder writable?"),
        }),
        _ => StoreError::Retry(what),
    }
}

/// Turns an I/O error outside SQLite into a store's error: the operation, the file and the reason.
pub(super) fn failed_io(tried: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::Retry(format!("cannot {tried} {}: {error}", path.display()))
}

/// True if the file is damaged, or its tables differ from the schema.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)) || is_altered(error)
}

/// True if a table or a column is missing. SQLite uses the same code for mistakes in a statement, so the text of the
/// error is checked.
fn is_altered(error: &Error) -> bool {
    let text = match error {
        Error::SqliteFailure(_, Some(text)) => text,
        Error::SqlInputError { msg, .. } => msg,
        _ => return false,
    };
    ["no such table", "no such column", "has no column named"].iter().any(|part| text.contains(part))
}

/// True if one record caused the error: it would recur with this record, but not with other records.
pub(super) fn is_of_a_record(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
    )
}
