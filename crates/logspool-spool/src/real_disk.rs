//! The disk on Linux: a private folder, files opened relative to its descriptor, and pread, pwrite and fdatasync.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use logspool_sys::folder::Folder;
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::platform::random;

use super::disk::{Disk, DiskError, Operation};

/// Name of the lock file that the owner of the folder holds.
const LOCK_NAME: &str = "owner.lock";

/// A folder that belongs to this user alone and is used by one process at a time.
#[derive(Debug)]
pub struct RealDisk {
    folder: Folder,
    /// Held while the folder is used. `None` in a child folder, which relies on its parent's lock.
    lock: Option<Mutex<KeptDescriptor<File>>>,
}

/// An open file and its name, for errors.
#[derive(Debug)]
pub struct RealFile {
    file: KeptDescriptor<File>,
    name: String,
}

impl RealDisk {
    /// Opens the folder and takes its lock. A new folder gets mode 0700.
    ///
    /// The lock is a record lock: it ends with the process and forked children do not inherit it. It does not prevent a
    /// process from opening its own folder twice, which would write two streams into one folder.
    ///
    /// # Errors
    ///
    /// The operating system's error; `WouldBlock` if another process has the lock.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let fail = |source| DiskError { operation: Operation::Open, path: path.to_owned(), source };
        let folder = Folder::open(path).map_err(fail)?;
        let lock = folder.take_lock(LOCK_NAME).map_err(fail)?;
        let lock = lock.ok_or_else(|| fail(io::Error::new(io::ErrorKind::WouldBlock, "another process uses it")))?;
        Ok(Self { folder, lock: Some(Mutex::new(lock)) })
    }

    /// Opens an existing folder for reading, without a lock.
    ///
    /// # Errors
    ///
    /// The operating system's error.
    pub fn open_read_only(path: &Path) -> Result<Self, DiskError> {
        let fail = |source| DiskError { operation: Operation::Open, path: path.to_owned(), source };
        Ok(Self { folder: Folder::open_existing(path).map_err(fail)?, lock: None })
    }

    /// Takes the lock again if the program has closed its descriptor, which drops the lock.
    fn renew_lock(&self) -> io::Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.is_ours() {
            let lock = self.folder.take_lock(LOCK_NAME)?;
            let lock = lock.filter(|lock| lock.identity() == held.identity());
            *held = lock.ok_or_else(|| io::Error::new(io::ErrorKind::WouldBlock, "another process uses it"))?;
        }
        Ok(())
    }

    /// Runs `act` with an open file. If the program has closed its descriptor, opens the file again for this call.
    fn with<R>(&self, file: &RealFile, act: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        file.file.with(|| self.folder.open_file(&file.name), act)
    }

    fn fail(&self, operation: Operation, name: &str) -> impl FnOnce(io::Error) -> DiskError {
        let path = self.folder.path().join(name);
        move |source| DiskError { operation, path, source }
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn names(&self) -> Result<Vec<String>, DiskError> {
        self.folder.names().map_err(self.fail(Operation::List, ""))
    }

    fn create(&self, name: &str) -> Result<RealFile, DiskError> {
        let file = self.renew_lock().and_then(|()| self.folder.create(name));
        let file = file.map_err(self.fail(Operation::Create, name))?;
        Ok(RealFile { file: KeptDescriptor::new(file), name: name.to_owned() })
    }

    fn open(&self, name: &str) -> Result<RealFile, DiskError> {
        let file = self.folder.open_file(name).map_err(self.fail(Operation::Open, name))?;
        // Reading a FIFO or a device instead of a file might never end.
        let is_file = file.metadata().map_err(self.fail(Operation::Measure, name))?.is_file();
        let kind = || io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file");
        if is_file {
            Ok(RealFile { file: KeptDescriptor::new(file), name: name.to_owned() })
        } else {
            Err(self.fail(Operation::Open, name)(kind()))
        }
    }

    fn bytes(&self, file: &RealFile) -> Result<u64, DiskError> {
        self.with(file, |open| Ok(open.metadata()?.len())).map_err(self.fail(Operation::Measure, &file.name))
    }

    fn read_at(&self, file: &RealFile, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.with(file, |open| open.read_at(&mut buffer[filled..], offset + filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fail(Operation::Read, &file.name)(error)),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, file: &RealFile, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        let written = self.renew_lock().and_then(|()| self.with(file, |open| open.write_all_at(bytes, offset)));
        written.map_err(self.fail(Operation::Write, &file.name))
    }

    fn sync_data(&self, file: &RealFile) -> Result<(), DiskError> {
        self.with(file, File::sync_data).map_err(self.fail(Operation::Sync, &file.name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.folder.rename(from, to).map_err(self.fail(Operation::Rename, from))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.folder.remove(name).map_err(self.fail(Operation::Remove, name))
    }

    fn sync_folder(&self) -> Result<(), DiskError> {
        self.folder.sync().map_err(self.fail(Operation::SyncFolder, ""))
    }

    fn child(&self, name: &str) -> Result<Self, DiskError> {
        let folder = Folder::open(&self.folder.path().join(name)).map_err(self.fail(Operation::Open, name))?;
        Ok(Self { folder, lock: None })
    }

    fn random_id(&self) -> [u8; 16] {
        random().expect("the kernel gives up to 256 random bytes in one piece")
    }
}
