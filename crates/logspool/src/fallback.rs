//! The last resort: ERROR records and above that no sink accepts are printed on standard error.
//!
//! It prints at most ten lines a second, then one line with the number of withheld lines. It is never used if standard
//! error is the failing sink. The collector and logging calls use it and must not block. If standard error is a pipe or
//! terminal, a line is written only if poll(2) reports it writable. If standard error is a file, a thread writes the
//! line (`printer.rs`).

mod printer;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::level_class;
use logspool_record::definition::SinkDefinition;
use logspool_record::format::entry;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::fork_safe_lock::ForkSafeLock;

use crate::chunk::Chunk;
use crate::sinks::{self, Place, SinkInput, Traits};
use printer::descriptor;
pub use printer::{finish, use_descriptor};

static PRINTED: AtomicU64 = AtomicU64::new(0);

/// Number of records printed so far.
pub fn printed() -> u64 {
    PRINTED.load(Ordering::Relaxed)
}

/// Maximum number of lines in a second.
const LINES_A_SECOND: u32 = 10;

#[derive(Debug, Clone, Copy)]
struct RateLimit {
    second: u64,
    lines: u32,
    withheld: u64,
}

impl RateLimit {
    /// Resets the counters if a new second has begun, and prints how many lines were withheld in the previous second.
    fn start_second(&mut self) {
        let second = monotonic_ns() / 1_000_000_000;
        if second != self.second {
            if self.withheld > 0 {
                print(format!("logspool: {} more lines were not shown\n", self.withheld).as_bytes());
            }
            *self = Self { second, lines: 0, withheld: 0 };
        }
    }
}

static RATE: ForkSafeLock<RateLimit> = ForkSafeLock::new(RateLimit { second: 0, lines: 0, withheld: 0 });

/// Whether a sink writes to standard error itself.
pub fn is_standard_error(traits: &Traits, definition: &SinkDefinition) -> bool {
    traits.is_borrowed && sinks::place(definition) == Place::Descriptor(descriptor())
}

/// Whether a line may be printed now. If not, the line counts as withheld.
pub fn has_room() -> bool {
    let Some(mut rate) = RATE.try_lock() else { return false };
    rate.start_second();
    let room = rate.lines < LINES_A_SECOND;
    rate.withheld += u64::from(!room);
    room
}

/// Prints the records of a sink's chunk that are ERROR or above.
pub fn emit(traits: &Traits, definition: &SinkDefinition, chunk: &Chunk) {
    if is_standard_error(traits, definition) {
        return;
    }
    let Some(mut rate) = RATE.try_lock() else { return };
    let mut start = 0;
    for mark in &chunk.marks {
        let line = &chunk.bytes[start..mark.end as usize];
        start = mark.end as usize;
        if usize::from(mark.class) < level_class(logspool_lanes::queue::producer::ERROR) {
            continue;
        }
        rate.start_second();
        let shown = match traits.takes {
            SinkInput::Entries => Cow::Owned(entry::readable(line).unwrap_or_default().into_bytes()),
            SinkInput::Lines => Cow::Borrowed(line),
        };
        if rate.lines < LINES_A_SECOND && print(&shown) {
            rate.lines += 1;
            PRINTED.fetch_add(1, Ordering::Relaxed);
        } else {
            rate.withheld += 1;
        }
    }
}

/// Prints a message about logspool itself. The message is lost if standard error is a pipe or terminal that does not
/// accept it at once.
pub fn report(text: &str) {
    print(text.as_bytes());
}

fn print(line: &[u8]) -> bool {
    let part = &line[..line.len().min(libc::PIPE_BUF)];
    if is_file() {
        return printer::print(part);
    }
    let mut poll = libc::pollfd { fd: descriptor(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid pollfd; pointer and length are of one slice.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && libc::write(poll.fd, part.as_ptr().cast(), part.len()) > 0 }
}

/// Whether standard error has a file position, as files do. Unlike fstat(2), this never waits for a disk or file
/// server.
fn is_file() -> bool {
    // SAFETY: this call changes nothing, and the kernel checks the descriptor.
    unsafe { libc::lseek(descriptor(), 0, libc::SEEK_CUR) >= 0 }
}
