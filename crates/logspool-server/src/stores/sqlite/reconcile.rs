//! Reconciles the catalog with the folder when a store is opened. If they differ, the catalog is changed. An unusable
//! file does not prevent the use of the others.

use std::path::Path;

use super::catalog::{Catalog, CatalogEntry};
use super::damage::DamageNotes;
use super::database::emptiness;
use super::day_file::{FileCondition, condition, sealed_problem};
use super::failure::REPAIR_DAMAGE;
use super::folder::{self, Day, log_of};
use super::wal;
use crate::stores::StoreError;

/// A folder with its catalog and its known damage.
#[derive(Debug, Clone, Copy)]
pub(super) struct FolderState<'a> {
    pub folder: &'a Path,
    pub catalog: &'a Catalog,
    pub damages: &'a DamageNotes,
    pub now_ns: i64,
}

impl FolderState<'_> {
    /// Corrects the catalog, and returns its files, oldest first. Damaged files that the catalog lists are included.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fatal`] if a newer logspool wrote the newest file, because the streams of that file cannot be
    /// read.
    pub fn reconcile(self) -> Result<Vec<CatalogEntry>, StoreError> {
        let Self { folder, catalog, damages, .. } = self;
        let known = catalog.entries()?;
        let names = folder::day_files(folder)?;
        for entry in known.iter().filter(|entry| !names.contains(&entry.name)) {
            tracing::warn!("{} is missing in {}, with {} records", entry.name, folder.display(), entry.rows);
            catalog.remove(entry.sequence)?;
        }
        let newest = known.last().map(|entry| &entry.name);
        for name in &names {
            let path = folder.join(name);
            // Do this before the file is opened: when SQLite opens it, SQLite discards the frames after the damage in a
            // log.
            self.note_lost_transactions(&path);
            let entry = known.iter().find(|entry| entry.name == *name);
            if entry.is_some_and(|entry| entry.sealed) {
                if let Some(why) = sealed_problem(folder, name) {
                    damages.note(folder, name, &why);
                }
                continue;
            }
            match (condition(folder, name)?, entry) {
                (FileCondition::Usable(state), _) => {
                    let range = state.entry.range.filter(|_| state.entry.sealed);
                    catalog.put(&CatalogEntry { range, ..state.entry })?;
                }
                // The process ended while it created the file, so the file has no records.
                (FileCondition::Uncommitted, None) => folder::remove_day(&path)?,
                (FileCondition::Uncommitted, Some(entry)) => {
                    let why = format!("cannot use {}: {}; {REPAIR_DAMAGE}", path.display(), emptiness(&path));
                    self.mark_unusable(entry, &why)?;
                }
                (FileCondition::Newer(why), _) if newest.is_none_or(|newest| newest == name) => {
                    return Err(StoreError::Fatal(why));
                }
                (FileCondition::Newer(why) | FileCondition::Damaged(why), Some(entry)) => {
                    self.mark_unusable(entry, &why)?
                }
                (FileCondition::Newer(why) | FileCondition::Damaged(why), None) => damages.note(folder, name, &why),
            }
        }
        catalog.entries()
    }

    /// Marks a file as unusable. No more records are written to it. Queries for its day fail with an error that names
    /// it, and other queries skip it.
    pub fn mark_unusable(self, entry: &CatalogEntry, why: &str) -> Result<(), StoreError> {
        self.damages.note(self.folder, &entry.name, why);
        // If the time range is unknown, use the day of the file: most records received on a day also have a time on
        // that day.
        let day = || Some(Day::in_name(&entry.name)?.time_range(self.now_ns));
        self.catalog.put(&CatalogEntry { sealed: true, range: entry.range.or_else(day), ..entry.clone() })
    }

    /// Checks the unusable files that have changed since they were noted, except files that the caller has open.
    pub fn recheck(self, is_open: impl Fn(&str) -> bool) -> Result<(), StoreError> {
        for name in self.damages.forget_changed(self.folder, is_open) {
            let path = self.folder.join(&name);
            let entry = self.catalog.entries()?.into_iter().find(|entry| entry.name == name);
            if folder::is_gone(&path) {
                tracing::info!("{} was moved away, so its damage is no longer reported", path.display());
                if let Some(entry) = entry {
                    self.catalog.remove(entry.sequence)?;
                }
                continue;
            }
            match condition(self.folder, &name)? {
                FileCondition::Usable(state) => {
                    tracing::info!("{} can be read again", path.display());
                    self.catalog.put(&CatalogEntry { sealed: true, ..state.entry })?;
                }
                FileCondition::Uncommitted => {
                    let why = format!("cannot use {}: {}; {REPAIR_DAMAGE}", path.display(), emptiness(&path));
                    self.damages.note(self.folder, &name, &why);
                }
                FileCondition::Newer(why) | FileCondition::Damaged(why) => self.damages.note(self.folder, &name, &why),
            }
        }
        Ok(())
    }

    fn note_lost_transactions(self, path: &Path) {
        let log = log_of(path);
        match wal::lost_transactions(&log) {
            Ok(0) => {}
            Ok(lost) => self.damages.note_loss(wal::loss(&log, path, lost)),
            Err(error) => tracing::warn!("cannot check {} for damage: {error}", log.display()),
        }
    }
}
