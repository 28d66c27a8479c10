//! The address of a store in SQLite: `sqlite:FOLDER`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Options, SqliteAnswers, SqliteRetention, SqliteStore, damaged_logs};
use crate::resolved::resolved;
use crate::stores::kind::{Kind, Location, Opening, Settings};
use crate::stores::{Answers, StoreError};

/// See the file head.
pub const SQLITE: Kind = Kind { name: "sqlite", schemes: &["sqlite"], form: "sqlite:FOLDER", parse };

/// A folder with a database for each day.
struct Folder(PathBuf);

fn parse(text: &str) -> Result<Arc<dyn Location>, String> {
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    match path.strip_prefix("//").unwrap_or(path) {
        "" => Err(format!("{text:?} has no folder: write sqlite:FOLDER")),
        path => Ok(Arc::new(Folder(path.into()))),
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "sqlite:{}", self.0.display())
    }
}

impl Location for Folder {
    fn open(&self, settings: &Settings) -> Result<Opening, StoreError> {
        let retention = SqliteRetention { days: settings.retention.days, bytes: settings.retention.bytes };
        let options = Options { retention, readers: settings.readers, ..Options::default() };
        let store = SqliteStore::open(&self.0, options)?;
        let answers = store.answers().with_deadline(settings.query_time);
        Ok((Box::new(store), Arc::new(answers)))
    }

    fn open_to_ask(&self) -> Result<Arc<dyn Answers>, StoreError> {
        Ok(Arc::new(SqliteAnswers::open(&self.0)?))
    }

    fn identity(&self) -> String {
        format!("sqlite:{}", resolved(&self.0).display())
    }

    fn check(&self) -> Result<(), String> {
        if self.0.exists() && !self.0.is_dir() {
            return Err(format!("store {self} is a file: name a folder, which is made where it is missing"));
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
