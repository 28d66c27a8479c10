//! Sidecars: for each log file one small file on tmpfs, next to the segments. It says which process may append, and
//! which append was begun.
//!
//! Pipeline stage: sidecar, which serves the writer and the recovery (see ARCHITECTURE.md). Processes that append to
//! one file, and recoverers of dead ones, do not know of each other. They coordinate through this *sidecar*. A writer
//! first enters the sidecar (takes its lock) and stores an intent with a copy of the bytes. It then appends the bytes,
//! lets its segment note the progress, clears the intent and leaves (releases the lock).
//!
//! A process that enters and finds an intent knows that the writer of the intent is dead: only then does the kernel
//! release the lock. The process compares the file with the copy and appends the missing bytes. So each byte of a batch
//! is written to the file once, and no line stays torn.
//!
//! ```text
//! file-<device>-<inode>.side           both in hexadecimal; 0600, in the folder of the segments
//!
//! 0        Head          64 B    magic, version, device, inode, birth of the file, next rotation, torn lines, path
//! 64       path         960 B    path of the file when the sidecar was made; empty if longer
//! 1 KiB    Intent       192 B    state (0: none), batch, from, length, at, copy, since, sink, flags, segment
//! 1216     small copy  2880 B    bytes that are about to be appended, if they fit
//! 4 KiB    large copy            otherwise: up to 256 KiB, or one record
//! ```
//!
//! An intent means: `length` bytes are being appended at file offset `at`. They start at byte `from` of the chunk of
//! batch `batch`, sink `sink`, segment `segment` (its NAME and random identity). An intent is one write inside one
//! page, so it is either complete or absent. The copy is written before the intent, or in the same write if it is
//! small. A kill cannot reverse this order, so no checksum is needed: the bytes themselves are compared.
//!
//! An append has these steps, in this order. Each step is a system call, except the fourth:
//!
//! 1. Take the lock.
//! 2. Write the copy and the intent.
//! 3. Append the bytes.
//! 4. Store `offset` in the segment's sink head.
//! 5. Clear the intent.
//! 6. Release the lock.
//!
//! A kill after step 2 leaves an intent, and the file shows how many of its bytes were appended. The process that
//! finishes the append stores `offset` for the dead owner before it clears the intent. A kill may interrupt this repair
//! too; the next process then repeats it. After step 5 the segment has noted everything. So after a recoverer has
//! entered all sidecars with intents of an orphan, the offsets that it reads are exact.
//!
//! The locks are record locks on bytes of the sidecar. The process that appends holds byte 0. All processes that have
//! the sidecar open share byte 1; a process that locks byte 1 exclusively may remove the sidecar. Record locks end with
//! their process and are not inherited by forked children. Closing any descriptor of the sidecar would drop them, so a
//! process has each sidecar open only once (`table.rs`). Threads of one process exclude each other by a flag.
//!
//! A writer that hangs in its append keeps the lock. The other writers get an error that makes them retry later, and
//! their records move to overflow, as for any stuck sink. `since` shows for how long a process has held the lock.
//!
//! Device and inode of a removed file can be reused for another file; the birth time distinguishes the two files.
//! Sidecars are accessed by `pread` and `pwrite`, never mapped, and all their contents are bounds-checked. There is no
//! sidecar without tmpfs, for a target that is not a regular file, or if the folder already holds [`MAX_SIDECARS`].
//! Lines are then appended without lock and intent, as any program appends them.
//!
//! A writer without sidecars, or with another folder of segments, may write its bytes between ours. The repair then
//! searches for the intended bytes after the foreign ones. If it cannot identify them, it appends them again from the
//! start of their line. So no record is lost, and a kill leaves at most one torn line, which is counted.

mod handler_place;
mod identity;
mod intent;
mod list;
pub(crate) mod locks;
mod log_file;
mod repair;
mod shared_file;
mod side;
pub mod steps;
mod table;

pub use identity::Identity;
pub(crate) use list::{IntentVerdict, settle, sweep};
pub use list::{ListedSidecar, list};
pub(crate) use repair::count_torn;
pub use repair::torn_lines;
pub use shared_file::SharedFile;
pub(crate) use table::{close_all, unlink_async_signal_safe};

/// Maximum number of sidecars in a folder.
///
/// Chosen: it is more than the number of log files that the programs of a user have open. Each sidecar takes one page,
/// and at most 65 pages with large appends. Half as many would suffice for most users; twice as many could fill a small
/// tmpfs.
pub const MAX_SIDECARS: usize = 1024;

/// Maximum number of bytes of one append, unless one record is longer.
///
/// Chosen: a larger value would let other processes wait longer for their turn between two appends. The copy of the
/// bytes takes memory.
pub const PIECE_BYTES: usize = 256 * 1024;
