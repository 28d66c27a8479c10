//! Finished lines of one batch for one sink, and their stored form.
//!
//! A stored entry consists of a head, the lines, the marks, and the batch number again. Numbers are in the machine's
//! byte order, since only the machine that wrote an entry reads it.
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | [`ENTRY_MAGIC`] |
//! | 4..8 | bytes of the lines |
//! | 8..16 | batch |
//! | 16..20 | number of marks, one for each record |
//! | 20..44 | records per level class |
//! | 44..48 | zeros |
//! | 48.. | lines, then 16 bytes for each mark: end, level, class, member, seconds |
//! | last 8 | batch; otherwise a kill has cut the entry |

use logspool_lanes::segment::layout::LEVEL_CLASSES;

use crate::sink::Mark;

/// First word of an entry.
pub const ENTRY_MAGIC: u32 = 0x4c4f_5646;
/// Bytes of an entry's head.
pub const ENTRY_HEAD_BYTES: usize = 48;

const _: () = assert!(size_of::<Mark>() == 16 && LEVEL_CLASSES == 6);

/// Finished lines of one batch for one sink, with the data that accounting and rotation need.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the batch.
    pub batch: u64,
    /// The lines.
    pub bytes: Vec<u8>,
    /// One mark for each record.
    pub marks: Vec<Mark>,
    /// Records per level class.
    pub counts: [u32; LEVEL_CLASSES],
    /// The member of the sink that writes the next record. It is not stored.
    pub member: u8,
}

impl Chunk {
    /// Replaces the contents of a buffer with the chunk as an entry.
    pub fn encode_to(&self, entry: &mut Vec<u8>) {
        entry.clear();
        entry.reserve(entry_bytes(self.bytes.len(), self.marks.len()));
        entry.extend_from_slice(&ENTRY_MAGIC.to_ne_bytes());
        entry.extend_from_slice(&(self.bytes.len() as u32).to_ne_bytes());
        entry.extend_from_slice(&self.batch.to_ne_bytes());
        entry.extend_from_slice(&(self.marks.len() as u32).to_ne_bytes());
        for count in self.counts {
            entry.extend_from_slice(&count.to_ne_bytes());
        }
        entry.extend_from_slice(&[0; 4]);
        entry.extend_from_slice(&self.bytes);
        for mark in &self.marks {
            entry.extend_from_slice(&mark.end.to_ne_bytes());
            entry.extend_from_slice(&mark.level.to_ne_bytes());
            entry.extend_from_slice(&[mark.class, mark.member]);
            entry.extend_from_slice(&mark.seconds.to_ne_bytes());
        }
        entry.extend_from_slice(&self.batch.to_ne_bytes());
    }

    /// Decodes an entry. Returns `None` if the bytes are not exactly one entry.
    pub fn decode(entry: &[u8]) -> Option<Self> {
        let head = EntryHead::parse(entry)?;
        if head.bytes() != entry.len() {
            return None;
        }
        let body = &entry[ENTRY_HEAD_BYTES..entry.len() - size_of::<u64>()];
        let (lines, marks) = body.split_at(head.line_bytes as usize);
        let last = &entry[entry.len() - size_of::<u64>()..];
        let is_whole = u64::from_ne_bytes(last.try_into().ok()?) == head.batch;
        is_whole.then(|| Self {
            batch: head.batch,
            bytes: lines.to_vec(),
            marks: decode_marks(marks),
            counts: head.counts,
            member: 0,
        })
    }
}

/// The head of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryHead {
    /// Bytes of the lines.
    pub line_bytes: u32,
    /// Number of the batch.
    pub batch: u64,
    /// Number of records.
    pub marks: u32,
    /// Records per level class.
    pub counts: [u32; LEVEL_CLASSES],
}

impl EntryHead {
    /// Decodes a head. Returns `None` if the bytes do not begin with a head.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let batch = u64::from_ne_bytes(bytes.get(8..16)?.try_into().ok()?);
        let mut counts = [0; LEVEL_CLASSES];
        for (class, count) in counts.iter_mut().enumerate() {
            *count = word(20 + 4 * class)?;
        }
        let is_head = word(0)? == ENTRY_MAGIC && batch != 0 && bytes.len() >= ENTRY_HEAD_BYTES;
        is_head.then_some(Self { line_bytes: word(4)?, batch, marks: word(16)?, counts })
    }

    /// Bytes of the whole entry.
    pub fn bytes(&self) -> usize {
        entry_bytes(self.line_bytes as usize, self.marks as usize)
    }
}

/// Bytes of an entry with `bytes` of lines and `marks` marks.
pub fn entry_bytes(bytes: usize, marks: usize) -> usize {
    ENTRY_HEAD_BYTES + bytes + marks * size_of::<Mark>() + size_of::<u64>()
}

/// Decodes the marks of an entry.
pub fn decode_marks(bytes: &[u8]) -> Vec<Mark> {
    bytes
        .chunks_exact(size_of::<Mark>())
        .map(|mark| Mark {
            end: u32::from_ne_bytes(mark[0..4].try_into().expect("four bytes")),
            level: u16::from_ne_bytes(mark[4..6].try_into().expect("two bytes")),
            class: mark[6],
            member: mark[7],
            seconds: i64::from_ne_bytes(mark[8..16].try_into().expect("eight bytes")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk() -> Chunk {
        let marks = vec![
            Mark { end: 4, level: 20, class: 2, member: 0, seconds: 7 },
            Mark { end: 9, level: 40, class: 4, member: 3, seconds: 8 },
        ];
        Chunk { batch: 3, bytes: b"one\nfour\n".to_vec(), marks, counts: [0, 0, 1, 0, 1, 0], member: 0 }
    }

    fn entry() -> Vec<u8> {
        let mut entry = b"an older entry".to_vec();
        chunk().encode_to(&mut entry);
        entry
    }

    #[test]
    fn an_entry_is_read_back() {
        assert_eq!(Some(chunk()), Chunk::decode(&entry()));
    }

    #[test]
    fn an_incomplete_entry_is_not_an_entry() {
        let entry = entry();
        for length in 0..entry.len() {
            assert_eq!(None, Chunk::decode(&entry[..length]), "{length} bytes");
        }
        let mut longer = entry.clone();
        longer.push(0);
        assert_eq!(None, Chunk::decode(&longer));
        let mut other_end = entry;
        *other_end.last_mut().unwrap() ^= 1;
        assert_eq!(None, Chunk::decode(&other_end));
    }
}
