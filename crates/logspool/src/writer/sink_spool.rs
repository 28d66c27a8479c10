//! The spool of one sink. It stores chunks as frames, in batch order, and has one reader.
//!
//! A chunk is stored as an entry, as in overflow files (`chunk.rs`). An entry longer than a frame is split into several
//! frames. The codec of each frame says which part of the entry it is (`spool/parts.rs`). Numbers count records; a
//! frame that continues a chunk counts as one record.

use std::path::{Path, PathBuf};

use logspool_spool::parts::{Joiner, codec};
use logspool_spool::{Batch, Item, Options, RealDisk, Spool, SpoolError};

use crate::chunk::Chunk;

/// Consumer id of the sink's writer in the spool.
const CONSUMER: u64 = 0;

/// Minimum number of segments of a spool, however small its size limit is.
const SEGMENTS: u64 = 8;

/// Result of reading the next chunk of the backlog.
#[derive(Debug)]
pub enum BacklogRead {
    /// A chunk, and the record number after it.
    Chunk(Chunk, u64),
    /// There is no chunk: all chunks were returned already.
    Nothing,
}

/// The spool of one sink. The module documentation describes its contents.
#[derive(Debug)]
pub struct SinkSpool {
    spool: Spool<RealDisk>,
    path: PathBuf,
    /// Record number up to which chunks are not returned: the writer holds these chunks or has written them.
    passed: u64,
    acked: u64,
    /// Whether there are acks that no checkpoint has made durable.
    is_unsaved: bool,
    joiner: Joiner,
}

impl SinkSpool {
    /// Opens a spool in its own folder. Its files take at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be made or is accessible to others.
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, SpoolError> {
        let segment_bytes = Options::default().segment_bytes.min(max_bytes / SEGMENTS);
        let options = Options { segment_bytes, max_bytes, ..Options::default() };
        let mut spool = Spool::open(vec![RealDisk::open(path)?], options)?;
        spool.add_consumer(CONSUMER)?;
        let (passed, acked) = (spool.next(), spool.next());
        Ok(Self { spool, path: path.to_owned(), passed, acked, is_unsaved: false, joiner: Joiner::default() })
    }

    /// Opens the spool of a dead process, to read all unacked chunks.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SinkSpool::open`]. The error wraps `WouldBlock` if the spool is in use.
    pub fn open_left(path: &Path) -> Result<Self, SpoolError> {
        // Nothing is appended to this spool, so the size options do not matter.
        let mut spool = Spool::open(vec![RealDisk::open(path)?], Options::default())?;
        let acked = spool.add_consumer(CONSUMER)?;
        let joiner = Joiner::default();
        Ok(Self { spool, path: path.to_owned(), passed: acked, acked, is_unsaved: false, joiner })
    }

    /// Appends an entry with `records` records. Returns the record number after the entry.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Spool::append`]. After an error, `next` returns no part of the chunk.
    pub fn append(&mut self, entry: &[u8], records: u32) -> Result<u64, SpoolError> {
        let part_bytes = self.spool.max_payload_bytes();
        let parts = entry.len().div_ceil(part_bytes);
        for (index, payload) in entry.chunks(part_bytes).enumerate() {
            let codec = codec(index, parts);
            let count = if index == 0 { records.max(1) } else { 1 };
            self.spool.append(&Batch { first: self.spool.next(), count, codec, payload })?;
        }
        Ok(self.spool.next())
    }

    /// Makes the appended entries durable.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Spool::sync`].
    pub fn sync(&mut self) -> Result<(), SpoolError> {
        self.spool.sync().map(|_| ())
    }

    /// Makes `next` skip all chunks up to record number `end`.
    pub fn pass(&mut self, end: u64) {
        self.passed = self.passed.max(end);
    }

    /// Returns the oldest chunk that was neither returned nor skipped yet.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Spool::read`].
    pub fn next(&mut self) -> Result<BacklogRead, SpoolError> {
        loop {
            let frame = match self.spool.read(CONSUMER)? {
                None => return Ok(BacklogRead::Nothing),
                Some(Item::Gap { .. }) => {
                    self.joiner = Joiner::default();
                    continue;
                }
                Some(Item::Frame(frame)) => frame,
            };
            let (end, whole) = (frame.end(), self.joiner.join(frame.codec, frame.payload));
            // Checksums prove that a frame is as it was appended. A chunk that lost a part is skipped.
            if let Some(chunk) = whole.filter(|_| end > self.passed).and_then(|entry| Chunk::decode(&entry)) {
                self.pass(end);
                return Ok(BacklogRead::Chunk(chunk, end));
            }
        }
    }

    /// Notes that all chunks up to record number `end` are written to the sink.
    ///
    /// # Errors
    ///
    /// Returns an error only for an unknown consumer, which cannot happen here.
    pub fn ack(&mut self, end: u64) -> Result<(), SpoolError> {
        if end > self.acked {
            self.acked = end;
            self.is_unsaved = true;
            self.spool.ack(CONSUMER, end)?;
        }
        Ok(())
    }

    /// Makes the acks durable and frees files that are no longer needed.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Spool::checkpoint`].
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        if self.is_unsaved {
            self.spool.checkpoint()?;
            self.is_unsaved = false;
        }
        Ok(())
    }

    /// Number of bytes of the spool's files.
    pub fn bytes(&self) -> u64 {
        self.spool.bytes()
    }

    /// Closes the spool and removes its files.
    pub fn remove(self) {
        let Self { spool, path, .. } = self;
        drop(spool);
        // After an error some files stay. The next start finds them, and sees that their records are written.
        let _ = std::fs::remove_dir_all(path);
    }
}
