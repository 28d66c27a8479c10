//! The open file of a sink, and how to open it again after the program has closed its descriptor.
//!
//! A program that closes descriptors it does not know (a daemon, `os.closerange`) goes on to write through the streams
//! that it has kept. So the sink duplicates the program's own descriptor again, if that still refers to the same file.
//! Otherwise it opens the path again, to append.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;

use logspool_record::definition::Descriptor;
use logspool_sys::descriptor::duplicate;
use logspool_sys::kept::{self, FileIdentity, KeptDescriptor};
use logspool_sys::opening::open_path;

/// An open file; see the module documentation.
#[derive(Debug)]
pub struct LogStream {
    path: String,
    descriptor: Descriptor,
    file: KeptDescriptor<File>,
}

/// Whether [`LogStream::restore`] has changed the open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The same file is open.
    Same,
    /// The path names another file now, and this file is open.
    Other,
}

impl LogStream {
    /// Opens `path` or duplicates the program's descriptor.
    ///
    /// # Errors
    ///
    /// The error of open(2) or fcntl(2).
    pub fn open(path: &str, descriptor: Descriptor) -> io::Result<Self> {
        let file = match descriptor {
            Descriptor::Open => open_to_append(path)?,
            Descriptor::Duplicate(number) => duplicate(number)?,
        };
        Ok(Self { path: path.to_owned(), descriptor, file: KeptDescriptor::new(file) })
    }

    /// The open file.
    ///
    /// # Errors
    ///
    /// EBADF if the program has closed the descriptor.
    pub fn file(&self) -> io::Result<&File> {
        self.file.get()
    }

    /// Does the same as [`LogStream::file`], for a use that changes the position.
    ///
    /// # Errors
    ///
    /// EBADF if the program has closed the descriptor.
    pub fn file_mut(&mut self) -> io::Result<&mut File> {
        self.file.get_mut()
    }

    /// Opens the file again if the program has closed the descriptor.
    ///
    /// # Errors
    ///
    /// EBADF if the file cannot be opened again. The error of open(2) if it may succeed later.
    pub fn restore(&mut self) -> io::Result<RestoreOutcome> {
        if self.file.is_ours() {
            return Ok(RestoreOutcome::Same);
        }
        let before = self.file.identity();
        let own = match self.descriptor {
            Descriptor::Duplicate(number) => duplicate(number).ok(),
            Descriptor::Open => None,
        };
        // The program may have reused the number for another file.
        let own = own.filter(|file| before.is_some() && FileIdentity::of(file.as_raw_fd()) == before);
        let file = match own {
            Some(file) => file,
            None => open_to_append(&self.path).map_err(|error| match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOSPC | libc::EINTR | libc::EIO) => error,
                _ => kept::gone(),
            })?,
        };
        self.file = KeptDescriptor::new(file);
        Ok(if self.file.identity() == before { RestoreOutcome::Same } else { RestoreOutcome::Other })
    }

    /// Uses another file from now on, which was opened by the path.
    pub fn replace(&mut self, file: File) {
        self.descriptor = Descriptor::Open;
        self.file = KeptDescriptor::new(file);
    }
}

/// Opens as `open(path, "a")` does in Python. A missing file is created, with mode 0666 minus the umask. The position
/// is the end of the file.
pub fn open_to_append(path: &str) -> io::Result<File> {
    let mut file = open_path(OpenOptions::new().append(true).create(true), Path::new(path))?;
    match file.seek(SeekFrom::End(0)) {
        Err(error) if error.raw_os_error() != Some(libc::ESPIPE) => Err(error),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Puts another file in place of a kept descriptor, as a program does that closes all descriptors and opens files.
    fn reuse(stream: &LogStream, foreign: &File) {
        // SAFETY: both numbers belong to this test.
        assert!(unsafe { libc::dup2(foreign.as_raw_fd(), stream.file.number()) } >= 0);
    }

    #[test]
    fn the_programs_own_stream_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let own = File::create(&path).unwrap();
        let mut stream = LogStream::open(path.to_str().unwrap(), Descriptor::Duplicate(own.as_raw_fd())).unwrap();
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        let foreign = tempfile::tempfile().unwrap();
        reuse(&stream, &foreign);

        assert!(stream.file().is_err());
        assert_eq!(RestoreOutcome::Same, stream.restore().unwrap());
        stream.file_mut().unwrap().write_all(b"line\n").unwrap();
        assert_eq!("line\n", std::fs::read_to_string(folder.path().join("moved")).unwrap());
        assert_eq!(0, foreign.metadata().unwrap().len());
    }

    #[test]
    fn without_a_stream_the_path_is_opened_to_append() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "before\n").unwrap();
        let mut stream = LogStream::open(path.to_str().unwrap(), Descriptor::Open).unwrap();
        let foreign = tempfile::tempfile().unwrap();
        reuse(&stream, &foreign);

        assert_eq!(RestoreOutcome::Same, stream.restore().unwrap());
        stream.file_mut().unwrap().write_all(b"after\n").unwrap();
        assert_eq!("before\nafter\n", std::fs::read_to_string(&path).unwrap());

        reuse(&stream, &foreign);
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert!(kept::is_gone(&stream.restore().unwrap_err()));
        assert_eq!(0, foreign.metadata().unwrap().len());
    }
}
