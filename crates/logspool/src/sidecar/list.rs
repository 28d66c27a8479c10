//! All sidecars of a folder: settles the intents of a dead process, removes unneeded sidecars, lists the others.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::folder::Folder;
use logspool_sys::opening::entries;
use logspool_sys::opening::open_path;
use logspool_sys::sleep::sleep_interruptibly;

use super::identity::Identity;
use super::intent::{HEAD_BYTES, INTENT, INTENT_BYTES, Intent, Read, SidecarHead};
use super::log_file::birth_ns;
use super::side::Sidecar;
use super::table::{self, SidecarHandle};
use super::{locks, repair};

/// How long a recoverer waits for a writer that holds the lock of a sidecar.
///
/// Chosen: it equals the time that a recovery waits for a service. A frozen disk delays a start by at most this long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of names examined in the folder of a log file, to find a renamed log file.
///
/// Chosen: a log folder has fewer files than this. Reading this many names takes milliseconds.
const MAX_NEIGHBOURS: usize = 10_000;

/// What to do with an intent of a dead process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentVerdict {
    /// Append the missing bytes, then clear the intent.
    Finish,
    /// Clear the intent without appending. The log file was truncated by a later open, so its bytes would be gone too.
    TakeBack,
    /// Change nothing.
    Leave,
}

/// Settles the intents of the dead process whose segment has the NAME `owner`. `judge` gets the id of the sink and
/// returns the verdict.
///
/// # Errors
///
/// `WouldBlock` if a live writer keeps the lock of a sidecar, or the error of a failed system call. All other intents
/// are settled nevertheless.
pub fn settle(folder: &Folder, owner: &str, judge: impl Fn(u32) -> IntentVerdict) -> io::Result<()> {
    let mut result = Ok(());
    for identity in identities(folder)? {
        let settled = with(folder, identity, |sidecar| {
            let is_its = |intent: &Intent| intent.owner == owner && judge(intent.sink) != IntentVerdict::Leave;
            if !sidecar.intent()?.is_some_and(|intent| is_its(&intent)) {
                return Ok(());
            }
            while_entered(sidecar, |sidecar| match sidecar.intent()? {
                Some(intent) if is_its(&intent) => match judge(intent.sink) {
                    IntentVerdict::Finish => finish(sidecar),
                    _ => sidecar.clear(),
                },
                _ => Ok(()),
            })
        });
        result = result.and(settled);
    }
    result
}

/// Removes those of the named sidecars that no process has open. A sidecar stays if it holds an intent whose segment or
/// log file still exists.
pub fn sweep(folder: &Folder, names: &[String]) {
    for identity in identities_of(names) {
        // Open and close the sidecar: the last process that closes it removes it. After an error the next sweep tries
        // again.
        let _ = with(folder, identity, |sidecar| {
            let Some(intent) = sidecar.intent()? else { return Ok(()) };
            let is_orphaned = folder.status(&format!("{}.seg", intent.owner)).is_err();
            let is_gone = || sidecar.head().is_none_or(|head| find(&head).is_none());
            if is_orphaned && !sidecar.is_used_elsewhere() && is_gone() {
                return while_entered(sidecar, Sidecar::clear);
            }
            Ok(())
        });
    }
}

fn identities(folder: &Folder) -> io::Result<Vec<Identity>> {
    Ok(identities_of(&folder.names()?).collect())
}

fn identities_of(names: &[String]) -> impl Iterator<Item = Identity> {
    names.iter().filter_map(|name| Identity::of_file_name(name))
}

/// Opens a sidecar, runs `work` on it, and closes it.
fn with(folder: &Folder, identity: Identity, work: impl FnOnce(&Sidecar) -> io::Result<()>) -> io::Result<()> {
    let sidecar: SidecarHandle = table::open(folder, identity)?;
    work(&sidecar)
}

/// Waits for the lock of a sidecar, and runs `work` while holding the lock.
fn while_entered(sidecar: &Sidecar, work: impl FnOnce(&Sidecar) -> io::Result<()>) -> io::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while !sidecar.try_enter()? {
        if Instant::now() >= deadline {
            return Err(io::Error::from(ErrorKind::WouldBlock));
        }
        sleep_interruptibly(Duration::from_micros(200));
    }
    let done = work(sidecar);
    sidecar.leave();
    done
}

