//! The overflow files and spools of a dead process. They contain finished chunks that their sinks had not accepted.
//!
//! The entries of a sink are in batch order across all its files. The last entry of an overflow file may be cut by the
//! kill, or by a lack of room. The sink's head stores the last batch whose entry is complete. Only missing entries up
//! to that batch count as damage. A chunk may be in both an overflow file and a spool, since it is written to disk
//! before its overflow entry is freed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};

use logspool_lanes::segment::layout::Table;
use logspool_spool::parts::{self, Joiner};
use logspool_spool::{RealDisk, SpoolError, View, ViewedFrame, pointer};
use logspool_sys::folder::Folder;
use logspool_sys::kept::KeptDescriptor;

use super::damage::Damage;
use super::leftover::Leftover;
use crate::chunk::{Chunk, ENTRY_HEAD_BYTES, EntryHead, decode_marks};
use crate::sink::Mark;

/// One finished chunk in an overflow file or spool.
#[derive(Debug, Clone, Copy)]
pub struct SpilledChunk {
    /// Number of the batch.
    pub batch: u64,
    /// Number of records.
    pub marks: u32,
    source: ChunkLocation,
}

/// Where the entry of a chunk is.
#[derive(Debug, Clone, Copy)]
enum ChunkLocation {
    /// The entry is in an overflow file: index of the file, offset in the file, and number of bytes of the lines.
    File { file: u32, offset: u64, bytes: u32 },
    /// The entry is in a spool: index of the spool, index of the first frame, and number of frames.
    Spool { spool: u32, frame: u32, frames: u32 },
}

/// An open spool and its frames.
#[derive(Debug)]
struct Spool {
    view: View<RealDisk>,
    frames: Vec<ViewedFrame>,
}

/// The index of the overflow files and spools of one dead process.
#[derive(Debug, Default)]
pub struct Spilled {
    /// Entries per sink, in batch order.
    entries: BTreeMap<usize, Vec<SpilledChunk>>,
    /// Number of bytes after the last whole entry in the last file of each sink.
    behind: BTreeMap<usize, u64>,
    names: Vec<String>,
    spools: Vec<Spool>,
    /// The overflow file that was read last. Entries are read in file order, so the next entry is usually in this file
    /// too.
    open: RefCell<Option<(u32, KeptDescriptor<File>)>>,
    damage: Damage,
}

