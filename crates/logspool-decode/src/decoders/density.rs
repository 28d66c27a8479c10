//! Limits the number of records by the number of bytes they come in.
//!
//! A record takes some 200 bytes of memory as a row, whatever its content. Input made of nearly empty records would
//! take a hundred times the memory that its sender spent.

/// Average size of records above which their number is not limited, in bytes before compression.
///
/// Chosen: a time and one short text take 12 bytes of MessagePack. An entry without any content takes 3.
pub const MIN_RECORD_BYTES: usize = 8;

/// Number of records that are accepted whatever their size.
pub const FREE_RECORDS: usize = 1000;

/// True if there are too many records for this number of bytes.
pub fn is_too_dense(records: usize, bytes: usize) -> bool {
    records > FREE_RECORDS && records - FREE_RECORDS > bytes / MIN_RECORD_BYTES
}
