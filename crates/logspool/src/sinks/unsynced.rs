//! Bytes of a file that are not known to be durable: how file sinks sync, and how they handle a failed sync.
//!
//! A failed fdatasync is final for that file description. The kernel has marked the pages as clean, so a second call
//! would succeed although the disk has not stored them. So this file keeps the bytes written since the last sync, with
//! their offsets. After a failure they are written again through a new description of the same file, and that
//! description is synced. This is tried at once and with each later sync until it succeeds. Later syncs use the new
//! description, too. The descriptor used for writing does not change, because it may share its position with the
//! program's own descriptor.
//!
//! A FIFO, a terminal or a device cannot be synced. Its bytes count as durable when they are written. The name of a new
//! file survives a power cut only if its folder was synced, too.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use logspool_sys::kept::{self, KeptDescriptor};
use logspool_sys::opening::{self, open_again};

use crate::sink::SyncError;

/// Maximum bytes kept after a failed sync.
///
/// Chosen: twice the bytes written between two syncs, so that one burst on a failing disk is not dropped. Each further
/// sync writes all kept bytes again.
const MAX_KEPT: usize = 8 * 1024 * 1024;

/// The bytes of a sink's file that are not durable yet.
#[derive(Debug, Default)]
pub struct UnsyncedBytes {
    /// Whether written bytes are kept until they are durable.
    keeps: bool,
    /// The kept bytes: offsets in the file, each with the bytes written at it.
    pieces: Vec<(u64, Vec<u8>)>,
    /// Whether a sync of `pieces` has failed. They are durable only after they are written again and synced.
    failed: bool,
    /// The open file that is synced; `None` if it is the one used for writing.
    through: Option<KeptDescriptor<File>>,
    /// The error of syncing an earlier file, from which the sink has switched to another one.
    failure: Option<io::Error>,
    is_folder_synced: bool,
    /// Whether the file cannot be synced.
    cannot: bool,
    /// Whether the sink has switched to another file without syncing the old one. It does so if it does not keep bytes.
    left: bool,
}

impl UnsyncedBytes {
    /// Keeps all bytes that are written from now on until they are durable.
    pub fn keep(&mut self) {
        self.keeps = true;
    }

    /// Records that `bytes` were just written to `file`.
    pub fn note(&mut self, file: &mut File, bytes: &[u8]) {
        if !self.keeps || self.cannot {
            return;
        }
        let Ok(end) = file.stream_position() else {
            // The file has no position: it is a FIFO.
            self.cannot = true;
            return;
        };
        let start = end.saturating_sub(bytes.len() as u64);
        match self.pieces.last_mut() {
            Some((from, piece)) if *from + piece.len() as u64 == start => piece.extend_from_slice(bytes),
            _ => self.pieces.push((start, bytes.to_vec())),
        }
    }

    /// Makes all bytes written to `file` durable.
    ///
    /// # Errors
    ///
    /// The system's error of the second try, or of an earlier file that could not be synced. It is final if it concerns
    /// an earlier file, or if the bytes are not kept, or no longer kept.
    pub fn sync(&mut self, file: &File, path: &Path) -> Result<(), SyncError> {
        let earlier = self.failure.take();
        let now = self.sync_file(file, path);
        let kept: usize = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        self.failed = now.is_err() && self.keeps && kept <= MAX_KEPT;
        if !self.failed {
            self.pieces.clear();
        }
        match earlier {
            Some(error) => Err(SyncError { error, is_final: true }),
            None => now.map_err(|error| SyncError { error, is_final: !self.failed }),
        }
    }

    /// Syncs `file`. Call it before the sink switches to another file.
    pub fn leave(&mut self, file: &File, path: &Path) {
        if !self.keeps {
            self.left |= !self.cannot;
        } else if let Err(error) = self.sync_file(file, path) {
            self.failure = Some(error);
        }
        self.forget();
    }

