//! Files of a queue without a folder. Each file is memory (memfd_create(2)) with a name.
//!
//! The program makes the files and sends each of them to its keeper (`handover.rs`), which stores them under the same
//! names. So program and keeper each have a [`Folder`](super::folder::Folder) that the other parts of the core use like
//! a folder on tmpfs.
//!
//! Record locks work on these files as on other files: the locks belong to the inode, which both processes share.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::descriptor::{duplicate, open_high};
use super::handover::{Handover, Message};
use super::kept::KeptDescriptor;
use crate::platform;

/// The named files of one process; see the module documentation.
#[derive(Debug, Default)]
pub struct MemoryFiles {
    /// The files by name. The value is `None` for a file that is opened only once, whose descriptor is not kept.
    files: Mutex<BTreeMap<String, Option<KeptDescriptor<File>>>>,
    /// The connection to the keeper; `None` in the keeper itself.
    keeper: Option<Handover>,
}

impl MemoryFiles {
    /// The files of a program that sends each of them to `keeper`.
    pub fn with_keeper(keeper: Handover) -> Self {
        Self { files: Mutex::default(), keeper: Some(keeper) }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Option<KeptDescriptor<File>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection to the keeper.
    pub fn keeper(&self) -> Option<&Handover> {
        self.keeper.as_ref()
    }

    /// Applies a message from the program: adds or removes a file.
    pub fn apply(&self, message: Message) {
        match message {
            Message::Added(name, file) => _ = self.files().insert(name, Some(file)),
            Message::Removed(name) => _ = self.files().remove(&name),
            Message::Unknown => {}
        }
    }

    /// Makes a file; it is an error if the file exists.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`; errors of the system calls.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.add(name, |file| Ok(Some(KeptDescriptor::new(duplicate(file.as_raw_fd())?))))
    }

    /// As [`MemoryFiles::create`], for a file that cannot be opened again by its name: keeps no descriptor of it.
    ///
    /// # Errors
    ///
    /// As [`MemoryFiles::create`].
    pub fn create_once(&self, name: &str) -> io::Result<File> {
        self.add(name, |_| Ok(None))
    }

    fn add(
        &self,
        name: &str,
        keep: impl FnOnce(&File) -> io::Result<Option<KeptDescriptor<File>>>,
    ) -> io::Result<File> {
        let mut files = self.files();
        if files.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let file = memory_file()?;
        files.insert(name.to_owned(), keep(&file)?);
        if let Some(keeper) = &self.keeper {
            keeper.add(name, &file);
        }
        Ok(file)
    }

    /// Opens a file for reading and writing, at its beginning.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file of this name can be opened again; errors of the system calls.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let mut file = self.find(name, |file| duplicate(file.as_raw_fd()))?;
        file.rewind()?;
        Ok(file)
    }

    fn find<R>(&self, name: &str, then: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        match self.files().get(name) {
            Some(Some(file)) => then(file.get()?),
            Some(None) | None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Opens a file, or makes it.
    ///
    /// # Errors
    ///
    /// Errors of the system calls.
    pub fn open_or_create(&self, name: &str) -> io::Result<File> {
        match self.open_file(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.create(name),
            opened => opened,
        }
    }

    /// The result of fstat(2) for a file.
    ///
    /// # Errors
    ///
    /// As [`MemoryFiles::open_file`].
    pub fn status(&self, name: &str) -> io::Result<libc::stat> {
        self.find(name, |file| {
            // SAFETY: an all-zero stat is a valid value of that plain struct.
            let mut status: libc::stat = unsafe { std::mem::zeroed() };
            // SAFETY: the descriptor is open and `status` a valid place.
            match unsafe { libc::fstat(file.as_raw_fd(), &mut status) } {
                0 => Ok(status),
                _ => Err(io::Error::last_os_error()),
            }
        })
    }

    /// Removes a file; a missing file is no error.
    pub fn remove(&self, name: &str) {
        let removed = self.files().remove(name);
        if let (Some(_), Some(keeper)) = (removed, &self.keeper) {
            keeper.remove(name);
        }
    }

    /// Names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        self.files().keys().cloned().collect()
    }
}

/// A new file in memory.
///
/// # Errors
///
/// The error of memfd_create(2).
pub fn memory_file() -> io::Result<File> {
    // A program hardly puts another empty file without a name in its place.
    let is_it = |status: &libc::stat| {
        status.st_mode & libc::S_IFMT == libc::S_IFREG && (status.st_nlink, status.st_size) == (0, 0)
    };
    open_high(make_memory_file, is_it).map(File::from)
}

fn make_memory_file() -> io::Result<OwnedFd> {
    // The first try makes the file not executable. Linux 6.3 and later expect this flag (0x8); older kernels do not
    // know it.
    for flags in [0x8, 0] {
        match platform::memory_file(c"logspool", flags) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            made => return made,
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_file_has_a_name_until_it_is_removed() {
        let held = MemoryFiles::default();
        let file = held.create("a").unwrap();
        file.write_all_at(b"text", 0).unwrap();
        assert_eq!(ErrorKind::AlreadyExists, held.create("a").unwrap_err().kind());
        assert_eq!(4, held.status("a").unwrap().st_size);
        let mut text = [0; 4];
        held.open_file("a").unwrap().read_exact_at(&mut text, 0).unwrap();
        assert_eq!(b"text", &text);

        held.create_once("b").unwrap();
        assert_eq!(vec!["a", "b"], held.names());
        assert_eq!(ErrorKind::NotFound, held.open_file("b").unwrap_err().kind());
        held.remove("a");
        held.remove("a");
        assert_eq!(vec!["b"], held.names());
    }
}
