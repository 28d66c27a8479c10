//! Files that this program truncated by opening them, and what recovery then does with older records for a file.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;

use logspool_sys::clock;
use logspool_sys::published::Published;

use crate::recover::FileAction;

/// Files that this program truncated by opening them (`mode="w"`). A list that only grows, because a forked child may
/// inherit a lock held by a thread that it does not have.
static TRUNCATED: AtomicPtr<ReopenedFile> = AtomicPtr::new(std::ptr::null_mut());
/// Start time of this program, in nanoseconds since the epoch.
static BEGUN_NS: OnceLock<i64> = OnceLock::new();

/// Notes the start of this program. Forked children belong to the same program.
pub fn program_begins() {
    BEGUN_NS.get_or_init(clock::wall_ns);
}

/// Notes that this program has truncated a file by opening it. Records that earlier programs left for it belong before
/// that point, so they are dropped. Records of its own forked children are appended.
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

/// What to do with records that a dead process left for a wanted file.
pub(super) fn deliver_to(path: &Path) -> FileAction {
    let begun = BEGUN_NS.get().copied().unwrap_or(i64::MIN);
    if was_truncated(path) { FileAction::DropOlder(begun) } else { FileAction::Append }
}
