//! The spool of one sink: chunks as frames, in batch order, with one reader.
//!
//! A chunk is stored as an entry, as in overflow files (`chunk.rs`). An entry longer than a frame is split into
//! several, and the codec of each frame says which part it is (`spool/parts.rs`). Numbers count records; a frame that
//! continues a chunk counts as one record.

use std::path::{Path, PathBuf};

use logspool_spool::parts::{Joiner, codec};
use logspool_spool::{Batch, Item, Options, RealDisk, Spool, SpoolError};

use crate::chunk::Chunk;

/// Consumer id of the sink's writer.
const CONSUMER: u64 = 0;

/// Least number of segments of a spool, however small its size limit.
const SEGMENTS: u64 = 8;

/// Result of reading the backlog.
#[derive(Debug)]
pub enum BacklogRead {
    /// A chunk, and the number after it.
    Chunk(Chunk, u64),
    /// All chunks were returned already.
    Nothing,
}

/// See the module documentation.
#[derive(Debug)]
pub struct SinkSpool {
    spool: Spool<RealDisk>,
    path: PathBuf,
    /// Number up to which chunks are not returned: the writer holds them or has written them.
    passed: u64,
    acked: u64,
    /// Whether there are acks that no checkpoint has made durable.
    is_unsaved: bool,
    joiner: Joiner,
}

impl SinkSpool {
    /// Opens a spool in its own folder, with files of `max_bytes` at most.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made or is accessible to others.
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
    /// As for [`SinkSpool::open`]; the error wraps `WouldBlock` if the spool is in use.
    pub fn open_left(path: &Path) -> Result<Self, SpoolError> {
        // Nothing is appended, so the sizes do not matter.
        let mut spool = Spool::open(vec![RealDisk::open(path)?], Options::default())?;
        let acked = spool.add_consumer(CONSUMER)?;
        let joiner = Joiner::default();
        Ok(Self { spool, path: path.to_owned(), passed: acked, acked, is_unsaved: false, joiner })
    }

    /// Appends an entry of `records` records, and returns the number after it.
    ///
    /// # Errors
    ///
    /// See [`Spool::append`]. After an error no part of the chunk is returned by `next`.
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
    /// See [`Spool::sync`].
    pub fn sync(&mut self) -> Result<(), SpoolError> {
        self.spool.sync().map(|_| ())
    }

    /// Makes `next` skip all chunks up to number `end`.
    pub fn pass(&mut self, end: u64) {
        self.passed = self.passed.max(end);
    }

    /// Returns the oldest chunk that was not passed.
    ///
    /// # Errors
    ///
    /// See [`Spool::read`].
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
            // Checksums confirm that a frame is as it was appended. A chunk that lost a part is skipped.
            if let Some(chunk) = whole.filter(|_| end > self.passed).and_then(|entry| Chunk::decode(&entry)) {
                self.pass(end);
                return Ok(BacklogRead::Chunk(chunk, end));
            }
        }
    }

    /// Notes that all chunks up to number `end` are written.
    ///
    /// # Errors
    ///
    /// Only for an unknown consumer, which cannot happen here.
    pub fn ack(&mut self, end: u64) -> Result<(), SpoolError> {
        if end > self.acked {
            self.acked = end;
            self.is_unsaved = true;
            self.spool.ack(CONSUMER, end)?;
        }
        Ok(())
    }

    /// Makes the acks durable and frees files.
    ///
    /// # Errors
    ///
    /// See [`Spool::checkpoint`].
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        if self.is_unsaved {
            self.spool.checkpoint()?;
            self.is_unsaved = false;
        }
        Ok(())
    }

    /// Bytes of the spool's files.
    pub fn bytes(&self) -> u64 {
        self.spool.bytes()
    }

    /// Closes the spool and removes its files.
    pub fn remove(self) {
        let Self { spool, path, .. } = self;
        drop(spool);
        // The next start finds files that stay, and sees that their records are written.
        let _ = std::fs::remove_dir_all(path);
    }
}
