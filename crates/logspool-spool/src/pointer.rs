//! The paths of a process's spools. The process has a folder below the user's folder, with one subfolder for each sink.
//! A file next to the process's segment in shared memory names the process's folder for recovery. A file in each sink's
//! folder names the destination of its records, the machine's boot id and the path of the segment. The spool survives a
//! reboot or the end of a container; the segment does not.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use logspool_sys::folder::Folder;
use logspool_sys::opening::{self, sync_folder};

/// Maximum length in bytes of a path that is read.
const MAX_PATH_BYTES: u64 = 4096;
/// Maximum length in bytes of a target file that is read: the boot id and two paths.
const MAX_TARGET_BYTES: u64 = 2 * MAX_PATH_BYTES + 64;

/// Name of the folder of a sink.
pub fn sink_folder(id: u32) -> String {
    format!("sink-{id}")
}

/// Id of the sink that a folder belongs to.
pub fn sink_of(folder: &str) -> Option<u32> {
    folder.strip_prefix("sink-")?.parse().ok()
}

/// Name of the file with the destination of a spool's records, and its name while it is being written.
const TARGET_NAME: &str = "target";
const UNFINISHED_TARGET_NAME: &str = "target.tmp";
/// Length of the boot id in bytes.
const BOOT_BYTES: usize = 36;

/// The destination of a spool's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolTarget {
    /// The path of a file or the address of a service. `None`: the destination ended with the process.
    pub place: Option<PathBuf>,
    /// Whether the segment in shared memory is gone, so that only the spool is left.
    pub is_alone: SegmentPresence,
}

/// Whether the process's segment is gone, so that the spool holds all that is left of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentPresence {
    /// The segment may still exist. It holds more than the spool.
    No,
    /// The segment is gone, because the machine was restarted since.
    SinceStart,
    /// The segment is not at its path. A container ended, its memory was cleared, or the segment is in a container that
    /// is not visible to this process.
    NotSeen,
}

fn boot_id() -> io::Result<Vec<u8>> {
    let mut id = opening::read("/proc/sys/kernel/random/boot_id")?;
    id.truncate(BOOT_BYTES);
    Ok(id)
}

/// Makes the folder of a sink's spool and durably stores the destination of its records in it.
///
/// # Errors
///
/// The operating system's error.
pub fn make_sink_folder(path: &Path, place: Option<&str>, segment: Option<&Path>) -> io::Result<()> {
    let folder = Folder::open(path)?;
    let mut text = boot_id()?;
    text.push(b'\n');
    text.extend_from_slice(place.unwrap_or_default().as_bytes());
    if let Some(segment) = segment {
        // Separates the fields with a zero byte, which no path can contain.
        text.push(0);
        text.extend_from_slice(segment.as_os_str().as_bytes());
    }
    // A file may be left over from an earlier try on a full disk. Only a complete file gets the name `target`.
    folder.remove(UNFINISHED_TARGET_NAME)?;
    let mut file = folder.create(UNFINISHED_TARGET_NAME)?;
    file.write_all(&text)?;
    file.sync_all()?;
    folder.rename(UNFINISHED_TARGET_NAME, TARGET_NAME)?;
    folder.sync()?;
    // Makes the names of the sink's folder and of the process's folder durable.
    for folder in path.ancestors().skip(1).take(2) {
        sync_folder(folder)?;
    }
    Ok(())
}

/// Reads the destination of a spool's records. `None`: the file is missing or incomplete.
///
/// # Errors
///
/// The operating system's error.
pub fn read_target(folder: &Folder) -> io::Result<Option<SpoolTarget>> {
    let file: File = match folder.open_file(TARGET_NAME) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = Vec::new();
    file.take(MAX_TARGET_BYTES).read_to_end(&mut text)?;
    if text.get(BOOT_BYTES) != Some(&b'\n') {
        return Ok(None);
    }
    let mut paths = text.split_off(BOOT_BYTES + 1);
    text.truncate(BOOT_BYTES);
    let segment = paths.iter().position(|byte| *byte == 0).map(|end| {
        let segment = paths.split_off(end + 1);
        paths.truncate(end);
        PathBuf::from(std::ffi::OsString::from_vec(segment))
    });
    let is_alone = if text != boot_id()? {
        SegmentPresence::SinceStart
    } else if segment.is_some_and(|segment| is_missing(&segment)) {
        SegmentPresence::NotSeen
    } else {
        SegmentPresence::No
    };
    let place = (!paths.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(paths)));
    Ok(Some(SpoolTarget { place, is_alone }))
}

fn is_missing(path: &Path) -> bool {
    // Only absolute paths count: this process may have another working directory, so a relative path would name another
    // file.
    path.is_absolute() && path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Name of the file with the path of a process's spools.
pub fn file_name(process: &str) -> String {
    format!("{process}.spool")
}

/// Writes the path of a process's spools to a file next to the process's segment.
///
/// # Errors
///
/// The operating system's error.
pub fn write(folder: &Folder, process: &str, path: &Path) -> io::Result<()> {
    // Overwrites a file left by an earlier try on full memory; the content is always the same.
    folder.open_or_create(&file_name(process))?.write_all_at(path.as_os_str().as_bytes(), 0)
}

/// Reads the path of a process's spools. `None`: the process has no spools, or the content is not an absolute path.
///
/// # Errors
///
/// The operating system's error.
pub fn read(folder: &Folder, process: &str) -> io::Result<Option<PathBuf>> {
    let file: File = match folder.open_file(&file_name(process)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut path = Vec::new();
    file.take(MAX_PATH_BYTES).read_to_end(&mut path)?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    Ok(path.is_absolute().then_some(path))
}

/// Removes the spools of a process and the file with their path.
///
/// # Errors
///
/// The operating system's error. Call the function again to remove the remaining files.
pub fn remove(folder: &Folder, process: &str) -> io::Result<()> {
    if let Some(path) = read(folder, process)? {
        remove_spools(&path)?;
    }
    folder.remove(&file_name(process))
}

/// Removes the folder with a process's spools. A link in its place is not followed.
///
/// # Errors
///
/// The operating system's error.
pub fn remove_spools(path: &Path) -> io::Result<()> {
    match Folder::open_existing(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => drop(opened?),
    }
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn notes_that_did_not_fit_on_the_disk_are_written_by_the_next_try() {
        let private = std::fs::Permissions::from_mode(0o700);
        let place = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let (folder, sink) = (Folder::open_existing(place.path()).unwrap(), place.path().join(sink_folder(3)));
        // The file was made, but there was no room for its content.
        folder.create(&file_name("1-2-3-4")).unwrap();
        assert_eq!(None, read(&folder, "1-2-3-4").unwrap());
        write(&folder, "1-2-3-4", &sink).unwrap();
        assert_eq!(Some(sink.clone()), read(&folder, "1-2-3-4").unwrap());
        let sink_folder = Folder::open(&sink).unwrap();
        for name in [TARGET_NAME, UNFINISHED_TARGET_NAME] {
            sink_folder.create(name).unwrap();
            make_sink_folder(&sink, Some("/var/log/app.log"), None).unwrap();
            let target = read_target(&sink_folder).unwrap().expect("the note is whole");

            assert_eq!((Some(PathBuf::from("/var/log/app.log")), SegmentPresence::No), (target.place, target.is_alone));
            sink_folder.remove(TARGET_NAME).unwrap();
        }
        assert_eq!(Vec::<String>::new(), sink_folder.names().unwrap());
    }
}
