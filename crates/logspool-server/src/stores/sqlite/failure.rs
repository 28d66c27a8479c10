//! What an error of SQLite means: try again, give up, or one record alone is at fault.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::stores::StoreError;

/// The error of a store, from one of SQLite: what was tried, on which file, why, and the mend.
pub(super) fn failed(tried: &str, path: &Path, error: &Error) -> StoreError {
    let what = format!("cannot {tried} {}: {error}", path.display());
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Fatal(format!("{what}; move the file away")),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Fatal(format!(
            "{what}; move the file away (`sqlite3 FILE .recover` gets out of it what can be read)"
        )),
        Some(ErrorCode::OperationInterrupted) => {
            StoreError::Retry(format!("{what}: it takes too long; ask for less time, or fewer records"))
        }
        _ => StoreError::Retry(what),
    }
}

/// The same for a file that is no database.
pub(super) fn failed_io(tried: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::Retry(format!("cannot {tried} {}: {error}", path.display()))
}

/// Whether the file is damaged.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// Whether the error is that of one record, which would come again with it, and with no other.
pub(super) fn is_of_a_record(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
    )
}
