//! The name of a process's own segment, and the lock file with the same name.
//!
//! Another copy of the library in this process uses the same file names. Its files are not even opened here: closing
//! its lock file would drop its lock. So both files are made as new files. If a file exists already, this copy must not
//! have a queue (`ErrorKind::AlreadyExists`). The exception are files that this copy has made itself, for a segment
//! that it has abandoned since: they are opened or replaced.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use logspool_sys::folder::{Folder, try_lock};
use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::sleep::sleep_interruptibly;

/// Time for which this process tries to take its own lock. A recoverer holds the lock for microseconds.
const TIMEOUT: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);

/// Device and inode of the files that this copy has made in this process. They stay open as long as their segment is in
/// use, so no other file gets the same numbers.
static OWN_FILES: PerProcess<Vec<(u64, u64)>> = PerProcess::new();

/// Takes this process's lock in a folder, and makes the file of its segment.
///
/// # Errors
///
/// `AlreadyExists`: another copy of the library in this process has its segment there. `AddrInUse`: another process
/// holds the lock. Errors of the system calls.
pub fn make(folder: &Folder, name: &str) -> io::Result<(OwnerLock, File)> {
    let (lock_name, segment_name) = (format!("{name}.lock"), format!("{name}.seg"));
    let lock = take_lock(folder, &lock_name)?;
    if is_made_by_this_copy(folder, &segment_name)? {
        folder.remove(&segment_name)?;
    }
    let segment = folder.create(&segment_name).inspect_err(|_| _ = folder.remove(&lock_name))?;
    let made = [id_of(lock.get()?)?, id_of(&segment)?];
    OWN_FILES.with(|all| all.extend(made));
    Ok((OwnerLock(Mutex::new(lock)), segment))
}

/// The lock by which other processes see that the owner of a segment lives.
#[derive(Debug)]
pub struct OwnerLock(Mutex<KeptDescriptor<File>>);

impl OwnerLock {
    /// Takes the lock again if the program has closed its descriptor, which drops the lock. Until then, other processes
    /// of this pid namespace see that the segment is still mapped.
    ///
    /// The lock file is opened only if its descriptor is gone: closing a second one would drop the lock.
    pub fn renew(&self, folder: &Folder, name: &str) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_ours() {
            return;
        }
        let lock_name = format!("{name}.lock");
        // The next call tries again. A recoverer may hold the lock for a moment.
        let Ok(lock) = folder.open_file(&lock_name).map(KeptDescriptor::new) else { return };
        let is_own = lock.identity() == held.identity();
        if is_own && lock.get().is_ok_and(|lock| matches!(try_lock(lock.as_raw_fd()), Ok(true))) {
            *held = lock;
        }
    }
}

fn id_of(file: &File) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    file.metadata().map(|status| (status.dev(), status.ino()))
}

/// Whether the file `name` exists and was made by this copy.
fn is_made_by_this_copy(folder: &Folder, name: &str) -> io::Result<bool> {
    match folder.status(name) {
        Ok(status) => Ok(OWN_FILES.with(|all| all.contains(&(status.st_dev, status.st_ino)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock, and retries for [`TIMEOUT`]. A recoverer that looks for leftovers may hold the lock while it is new
/// and unlocked, or while it removes the rest of an abandoned segment.
fn take_lock(folder: &Folder, lock_name: &str) -> io::Result<KeptDescriptor<File>> {
    let deadline = Instant::now() + TIMEOUT;
    let mut failure = ErrorKind::AlreadyExists;
    loop {
        let taken = if is_made_by_this_copy(folder, lock_name)? {
            folder.take_lock(lock_name)
        } else {
            folder.create(lock_name).map(KeptDescriptor::new).and_then(|lock| {
                failure = ErrorKind::AddrInUse;
                let is_taken = try_lock(lock.get()?.as_raw_fd())? && folder.is_named(lock_name, lock.get()?)?;
                Ok(is_taken.then_some(lock))
            })
        };
        match taken {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        if Instant::now() >= deadline {
            let text = match failure {
                ErrorKind::AddrInUse => "another process holds this process's segment name",
                _ => "the files of another copy of this library in the process are there",
            };
            return Err(io::Error::new(failure, text));
        }
        sleep_interruptibly(PAUSE);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use logspool_sys::folder::is_locked;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let private = std::fs::Permissions::from_mode(0o700);
        // On tmpfs no file gets the inode of a removed one.
        let path = tempfile::Builder::new().permissions(private).tempdir_in("/dev/shm").unwrap();
        let folder = Folder::open_existing(path.path()).unwrap();
        (path, folder)
    }

    #[test]
    fn files_of_another_copy_are_neither_removed_nor_opened() {
        let (_path, folder) = folder();
        let (segment, lock) = (folder.create("a.seg").unwrap(), folder.create("a.lock").unwrap());
        assert!(try_lock(lock.as_raw_fd()).unwrap());

        assert_eq!(ErrorKind::AlreadyExists, make(&folder, "a").unwrap_err().kind());
        assert!(folder.is_named("a.seg", &segment).unwrap() && folder.is_named("a.lock", &lock).unwrap());
        // SAFETY: the child makes system calls and ends by `_exit`; the descriptor is open.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_held = is_locked(lock.as_raw_fd()).is_ok_and(|held| held);
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!is_held)) };
        }
        let mut status = -1;
        // SAFETY: a child of ours and a local.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(0, status, "the lock of the other copy is dropped");
    }

    #[test]
    fn a_segment_without_a_lock_is_not_replaced() {
        let (_path, folder) = folder();
        let segment = folder.create("a.seg").unwrap();

        assert_eq!(ErrorKind::AlreadyExists, make(&folder, "a").unwrap_err().kind());
        assert!(folder.is_named("a.seg", &segment).unwrap());
        assert!(folder.status("a.lock").is_err(), "nothing is left of the attempt");
    }

    #[test]
    fn a_copy_replaces_its_own_segment() {
        let (_path, folder) = folder();
        let (_lock, first) = make(&folder, "a").unwrap();
        let (_lock, second) = make(&folder, "a").unwrap();

        assert!(!folder.is_named("a.seg", &first).unwrap() && folder.is_named("a.seg", &second).unwrap());
    }

    #[test]
    fn a_lock_whose_descriptor_the_program_closed_is_taken_again() {
        let (_path, folder) = folder();
        let (lock, _segment) = make(&folder, "a").unwrap();
        let number = lock.0.lock().unwrap().number();
        // SAFETY: the number of this test's lock, closed as a program closes all its descriptors.
        unsafe { libc::close(number) };
        lock.renew(&folder, "a");

        assert!(lock.0.lock().unwrap().is_ours());
        // SAFETY: the child makes system calls and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_held = folder.open_file("a.lock").and_then(|file| is_locked(file.as_raw_fd()));
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!is_held.is_ok_and(|held| held))) };
        }
        let mut status = -1;
        // SAFETY: a child of ours and a local.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(0, status, "the lock is not held");
    }
}
