//! One connection of a sender: what a protocol is, the frames that it reads, and the state that connections share.

pub mod acks;
pub mod admission;
pub mod frame_reader;
#[cfg(test)]
pub mod framer_check;
pub mod framing;
pub mod input;
pub mod key;
pub mod line_joiner;
pub mod protocol;
pub mod shared;
