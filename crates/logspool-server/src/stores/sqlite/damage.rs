//! The damaged files and the lost records of the store, as `/readyz` reports them.
//!
//! The writer, the indexer and queries add a note when they find damage. When the file was moved away or changed, the
//! next maintenance removes the note.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The noted damage; see the module documentation. All parts of a store share it.
#[derive(Debug, Clone, Default)]
pub(super) struct DamageNotes(Arc<Mutex<NotedDamage>>);

#[derive(Debug, Default)]
struct NotedDamage {
    /// Damaged files by name.
    files: BTreeMap<String, FileDamage>,
    /// Lost records. They cannot be recovered, so these notes stay until the service ends.
    losses: Vec<String>,
}

#[derive(Debug)]
struct FileDamage {
    why: String,
    seen: Option<FileFingerprint>,
}

/// Changes when a file is replaced or written: device, inode, length in bytes, and time of the last change (seconds and
/// nanoseconds).
type FileFingerprint = (u64, u64, u64, i64, i64);

impl DamageNotes {
    /// Adds a note about a file that cannot be used. Logs the reason unless the last note of the file had the same one.
    pub fn note(&self, folder: &Path, name: &str, why: &str) {
        let damage = FileDamage { why: why.to_owned(), seen: content(&folder.join(name)) };
        let before = self.lock().files.insert(name.to_owned(), damage);
        if before.is_none_or(|before| before.why != why) {
            tracing::error!("{why}");
        }
    }

    /// Adds a note that records are lost, and logs it.
    pub fn note_loss(&self, why: String) {
        tracing::error!("{why}");
        self.lock().losses.push(why);
    }

    /// Keeps the note about a file after the store itself has changed the file. Without this call, maintenance would
    /// remove the note.
    pub fn refresh(&self, folder: &Path, name: &str) {
        if let Some(damage) = self.lock().files.get_mut(name) {
            damage.seen = content(&folder.join(name));
        }
    }

    /// True if a file is known to be damaged.
    pub fn has(&self, name: &str) -> bool {
        self.lock().files.contains_key(name)
    }

    /// Removes the notes about files that were moved away or changed since they were noted, except files that the
    /// caller has open. Returns the names of the files whose notes were removed.
    pub fn forget_changed(&self, folder: &Path, is_open: impl Fn(&str) -> bool) -> Vec<String> {
        let mut changed = Vec::new();
        self.lock().files.retain(|name, damage| {
            let now = content(&folder.join(name));
            if is_open(name) {
                damage.seen = now;
                return true;
            }
            let is_as_before = now == damage.seen;
            if !is_as_before {
                changed.push(name.clone());
            }
            is_as_before
        });
        changed
    }

    /// The texts of all notes.
    pub fn messages(&self) -> Vec<String> {
        let found = self.lock();
        found.files.values().map(|damage| damage.why.clone()).chain(found.losses.iter().cloned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, NotedDamage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn content(path: &Path) -> Option<FileFingerprint> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}
