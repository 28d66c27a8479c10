//! The protocols of senders. Each protocol has one file, and one line in the table of protocols (`known_protocols.rs`).

pub mod forward;
pub mod json;
pub mod octet_counted;
pub mod pickle;
pub mod relp;
pub mod syslog;
pub mod text;
