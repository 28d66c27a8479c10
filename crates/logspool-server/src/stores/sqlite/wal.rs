//! Finds committed transactions in SQLite's write-ahead log that SQLite would skip silently.
//!
//! SQLite reads frames from the log until a frame's checksum is wrong, and ignores all later frames. After a kill or a
//! power cut this is right, because the later frames were never committed. But if the disk damaged a frame, the later
//! frames hold committed transactions with acknowledged records. This module distinguishes the two cases. Frames of an
//! unfinished transaction have no commit mark. Frames that remain from before the log was last restarted have other
//! salts. Damage to the last frame alone cannot be distinguished from a frame that a kill cut off.
//!
//! The format is described in <https://www.sqlite.org/fileformat2.html#walformat>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use super::folder::{day_files, log_of};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The first word of a log, without its last bit. The last bit is 1 if the checksums are big-endian.
const MAGIC: u32 = 0x377f_0682;

/// The page size that is assumed if the header is damaged. All databases of the store have this page size.
const PAGE: usize = 4096;

/// A log that was not modified for this time counts as not being written. Chosen: it is far longer than the resolution
/// of file times, which is a few milliseconds.
const MIN_UNTOUCHED: Duration = Duration::from_millis(100);

/// Counts the committed transactions in a log after a damaged frame. Returns 0 if there is no log.
pub(super) fn lost_transactions(path: &Path) -> io::Result<u64> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        file => file?,
    };
    let mut from = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER];
    if !fill(&mut from, &mut header)? {
        return Ok(0);
    }
    let magic = word(&header, 0);
    let mut sums = LogChecksums { is_big_endian: magic & 1 == 1, sums: (0, 0) };
    sums.add(&header[..24]);
    let is_header_whole = magic & !1 == MAGIC && sums.sums == (word(&header, 24), word(&header, 28));
    let page = match word(&header, 8) as usize {
        1 => 1 << 16,
        page if page.is_power_of_two() && (512..=1 << 15).contains(&page) => page,
        _ => PAGE,
    };
    let mut salts = is_header_whole.then(|| (word(&header, 16), word(&header, 20)));
    let (mut is_broken, mut lost) = (!is_header_whole, 0);
    let mut frame = vec![0; FRAME_HEADER + page];
    while fill(&mut from, &mut frame)? {
        let own = (word(&frame, 8), word(&frame, 12));
        // If the header is damaged, use the salts of the first frame.
        let is_of_this_round = own == *salts.get_or_insert(own);
        let is_commit = word(&frame, 4) != 0;
        if is_broken {
            lost += u64::from(is_of_this_round && is_commit);
            continue;
        }
        sums.add(&frame[..8]);
        sums.add(&frame[FRAME_HEADER..]);
        is_broken = !is_of_this_round || sums.sums != (word(&frame, 16), word(&frame, 20));
    }
    Ok(lost)
}

/// Returns the message about lost transactions.
pub(super) fn loss(log: &Path, day: &Path, lost: u64) -> String {
    format!(
        "{} is damaged: the records of at least {lost} transactions that were stored and acknowledged are lost; \
         check the \
         disk, and restore {} from a backup if there is one",
        log.display(),
        day.display()
    )
}

/// Returns messages about the damaged logs of a folder, for a query without a running service. A log that is being
/// written is skipped, because it cannot be read consistently.
pub fn damaged_logs(folder: &Path) -> Vec<String> {
    let changed = |log: &Path| log.metadata().and_then(|found| found.modified()).ok();
    let loss = |name: String| {
        let day = folder.join(name);
        let log = log_of(&day);
        let before = changed(&log)?;
        let lost = lost_transactions(&log).ok().filter(|lost| *lost > 0)?;
        (changed(&log) == Some(before) && before.elapsed().is_ok_and(|age| age > MIN_UNTOUCHED))
            .then(|| loss(&log, &day, lost))
    };
    day_files(folder).unwrap_or_default().into_iter().filter_map(loss).collect()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

/// Fills `to`. Returns false if the file ends before `to` is full.
fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(to) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// The running checksum of the log. A frame's checksum covers all bytes that were added before.
struct LogChecksums {
    is_big_endian: bool,
    sums: (u32, u32),
}

impl LogChecksums {
    fn add(&mut self, bytes: &[u8]) {
        let (words, _) = bytes.as_chunks::<4>();
        let read = |word: &[u8; 4]| match self.is_big_endian {
            true => u32::from_be_bytes(*word),
            false => u32::from_le_bytes(*word),
        };
        let (mut first, mut second) = self.sums;
        for [one, other] in words.as_chunks::<2>().0 {
            first = first.wrapping_add(read(one)).wrapping_add(second);
            second = second.wrapping_add(read(other)).wrapping_add(first);
        }
        self.sums = (first, second);
    }
}
