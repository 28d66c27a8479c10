//! An orphan that this process has claimed: its lock, its fencing token, and the notes on delivered records.
//!
//! The lock excludes other processes; the threads of this process share it (`work.rs`). POSIX drops the lock when any
//! code in this process closes another descriptor of the lock file. Therefore each delivering step also compares the
//! segment's fencing token. If a later claimer has changed the token, this recovery stops.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use logspool_lanes::segment::layout::{BatchNumber, Header, NO_BATCH, SinkHead, sink_offset};
use logspool_spool::pointer;
use logspool_sys::folder::Folder;
use logspool_sys::kept::KeptDescriptor;
use logspool_sys::platform::random;

use super::leftover::Leftover;
use super::work::Work;

/// An orphan that this process has claimed. The module documentation describes its lock and its token.
#[derive(Debug)]
pub struct Claim<'a> {
    folder: &'a Folder,
    /// Files of the orphan, listed after the lock was taken.
    pub leftover: Leftover,
    segment: Option<KeptDescriptor<File>>,
    fencing_token: u64,
    work: Work,
}

impl<'a> Claim<'a> {
    /// Takes the lock of a dead process, or joins the threads of this process that hold it. Returns `None` if another
    /// process holds the lock, or if a thread of this process is removing the files.
    ///
    /// # Errors
    ///
    /// Returns an error if the lock cannot be taken or the segment cannot be opened.
    pub fn take(folder: &'a Folder, leftover: &Leftover) -> io::Result<Option<Self>> {
        let Some(work) = Work::join(folder, &leftover.name, Some(&leftover.lock_name()))? else { return Ok(None) };
        // Another recoverer may have changed the files since they were listed.
        let leftover = Leftover::find(folder, &leftover.name)?;
        let segment = if leftover.segment {
            Some(KeptDescriptor::new(folder.open_file(&leftover.segment_name())?))
        } else {
            None
        };
        Ok(Some(Self { folder, leftover, segment, fencing_token: 0, work }))
    }

    /// The segment, if there is one.
    ///
    /// # Errors
    ///
    /// EBADF if the program has closed the segment's descriptor. The next recovery opens it again.
    pub fn segment(&self) -> io::Result<Option<&File>> {
        self.segment.as_ref().map(KeptDescriptor::get).transpose()
    }

    fn word(&self, offset: usize) -> io::Result<u64> {
        let Some(segment) = self.segment()? else { return Ok(0) };
        let mut bytes = [0; 8];
        segment.read_exact_at(&mut bytes, offset as u64)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn set_word(&self, offset: u64, word: u64) -> io::Result<()> {
        match self.segment()? {
            Some(segment) => segment.write_all_at(&word.to_ne_bytes(), offset),
            None => Ok(()),
        }
    }

    /// Stores `word` at `offset` of the segment, if the word there is lower.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn raise(&self, offset: u64, word: u64) -> io::Result<()> {
        if self.word(offset as usize)? < word { self.set_word(offset, word) } else { Ok(()) }
    }

