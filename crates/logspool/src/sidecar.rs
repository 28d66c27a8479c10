//! Sidecars: for each log file one small file on tmpfs, next to the segments. It says which process may append, and
//! which append was begun.
//!
//! Stop on the line: beside *writer*. Processes that append to one file, and recoverers of dead ones, do not know of
//! each other; they coordinate through this *sidecar*. A writer does these steps: it enters the sidecar (takes its
//! lock) and stores an intent with a copy of the bytes. It appends them, lets its segment note the progress, clears the
//! intent and leaves.
//!
//! A process that enters and finds an intent knows that its writer is dead, since only then the kernel releases the
//! lock. It compares the file with the copy and appends the rest. So each byte of a batch gets into the file once, and
//! no line stays torn.
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
//! An intent means: `length` bytes are appended where the file has `at` bytes. They start at byte `from` of the chunk
//! of batch `batch`, sink `sink`, segment `segment` (its NAME and random identity). An intent is one write inside one
//! page, so it is either complete or absent. The copy is written before it, or in the same write if it is small. A kill
//! cannot reverse this order, so no checksum is needed: the bytes themselves are compared.
//!
//! The order of an append; each step is a system call, except the fourth:
//!
//! 1. take the lock; 2. write copy and intent; 3. append the bytes; 4. store `offset` in the segment's sink head; 5.
//!    clear the intent; 6. release the lock.
//!
//! A kill after step 2 leaves an intent, and the file shows how much of it was appended. The process that finishes it
//! stores `offset` for the dead owner before it clears the intent; a kill may interrupt this too, and it is then done
//! again. After step 5 the segment has noted everything. So when a recoverer has entered all sidecars with intents of
//! an orphan, the offsets that it reads are exact.
//!
//! The locks are record locks on bytes of the sidecar. Byte 0 is held by the process that appends. Byte 1 is shared by
//! all that have the sidecar open; a process that gets it exclusively may remove the file. Record locks end with their
//! process and are not inherited by forked children. Closing any descriptor of the file would drop them, so a process
//! has each sidecar open only once (`table.rs`). Its own threads exclude each other by a flag.
//!
//! A writer that hangs in its append keeps the lock. The others get an error to retry later, and their records move to
//! overflow, as for any stuck sink. `since` shows how long a process is inside.
//!
//! Device and inode of a removed file can be reused for another one; the birth time distinguishes them. Sidecars are
//! accessed by `pread` and `pwrite`, never mapped, and all their contents are bounds-checked. There is no sidecar
//! without tmpfs, for a target that is not a regular file, or if the folder holds [`MAX_SIDECARS`] already. Lines are
//! then appended as any program appends them.
//!
//! A writer without sidecars, or with another folder of segments, may put its bytes between ours. The begun bytes are
//! then searched after them. If they cannot be identified, they are appended again from the start of their line. So no
//! record is lost, and a kill leaves at most one torn line, which is counted.

mod identity;
mod intent;
mod list;
pub(crate) mod locks;
mod log_file;
mod place;
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

/// Most sidecars in a folder.
///
/// Chosen: more log files than the programs of a user have open. Each takes a page, and at most 65 pages with large
/// appends. Half would suffice for most; double could fill a small tmpfs.
pub const MAX_SIDECARS: usize = 1024;

/// Most bytes of one append, unless one record is longer.
///
/// Specified: other processes get their turn between two appends, and the copy takes memory.
pub const PIECE_BYTES: usize = 256 * 1024;
