//! Sources: listeners, connections and datagrams. They pass frames to the decoders and records to the intake.

pub mod acks;
pub mod admission;
pub mod datagrams;
#[cfg(test)]
pub mod framed;
pub mod framing;
pub mod input;
pub mod key;
pub mod listeners;
pub mod reading;
pub mod shared;
pub mod streams;
pub mod tls;
