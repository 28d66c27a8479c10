//! Descriptors that are held for longer than a call. The program may close or reuse any number at any moment.
//!
//! A [`KeptDescriptor`] has a high number, which programs rarely reach. It is used only after fstat(2) has shown that
//! the number still refers to the same file. Closing is a use too: the number may be the program's by now. One check
//! costs about 0.3 us (one fstat(2), measured on a virtual machine).
//!
//! Not solved: a check and the call after it are two system calls, and a new descriptor has a low number until it is
//! moved up. A thread that closes the number and opens another file in between is not noticed.
//!
//! `scripts/check_descriptors.py` lists each field with a descriptor, and the reason for each that is not kept here.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Kept descriptors have numbers of at least the limit of open files minus this number, but not above
/// [`HIGHEST_START`].
///
/// Chosen: a process has some dozens of kept descriptors. Programs with a limit of 1,024 reach 768 open files rarely.
const BELOW_LIMIT: u64 = 256;

/// The kernel's table of descriptors is as long as its highest number demands, and each fork copies it.
///
/// Chosen: 32 KiB for the table. Doubling it doubles what a fork copies. That cost is not measured.
const HIGHEST_START: u64 = 3840;

/// What identifies an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device.
    pub device: u64,
    /// Inode on the device.
    pub inode: u64,
    kind: libc::mode_t,
}

impl FileIdentity {
    /// The file that a descriptor refers to. `None`: the number is not open. Async-signal-safe.
    pub fn of(descriptor: RawFd) -> Option<Self> {
        // SAFETY: an all-zero stat is a valid value of that plain struct.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` is a valid place, and the kernel checks the descriptor.
        (unsafe { libc::fstat(descriptor, &mut status) } == 0).then(|| Self::of_status(&status))
    }

    /// The file of a result of stat(2).
    pub fn of_status(status: &libc::stat) -> Self {
        Self { device: status.st_dev, inode: status.st_ino, kind: status.st_mode & libc::S_IFMT }
    }
}

/// A descriptor that is used only while its number refers to the same file; see the module documentation.
#[derive(Debug)]
pub struct KeptDescriptor<T: Into<OwnedFd>> {
    held: ManuallyDrop<T>,
    number: RawFd,
    /// `None`: the file could not be identified. Then the descriptor counts as gone.
    identity: Option<FileIdentity>,
    /// Whether a check has failed. Then the descriptor stays gone: a successor for the same file may have this number.
    gone: AtomicBool,
}

impl<T: AsRawFd + From<OwnedFd> + Into<OwnedFd>> KeptDescriptor<T> {
    /// Keeps a descriptor that was just made. It gets another number, so call this before you take a record lock.
    pub fn new(held: T) -> Self {
        let held = T::from(move_up(held.into()));
        let number = held.as_raw_fd();
        let gone = AtomicBool::new(false);
        Self { identity: FileIdentity::of(number), number, held: ManuallyDrop::new(held), gone }
    }
}

impl<T: Into<OwnedFd>> KeptDescriptor<T> {
    /// Whether the number still refers to the file. Async-signal-safe.
    pub fn is_ours(&self) -> bool {
        // Relaxed: the flag orders no other data.
        if self.gone.load(Ordering::Relaxed) {
            return false;
        }
        let is_ours = self.identity.is_some() && FileIdentity::of(self.number) == self.identity;
        if !is_ours {
            self.gone.store(true, Ordering::Relaxed);
        }
        is_ours
    }

    /// The open file, for one use.
    ///
    /// # Errors
    ///
    /// EBADF if the program has closed the descriptor, see [`is_gone`].
    pub fn get(&self) -> io::Result<&T> {
        if self.is_ours() { Ok(&self.held) } else { Err(gone()) }
    }

    /// Does the same as [`KeptDescriptor::get`], for a use that changes the value.
    ///
    /// # Errors
    ///
    /// As [`KeptDescriptor::get`].
    pub fn get_mut(&mut self) -> io::Result<&mut T> {
        if self.is_ours() { Ok(&mut self.held) } else { Err(gone()) }
    }

    /// Runs `act` with the open file. If the program has closed the descriptor, `open` opens the same file again for this
    /// call. Async-signal-safe if `open` and `act` are.
    ///
    /// # Errors
    ///
    /// The errors of `open` and `act`; EBADF if `open` finds another file, see [`is_gone`].
    pub fn with<R>(&self, open: impl FnOnce() -> io::Result<T>, act: impl FnOnce(&T) -> io::Result<R>) -> io::Result<R>
    where
        T: AsRawFd,
    {
        if let Ok(held) = self.get() {
            return act(held);
        }
        let opened = open()?;
        if FileIdentity::of(opened.as_raw_fd()) == self.identity { act(&opened) } else { Err(gone()) }
    }

