//! Limits the number of records by the number of bytes they come in.
//!
//! A record takes some 200 bytes of memory as a row, whatever its content. So nearly empty records would take a hundred
//! times the bytes that the sender has sent.

/// Minimum average size of records, in bytes before compression. An input may have [`FREE_RECORDS`] records more than
/// its size allows.
///
/// Chosen: a time and one short text take 12 bytes of MessagePack. An entry without any content takes 3.
pub const MIN_RECORD_BYTES: usize = 8;

/// Number of records that are accepted whatever their average size.
pub const FREE_RECORDS: usize = 1000;

/// True if there are too many records for this number of bytes.
pub fn is_too_dense(records: usize, bytes: usize) -> bool {
    records > FREE_RECORDS && records - FREE_RECORDS > bytes / MIN_RECORD_BYTES
}
