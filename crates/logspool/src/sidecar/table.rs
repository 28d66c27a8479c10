//! The sidecars that this process has open. Each is open only once, because closing a second descriptor would drop its
//! locks.
//!
//! Opening and closing a sidecar take one lock. A forked child can take that lock, whatever the parent's threads were
//! doing.

use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use logspool_lanes::segment::layout::MAX_SINKS;
use logspool_sys::folder::Folder;
use logspool_sys::fork_safe_lock::PerProcess;

use super::MAX_SIDECARS;
use super::handler_place::{HandlerPlace, NamedSidecar};
use super::identity::Identity;
use super::intent::INTENT;
use super::locks;
use super::side::Sidecar;

/// A handle of an open sidecar. Dropping the last handle of this process closes the sidecar.
#[derive(Debug)]
pub struct SidecarHandle(Option<Arc<Sidecar>>);

impl Deref for SidecarHandle {
    type Target = Sidecar;

    fn deref(&self) -> &Sidecar {
        self.0.as_ref().expect("taken by the drop only")
    }
}

impl Drop for SidecarHandle {
    fn drop(&mut self) {
        if let Some(sidecar) = self.0.take() {
            release(sidecar);
        }
    }
}

struct OpenSidecar {
    folder: PathBuf,
    sidecar: Arc<Sidecar>,
    users: u32,
    place: Option<&'static HandlerPlace>,
}

#[derive(Default)]
struct SidecarTable {
    entries: Vec<OpenSidecar>,
}

static TABLE: PerProcess<SidecarTable> = PerProcess::new();

/// Opens or creates the sidecar of a file.
///
/// # Errors
///
/// Returns an error if the folder cannot be used or holds too many sidecars, or if a system call fails.
pub fn open(folder: &Folder, identity: Identity) -> io::Result<SidecarHandle> {
    TABLE.with(|table| {
        let wanted = |entry: &&mut OpenSidecar| {
            entry.sidecar.identity == identity && entry.folder == folder.path() && !entry.sidecar.is_retired()
        };
        if let Some(entry) = table.entries.iter_mut().find(wanted) {
            entry.users += 1;
            return Ok(SidecarHandle(Some(entry.sidecar.clone())));
        }
        let handle =
            match table.entries.iter().find(|entry| entry.folder == folder.path() && !entry.sidecar.is_retired()) {
                Some(entry) => entry.sidecar.folder.clone(),
                None => folder.open_again()?,
            };
        if is_full(&handle, identity)? {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        let sidecar = Arc::new(Sidecar::open(handle, identity)?);
        let place = claim_place(&sidecar);
        table.entries.push(OpenSidecar { folder: folder.path().to_owned(), sidecar: sidecar.clone(), users: 1, place });
        Ok(SidecarHandle(Some(sidecar)))
    })
}

/// Whether a folder already holds the maximum number of sidecars of other files.
fn is_full(folder: &Folder, identity: Identity) -> io::Result<bool> {
    // The size of a folder is at least one byte for each name, and 20 bytes for each name on tmpfs. Some file systems
    // report 0 for every folder.
    if (1..MAX_SIDECARS as u64).contains(&folder.size()?) {
        return Ok(false);
    }
    let names = folder.names()?;
    let others = names.iter().filter_map(|name| Identity::of_file_name(name)).filter(|other| *other != identity);
    Ok(others.count() >= MAX_SIDECARS)
}

/// Number of handles of this sidecar in this process.
pub fn users(handle: &SidecarHandle) -> u32 {
    let is_it = |entry: &&OpenSidecar| handle.0.as_ref().is_some_and(|sidecar| Arc::ptr_eq(&entry.sidecar, sidecar));
    TABLE.with(|table| table.entries.iter().find(is_it).map_or(0, |entry| entry.users))
}

/// Drops a handle. The last one closes the sidecar.
fn release(sidecar: Arc<Sidecar>) {
    TABLE.with(|table| {
        let Some(at) = table.entries.iter().position(|entry| Arc::ptr_eq(&entry.sidecar, &sidecar)) else { return };
        table.entries[at].users -= 1;
        if table.entries[at].users == 0 {
            let entry = table.entries.swap_remove(at);
            if let Some(place) = entry.place {
                place.free_place();
            }
            entry.sidecar.retire();
        }
        // Drop it under the table's lock, so that no other thread opens the same file while this thread closes it.
        drop(sidecar);
    });
}

/// Closes all sidecars, and removes those that no other process has open. Call it when the process ends or has nothing
/// queued. A later append opens the sidecars again.
pub fn close_all() {
    TABLE.with(|table| table.entries.iter().for_each(|entry| entry.sidecar.retire()));
}

static PLACES: [HandlerPlace; MAX_SINKS] = [const { HandlerPlace::free() }; MAX_SINKS];

/// Takes a place for the signal handler. Call it under the table's lock. Returns `None` if all places are taken; the
/// next start then removes the sidecar.
fn claim_place(sidecar: &Sidecar) -> Option<&'static HandlerPlace> {
    let process = std::process::id();
    let place = PLACES.iter().find(|place| place.is_free(process))?;
    let Identity { device, inode } = sidecar.identity;
    let descriptor = sidecar.descriptor();
    place.take(process, NamedSidecar { descriptor, folder: sidecar.folder.descriptor(), device, inode });
    Some(place)
}

/// Does the same as [`close_all`], with async-signal-safe calls only.
pub fn unlink_async_signal_safe() {
    // SAFETY: getpid has no preconditions.
    let process = unsafe { libc::getpid() } as u32;
    for place in &PLACES {
        let Some(NamedSidecar { descriptor, folder, device, inode }) = place.named(process) else { continue };
        let identity = Identity { device, inode };
        let name = identity.c_name();
        let is_named = || {
            // SAFETY: all-zero stats are valid values, `name` ends with a NUL, and the kernel checks the descriptors.
            unsafe {
                let (mut held, mut named): (libc::stat, libc::stat) = (std::mem::zeroed(), std::mem::zeroed());
                libc::fstat(descriptor, &mut held) == 0
                    && libc::fstatat(folder, name.as_ptr(), &mut named, libc::AT_SYMLINK_NOFOLLOW) == 0
                    && (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
            }
        };
        // The program may have closed or reused a number. Then the sidecar stays, and the next start removes it.
        if !is_named() || !locks::lock_exclusively_raw(descriptor) {
            continue;
        }
        let mut state = [0_u8; 8];
        // SAFETY: a valid buffer of eight bytes.
        let read = unsafe { libc::pread(descriptor, state.as_mut_ptr().cast(), state.len(), INTENT as i64) };
        if read >= 0 && state == [0; 8] && is_named() {
            // SAFETY: `name` ends with a NUL, and the folder has the sidecar.
            unsafe { libc::unlinkat(folder, name.as_ptr(), 0) };
        }
    }
}
