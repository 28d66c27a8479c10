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
        for entry in entries.iter().filter(|entry| entry.sealed) {
            let over = self.bytes.is_some_and(|most| bytes > most);
            if !over && !self.is_past(entry, today) {
                break;
            }
            if self.bytes.is_some() {
                bytes -= bytes_of(entry).min(bytes);
            }
            // The catalog first: no query that begins now looks for the file.
            catalog.remove(entry.sequence)?;
            remove_day(&folder.join(&entry.name))?;
            tracing::info!("removed {} with {} records, as told by the retention", entry.name, entry.rows);
        }
        Ok(())
    }

    fn is_past(self, entry: &Entry, today: Day) -> bool {
        let age = Day::in_name(&entry.name).map(|day| today.after(day));
        self.days.zip(age).is_some_and(|(days, age)| i64::from(age) > i64::from(days))
    }
}
