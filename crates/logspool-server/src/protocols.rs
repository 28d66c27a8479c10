//! The protocols of senders. Each protocol has one file, and one line in the table of protocols (`table.rs`).

pub mod forward;
pub mod http;
pub mod json;
pub mod octet_counted;
pub mod pickle;
pub mod relp;
pub mod syslog;
mod table;
pub mod text;

pub use table::{ALL, DetectedProtocol, InputState, begins_frame, by_name, detect, detect_datagram};
