//! Reads the records of a message one by one. Reading can pause after any record. So the caller needs memory only for
//! some of the records.

use super::damage::{DamagedEntry, EntrySearch};
use super::entry::{Entry, EntryReader};
use super::group::Group;
use super::inflater::EntryInflater;
use super::msgpack::TokenReader;
use super::{ChunkId, EntryBytes, ForwardError, ForwardProblem, Message};
use crate::decoders::density::is_too_dense;
use crate::record::Record;

/// Whether the caller wants another record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFlow {
    /// Read the next record.
    Continue,
    /// Pause: [`Records::read`] returns. The next call continues with the next record.
    Pause,
}

/// Reason why [`Records::read`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadProgress {
    /// The caller asked for a pause.
    Paused,
    /// An entry could not be read. [`Records::damaged`] has it; the next call continues after it.
    Damaged,
    /// There are no more records.
    Done,
}

/// Reads the records of a message. After an error it returns no more records.
#[derive(Debug)]
pub struct Records<'a> {
    source: EntrySource<'a>,
    entry: EntryReader<'a>,
    count: EntryCount,
    /// The group of the next records.
    group: Option<Group>,
    search: Option<EntrySearch>,
    damaged: Option<DamagedEntry>,
}

#[derive(Debug)]
enum EntrySource<'a> {
    /// Uncompressed entries. The number is the position of the first one.
    Plain(TokenReader<'a>, usize),
    Compressed(Box<EntryInflater<'a>>),
}

/// Number of entries read, and limits for the entries that follow.
#[derive(Debug)]
struct EntryCount {
    /// Number of entries left. `None`: read entries until the end of the bytes.
    left: Option<u32>,
    read: usize,
    /// Number of entries to skip.
    skip: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(message: &'a Message<'_>, buffer: &'a mut Vec<u8>, most_buffer: usize, skip: usize) -> Self {
        let limits = &message.limits;
        let plain = |reader: TokenReader<'a>| EntrySource::Plain(reader, reader.at());
        let (source, left) = match message.entries {
            EntryBytes::Bare(reader) => (plain(reader), Some(1)),
            EntryBytes::List(reader, count) => (plain(reader), Some(count)),
            EntryBytes::Packed(bytes) => (plain(TokenReader::new(bytes)), None),
            EntryBytes::Compressed(compression, bytes) => {
                let inflater = EntryInflater::new(compression, bytes, buffer, most_buffer);
                (EntrySource::Compressed(Box::new(inflater)), None)
            }
        };
        let entry = EntryReader {
            is_bare: matches!(message.entries, EntryBytes::Bare(_)),
            // The tag that our own client sends has no meaning.
            keeps_tag: message.chunk.as_deref().and_then(ChunkId::parse).is_none(),
            tag: &message.tag,
            items: limits.items,
        };
        let search = EntrySearch::new(&entry);
        Self { source, entry, count: EntryCount { left, read: 0, skip }, group: None, search, damaged: None }
    }

    /// The entry that could not be read, after [`ReadProgress::Damaged`].
    pub fn damaged(&mut self) -> Option<DamagedEntry> {
        self.damaged.take()
    }

    /// Calls `each` with records until it asks for a pause or there are no more.
    ///
    /// # Errors
    ///
    /// An entry cannot be read. `each` was called with all records before it.
    pub fn read(&mut self, mut each: impl FnMut(&Record<'_>) -> RecordFlow) -> Result<ReadProgress, ForwardError> {
        let Self { source, entry, count, group, .. } = self;
        let mut each = |read: Entry<'_>, is_skipped: bool| match read {
            Entry::Record(_) if is_skipped => RecordFlow::Continue,
            Entry::Record(mut record) => {
                let group = group.as_ref();
                if let Some(group) = group {
                    group.add_to(&mut record);
                }
                each(&record)
            }
            Entry::GroupStart(begun) => {
                *group = Some(begun);
                RecordFlow::Continue
            }
            Entry::GroupEnd => {
                *group = None;
                RecordFlow::Continue
            }
        };
        let read = match source {
            EntrySource::Plain(reader, begin) => {
                let passed = 0_usize.wrapping_sub(*begin);
                let read = read(reader, passed, entry, count, &mut each);
                read.map_err(|(problem, at)| problem.at(at))
            }
            EntrySource::Compressed(inflating) => read_compressed(inflating, entry, count, &mut each),
        };
        let read = read.or_else(|error| self.pass_damage(error));
        if read.is_err() {
            self.count.left = Some(0);
        }
        read
    }

    /// Continues after an entry that cannot be read, if the start of the next one can be found.
    fn pass_damage(&mut self, error: ForwardError) -> Result<ReadProgress, ForwardError> {
        let is_entry = matches!(
            error.problem,
            ForwardProblem::Malformed
                | ForwardProblem::Truncated
                | ForwardProblem::Unexpected(_)
                | ForwardProblem::TooMany
        );
        let Some(search) = self.search.as_mut().filter(|_| is_entry) else { return Err(error) };
        let bytes = match &mut self.source {
            EntrySource::Plain(reader, _) => {
                let begin = *reader;
                match self.count.left {
                    // The scan of the message has found the end of each value of a list.
                    Some(_) if reader.skip(1).is_ok() => reader.since(begin.at()).to_vec(),
                    Some(_) => return Err(error),
                    None => {
                        let rest = begin.rest();
                        let Some(length) = search.next(rest, &self.entry) else { return Err(error) };
                        reader.advance(length);
                        rest[..length].to_vec()
                    }
                }
            }
            EntrySource::Compressed(inflating) => loop {
                if let Some(length) = search.next(inflating.bytes(), &self.entry) {
                    let bytes = inflating.bytes()[..length].to_vec();
                    inflating.advance(length);
                    break bytes;
                }
                if inflating.has_ended() || inflating.fill().is_err() {
                    return Err(error);
                }
            },
        };
        self.count.read += 1;
        if let Some(left) = &mut self.count.left {
            *left -= 1;
        }
        // An earlier reading has handed over the entry.
        if self.count.read > self.count.skip {
            self.damaged = Some(DamagedEntry { bytes, error });
        }
        Ok(ReadProgress::Damaged)
    }
}

fn read_compressed(
    inflating: &mut EntryInflater<'_>,
    entry: &EntryReader<'_>,
    count: &mut EntryCount,
    each: &mut impl FnMut(Entry<'_>, bool) -> RecordFlow,
) -> Result<ReadProgress, ForwardError> {
    loop {
        if count.left == Some(0) {
            return Ok(ReadProgress::Done);
        }
        let passed = inflating.passed();
        let mut reader = TokenReader::new(inflating.bytes());
        let read = read(&mut reader, passed, entry, count, each);
        let taken = reader.at();
        inflating.advance(taken);
        let has_more = !inflating.has_ended();
        match read {
            Ok(read @ (ReadProgress::Paused | ReadProgress::Damaged)) => return Ok(read),
            // The end of the entry may not be decompressed yet.
            Ok(ReadProgress::Done) | Err((ForwardProblem::Truncated, _)) if has_more => {
                inflating.fill().map_err(|problem| problem.at(inflating.passed()))?;
            }
            Ok(ReadProgress::Done) => return Ok(ReadProgress::Done),
            Err((problem, at)) => return Err(problem.at(passed + at)),
        }
    }
}

/// Reads entries up to the end of the bytes. On an error the reader stays at the start of the entry, and the position
/// of the problem is returned. `passed` is the number of bytes of entries before the reader's first byte.
fn read<'a>(
    reader: &mut TokenReader<'a>,
    passed: usize,
    entry: &EntryReader<'a>,
    count: &mut EntryCount,
    each: &mut impl FnMut(Entry<'_>, bool) -> RecordFlow,
) -> Result<ReadProgress, (ForwardProblem, usize)> {
    loop {
        match &mut count.left {
            Some(0) => return Ok(ReadProgress::Done),
            None if reader.is_at_end() => return Ok(ReadProgress::Done),
            _ => {}
        }
        let begin = *reader;
        let read = entry.read(reader).and_then(|record| {
            count.add(passed.wrapping_add(reader.at()))?;
            Ok(record)
        });
        match read {
            Ok(record) => {
                if each(record, count.read <= count.skip) == RecordFlow::Pause {
                    return Ok(ReadProgress::Paused);
                }
            }
            Err(problem) => {
                let at = reader.at();
                *reader = begin;
                return Err((problem, at));
            }
        }
    }
}

impl EntryCount {
    /// Counts an entry. `bytes` is the position of its end in the bytes of all entries.
    fn add(&mut self, bytes: usize) -> Result<(), ForwardProblem> {
        self.read += 1;
        if is_too_dense(self.read, bytes) {
            return Err(ForwardProblem::TooDense(self.read, bytes));
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        Ok(())
    }
}
