//! Reads the records of a message one by one. Reading can pause after any record. So the caller needs memory for a part
//! of the records only.

use super::entry::Entry;
use super::inflating::Inflating;
use super::msgpack::Reader;
use super::{ChunkId, Entries, ForwardError, ForwardProblem, Message};
use crate::batch::ROW_BYTES;
use crate::decoders::density::is_too_dense;
use crate::record::Record;

/// Whether the caller wants another record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read the next record.
    More,
    /// Pause: [`Records::read`] returns. The next call continues with the next record.
    Pause,
}

/// Reason why [`Records::read`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The caller asked for a pause.
    Paused,
    /// There are no more records.
    Done,
}

/// Reads the records of a message. After an error it returns no more records.
#[derive(Debug)]
pub struct Records<'a> {
    source: Source<'a>,
    entry: Entry<'a>,
    count: Count,
}

#[derive(Debug)]
enum Source<'a> {
    /// Entries in the message, from this position on.
    Plain(Reader<'a>, usize),
    Gzip(Box<Inflating<'a>>),
}

/// Number of entries read, and limits of the rest.
#[derive(Debug)]
struct Count {
    /// Entries left; `None`: until the end of the bytes.
    left: Option<u32>,
    read: usize,
    /// Number of entries to skip.
    skip: usize,
    /// Bytes of rows and tags that the records may still take.
    budget: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(message: &'a Message<'_>, buffer: &'a mut Vec<u8>, most_buffer: usize, skip: usize) -> Self {
        let limits = &message.limits;
        let plain = |reader: Reader<'a>| Source::Plain(reader, reader.at());
        let (source, left) = match message.entries {
            Entries::Bare(reader) => (plain(reader), Some(1)),
            Entries::List(reader, count) => (plain(reader), Some(count)),
            Entries::Packed(bytes) => (plain(Reader::new(bytes)), None),
            Entries::Gzip(bytes) => {
                (Source::Gzip(Box::new(Inflating::new(bytes, buffer, most_buffer, limits.expanded))), None)
            }
        };
        let entry = Entry {
            is_bare: matches!(message.entries, Entries::Bare(_)),
            // The tag of our own client has no meaning.
            keeps_tag: message.chunk.as_deref().and_then(ChunkId::parse).is_none(),
            tag: &message.tag,
            items: limits.items,
        };
        Self { source, entry, count: Count { left, read: 0, skip, budget: limits.repeated } }
    }

    /// Calls `each` with records until it asks for a pause or there are no more.
    ///
    /// # Errors
    ///
    /// An entry cannot be read. `each` was called with all records before it.
    pub fn read(&mut self, mut each: impl FnMut(&Record<'_>) -> Next) -> Result<Progress, ForwardError> {
        let Self { source, entry, count } = self;
        let read = match source {
            Source::Plain(reader, begin) => {
                let passed = 0_usize.wrapping_sub(*begin);
                let read = read(reader, passed, entry, count, &mut each);
                read.map_err(|(problem, at)| problem.at(at))
            }
            Source::Gzip(inflating) => read_compressed(inflating, entry, count, &mut each),
        };
        if read.is_err() {
            count.left = Some(0);
        }
        read
    }
}

fn read_compressed(
    inflating: &mut Inflating<'_>,
    entry: &Entry<'_>,
    count: &mut Count,
    each: &mut impl FnMut(&Record<'_>) -> Next,
) -> Result<Progress, ForwardError> {
    loop {
        if count.left == Some(0) {
            return Ok(Progress::Done);
        }
        let passed = inflating.passed();
        let mut reader = Reader::new(inflating.bytes());
        let read = read(&mut reader, passed, entry, count, each);
        let taken = reader.at();
        inflating.advance(taken);
        let has_more = !inflating.has_ended();
        match read {
            Ok(Progress::Paused) => return Ok(Progress::Paused),
            // The rest of the entry may not be decompressed yet.
            Ok(Progress::Done) | Err((ForwardProblem::Truncated, _)) if has_more => {
                inflating.fill().map_err(|problem| problem.at(inflating.passed()))?;
            }
            Ok(Progress::Done) => return Ok(Progress::Done),
            Err((problem, at)) => return Err(problem.at(passed + at)),
        }
    }
}

/// Reads entries up to the end of the bytes. On an error the reader stays at the start of the entry, and the position
/// of the problem is returned. `passed` is the number of bytes of entries before the reader's first byte.
fn read<'a>(
    reader: &mut Reader<'a>,
    passed: usize,
    entry: &Entry<'a>,
    count: &mut Count,
    each: &mut impl FnMut(&Record<'_>) -> Next,
) -> Result<Progress, (ForwardProblem, usize)> {
    loop {
        match &mut count.left {
            Some(0) => return Ok(Progress::Done),
            None if reader.is_at_end() => return Ok(Progress::Done),
            _ => {}
        }
        let begin = *reader;
        let read = entry.read(reader).and_then(|(record, tag_bytes)| {
            count.add(passed.wrapping_add(reader.at()), tag_bytes)?;
            Ok(record)
        });
        match read {
            Ok(_) if count.read <= count.skip => {}
            Ok(record) if each(&record) == Next::Pause => return Ok(Progress::Paused),
            Ok(_) => {}
            Err(problem) => {
                let at = reader.at();
                *reader = begin;
                return Err((problem, at));
            }
        }
    }
}

impl Count {
    /// Counts an entry. `bytes` is the position of its end in the bytes of all entries.
    fn add(&mut self, bytes: usize, tag_bytes: usize) -> Result<(), ForwardProblem> {
        self.budget = self.budget.checked_sub(ROW_BYTES + tag_bytes).ok_or(ForwardProblem::TooLarge)?;
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
