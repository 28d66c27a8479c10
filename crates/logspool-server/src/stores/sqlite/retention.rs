//! How long records are kept: whole files go, oldest first.

use std::path::Path;
use std::time::Instant;

use super::catalog::{Catalog, Entry};
use super::folder::{self, Day, bytes_of_day, remove_day};
use crate::stores::StoreError;
use crate::stores::leap::Leap;

/// What is kept. The file that is written is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Files of so many days before today; `None`: of all days.
    pub days: Option<u32>,
    /// Files that take so many bytes together, indexes included; `None`: any number.
    pub bytes: Option<u64>,
}

impl Retention {
    /// Removes what is not kept; nothing for its age while the day is in doubt.
    pub(super) fn apply(self, folder: &Path, catalog: &Catalog, today: Day, leap: &mut Leap) -> Result<(), StoreError> {
        if self == Self::default() {
            return Ok(());
        }
        let entries = catalog.entries()?;
        let days = days_of(&entries, today);
        let before = days.iter().filter(|day| **day < today).max();
        let was_away = before.is_some_and(|day| today.after(*day) > 1);
        let oldest = match self.days {
            Some(days) if leap.is_believed(today.number(), was_away, Instant::now()) => {
                Some(today.number() - i64::from(days))
            }
            _ => None,
        };
        // Each is measured once: what an index grows by meanwhile would be taken off without having been counted.
        let bytes_of = |entry: &Entry| if self.bytes.is_some() { bytes_of_day(&folder.join(&entry.name)) } else { 0 };
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
}

/// The day on which each file came, by its name as far as that can be: none came before those that it stands behind,
/// and one that a wrong clock dated ahead of today came before the next one.
fn days_of(entries: &[Entry], today: Day) -> Vec<Day> {
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
