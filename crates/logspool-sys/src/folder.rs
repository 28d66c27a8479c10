//! The folder of the segments: private to one user, checked by descriptor, and the names in it.
//!
//! `NAME.seg` is a segment, `NAME.lock` its owner's lock, `NAME.over-SINK-N` overflow of a stalled sink, `NAME.blob-N`
//! the values of one large record. `file-DEVICE-INODE.side` is the sidecar of a log file, see `sidecar.rs`. NAME
//! identifies the process, see `identity.rs`.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::available::available_memory;
use super::descriptor::open_high;
use super::handover::Handover;
use super::kept::KeptDescriptor;
use super::memory_files::MemoryFiles;
use super::opening::{entries_of, open_path};

/// An open folder of segments. A clone refers to the same open folder.
#[derive(Debug, Clone)]
pub struct Folder {
    place: FolderPlace,
    path: PathBuf,
    made_here: bool,
    owner: u32,
    device_and_inode: (u64, u64),
}

/// Where the files of a folder are.
#[derive(Debug, Clone)]
enum FolderPlace {
    /// The files are in a directory of a file system.
    Directory(Arc<Directory>),
    /// The files are in memory and have no path; descriptors keep them alive.
    Memory(Arc<MemoryFiles>),
}

/// An open directory, and its path for the case that the program closes the descriptor.
#[derive(Debug)]
struct Directory {
    handle: KeptDescriptor<File>,
    path: CString,
}

impl Directory {
    fn new(handle: File, path: &Path) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { handle: KeptDescriptor::new(handle), path: c_string(&path.to_string_lossy())? }))
    }

    /// Runs `act` with the open directory. If the program has closed the descriptor, opens the same directory again for
    /// this call. Async-signal-safe if `act` is.
    fn with<R>(&self, act: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        self.handle.with(|| open_directory(&self.path), act)
    }
}

/// Opens a directory, with async-signal-safe calls only.
fn open_directory(path: &CStr) -> io::Result<File> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `path` is a valid C string.
    let descriptor = check(unsafe { libc::open(path.as_ptr(), flags) })?;
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// The folder that is used if none is configured.
pub fn default_path() -> PathBuf {
    // SAFETY: getuid has no preconditions and cannot fail.
    PathBuf::from(format!("/dev/shm/logspool-{}", unsafe { libc::getuid() }))
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path holds a NUL byte"))
}

