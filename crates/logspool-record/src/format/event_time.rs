//! The start of an entry of Fluent Forward: its time and its number of parts.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The general way and the programs of entries write it (`entry.rs`,
//! `line_program.rs`).

/// The start of an entry: an array of two items, and the mark of a time.
pub(super) const BEFORE_SECONDS: [u8; 3] = [0x92, 0xd7, 0];

/// Bytes of [`after_seconds`].
pub(super) const AFTER_SECONDS_BYTES: usize = 7;

/// The bytes of an entry from its nanoseconds to its number of parts.
#[inline]
pub(super) fn after_seconds(nanoseconds: u32, parts: u16) -> [u8; AFTER_SECONDS_BYTES] {
    let ([a, b, c, d], [high, low]) = (nanoseconds.to_be_bytes(), parts.to_be_bytes());
    [a, b, c, d, 0xde, high, low]
}

/// The seconds and nanoseconds of the time of an entry, limited to the range of its 32 bits of seconds.
#[inline]
pub(super) fn event_time(time_ns: i64) -> (u32, u32) {
    const NANOS: u64 = 1_000_000_000;
    let time_ns = time_ns.max(0) as u64;
    (u32::try_from(time_ns / NANOS).unwrap_or(u32::MAX), (time_ns % NANOS) as u32)
}