/// Finishes the intent of a sidecar in its log file. If the log file is gone, only clears the intent.
fn finish(sidecar: &Sidecar) -> io::Result<()> {
    match sidecar.head().and_then(|head| find(&head)) {
        Some(file) => repair::finish_intent(sidecar, &file),
        None => sidecar.clear(),
    }
}

/// Opens the log file of a sidecar, under its stored path or under another name in the same folder.
fn find(head: &SidecarHead) -> Option<File> {
    if let Some(file) = open(head, &head.path) {
        return Some(file);
    }
    let folder = head.path.parent()?;
    let neighbours = entries(folder).ok()?;
    let same = neighbours.iter().take(MAX_NEIGHBOURS).find(|entry| entry.inode == head.identity.inode)?;
    open(head, &folder.join(&same.name))
}

fn open(head: &SidecarHead, path: &Path) -> Option<File> {
    // Check before opening: opening a device can have side effects.
    let is_it = |metadata: &std::fs::Metadata| {
        // SAFETY: geteuid has no preconditions and cannot fail.
        let user = unsafe { libc::geteuid() };
        metadata.is_file()
            && metadata.uid() == user
            && Identity::of(metadata) == head.identity
            && birth_ns(metadata) == head.birth_ns
    };
    if !path.is_absolute() || !path.symlink_metadata().is_ok_and(|metadata| is_it(&metadata)) {
        return None;
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = open_path(OpenOptions::new().read(true).append(true).custom_flags(flags), path).ok()?;
    file.metadata().is_ok_and(|metadata| is_it(&metadata)).then_some(file)
}

/// A sidecar, as `list` shows it to an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSidecar {
    /// File name of the sidecar in the folder.
    pub name: String,
    /// Path of the log file when the sidecar was made; `None` if the sidecar cannot be read.
    pub path: Option<PathBuf>,
    /// Bytes of memory that the sidecar occupies.
    pub bytes: u64,
    /// How long a process has held the lock. Zero if the time is unknown, `None` if no process holds the lock.
    pub inside: Option<Duration>,
    /// Whether there is an intent that no process is finishing.
    pub unfinished: bool,
    /// Number of lines that were torn by kills and then ended with a line feed.
    pub torn: u64,
}

/// Lists the sidecars in `folder` that a process has open, or that hold an unfinished intent; removes the others.
///
/// # Errors
///
/// Returns an error if the folder cannot be read or is accessible to others. A missing folder counts as empty.
pub fn list(folder: &Path) -> io::Result<Vec<ListedSidecar>> {
    let folder = match Folder::open_existing(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut found = Vec::new();
    for identity in identities(&folder)? {
        // Open the sidecar through the table. Closing a second descriptor of the file would drop the locks of this
        // process.
        let Ok(sidecar) = table::open(&folder, identity) else { continue };
        let listed = look(&sidecar);
        if listed.unfinished || sidecar.is_used_elsewhere() || table::users(&sidecar) > 1 {
            found.push(listed);
        }
    }
    Ok(found)
}

fn look(sidecar: &Sidecar) -> ListedSidecar {
    let mut head = [0; HEAD_BYTES];
    let mut intent = [0; INTENT_BYTES];
    let read = |bytes: &mut [u8], offset| sidecar.file().is_ok_and(|file| file.read_exact_at(bytes, offset).is_ok());
    let path = match read(&mut head, 0).then(|| SidecarHead::decode(&head)) {
        Some(Read::Known(head)) => Some(head.path),
        _ => None,
    };
    let intent = if read(&mut intent, INTENT) { Intent::decode(&intent) } else { None };
    // The kernel does not show this process its own lock.
    let is_inside = sidecar.is_entered_here()
        || sidecar.file().and_then(|file| locks::is_held_elsewhere(file, locks::ENTER)).unwrap_or(false);
    let since = |intent: &Intent| Duration::from_nanos(monotonic_ns().saturating_sub(intent.written_ns));
    ListedSidecar {
        name: sidecar.identity.file_name(),
        path,
        bytes: sidecar.file().and_then(File::metadata).map_or(0, |status| status.blocks() * 512),
        inside: is_inside.then(|| intent.as_ref().map(since).unwrap_or_default()),
        unfinished: intent.is_some() && !is_inside,
        torn: sidecar.torn(),
    }
}
