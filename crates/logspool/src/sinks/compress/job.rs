//! The job of compressing one backup: reads it, compresses it, and replaces the plain file.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::GzBuilder;
use flate2::write::GzEncoder;
use zstd::stream::write::Encoder as ZstdEncoder;

use logspool_sys::kept::KeptDescriptor;
use logspool_sys::opening::open_path;
use logspool_sys::opening::sync_folder;

use super::forms;
use super::live::while_nobody_rotates;
use super::scan::{self, Backup};
use super::task::Task;
use crate::sidecar::Identity;
use crate::sidecar::locks::{self, LockState};
use crate::sidecar::steps::{AppendStep, reach};
use crate::sinks::Compression;

/// Number of bytes read at a time. Between two reads the thread may be asked to leave for a fork.
///
/// Chosen: gzip takes some two milliseconds for them. Doubling it would make a fork wait longer. Halving it would not
/// compress worse.
const PIECE_BYTES: usize = 64 * 1024;
/// Number of compressed bytes after which the file is synced, so that the disk never gets many bytes at once.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;
/// Compression levels: the defaults of the programs `gzip` and `zstd`.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// See the module documentation.
pub struct Job {
    source: KeptDescriptor<File>,
    status: Metadata,
    read: u64,
    begun: PathBuf,
    /// The compressed file. It must have only one descriptor: closing another one would drop the record lock.
    file: KeptWriter,
    synced: u64,
    encoder: Option<Encoder>,
    is_placed: bool,
}

enum Encoder {
    Gzip(Box<GzEncoder<KeptWriter>>),
    Zstd(Box<ZstdEncoder<'static, KeptWriter>>),
}

/// The compressed file, as the encoder writes it.
#[derive(Clone)]
struct KeptWriter(Arc<KeptDescriptor<File>>);

impl Write for KeptWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.get()?;
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }
}

/// Progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobProgress {
    /// The job must be continued.
    Partly,
    /// The job is finished.
    Wholly,
}

impl Job {
    /// Begins to compress a backup. `None`: the backup is gone, or another process is compressing it.
    ///
    /// # Errors
    ///
    /// When a system call fails.
    pub fn begin(task: &Task, backup: &Backup) -> io::Result<Option<Self>> {
        let source = match open_path(
            OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK),
            &backup.path,
        ) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let source = KeptDescriptor::new(source);
        let status = source.get()?.metadata()?;
        if status.ino() != backup.inode || !status.is_file() {
            return Ok(None);
        }
        let begun = scan::begun_path(task, backup.inode);
        let Some(file) = open_alone(&begun, true)? else { return Ok(None) };
        file.get()?.set_len(0)?;
        let note = forms::note(&status);
        let file = KeptWriter(Arc::new(file));
        let writes = file.clone();
        let encoder = match task.how {
            Compression::Gzip => {
                let builder = GzBuilder::new().mtime(status.mtime() as u32).comment(&note[..]);
                Encoder::Gzip(Box::new(builder.write(writes, flate2::Compression::new(GZIP_LEVEL))))
            }
            Compression::Zstd => {
                let mut encoder = ZstdEncoder::new(writes, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(Box::new(encoder))
            }
        };
        let encoder = Some(encoder);
        Ok(Some(Self { source, status, read: 0, begun, file, synced: 0, encoder, is_placed: false }))
    }

    /// Continues until the job is finished, or until the thread must leave.
    ///
    /// # Errors
    ///
    /// When a system call fails. The plain file is unchanged.
    pub fn proceed(&mut self, task: &Task, is_asked_to_leave: &dyn Fn() -> bool) -> io::Result<JobProgress> {
        let mut piece = vec![0; PIECE_BYTES];
        while let Some(encoder) = &mut self.encoder {
            if is_asked_to_leave() {
                return Ok(JobProgress::Partly);
            }
            let count = self.source.get_mut()?.read(&mut piece)?;
            if count == 0 {
                self.seal()?;
                break;
            }
            encoder.write(&piece[..count])?;
            let before = self.read;
            self.read += count as u64;
            let half = self.status.len() / 2;
            if before <= half && half < self.read {
                reach(AppendStep::Compressing);
            }
            let file = self.file.0.get()?;
            let made = file.metadata()?.len();
            if made - self.synced >= SYNC_BYTES {
                file.sync_data()?;
                self.synced = made;
            }
        }
        self.place(task, is_asked_to_leave)
    }

