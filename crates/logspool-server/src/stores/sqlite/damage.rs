//! Damaged files of the store, and lost records, as `/readyz` reports them.
//!
//! The writer, the indexer and queries note damage when they find it. The note is removed at the next maintenance after
//! the file was moved away or changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Noted damage; see the file head. Shared by all parts of a store.
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

/// Identifies a file's content: device, inode, bytes, time of the last change (seconds and nanoseconds).
type FileFingerprint = (u64, u64, u64, i64, i64);

impl DamageNotes {
    /// Notes a file that cannot be used, and logs each new reason once.
    pub fn note(&self, folder: &Path, name: &str, why: &str) {
        let damage = FileDamage { why: why.to_owned(), seen: content(&folder.join(name)) };
        let before = self.lock().files.insert(name.to_owned(), damage);
        if before.is_none_or(|before| before.why != why) {
            tracing::error!("{why}");
        }
    }

    /// Notes that records are lost, and logs it.
    pub fn note_loss(&self, why: String) {
        tracing::error!("{why}");
        self.lock().losses.push(why);
    }

    /// Keeps the note of a file that the store itself has changed.
    pub fn refresh(&self, folder: &Path, name: &str) {
        if let Some(damage) = self.lock().files.get_mut(name) {
            damage.seen = content(&folder.join(name));
        }
    }

    /// True if a file is known to be damaged.
    pub fn has(&self, name: &str) -> bool {
        self.lock().files.contains_key(name)
    }

    /// Forgets files that were moved away or changed since they were noted, except files that the caller has open.
    /// Returns their names.
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

    /// All notes.
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