    /// Notes that the sink has another file, because the program has closed the descriptor of the old one. Its bytes
    /// cannot be synced.
    pub fn leave_unopened(&mut self) {
        if self.keeps && !self.pieces.is_empty() {
            self.failure = Some(kept::gone());
        }
        self.left |= !self.keeps && !self.cannot;
        self.forget();
    }

    fn forget(&mut self) {
        self.pieces.clear();
        self.failed = false;
        self.through = None;
        self.is_folder_synced = false;
        self.cannot = false;
    }

    fn sync_file(&mut self, file: &File, path: &Path) -> io::Result<()> {
        if self.cannot {
            return Ok(());
        }
        if self.failed {
            self.write_again(file)?;
        } else {
            match self.sync_written(file) {
                Ok(()) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP)) => {
                    self.cannot = true;
                    return Ok(());
                }
                Err(error) if !self.keeps => {
                    self.through = open_anew(file).ok().map(KeptDescriptor::new);
                    return Err(error);
                }
                Err(_) => self.write_again(file)?,
            }
        }
        if !self.is_folder_synced {
            sync_folder(path)?;
            self.is_folder_synced = true;
        }
        Ok(())
    }

    fn sync_written(&mut self, file: &File) -> io::Result<()> {
        // A later sync of the first description would report success, see above.
        if self.through.as_ref().is_some_and(|through| !through.is_ours()) {
            self.through = Some(KeptDescriptor::new(open_anew(file)?));
        }
        let described = self.through.as_ref().map_or(Ok(file), KeptDescriptor::get)?;
        let others = std::mem::take(&mut self.left);
        loop {
            let synced = if others { sync_all_files(described) } else { described.sync_data() };
            match synced {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                synced => return synced,
            }
        }
    }

    fn write_again(&mut self, file: &File) -> io::Result<()> {
        let anew = open_anew(file)?;
        // The old description is replaced first, so that it is never synced again, even if a step below fails.
        let anew = self.through.insert(KeptDescriptor::new(anew)).get()?;
        for (start, piece) in self.pieces.iter().filter(|(start, piece)| is_still_there(anew, *start, piece)) {
            anew.write_all_at(piece, *start)?;
        }
        anew.sync_data()
    }
}

/// Whether the piece must be written again: the file has it as it was written, or with zeros instead of some or all
/// bytes. A piece that was truncated since then is not restored. Different bytes belong to other writers.
fn is_still_there(file: &File, start: u64, piece: &[u8]) -> bool {
    let mut found = vec![0; piece.len()];
    match file.read_exact_at(&mut found, start) {
        Ok(()) => found.iter().zip(piece).all(|(found, written)| found == written || *found == 0),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
        // The file is not readable, or the disk cannot return the bytes. Only the length of the file is compared then.
        Err(_) => file.metadata().is_ok_and(|metadata| start + piece.len() as u64 <= metadata.len()),
    }
}

/// Opens a new description of an open file, whatever its current name is. The description is not in append mode, so
/// that `pwrite` writes at its offset. It can read if the permissions allow it.
fn open_anew(file: &File) -> io::Result<File> {
    open_again(OpenOptions::new().read(true).write(true), file)
        .or_else(|_| open_again(OpenOptions::new().write(true), file))
}

