//! How many records may come in how many bytes.
//!
//! A record takes some 200 bytes of memory as a row, whatever it says. Input that consists of records of next to no bytes
//! would take a hundred times the memory that its sender spent.

/// Bytes of the smallest records that are accepted in number, before compression.
///
/// Chosen: a time and one short text take 12 bytes of MessagePack. An entry without any content takes 3.
pub const MIN_RECORD_BYTES: usize = 8;

/// Number of records that are accepted whatever their size.
pub const FREE_RECORDS: usize = 1000;

/// True if there are too many records for this number of bytes.
pub fn is_too_dense(records: usize, bytes: usize) -> bool {
    records > FREE_RECORDS && records - FREE_RECORDS > bytes / MIN_RECORD_BYTES
}
