//! Databases in a place where nothing can be written: a disk that is mounted read-only, a folder of somebody else.
//!
//! A database with a log needs a file beside it that all who use it share, and SQLite makes it. Where it cannot, nobody
//! writes to the database here either, so it is read without: as it is where there is no log, else with a copy in memory
//! of what the shared file would have.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Result};
use rustix::fs::{Access, access};

/// Another way to open a database to read, after this error of the usual one; `None`: it was of another kind.
pub(super) fn connection(path: &Path, error: &Error) -> Option<Box<dyn Fn() -> Result<Connection>>> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let may_be = matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    // Anywhere else somebody may write at this moment, and locks are needed.
    if !may_be || !path.exists() || access(folder, Access::WRITE_OK).is_ok() {
        return None;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = PathBuf::from(log).metadata().is_ok_and(|log| log.len() > 0);
    let path = path.to_owned();
    Some(if has_log {
        Box::new(move || {
            // Without locks, and as if nobody else had it open: then what would be shared is in memory.
            let connection = Connection::open_with_flags_and_vfs(&path, flags, "unix-none")?;
            connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
            Ok(connection)
        })
    } else {
        let address = immutable(&path);
        Box::new(move || Connection::open_with_flags(&address, flags | OpenFlags::SQLITE_OPEN_URI))
    })
}

/// The address of a file that nobody changes.
fn immutable(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for byte in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            address.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_part_of_an_address() {
        assert_eq!("file:/a/b%20c%3Fd%23%25.x?immutable=1", immutable(Path::new("/a/b c?d#%.x")));
    }
}
