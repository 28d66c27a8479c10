//! The files of an open database: their sync, whether they are still at their place, and their removal if they are not.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, ffi};

/// Device and inode of a file.
type Identity = (u64, u64);

/// The files of an open database.
#[derive(Debug)]
pub struct DatabaseFiles {
    /// The path that the user gave, which may be a link.
    given: PathBuf,
    /// The path that SQLite uses.
    path: PathBuf,
    database: Option<Identity>,
    log: Option<Identity>,
    index: Option<Identity>,
}

impl DatabaseFiles {
    /// The files of a connection that has read the database.
    pub fn of(connection: &Connection, given: &Path) -> Self {
        let path = connection.path().map_or_else(|| given.to_owned(), PathBuf::from);
        Self {
            given: given.to_owned(),
            database: identity(&path),
            log: identity(&beside(&path, "-wal")),
            index: identity(&beside(&path, "-shm")),
            path,
        }
    }

    /// Whether a reader who opens the path finds what the connection writes.
    pub fn are_in_place(&self, connection: &Connection) -> bool {
        !has_moved(connection)
            && identity(&self.given) == self.database
            && identity(&beside(&self.path, "-wal")) == self.log
    }

    /// Moves what is in the log into the database that the connection has open, wherever it is now. Then removes the
    /// log and its index from the place, so that they are not taken for those of another database there.
    ///
    /// # Errors
    ///
    /// A reader still needs the log, or the error of SQLite. Nothing was removed.
    pub fn leave(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_busy && identity(&beside(&self.path, "-wal")) == self.log {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None));
        }
        // The lock is in the old index. Whoever else removes these files has it, and nobody who has it uses new ones.
        let lock = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (name, identity) in [("-wal", self.log), ("-shm", self.index)] {
            let path = beside(&self.path, name);
            if self::identity(&path) == identity {
                let _ = fs::remove_file(path);
            }
        }
        lock.rollback()
    }
}

/// Makes all commits durable, by a sync of the log and of the folder with the files of the database.
///
/// # Errors
///
/// The error of the system.
pub fn sync(path: &Path) -> io::Result<()> {
    let is_missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
    let path = match fs::canonicalize(path) {
        // Whoever has removed the database wants none of its records.
        Err(error) if is_missing(&error) => return Ok(()),
        path => path?,
    };
    // SQLite has no locks on its log, so opening and closing it here releases none.
    match File::open(beside(&path, "-wal")) {
        Ok(log) => log.sync_data()?,
        // The last checkpoint, which syncs, has removed it.
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error),
    }
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn beside(path: &Path, name: &str) -> PathBuf {
    let mut path: OsString = path.to_owned().into_os_string();
    path.push(name);
    path.into()
}

fn identity(path: &Path) -> Option<Identity> {
    let status: io::Result<_> = fs::metadata(path);
    status.ok().map(|status| (status.dev(), status.ino()))
}

/// Whether the file that the connection has open is not at its path any more.
fn has_moved(connection: &Connection) -> bool {
    let mut moved: libc::c_int = 0;
    // SAFETY: the handle is that of an open connection, and this call writes one int.
    let code = unsafe {
        let moved = (&raw mut moved).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), ffi::SQLITE_FCNTL_HAS_MOVED, moved)
    };
    code == ffi::SQLITE_OK && moved != 0
}
