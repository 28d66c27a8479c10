//! The interface of sinks: a sink accepts finished lines.
//!
//! Pipeline stage: writer (see ARCHITECTURE.md). Each sink has its own writer thread, so it may block. The author of a
//! sink writes `open` (see `sinks.rs`) and [`Sink::write`]; the writer handles queueing, overflow, retries,
//! accounting and barriers. If the destination confirms records, the sink is also a [`Courier`].

mod shared_log;

use std::io;
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::LEVEL_CLASSES;
pub use shared_log::{Origin, SharedLog};

/// The position and data of one record in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Mark {
    /// Bytes of the chunk up to and including this record.
    pub end: u32,
    /// Level of the record.
    pub level: u16,
    /// Level class, see `segment::layout::level_class`.
    pub class: u8,
    /// The member of the sink that writes the record; see [`GroupSink`](crate::sinks::GroupSink). 0 if there is only
    /// one.
    pub member: u8,
    /// Time of the record, in seconds since the epoch.
    pub seconds: i64,
}

/// Finished lines of one batch for one sink.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The unwritten bytes.
    pub bytes: &'a [u8],
    /// The records that end in `bytes`. `end` counts from the start of the chunk.
    pub marks: &'a [Mark],
    /// Number of bytes of the chunk before `bytes`.
    pub before: usize,
}

impl Lines<'_> {
    /// How many of the first `part` bytes to write as one piece. A piece consists of whole records with at most `most`
    /// bytes in total, or of a single longer record.
    pub fn piece(&self, part: usize, most: usize) -> usize {
        if part <= most {
            return part;
        }
        let fitting = self.marks.partition_point(|mark| mark.end as usize - self.before <= most);
        let last = fitting.saturating_sub(1);
        self.marks.get(last).map_or(part, |mark| mark.end as usize - self.before).clamp(1, part)
    }

    /// The bytes for one write to a pipe: whole records of at most PIPE_BUF bytes, which other writers cannot
    /// interleave. A record longer than PIPE_BUF is cut.
    pub fn for_pipe(&self) -> &[u8] {
        &self.bytes[..self.piece(self.bytes.len(), libc::PIPE_BUF).min(libc::PIPE_BUF)]
    }
}

/// What to do after a failed write.
#[derive(Debug)]
pub enum SinkError {
    /// Write the same bytes again later. Examples: no space, a device error, a slow reader.
    Retry(io::Error),
    /// Never write these bytes; the next ones may succeed.
    Reject(io::Error),
    /// No write to this sink will succeed any more.
    Fatal(io::Error),
}

impl SinkError {
    /// Classifies an error of write(2) or a similar call.
    pub fn from_write(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPIPE | libc::ECONNRESET | libc::EBADF | libc::EINVAL | libc::ENXIO) => Self::Fatal(error),
            _ => Self::Retry(error),
        }
    }

    /// Returns the I/O error.
    pub fn into_io_error(self) -> io::Error {
        match self {
            Self::Retry(error) | Self::Reject(error) | Self::Fatal(error) => error,
        }
    }

    /// The I/O error.
    pub fn io_error(&self) -> &io::Error {
        match self {
            Self::Retry(error) | Self::Reject(error) | Self::Fatal(error) => error,
        }
    }
}

/// A failed sync. It is unknown how much of the data is on the disk.
#[derive(Debug)]
pub struct SyncError {
    /// Error of the system call.
    pub error: io::Error,
    /// Whether no later sync can repair it, because the sink has not kept all bytes to write again.
    pub is_final: bool,
}

impl From<SyncError> for io::Error {
    fn from(failed: SyncError) -> Self {
        failed.error
    }
}

/// A destination of finished lines.
///
/// Contract: methods are called from one thread at a time and may block. Writes are in order. `write` returns how many
/// bytes the destination accepted, at least one. These bytes count as written, and all other bytes as not written.
pub trait Sink: Send {
    /// Writes a leading part of `lines`, as much as is sensible in one call.
    ///
    /// # Errors
    ///
    /// Returns a [`SinkError`] that says what the writer must do. No byte of `lines` was accepted.
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError>;

    /// Makes durable all bytes that `write` has accepted, including bytes in files that the sink has switched away
    /// from.
    ///
    /// For a destination without a disk, written bytes are durable.
    ///
    /// # Errors
    ///
    /// Returns a [`SyncError`] if the data could not be synced, even by the repairs that the sink can do now. The sink
    /// remains usable.
    fn sync(&mut self) -> Result<(), SyncError> {
        Ok(())
    }

    /// Announces that `sync` will be called. From here on the sink keeps the data that it needs to repair a failed
    /// sync.
    fn keep_unsynced(&mut self) {}

