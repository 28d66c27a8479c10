//! Finishes an append that a dead writer began.
//!
//! The caller holds the lock of the sidecar, so the owner of the intent is dead or has abandoned it. Another kill may
//! interrupt every step of the repair. The next process then starts from the file and the intent, and gets the same
//! result:
//!
//! - The file shows how many bytes of the copy it contains. The missing bytes are appended.
//! - If other bytes are in between, the intent is first rewritten to the remaining bytes and their new position.
//! - Without a copy, the intent is first shortened to the whole lines in the file, and marked to end the torn line. The
//!   recovery of its owner continues after these lines.
//! - The owner's segment notes the progress. Only then is the intent cleared.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use logspool_lanes::segment::layout::{Header, MAGIC, MAJOR, SINKS_OFFSET, SinkHead, Table};
use logspool_sys::folder::Folder;
use logspool_sys::opening::open_again;

use super::intent::Intent;
use super::log_file::{is_appending, seek_after};
use super::side::Sidecar;
use super::steps::{self, AppendStep};

/// Number of bytes after the intended position that are searched for the intended bytes, if others appended too.
///
/// Chosen: other programs write less than this during one append. Lines that are farther away may be written twice.
const SEARCH_BYTES: u64 = 1024 * 1024;

thread_local! {
    /// Number of torn lines that this thread has ended. The count is per thread, because several threads may run a
    /// recovery at the same time.
    static TORN: Cell<u64> = const { Cell::new(0) };
}

/// Number of torn lines that this thread has ended because their remaining bytes were unknown.
pub fn torn_lines() -> u64 {
    TORN.get()
}

/// Counts a torn line that this thread has ended.
pub(crate) fn count_torn() {
    TORN.set(TORN.get() + 1);
}

/// Which part of an intent's bytes is in the log file. The sidecar holds a copy of these bytes.
#[derive(Debug, PartialEq, Eq)]
enum FoundBytes {
    /// The log file contains this number of bytes of the copy, from its start. They are the whole copy, or the file
    /// ends after them. The missing bytes can be appended directly.
    Out(usize),
    /// The log file contains only some whole lines of the copy. Lines of other processes are before or after them.
    Among {
        /// Number of bytes of the whole lines.
        out: usize,
        /// Whether the file also contains the beginning of a further line of the copy.
        torn: bool,
    },
}

/// Finishes the intent in `sidecar`, whose log file is `target`.
///
/// # Errors
///
/// Returns an error if a system call fails. The intent then stays.
pub fn finish_intent(sidecar: &Sidecar, target: &File) -> io::Result<()> {
    let Some(mut intent) = sidecar.intent()? else { return sidecar.clear() };
    let reader = reader_of(target);
    match sidecar.copy(&intent)? {
        Some(copy) => append_rest(sidecar, &mut intent, &copy, target, reader.as_ref())?,
        None => end_line(sidecar, &mut intent, target, reader.as_ref())?,
    }
    steps::reach(AppendStep::Repaired);
    note(&sidecar.folder, &intent)?;
    sidecar.clear()?;
    sidecar.shrink(intent.length as usize);
    seek_after(target)
}

fn append_rest(
    sidecar: &Sidecar,
    intent: &mut Intent,
    copy: &[u8],
    target: &File,
    reader: Option<&File>,
) -> io::Result<()> {
    let size = target.metadata()?.len();
    let out = match found(intent.file_bytes, size, copy, reader)? {
        FoundBytes::Out(out) => out,
        FoundBytes::Among { out, torn } => {
            let glued = copy.ends_with(b"\n") && reader.is_some_and(|reader| !ends_with_line(reader, size));
            if glued {
                append(target, b"\n")?;
            }
            if glued || torn {
                sidecar.count_torn()?;
                count_torn();
            }
            intent.chunk_offset += out as u64;
            intent.copy_offset += out as u64;
            intent.length -= out as u64;
            intent.file_bytes = target.metadata()?.len();
            sidecar.rewrite(intent)?;
            return append(target, &copy[out..]);
        }
    };
    append(target, &copy[out..])
}

