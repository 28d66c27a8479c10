//! A record, its definitions, and its formats: pure functions over bytes.
//!
//! Stops on the line: the bytes between *capture* and *format*, and *format* itself. The caller encodes a record
//! ([`Head`] and tagged [`Values`]); the collector or a recoverer reads it. [`definition`] holds the definitions that a
//! record names by id. [`mod@format`] renders lines, [`msgpack`] entries for a service.
//!
//! Invariants: this crate uses no other layer, starts no thread and opens no file. The bytes of a record are hostile:
//! every length is checked, and damage ends in an error, never in a panic.

pub mod address;
pub mod cpython;
pub mod definition;
pub mod format;
pub mod msgpack;
mod record;
pub mod syslog;
pub mod uri;

pub use record::*;
