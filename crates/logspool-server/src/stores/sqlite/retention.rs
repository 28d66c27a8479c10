//! How long records are kept: whole files go, oldest first.

use std::path::Path;

use super::catalog::{Catalog, Entry};
use super::folder::{Day, bytes_of_day, remove_day};
use crate::stores::StoreError;

/// What is kept. The file that is written is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Files of so many days before today; `None`: of all days.
    pub days: Option<u32>,
    /// Files that take so many bytes together, indexes included; `None`: any number.
    pub bytes: Option<u64>,
}

impl Retention {
    /// Removes what is not kept.
    pub(super) fn apply(self, folder: &Path, catalog: &Catalog, today: Day) -> Result<(), StoreError> {
        if self == Self::default() {
            return Ok(());
        }
        let entries = catalog.entries()?;
        let bytes_of = |entry: &Entry| bytes_of_day(&folder.join(&entry.name));
        let mut bytes: u64 = if self.bytes.is_some() { entries.iter().map(bytes_of).sum() } else { 0 };
        let mut result = Ok(());
        for entry in entries.iter().filter(|entry| entry.sealed) {
            let path = folder.join(&entry.name);
            let is_gone = !path.exists();
            let over = self.bytes.is_some_and(|most| bytes > most);
            if !over && !is_gone && !self.is_past(entry, today) {
                break;
            }
            if self.bytes.is_some() {
                bytes -= bytes_of(entry).min(bytes);
            }
            // The catalog first: no query that begins now looks for the file. Where it cannot be written the file goes
            // all the same, which makes room on a full disk: queries pass over a file that is gone, and the catalog is
            // told of it the next time.
            let unlisted = catalog.remove(entry.sequence);
            let removed = remove_day(&path);
            if removed.is_ok() && !is_gone {
                tracing::info!("removed {} with {} records, as told by the retention", entry.name, entry.rows);
            }
            result = result.and(removed).and(unlisted);
        }
        result
    }

    fn is_past(self, entry: &Entry, today: Day) -> bool {
        let age = Day::in_name(&entry.name).map(|day| today.after(day));
        self.days.zip(age).is_some_and(|(days, age)| i64::from(age) > i64::from(days))
    }
}
