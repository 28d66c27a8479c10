//! Coordinates the threads of this process that recover at the same time.
//!
//! Record locks belong to the process. So a second thread would get the lock too, and would drop it by closing its
//! descriptor. Therefore the lock of a dead process is taken once for all threads that recover that process, and the
//! last thread releases it. Each thread takes the sinks that it delivers, so that no two threads deliver to one sink. A
//! thread that hangs in the file of one sink delays only threads that want the same sink.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use logspool_sys::folder::Folder;
use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::sleep::sleep_interruptibly;

use super::leftover::{Leftover, OwnerState};
use crate::durable::Sinks;

/// A thread that holds a sink may make no progress for this long. After that, other threads skip the sink.
///
/// Chosen: it is as long as the holding thread itself waits for a writer or a service.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Pause between two checks of a sink that another thread holds. Chosen: most recoveries take longer than this.
const PAUSE: Duration = Duration::from_millis(1);

/// The share that one thread has in the recovery of an orphan.
#[derive(Debug)]
pub struct Work {
    id: u64,
    sinks: Sinks,
}

/// An orphan that threads of this process are recovering.
struct ClaimedOrphan {
    id: u64,
    /// Device and inode of the orphan's folder.
    folder: (u64, u64),
    name: String,
    /// The lock file, which stays open for its record lock until the last thread leaves.
    _lock: Option<KeptDescriptor<File>>,
    /// Fencing token that is stored in the segment, see `Claim`; 0 before it is stored.
    fencing_token: u64,
    users: u32,
    /// Whether several threads had a share since the last [`Work::finish`] that returned a share.
    was_shared: bool,
    /// Whether the only remaining thread is removing the files.
    is_closed: bool,
    /// Sinks that a thread of this process has taken.
    sinks: Sinks,
    /// Counter that is incremented when a thread makes progress.
    steps: u64,
}

#[derive(Default)]
struct WorkTable {
    entries: Vec<ClaimedOrphan>,
    made: u64,
}

static TABLE: PerProcess<WorkTable> = PerProcess::new();

impl WorkTable {
    fn find(&mut self, folder: &Folder, name: &str) -> Option<&mut ClaimedOrphan> {
        self.entries.iter_mut().find(|entry| entry.folder == folder.device_and_inode() && entry.name == name)
    }

    /// Removes one thread from the entry. If it was the last thread, releases the lock. The caller holds the lock of
    /// the table, so that no other thread opens the lock file in the meantime.
    fn release(&mut self, work: &Work) {
        let Some(at) = self.entries.iter().position(|entry| entry.id == work.id) else { return };
        let entry = &mut self.entries[at];
        entry.users -= 1;
        entry.sinks &= !work.sinks;
        if entry.users == 0 {
            self.entries.swap_remove(at);
        }
    }
}

/// State of the process that created the files. Does not open a lock file whose lock this process holds. While a thread
/// of this process removes the files, the state is `Alive`.
pub fn owner(folder: &Folder, leftover: &Leftover) -> OwnerState {
    TABLE.with(|table| match table.find(folder, &leftover.name) {
        Some(entry) if entry.is_closed => OwnerState::Alive,
        Some(_) => OwnerState::Dead,
        None => leftover.owner(folder),
    })
}

impl Work {
    /// Joins the recovery of the orphan `name` in a folder. The first thread takes the lock of the file `lock_name`, if
    /// one is given. Returns `None` if another process holds the lock, or if a thread of this process is removing the
    /// files.
    ///
    /// # Errors
    ///
    /// Returns an error if the lock cannot be taken.
    pub fn join(folder: &Folder, name: &str, lock_name: Option<&str>) -> io::Result<Option<Self>> {
        TABLE.with(|table| {
            if let Some(entry) = table.find(folder, name) {
                if entry.is_closed {
                    return Ok(None);
                }
                entry.users += 1;
                entry.was_shared = true;
                return Ok(Some(Self { id: entry.id, sinks: 0 }));
            }
            let mut lock = None;
            if let Some(lock_name) = lock_name {
                lock = folder.take_lock(lock_name)?;
                if lock.is_none() {
                    return Ok(None);
                }
            }
            table.made += 1;
            let id = table.made;
            table.entries.push(ClaimedOrphan {
                id,
                folder: folder.device_and_inode(),
                name: name.to_owned(),
                _lock: lock,
                fencing_token: 0,
                users: 1,
                was_shared: false,
                is_closed: false,
                sinks: 0,
                steps: 0,
            });
            Ok(Some(Self { id, sinks: 0 }))
        })
    }

    /// Runs `work` on the orphan's entry. Returns `None` in a forked child, which has no share in the recovery.
    fn with<R>(&self, work: impl FnOnce(&mut ClaimedOrphan) -> R) -> Option<R> {
        TABLE.with(|table| table.entries.iter_mut().find(|entry| entry.id == self.id).map(work))
    }

    /// Returns the fencing token. For the first caller, `begin` makes the token.
    ///
    /// # Errors
    ///
    /// Returns the errors of `begin`, or `ResourceBusy` in a forked child.
    pub fn fencing_token(&self, begin: impl FnOnce() -> io::Result<u64>) -> io::Result<u64> {
        let fencing_token = self.with(|entry| {
            if entry.fencing_token == 0 {
                entry.fencing_token = begin()?;
            }
            Ok(entry.fencing_token)
        });
        fencing_token.unwrap_or_else(|| Err(ErrorKind::ResourceBusy.into()))
    }

