//! Sources: listeners, connections and datagrams. They pass frames to the decoders, and the decoded records to the
//! intake.

pub mod datagrams;
pub mod inherited;
pub mod listeners;
pub mod streams;
pub mod tls;
