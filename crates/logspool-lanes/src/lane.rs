//! One lane without its storage: the head in the segment, and the positions in its rings.
//!
//! [`cursor`] and [`ring`] are the algorithm of the queue; the models check both. The rooms above place a lane:
//! `segment` in shared memory, `queue` between a thread that logs and the collector.

pub mod cursor;
pub mod head;
#[cfg(all(loom, test))]
mod models;
pub mod ring;
