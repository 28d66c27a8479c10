//! Recovery: delivers the records that dead processes left on tmpfs and on disk.
//!
//! Pipeline stage: recovery (see ARCHITECTURE.md). It does the work of *collector* and *writer* for processes that no
//! longer run. A start (or `doctor`) lists orphans with [`scan`] and delivers their records with [`recover`]. Both work
//! on copies made by `pread` and treat every byte as hostile.
//!
//! ```text
//! folder -> leftovers (files by NAME) -> claim (lock, token) -> image (copy, bounds)
//!        -> sidecars (appends that the process had begun are finished) -> walk (batches of the manifests, then
//!        records never batched) -> survey (counts) or delivery (lines) -> target (appended under the sidecar's lock,
//!        noted in the sink heads) -> files removed, or memory without undelivered records released
//! ```
//!
//! Promise: **every accepted record of a wanted file is in the file once, on a line of its own, and the lines of a
//! thread are in order**. This holds whichever step of a write or recovery a kill interrupts. It holds for any number
//! of processes that append or recover (`sidecar.rs` says how). The promise is weaker in two cases:
//! - A program without sidecars appends to the same file. No record is lost. A kill leaves at most one torn line, which
//!   is ended and counted.
//! - The sink had no sidecar (no room for one, or a pipe instead of a file). Each kill may repeat the chunk of one
//!   batch.
//!
//! Invariants:
//! - No file with undelivered or unread records is removed, unless the caller chose [`Undeliverable::Discard`]. The
//!   report lists all remaining files with the reasons.
//! - A segment is changed only under its owner's lock, and every delivering step checks the fencing token.
//! - Lock files of this process are never opened, since closing one would drop the lock. The lock file of a dead
//!   process is opened once for all threads of this process (`work.rs`).
//!
//! Records for a service continue the stream of the dead process. They start at the oldest batch that the process did
//! not know to have arrived. Each record gets the number that it had or would have had, so the service stores it once.
//! If the segment stores no stream (an older core made it), the remaining records are sent in a new stream. They are
//! then delivered at least once.
//!
//! Spools on disk belong to the files of a dead process. After a reboot only the spools remain (`spools.rs`).
//! Timestamps are rendered in the time zone of this process, not of the dead one.

mod adopt;
mod adopter;
mod claim;
mod damage;
mod decoded;
mod delivery;
mod file_action;
mod image;
mod lane;
mod leftover;
mod orphan;
mod pending;
mod progress;
mod relatives;
mod report;
mod run;
mod running;
mod shrink;
mod source;
mod spilled;
mod spools;
mod survey;
mod target;
mod walk;
mod work;

pub use adopt::{adopt, check as check_adoption};
pub use adopter::{AdoptedRecords, Adopter};
pub use damage::Damage;
pub use file_action::{FileAction, RecoverOptions, Undeliverable};
pub use orphan::{Condition, MAX_ORPHAN_BYTES, Orphan, Retention, scan};
pub use pending::{PendingPlace, PendingRecords};
pub use relatives::{Deliver, FoundRelatives, deliver_relatives};
pub use report::{Delivered, Kept, Reason, Removed, Report};
pub(crate) use run::recover_in;
pub use run::{recover, recover_as};
pub use running::{RunningQueue, SegmentCounters, SegmentSink, counters_of, running};
pub use spools::{holds_spools, recover_spools};
