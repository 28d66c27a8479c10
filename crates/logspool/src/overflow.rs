//! Overflow files. They hold the finished chunks of a stalled sink on tmpfs, so that the lanes have room for new
//! records.
//!
//! Each chunk is stored as an entry (`chunk.rs`). If a kill cut an entry short, recovery ignores the entry, since its
//! records are still in the lanes. The entries of a sink are in batch order. A file is removed when the sink has
//! written the file's last entry. The files hold formatted bytes instead of raw records. Formatted bytes are as small
//! as raw records, need no definitions for a replay, and cannot be rendered differently later.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::{LEVEL_CLASSES, Table};
use logspool_sys::kept::{KeptDescriptor, gone};

use crate::chunk::{Chunk, ENTRY_HEAD_BYTES, decode_marks, entry_bytes};
use crate::sink::Mark;

/// When a file has this size, the next chunk begins a new file. If the budget is small, files are smaller. A file is
/// freed as a whole.
///
/// Chosen: tmpfs is freed in steps of 4 MiB. Halving it doubles the number of files; doubling it keeps memory in use
/// for longer.
const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Minimum number of files for which a budget has room.
const FILES: u64 = 16;

/// Limit and current size of all overflow files of the process, in bytes.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    taken: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit, taken: AtomicU64::new(0) }
    }

    fn reserve(&self, bytes: u64) -> bool {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken + bytes <= self.limit).then_some(taken + bytes)
            })
            .is_ok()
    }

    fn release(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Maximum number of bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether half of the budget is in use.
    pub fn is_half_used(&self) -> bool {
        self.used() >= self.limit / 2
    }
}

/// An overflow file. It is removed when the last reference to it is dropped.
#[derive(Debug)]
pub struct OverflowFile {
    store: EntryStore,
    bytes: AtomicU64,
    segment: Arc<Segment>,
    budget: Arc<Budget>,
}

/// Where the entries of an overflow file are.
#[derive(Debug)]
enum EntryStore {
    /// In a file of the segment's folder, with this name.
    File(KeptDescriptor<File>, String),
    /// Without a folder: in the memory of this process, which needs no descriptor.
    Memory(Mutex<Vec<u8>>),
}

impl Drop for OverflowFile {
    fn drop(&mut self) {
        self.budget.release(self.bytes.load(Ordering::Relaxed));
        if let (EntryStore::File(_, name), Some((folder, _))) = (&self.store, self.segment.home()) {
            // If the file cannot be removed, the next start finds it and sees that its entries are written.
            let _ = folder.remove(name);
        }
    }
}

impl OverflowFile {
    /// Runs `act` with the file. If the program has closed its descriptor, opens the file again for this call.
    fn with(
        &self,
        file: &KeptDescriptor<File>,
        name: &str,
        act: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        file.with(|| self.segment.home().ok_or_else(gone)?.0.open_file(name), act)
    }

    fn append(&self, entry: &[u8]) -> io::Result<()> {
        match &self.store {
            EntryStore::File(file, name) => {
                let end = self.bytes.load(Ordering::Relaxed);
                self.with(file, name, |file| file.write_all_at(entry, end))
            }
            EntryStore::Memory(bytes) => {
                bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(entry);
                Ok(())
            }
        }
    }

