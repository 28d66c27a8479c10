//! Removes old records: whole files, oldest first.

use std::path::Path;
use std::time::Instant;

use super::catalog::{Catalog, CatalogEntry};
use super::folder::{self, Day, bytes_of_day, remove_day};
use crate::stores::StoreError;
use crate::stores::clock_jump::ClockJump;

/// Limits of the store. The current file is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteRetention {
    /// Number of days before today whose files are kept. `None`: no limit.
    pub days: Option<u32>,
    /// Maximum total bytes of the kept files, including indexes. `None`: no limit.
    pub bytes: Option<u64>,
}

impl SqliteRetention {
    /// Removes the oldest files until the limits are met. While the clock is in doubt, no file is removed for its age.
    pub(super) fn apply(
        self,
        folder: &Path,
        catalog: &Catalog,
        today: Day,
        leap: &mut ClockJump,
    ) -> Result<(), StoreError> {
        if self == Self::default() {
            return Ok(());
        }
        let entries = catalog.entries()?;
        let days = days_of(&entries, today);
        let before = days.iter().filter(|day| **day < today).max();
        let was_away = before.is_some_and(|day| today.after(*day) > 1);
        let oldest = match self.days {
            Some(days) if leap.is_trusted(today.number(), was_away, Instant::now()) => {
                Some(today.number() - i64::from(days))
            }
            _ => None,
        };
        // Measure each file only once. Otherwise, if an index grows during the loop, more bytes would be subtracted
        // than were added.
        let bytes_of =
            |entry: &CatalogEntry| if self.bytes.is_some() { bytes_of_day(&folder.join(&entry.name)) } else { 0 };
        let sizes: Vec<u64> = entries.iter().map(bytes_of).collect();
        let mut bytes: u64 = sizes.iter().sum();
        let mut result = Ok(());
        for ((entry, day), size) in entries.iter().zip(days).zip(sizes).filter(|((entry, _), _)| entry.sealed) {
            let path = folder.join(&entry.name);
            let is_gone = folder::is_gone(&path);
            let over = self.bytes.is_some_and(|most| bytes > most);
            if !over && !is_gone && oldest.is_none_or(|oldest| day.number() >= oldest) {
                continue;
            }
            bytes -= size;
            // Remove the entry from the catalog first, so that no new query looks for the file. If that fails, remove
            // the file anyway, because this frees space on a full disk. Queries skip a missing file, and the next call
            // corrects the catalog.
            let unlisted = catalog.remove(entry.sequence);
            let removed = remove_day(&path);
            if removed.is_ok() && !is_gone {
                tracing::info!("removed {} with {} records, as configured in [retention]", entry.name, entry.rows);
            }
            result = result.and(removed).and(unlisted);
        }
        result
    }
}

/// The day on which each file was created, from its name if possible. A file never gets an earlier day than the files
/// before it. A name with a day after today comes from a wrong clock. Such a file gets the day of the next file.
fn days_of(entries: &[CatalogEntry], today: Day) -> Vec<Day> {
    let mut newest = None;
    let mut days: Vec<_> = Vec::with_capacity(entries.len());
    for entry in entries {
        let named = Day::in_name(&entry.name).filter(|day| *day <= today);
        newest = newest.max(named);
        days.push(named.and(newest));
    }
    let mut next = today;
    for day in days.iter_mut().rev() {
        next = *day.get_or_insert(next);
    }
    days.into_iter().flatten().collect()
}
