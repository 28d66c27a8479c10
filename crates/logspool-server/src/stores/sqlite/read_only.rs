//! Opens databases in places where this process cannot write: on a disk mounted read-only, or in a folder of another
//! user.
//!
//! SQLite normally creates a shared-memory file next to a database that has a log. If it cannot, this module assumes
//! that no process on this machine writes to the database, and reads it without the shared-memory file. A database
//! without a log is opened as immutable. For a database with a log, the index of the log is kept in this process's
//! memory.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Result};
use rustix::fs::{Access, access};

/// Returns another way to open a database for reading, after the usual way failed with `error`. `None`: the error has a
/// cause that this module cannot avoid.
pub(super) fn connection(path: &Path, error: &Error) -> Option<Box<dyn Fn() -> Result<Connection>>> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let may_be = matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly));
    // If this process can write to the folder, another process may be writing the database, so locks are needed.
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
            // With the VFS `unix-none`, which has no locks, and in exclusive mode, SQLite keeps the log's index in
            // memory. Otherwise it would use a shared file.
            let connection = Connection::open_with_flags_and_vfs(&path, flags, "unix-none")?;
            connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
            Ok(connection)
        })
    } else {
        let address = immutable(&path);
        Box::new(move || Connection::open_with_flags(&address, flags | OpenFlags::SQLITE_OPEN_URI))
    })
}

/// The SQLite URI that opens a file as immutable.
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
    fn every_path_can_be_part_of_an_address() {
        assert_eq!("file:/a/b%20c%3Fd%23%25.x?immutable=1", immutable(Path::new("/a/b c?d#%.x")));
    }
}
