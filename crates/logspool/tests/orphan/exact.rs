//! The check of exactly-once delivery: every line is whole and occurs once, and each thread's lines are in order.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{MAX_BYTES, Task, text};

/// Checks the text of all files, oldest first. Returns the number of lines.
///
/// `accepted` has the newest accepted record of each thread. Lines that begin with a text of `foreign` are skipped.
pub fn judge(task: Task, file: &str, accepted: &HashMap<u32, u32>, foreign: &[&str]) -> u64 {
    let mut next: HashMap<u32, u32> = HashMap::new();
    let mut lines = 0;
    for line in file.split_inclusive('\n') {
        let is_foreign = foreign.iter().any(|foreign| line.starts_with(foreign));
        let is_message = line.ends_with("records dropped: the queue was full\n") || line.starts_with("the queue is ");
        if is_foreign || is_message {
            continue;
        }
        lines += 1;
        let words: Vec<u32> = line.split(' ').take(2).filter_map(|word| word.parse().ok()).collect();
        let [thread, index] = words[..] else { panic!("no line of ours: {:?}", &line[..line.len().min(200)]) };
        assert!(line == text(task, thread, index) + "\n", "line {thread} {index} is not whole: {:.200}", line);
        let expected = next.entry(thread).or_default();
        assert_eq!(*expected, index, "thread {thread}: the next line but one or a line again");
        *expected += 1;
    }
    for (thread, newest) in accepted {
        let written = next.get(thread).copied().unwrap_or(0);
        assert!(written > *newest, "thread {thread}: {newest} was accepted, the file ends before {written}");
    }
    lines
}

/// The files of a rotated log, oldest first, the current file last.
pub fn rotated(path: &Path) -> Vec<PathBuf> {
    let name = format!("{}.", path.file_name().unwrap().to_str().unwrap());
    let number_of = |file: &PathBuf| -> Option<u32> {
        let rest = file.file_name()?.to_str()?.strip_prefix(&name)?;
        rest.trim_end_matches(".gz").trim_end_matches(".zst").parse().ok()
    };
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    // A rotation that was cut by a kill leaves a number free.
    let mut files: Vec<PathBuf> = entries.filter(|file| number_of(file).is_some()).collect();
    files.sort_by_key(|file| std::cmp::Reverse(number_of(file)));
    files.push(path.to_owned());
    files
}

/// The text of several files.
pub fn text_of(files: &[PathBuf]) -> String {
    files.iter().map(|file| plain_text(file)).collect()
}

/// The text of a file, decompressed if needed. A missing uncompressed file counts as empty.
fn plain_text(file: &Path) -> String {
    let bytes = std::fs::read(file);
    let mut text = String::new();
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => {
            let bytes = bytes.unwrap();
            let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
            decoder.read_to_string(&mut text).unwrap_or_else(|error| panic!("{} is whole: {error}", file.display()));
        }
        Some("zst") => text = String::from_utf8(zstd::decode_all(&bytes.unwrap()[..]).unwrap()).unwrap(),
        _ => text = String::from_utf8(bytes.unwrap_or_default()).unwrap(),
    }
    text
}

/// Checks that each backup was full when it was rotated. A file that was rotated twice would be too small.
pub fn check_sizes(files: &[PathBuf]) {
    let longest_line = 200;
    for backup in &files[..files.len() - 1] {
        let bytes = plain_text(backup).len() as u64;
        assert!(bytes + longest_line >= MAX_BYTES, "{} was rotated with {bytes} bytes", backup.display());
    }
}
