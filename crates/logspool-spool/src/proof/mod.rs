//! The proof: a simulated disk that forgets what a real one may forget, and a spool that crashes after every call.
//!
//! A run lives several lives. In each, a random program appends, syncs, reads, acks and saves, while the disk fails as
//! its seed says. After every call to the disk the state of the disk is kept; from each of these states crash images
//! are made, the spool is opened on them, and what it delivers is compared with what it had promised by then:
//!
//! - I1: no record that was durable is missing, but those that were given up on purpose and told so.
//! - I2: no number is delivered twice to a consumer that says how far it came, and to the others none below what a
//!   checkpoint had made durable.
//! - I3: numbers come in order, each with the bytes that were appended.
//! - I4: opening always succeeds.
//! - I5: opening once more delivers the same.
//! - I6: all of this holds for a crash while the spool opens.
//!
//! At the end of a run the faults stop: everything must be delivered and given back within a bound.
//!
//! A crash state is what a crash left and what had been promised before it. Many states of a life leave the same bytes:
//! these are opened once (`trial.rs`), and judged for each state. Beside the states that were looked at, the count says
//! how many of them differ within their lives.
//!
//! `LOGSPOOL_CRASH_STATES` sets how many crash states are looked at, `LOGSPOOL_SEED` the first run; a violation names
//! the seed of its run and what the seed stands for. `defects.rs` plants defects that must be found.

mod content;
mod damage;
mod defects;
mod dice;
mod exhaustive;
mod heap;
mod life;
mod missing;
mod model;
mod random;
mod sim_disk;
mod trial;
mod world;