    /// Releases descriptors that the program itself has closed. Called when nothing was queued for a while. Returns
    /// whether to call it again. Only for sinks that [borrow a descriptor](crate::sinks::is_borrowed).
    fn release_closed_descriptors(&mut self) -> bool {
        false
    }

    /// Takes in new members and closes those that left; see [`GroupSink`](crate::sinks::GroupSink).
    fn follow_members(&mut self) {}

    /// Called after [`SinkError::Fatal`]. Returns how many bytes of `lines` are given up if the sink can write the
    /// bytes after them. `None`: the whole sink is finished.
    fn give_up(&mut self, _: &Lines<'_>) -> Option<usize> {
        None
    }

    /// Number of times that the sink has switched to another file.
    fn rotation_count(&self) -> u64 {
        0
    }

    /// Number of written records that were cut, because the destination accepts no longer ones.
    fn cut_count(&self) -> u64 {
        0
    }

    /// Closes what a forked child must not inherit. Called before the writer thread ends; the next write opens it again.
    fn leave(&mut self) {}

    /// Returns and clears the number of records of each level class that writes have accepted, although the destination
    /// refuses them for ever. They count as rejected. A courier reports such records in [`CarryOutcome::refused`]
    /// instead, unless it is used by `write`.
    fn take_refused(&mut self) -> [u32; LEVEL_CLASSES] {
        [0; LEVEL_CLASSES]
    }

    /// Returns and clears an error beside the last write: it affects no records, or only those of [`Self::take_refused`].
    fn trouble(&mut self) -> Option<io::Error> {
        None
    }

    /// The log file of a sink to which other processes may append too. The writer reports noted progress to it.
    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        None
    }

    /// The sink as a courier, if its destination confirms records later. The writer then does not call `write`.
    fn courier(&mut self) -> Option<&mut dyn Courier> {
        None
    }
}

/// A sink that can have several batches in transit. A batch that the courier took stays queued until the destination
/// has confirmed it.
///
/// Contract: methods are called from one thread at a time. Batches arrive in the order in which they were taken. The
/// courier keeps each batch until it has arrived, even if the connection breaks.
pub trait Courier: Send {
    /// The stream of the courier's records, if the destination identifies records by number. The numbers start at 1 and
    /// increase by one.
    fn stream(&self) -> Option<Stream> {
        None
    }

    /// Continues the stream of a dead process. Called before the first batch.
    fn resume(&mut self, _: Stream) {}

    /// Sets the number of the next record, in a continued stream.
    fn number_from(&mut self, _: u64) {}

    /// Whether the courier can take another batch.
    fn has_room(&self) -> bool;

    /// Takes a whole batch.
    fn take(&mut self, lines: Lines<'_>);

    /// Does all work that is possible without waiting. The only wait allowed is for the opening of a connection.
    fn carry(&mut self, pace: Pace) -> CarryOutcome;

    /// Waits for the destination, at most for `longest`. Called after [`NextCarry::OnAnswer`].
    fn wait(&self, longest: Duration);
}

/// A stream of numbered records. It contains all records that one sink of one process sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Random identity of the stream.
    pub id: u128,
    /// Epoch of the stream, set when the stream begins; never 0. Record numbers are unique only within an epoch.
    pub epoch: u64,
}

/// Whether a courier may wait for more records before it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The courier may wait for more records, but its oldest one at most this long. A courier with an option for this
    /// time keeps to that option.
    Gather(Duration),
    /// The courier must send now, because a caller waits until everything has arrived.
    Hurry,
}

/// Result of [`Courier::carry`].
#[derive(Debug)]
pub struct CarryOutcome {
    /// Number of batches that have arrived since the last call, oldest first.
    pub arrived: usize,
    /// Error, if any.
    pub error: Option<io::Error>,
    /// Records of the arrived batches that the destination refuses for ever. They count as rejected.
    pub refused: Vec<RefusedRecord>,
    /// When to call again.
    pub next: NextCarry,
}

/// A record that the destination refuses for ever, although it accepts the rest of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedRecord {
    /// Index of the record's batch among those that have arrived with the same call.
    pub batch: usize,
    /// Level class of the record.
    pub class: u16,
}

/// When a courier must be called again, unless it gets another batch first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextCarry {
    /// No call is needed: the courier has no work.
    Idle,
    /// Call at this time; until then the courier gathers records.
    AtTime(Instant),
    /// Call as soon as the destination answers or accepts more bytes.
    OnAnswer,
    /// The destination is unreachable. Call at this time, when the next try is due.
    Unreachable(Instant),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(ends: &[u32]) -> Vec<Mark> {
        ends.iter().map(|end| Mark { end: *end, level: 0, class: 0, member: 0, seconds: 0 }).collect()
    }

    #[test]
    fn a_piece_is_whole_records_or_one_longer_record() {
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
