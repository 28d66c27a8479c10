//! The seam between the line and the world: a sink takes finished lines.
//!
//! Stop on the line: *writer (sink)*. A sink is driven by one writer thread of its own, so it may block.
//! Its author writes `open` (see `sinks/mod.rs`) and [`Sink::write`]; queueing, overflow, retries,
//! accounting and barriers are the writer's business. Where the other side confirms what it got, the sink is a
//! [`Courier`] besides.

use std::io;
use std::time::{Duration, Instant};

use crate::sidecar::SharedFile;

/// Where one record ends inside a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Mark {
    /// Bytes of the chunk up to and including this record.
    pub end: u32,
    /// Level of the record.
    pub level: u16,
    /// Class of the level, see `segment::layout::level_class`.
    pub class: u16,
    /// Time of the record, seconds since the epoch.
    pub seconds: i64,
}

/// Finished lines of one batch for one sink.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The bytes not yet written.
    pub bytes: &'a [u8],
    /// The records that end in `bytes`; `end` counts from the start of the chunk.
    pub marks: &'a [Mark],
    /// Bytes of the chunk before `bytes`.
    pub before: usize,
}

impl Lines<'_> {
    /// How many of the first `part` bytes make one piece: whole records up to `most` bytes, or one that is longer.
    pub fn piece(&self, part: usize, most: usize) -> usize {
        if part <= most {
            return part;
        }
        let fitting = self.marks.partition_point(|mark| mark.end as usize - self.before <= most);
        let last = fitting.saturating_sub(1);
        self.marks.get(last).map_or(part, |mark| mark.end as usize - self.before).clamp(1, part)
    }

    /// What goes into a pipe in one write: whole records, which nobody else's come between. One that is longer than a
    /// pipe takes in one go is cut.
    pub fn for_pipe(&self) -> &[u8] {
        &self.bytes[..self.piece(self.bytes.len(), libc::PIPE_BUF).min(libc::PIPE_BUF)]
    }
}

/// What to do about a failed write.
#[derive(Debug)]
pub enum SinkError {
    /// The same bytes again later: no room, a device that answers with an error, a reader that is slow.
    Retry(io::Error),
    /// These bytes never; the next ones may do.
    Reject(io::Error),
    /// Nothing will ever be written here again.
    Fatal(io::Error),
}

impl SinkError {
    /// Sorts an error of write(2) and its kin.
    pub fn from_write(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPIPE | libc::ECONNRESET | libc::EBADF | libc::EINVAL | libc::ENXIO) => Self::Fatal(error),
            _ => Self::Retry(error),
        }
    }

    /// The error alone.
    pub fn into_io_error(self) -> io::Error {
        match self {
            Self::Retry(error) | Self::Reject(error) | Self::Fatal(error) => error,
        }
    }

    /// The error itself.
    pub fn io_error(&self) -> &io::Error {
        match self {
            Self::Retry(error) | Self::Reject(error) | Self::Fatal(error) => error,
        }
    }
}

/// A sync that failed: nobody knows what of it is on the disk.
#[derive(Debug)]
pub struct SyncError {
    /// When a system call fails.
    pub error: io::Error,
    /// Whether no later sync can make it good: the sink has not kept, or not all of it, what it would write again.
    pub is_final: bool,
}

impl From<SyncError> for io::Error {
    fn from(failed: SyncError) -> Self {
        failed.error
    }
}

/// A destination of finished lines.
///
/// Contract: called from one thread at a time; may block; writes in order; returns how many bytes the
/// destination took, at least one; what it returns is written, what it does not return is not.
pub trait Sink: Send {
    /// Writes a leading part of `lines`, as much as is sensible in one go.
    ///
    /// # Errors
    ///
    /// A [`SinkError`] that says what to do; nothing of `lines` was taken then.
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError>;

    /// Makes durable what `write` returned, all of it, also in files that the sink has left since.
    ///
    /// What has no disk behind it is durable when it is written.
    ///
    /// # Errors
    ///
    /// A [`SyncError`]. The sink has tried what can be tried now, and goes on.
    fn sync(&mut self) -> Result<(), SyncError> {
        Ok(())
    }

    /// `sync` will be called now and again: the sink keeps from here on what it needs to make good a failed one.
    fn keep_unsynced(&mut self) {}

    /// Nothing was queued for a while: lets go of what the program itself has let go of. Returns whether to ask again.
    /// Asked of sinks whose definition [is lent](logspool_record::definition::SinkDefinition::is_lent).
    fn rest(&mut self) -> bool {
        false
    }

    /// How often the sink has gone over to another file.
    fn turns(&self) -> u64 {
        0
    }

    /// What went wrong beside the writing since it was last asked: the records are not concerned.
    fn trouble(&mut self) -> Option<io::Error> {
        None
    }

    /// The log file of a sink that other processes may append to as well, so that the writer can tell what was noted.
    fn shared(&mut self) -> Option<&mut SharedFile> {
        None
    }

    /// Itself, where its destination says only later what has arrived; the writer does not call `write` then.
    fn courier(&mut self) -> Option<&mut dyn Courier> {
        None
    }
}

/// A sink that has several batches on their way: what it took stays queued until it has arrived.
///
/// Contract: called from one thread at a time. Batches arrive in the order in which they were taken, and each is kept,
/// whatever happens to the way, until then.
pub trait Courier: Send {
    /// How its records are told apart on the other side, where they are numbered: from 1, each by one more.
    fn stream(&self) -> Option<Stream> {
        None
    }

    /// Whether it can take another batch.
    fn has_room(&self) -> bool;

    /// Takes a whole batch.
    fn take(&mut self, lines: Lines<'_>);

    /// Does what can be done now without waiting, but for opening the way.
    fn carry(&mut self, pace: Pace) -> Carried;

    /// Waits for the other side, at most for `longest`. Called after [`Next::Answer`].
    fn wait(&self, longest: Duration);
}

/// A stream of numbered records: what one sink of one process sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Random.
    pub id: u128,
    /// Begins with the stream, and is not 0. Numbers count within it.
    pub epoch: u64,
}

/// Whether a courier may wait for more records before it sets out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It may.
    Gather,
    /// Somebody waits until everything has arrived.
    Hurry,
}

/// What a courier did.
#[derive(Debug)]
pub struct Carried {
    /// Batches that have arrived since, oldest first.
    pub arrived: usize,
    /// What went wrong, if something did.
    pub error: Option<io::Error>,
    /// When to call again.
    pub next: Next,
}

/// When a courier has something to do again, unless it is given another batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Never: it has nothing.
    Idle,
    /// Then: until then it gathers records.
    Gathers(Instant),
    /// As soon as the other side answers, or takes more.
    Answer,
    /// Then: the other side is not there, and the next try is due.
    Away(Instant),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(ends: &[u32]) -> Vec<Mark> {
        ends.iter().map(|end| Mark { end: *end, level: 0, class: 0, seconds: 0 }).collect()
    }

    #[test]
    fn a_piece_is_whole_records_or_one_that_is_longer() {
        let piece = |ends: &[u32], part: usize| {
            let bytes = vec![b'x'; *ends.last().unwrap() as usize - 1000];
            Lines { bytes: &bytes, marks: &marks(ends), before: 1000 }.piece(part, 200_000)
        };
        let (small, large) = (1000 + 100_000, 1000 + 300_000);

        assert_eq!(100_000, piece(&[small, large], 100_000));
        assert_eq!(100_000, piece(&[small, large], 300_000));
        assert_eq!(300_000, piece(&[large, large + 5], 300_005));
    }
}
