//! The proof: a simulated disk that forgets what a real one may forget, and a spool that crashes after every call.
//!
//! A run has several lives. In each life, a random program appends, syncs, reads, acks and saves, while the disk fails
//! as the seed determines. The disk's state is kept after every call. Crash images are made from each state, and the
//! spool is opened on them. The delivered records are compared with the promises made up to that call:
//!
//! - I1: no durable record is missing, except records dropped on purpose and reported as dropped.
//! - I2: a consumer that remembers its position gets no number twice. Other consumers get no number below a durable
//!   checkpoint's position again.
//! - I3: numbers come in order, each with the bytes that were appended.
//! - I4: opening always succeeds.
//! - I5: opening once more delivers the same.
//! - I6: all of this holds for a crash while the spool opens.
//!
//! At the end of a run the faults stop: everything must be delivered and every segment freed within a bound.
//!
//! A crash state is a crash image together with the promises before the crash. Many states of a life have the same
//! image. Such an image is opened once (`trial.rs`), and the result is checked against the promises of each state. The
//! count also says how many states differ within their lives.
//!
//! `LOGSPOOL_CRASH_STATES` sets the number of crash states to check, `LOGSPOOL_SEED` the first run. A violation names
//! the seed of its run and the plan made from it. `defects.rs` plants defects that must be found.

mod content;
mod damage;
mod defects;
mod exhaustive;
mod generator;
mod heap;
mod life;
mod missing;
mod model;
mod random;
mod sim_disk;
mod simulated_files;
mod trial;
