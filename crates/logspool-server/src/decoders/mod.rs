//! From the bytes of a frame to records: pure functions, which neither wait nor keep anything.

pub mod log_record;
pub mod pickle;
