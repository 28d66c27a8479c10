//! The files next to a log file: its plain backups and `.part` files.

use logspool_sys::opening::entries;
use std::cmp::Reverse;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::task::{Naming, Task};

/// A plain backup.
#[derive(Debug, Clone)]
pub struct Backup {
    pub path: PathBuf,
    pub inode: u64,
}

/// Result of a scan of the folder.
#[derive(Debug, Default)]
pub struct ScanResult {
    /// Plain backups, oldest first.
    pub plain: Vec<Backup>,
    /// `.part` files, with the inode of their backup.
    pub begun: Vec<(PathBuf, u64)>,
}

/// Path of the `.part` file for a backup with this inode.
pub fn begun_path(task: &Task, inode: u64) -> PathBuf {
    format!("{}.{inode:x}{}.part", task.path, task.how.ending()).into()
}

/// Scans the folder without opening its files, since there may be thousands.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn look(task: &Task) -> io::Result<ScanResult> {
    let path = Path::new(&task.path);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let prefix = [path.file_name().unwrap_or_default().as_encoded_bytes(), b"."].concat();
    let mut plain = Vec::new();
    let mut begun = Vec::new();
    for entry in entries(folder)? {
        let name = entry.name.into_vec();
        let Some(rest) = name.strip_prefix(&prefix[..]) else { continue };
        let path = folder.join(OsString::from_vec(name.clone()));
        if let Some(inode) = inode_of(rest) {
            begun.push((path, inode));
        } else if let Some(age) = age_of(task.naming, rest) {
            plain.push((age, Backup { path, inode: entry.inode }));
        }
    }
    plain.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(ScanResult { plain: plain.into_iter().map(|(_, backup)| backup).collect(), begun })
}

/// The inode in the name of a `.part` file.
fn inode_of(rest: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(rest).ok()?.strip_suffix(".part")?;
    let digits = text.strip_suffix(".gz").or_else(|| text.strip_suffix(".zst"))?;
    let inode = u64::from_str_radix(digits, 16).ok()?;
    (format!("{inode:x}") == digits).then_some(inode)
}

/// Sort key of a backup: the smallest is the oldest. `None` if the name is not a backup's.
fn age_of(naming: Naming, rest: &[u8]) -> Option<(Reverse<u32>, Vec<u8>)> {
    match naming {
        Naming::Numbers => {
            let text = std::str::from_utf8(rest).ok()?;
            let number: u32 = text.parse().ok()?;
            (number > 0 && number.to_string() == text).then(|| (Reverse(number), Vec::new()))
        }
        Naming::Stamps(precision) => precision.is_stamp(rest).then(|| (Reverse(0), rest.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::calendar::Precision;
    use super::*;

    #[test]
    fn names_of_backups_are_recognised() {
        assert_eq!(Some(0x2a), inode_of(b"2a.gz.part"));
        assert_eq!(Some(0x2a), inode_of(b"2a.zst.part"));
        for other in [&b"2a.part"[..], b"02a.gz.part", b"2a.gz", b"log.gz.part", b"1.gz.part.part"] {
            assert_eq!(None, inode_of(other));
        }
        assert!(age_of(Naming::Numbers, b"10") < age_of(Naming::Numbers, b"9"));
        for other in [&b"0"[..], b"01", b"+1", b"1.gz", b"2a.gz.part", b"2026-11-22"] {
            assert_eq!(None, age_of(Naming::Numbers, other));
        }
        let day = Naming::Stamps(Precision::Day);
        assert!(age_of(day, b"2026-11-21") < age_of(day, b"2026-11-22"));
        assert_eq!(None, age_of(day, b"2026-11-22.gz"));
    }
}
