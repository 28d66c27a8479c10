//! An orphan in this process's hands: its lock, its generation, and the notes that say what is delivered.
//!
//! The lock keeps other processes away; other threads of this one share it (`work.rs`). It is lost when anything in this
//! process closes another descriptor of the lock file, so each delivering step also compares the segment's generation:
//! who claims an orphan after us has changed it, and we stop.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use logspool_lanes::segment::layout::{Header, NO_BATCH, Numbered, SinkHead, sink_offset};
use logspool_spool::pointer;
use logspool_sys::folder::Folder;

use super::leftover::Leftover;
use super::work::Work;

/// See the file head.
#[derive(Debug)]
pub struct Claim<'a> {
    folder: &'a Folder,
    /// Its files, as they are under the lock.
    pub leftover: Leftover,
    segment: Option<File>,
    generation: u64,
    work: Work,
}

impl<'a> Claim<'a> {
    /// Takes the lock of a dead process, or a share in it. `None`: another process has it, or a thread of this one removes
    /// its files.
    ///
    /// # Errors
    ///
    /// What the system said about the lock or the segment.
    pub fn take(folder: &'a Folder, leftover: &Leftover) -> io::Result<Option<Self>> {
        let Some(work) = Work::join(folder, &leftover.name, Some(&leftover.lock_name()))? else { return Ok(None) };
        // Another recoverer may have been at work since the files were listed.
        let leftover = Leftover::find(folder, &leftover.name)?;
        let segment = if leftover.segment { Some(folder.open_file(&leftover.segment_name())?) } else { None };
        Ok(Some(Self { folder, leftover, segment, generation: 0, work }))
    }

    /// The segment, if there is one.
    pub fn segment(&self) -> Option<&File> {
        self.segment.as_ref()
    }

    fn word(&self, offset: usize) -> io::Result<u64> {
        let Some(segment) = &self.segment else { return Ok(0) };
        let mut bytes = [0; 8];
        segment.read_exact_at(&mut bytes, offset as u64)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn set_word(&self, offset: u64, word: u64) -> io::Result<()> {
        match &self.segment {
            Some(segment) => segment.write_all_at(&word.to_ne_bytes(), offset),
            None => Ok(()),
        }
    }

    /// Sets the word at an offset of the segment, where it is lower.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn raise(&self, offset: u64, word: u64) -> io::Result<()> {
        if self.word(offset as usize)? < word { self.set_word(offset, word) } else { Ok(()) }
    }

    /// See [`Work::alone`].
    pub fn alone<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        self.work.alone(work)
    }

    /// Begins a generation of its own, one for all who share it. Call before anything is read that is delivered later.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn begin(&mut self) -> io::Result<()> {
        self.generation = self.work.generation(|| {
            let mut random = [0_u8; 8];
            // SAFETY: a valid place for eight bytes; so few are never cut short.
            unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
            // Never the one that is there, also where the kernel has no random bytes yet.
            let before = self.word(offset_of!(Header, recoverer))?;
            let generation = (u64::from_ne_bytes(random) ^ before.wrapping_add(1)).max(1);
            self.set_word(offset_of!(Header, recoverer) as u64, generation)?;
            Ok(generation)
        })?;
        Ok(())
    }

    /// See [`Work::take_sink`].
    pub fn take_sink(&mut self, sink: usize) -> bool {
        self.work.take_sink(sink)
    }

    /// See [`Work::is_taken_by_another`].
    pub fn is_taken_by_another(&self, sink: usize) -> bool {
        self.work.is_taken_by_another(sink)
    }

    /// See [`Work::close`]. To be asked before the files are removed.
    pub fn close_to_others(self) -> Option<Self> {
        self.with_work(Work::close)
    }

    /// See [`Work::leave`].
    pub fn leave(self) -> Option<Self> {
        self.with_work(Work::leave)
    }

    fn with_work(self, end: impl FnOnce(Work) -> Option<Work>) -> Option<Self> {
        let Self { folder, leftover, segment, generation, work } = self;
        end(work).map(|work| Self { folder, leftover, segment, generation, work })
    }

    /// Whether this is still the newest generation. Also shows those who wait for a sink that it comes further.
    ///
    /// # Errors
    ///
    /// `ResourceBusy` when it is not; what the system said.
    pub fn check(&self) -> io::Result<()> {
        self.work.step();
        // Before `begin` nothing is delivered, and there may not even be a header.
        if self.generation != 0 && self.word(offset_of!(Header, recoverer))? != self.generation {
            return Err(io::Error::from(io::ErrorKind::ResourceBusy));
        }
        Ok(())
    }

    /// Random identity of the segment.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn uuid(&self) -> io::Result<[u8; 16]> {
        let mut uuid = [0; 16];
        if let Some(segment) = &self.segment {
            segment.read_exact_at(&mut uuid, offset_of!(Header, uuid) as u64)?;
        }
        Ok(uuid)
    }

    /// Notes that a batch of a sink begins: nothing of it is out. Between the words, as between all that follow, no
    /// kill makes them claim more or less than what is out.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn note_begin(&self, sink: usize, batch: u64) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, offset) as u64, 0)?;
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, writing) as u64, batch)
    }

    /// Notes that `offset` bytes of the batch that was begun last are out.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn note_offset(&self, sink: usize, offset: u64) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, offset) as u64, offset)
    }

    /// Notes that a batch is wholly out.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn note_batch(&self, sink: usize, batch: u64) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, batch) as u64, batch)
    }

    /// Notes that a batch is wholly out, the last record up to there under `number`: as [`SinkHead::note_arrival`].
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn note_arrival(&self, sink: usize, batch: u64, number: u64) -> io::Result<()> {
        let head = sink_offset(sink);
        let pair = |index: usize| offset_of!(SinkHead, numbered) + index * size_of::<Numbered>();
        let word = |offset: usize| self.word(head as usize + offset);
        let is_first = word(pair(0) + offset_of!(Numbered, batch))? == word(offset_of!(SinkHead, batch))?;
        let spare = head + pair(usize::from(is_first)) as u64;
        self.set_word(spare + offset_of!(Numbered, batch) as u64, NO_BATCH)?;
        self.set_word(spare + offset_of!(Numbered, number) as u64, number)?;
        self.set_word(spare + offset_of!(Numbered, batch) as u64, batch)?;
        self.note_batch(sink, batch)
    }

    /// Notes that nothing of a sink is left.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn close(&self, sink: usize) -> io::Result<()> {
        self.set_word(sink_offset(sink) + offset_of!(SinkHead, closed) as u64, 1)
    }

    /// Notes records that could not be read, so that the segment is kept by the next recovery too.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn note_unreadable(&self, records: u64) -> io::Result<()> {
        let offset = offset_of!(Header, unreadable);
        self.set_word(offset as u64, self.word(offset)?.saturating_add(records))
    }

    /// Removes all files, the lock last, and lets go of it.
    ///
    /// # Errors
    ///
    /// What the system said; what is left can be removed by another call.
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
