//! A segment: one file of the spool, written by one thread of one life of the spool and never changed afterwards.
//!
//! `NUMBER.seg` is in use, `NUMBER.free` waits to be used again, `NUMBER.tmp` is being made. Numbers have 20 digits and
//! grow over all folders of a spool. Segments are ordered by epoch, then by number. A new file is filled with zeros
//! that are really written, so that a later write cannot fail on a full disk. A file used again keeps its old frames,
//! which its new id makes invalid.
//!
//! The header is stored twice, at byte 0 and at byte 512, so that one bad sector does not cost a segment. Frames
//! (`frame.rs`) begin at byte 1024. All words are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `LSPOOL\r\n` |
//! | 8..12 | version, 1 |
//! | 12..16 | masked CRC32C of bytes 0..12 and 16..88 |
//! | 16..32 | id of the stream |
//! | 32..40 | epoch: which life of the stream wrote it |
//! | 40..48 | number of the segment |
//! | 48..56 | number of the first record |
//! | 56..72 | id of the segment, new for each use of the file |
//! | 72..80 | bytes of the file |
//! | 80..88 | number that its own frames begin with; zeros count as the number of the first record |
//!
//! A first record N in a header says that every record below N was durable before the segment got its name. Frames from
//! N on in earlier segments are left over from a failed sync; a reader that has this segment ignores them. If the
//! frames to take over from N on need several segments, all these segments have N as first record. In addition, each
//! has its own number at bytes 80..88, and the earlier segments of the group are believed up to that number.

use super::disk::{Disk, DiskError, read_patiently};
use super::frame::{FrameHead, FrameKey, HEAD_BYTES};
use super::id::Id;
use super::words::{masked, put_u32, put_u64, u32_at, u64_at};

/// Offset of the first frame.
pub const HEADER_BYTES: u64 = 1024;
/// Offset of the second copy of the header.
const COPY_BYTES: usize = 512;
/// Number of bytes of a header that are used.
const USED_BYTES: usize = 88;
const MAGIC: &[u8; 8] = b"LSPOOL\r\n";
const VERSION: u32 = 1;

/// Maximum size in bytes of a segment that is read.
///
/// Chosen: it is four times the usual size, and no spool writes a longer segment.
pub const MAX_SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Id of the stream.
    pub stream: Id,
    /// The epoch: which life of the stream wrote the segment.
    pub epoch: u64,
    /// The segment's place in the order of segments of one epoch.
    pub number: u64,
    /// Number of the first record. Segments that take over frames together have the same number here.
    pub first: u64,
    /// Number of the first record that this segment itself holds.
    pub begins: u64,
    /// Id of the segment, new for each use of the file.
    pub id: Id,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Header {
    /// Encodes both copies.
    pub fn encode(&self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(MAGIC);
        put_u32(&mut bytes, 8, VERSION);
        bytes[16..32].copy_from_slice(&self.stream.0);
        put_u64(&mut bytes, 32, self.epoch);
        put_u64(&mut bytes, 40, self.number);
        put_u64(&mut bytes, 48, self.first);
        bytes[56..72].copy_from_slice(&self.id.0);
        put_u64(&mut bytes, 72, self.bytes);
        put_u64(&mut bytes, 80, self.begins);
        let crc = crc_of(&bytes);
        put_u32(&mut bytes, 12, crc);
        bytes.copy_within(..USED_BYTES, COPY_BYTES);
        bytes
    }

    /// Parses the first valid copy.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        [0, COPY_BYTES].into_iter().find_map(|at| Self::parse_copy(bytes.get(at..at + USED_BYTES)?))
    }

    fn parse_copy(bytes: &[u8]) -> Option<Self> {
        if bytes[0..8] != *MAGIC || u32_at(bytes, 8) != VERSION || u32_at(bytes, 12) != crc_of(bytes) {
            return None;
        }
        Some(Self {
            stream: Id::at(bytes, 16),
            epoch: u64_at(bytes, 32),
            number: u64_at(bytes, 40),
            first: u64_at(bytes, 48),
            begins: u64_at(bytes, 80).max(u64_at(bytes, 48)),
            id: Id::at(bytes, 56),
            bytes: u64_at(bytes, 72),
        })
    }

    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// The disk's error. `Ok(None)`: neither copy is valid.
    pub fn read<D: Disk>(disk: &D, file: &D::File) -> Result<Option<Self>, DiskError> {
        let mut bytes = [0; HEADER_BYTES as usize];
        let filled = read_patiently(disk, file, &mut bytes, 0)?;
        Ok(Self::parse(&bytes[..filled]))
    }
}

fn crc_of(header: &[u8]) -> u32 {
    masked(crc32c::crc32c_append(crc32c::crc32c(&header[0..12]), &header[16..USED_BYTES]))
}

/// Frames that follow each other without a break, in numbers and in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRun {
    /// The spool's next number when the first frame was made.
    pub follows: u64,
    /// Number of the first record.
    pub first: u64,
    /// The number after the last record.
    pub end: u64,
    /// Offset of the first frame.
    pub offset: u64,
    /// Offset after the last frame.
    pub stop: u64,
}

impl FrameRun {
    /// A run of one frame.
    pub fn of(head: &FrameHead, offset: u64) -> Self {
        Self { follows: head.follows, first: head.first, end: head.end(), offset, stop: offset + head.frame_bytes() }
    }