impl Spilled {
    /// Reads the heads of all entries and makes the index.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be opened or read.
    pub fn index(folder: &Folder, leftover: &Leftover) -> io::Result<Self> {
        let mut spilled = Self::default();
        let files = &leftover.overflow;
        for (at, (sink, number)) in files.iter().enumerate() {
            let name = leftover.overflow_name(*sink, *number);
            let file = folder.open_file(&name)?;
            let status = file.metadata()?;
            // Count only the allocated bytes of a sparse file, so that no hole is read into memory.
            let file_bytes = status.len().min(status.blocks() * 512);
            spilled.names.push(name);
            let end = spilled.index_file(&file, file_bytes, *sink)?;
            let has_successor = files.get(at + 1).is_some_and(|(next, _)| next == sink);
            if has_successor {
                spilled.damage.bytes += file_bytes - end;
            } else {
                spilled.behind.insert(*sink, file_bytes - end);
            }
        }
        if leftover.spool && !folder.is_own() {
            // Do not open a path that is read from another user's file.
            let why = format!("records of it lie in a spool of user {}: recover them as that user", folder.owner());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        if leftover.spool
            && let Some(path) = pointer::read(folder, &leftover.name)?
        {
            match Folder::open_existing(&path) {
                // The folder does not exist any more: its owner removes it when its spools are empty.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                opened => spilled.index_spools(&opened?)?,
            }
        }
        Ok(spilled)
    }

    fn index_spools(&mut self, process: &Folder) -> io::Result<()> {
        let mut ids: Vec<u32> = process.names()?.iter().filter_map(|name| pointer::sink_of(name)).collect();
        ids.sort_unstable();
        for id in ids {
            let path = process.path().join(pointer::sink_folder(id));
            let view = RealDisk::open_read_only(&path).and_then(View::open).map_err(SpoolError::from)?;
            self.damage.bytes += view.damaged_bytes();
            self.index_spool(Table::Sinks.slot(id), view)?;
        }
        for entries in self.entries.values_mut() {
            entries.sort_by_key(|entry| entry.batch);
            entries.dedup_by_key(|entry| entry.batch);
        }
        Ok(())
    }

    fn index_spool(&mut self, sink: usize, view: View<RealDisk>) -> io::Result<()> {
        let entries = self.entries.entry(sink).or_default();
        let spool = self.spools.len() as u32;
        let mut frames: Vec<ViewedFrame> = Vec::new();
        let mut peek = [0; ENTRY_HEAD_BYTES];
        let walked = view.walk(&mut peek, |frame, begin| {
            let at = frames.len() as u32;
            frames.push(frame);
            if parts::begins(frame.codec)
                && let Some(head) = EntryHead::parse(begin)
            {
                let source = ChunkLocation::Spool { spool, frame: at, frames: 1 };
                entries.push(SpilledChunk { batch: head.batch, marks: head.marks, source });
            } else if let Some(SpilledChunk { source: ChunkLocation::Spool { spool: of, frames, .. }, .. }) =
                entries.last_mut()
                && *of == spool
            {
                *frames += 1;
            }
        });
        walked.map_err(SpoolError::from)?;
        self.spools.push(Spool { view, frames });
        Ok(())
    }

    /// Indexes one overflow file. Returns the offset after its last whole entry.
    fn index_file(&mut self, file: &File, file_bytes: u64, sink: usize) -> io::Result<u64> {
        let entries = self.entries.entry(sink).or_default();
        let file_number = self.names.len() as u32 - 1;
        let mut offset = 0;
        while let Some((head, end)) = read_head(file, file_bytes, offset)?
            && entries.last().is_none_or(|last| last.batch < head.batch)
        {
            let source = ChunkLocation::File { file: file_number, offset, bytes: head.line_bytes };
            entries.push(SpilledChunk { batch: head.batch, marks: head.marks, source });
            offset = end;
        }
        Ok(offset)
    }

    /// Whether there are no entries at all.
    pub fn is_empty(&self) -> bool {
        self.entries.values().all(Vec::is_empty)
    }

    /// Returns the entries of a sink, in batch order.
    pub fn of(&self, sink: usize) -> &[SpilledChunk] {
        self.entries.get(&sink).map_or(&[], Vec::as_slice)
    }

    /// Whether there is an entry for a batch of a sink.
    pub fn holds(&self, sink: usize, batch: u64) -> bool {
        self.of(sink).binary_search_by_key(&batch, |entry| entry.batch).is_ok()
    }

    /// Amount of unreadable bytes. The end of a sink's last overflow file does not count.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Damage of a sink by missing entries. Its entries were completed up to batch `completed`, and the sink has
    /// written all batches up to `written`.
    pub fn missing(&self, sink: usize, written: u64, completed: u64) -> Damage {
        let last = self.of(sink).last().map_or(0, |entry| entry.batch);
        let bytes =
            if completed > last.max(written) { self.behind.get(&sink).map_or(1, |bytes| *bytes.max(&1)) } else { 0 };
        Damage { bytes, records: 0 }
    }

    /// Reads the chunk of an entry.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails, or `InvalidData` if a part of the chunk is damaged.
    pub fn read(&self, folder: &Folder, entry: &SpilledChunk) -> io::Result<Chunk> {
        match entry.source {
            ChunkLocation::File { file, offset, bytes } => {
                let mut open = self.open.borrow_mut();
                if open.as_ref().is_none_or(|(number, open)| *number != file || !open.is_ours()) {
                    let opened = folder.open_file(&self.names[file as usize])?;
                    *open = Some((file, KeptDescriptor::new(opened)));
                }
                let Some((_, file)) = &*open else { return Err(ErrorKind::NotFound.into()) };
                let text_bytes = bytes as usize;
                let mut bytes = vec![0; text_bytes + entry.marks as usize * size_of::<Mark>()];
                file.get()?.read_exact_at(&mut bytes, offset + ENTRY_HEAD_BYTES as u64)?;
                let marks = decode_marks(&bytes[text_bytes..]);
                bytes.truncate(text_bytes);
                Ok(with_checked_marks(Chunk { batch: entry.batch, bytes, marks, ..Chunk::default() }))
            }
            ChunkLocation::Spool { spool, frame, frames } => {
                let spool = &self.spools[spool as usize];
                let damaged = || io::Error::from(ErrorKind::InvalidData);
                let mut joiner = Joiner::default();
                let mut whole = None;
                for frame in &spool.frames[frame as usize..(frame + frames) as usize] {
                    let payload = spool.view.read(frame).map_err(SpoolError::from)?.ok_or_else(damaged)?;
                    whole = joiner.join(frame.codec, payload);
                }
                whole.and_then(|entry| Chunk::decode(&entry)).map(with_checked_marks).ok_or_else(damaged)
            }
        }
    }
}

/// Checks that the marks of a chunk fit its text. If they do not fit, the whole text becomes one record.
fn with_checked_marks(mut chunk: Chunk) -> Chunk {
    let ascending = chunk.marks.is_sorted_by_key(|mark| mark.end);
    if !ascending || chunk.marks.last().is_none_or(|mark| mark.end as usize != chunk.bytes.len()) {
        chunk.marks = vec![Mark { end: chunk.bytes.len() as u32, level: 0, class: 0, member: 0, seconds: 0 }];
    }
    chunk
}

/// Reads the head of the entry at `offset`. Returns it with the offset after the entry, or `None` if there is no whole
/// entry.
fn read_head(file: &File, file_bytes: u64, offset: u64) -> io::Result<Option<(EntryHead, u64)>> {
    let mut bytes = [0; ENTRY_HEAD_BYTES];
    if !read_whole(file, &mut bytes, offset)? {
        return Ok(None);
    }
    let Some(head) = EntryHead::parse(&bytes) else { return Ok(None) };
    let Some(end) = offset.checked_add(head.bytes() as u64).filter(|end| *end <= file_bytes) else { return Ok(None) };
    let mut last_word = [0; 8];
    let is_whole = read_whole(file, &mut last_word, end - 8)? && u64::from_ne_bytes(last_word) == head.batch;
    Ok(is_whole.then_some((head, end)))
}

/// Fills `bytes` from `offset`. Returns `false` if the file ends before that.
fn read_whole(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<bool> {
    match file.read_exact_at(bytes, offset) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}
