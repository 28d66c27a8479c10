//! Opens, reads and lists files with descriptors of high numbers (`descriptor.rs`). The program may close or reuse low
//! numbers at any moment.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::RawDir;

use super::descriptor::{FileIdentity, TRIES, gone, is_gone, open_high};
use super::kept::KeptDescriptor;

/// Bytes of names that one system call returns.
///
/// Chosen: some hundred names. A folder of a thousand names takes four calls.
const LIST_BYTES: usize = 16 * 1024;

/// Opens the file that `path` names, with a high number.
///
/// # Errors
///
/// As [`open_high`].
pub fn open_path(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let before = Cell::new(None);
    let is_it = |status: &libc::stat| {
        let opened = FileIdentity::of_status(status);
        let named = match fs::metadata(path) {
            Ok(named) => (named.dev(), named.ino()) == (opened.device, opened.inode),
            // It may have been removed since. Then opening it again decides.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        // A file system that numbers open files in another way gives the same answer twice. A reused number does not.
        named || before.replace(Some(opened)) == Some(opened)
    };
    open_high(|| options.open(path).map(OwnedFd::from), is_it).map(File::from)
}

/// Reads a whole file. If the program closes the descriptor in between, reads it again.
///
/// # Errors
///
/// As [`open_path`], and those of read(2).
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    again_while_gone(|| {
        let mut file = KeptDescriptor::new(open_path(File::options().read(true), path.as_ref())?);
        let mut bytes = Vec::new();
        file.get_mut()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// As [`read`], for text.
///
/// # Errors
///
/// As [`read`]; `InvalidData` if it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Name without the folder.
    pub name: OsString,
    /// Inode that the folder states for the name.
    pub inode: u64,
}

/// Lists the names in a folder, without `.` and `..`. If the program closes the descriptor in between, lists them again.
///
/// # Errors
///
/// As [`open_path`], and those of getdents64(2).
pub fn entries(path: impl AsRef<Path>) -> io::Result<Vec<FolderEntry>> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_DIRECTORY);
    again_while_gone(|| list(open_path(&options, path.as_ref())?))
}

/// As [`entries`], for a folder that is open. Its position stays, and it needs no /proc.
///
/// # Errors
///
/// As [`entries`].
pub fn entries_of(folder: &File) -> io::Result<Vec<FolderEntry>> {
    let identity = FileIdentity::of(folder.as_raw_fd()).ok_or_else(gone)?;
    let open = || {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: a valid C string, and the descriptor is open.
        let opened = unsafe { libc::openat(folder.as_raw_fd(), c".".as_ptr(), flags) };
        if opened < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(opened) })
    };
    list(open_high(open, |status| FileIdentity::of_status(status) == identity)?.into())
}

fn list(folder: File) -> io::Result<Vec<FolderEntry>> {
    let folder = KeptDescriptor::new(folder);
    let mut buffer = Vec::with_capacity(LIST_BYTES);
    let mut found = Vec::new();
    let mut names = RawDir::new(folder.get()?, buffer.spare_capacity_mut());
    while let Some(entry) = names.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            found.push(FolderEntry { name: name.to_owned(), inode: entry.ino() });
        }
    }
    Ok(found)
}

/// Makes the names in a folder durable.
///
/// # Errors
///
/// As [`open_path`], and those of fsync(2).
pub fn sync_folder(path: impl AsRef<Path>) -> io::Result<()> {
    again_while_gone(|| KeptDescriptor::new(open_path(File::options().read(true), path.as_ref())?).get()?.sync_all())
}

/// Runs `act` again, a few times at most, if the program has closed the descriptor that it used.
///
/// # Errors
///
/// The error of `act`; EBADF if the program closes the descriptor each time.
pub fn again_while_gone<R>(mut act: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    for _ in 1..TRIES {
        match act() {
            Err(error) if is_gone(&error) => {}
            done => return done,
        }
    }
    act()
}

/// Opens the file of a descriptor again, as an open file of its own.
///
/// # Errors
///
/// As [`open_high`], and the errors of open(2) on /proc.
pub fn open_again(options: &OpenOptions, file: &File) -> io::Result<File> {
    let number = file.as_raw_fd();
    let identity = FileIdentity::of(number).ok_or_else(gone)?;
    let path = format!("/proc/thread-self/fd/{number}");
    let opened =
        open_high(|| options.open(&path).map(OwnedFd::from), |status| FileIdentity::of_status(status) == identity);
    opened.map(File::from)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn a_file_is_opened_again_with_its_own_position() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"text").unwrap();
        let mut again = open_again(OpenOptions::new().read(true), &file).unwrap();

        let mut text = String::new();
        again.read_to_string(&mut text).unwrap();
        assert_eq!(("text", 4), (text.as_str(), file.stream_position().unwrap()));
    }

    #[test]
    fn a_folder_is_listed_by_its_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let open = File::open(folder.path()).unwrap();

        for _ in 0..2 {
            let mut found = entries_of(&open).unwrap();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            assert_eq!(["a", "b"], [&*found[0].name, &*found[1].name]);
            assert_eq!(2, entries(folder.path()).unwrap().len());
        }
        assert!(entries(folder.path().join("none")).is_err());
    }
}
