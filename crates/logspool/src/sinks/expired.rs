//! Selects the backups that exceed the limit: `TimedRotatingFileHandler.getFilesToDelete`.
//!
//! The early rules also remove files of neighbours: for `app.log` they remove `app.log2.2024-02-29` and
//! `app.log.2024-02-29.gz`. With compression, all forms of a backup count as one backup of its time. Names that are not
//! UTF-8 are sorted by their bytes.

use logspool_sys::opening::entries;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::RotationRules;
use super::calendar::Precision;
use super::compress::forms;

/// Removes all backups of `path` except the newest `backup_count`, oldest first.
///
/// # Errors
///
/// The first error of the system. The other backups are still removed.
pub fn remove(path: &Path, backup_count: u32, precision: Precision, rules: RotationRules) -> io::Result<()> {
    let mut result = Ok(());
    for expired in list(path, backup_count, precision, rules)? {
        result = result.and(fs::remove_file(expired));
    }
    result
}

fn list(path: &Path, backup_count: u32, precision: Precision, rules: RotationRules) -> io::Result<Vec<PathBuf>> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let base = path.file_name().unwrap_or_default().as_bytes();
    let mut names = Vec::new();
    for entry in entries(folder)? {
        let name = entry.name.into_vec();
        if is_backup(&name, base, precision, rules) {
            names.push(name);
        }
    }
    if rules.compression().is_some() {
        let mut stamps: Vec<&[u8]> = names.iter().map(|name| forms::plain_name(name)).collect();
        stamps.sort_unstable();
        stamps.dedup();
        stamps.truncate(stamps.len().saturating_sub(backup_count as usize));
        let is_expired = |name: &&Vec<u8>| stamps.binary_search(&forms::plain_name(name)).is_ok();
        let expired: Vec<Vec<u8>> = names.iter().filter(is_expired).cloned().collect();
        names = expired;
        names.sort_unstable();
    } else {
        names.sort_unstable();
        names.truncate(names.len().saturating_sub(backup_count as usize));
    }
    Ok(names.iter().map(|name| folder.join(OsStr::from_bytes(name))).collect())
}

fn is_backup(name: &[u8], base: &[u8], precision: Precision, rules: RotationRules) -> bool {
    match rules {
        RotationRules::Alone(cpython) if cpython.finds_times_in_any_part() => {
            let root = root(base);
            let rest = name.strip_prefix(root).and_then(|rest| rest.strip_prefix(b"."));
            name.starts_with(base)
                && rest.is_some_and(|rest| {
                    rest.split(|byte| *byte == b'.')
                        // `$` in a Python pattern also matches before a final line feed.
                        .any(|part| precision.is_stamp(part.strip_suffix(b"\n").unwrap_or(part)))
                })
        }
        RotationRules::Together { compress: Some(_) } => {
            let plain = forms::plain_name(name);
            is_backup(plain, base, precision, RotationRules::CURRENT)
        }
        RotationRules::Alone(_) | RotationRules::Together { compress: None } => name
            .strip_prefix(base)
            .and_then(|rest| rest.strip_prefix(b"."))
            .is_some_and(|suffix| precision.is_stamp(suffix)),
    }
}

/// A name without its extension, as in `os.path.splitext`: leading dots do not begin an extension.
fn root(name: &[u8]) -> &[u8] {
    let leading = name.iter().take_while(|byte| **byte == b'.').count();
    match name[leading..].iter().rposition(|byte| *byte == b'.') {
        Some(dot) if dot > 0 => &name[..leading + dot],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_extension_as_in_python() {
        assert_eq!(b"app", root(b"app.log"));
        assert_eq!(b"app.log", root(b"app.log.1"));
        assert_eq!(b".hidden", root(b".hidden"));
        assert_eq!(b"..a", root(b"..a.b"));
        assert_eq!(b"app", root(b"app"));
    }

    #[test]
    fn early_rules_match_neighbouring_files_and_current_rules_do_not() {
        for name in [&b"app.log2.2024-02-29"[..], b"app.log.2024-02-29.gz", b"app.log.2024-02-29\n"] {
            assert!(is_backup(name, b"app.log", Precision::Day, RotationRules::EARLY));
            assert!(!is_backup(name, b"app.log", Precision::Day, RotationRules::CURRENT));
        }
    }
}