    fn read_exact_at(&self, part: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.store {
            EntryStore::File(file, name) => self.with(file, name, |file| file.read_exact_at(part, offset)),
            EntryStore::Memory(bytes) => {
                let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                let stored = bytes.get(offset as usize..).and_then(|bytes| bytes.get(..part.len()));
                part.copy_from_slice(stored.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

/// Location of a chunk in an overflow file.
#[derive(Debug, Clone)]
pub struct OverflowPlace {
    file: Arc<OverflowFile>,
    offset: u64,
    bytes: u32,
    marks: u32,
}

/// The overflow files of one sink.
#[derive(Debug)]
pub struct Overflow {
    segment: Arc<Segment>,
    budget: Arc<Budget>,
    sink: u32,
    current: Option<Arc<OverflowFile>>,
    /// Buffer for entries. It is kept until everything is written.
    entry: Vec<u8>,
}

impl Overflow {
    /// The overflow of a sink that has no overflow files yet.
    pub fn new(segment: Arc<Segment>, budget: Arc<Budget>, sink: u32) -> Self {
        Self { segment, budget, sink, current: None, entry: Vec::new() }
    }

    /// Appends a chunk.
    ///
    /// # Errors
    ///
    /// Fails with `StorageFull` if the budget is used up. Also fails if a system call fails. In both cases the chunk is
    /// not stored.
    pub fn append(&mut self, chunk: &Chunk) -> io::Result<OverflowPlace> {
        let entry_bytes = entry_bytes(chunk.bytes.len(), chunk.marks.len()) as u64;
        if !self.budget.reserve(entry_bytes) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let stored = self.store(chunk, entry_bytes);
        if stored.is_err() {
            self.budget.release(entry_bytes);
        }
        stored
    }

    fn store(&mut self, chunk: &Chunk, entry_bytes: u64) -> io::Result<OverflowPlace> {
        let file = match &self.current {
            Some(file) if file.bytes.load(Ordering::Relaxed) < FILE_BYTES.min(self.budget.limit() / FILES) => {
                file.clone()
            }
            _ => self.next_file()?,
        };
        let offset = file.bytes.load(Ordering::Relaxed);
        chunk.encode_to(&mut self.entry);
        file.append(&self.entry)?;
        file.bytes.fetch_add(entry_bytes, Ordering::Relaxed);
        Ok(OverflowPlace { file, offset, bytes: chunk.bytes.len() as u32, marks: chunk.marks.len() as u32 })
    }

    fn next_file(&mut self) -> io::Result<Arc<OverflowFile>> {
        let store = match self.segment.home() {
            Some((folder, name)) => {
                let name = format!("{name}.over-{}-{}", Table::Sinks.slot(self.sink), self.segment.next_overflow());
                EntryStore::File(KeptDescriptor::new(folder.create_once(&name)?), name)
            }
            None => EntryStore::Memory(Mutex::default()),
        };
        let file = Arc::new(OverflowFile {
            store,
            bytes: AtomicU64::new(0),
            segment: self.segment.clone(),
            budget: self.budget.clone(),
        });
        self.current = Some(file.clone());
        Ok(file)
    }

    /// Returns the current file, so that the next chunk begins a new file. Call it after the sink has written
    /// everything in the current file. The file is removed when the caller drops it.
    pub fn finish(&mut self) -> Option<Arc<OverflowFile>> {
        self.entry = Vec::new();
        self.current.take()
    }
}

impl OverflowPlace {
    /// Reads the whole entry.
    ///
    /// # Errors
    ///
    /// When a system call fails.
    pub fn read_entry(&self) -> io::Result<Vec<u8>> {
        let mut entry = vec![0; entry_bytes(self.bytes as usize, self.marks as usize)];
        self.file.read_exact_at(&mut entry, self.offset)?;
        Ok(entry)
    }

    /// Number of records in the chunk.
    pub fn records(&self) -> u32 {
        self.marks
    }

    /// Reads the chunk. The contents are trusted, since this process wrote the file.
    ///
    /// # Errors
    ///
    /// When a system call fails.
    pub fn read(&self, batch: u64, counts: [u32; LEVEL_CLASSES]) -> io::Result<Chunk> {
        let mut body = vec![0; self.bytes as usize + self.marks as usize * size_of::<Mark>()];
        self.file.read_exact_at(&mut body, self.offset + ENTRY_HEAD_BYTES as u64)?;
        let marks = decode_marks(&body[self.bytes as usize..]);
        body.truncate(self.bytes as usize);
        Ok(Chunk { batch, bytes: body, marks, counts, member: 0 })
    }
}