impl Folder {
    /// Opens the folder. A missing folder is made with mode 0700.
    ///
    /// # Errors
    ///
    /// The path is not a folder, or is a symbolic link. The folder is owned by another user, or accessible to others.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = c_string(&path.to_string_lossy())?;
        // SAFETY: `name` is a valid C string.
        let made = unsafe { libc::mkdir(name.as_ptr(), 0o700) };
        if made != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EEXIST) {
            return Err(io::Error::last_os_error());
        }
        Self::open_existing(path).map(|folder| Self { made_here: made == 0, ..folder })
    }

    /// Opens the folder if it exists.
    ///
    /// # Errors
    ///
    /// As [`Folder::open`]; `NotFound` when it is missing.
    pub fn open_existing(path: &Path) -> io::Result<Self> {
        let handle = open_directory(&c_string(&path.to_string_lossy())?)?;
        use std::os::unix::fs::MetadataExt;
        let status = handle.metadata()?;
        // SAFETY: geteuid has no preconditions and cannot fail.
        let user = unsafe { libc::geteuid() };
        if status.uid() != user || status.mode() & 0o077 != 0 {
            let text = format!(
                "cannot use {}: it must belong to user {user} with mode 0700 (it has user {} and mode {:04o})",
                path.display(),
                status.uid(),
                status.mode() & 0o7777
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let device_and_inode = (status.dev(), status.ino());
        let place = FolderPlace::Directory(Directory::new(handle, path)?);
        Ok(Self { place, path: path.to_owned(), made_here: false, owner: user, device_and_inode })
    }

    /// A folder of files in memory, which other processes cannot find by a path.
    pub fn in_memory(held: MemoryFiles) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // SAFETY: geteuid has no preconditions and cannot fail.
        let owner = unsafe { libc::geteuid() };
        // The device number 0 and this path exist nowhere else.
        Self {
            place: FolderPlace::Memory(Arc::new(held)),
            path: PathBuf::from(format!("memfd:{number}")),
            made_here: false,
            owner,
            device_and_inode: (0, number),
        }
    }

    /// Opens the same folder again by its path, if it has one. The folder may have been removed and made again.
    ///
    /// # Errors
    ///
    /// As [`Folder::open_existing`].
    pub fn open_again(&self) -> io::Result<Self> {
        match &self.place {
            FolderPlace::Directory(_) => Self::open_existing(&self.path),
            FolderPlace::Memory(_) => Ok(self.clone()),
        }
    }

    /// The files of a folder in memory. `None`: the folder is a directory.
    pub fn memory_files(&self) -> Option<&MemoryFiles> {
        match &self.place {
            FolderPlace::Directory(_) => None,
            FolderPlace::Memory(held) => Some(held),
        }
    }

    /// Opens a folder that may belong to any user. Only the superuser may open other users' folders.
    ///
    /// # Errors
    ///
    /// As [`Folder::open_existing`]. Also fails if the folder is named after one user and belongs to another.
    pub fn open_of_any_user(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let handle = open_path(File::options().read(true).custom_flags(flags), path)?;
        let status = handle.metadata()?;
        let (owner, mode) = (status.uid(), status.mode() & 0o7777);
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if mode & 0o077 != 0 {
            return refuse(format!(
                "others may enter it (mode {mode:04o}; fix: chmod 700, if no other user has written there)"
            ));
        }
        // SAFETY: geteuid has no preconditions and cannot fail.
        let user = unsafe { libc::geteuid() };
        if owner != user && user != 0 {
            return refuse(format!(
                "it belongs to user {owner}, and this is user {user} (fix: run as that user, or as root)"
            ));
        }
        let named = path.file_name().and_then(|name| name.to_str()?.strip_prefix("logspool-")?.parse().ok());
        if named.is_some_and(|named: u32| named != owner) {
            return refuse(format!(
                "it belongs to user {owner}, not to the one that it is named after (fix: remove it)"
            ));
        }
        let device_and_inode = (status.dev(), status.ino());
        let place = FolderPlace::Directory(Directory::new(handle, path)?);
        Ok(Self { place, path: path.to_owned(), made_here: false, owner, device_and_inode })
    }

    /// Device and inode number. They identify the folder even if its path changes.
    pub fn device_and_inode(&self) -> (u64, u64) {
        self.device_and_inode
    }

    /// Id of the user who owns the folder.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether the folder belongs to the user of this process.
    pub fn is_own(&self) -> bool {
        // SAFETY: geteuid has no preconditions and cannot fail.
        self.owner == unsafe { libc::geteuid() }
    }

    /// Number of the descriptor, for calls in a signal handler; −1 for a folder in memory. The program may have closed
    /// it, so compare the names in it before you change anything.
    pub fn descriptor(&self) -> RawFd {
        match &self.place {
            FolderPlace::Directory(directory) => directory.handle.number(),
            FolderPlace::Memory(_) => -1,
        }
    }

    /// Runs `act` with the descriptor of the directory, which is checked.
    fn with<R>(&self, act: impl FnOnce(RawFd) -> io::Result<R>) -> io::Result<R> {
        match &self.place {
            FolderPlace::Directory(directory) => directory.with(|handle| act(handle.as_raw_fd())),
            FolderPlace::Memory(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is on tmpfs or ramfs, whose files are in memory and never written back to a disk.
    pub fn is_memory(&self) -> io::Result<bool> {
        if self.memory_files().is_some() {
            return Ok(true);
        }
        let status = self.statfs()?;
        // f_type of tmpfs and ramfs, from statfs(2).
        Ok(matches!(status.f_type as u64, 0x0102_1994 | 0x8584_58f6))
    }

    /// Free bytes of the folder's file system. For a folder in memory: free bytes of the machine's memory.
    pub fn free_bytes(&self) -> io::Result<u64> {
        if self.memory_files().is_some() {
            return Ok(available_memory());
        }
        let status = self.statfs()?;
        Ok(status.f_bavail.saturating_mul(status.f_bsize as u64))
    }

    /// Size of the folder's file system in bytes, both used and free.
    pub fn total_bytes(&self) -> io::Result<u64> {
        let status = self.statfs()?;
        Ok(status.f_blocks.saturating_mul(status.f_bsize as u64))
    }

    fn statfs(&self) -> io::Result<libc::statfs> {
        // SAFETY: an all-zero statfs is a valid value of that plain struct.
        let mut status: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open and `status` is a valid place for the result.
        self.with(|folder| check(unsafe { libc::fstatfs(folder, &mut status) }))?;
        Ok(status)
    }

    fn open_at(&self, name: &str, flags: i32) -> io::Result<File> {
        let name = c_string(name)?;
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let made = Cell::new(false);
        let open = || {
            // A second try opens the file that the first one has made.
            let flags = if made.get() { flags & !libc::O_EXCL } else { flags };
            // SAFETY: the folder's descriptor is open and `name` is a valid C string.
            let descriptor = self.with(|folder| check(unsafe { libc::openat(folder, name.as_ptr(), flags, 0o600) }))?;
            made.set(true);
            // SAFETY: the descriptor was just opened, and nothing else owns it.
            Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
        };
        let is_it = |status: &libc::stat| match self.status_of(&name) {
            Ok(named) => (named.st_dev, named.st_ino) == (status.st_dev, status.st_ino),
            // It may have been removed since. Then opening it again decides.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        let file = File::from(open_high(open, is_it)?);
        if !self.is_own() {
            use std::os::unix::fs::MetadataExt;
            let status = file.metadata()?;
            // The owner of the folder may put anything there, even links to files of other users.
            if status.uid() != self.owner || !status.is_file() {
                let why = "it is no file of the user whose folder it lies in";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
        }
        Ok(file)
    }

    /// Makes a file; it is an error if the file exists.
    pub fn create(&self, name: &str) -> io::Result<File> {
        match self.memory_files() {
            Some(held) => held.create(name),
            None => self.open_at(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL),
        }
    }

    /// As [`Folder::create`], for a file that this process opens only once, now. A folder in memory keeps no descriptor
    /// of this file.
    pub fn create_once(&self, name: &str) -> io::Result<File> {
        match self.memory_files() {
            Some(held) => held.create_once(name),
            None => self.create(name),
        }
    }

    /// Opens a file; a missing file is made.
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        match self.memory_files() {
            Some(held) => held.open_or_create(name),
            None => self.open_at(name, libc::O_RDWR | libc::O_CREAT),
        }
    }

    /// Opens a file for reading and writing.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        match self.memory_files() {
            Some(held) => held.open_file(name),
            None => self.open_at(name, libc::O_RDWR),
        }
    }

    /// Takes the lock file `name`; a missing file is made. `None`: another process holds the lock.
    ///
    /// A process that removes a lock file holds its lock. So a lock is valid only while the name refers to the locked
    /// file.
    pub fn take_lock(&self, name: &str) -> io::Result<Option<KeptDescriptor<File>>> {
        loop {
            let lock = KeptDescriptor::new(self.open_or_create(name)?);
            if !try_lock(lock.get()?.as_raw_fd())? {
                return Ok(None);
            }
            if self.is_named(name, lock.get()?)? {
                return Ok(Some(lock));
            }
            // The last holder removed the file between opening and locking. Try again with the file that has the name
            // now.
        }
    }

    /// Whether `name` refers to this very file.
    pub fn is_named(&self, name: &str, file: &File) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let held = file.metadata()?;
        match self.status(name) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (held.dev(), held.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The result of stat(2) for a name, without following a link.
    pub fn status(&self, name: &str) -> io::Result<libc::stat> {
        if let Some(held) = self.memory_files() {
            return held.status(name);
        }
        self.status_of(&c_string(name)?)
    }

    fn status_of(&self, name: &CStr) -> io::Result<libc::stat> {
        // SAFETY: an all-zero stat is a valid value of that plain struct.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: the folder's descriptor is open, `name` is a valid C string, `status` a valid place.
        self.with(|folder| check(unsafe { libc::fstatat(folder, name.as_ptr(), &mut status, flags) }))?;
        Ok(status)
    }

    /// Time of the last change of names in the folder and time of the last access, in nanoseconds since the epoch.
    pub fn times(&self) -> io::Result<Times> {
        use std::os::unix::fs::MetadataExt;
        let FolderPlace::Directory(directory) = &self.place else { return Ok(Times::default()) };
        let status = directory.with(File::metadata)?;
        Ok(Times {
            modified: nanoseconds(status.mtime(), status.mtime_nsec()),
            accessed: nanoseconds(status.atime(), status.atime_nsec()),
        })
    }

    /// Size of the directory itself in bytes; 0 for a folder in memory.
    pub fn size(&self) -> io::Result<u64> {
        match &self.place {
            FolderPlace::Directory(directory) => Ok(directory.with(File::metadata)?.len()),
            FolderPlace::Memory(_) => Ok(0),
        }
    }

    /// Sets the time of the last access to now.
    pub fn touch(&self) -> io::Result<()> {
        let now = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
        let same = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT };
        // SAFETY: the descriptor is open, and the kernel reads both times of the array.
        self.with(|folder| check(unsafe { libc::futimens(folder, [now, same].as_ptr()) })).map(|_| ())
    }

    /// Sets the times of a file.
    pub fn set_times(&self, name: &str, times: Times) -> io::Result<()> {
        let name = c_string(name)?;
        let time = |ns: i64| libc::timespec {
            tv_sec: ns.div_euclid(1_000_000_000),
            tv_nsec: ns.rem_euclid(1_000_000_000) as libc::c_long,
        };
        let both = [time(times.accessed), time(times.modified)];
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: the folder's descriptor is open, `name` is a valid C string, and the kernel reads both times.
        self.with(|folder| check(unsafe { libc::utimensat(folder, name.as_ptr(), both.as_ptr(), flags) })).map(|_| ())
    }

    /// Removes a file; a missing file is no error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        if let Some(held) = self.memory_files() {
            held.remove(name);
            return Ok(());
        }
        let name = c_string(name)?;
        // SAFETY: the folder's descriptor is open and `name` is a valid C string.
        match self.with(|folder| check(unsafe { libc::unlinkat(folder, name.as_ptr(), 0) })) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Renames a file; replaces a file with the new name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (c_string(from)?, c_string(to)?);
        // SAFETY: the folder's descriptor is open and both names are valid C strings.
        self.with(|folder| check(unsafe { libc::renameat(folder, from.as_ptr(), folder, to.as_ptr()) })).map(|_| ())
    }

    /// Makes the names in the folder durable: fsync(2) of the folder.
    pub fn sync(&self) -> io::Result<()> {
        match &self.place {
            FolderPlace::Directory(directory) => directory.with(File::sync_all),
            FolderPlace::Memory(_) => Ok(()),
        }
    }

    /// Removes a file by C name: one system call, usable in a signal handler.
    pub fn unlink_c(&self, name: &CStr) {
        if let Some(held) = self.memory_files() {
            if let Some(keeper) = held.keeper() {
                keeper.remove_async_signal_safe(name);
            }
            return;
        }
        // SAFETY: the folder's descriptor is open and `name` is a valid C string.
        let _ = self.with(|folder| check(unsafe { libc::unlinkat(folder, name.as_ptr(), 0) }));
    }

    /// Names of the files in the folder.
    pub fn names(&self) -> io::Result<Vec<String>> {
        if let Some(held) = self.memory_files() {
            return Ok(held.names());
        }
        // Lists through the descriptor, not the path, so that the folder that was checked is the one that is read.
        let FolderPlace::Directory(directory) = &self.place else { return Ok(Vec::new()) };
        let entries = directory.with(entries_of)?;
        let mut names: Vec<String> = entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Whether the files survive this process. Files in memory survive only while the keeper runs.
    pub fn outlives_process(&self) -> bool {
        self.memory_files().is_none_or(|held| held.keeper().is_some_and(Handover::is_kept))
    }

    /// Tells the keeper of files in memory that no further file will be made in the folder.
    pub fn finish(&self) {
        if let Some(keeper) = self.memory_files().and_then(MemoryFiles::keeper) {
            keeper.end();
        }
    }

    /// Removes the folder if it is empty and was not configured by the user.
    pub fn remove_if_empty(&self) {
        if (self.made_here || self.path == default_path())
            && let Ok(name) = c_string(&self.path.to_string_lossy())
        {
            // SAFETY: `name` is a valid C string; rmdir refuses a folder that is not empty.
            unsafe { libc::rmdir(name.as_ptr()) };
        }
    }
}

/// The kernel takes the time of a change from a clock with coarse ticks. So the time of a new change may be this old,
/// in nanoseconds.
pub const CLOCK_TICK_NS: i64 = 20_000_000;

/// Times of a file or folder, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Last change: of the bytes of a file, of the names in a folder.
    pub modified: i64,
    /// Last access.
    pub accessed: i64,
}

