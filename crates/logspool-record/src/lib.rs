//! A record, what it refers to, and its formats: pure functions over bytes.
//!
//! Stops on the line: the bytes between *capture* and *format*, and *format* itself. A record ([`Head`] and tagged
//! [`Values`]) is encoded by the caller and read by the collector or a recoverer; [`definition`] holds what it refers to
//! by number; [`mod@format`] makes lines of it, [`msgpack`] entries for a service.
//!
//! Invariants: nothing of another layer is used, no thread is started and no file opened. Bytes of a record are hostile:
//! every length is checked, and what does not fit ends in an error, never in a panic.

pub mod address;
pub mod definition;
pub mod format;
pub mod msgpack;
mod record;

pub use record::*;
