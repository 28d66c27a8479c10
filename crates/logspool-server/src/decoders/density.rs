//! How many records may come in how many bytes.
//!
//! A record takes some 200 bytes of memory as a row, whatever it says. Input that consists of records of next to no bytes
//! would take a hundred times the memory that its sender spent.

/// Bytes of the smallest records that are accepted in number, before compression.
///
/// Chosen: a time and one short text take 12 bytes of MessagePack. An entry without any content takes 3.
pub const MIN_RECORD_BYTES: usize = 8;

/// Records of any size that are accepted beside them.
pub const FREE_RECORDS: usize = 1000;

/// Whether so many records in so many bytes are too many.
pub fn is_too_dense(records: usize, bytes: usize) -> bool {
    records > FREE_RECORDS && records - FREE_RECORDS > bytes / MIN_RECORD_BYTES
}
