//! Finds the valid frames in a segment file.
//!
//! Bytes between two frames that are not a frame are damage. The bytes after the last frame may be torn by a crash,
//! left by a former use of the file, or not written yet. The lengths of the file and of one frame bound time and
//! memory, whatever the bytes are. Files are copied by pread and never mapped.

use super::defect::Defect;
use super::disk::{Disk, read_patiently};
use super::frame::{ALIGNMENT, FrameHead, FrameKey, HEAD_BYTES};
use super::spool_segment::{FrameRun, HEADER_BYTES, MAX_SEGMENT_BYTES};

/// Number of bytes in one read.
///
/// Chosen: from this size on, reading costs a tenth of checking. Doubling it gains nothing, and halving it costs more
/// system calls.
const WINDOW_BYTES: usize = 256 * 1024;
/// Number of bytes that are skipped at once if the disk cannot read them.
const BLOCK_BYTES: usize = 4096;

/// Bytes in a segment that are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub struct Scan {
    /// The believed frames, in order.
    pub runs: Vec<FrameRun>,
    /// Damage between frames.
    pub damages: Vec<Damage>,
    /// The bytes after the last frame: torn, left by a former use of the file, or never written.
    pub tail: Option<Damage>,
    /// Whether the file holds whole frames that are not believed.
    pub has_leftovers: bool,
}

/// Scans the file of a segment. Frames with numbers below `first` do not belong to this segment. `is_believed` selects
/// which of the other frames count.
pub fn scan<D: Disk>(
    disk: &D,
    file: &D::File,
    key: FrameKey,
    first: u64,
    mut is_believed: impl FnMut(&FrameHead) -> bool,
) -> Scan {
    let mut window = ReadWindow::new(disk, file);
    let mut found = Scan::default();
    let mut lowest = first;
    let mut hole = None;
    let mut offset = HEADER_BYTES;
    while let Some(bytes) = window.bytes(offset, HEAD_BYTES) {
        let head = FrameHead::parse(bytes, key).filter(|head| head.first >= lowest);
        let Some(head) = head else {
            hole.get_or_insert(offset);
            offset = window.after_zeros(offset + ALIGNMENT);
            continue;
        };
        let payload = window.bytes(offset + HEAD_BYTES as u64, head.payload_bytes as usize);
        if payload.is_some_and(|payload| head.matches_payload(payload, key)) {
            if let Some(begin) = hole.take() {
                if Defect::StopAtDamage.is_planted() {
                    break;
                }
                found.damages.push(Damage { offset: begin, bytes: offset - begin });
            }
            if is_believed(&head) {
                FrameRun::of(&head, offset).add_to(&mut found.runs);
                lowest = head.end();
            } else {
                found.has_leftovers = true;
            }
        } else {
            hole.get_or_insert(offset);
        }
        offset += head.frame_bytes();
    }
    found.tail = hole.map(|begin| Damage { offset: begin, bytes: window.length.saturating_sub(begin) });
    found
}

/// A piece of the file in memory. A block that the disk cannot read is filled with zeros, which are not a frame.
struct ReadWindow<'a, D: Disk> {
    disk: &'a D,
    file: &'a D::File,
    length: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl<'a, D: Disk> ReadWindow<'a, D> {
    fn new(disk: &'a D, file: &'a D::File) -> Self {
        let length = disk.bytes(file).unwrap_or(0).min(MAX_SEGMENT_BYTES);
        Self { disk, file, length, start: 0, buffer: Vec::new() }
    }

    /// The bytes at `offset`. `None`: the file is too short.
    fn bytes(&mut self, offset: u64, count: usize) -> Option<&[u8]> {
        let end = offset.checked_add(count as u64).filter(|end| *end <= self.length)?;
        if offset < self.start || end > self.start + self.buffer.len() as u64 {
            self.load(offset, count);
        }
        let at = (offset - self.start) as usize;
        Some(&self.buffer[at..at + count])
    }

    /// The first offset >= `offset` at which a frame may begin. No frame begins with zeros, and a new segment is mostly
    /// zeros.
    fn after_zeros(&self, offset: u64) -> u64 {
        let loaded = self.buffer.get((offset - self.start) as usize..).unwrap_or_default();
        let places = loaded.chunks_exact(ALIGNMENT as usize);
        offset + places.take_while(|place| **place == [0; ALIGNMENT as usize]).count() as u64 * ALIGNMENT
    }

    fn load(&mut self, offset: u64, count: usize) {
        let wanted = (count.max(WINDOW_BYTES) as u64).min(self.length - offset) as usize;
        self.start = offset;
        self.buffer.clear();
        self.buffer.resize(wanted, 0);
        // After a short read the file has become shorter. Its missing bytes count as zeros.
        if self.disk.read_at(self.file, &mut self.buffer, offset).is_ok() {
            return;
        }
        for (index, block) in self.buffer.chunks_mut(BLOCK_BYTES).enumerate() {
            let at = offset + (index * BLOCK_BYTES) as u64;
            if read_patiently(self.disk, self.file, block, at).is_err() {
                block.fill(0);
            }
        }
    }
}
