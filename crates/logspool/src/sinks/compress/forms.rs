//! The forms of a backup (plain, `.gz`, `.zst`): which of them are copies, and how all of them are renamed together.
//!
//! A compressed file identifies its original in 96 bytes of text: in the comment of a gzip header, or in a frame after
//! the data that every reader of zstd skips.

use logspool_sys::opening::open_path;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::named::{remove_existing, rename_existing};
use crate::sidecar::steps::{AppendStep, reach};
use crate::sinks::Compression;

/// File name endings of compressed backups.
const ENDINGS: [(&str, Compression); 2] = [(".gz", Compression::Gzip), (".zst", Compression::Zstd)];

/// Bytes of the text that identifies the original.
const NOTE_BYTES: usize = 96;
/// Magic of a zstd frame that readers skip: RFC 8878, 3.1.2.
const SKIPPED_FRAME: u32 = 0x184D_2A5C;
const GZIP_HEADER_BYTES: usize = 10;
const GZIP_HAS_COMMENT_ONLY: u8 = 0x10;

/// Whether a compressed form of a backup exists.
pub fn any_exists(plain: &str) -> bool {
    ENDINGS.iter().any(|(ending, _)| Path::new(&format!("{plain}{ending}")).exists())
}

/// Name of a backup without the ending of its compressed form.
pub fn plain_name(name: &[u8]) -> &[u8] {
    ENDINGS.iter().find_map(|(ending, _)| name.strip_suffix(ending.as_bytes())).unwrap_or(name)
}

/// Renames all forms of a backup to the next number; number 0 is the log file itself.
///
/// # Errors
///
/// When a system call fails.
pub fn shift(path: &str, number: u32) -> io::Result<()> {
    let target = format!("{path}.{}", number + 1);
    let source = if number == 0 { path.to_owned() } else { format!("{path}.{number}") };
    if number > 0 {
        settle(&source)?;
        if !Path::new(&source).exists() && !any_exists(&source) {
            return Ok(());
        }
    }
    remove_existing(&target)?;
    for (ending, _) in ENDINGS {
        remove_existing(&format!("{target}{ending}"))?;
    }
    rename_existing(&source, &target)?;
    if number > 0 {
        for (ending, _) in ENDINGS {
            rename_existing(&format!("{source}{ending}"), &format!("{target}{ending}"))?;
        }
    }
    reach(AppendStep::Renamed);
    Ok(())
}

/// Removes a plain backup if its compressed copy exists. Both exist if a process was killed between creating the copy
/// and removing the plain file.
///
/// # Errors
///
/// When unlink(2) fails.
pub fn settle(plain: &str) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(plain) else { return Ok(()) };
    let is_copied = ENDINGS.iter().any(|(ending, how)| is_copy(&format!("{plain}{ending}"), *how, &metadata));
    if is_copied { fs::remove_file(plain) } else { Ok(()) }
}

/// The text that identifies the original of a compressed file.
pub fn note(plain: &Metadata) -> [u8; NOTE_BYTES] {
    let text = format!(
        "backup of inode {:016x}, {:016x} bytes, written at {:016x}.{:08x}",
        plain.ino(),
        plain.len(),
        plain.mtime(),
        plain.mtime_nsec()
    );
    let mut bytes = [b' '; NOTE_BYTES];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// The frame that contains a note. It follows the zstd data, and readers of zstd skip it.
pub fn skipped_frame(note: &[u8; NOTE_BYTES]) -> Vec<u8> {
    [&SKIPPED_FRAME.to_le_bytes()[..], &(NOTE_BYTES as u32).to_le_bytes(), note].concat()
}

fn is_copy(compressed: &str, how: Compression, plain: &Metadata) -> bool {
    let expected = note(plain);
    match how {
        Compression::Gzip => read_at(compressed, SeekFrom::Start(0), GZIP_HEADER_BYTES + NOTE_BYTES)
            .is_some_and(|bytes| bytes[3] == GZIP_HAS_COMMENT_ONLY && bytes[GZIP_HEADER_BYTES..] == expected),
        Compression::Zstd => {
            let frame = skipped_frame(&expected);
            read_at(compressed, SeekFrom::End(-(frame.len() as i64)), frame.len()).is_some_and(|bytes| bytes == frame)
        }
    }
}

fn read_at(path: &str, place: SeekFrom, count: usize) -> Option<Vec<u8>> {
    let mut file = open_path(File::options().read(true), Path::new(path)).ok()?;
    file.seek(place).ok()?;
    let mut bytes = vec![0; count];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
