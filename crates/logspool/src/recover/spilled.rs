//! What the overflow files of a dead process hold: finished chunks of sinks that did not take them.
//!
//! Entries of a sink are in batch order, over all its files. The last one may be cut by the kill, or be the
//! remains of an entry that found no room: the sink's head says up to which batch entries were completed, and
//! only what is missing up to there is damage.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::leftover::Leftover;
use super::walk::Damage;
use crate::overflow::{Chunk, ENTRY_HEAD_BYTES, ENTRY_MAGIC, decode_marks, entry_bytes};
use crate::segment::folder::Folder;
use crate::sink::Mark;

/// One finished chunk.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its batch.
    pub batch: u64,
    /// Records in it.
    pub marks: u32,
    bytes: u32,
    file: u32,
    offset: u64,
}

/// See the file head.
#[derive(Debug, Default)]
pub struct Spilled {
    /// Per sink, in batch order.
    entries: BTreeMap<usize, Vec<Entry>>,
    /// Per sink, bytes behind the last whole entry of its last file.
    behind: BTreeMap<usize, u64>,
    names: Vec<String>,
    damage: Damage,
}

impl Spilled {
    /// Reads the heads of all entries.
    ///
    /// # Errors
    ///
    /// When a file cannot be opened.
    pub fn index(folder: &Folder, leftover: &Leftover) -> io::Result<Self> {
        let mut spilled = Self::default();
        let files = &leftover.overflow;
        for (at, (sink, number)) in files.iter().enumerate() {
            let name = leftover.overflow_name(*sink, *number);
            let file = folder.open_file(&name)?;
            let file_bytes = file.metadata()?.len();
            spilled.names.push(name);
            let end = spilled.index_file(&file, file_bytes, *sink);
            let has_successor = files.get(at + 1).is_some_and(|(next, _)| next == sink);
            if has_successor {
                spilled.damage.bytes += file_bytes - end;
            } else {
                spilled.behind.insert(*sink, file_bytes - end);
            }
        }
        Ok(spilled)
    }

    /// Returns the offset behind the last whole entry.
    fn index_file(&mut self, file: &File, file_bytes: u64, sink: usize) -> u64 {
        let entries = self.entries.entry(sink).or_default();
        let file_number = self.names.len() as u32 - 1;
        let mut offset = 0;
        while let Some((mut entry, end)) = read_head(file, file_bytes, offset)
            && entries.last().is_none_or(|last| last.batch < entry.batch)
        {
            entry.file = file_number;
            entries.push(entry);
            offset = end;
        }
        offset
    }

    /// Whether there are no entries at all.
    pub fn is_empty(&self) -> bool {
        self.entries.values().all(Vec::is_empty)
    }

    /// Entries of a sink, in batch order.
    pub fn of(&self, sink: usize) -> &[Entry] {
        self.entries.get(&sink).map_or(&[], Vec::as_slice)
    }

    /// Whether the chunk of a batch for a sink is here.
    pub fn holds(&self, sink: usize, batch: u64) -> bool {
        self.of(sink).binary_search_by_key(&batch, |entry| entry.batch).is_ok()
    }

    /// What makes no entry and lies in front of other entries.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// What is missing of a sink whose entries were completed up to batch `completed` and written up to `written`.
    pub fn missing(&self, sink: usize, written: u64, completed: u64) -> Damage {
        let last = self.of(sink).last().map_or(0, |entry| entry.batch);
        let bytes =
            if completed > last.max(written) { self.behind.get(&sink).map_or(1, |bytes| *bytes.max(&1)) } else { 0 };
        Damage { bytes, records: 0 }
    }

    /// Reads a chunk back.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn read(&self, folder: &Folder, entry: &Entry) -> io::Result<Chunk> {
        let file = folder.open_file(&self.names[entry.file as usize])?;
        let text_bytes = entry.bytes as usize;
        let mut bytes = vec![0; text_bytes + entry.marks as usize * size_of::<Mark>()];
        file.read_exact_at(&mut bytes, entry.offset + ENTRY_HEAD_BYTES as u64)?;
        let mut marks = decode_marks(&bytes[text_bytes..]);
        bytes.truncate(text_bytes);
        let ascending = marks.is_sorted_by_key(|mark| mark.end);
        if !ascending || marks.last().is_none_or(|mark| mark.end as usize != text_bytes) {
            // Marks that do not fit the text: it goes out as one record.
            marks = vec![Mark { end: entry.bytes, level: 0, class: 0, seconds: 0 }];
        }
        Ok(Chunk { batch: entry.batch, bytes, marks, counts: Default::default() })
    }
}

/// The entry at `offset` and the offset behind it. `None`: there is no whole entry.
fn read_head(file: &File, file_bytes: u64, offset: u64) -> Option<(Entry, u64)> {
    let mut head = [0; ENTRY_HEAD_BYTES];
    file.read_exact_at(&mut head, offset).ok()?;
    let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let batch = u64::from_ne_bytes(head[8..16].try_into().expect("eight bytes"));
    let (magic, bytes, marks) = (word(0), word(4), word(16));
    let end = offset + entry_bytes(bytes as usize, marks as usize) as u64;
    if magic != ENTRY_MAGIC || end > file_bytes || batch == 0 {
        return None;
    }
    let mut last_word = [0; 8];
    file.read_exact_at(&mut last_word, end - 8).ok()?;
    (u64::from_ne_bytes(last_word) == batch).then_some((Entry { batch, marks, bytes, file: 0, offset }, end))
}