/// Finds out how many bytes of `copy`, intended at offset `at`, are in a file of `size` bytes.
fn found(at: u64, size: u64, copy: &[u8], reader: Option<&File>) -> io::Result<FoundBytes> {
    let Some(behind) = size.checked_sub(at) else {
        // The file was truncated after the intent was written. Writing bytes twice is better than losing them.
        return Ok(FoundBytes::Out(0));
    };
    let Some(reader) = reader else {
        return Ok(FoundBytes::Out(behind.min(copy.len() as u64) as usize));
    };
    let mut there = vec![0; behind.min(copy.len() as u64 + SEARCH_BYTES) as usize];
    reader.read_exact_at(&mut there, at)?;
    let alike = common_prefix(&there, copy);
    if alike == there.len().min(copy.len()) {
        return Ok(FoundBytes::Out(alike));
    }
    // Other processes appended after the intent was written. Our bytes come after theirs. They are complete, or cut by
    // the end of the file, or cut by bytes of others again. A part counts only if it starts at the beginning of a line,
    // as our bytes did. Otherwise it may be text of another program.
    let mut best = 0;
    for start in (0..there.len()).filter(|start| there[*start] == copy[0]) {
        let alike = self::common_prefix(&there[start..], copy);
        let begins = start == 0 || there[start - 1] == b'\n';
        if alike == copy.len() || begins && start + alike == there.len() && at + there.len() as u64 == size {
            return Ok(FoundBytes::Out(alike));
        }
        best = if begins { best.max(alike) } else { best };
    }
    let out = copy[..best].iter().rposition(|byte| *byte == b'\n').map_or(0, |line_end| line_end + 1);
    Ok(FoundBytes::Among { out, torn: alike > 0 && copy[alike - 1] != b'\n' })
}

/// Number of leading bytes that `one` and `other` have in common.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Repairs an intent that has no copy: ends the torn line, if there is one.
fn end_line(sidecar: &Sidecar, intent: &mut Intent, target: &File, reader: Option<&File>) -> io::Result<()> {
    let size = target.metadata()?.len();
    let out = size.saturating_sub(intent.file_bytes).min(intent.length);
    if !intent.ends_line && out < intent.length {
        let whole = match reader {
            Some(reader) => whole_lines(reader, intent.file_bytes, out)?,
            None => 0,
        };
        intent.length = whole;
        intent.ends_line = whole < out;
        sidecar.rewrite(intent)?;
        if intent.ends_line {
            sidecar.count_torn()?;
            count_torn();
        }
    }
    if intent.ends_line && !reader.is_some_and(|reader| ends_with_line(reader, size)) {
        append(target, b"\n")?;
    }
    Ok(())
}

/// Number of bytes of whole lines among the `length` bytes from offset `at` on.
fn whole_lines(reader: &File, at: u64, length: u64) -> io::Result<u64> {
    let mut end = at + length;
    let mut bytes = vec![0; 64 * 1024];
    while end > at {
        let count = (end - at).min(bytes.len() as u64) as usize;
        reader.read_exact_at(&mut bytes[..count], end - count as u64)?;
        if let Some(line_end) = bytes[..count].iter().rposition(|byte| *byte == b'\n') {
            return Ok(end - count as u64 + line_end as u64 + 1 - at);
        }
        end -= count as u64;
    }
    Ok(0)
}

fn ends_with_line(reader: &File, size: u64) -> bool {
    let mut last = [0];
    size == 0 || reader.read_exact_at(&mut last, size - 1).is_ok() && last == *b"\n"
}

/// Opens the same file again, for reading. Log files are opened for writing only.
fn reader_of(target: &File) -> Option<File> {
    open_again(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY), target).ok()
}