impl Times {
    /// Takes the times from the result of stat(2).
    pub fn of(status: &libc::stat) -> Self {
        Self {
            modified: nanoseconds(status.st_mtime, status.st_mtime_nsec),
            accessed: nanoseconds(status.st_atime, status.st_atime_nsec),
        }
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Takes the exclusive record lock of a file. `Ok(false)`: another process holds the lock.
///
/// Record locks (`F_SETLK`) end with the process and are not inherited by forked children. But closing any descriptor
/// of the file in this process drops the process's locks on it. So open a lock file once per process and keep it open.
pub fn try_lock(descriptor: RawFd) -> io::Result<bool> {
    let lock = whole_file();
    // SAFETY: the descriptor is open and `lock` lives through the call.
    match check(unsafe { libc::fcntl(descriptor, libc::F_SETLK, &lock) }) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether another process has the record lock of a file. The check takes no lock. Closing `descriptor` afterwards
/// drops a lock that this process has on the file.
pub fn is_locked(descriptor: RawFd) -> io::Result<bool> {
    let mut lock = whole_file();
    // SAFETY: the descriptor is open and `lock` lives through the call.
    check(unsafe { libc::fcntl(descriptor, libc::F_GETLK, &mut lock) })?;
    Ok(lock.l_type != libc::F_UNLCK as i16)
}

/// The request for a lock of a whole file.
pub fn whole_file() -> libc::flock {
    libc::flock { l_type: libc::F_WRLCK as i16, l_whence: libc::SEEK_SET as i16, l_start: 0, l_len: 0, l_pid: 0 }
}
