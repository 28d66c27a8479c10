//! Files that this program opened anew, and what becomes of what dead processes left for a file.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use logspool_sys::clock;

use crate::recover::Want;

/// Files that this program opened anew (`mode="w"`): a list that only grows, because a lock could be held by a thread
/// that a forked child does not have.
static OPENED_ANEW: AtomicPtr<Anew> = AtomicPtr::new(std::ptr::null_mut());
/// When this program began.
static BEGUN_NS: OnceLock<i64> = OnceLock::new();

/// Notes when this program begins. Forked children are of the same program.
pub fn program_begins() {
    BEGUN_NS.get_or_init(clock::wall_ns);
}

/// Notes that this program has opened a file anew: what earlier programs left for it belongs in front of that, and
/// has gone with what the file held. What its own forked children leave is appended.
pub fn opened_anew(path: PathBuf) {
    if was_opened_anew(&path) {
        return;
    }
    let anew = Box::leak(Box::new(Anew { path, before: None }));
    let mut newest = OPENED_ANEW.load(Ordering::Acquire);
    loop {
        // SAFETY: entries are stored below and never freed.
        anew.before = unsafe { newest.as_ref() };
        // Release pairs with the Acquire of the loads: who finds an entry finds it whole.
        match OPENED_ANEW.compare_exchange(newest, anew, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return,
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
    let newest = unsafe { OPENED_ANEW.load(Ordering::Acquire).as_ref() };
    std::iter::successors(newest, |anew| anew.before).any(|anew| anew.path == path)
}

/// What becomes of what a dead process left for a wanted file.
pub(super) fn deliver_to(path: &Path) -> Want {
    let begun = BEGUN_NS.get().copied().unwrap_or(i64::MIN);
    if was_opened_anew(path) { Want::DoneAway(begun) } else { Want::Append }
}
