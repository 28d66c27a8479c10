//! What the overflow files and the spools of a dead process hold: finished chunks of sinks that did not take them.
//!
//! Entries of a sink are in batch order, over all its files. The last one of an overflow file may be cut by the kill, or
//! be the remains of an entry that found no room: the sink's head says up to which batch entries were completed, and
//! only what is missing up to there is damage. A chunk may lie in both: it goes to disk before its place is freed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};

use logspool_lanes::segment::layout::Table;
use logspool_spool::parts::{self, Joiner};
use logspool_spool::{RealDisk, SpoolError, View, ViewedFrame, pointer};
use logspool_sys::folder::Folder;

use super::leftover::Leftover;
use super::walk::Damage;
use crate::chunk::{Chunk, ENTRY_HEAD_BYTES, EntryHead, decode_marks};
use crate::sink::Mark;

/// One finished chunk.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its batch.
    pub batch: u64,
    /// Records in it.
    pub marks: u32,
    source: Source,
}

/// Where it lies.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// In an overflow file: which, where, and bytes of its lines.
    File { file: u32, offset: u64, bytes: u32 },
    /// In a spool: which, its first frame, and how many frames it has.
    Spool { spool: u32, frame: u32, frames: u32 },
}

/// A spool with its frames.
#[derive(Debug)]
struct Spool {
    view: View<RealDisk>,
    frames: Vec<ViewedFrame>,
}

/// See the file head.
#[derive(Debug, Default)]
pub struct Spilled {
    /// Per sink, in batch order.
    entries: BTreeMap<usize, Vec<Entry>>,
    /// Per sink, bytes behind the last whole entry of its last file.
    behind: BTreeMap<usize, u64>,
    names: Vec<String>,
    spools: Vec<Spool>,
    /// The overflow file that was read last: entries are read in the order in which they lie.
    open: RefCell<Option<(u32, File)>>,
    damage: Damage,
}

impl Spilled {
    /// Reads the heads of all entries.
    ///
    /// # Errors
    ///
    /// When a file cannot be opened or read.
    pub fn index(folder: &Folder, leftover: &Leftover) -> io::Result<Self> {
        let mut spilled = Self::default();
        let files = &leftover.overflow;
        for (at, (sink, number)) in files.iter().enumerate() {
            let name = leftover.overflow_name(*sink, *number);
            let file = folder.open_file(&name)?;
            let status = file.metadata()?;
            // Of a file with holes, what has memory: nothing longer is read into ours.
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
            // Nothing that another user's files name is opened.
            let why = format!("records of it lie in a spool of user {}: recover them as that user", folder.owner());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        if leftover.spool
            && let Some(path) = pointer::read(folder, &leftover.name)?
        {
            match Folder::open_existing(&path) {
                // It goes while nothing waits in it.
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
            let view = RealDisk::look(&path).and_then(View::open).map_err(SpoolError::from)?;
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
                let source = Source::Spool { spool, frame: at, frames: 1 };
                entries.push(Entry { batch: head.batch, marks: head.marks, source });
            } else if let Some(Entry { source: Source::Spool { spool: of, frames, .. }, .. }) = entries.last_mut()
                && *of == spool
            {
                *frames += 1;
            }
        });
        walked.map_err(SpoolError::from)?;
        self.spools.push(Spool { view, frames });
        Ok(())
    }

    /// Returns the offset behind the last whole entry.
    fn index_file(&mut self, file: &File, file_bytes: u64, sink: usize) -> io::Result<u64> {
        let entries = self.entries.entry(sink).or_default();
        let file_number = self.names.len() as u32 - 1;
        let mut offset = 0;
        while let Some((head, end)) = read_head(file, file_bytes, offset)?
            && entries.last().is_none_or(|last| last.batch < head.batch)
        {
            let source = Source::File { file: file_number, offset, bytes: head.line_bytes };
            entries.push(Entry { batch: head.batch, marks: head.marks, source });
            offset = end;
        }
        Ok(offset)
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
    /// What the system said; `InvalidData` where a part of it is damaged.
    pub fn read(&self, folder: &Folder, entry: &Entry) -> io::Result<Chunk> {
        match entry.source {
            Source::File { file, offset, bytes } => {
                let mut open = self.open.borrow_mut();
                if open.as_ref().is_none_or(|(number, _)| *number != file) {
                    *open = Some((file, folder.open_file(&self.names[file as usize])?));
                }
                let Some((_, file)) = &*open else { return Err(ErrorKind::NotFound.into()) };
                let text_bytes = bytes as usize;
                let mut bytes = vec![0; text_bytes + entry.marks as usize * size_of::<Mark>()];
                file.read_exact_at(&mut bytes, offset + ENTRY_HEAD_BYTES as u64)?;
                let marks = decode_marks(&bytes[text_bytes..]);
                bytes.truncate(text_bytes);
                Ok(sound(Chunk { batch: entry.batch, bytes, marks, counts: Default::default() }))
            }
            Source::Spool { spool, frame, frames } => {
                let spool = &self.spools[spool as usize];
                let damaged = || io::Error::from(ErrorKind::InvalidData);
                let mut joiner = Joiner::default();
                let mut whole = None;
                for frame in &spool.frames[frame as usize..(frame + frames) as usize] {
                    let payload = spool.view.read(frame).map_err(SpoolError::from)?.ok_or_else(damaged)?;
                    whole = joiner.join(frame.codec, payload);
                }
                whole.and_then(|entry| Chunk::decode(&entry)).map(sound).ok_or_else(damaged)
            }
        }
    }
}

/// A chunk whose marks fit its text; else it goes out as one record.
fn sound(mut chunk: Chunk) -> Chunk {
    let ascending = chunk.marks.is_sorted_by_key(|mark| mark.end);
    if !ascending || chunk.marks.last().is_none_or(|mark| mark.end as usize != chunk.bytes.len()) {
        chunk.marks = vec![Mark { end: chunk.bytes.len() as u32, level: 0, class: 0, seconds: 0 }];
    }
    chunk
}

/// The head of the entry at `offset` and the offset behind it. `None`: there is no whole entry.
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

/// Fills `bytes` from `offset` on. `false`: the file ends before.
fn read_whole(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<bool> {
    match file.read_exact_at(bytes, offset) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}
