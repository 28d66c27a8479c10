//! The files in a folder, grouped by the process that created them, and whether that process still runs.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use logspool_lanes::segment::layout::MAX_SINKS;
use logspool_sys::folder::{Folder, is_locked};
use logspool_sys::identity::ProcessIdentity;
use logspool_sys::opening::read;

/// Files of one process. Their names all begin with the name of the process.
#[derive(Debug, Clone, Default)]
pub struct Leftover {
    /// Name of the process, see [`ProcessIdentity`].
    pub name: String,
    /// Whether there is a segment.
    pub segment: bool,
    /// Whether there is a lock file.
    pub lock: bool,
    /// Sink and number of each overflow file, in sorted order.
    pub overflow: Vec<(usize, u32)>,
    /// Numbers of the blob files.
    pub blobs: Vec<u64>,
    /// Whether there is a file that names the folder of the process's spools.
    pub spool: bool,
    /// Bytes of memory that the segment occupies.
    pub segment_bytes: u64,
    /// Bytes of memory that the overflow files occupy.
    pub overflow_bytes: u64,
    /// Bytes of memory that the blob files occupy.
    pub blob_bytes: u64,
    /// Latest modification time of all these files. Writes through a mapping do not change it.
    pub modified: Option<SystemTime>,
}

/// State of the process that created the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    /// The lock is free.
    Dead,
    /// The lock is held, by the process itself or by a recoverer.
    Alive,
    /// The lock file is gone, and the process may still run.
    Unknown,
}

/// Kind of a file, as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftoverKind {
    Segment,
    Lock,
    Overflow(usize, u32),
    Blob(u64),
    Spool,
}

fn kind(suffix: &str) -> Option<LeftoverKind> {
    match suffix {
        "seg" => Some(LeftoverKind::Segment),
        "lock" => Some(LeftoverKind::Lock),
        "spool" => Some(LeftoverKind::Spool),
        _ => {
            if let Some(number) = suffix.strip_prefix("blob-") {
                return number.parse().ok().map(LeftoverKind::Blob);
            }
            let (sink, number) = suffix.strip_prefix("over-")?.split_once('-')?;
            let sink = sink.parse().ok().filter(|sink| *sink < MAX_SINKS)?;
            Some(LeftoverKind::Overflow(sink, number.parse().ok()?))
        }
    }
}

/// Lists the files of all other processes in the folder, oldest first. Skips files that are not logspool's. Skips the
/// files of this process too: the kernel does not show a process its own locks, and closing its own lock file would
/// drop the lock.
///
/// # Errors
///
/// Returns an error if the folder cannot be read.
pub fn list(folder: &Folder) -> io::Result<Vec<Leftover>> {
    Ok(list_of(folder, &folder.names()?))
}

/// Does the same as [`list`], for the sorted file names `names`.
pub fn list_of(folder: &Folder, names: &[String]) -> Vec<Leftover> {
    list_where(folder, names, |_| true)
}

fn list_where(folder: &Folder, names: &[String], which: impl Fn(&str) -> bool) -> Vec<Leftover> {
    let mut found: Vec<Leftover> = Vec::new();
    // The names are sorted, so the files of one process are adjacent.
    for file_name in names {
        let Some((name, suffix)) = file_name.split_once('.') else { continue };
        if !which(name) || ProcessIdentity::parse(name).is_none_or(|identity| identity.is_current()) {
            continue;
        }
        if let Some(kind) = kind(suffix) {
            if found.last().is_none_or(|last| last.name != name) {
                found.push(Leftover { name: name.to_owned(), ..Leftover::default() });
            }
            found.last_mut().expect("just made").add(folder, file_name, kind);
        }
    }
    for leftover in &mut found {
        leftover.overflow.sort_unstable();
    }
    found.retain(Leftover::is_there);
    found.sort_by_key(|leftover| leftover.modified);
    found
}

impl Leftover {
    /// Lists the current files of the process `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read.
    pub fn find(folder: &Folder, name: &str) -> io::Result<Self> {
        let none = Self { name: name.to_owned(), ..Self::default() };
        Ok(list_where(folder, &folder.names()?, |each| each == name).pop().unwrap_or(none))
    }

