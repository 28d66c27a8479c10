//! The three kinds of databases of the store: what is in them, and how they are opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::{MEND_DAMAGE, failed};
use super::read_only;
use crate::cancel::Until;
use crate::stores::{StoreError, private};

/// The schema that is written, in `user_version`. Files of an older one are read; a newer one is refused.
pub(super) const VERSION: i64 = 1;

/// How long a connection waits for the lock of another. The store's own never hold one so long; a person with
/// `sqlite3` may.
const BUSY: Duration = Duration::from_secs(5);

/// Steps of SQLite's machine between two looks at the clock: far less than a millisecond.
const STEPS: i32 = 5_000;

/// Columns of a record, in the order in which they are written and read.
pub(super) const COLUMNS: &str = "time_ns, level, logger, message, file, line, function, host, process, process_name, \
                                  thread, thread_name, task, trace_id, span_id, exception, stack, fields";

/// How many they are.
pub(super) const COLUMN_COUNT: usize = 18;

/// What a database is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The records of a day.
    Day,
    /// What speeds up the search in one of them.
    Index,
    /// Which files there are.
    Catalog,
}

impl Kind {
    /// Tells files of the store from others; the numbers are letters: "lsD1" and so on.
    fn application_id(self) -> i64 {
        match self {
            Self::Day => 0x6c73_4431,
            Self::Index => 0x6c73_4931,
            Self::Catalog => 0x6c73_4331,
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Self::Day => {
                "CREATE TABLE records(id INTEGER PRIMARY KEY, time_ns INTEGER, level INTEGER, logger TEXT, message TEXT,
                     file TEXT, line INTEGER, function TEXT, host TEXT, process INTEGER, process_name TEXT,
                     thread INTEGER, thread_name TEXT, task TEXT, trace_id TEXT, span_id TEXT, exception TEXT,
                     stack TEXT, fields TEXT);
                 CREATE INDEX records_by_time ON records(time_ns);
                 CREATE TABLE rollup(minute INTEGER, logger TEXT, level INTEGER, count INTEGER,
                     PRIMARY KEY(minute, logger, level)) WITHOUT ROWID;
                 CREATE TABLE streams(stream TEXT PRIMARY KEY, epoch INTEGER, last INTEGER, seen_ns INTEGER)
                     WITHOUT ROWID;
                 CREATE TABLE quarantine(id INTEGER PRIMARY KEY, received_ns INTEGER, reason TEXT, record TEXT);
                 CREATE TABLE file_state(one INTEGER PRIMARY KEY CHECK(one = 1), identity INTEGER, sequence INTEGER,
                     ready INTEGER, sealed INTEGER, min_time_ns INTEGER, max_time_ns INTEGER, rows INTEGER);"
            }
            // No column has a name of the records' table: both stand in one statement.
            Self::Index => {
                "CREATE VIRTUAL TABLE words USING fts5(word, content='', columnsize=0, detail=none, tokenize='ascii');
                 CREATE TABLE by_trace(of_trace TEXT, record INTEGER, PRIMARY KEY(of_trace, record)) WITHOUT ROWID;
                 CREATE TABLE by_logger(of_logger TEXT, of_level INTEGER, at_ns INTEGER, record INTEGER,
                     PRIMARY KEY(of_logger, of_level, at_ns, record)) WITHOUT ROWID;
                 CREATE TABLE progress(one INTEGER PRIMARY KEY CHECK(one = 1), identity INTEGER, indexed_to INTEGER,
                     finished INTEGER);"
            }
            Self::Catalog => {
                "CREATE TABLE files(sequence INTEGER PRIMARY KEY, name TEXT UNIQUE, sealed INTEGER,
                     min_time_ns INTEGER, max_time_ns INTEGER, rows INTEGER);"
            }
        }
    }

    /// What a connection that writes sets; a catalog keeps SQLite's old journal, so that readers find one file.
    fn pragmas(self) -> &'static str {
        match self {
            // Chosen: 16 MiB between checkpoints, so that pages that change often are copied once; a kill leaves so
            // much to read at the next start.
            Self::Day => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4096;
                 PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;"
            }
            // NORMAL: after a power cut the last steps are missing, as a whole, and made again.
            Self::Index => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096;
                 PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;"
            }
            Self::Catalog => "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;",
        }
    }
}

/// Opens a database to write many records; one that is new is empty.
pub(super) fn open(kind: Kind, path: &Path) -> Result<Connection, StoreError> {
    let connection = open_as_is(kind, path)?;
    connection.execute_batch(kind.pragmas()).map_err(|error| failed("open", path, &error))?;
    Ok(connection)
}

