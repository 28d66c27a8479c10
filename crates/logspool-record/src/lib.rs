//! A record, its definitions, and its formats: pure functions over bytes.
//!
//! Pipeline stages: format, and the bytes between capture and format (see ARCHITECTURE.md). The caller encodes a record
//! ([`Head`] and tagged [`Values`]), and the collector or a recoverer reads it. [`definition`] has the definitions to
//! which a record refers by id. [`mod@format`] renders lines, and [`msgpack`] renders entries for a service.
//! [`traceback`] puts the text of an exception together.
//!
//! Invariants: this crate uses no other layer, starts no thread and opens no file. The bytes of a record may be
//! hostile: every length is checked. Damage ends in an error, never in a panic.

pub mod address;
pub mod cpython;
pub mod definition;
pub mod format;
pub mod msgpack;
mod record;
pub mod syslog;
pub mod traceback;
pub mod uri;

pub use record::*;
