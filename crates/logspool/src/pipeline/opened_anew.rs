//! Files that this program truncated by opening them, and what recovery then does with older records for a file.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;

use logspool_sys::clock;
use logspool_sys::published::Published;

use crate::recover::Want;

/// Files that this program truncated by opening them (`mode="w"`). A list that only grows, because a forked child may
/// inherit a lock held by a thread that it does not have.
static OPENED_ANEW: AtomicPtr<Anew> = AtomicPtr::new(std::ptr::null_mut());
/// Start time of this program, in nanoseconds since the epoch.
static BEGUN_NS: OnceLock<i64> = OnceLock::new();

/// Notes the start of this program. Forked children belong to the same program.
pub fn program_begins() {
    BEGUN_NS.get_or_init(clock::wall_ns);
}

/// Notes that this program has truncated a file by opening it. Records that earlier programs left for it belong before
/// that point, so they are dropped. Records of its own forked children are appended.
pub fn opened_anew(path: PathBuf) {
    if was_opened_anew(&path) {
        return;
    }
    let anew = Box::leak(Box::new(Anew { path, before: None }));
    let mut newest = OPENED_ANEW.observe();
    loop {
        // SAFETY: entries are stored below and never freed.
        anew.before = unsafe { newest.as_ref() };
        // Pairs with `observe`: a reader that finds an entry sees its contents.
        match OPENED_ANEW.publish_over(newest, anew) {
            Ok(()) => return,
            Err(other) => newest = other,
        }
    }
}

struct Anew {
    path: PathBuf,
    before: Option<&'static Anew>,
}

fn was_opened_anew(path: &Path) -> bool {
    // SAFETY: entries are never freed.
    let newest = unsafe { OPENED_ANEW.observe().as_ref() };
    std::iter::successors(newest, |anew| anew.before).any(|anew| anew.path == path)
}

/// What to do with records that a dead process left for a wanted file.
pub(super) fn deliver_to(path: &Path) -> Want {
    let begun = BEGUN_NS.get().copied().unwrap_or(i64::MIN);
    if was_opened_anew(path) { Want::DoneAway(begun) } else { Want::Append }
}