    /// Finishes the compressed file and syncs it.
    fn seal(&mut self) -> io::Result<()> {
        match self.encoder.take() {
            Some(Encoder::Gzip(encoder)) => drop(encoder.finish()?),
            Some(Encoder::Zstd(encoder)) => {
                encoder.finish()?.write_all(&forms::skipped_frame(&forms::note(&self.status)))?;
            }
            None => {}
        }
        let file = self.file.0.get()?;
        // Only root may change the owner. For other users the compressed file already has the right owner: they created
        // it, as they created the plain file.
        let _ = fchown(file, Some(self.status.uid()), Some(self.status.gid()));
        file.set_permissions(fs::Permissions::from_mode(self.status.mode() & 0o7777))?;
        file.set_times(FileTimes::new().set_modified(self.status.modified()?))?;
        file.sync_all()?;
        reach(AppendStep::Compressed);
        Ok(())
    }

    /// Renames the compressed file: its new name is the current name of the plain file with an ending such as `.gz`.
    /// Then removes the plain file.
    fn place(&mut self, task: &Task, is_asked_to_leave: &dyn Fn() -> bool) -> io::Result<JobProgress> {
        if !self.is_placed {
            let placed = while_nobody_rotates(task, is_asked_to_leave, || {
                let Some(plain) = self.plain(task)? else { return Ok(false) };
                if forms::any_exists(&plain) {
                    return Ok(false);
                }
                fs::rename(&self.begun, format!("{plain}{}", task.how.ending()))?;
                Ok(true)
            })?;
            match placed {
                // The backup has expired or was written to, or another form has its name. The compressed file is
                // discarded.
                Some(false) => return Ok(JobProgress::Wholly),
                None => return Ok(JobProgress::Partly),
                Some(true) => self.is_placed = true,
            }
            sync_folder(Path::new(&task.path).parent().unwrap_or(Path::new("/")))?;
            reach(AppendStep::Placed);
        }
        let removed = while_nobody_rotates(task, is_asked_to_leave, || {
            // A rotation may have removed the plain file.
            self.plain(task)?.map_or(Ok(()), |plain| forms::settle(&plain))
        })?;
        if removed.is_some() {
            reach(AppendStep::Removed);
        }
        Ok(if removed.is_some() { JobProgress::Wholly } else { JobProgress::Partly })
    }

    /// Current path of the plain file. `None`: it no longer has the contents that were read.
    fn plain(&self, task: &Task) -> io::Result<Option<String>> {
        let found = scan::look(task)?.plain.into_iter().find(|backup| backup.inode == self.status.ino());
        let Some(path) = found.and_then(|backup| backup.path.into_os_string().into_string().ok()) else {
            return Ok(None);
        };
        // The job holds the file open, so no other file of this device can have its inode.
        let is_it = fs::symlink_metadata(&path)
            .is_ok_and(|there| there.dev() == self.status.dev() && there.ino() == self.status.ino());
        let now = self.source.get()?.metadata()?;
        let is_as_read = now.len() == self.read && now.len() == self.status.len();
        Ok((is_it && is_as_read).then_some(path))
    }

    /// In a forked child: closes the inherited descriptors.
    pub fn close_inherited(&self) {
        self.source.close_inherited();
        self.file.0.close_inherited();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = fs::remove_file(&self.begun);
        }
    }
}

/// Opens a `.part` file, or creates it if `make`, and locks it. `None`: another process is working on it.
fn open_alone(path: &Path, make: bool) -> io::Result<Option<KeptDescriptor<File>>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(make).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let opened = open_path(&options, path);
    let kept = match opened {
        // Keep it before the lock is taken: keeping closes the first number.
        Ok(file) => KeptDescriptor::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let file = kept.get()?;
    if !locks::set(file, 0, LockState::Alone)? {
        return Ok(None);
    }
    // The previous holder of the lock may have renamed or removed the file.
    let is_it = fs::symlink_metadata(path)
        .is_ok_and(|there| file.metadata().is_ok_and(|here| Identity::of(&there) == Identity::of(&here)));
    Ok(is_it.then_some(kept))
}

/// Removes the `.part` file of a dead process.
///
/// # Errors
///
/// When a system call fails.
pub fn remove_dead(path: &Path) -> io::Result<()> {
    match open_alone(path, false)? {
        Some(_locked) => fs::remove_file(path),
        None => Ok(()),
    }
}
