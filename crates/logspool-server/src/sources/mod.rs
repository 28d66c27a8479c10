//! Where bytes come in: listeners, connections, datagrams. Frames go to the decoders, records to the intake.

pub mod admission;
pub mod datagrams;
pub mod forward;
pub mod framing;
pub mod input;
pub mod key;
pub mod listeners;
pub mod reading;
pub mod shared;
pub mod streams;
pub mod tls;
