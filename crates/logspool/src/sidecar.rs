//! Who may write to a log file now, and what was begun: one small file on tmpfs beside the segments for each log file.
//!
//! Stop on the line: beside *writer*. Processes that append to one file, and recoverers of dead ones, do not know of
//! each other; what they share is this *sidecar*. A writer enters it (a lock), says what it is about to append (an
//! intent, with a copy of the bytes), appends, has its segment note that, takes the intent back and leaves. Whoever
//! enters and finds an intent knows that its writer is dead: the kernel gives a lock away only then. What the file
//! holds of those bytes is compared with the copy, and the rest is appended, so that each byte of a batch gets into
//! the file once, and no line stays torn.
//!
//! ```text
//! file-<device>-<inode>.side           both in hexadecimal; 0600, in the folder of the segments
//!
//! 0        Head          64 B    magic, version, device, inode, birth of the file, next rotation, torn lines, path
//! 64       path         960 B    where the file was when the sidecar was made; empty where that is longer
//! 1 KiB    Intent       192 B    state (0: none), batch, from, length, at, copy, since, sink, flags, segment
//! 1216     small copy  2880 B    bytes that are about to be appended, where so few
//! 4 KiB    large copy            where more: up to 256 KiB, or one record
//! ```
//!
//! An intent says: `length` bytes, from byte `from` of the chunk of batch `batch` of sink `sink` in segment `segment`
//! (its NAME and random identity), are appended where the file has `at` bytes. It is one write inside one page, so it
//! is there or it is not. The copy is there before it: in the same write where it is small, else in an earlier one.
//! A kill cannot turn these round, so there is no checksum: what is compared are the bytes themselves.
//!
//! The order of an append, each step a system call but for the fourth:
//!
//! 1. the lock; 2. copy and intent; 3. the bytes; 4. `offset` in the segment's sink head; 5. no intent; 6. the lock.
//!
//! A kill behind 2 leaves an intent, and how much of it is in the file tells the file; who finishes it notes `offset`
//! for the dead owner before taking the intent back, and that may be cut by a kill as well and done again. Behind 5 the
//! segment has noted everything. So a recoverer that has entered all sidecars with intents of an orphan reads offsets
//! that are exact.
//!
//! Locks are record locks on bytes of the sidecar: byte 0 is held by the one who appends, byte 1 is shared by all who
//! have the sidecar open, and whoever gets it alone may remove the file. They end with their process and are not
//! inherited by forked children. Any close of the file in the process would drop them, so a process has each sidecar
//! open once (`table.rs`), and its own threads exclude each other by a flag.
//!
//! A writer that hangs in its append keeps the lock: the others are told to try again later and have their records
//! moved to overflow as for any sink that is stuck. `since` shows how long somebody is inside already.
//!
//! The device and inode of a file can be given to another one when it is gone; its time of birth tells them apart.
//! Sidecars are read and written by `pread` and `pwrite`, never mapped, and everything in them is bounds-checked.
//! Without tmpfs, for what is no regular file and where the folder holds [`MAX_SIDECARS`] already, there is none, and
//! lines are appended as any program appends them.
//!
//! With a writer that knows nothing of all this on the same file, or has another folder of segments, its bytes may stand between ours: what was begun is
//! looked for behind them, and what cannot be told is appended again from the start of its line. So nothing is lost
//! and a kill leaves one torn line at most, which is counted.

mod intent;
mod list;
pub(crate) mod locks;
mod mend;
mod place;
mod shared_file;
mod side;
pub mod steps;
mod table;

pub use list::{Listed, list};
pub(crate) use list::{Verdict, settle, sweep};
pub(crate) use mend::count_torn;
pub use mend::torn_lines;
pub(crate) use shared_file::Origin;
pub use shared_file::{Identity, SharedFile};
pub(crate) use table::{leave_all, unlink_async_signal_safe};

/// Most sidecars in a folder.
///
/// Chosen: more log files than the programs of a user have open; each takes a page, and at most 65 where much is
/// written at once. Half would do for most, double could fill a small tmpfs.
pub const MAX_SIDECARS: usize = 1024;

/// Most bytes of one append, unless one record is longer.
///
/// Specified: other processes get their turn in between, and the copy of it is memory.
pub const PIECE_BYTES: usize = 256 * 1024;
