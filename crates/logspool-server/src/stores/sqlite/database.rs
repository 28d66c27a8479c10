//! The store's three kinds of databases: their schemas, and how they are opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::{REPAIR_DAMAGE, failed};
use super::read_only;
use crate::cancel::QueryDeadline;
use crate::stores::{StoreError, private};

/// How long a connection waits for the lock of another connection. The store's own connections hold locks for a shorter
/// time. A person with `sqlite3` may hold a lock for longer.
const BUSY: Duration = Duration::from_secs(5);

/// Number of steps of SQLite's virtual machine between two checks of the deadline. They take far less than a
/// millisecond.
const STEPS: i32 = 5_000;

/// The columns of a record, in the order in which they are written and read.
pub(super) const COLUMNS: &str = "time_ns, level, logger, message, file, line, function, host, process, process_name, \
                                  thread, thread_name, task, trace_id, span_id, exception, stack, fields, arrived_ns";

/// The only column of a record that day files of version 1 do not have.
const ADDED_BY_2: &str = "arrived_ns";

/// The columns of a stream. Day files before version 3 do not have the last two.
pub(super) const STREAM_COLUMNS: &str = "stream, epoch, last, seen_ns, gaps, ended";

/// Number of columns of a record.
pub(super) const COLUMN_COUNT: usize = 19;

/// The purpose of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseKind {
    /// The records of a day.
    Day,
    /// The search index of one day file.
    Index,
    /// The list of files.
    Catalog,
}

impl DatabaseKind {
    /// Distinguishes files of the store from others. The numbers are four ASCII characters: "lsD1", "lsI1" and "lsC1".
    fn application_id(self) -> i64 {
        match self {
            Self::Day => 0x6c73_4431,
            Self::Index => 0x6c73_4931,
            Self::Catalog => 0x6c73_4331,
        }
    }

    /// The schema version of new files, stored in `user_version`. Older versions are read; newer ones are refused.
    /// Version 2 of day files added the time of arrival, and version 3 the gaps and the end of a stream.
    pub(super) fn version(self) -> i64 {
        match self {
            Self::Day => 3,
            Self::Index | Self::Catalog => 1,
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Self::Day => {
                "CREATE TABLE records(id INTEGER PRIMARY KEY, time_ns INTEGER, arrived_ns INTEGER, level INTEGER,
                     logger TEXT, message TEXT, file TEXT, line INTEGER, function TEXT, host TEXT, process INTEGER, process_name TEXT,
                     thread INTEGER, thread_name TEXT, task TEXT, trace_id TEXT, span_id TEXT, exception TEXT,
                     stack TEXT, fields TEXT);
                 CREATE INDEX records_by_time ON records(time_ns);
                 CREATE TABLE rollup(minute INTEGER, logger TEXT, level INTEGER, count INTEGER,
                     PRIMARY KEY(minute, logger, level)) WITHOUT ROWID;
                 CREATE TABLE streams(stream TEXT PRIMARY KEY, epoch INTEGER, last INTEGER, seen_ns INTEGER, gaps TEXT,
                     ended INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
                 CREATE INDEX streams_with_gaps ON streams(gaps) WHERE gaps IS NOT NULL;
                 CREATE TABLE quarantine(id INTEGER PRIMARY KEY, received_ns INTEGER, reason TEXT, record TEXT);
                 CREATE TABLE file_state(one INTEGER PRIMARY KEY CHECK(one = 1), identity INTEGER, sequence INTEGER,
                     ready INTEGER, sealed INTEGER, min_time_ns INTEGER, max_time_ns INTEGER, rows INTEGER);"
            }
            // No column has the name of a column of `records`, because one statement uses both tables.
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

    /// The settings of a connection that writes. The catalog uses SQLite's rollback journal instead of a log, so that
    /// readers need only one file.
    fn pragmas(self) -> &'static str {
        match self {
            // Chosen: with 16 MiB between checkpoints, a page that changes often is copied only once. A larger value
            // would make the next start after a kill read more.
            Self::Day => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4096;
                 PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;"
            }
            // NORMAL: a power cut may lose the last steps of indexing. A step is lost as a whole, and the indexer
            // repeats it.
            Self::Index => {
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096;
                 PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;"
            }
            Self::Catalog => "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;",
        }
    }
}

/// Opens a database to write many records, with the settings of its kind. A new database has no tables.
pub(super) fn open(kind: DatabaseKind, path: &Path) -> Result<Connection, StoreError> {
    let connection = open_as_is(kind, path)?;
    connection.execute_batch(kind.pragmas()).map_err(|error| failed("open", path, &error))?;
    Ok(connection)
}

/// Opens a database for writing and keeps its journal mode. A new database can be read by the readers of the folder.
/// SQLite gives its log and journal the same permissions.
pub(super) fn open_as_is(kind: DatabaseKind, path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path)?;
    // Check first, so that another program's file is not changed.
    has_schema(kind, &connection, path)?;
    Ok(connection)
}

/// Opens a database for writing without checking its schema.
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

