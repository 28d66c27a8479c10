//! Sidecars. Each log file has one sidecar: a small file on tmpfs, next to the segments. It says which process may
//! append, and which append was begun.
//!
//! Pipeline stage: sidecar, used by the writer (see ARCHITECTURE.md). Processes that append to one file, and recoverers
//! of dead processes, do not know of each other; they coordinate through this *sidecar*. A writer enters the sidecar
//! (takes its lock) and stores an intent with a copy of the bytes. It then appends the bytes, notes the progress in its
//! segment, clears the intent and leaves (releases the lock).
//!
//! If a process enters a sidecar and finds an intent, the writer of that intent is dead: only its death can have
//! released the lock while an intent was stored. The process compares the file with the copy and appends the missing
//! bytes. So each byte of a batch gets into the file once, and no line stays torn.
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
//! An intent means: `length` bytes are appended where the file has `at` bytes. These bytes start at byte `from` of the
//! chunk of batch `batch`, sink `sink`, segment `segment` (its NAME and random identity). An intent is one write inside
//! one page, so it is either complete or absent. The copy is written before the intent, or in the same write if it is
//! small. A kill cannot reverse this order, so no checksum is needed: the bytes themselves are compared.
//!
//! An append has these steps, in this order. Each step is a system call, except the fourth:
//!
//! 1. take the lock; 2. write copy and intent; 3. append the bytes; 4. store `offset` in the segment's sink head; 5.
//!    clear the intent; 6. release the lock.
//!
//! A kill after step 2 leaves an intent, and the file shows how much of it was appended. The process that finishes the
//! append stores `offset` for the dead owner before it clears the intent. If a kill interrupts this process too,
//! another process repeats the work. After step 5 the segment has noted everything. So when a recoverer has entered all
//! sidecars with intents of an orphan, the offsets that it reads are exact.
//!
//! The locks are record locks on bytes of the sidecar. The process that appends holds the lock on byte 0. All processes
//! that have the sidecar open share the lock on byte 1. A process that gets this lock exclusively may remove the
//! sidecar. Record locks end with their process and are not inherited by forked children. Closing any descriptor of the
//! sidecar would release the locks, so a process has each sidecar open only once (`table.rs`). The threads of one
//! process exclude each other by a flag.
//!
//! A writer that hangs in its append keeps the lock. The other processes get an error that tells them to retry later,
//! and their records move to overflow, as for any stuck sink. `since` shows how long a process has held the lock.
//!
//! The device and inode of a removed file can be reused for another file; the birth time distinguishes the two files.
//! Sidecars are accessed by `pread` and `pwrite`, never mapped, and all their contents are bounds-checked. There is no
//! sidecar without tmpfs, for a target that is not a regular file, or if the folder already holds [`MAX_SIDECARS`]
//! sidecars. Lines are then appended without a lock, as other programs do it.
//!
//! A writer without sidecars, or with another folder of segments, may put its bytes between ours. The process that
//! finishes an append then searches for the begun bytes after those other bytes. If it cannot identify them, it appends
//! them again from the start of their line. So no record is lost, and a kill leaves at most one torn line, which is
//! counted.

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

/// Maximum number of sidecars in a folder.
///
/// Chosen: the programs of a user have fewer log files open than this. Each sidecar takes a page, and at most 65 pages
/// with large appends. Half of this number would suffice for most users; twice the number could fill a small tmpfs.
pub const MAX_SIDECARS: usize = 1024;

/// Maximum bytes of one append, unless a single record is longer.
///
/// Specified by the layout of a sidecar (see the module documentation): this is the size of the large copy. The size is
/// limited because other processes can append only between two appends, and because the copy takes memory on tmpfs.
pub const PIECE_BYTES: usize = 256 * 1024;
