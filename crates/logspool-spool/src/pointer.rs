//! Where the spools of a process lie: a folder of its own below the one that the user chose, and in it one for each
//! sink. A file beside the process's segment says where, for whoever recovers. A file in each sink's folder says where
//! its records go, which start of the machine it is from and where the segment is: a segment does not survive a reboot,
//! or the end of a container whose memory it lies in; the spool does.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use logspool_sys::folder::Folder;

/// No path is longer.
const MAX_PATH_BYTES: u64 = 4096;
/// Nothing that says where records go is longer: the start, and two paths.
const MAX_TARGET_BYTES: u64 = 2 * MAX_PATH_BYTES + 64;

/// Name of the folder of a sink.
pub fn sink_folder(id: u32) -> String {
    format!("sink-{id}")
}

/// Id of the sink that a folder belongs to.
pub fn sink_of(folder: &str) -> Option<u32> {
    folder.strip_prefix("sink-")?.parse().ok()
}

/// Name of the file that says where the records of a spool go, and of one that does not say all of it yet.
const TARGET_NAME: &str = "target";
const UNFINISHED_TARGET_NAME: &str = "target.tmp";
/// Bytes of the machine's id of its start.
const BOOT_BYTES: usize = 36;

/// Where the records of a spool go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolTarget {
    /// The path of a file or the address of a service. `None`: something that ended with the process.
    pub place: Option<PathBuf>,
    /// Whether the segment is gone.
    pub is_alone: Alone,
}

/// Whether a spool is all that a process has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// The segment may be there, it tells more.
    No,
    /// The machine was started since.
    SinceStart,
    /// The segment is not where it was: its memory went with a container or was cleared, or it is in one that
    /// cannot be seen from here.
    NotSeen,
}

fn boot_id() -> io::Result<Vec<u8>> {
    let mut id = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    id.truncate(BOOT_BYTES);
    Ok(id)
}

/// Makes the folder of a sink's spool, and notes durably in it where its records go.
///
/// # Errors
///
/// What the system said.
pub fn make_sink_folder(path: &Path, place: Option<&str>, segment: Option<&Path>) -> io::Result<()> {
    let folder = Folder::open(path)?;
    let mut text = boot_id()?;
    text.push(b'\n');
    text.extend_from_slice(place.unwrap_or_default().as_bytes());
    if let Some(segment) = segment {
        // No path has this byte.
        text.push(0);
        text.extend_from_slice(segment.as_os_str().as_bytes());
    }
    // What a try before this one left, on a full disk: only what is whole gets the name.
    folder.remove(UNFINISHED_TARGET_NAME)?;
    let mut file = folder.create(UNFINISHED_TARGET_NAME)?;
    file.write_all(&text)?;
    file.sync_all()?;
    folder.rename(UNFINISHED_TARGET_NAME, TARGET_NAME)?;
    folder.sync()?;
    // Its name, and that of the process's folder.
    for folder in path.ancestors().skip(1).take(2) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Reads where the records of a spool go. `None`: the file does not say.
///
/// # Errors
///
/// What the system said.
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
        Alone::SinceStart
    } else if segment.is_some_and(|segment| is_missing(&segment)) {
        Alone::NotSeen
    } else {
        Alone::No
    };
    let place = (!paths.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(paths)));
    Ok(Some(SpoolTarget { place, is_alone }))
}

fn is_missing(path: &Path) -> bool {
    // A relative path is of another folder here.
    path.is_absolute() && path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Name of the file that says where the spools of a process are.
pub fn file_name(process: &str) -> String {
    format!("{process}.spool")
}

/// Says beside the segment of a process where its spools are.
///
/// # Errors
///
/// What the system said.
pub fn write(folder: &Folder, process: &str, path: &Path) -> io::Result<()> {
    // Over what a try before this one left, where the memory was full: it is always the same.
    folder.open_or_create(&file_name(process))?.write_all_at(path.as_os_str().as_bytes(), 0)
}

/// Reads where the spools of a process are. `None`: it has none, or what stands there is no absolute path.
///
/// # Errors
///
/// What the system said.
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

/// Removes the spools of a process, and what says where they are.
///
/// # Errors
///
/// What the system said; what is left can be removed by another call.
pub fn remove(folder: &Folder, process: &str) -> io::Result<()> {
    if let Some(path) = read(folder, process)? {
        remove_spools(&path)?;
    }
    folder.remove(&file_name(process))
}

/// Removes the folder that the spools of a process lie in. A link in its place is not followed.
///
/// # Errors
///
/// What the system said.
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
    fn notes_that_found_no_room_are_made_by_the_next_try() {
        let private = std::fs::Permissions::from_mode(0o700);
        let place = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let (folder, sink) = (Folder::open_existing(place.path()).unwrap(), place.path().join(sink_folder(3)));
        // The file was made, and there was no room for what it says.
        folder.create(&file_name("1-2-3-4")).unwrap();
        assert_eq!(None, read(&folder, "1-2-3-4").unwrap());
        write(&folder, "1-2-3-4", &sink).unwrap();
        assert_eq!(Some(sink.clone()), read(&folder, "1-2-3-4").unwrap());
        let sink_folder = Folder::open(&sink).unwrap();
        for name in [TARGET_NAME, UNFINISHED_TARGET_NAME] {
            sink_folder.create(name).unwrap();
            make_sink_folder(&sink, Some("/var/log/app.log"), None).unwrap();
            let target = read_target(&sink_folder).unwrap().expect("the note is whole");

            assert_eq!((Some(PathBuf::from("/var/log/app.log")), Alone::No), (target.place, target.is_alone));
            sink_folder.remove(TARGET_NAME).unwrap();
        }
        assert_eq!(Vec::<String>::new(), sink_folder.names().unwrap());
    }
}
