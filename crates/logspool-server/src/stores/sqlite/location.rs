//! The address of a store in SQLite: `sqlite:FOLDER`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{SqliteOptions, SqliteReader, SqliteRetention, SqliteStore, damaged_logs};
use crate::resolved::resolved;
use crate::stores::kind::{OpenedStore, StoreKind, StoreLocation, StoreSettings};
use crate::stores::{QueryReader, StoreError};

/// The kind of store that keeps records in SQLite.
pub const SQLITE: StoreKind = StoreKind { name: "sqlite", schemes: &["sqlite"], form: "sqlite:FOLDER", parse };

/// A folder with a database for each day.
struct SqliteLocation(PathBuf);

fn parse(text: &str) -> Result<Arc<dyn StoreLocation>, String> {
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    match path.strip_prefix("//").unwrap_or(path) {
        "" => Err(format!("{text:?} has no folder: write sqlite:FOLDER")),
        path => Ok(Arc::new(SqliteLocation(path.into()))),
    }
}

impl fmt::Display for SqliteLocation {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "sqlite:{}", self.0.display())
    }
}

impl StoreLocation for SqliteLocation {
    fn open(&self, settings: &StoreSettings) -> Result<OpenedStore, StoreError> {
        let retention = SqliteRetention { days: settings.retention.days, bytes: settings.retention.bytes };
        let options = SqliteOptions { retention, readers: settings.readers, ..SqliteOptions::default() };
        let store = SqliteStore::open(&self.0, options)?;
        let answers = store.reader().with_deadline(settings.query_time);
        Ok((Box::new(store), Arc::new(answers)))
    }

    fn open_for_queries(&self) -> Result<Arc<dyn QueryReader>, StoreError> {
        Ok(Arc::new(SqliteReader::open(&self.0)?))
    }

    fn identity(&self) -> String {
        format!("sqlite:{}", resolved(&self.0).display())
    }

    fn check(&self) -> Result<(), String> {
        if self.0.exists() && !self.0.is_dir() {
            return Err(format!("store {self} is a file: name a folder, which is created if it is missing"));
        }
        Ok(())
    }

    fn limits_bytes(&self) -> bool {
        true
    }

    fn warnings(&self) -> Vec<String> {
        damaged_logs(&self.0)
    }
}
