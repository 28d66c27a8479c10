//! From the bytes of a frame to records: pure functions, which neither wait nor keep anything.

pub mod form;
pub mod gelf;
pub mod json_line;
pub mod log_record;
pub mod pickle;
pub mod syslog;
pub mod words;