/// Opens a database for reading. Another process may be writing to it. Statements fail after the deadline `until`.
///
/// The connection is opened read-write if the system allows it, because SQLite has to recover the log or journal of a
/// killed process before it can read. If the system does not allow writing, the database is opened as described in
/// [`read_only`].
pub(super) fn open_read(
    kind: DatabaseKind,
    path: &Path,
    until: Option<&QueryDeadline>,
) -> Result<Connection, StoreError> {
    let usual = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    };
    let open = |connect: &dyn Fn() -> rusqlite::Result<Connection>| -> rusqlite::Result<(Connection, Schema)> {
        let mut connection = connect()?;
        let schema = schema(kind, &connection)?;
        if kind == DatabaseKind::Day && schema == Schema::Ours && version(&connection)? < 2 {
            show_as_version_2(&connection)?;
        }
        connection.pragma_update(None, "query_only", true)?;
        // Only the writer checkpoints the log of a killed process, because it checks the log for damage first.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if let Some(until) = until.cloned() {
            connection.progress_handler(STEPS, Some(move || until.has_passed()))?;
        }
        Ok((connection, schema))
    };
    let opened = open(&usual).or_else(|error| match read_only::connection(path, &error) {
        Some(connect) => open(&*connect),
        None => Err(error),
    });
    let (connection, schema) = opened.map_err(|error| failed("read", path, &error))?;
    if schema == Schema::None {
        return Err(StoreError::Fatal(format!("cannot read {}: {}; {REPAIR_DAMAGE}", path.display(), emptiness(path))));
    }
    schema.check(path)?;
    Ok(connection)
}

/// The reason why a database without tables cannot be used.
pub(super) fn emptiness(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(found) if found.len() > 0 => "it has no tables".to_owned(),
        _ => "it is empty".to_owned(),
    }
}

/// Checks that a day file has all tables with all columns. The error names the missing table or column.
pub(super) fn check_tables(connection: &Connection) -> rusqlite::Result<()> {
    let without_new = COLUMNS.strip_suffix(ADDED_BY_2).map_or(COLUMNS, |columns| columns.trim_end_matches(", "));
    let version = version(connection)?;
    for (columns, table) in [
        (if version < 2 { without_new } else { COLUMNS }, "records"),
        ("minute, logger, level, count", "rollup"),
        (if version < 3 { "stream, epoch, last, seen_ns" } else { STREAM_COLUMNS }, "streams"),
        ("received_ns, reason, record", "quarantine"),
    ] {
        // The statement is compiled, not run.
        connection.prepare(&format!("SELECT {columns} FROM {table}"))?;
    }
    Ok(())
}

/// Creates the tables in the caller's transaction.
pub(super) fn create_schema(kind: DatabaseKind, connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(kind.schema())?;
    connection.pragma_update(None, "application_id", kind.application_id())?;
    connection.pragma_update(None, "user_version", kind.version())
}

/// Adds the columns of newer versions to an older day file, in one transaction. SQLite changes the definitions of the
/// tables only, so this takes the same time for a large file.
pub(super) fn update_day_file(connection: &Connection) -> rusqlite::Result<()> {
    let version = version(connection)?;
    if version == DatabaseKind::Day.version() {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if version < 2 {
        connection.execute_batch(&format!("ALTER TABLE records ADD COLUMN {ADDED_BY_2} INTEGER"))?;
    }
    connection.execute_batch(
        "ALTER TABLE streams ADD COLUMN gaps TEXT;
         ALTER TABLE streams ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
         CREATE INDEX streams_with_gaps ON streams(gaps) WHERE gaps IS NOT NULL;",
    )?;
    connection.pragma_update(None, "user_version", DatabaseKind::Day.version())?;
    connection.execute_batch("COMMIT")
}

/// Hides the table `records` of an older day file behind a view of the same name with the columns of version 2. The
/// view belongs to the connection, so the file does not change, and queries still use the indexes of the table.
fn show_as_version_2(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch(&format!("CREATE TEMP VIEW records AS SELECT *, NULL AS {ADDED_BY_2} FROM main.records"))
}

/// The schema version of a file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_one("PRAGMA main.user_version", [], |row| row.get(0))
}

/// True if the tables exist. Fails if the tables belong to another program or to a newer version.
pub(super) fn has_schema(kind: DatabaseKind, connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    let schema = schema(kind, connection).map_err(|error| failed("read", path, &error))?;
    schema.check(path)?;
    Ok(schema == Schema::Ours)
}

/// The owner of a database's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schema {
    /// There are no tables.
    None,
    /// The tables have a version that this logspool supports.
    Ours,
    /// The tables belong to a newer logspool.
    Newer { version: i64, supported: i64 },
    /// The tables belong to another program.
    Foreign,
}

impl Schema {
    fn check(self, path: &Path) -> Result<(), StoreError> {
        self.problem(path).map_or(Ok(()), |why| Err(StoreError::Fatal(why)))
    }

    /// The reason why a database with these tables cannot be used, and how to repair it. `None`: it can be used.
    pub fn problem(self, path: &Path) -> Option<String> {
        let path = path.display();
        match self {
            Self::None | Self::Ours => None,
            Self::Newer { version, supported } => Some(format!(
                "cannot use {path}: its schema has version {version}, this logspool supports {supported}; use a \
                 newer logspool, or \
                 another folder"
            )),
            Self::Foreign => Some(format!("cannot use {path}: it belongs to another program; move it away")),
        }
    }
}

/// Finds the owner of a database's tables.
pub(super) fn schema(kind: DatabaseKind, connection: &Connection) -> rusqlite::Result<Schema> {
    let tables: i64 = connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let id: i64 = connection.query_one("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = connection.query_one("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(match tables {
        0 => Schema::None,
        _ if id != kind.application_id() => Schema::Foreign,
        _ if version > kind.version() => Schema::Newer { version, supported: kind.version() },
        _ => Schema::Ours,
    })
}
