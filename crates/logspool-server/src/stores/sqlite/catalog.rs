//! The list of day files, with the time range of each file.
//!
//! The list repeats data from the files, so that a query opens only the files it needs. A lost or damaged catalog is
//! rebuilt from the files.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row, params};

use super::database::{self, DatabaseKind};
use super::failure::failed;
use super::folder::{CATALOG, remove_database};
use crate::stores::StoreError;

/// The catalog's entry for a day's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CatalogEntry {
    /// Number of the file in order of creation. The newest file has the greatest number.
    pub sequence: i64,
    /// Name in the folder.
    pub name: String,
    /// True if no more records are written to the file. While `sealed` is false, the catalog does not know `range` and
    /// `rows`.
    pub sealed: bool,
    /// The oldest and the newest time in the file. `None`: the file has no records, or the times are not known.
    pub range: Option<(i64, i64)>,
    /// Number of records.
    pub rows: i64,
}

impl CatalogEntry {
    /// True if the file may have records with a time from `since` (inclusive) to `until` (exclusive).
    pub fn overlaps(&self, since: i64, until: Option<i64>) -> bool {
        match self.range {
            Some((oldest, newest)) => newest >= since && until.is_none_or(|until| oldest < until),
            None => !self.sealed,
        }
    }
}

/// The catalog.
#[derive(Debug)]
pub(super) struct Catalog {
    connection: Connection,
    path: PathBuf,
}

impl Catalog {
    /// Opens the catalog for writing; creates it if it is missing or damaged.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(CATALOG);
        let connection = match Self::connect(&path) {
            Err(StoreError::Fatal(why)) if is_rebuildable(&path) => {
                tracing::warn!("{why}; rebuilding it from the day files");
                remove_database(&path)?;
                Self::connect(&path)
            }
            connection => connection,
        }?;
        Ok(Self { connection, path })
    }

    fn connect(path: &Path) -> Result<Connection, StoreError> {
        let connection = database::open(DatabaseKind::Catalog, path)?;
        if !database::has_schema(DatabaseKind::Catalog, &connection, path)? {
            let create = || {
                connection.execute_batch("BEGIN IMMEDIATE")?;
                database::create_schema(DatabaseKind::Catalog, &connection)?;
                connection.execute_batch("COMMIT")
            };
            create().map_err(|error| failed("write", path, &error))?;
        }
        Ok(connection)
    }

    /// Opens the catalog for reading. Another connection may be writing to it.
    pub fn open_read(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(CATALOG);
        let connection = database::open_read(DatabaseKind::Catalog, &path, None)?;
        Ok(Self { connection, path })
    }

    /// The files, oldest first.
    pub fn entries(&self) -> Result<Vec<CatalogEntry>, StoreError> {
        let read = |row: &Row<'_>| {
            let range = row.get::<_, Option<i64>>(3)?.zip(row.get(4)?);
            Ok(CatalogEntry { sequence: row.get(0)?, name: row.get(1)?, sealed: row.get(2)?, range, rows: row.get(5)? })
        };
        let query = || {
            let sql = "SELECT sequence, name, sealed, min_time_ns, max_time_ns, rows FROM files ORDER BY sequence";
            self.connection.prepare_cached(sql)?.query_map([], read)?.collect::<rusqlite::Result<_>>()
        };
        query().map_err(|error| failed("read", &self.path, &error))
    }

    /// Adds a file or replaces its entry.
    pub fn put(&self, entry: &CatalogEntry) -> Result<(), StoreError> {
        let (oldest, newest) = entry.range.unzip();
        let sql = "INSERT OR REPLACE INTO files VALUES(?, ?, ?, ?, ?, ?)";
        let values = params![entry.sequence, entry.name, entry.sealed, oldest, newest, entry.rows];
        self.connection.execute(sql, values).map_err(|error| failed("write", &self.path, &error))?;
        Ok(())
    }

    /// Removes a file's entry.
    pub fn remove(&self, sequence: i64) -> Result<(), StoreError> {
        let removed = self.connection.execute("DELETE FROM files WHERE sequence = ?", [sequence]);
        removed.map_err(|error| failed("write", &self.path, &error))?;
        Ok(())
    }
}

/// True if an unusable catalog is damaged or not a database, so it can be rebuilt. False if it is a database of another
/// program or of a newer version.
fn is_rebuildable(path: &Path) -> bool {
    let version = Connection::open(path).and_then(|connection| {
        connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    });
    version.is_err_and(|error| super::failure::is_damage(&error))
}