    fn add(&mut self, folder: &Folder, file_name: &str, kind: LeftoverKind) {
        let Ok(status) = folder.status(file_name) else { return };
        if status.st_mode & libc::S_IFMT != libc::S_IFREG || status.st_uid != folder.owner() {
            return;
        }
        let bytes = status.st_blocks as u64 * 512;
        match kind {
            LeftoverKind::Segment => (self.segment, self.segment_bytes) = (true, bytes),
            LeftoverKind::Lock => self.lock = true,
            LeftoverKind::Spool => self.spool = true,
            LeftoverKind::Overflow(sink, number) => {
                self.overflow.push((sink, number));
                self.overflow_bytes += bytes;
            }
            LeftoverKind::Blob(number) => {
                self.blobs.push(number);
                self.blob_bytes += bytes;
            }
        }
        let modified = UNIX_EPOCH + Duration::new(status.st_mtime.max(0) as u64, status.st_mtime_nsec as u32);
        self.modified = self.modified.max(Some(modified));
    }

    /// Whether at least one of the files exists.
    pub fn is_there(&self) -> bool {
        self.segment || self.lock || self.modified.is_some()
    }

    /// Bytes of memory that all files occupy.
    pub fn bytes(&self) -> u64 {
        self.segment_bytes + self.overflow_bytes + self.blob_bytes
    }

    /// Number of bytes of memory that all files occupy now. Some memory may have been released since the listing.
    pub fn bytes_now(&self, folder: &Folder) -> u64 {
        let overflow = self.overflow.iter().map(|(sink, number)| self.overflow_name(*sink, *number));
        let blobs = self.blobs.iter().map(|number| self.blob_name(*number));
        let names = overflow.chain(blobs).chain([self.segment_name()]);
        names.filter_map(|name| folder.status(&name).ok()).map(|status| status.st_blocks as u64 * 512).sum()
    }

    /// Process id, in the pid namespace of that process.
    pub fn pid(&self) -> u32 {
        ProcessIdentity::parse(&self.name).map_or(0, |identity| identity.pid)
    }

    /// File name of the segment.
    pub fn segment_name(&self) -> String {
        format!("{}.seg", self.name)
    }

    /// File name of the lock.
    pub fn lock_name(&self) -> String {
        format!("{}.lock", self.name)
    }

    /// File name of an overflow file.
    pub fn overflow_name(&self, sink: usize, number: u32) -> String {
        format!("{}.over-{sink}-{number}", self.name)
    }

    /// File name of a blob.
    pub fn blob_name(&self, number: u64) -> String {
        format!("{}.blob-{number}", self.name)
    }

    /// Whether the process was in this pid namespace. If so, a path most likely means the same file for that process
    /// and this one.
    pub fn is_of_this_namespace(&self) -> bool {
        ProcessIdentity::parse(&self.name)
            .is_some_and(|identity| identity.namespace == ProcessIdentity::current().namespace)
    }

    /// Whether the process runs and still maps the segment. A program that closes all its descriptors loses its lock
    /// but not its mappings; `exec` drops both.
    fn is_mapped_by_owner(&self) -> bool {
        let maps = || read(format!("/proc/{}/maps", self.pid()));
        self.is_of_this_namespace()
            && maps().is_ok_and(|maps| String::from_utf8_lossy(&maps).contains(&self.segment_name()))
    }

    /// Finds out whether the owner still runs, without changing anything.
    pub fn owner(&self, folder: &Folder) -> OwnerState {
        if self.lock {
            return match folder.open_file(&self.lock_name()).and_then(|lock| is_locked(lock.as_raw_fd())) {
                Ok(false) if self.is_mapped_by_owner() => OwnerState::Alive,
                Ok(false) => OwnerState::Dead,
                Ok(true) => OwnerState::Alive,
                Err(_) => OwnerState::Unknown,
            };
        }
        // The owner may have removed the lock file and continued to run. In our own pid namespace, its process id shows
        // whether it runs. A process without /proc does not know its namespace.
        let namespace = ProcessIdentity::current().namespace;
        match ProcessIdentity::parse(&self.name) {
            Some(identity) if identity.namespace == namespace && namespace != 0 => {
                if identity.is_running() {
                    OwnerState::Unknown
                } else {
                    OwnerState::Dead
                }
            }
            _ => OwnerState::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_file_names_are_distinguished() {
        assert_eq!(Some(LeftoverKind::Overflow(3, 12)), kind("over-3-12"));
        assert_eq!(Some(LeftoverKind::Blob(7)), kind("blob-7"));
        for foreign in ["over-3", "over-999-1", "blob-x", "seg.bak", ""] {
            assert_eq!(None, kind(foreign));
        }
    }
}