/// Appends all `bytes`, whatever the descriptor's position is.
fn append(mut target: &File, mut bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;

    let appends = is_appending(target);
    while !bytes.is_empty() {
        let allowed = &bytes[..steps::allowed(bytes.len())];
        let written = if appends { target.write(allowed) } else { target.write_at(allowed, target.metadata()?.len()) };
        match written {
            Ok(0) => return Err(io::Error::from(ErrorKind::WriteZero)),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        steps::reach(AppendStep::Appended);
    }
    Ok(())
}

/// Notes in the segment of the intent's owner how many bytes of the batch are written. Does nothing if the segment is
/// gone, or if another sink now has the slot of the sink.
fn note(folder: &Folder, intent: &Intent) -> io::Result<()> {
    if intent.owner.contains('/') {
        return Ok(());
    }
    let segment = match folder.open_file(&format!("{}.seg", intent.owner)) {
        Ok(segment) if segment.metadata()?.is_file() => segment,
        Ok(_) => return Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => return Ok(()),
        Err(error) => return Err(error),
    };
    let word = |offset: u64| -> io::Result<u64> {
        let mut bytes = [0; 8];
        segment.read_exact_at(&mut bytes, offset)?;
        Ok(u64::from_ne_bytes(bytes))
    };
    let mut uuid = [0; 16];
    if segment.read_exact_at(&mut uuid, offset_of!(Header, uuid) as u64).is_err() || uuid != intent.uuid {
        return Ok(());
    }
    let mut major = [0; 4];
    segment.read_exact_at(&mut major, offset_of!(Header, major) as u64)?;
    if word(0)? != MAGIC || u32::from_ne_bytes(major) != MAJOR {
        return Ok(());
    }
    let place = Table::Sinks.slot(intent.sink) as u64;
    let head = SINKS_OFFSET + place * size_of::<SinkHead>() as u64;
    let field = |offset: usize| head + offset as u64;
    let generation = word(Table::Sinks.index_offset() + 8 * place)? >> 32;
    let is_its = generation == Table::Sinks.generation(intent.sink)
        && word(field(offset_of!(SinkHead, closed)))? == 0
        && word(field(offset_of!(SinkHead, writing)))? == intent.batch
        && word(field(offset_of!(SinkHead, batch)))? < intent.batch;
    let reached = intent.chunk_offset.saturating_add(intent.length);
    if is_its && word(field(offset_of!(SinkHead, offset)))? < reached {
        segment.write_all_at(&reached.to_ne_bytes(), field(offset_of!(SinkHead, offset)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(file: &str, at: u64, copy: &str) -> FoundBytes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, file).unwrap();
        found(at, file.len() as u64, copy.as_bytes(), Some(&File::open(&path).unwrap())).unwrap()
    }

    #[test]
    fn the_file_shows_how_many_bytes_were_written() {
        assert_eq!(FoundBytes::Out(0), found_in("0\n", 2, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Out(5), found_in("0\n1 a\n2", 2, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Out(8), found_in("0\n1 a\n2 b\n", 2, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Out(8), found_in("0\n1 a\n2 b\nforeign\n", 2, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Out(0), found_in("", 2, "1 a\n2 b\n"));
    }

    #[test]
    fn bytes_after_foreign_lines_are_found() {
        assert_eq!(FoundBytes::Out(8), found_in("foreign\n1 a\n2 b\n", 0, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Out(5), found_in("foreign\n1 a\n2", 0, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Among { out: 4, torn: true }, found_in("1 a\n2foreign\n", 0, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Among { out: 0, torn: true }, found_in("1foreign\n", 0, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Among { out: 0, torn: false }, found_in("foreign\n", 0, "1 a\n2 b\n"));
        assert_eq!(FoundBytes::Among { out: 0, torn: false }, found_in("foreign 1 a\n", 0, "1 a\n2 b\n"));
    }

    #[test]
    fn whole_lines_are_counted_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, format!("0\n{}\ntorn", "x".repeat(200_000))).unwrap();
        let file = File::open(&path).unwrap();

        assert_eq!(200_001, whole_lines(&file, 2, 200_005).unwrap());
        assert_eq!(0, whole_lines(&file, 2, 150_000).unwrap());
    }

    /// Makes `file` as a dead writer left it, which intended to append `copy` at offset `at`, and finishes the append.
    /// Returns the file's text and the number of counted torn lines.
    fn repaired(file: &str, at: u64, copy: &str, with_copy: bool) -> (String, u64) {
        use std::os::unix::fs::PermissionsExt;

        let private = std::fs::Permissions::from_mode(0o700);
        let queue = tempfile::Builder::new().permissions(private).tempdir_in("/dev/shm").unwrap();
        let path = queue.path().join("a.log");
        std::fs::write(&path, file).unwrap();
        let target = OpenOptions::new().append(true).open(&path).unwrap();
        let identity = super::super::Identity::of(&target.metadata().unwrap());
        let sidecar = super::super::table::open(&Folder::open_existing(queue.path()).unwrap(), identity).unwrap();
        let mut intent = Intent {
            batch: 1,
            chunk_offset: 0,
            length: copy.len() as u64,
            file_bytes: at,
            copy_offset: 0,
            written_ns: 0,
            sink: 1,
            ends_line: false,
            uuid: [0; 16],
            owner: "1-2-3-4".to_owned(),
        };
        if with_copy {
            sidecar.intend(&mut intent, copy.as_bytes(), &mut Vec::new()).unwrap();
        } else {
            sidecar.rewrite(&intent).unwrap();
        }
        finish_intent(&sidecar, &target).unwrap();
        let once = std::fs::read_to_string(&path).unwrap();

        assert!(!sidecar.has_intent().unwrap());
        (once, sidecar.torn())
    }

    #[test]
    fn a_line_is_completed_from_the_copy_and_without_one_it_is_ended() {
        assert_eq!(("0\n1 a\n2 b\n".to_owned(), 0), repaired("0\n1 a\n2", 2, "1 a\n2 b\n", true));
        assert_eq!(("0\n1 a\n2\n".to_owned(), 1), repaired("0\n1 a\n2", 2, "1 a\n2 b\n", false));
        assert_eq!(("0\n1 a\n2 b\n".to_owned(), 0), repaired("0\n1 a\n2 b\n", 2, "1 a\n2 b\n", false));
        assert_eq!(("0\n".to_owned(), 0), repaired("0\n", 2, "1 a\n2 b\n", false));
    }

    #[test]
    fn a_torn_line_before_a_foreign_one_is_repeated_and_counted() {
        assert_eq!(("1 a\n2foreign\n2 b\n".to_owned(), 1), repaired("1 a\n2foreign\n", 0, "1 a\n2 b\n", true));
        assert_eq!(("foreign\n1 a\n".to_owned(), 1), repaired("foreign", 0, "1 a\n", true));
        assert_eq!(("foreign\n1 a\n".to_owned(), 0), repaired("foreign\n", 0, "1 a\n", true));
    }
}