/// Syncs all files of the file system. The files from which the sink has switched are on it, but their names are
/// unknown.
fn sync_all_files(file: &File) -> io::Result<()> {
    // SAFETY: syncfs checks the descriptor itself.
    if unsafe { libc::syncfs(file.as_raw_fd()) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the name of a file durable, by syncing its folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder without read permission cannot be opened. The sync of the file must suffice then.
    match opening::sync_folder(folder) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTSUP | libc::EACCES)) => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    /// A file in its own folder, with a line that is kept until it is durable.
    fn with_line(line: &[u8]) -> (TempDir, PathBuf, File, UnsyncedBytes) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let mut unsynced = UnsyncedBytes::default();
        unsynced.keep();
        file.write_all(line).unwrap();
        unsynced.note(&mut file, line);
        (folder, path, file, unsynced)
    }

    #[test]
    fn unsynced_bytes_are_rewritten_at_their_offset_without_affecting_other_writers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let append = || OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let (mut ours, mut theirs) = (append(), append());
        let mut unsynced = UnsyncedBytes::default();
        unsynced.keep();
        for _ in 0..2 {
            ours.write_all(b"ours\n").unwrap();
            unsynced.note(&mut ours, b"ours\n");
        }
        theirs.write_all(b"theirs\n").unwrap();
        ours.write_all(b"ours too\n").unwrap();
        unsynced.note(&mut ours, b"ours too\n");
        assert_eq!(2, unsynced.pieces.len());
        // The file then looks as if the disk had lost the bytes.
        let lost = [0; 26];
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&lost[..10], 0).unwrap();

        unsynced.write_again(&ours).unwrap();
        ours.write_all(b"last\n").unwrap();
        unsynced.sync(&ours, &path).unwrap();
        assert_eq!("ours\nours\ntheirs\nours too\nlast\n", std::fs::read_to_string(&path).unwrap());
        assert!(unsynced.pieces.is_empty() && unsynced.through.is_some());
    }

    #[test]
    fn bytes_truncated_by_another_program_are_not_written_again() {
        let (_folder, path, file, mut unsynced) = with_line(b"gone\n");
        file.set_len(0).unwrap();

        unsynced.write_again(&file).unwrap();
        assert_eq!(0, std::fs::metadata(&path).unwrap().len());
    }

    #[test]
    fn bytes_that_others_wrote_in_place_of_ours_stay() {
        let (_folder, path, mut file, mut unsynced) = with_line(b"ours\n");
        file.set_len(0).unwrap();
        file.write_all(b"theirs\n").unwrap();

        unsynced.write_again(&file).unwrap();
        assert_eq!("theirs\n", std::fs::read_to_string(&path).unwrap());
    }

    #[test]
    fn bytes_whose_sync_failed_are_rewritten_at_the_next_sync_and_then_released() {
        let (_folder, path, mut file, mut unsynced) = with_line(b"first\n");
        // A file that cannot be written. It behaves like a disk that does not accept bytes again.
        let nowhere = File::open("/dev/null").unwrap();
        unsynced.failed = true;
        assert!(unsynced.sync(&nowhere, &path).is_err_and(|failed| !failed.is_final));
        file.write_all(b"second\n").unwrap();
        unsynced.note(&mut file, b"second\n");
        OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0; 13], 0).unwrap();

        unsynced.sync(&file, &path).unwrap();
        assert_eq!("first\nsecond\n", std::fs::read_to_string(&path).unwrap());
        assert!(!unsynced.failed && unsynced.pieces.is_empty());

        unsynced.note(&mut file, &vec![b'x'; MAX_KEPT + 1]);
        unsynced.failed = true;
        assert!(unsynced.sync(&nowhere, &path).is_err_and(|failed| failed.is_final));
        assert!(!unsynced.failed && unsynced.pieces.is_empty());
    }

    #[test]
    fn files_that_do_not_support_sync_count_as_durable() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut unsynced = UnsyncedBytes::default();
        assert!(unsynced.sync(&file, Path::new("/nowhere/pipe")).is_ok());

        let mut keeping = UnsyncedBytes::default();
        keeping.keep();
        keeping.note(&mut file, b"a line\n");
        assert!(keeping.sync(&file, Path::new("/nowhere/pipe")).is_ok());
        assert!(keeping.pieces.is_empty());
    }

    #[test]
    fn a_failed_sync_of_a_previous_file_is_reported_at_the_next_sync() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = File::create(&path).unwrap();
        let mut unsynced =
            UnsyncedBytes { failure: Some(io::Error::from_raw_os_error(libc::EIO)), ..UnsyncedBytes::default() };

        let failed = unsynced.sync(&file, &path).unwrap_err();
        assert_eq!((Some(libc::EIO), true), (failed.error.raw_os_error(), failed.is_final));
        assert!(unsynced.sync(&file, &path).is_ok());
    }
}
