//! Descriptors that are held for longer than a call. The program may close or reuse any number at any moment.
//!
//! A [`KeptDescriptor`] has a high number, which programs rarely reach. It is used only after fstat(2) has shown that
//! the number still refers to the same file. Closing is a use too: the number may be the program's by now. One check
//! costs about 0.3 us (one fstat(2), measured on a virtual machine).
//!
//! Not solved: a check and the call after it are two system calls. A thread that closes the high number and makes it
//! another file in between is not noticed. Only dup2(2) to this very number does so.
//!
//! `scripts/check_descriptors.py` lists each field with a descriptor, and the reason for each that is not kept here.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::descriptor::open_high;
pub use super::descriptor::{FileIdentity, gone, is_gone, move_up};

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
    pub fn with<R>(
        &self,
        mut open: impl FnMut() -> io::Result<T>,
        act: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R>
    where
        T: AsRawFd + From<OwnedFd>,
    {
        if let Ok(held) = self.get() {
            return act(held);
        }
        let is_it = |status: &libc::stat| self.identity == Some(FileIdentity::of_status(status));
        let opened = Self::new(T::from(open_high(|| open().map(Into::into), is_it)?));
        act(opened.get()?)
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

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::super::memory_files::memory_file;
    use super::*;

    #[test]
    fn a_descriptor_reused_by_the_program_is_neither_written_nor_closed() {
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
    fn a_later_descriptor_with_the_same_number_and_file_is_not_closed() {
        let file = memory_file().unwrap();
        let kept = KeptDescriptor::new(file.try_clone().unwrap());
        let number = kept.number();
        let foreign = memory_file().unwrap();
        // SAFETY: both numbers belong to this test. It never closes the number, which another thread could take then.
        assert_eq!(number, unsafe { libc::dup2(foreign.as_raw_fd(), number) });
        assert!(!kept.is_ours());
        // SAFETY: both numbers belong to this test.
        assert_eq!(number, unsafe { libc::dup2(file.as_raw_fd(), number) });

        drop(kept);
        assert_eq!(FileIdentity::of(file.as_raw_fd()), FileIdentity::of(number));
        // SAFETY: a number of this test.
        unsafe { libc::close(number) };
    }

    #[test]
    fn a_closed_descriptor_is_detected() {
        let kept = KeptDescriptor::new(memory_file().unwrap());
        // SAFETY: a number of this test.
        unsafe { libc::close(kept.number()) };

        assert!(!kept.is_ours());
    }
}
