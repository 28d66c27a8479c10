//! The spool of one sink: chunks as frames, in batch order, one reader.
//!
//! A chunk is an entry as overflow files hold it (`chunk.rs`). One that is longer than a frame goes into several, and
//! each frame's codec says which part it is (`spool/parts.rs`). Numbers count records; a frame that only continues a
//! chunk counts as one.

use std::path::{Path, PathBuf};

use logspool_spool::parts::{Joiner, codec};
use logspool_spool::{Batch, Item, Options, RealDisk, Spool, SpoolError};

use crate::chunk::Chunk;

/// The writer of the sink.
const CONSUMER: u64 = 0;

/// A spool has so many segments at least, however small its room.
const SEGMENTS: u64 = 8;

/// What comes next of the backlog.
#[derive(Debug)]
pub enum Next {
    /// A chunk, and the number behind it.
    Chunk(Chunk, u64),
    /// Nothing that is not given back already.
    Nothing,
}

/// See the module documentation.
#[derive(Debug)]
pub struct SinkSpool {
    spool: Spool<RealDisk>,
    path: PathBuf,
    /// What ends here or before is not given back: the writer has it in its hands, or had it.
    passed: u64,
    acked: u64,
    /// Acks that no checkpoint has made durable.
    is_unsaved: bool,
    joiner: Joiner,
}

impl SinkSpool {
    /// Begins a spool in a folder of its own; what it holds takes `max_bytes` at most.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made or is not ours alone.
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, SpoolError> {
        let segment_bytes = Options::default().segment_bytes.min(max_bytes / SEGMENTS);
        let options = Options { segment_bytes, max_bytes, ..Options::default() };
        let mut spool = Spool::open(vec![RealDisk::open(path)?], options)?;
        spool.add_consumer(CONSUMER)?;
        let (passed, acked) = (spool.next(), spool.next());
        Ok(Self { spool, path: path.to_owned(), passed, acked, is_unsaved: false, joiner: Joiner::default() })
    }

    /// Opens what a process left, to read all that it had not acked.
    ///
    /// # Errors
    ///
    /// As for [`SinkSpool::open`]; `WouldBlock` within when it is in use.
    pub fn open_left(path: &Path) -> Result<Self, SpoolError> {
        // Nothing is added, so any sizes do.
        let mut spool = Spool::open(vec![RealDisk::open(path)?], Options::default())?;
        let acked = spool.add_consumer(CONSUMER)?;
        let joiner = Joiner::default();
        Ok(Self { spool, path: path.to_owned(), passed: acked, acked, is_unsaved: false, joiner })
    }

    /// Adds an entry, a chunk of so many records, and returns the number behind it.
    ///
    /// # Errors
    ///
    /// See [`Spool::append`]; nothing of the chunk is given back then.
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

    /// Makes durable what was appended.
    ///
    /// # Errors
    ///
    /// See [`Spool::sync`].
    pub fn sync(&mut self) -> Result<(), SpoolError> {
        self.spool.sync().map(|_| ())
    }

    /// Notes that nobody wants back what ends at this number or before.
    pub fn pass(&mut self, end: u64) {
        self.passed = self.passed.max(end);
    }

    /// Gives back the oldest chunk that was not passed.
    ///
    /// # Errors
    ///
    /// See [`Spool::read`].
    pub fn next(&mut self) -> Result<Next, SpoolError> {
        loop {
            let frame = match self.spool.read(CONSUMER)? {
                None => return Ok(Next::Nothing),
                Some(Item::Gap { .. }) => {
                    self.joiner = Joiner::default();
                    continue;
                }
                Some(Item::Frame(frame)) => frame,
            };
            let (end, whole) = (frame.end(), self.joiner.join(frame.codec, frame.payload));
            // What checksums confirm is what was appended; a chunk that lost a part is none.
            if let Some(chunk) = whole.filter(|_| end > self.passed).and_then(|entry| Chunk::decode(&entry)) {
                self.pass(end);
                return Ok(Next::Chunk(chunk, end));
            }
        }
    }

    /// Notes that what ends here or before is written.
    ///
    /// # Errors
    ///
    /// None but for a reader that is not there, which this one is.
    pub fn ack(&mut self, end: u64) -> Result<(), SpoolError> {
        if end > self.acked {
            self.acked = end;
            self.is_unsaved = true;
            self.spool.ack(CONSUMER, end)?;
        }
        Ok(())
    }

    /// Makes acks durable and files free.
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

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.spool.bytes()
    }

    /// Ends it and removes its files.
    pub fn remove(self) {
        let Self { spool, path, .. } = self;
        drop(spool);
        // What stays is found by the next start, which sees that it is written.
        let _ = std::fs::remove_dir_all(path);
    }
}
