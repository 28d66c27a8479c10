//! Keeps the list of files that this program truncated by opening them. Recovery drops older records for these files.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;

use logspool_sys::clock;
use logspool_sys::published::Published;

use crate::recover::FileAction;

/// Files that this program truncated by opening them (`mode="w"`). The list is lock-free and only grows, because a
/// forked child may inherit a lock held by a thread that the child does not have.
static TRUNCATED: AtomicPtr<ReopenedFile> = AtomicPtr::new(std::ptr::null_mut());
/// Start time of this program, in nanoseconds since the epoch.
static BEGUN_NS: OnceLock<i64> = OnceLock::new();

/// Stores the time at which this program started. Forked children belong to the same program and keep this time.
pub fn program_begins() {
    BEGUN_NS.get_or_init(clock::wall_ns);
}

/// Notes that this program has truncated a file by opening it. Records that earlier programs left for the file are
/// older than the truncation, so recovery drops them. Records of this program's own forked children are appended.
pub fn note_truncated(path: PathBuf) {
    if was_truncated(&path) {
        return;
    }
    let reopened = Box::leak(Box::new(ReopenedFile { path, before: None }));
    let mut newest = TRUNCATED.observe();
    loop {
        // SAFETY: entries are stored below and never freed.
        reopened.before = unsafe { newest.as_ref() };
        // Pairs with `observe`: a reader that finds an entry sees its contents.
        match TRUNCATED.publish_over(newest, reopened) {
            Ok(()) => return,
            Err(other) => newest = other,
        }
    }
}

struct ReopenedFile {
    path: PathBuf,
    before: Option<&'static ReopenedFile>,
}

fn was_truncated(path: &Path) -> bool {
    // SAFETY: entries are never freed.
    let newest = unsafe { TRUNCATED.observe().as_ref() };
    std::iter::successors(newest, |reopened| reopened.before).any(|reopened| reopened.path == path)
}

/// What recovery does with records that a dead process left for `path`.
pub(super) fn deliver_to(path: &Path) -> FileAction {
    let begun = BEGUN_NS.get().copied().unwrap_or(i64::MIN);
    if was_truncated(path) { FileAction::DropOlder(begun) } else { FileAction::Append }
}