    /// In a forked child: closes the child's copy of a descriptor whose owner the child never uses.
    pub fn close_inherited(&self) {
        if self.is_ours() {
            // SAFETY: this child's copy. The value is in memory that the child never uses, so it is not closed twice.
            unsafe { libc::close(self.number) };
        }
    }

    /// The number, for comparisons. Nothing may be done to a file through it.
    pub fn number(&self) -> RawFd {
        self.number
    }

    /// The file that was kept.
    pub fn identity(&self) -> Option<FileIdentity> {
        self.identity
    }
}

impl<T: Into<OwnedFd>> Drop for KeptDescriptor<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: `held` is not used again. It is dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.held) };
        }
    }
}

/// In a forked child: closes its copy of a descriptor of the parent, if the number still refers to that file.
///
/// For descriptors that are listed by number and inode, where the child cannot reach the value that holds them.
pub fn close_copy(number: RawFd, inode: u64) {
    if FileIdentity::of(number).is_some_and(|file| file.inode == inode) {
        // SAFETY: this child's copy; the child never uses the value that holds the descriptor.
        unsafe { libc::close(number) };
    }
}

/// The error for a descriptor that the program has closed.
pub fn gone() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

/// Whether an error says that the program has closed a descriptor.
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADF)
}

/// Gives a descriptor a high number, with close-on-exec. Without a free high number it keeps its own.
pub fn move_up(descriptor: OwnedFd) -> OwnedFd {
    duplicate_up(descriptor.as_raw_fd()).unwrap_or(descriptor)
}

/// Duplicates a descriptor with a high number and close-on-exec.
fn duplicate_up(number: RawFd) -> Option<OwnedFd> {
    if cfg!(miri) {
        return None;
    }
    // SAFETY: fcntl checks the descriptor itself.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, first_number()) };
    // SAFETY: fcntl has just made the descriptor, so nothing else owns it.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Duplicates a descriptor of the program, with close-on-exec and a high number, or at least one above the three
/// standard ones.
///
/// # Errors
///
/// The error of fcntl(2).
pub fn duplicate(number: RawFd) -> io::Result<File> {
    if let Some(copy) = duplicate_up(number) {
        return Ok(copy.into());
    }
    // SAFETY: fcntl checks the descriptor itself.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fcntl has just made the descriptor, so nothing else owns it.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// Lowest number of a kept descriptor.
fn first_number() -> RawFd {
    // SAFETY: an all-zero rlimit is a valid value, and `limit` a valid place.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur
    };
    limit.saturating_sub(BELOW_LIMIT).max(limit / 2).min(HIGHEST_START) as RawFd
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::super::memory_files::memory_file;
    use super::*;

    #[test]
    fn a_number_that_the_program_reused_is_neither_written_nor_closed() {
        let mut kept = KeptDescriptor::new(memory_file().unwrap());
        kept.get_mut().unwrap().write_all(b"ours").unwrap();
        let foreign = memory_file().unwrap();
        foreign.write_all_at(b"theirs", 0).unwrap();
        let number = kept.number();
        assert!(number > 15, "{number}");
        // SAFETY: both numbers belong to this test.
        assert_eq!(number, unsafe { libc::dup2(foreign.as_raw_fd(), number) });

        assert!(is_gone(&kept.get().unwrap_err()) && kept.get_mut().is_err());
        drop(kept);
        assert_eq!(FileIdentity::of(foreign.as_raw_fd()), FileIdentity::of(number), "it is the program's now");
        // SAFETY: a number of this test.
        unsafe { libc::close(number) };
        assert_eq!(6, foreign.metadata().unwrap().len());
    }

    #[test]
    fn a_successor_with_the_same_number_and_file_is_not_closed() {
        let file = memory_file().unwrap();
        let kept = KeptDescriptor::new(file.try_clone().unwrap());
        let number = kept.number();
        // SAFETY: a number of this test.
        unsafe { libc::close(number) };
        assert!(!kept.is_ours());
        // SAFETY: both numbers belong to this test.
        assert_eq!(number, unsafe { libc::dup2(file.as_raw_fd(), number) });

        drop(kept);
        assert_eq!(FileIdentity::of(file.as_raw_fd()), FileIdentity::of(number));
        // SAFETY: a number of this test.
        unsafe { libc::close(number) };
    }

    #[test]
    fn a_closed_number_is_gone() {
        let kept = KeptDescriptor::new(memory_file().unwrap());
        // SAFETY: a number of this test.
        unsafe { libc::close(kept.number()) };

        assert!(!kept.is_ours());
    }
}