/// Opens a database to write, in the mode in which it is. A new one is made for those who may read the folder; SQLite
/// gives its log and journal the same rights.
pub(super) fn open_as_is(kind: Kind, path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    // First of all: nothing is changed in a file of somebody else.
    has_schema(kind, &connection, path)?;
    Ok(connection)
}

/// Opens a database to write, whatever it is.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    private::make_file_as_folder(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    };
    open().map_err(|error| failed("open", path, &error))
}

/// Opens a database to read, beside one that writes. A statement fails when its time is over.
///
/// SQLite may write, if the system lets it: what a process that was killed left half-way can only be read once it is
/// taken in, or back. Where nothing can be written it is read all the same.
pub(super) fn open_read(kind: Kind, path: &Path, until: Option<&Until>) -> Result<Connection, StoreError> {
    let usual = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    };
    let open = |connect: &dyn Fn() -> rusqlite::Result<Connection>| -> rusqlite::Result<(Connection, Schema)> {
        let mut connection = connect()?;
        connection.pragma_update(None, "query_only", true)?;
        // A log that a killed process left is the writer's to take in: it looks for damage first.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if let Some(until) = until.cloned() {
            connection.progress_handler(STEPS, Some(move || until.is_over()))?;
        }
        let schema = schema(kind, &connection)?;
        Ok((connection, schema))
    };
    let opened = open(&usual).or_else(|error| match read_only::connection(path, &error) {
        Some(connect) => open(&*connect),
        None => Err(error),
    });
    let (connection, schema) = opened.map_err(|error| failed("read", path, &error))?;
    if schema == Schema::None {
        return Err(StoreError::Fatal(format!("cannot read {}: {}; {MEND_DAMAGE}", path.display(), emptiness(path))));
    }
    schema.check(path)?;
    Ok(connection)
}

/// What is said of a database without tables.
pub(super) fn emptiness(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(found) if found.len() > 0 => "it has no tables".to_owned(),
        _ => "it is empty".to_owned(),
    }
}

/// Whether a day's file has all tables with all columns; the error says what is missing.
pub(super) fn check_tables(connection: &Connection) -> rusqlite::Result<()> {
    for (columns, table) in [
        (COLUMNS, "records"),
        ("minute, logger, level, count", "rollup"),
        ("stream, epoch, last, seen_ns", "streams"),
        ("received_ns, reason, record", "quarantine"),
    ] {
        // It is read as far as it is understood, and not run.
        connection.prepare(&format!("SELECT {columns} FROM {table}"))?;
    }
    Ok(())
}

/// Makes the tables, within the transaction of the caller.
pub(super) fn create_schema(kind: Kind, connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(kind.schema())?;
    connection.pragma_update(None, "application_id", kind.application_id())?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Whether the tables are there; an error where they are of something else.
pub(super) fn has_schema(kind: Kind, connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    let schema = schema(kind, connection).map_err(|error| failed("read", path, &error))?;
    schema.check(path)?;
    Ok(schema == Schema::Ours)
}

/// Whose tables a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// There are none.
    None,
    /// Those that are known here.
    Ours,
    /// Those of a newer logspool, with this version.
    Newer(i64),
    /// Those of another program.
    Foreign,
}

impl Schema {
    fn check(self, path: &Path) -> Result<(), StoreError> {
        self.problem(path).map_or(Ok(()), |why| Err(StoreError::Fatal(why)))
    }

    /// Why a database with such tables cannot be used, with the mend.
    pub fn problem(self, path: &Path) -> Option<String> {
        let path = path.display();
        match self {
            Self::None | Self::Ours => None,
            Self::Newer(version) => Some(format!(
                "cannot use {path}: its schema is {version}, this logspool knows {VERSION}; use a newer logspool, or \
                 another folder"
            )),
            Self::Foreign => Some(format!("cannot use {path}: it is the database of another program; move it away")),
        }
    }
}

/// Looks whose tables a database has.
pub(super) fn schema(kind: Kind, connection: &Connection) -> rusqlite::Result<Schema> {
    let tables: i64 = connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let id: i64 = connection.query_one("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = connection.query_one("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(match tables {
        0 => Schema::None,
        _ if id != kind.application_id() => Schema::Foreign,
        _ if version > VERSION => Schema::Newer(version),
        _ => Schema::Ours,
    })
}