    /// Appends the run to `runs`, or extends the last one if there is no break between them.
    pub fn add_to(self, runs: &mut Vec<Self>) {
        match runs.last_mut() {
            Some(last) if self.follows == last.end && self.first == last.end && self.offset == last.stop => {
                last.end = self.end;
                last.stop = self.stop;
            }
            _ => runs.push(self),
        }
    }
}

/// A segment of an open spool.
#[derive(Debug)]
pub struct Segment<D: Disk> {
    /// The segment's place in the order of segments.
    pub number: u64,
    /// Index of the segment's folder in the spool's list of folders.
    pub disk: usize,
    /// The segment's file.
    pub file: D::File,
    /// The key with which its frames are checked.
    pub key: FrameKey,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The frames that are durable and believed.
    pub runs: Vec<FrameRun>,
    /// Offset of the next frame. It is valid only for the segment being written.
    pub offset: u64,
    /// Number of the first record, from the segment's header.
    pub first: u64,
    /// Whether it holds frames that are otherwise only in memory. If so, it is kept until they are durable in another
    /// segment.
    pub keeps_unsynced: bool,
    /// Whether a sync or a write failed. If so, the file is not used again.
    pub is_failed: bool,
    /// Whether it may hold frames that are not believed because of a later segment's first number. If so, that later
    /// segment must not be freed before this one.
    pub has_leftovers: bool,
}

impl<D: Disk> Segment<D> {
    /// The number after the last durable record that is believed; 0 if there is no such record.
    pub fn end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end)
    }

    /// Reads the head of the frame at `offset`. `None`: there is no valid head.
    ///
    /// # Errors
    ///
    /// The disk's error.
    pub fn head(&self, disk: &D, offset: u64) -> Result<Option<FrameHead>, DiskError> {
        let mut bytes = [0; HEAD_BYTES];
        read_patiently(disk, &self.file, &mut bytes, offset)?;
        Ok(FrameHead::parse(&bytes, self.key))
    }

    /// Reads the payload of the frame at `offset`, whose head has been read. `None`: the payload is damaged.
    ///
    /// # Errors
    ///
    /// The disk's error.
    pub fn payload(&self, disk: &D, offset: u64, head: &FrameHead) -> Result<Option<Vec<u8>>, DiskError> {
        // The length is bounded by the head's checksum and by `MAX_PAYLOAD_BYTES`.
        let mut payload = vec![0; head.payload_bytes as usize];
        read_patiently(disk, &self.file, &mut payload, offset + HEAD_BYTES as u64)?;
        Ok(head.matches_payload(&payload, self.key).then_some(payload))
    }
}

/// Segment numbers are below this number, whatever is in a folder, so a next number always exists.
const MAX_NUMBER: u64 = 1 << 62;

/// The kind of a file, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A segment in use.
    Segment(u64),
    /// A segment that waits to be used again.
    Spare(u64),
    /// A file whose making was not finished: a segment, or a file without a number.
    Unfinished(Option<u64>),
    /// A segment that was set aside.
    SetAside(u64),
    /// Any other file.
    Other,
}

/// Parses a file name.
pub fn file_kind(name: &str) -> FileKind {
    let Some((stem, kind)) = name.rsplit_once('.') else { return FileKind::Other };
    let is_number = stem.len() == 20 && stem.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| stem.parse().ok()).flatten().filter(|number| *number < MAX_NUMBER);
    match (kind, number) {
        ("seg", Some(number)) => FileKind::Segment(number),
        ("free", Some(number)) => FileKind::Spare(number),
        ("aside", Some(number)) => FileKind::SetAside(number),
        ("tmp", number) => FileKind::Unfinished(number),
        _ => FileKind::Other,
    }
}

/// Name of a segment in use.
pub fn segment_name(number: u64) -> String {
    format!("{number:020}.seg")
}

/// Name of a segment that waits to be used again.
pub fn spare_name(number: u64) -> String {
    format!("{number:020}.free")
}

/// Name of a segment that is being made.
pub fn unfinished_name(number: u64) -> String {
    format!("{number:020}.tmp")
}

/// Name of a segment that was set aside because no spool can read it.
pub fn aside_name(number: u64) -> String {
    format!("{number:020}.aside")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_from_either_copy() {
        let (stream, id) = (Id([1; 16]), Id([5; 16]));
        let header = Header { stream, epoch: 2, number: 3, first: 4, begins: 9, id, bytes: 1 << 20 };
        let bytes = header.encode();
        let mut first_bad = bytes;
        first_bad[20] ^= 1;
        let mut both_bad = first_bad;
        both_bad[COPY_BYTES + 20] ^= 1;

        assert_eq!(Some(header), Header::parse(&bytes));
        assert_eq!(Some(header), Header::parse(&first_bad));
        assert_eq!(None, Header::parse(&both_bad));
        assert_eq!(None, Header::parse(&bytes[..60]));
    }

    #[test]
    fn file_names_show_the_kind_of_file() {
        assert_eq!(FileKind::Segment(7), file_kind(&segment_name(7)));
        assert_eq!(FileKind::Spare(7), file_kind(&spare_name(7)));
        assert_eq!(FileKind::Unfinished(Some(7)), file_kind(&unfinished_name(7)));
        assert_eq!(FileKind::Unfinished(None), file_kind("checkpoint.tmp"));
        assert_eq!(FileKind::Other, file_kind("7.seg"));
        assert_eq!(FileKind::Other, file_kind("checkpoint"));
        assert_eq!(FileKind::Other, file_kind("99999999999999999999.seg"));
    }
}
