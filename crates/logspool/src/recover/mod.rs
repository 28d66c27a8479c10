//! The smallest recovery: what dead processes left on tmpfs goes where it was meant to go.
//!
//! Stop on the line: beside *collector* and *writer*, for processes that are not there any more. A start (or
//! `doctor`) looks with [`scan`] and delivers with [`recover`]; both read copies made by `pread` and take every
//! byte for hostile.
//!
//! ```text
//! folder -> leftovers (files by NAME) -> claim (lock, generation) -> image (copy, bounds)
//!        -> sidecars (what it was about to append is finished) -> walk (batches of the manifests, then what was never
//!        batched) -> survey (counts) or delivery (lines) -> target (appended under the sidecar's lock, noted in the
//!        sink heads) -> files removed, or memory given back that holds nothing undelivered
//! ```
//!
//! Promised: **every accepted record of a wanted file gets into it once, on a line of its own, the lines of a thread in
//! order**, whatever step of a write or of a recovery a kill ends, and however many processes append to the file or
//! recover (`sidecar.rs` says how). Where a program that knows nothing of sidecars appends to the same file too, nothing
//! is lost, and a kill leaves one torn line at most, which is ended and counted. Where there was no sidecar (no room for
//! one, a pipe instead of a file), the chunk of one batch for each kill may stand twice.
//!
//! Invariants:
//! - Nothing is removed that holds something undelivered or unread, unless the caller said so
//!   ([`Undeliverable::Discard`]); whatever stays is in the report with its reasons.
//! - A segment is touched only under its owner's lock, and every step that delivers checks the generation.
//! - Lock files of this process are never opened: closing one would drop the lock. Those of dead processes are opened
//!   once for all threads of this one (`work.rs`).
//!
//! What a dead process had for a service goes on in its stream, from the oldest batch that the process did not know to
//! have arrived, each record under the number that it had or would have had: the service has it once. Where the segment
//! tells no stream (an older core made it), the rest is sent in a stream of its own: at least once.
//!
//! Spools on disk are part of what a dead process left; after a reboot they are all of it (`spools.rs`).
//! Times are shown in this process's time zone, not in that of the dead one.

mod adopt;
mod adopter;
mod claim;
mod damage;
mod decoded;
mod delivery;
mod image;
mod lane;
mod leftover;
mod orphan;
mod pending;
mod progress;
mod relatives;
mod report;
mod run;
mod shrink;
mod source;
mod spilled;
mod spools;
mod survey;
mod target;
mod walk;
mod want;
mod work;

pub use adopt::{adopt, check as check_adoption};
pub use adopter::{Adopter, Taken};
pub use damage::Damage;
pub use orphan::{Condition, MAX_ORPHAN_BYTES, Orphan, Retention, scan};
pub use pending::{Pending, Place};
pub use relatives::{Deliver, Found, deliver_relatives};
pub use report::{Delivered, Kept, Reason, Removed, Report};
pub(crate) use run::recover_in;
pub use run::{recover, recover_as};
pub use spools::{holds_spools, recover_spools};
pub use want::{Options, Undeliverable, Want};