    /// Runs `work` while no other thread of this process works on the orphan, see [`Work::alone`].
    pub fn alone<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        self.work.alone(work)
    }

    /// Takes a new fencing token, which all threads of this process that work on the orphan share. Call it before
    /// reading data that is delivered later.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn begin(&mut self) -> io::Result<()> {
        self.fencing_token = self.work.fencing_token(|| {
            let random = random::<8>().unwrap_or_default();
            // The new token differs from the stored one, even if the kernel has no random bytes yet.
            let before = self.word(offset_of!(Header, recoverer))?;
            let fencing_token = (u64::from_ne_bytes(random) ^ before.wrapping_add(1)).max(1);
            self.set_word(offset_of!(Header, recoverer) as u64, fencing_token)?;
            Ok(fencing_token)
        })?;
        Ok(())
    }

    /// Takes a sink for this thread. Returns whether it was taken, see [`Work::take_sink`].
    pub fn take_sink(&mut self, sink: usize) -> bool {
        self.work.take_sink(sink)
    }

    /// Whether another thread of this process holds a sink, see [`Work::is_taken_by_another`].
    pub fn is_taken_by_another(&self, sink: usize) -> bool {
        self.work.is_taken_by_another(sink)
    }

    /// Leaves the recovery, or keeps other threads from joining it if this thread is the last, see [`Work::close`].
    /// Call it before the files are removed.
    pub fn close_to_others(self) -> Option<Self> {
        self.with_work(Work::close)
    }

    /// Leaves the recovery. The last of several threads gets the claim back, see [`Work::finish`].
    pub fn leave(self) -> Option<Self> {
        self.with_work(Work::finish)
    }

    fn with_work(self, end: impl FnOnce(Work) -> Option<Work>) -> Option<Self> {
        let Self { folder, leftover, segment, fencing_token, work } = self;
        end(work).map(|work| Self { folder, leftover, segment, fencing_token, work })
    }

    /// Checks that this claim is still the newest one. Also signals progress to threads that wait for a sink.
    ///
    /// # Errors
    ///
    /// `ResourceBusy` if a newer claim has replaced the token, or the error of a failed system call.
    pub fn check(&self) -> io::Result<()> {
        self.work.step();
        // Before `begin` no record is delivered, and there may not even be a header.
        if self.fencing_token != 0 && self.word(offset_of!(Header, recoverer))? != self.fencing_token {
            return Err(io::Error::from(io::ErrorKind::ResourceBusy));
        }
        Ok(())
    }

    /// Random identity of the segment.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn uuid(&self) -> io::Result<[u8; 16]> {
        let mut uuid = [0; 16];
        if let Some(segment) = self.segment()? {
            segment.read_exact_at(&mut uuid, offset_of!(Header, uuid) as u64)?;
        }
        Ok(uuid)
    }

    /// Notes that delivery of a batch to a sink begins and that no byte of the batch is written. A kill between the two
    /// stores leaves a valid checkpoint, which claims neither more nor less than was written. The same is true for the
    /// other `note_` methods.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn note_begin(&self, sink: usize, batch: u64) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, offset) as u64, 0)?;
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, writing) as u64, batch)
    }

    /// Notes that `offset` bytes of the batch whose delivery began last are written.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn note_offset(&self, sink: usize, offset: u64) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, offset) as u64, offset)
    }

    /// Notes that a batch is completely written.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn note_batch(&self, sink: usize, batch: u64) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, batch) as u64, batch)
    }

    /// Notes that a batch is completely written and that its last record has the number `number`. Stores the words in
    /// the same order as [`SinkHead::note_arrival`].
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn note_arrival(&self, sink: usize, batch: u64, number: u64) -> io::Result<()> {
        let head = sink_offset(sink);
        let pair = |index: usize| offset_of!(SinkHead, numbered) + index * size_of::<BatchNumber>();
        let word = |offset: usize| self.word(head as usize + offset);
        let is_first = word(pair(0) + offset_of!(BatchNumber, batch))? == word(offset_of!(SinkHead, batch))?;
        let spare = head + pair(usize::from(is_first)) as u64;
        self.set_word(spare + offset_of!(BatchNumber, batch) as u64, NO_BATCH)?;
        self.set_word(spare + offset_of!(BatchNumber, number) as u64, number)?;
        self.set_word(spare + offset_of!(BatchNumber, batch) as u64, batch)?;
        self.note_batch(sink, batch)
    }

    /// Notes that a sink has no undelivered records.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn close(&self, sink: usize) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, closed) as u64, 1)
    }

    /// Adds `records` to the count of unreadable records, so that the next recovery keeps the segment too.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn note_unreadable(&self, records: u64) -> io::Result<()> {
        let offset = offset_of!(Header, unreadable);
        self.set_word(offset as u64, self.word(offset)?.saturating_add(records))
    }

    /// Removes all files of the orphan, the lock file last, and releases the lock.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails. Another call can then remove the remaining files.
    pub fn remove(self) -> io::Result<()> {
        let leftover = &self.leftover;
        for (sink, number) in &leftover.overflow {
            self.folder.remove(&leftover.overflow_name(*sink, *number))?;
        }
        for number in &leftover.blobs {
            self.folder.remove(&leftover.blob_name(*number))?;
        }
        if leftover.spool {
            pointer::remove(self.folder, &leftover.name)?;
        }
        self.folder.remove(&leftover.segment_name())?;
        self.folder.remove(&leftover.lock_name())
    }
}