    /// Takes the sink in slot `place`. If another thread holds the sink, waits while that thread makes progress.
    /// Returns whether the sink was taken.
    pub fn take_sink(&mut self, place: usize) -> bool {
        let sink = 1 << place;
        let (mut steps, mut moved) = (None, Instant::now());
        loop {
            let is_own = self.sinks & sink != 0;
            let held = self.with(|entry| {
                if entry.sinks & sink != 0 && !is_own {
                    return Some(entry.steps);
                }
                entry.sinks |= sink;
                None
            });
            match held {
                None => return false,
                Some(None) => {
                    self.sinks |= sink;
                    return true;
                }
                Some(now) if now != steps => (steps, moved) = (now, Instant::now()),
                Some(_) if moved.elapsed() >= TIMEOUT => return false,
                Some(_) => {}
            }
            sleep_interruptibly(PAUSE);
        }
    }

    /// Whether another thread holds the sink in slot `place`.
    pub fn is_taken_by_another(&self, place: usize) -> bool {
        let others = self.with(|entry| entry.sinks & !self.sinks).unwrap_or_default();
        others & 1 << place != 0
    }

    /// Signals progress to the threads that wait for a sink.
    pub fn step(&self) {
        self.with(|entry| entry.steps += 1);
    }

    /// Runs `work` while no other thread of this process is recovering the same orphan or can start to. Returns `None`
    /// if another thread is recovering it, or was since the last [`Self::finish`].
    ///
    /// Meanwhile all other threads that recover anything wait, so `work` must be short.
    pub fn alone<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        self.with(|entry| (entry.users == 1 && !entry.was_shared).then(work)).flatten()
    }

    /// Gives the share up. If this is the last thread, it gets its share back and no other thread can join, so that it
    /// can remove the files.
    pub fn close(self) -> Option<Self> {
        self.finish_unless(|entry| {
            entry.is_closed = entry.users == 1;
            entry.is_closed
        })
    }

    /// Gives the share up. If several threads had a share, the last one gets its share back, once. Only that thread can
    /// see which records remain after all threads are done.
    pub fn finish(self) -> Option<Self> {
        self.finish_unless(|entry| entry.users == 1 && std::mem::take(&mut entry.was_shared))
    }

    fn finish_unless(self, must_stay: impl FnOnce(&mut ClaimedOrphan) -> bool) -> Option<Self> {
        // Check and release under one lock. So if two threads leave at the same time, exactly one is the last.
        let stays = TABLE.with(|table| {
            let stays = table.entries.iter_mut().find(|entry| entry.id == self.id).is_some_and(must_stay);
            if !stays {
                table.release(&self);
            }
            stays
        });
        if stays {
            return Some(self);
        }
        std::mem::forget(self);
        None
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        TABLE.with(|table| table.release(self));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NAME: &str = "1-2-3-00000000000000aa";

    fn folder() -> (tempfile::TempDir, Folder) {
        let private = std::fs::Permissions::from_mode(0o700);
        let path = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let folder = Folder::open_existing(path.path()).unwrap();
        (path, folder)
    }

    fn join(folder: &Folder) -> Option<Work> {
        Work::join(folder, NAME, Some("a.lock")).unwrap()
    }

    #[test]
    fn threads_share_the_recovery_work_and_each_has_its_own_sinks() {
        let (_path, folder) = folder();
        let (mut one, mut other) = (join(&folder).unwrap(), join(&folder).unwrap());
        assert!(one.take_sink(3) && one.take_sink(3) && other.take_sink(4));
        assert!(other.is_taken_by_another(3) && !other.is_taken_by_another(4) && !other.is_taken_by_another(5));
        assert_eq!((7, 7), (one.fencing_token(|| Ok(7)).unwrap(), other.fencing_token(|| Ok(8)).unwrap()));

        let waits = std::thread::spawn(move || other.take_sink(3).then_some(other));
        one.step();
        assert!(one.finish().is_none(), "another one is still there");
        let other = waits.join().unwrap().expect("the sink is free");
        let last = other.finish().expect("the last of several looks again");
        assert!(last.finish().is_none(), "once");
        let (_other_path, other_folder) = self::folder();
        assert!(join(&other_folder).unwrap().finish().is_none(), "one alone has seen everything");
    }

    #[test]
    fn a_finished_recovery_is_not_shared_with_later_threads() {
        let (_path, folder) = folder();
        let leftover = Leftover { name: NAME.to_owned(), lock: true, ..Leftover::default() };
        let (one, other) = (join(&folder).unwrap(), join(&folder).unwrap());
        assert!(one.close().is_none(), "another one is still there");
        assert_eq!(OwnerState::Dead, owner(&folder, &leftover));

        let last = other.close().expect("of two that are done at once, one removes it");
        assert!(join(&folder).is_none());
        assert_eq!(OwnerState::Alive, owner(&folder, &leftover));
        drop(last);
        assert!(join(&folder).is_some());
    }
}
