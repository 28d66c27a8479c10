//! Sources: listeners, connections and datagrams. They pass frames to the decoders, and the decoded records to the
//! intake.

pub mod acks;
pub mod admission;
pub mod datagrams;
pub mod frame_reader;
#[cfg(test)]
pub mod framer_check;
pub mod framing;
pub mod input;
pub mod key;
pub mod listeners;
pub mod shared;
pub mod streams;
pub mod tls;
