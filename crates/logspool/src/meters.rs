//! Metrics for operators, in addition to the exact accounting in `stats`: durations, sizes, errors by reason, and
//! waiting callers.
//!
//! The meters are relaxed atomics, each written by one thread. So a scrape may see one meter in a slightly older state
//! than another.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::histogram::{Histogram, HistogramCounts};

use crate::per_level::{PerLevel, read};

/// Upper bounds of a write's duration in seconds; one more bucket holds longer writes.
///
/// Specified by the public contract: the bounds reach from 50 us (a page-cache write) to 10 s (a hung disk), with at
/// most three bounds in each factor of ten.
pub const WRITE_SECONDS: [f64; 11] = [50e-6, 100e-6, 500e-6, 1e-3, 5e-3, 20e-3, 100e-3, 500e-3, 1.0, 5.0, 10.0];

/// Upper bounds of the number of records in one write; one more bucket holds larger writes.
pub const BATCH_RECORDS: [f64; 7] = [1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0];

/// Names of the error classes of [`ErrorClass`].
pub const ERROR_CLASSES: [&str; 4] = ["enospc", "eio", "closed", "other"];

/// Class of a failed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum ErrorClass {
    /// No space, no quota, file too large.
    NoSpace = 0,
    /// A device error, or a read-only file system.
    Device = 1,
    /// The reader or peer of the destination is gone.
    Closed = 2,
    /// Anything else.
    Other = 3,
}

impl ErrorClass {
    /// Returns the class of an error.
    pub fn of(error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Self::NoSpace,
            Some(libc::EIO | libc::EROFS) => Self::Device,
            Some(libc::EPIPE | libc::ECONNRESET | libc::EBADF | libc::ENXIO) => Self::Closed,
            // Errors made by the library have a kind but no system error number.
            None if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Self::Closed,
            _ => Self::Other,
        }
    }
}

/// Meters of one sink.
#[derive(Debug, Default)]
pub struct SinkMeters {
    /// Duration of each successful write.
    pub write_seconds: Histogram<{ WRITE_SECONDS.len() }>,
    /// Duration of each sync.
    pub sync_seconds: Histogram<{ WRITE_SECONDS.len() }>,
    /// Written records whose sync failed, whether it was repaired later or not.
    pub not_durable: [AtomicU64; LEVEL_CLASSES],
    /// Number of records in each chunk.
    pub batch_records: Histogram<{ BATCH_RECORDS.len() }>,
    /// Failed writes, per [`ErrorClass`].
    pub errors: [AtomicU64; ERROR_CLASSES.len()],
    /// Written records that were cut.
    pub cut_records: AtomicU64,
    /// Wall time of the last successful write, in nanoseconds since the epoch; 0 before the first.
    pub last_write_ns: AtomicU64,
}

/// [`SinkMeters`] at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkReading {
    /// Duration of each successful write.
    pub write_seconds: HistogramCounts,
    /// Duration and number of the syncs.
    pub sync_seconds: HistogramCounts,
    /// Written records whose sync failed, whether it was repaired later or not.
    pub not_durable: PerLevel,
    /// Number of records in each chunk.
    pub batch_records: HistogramCounts,
    /// Failed writes, per [`ErrorClass`].
    pub errors: [u64; ERROR_CLASSES.len()],
    /// Written records that were cut, because the destination accepts no longer ones.
    pub cut_records: u64,
    /// Time of the last successful write, in seconds since the epoch; 0 before the first.
    pub last_write_seconds: f64,
    /// Age of the oldest unwritten chunk, in seconds.
    pub oldest_age_seconds: f64,
}

impl SinkMeters {
    /// Reads the meters.
    pub fn read(&self, oldest_age_seconds: f64) -> SinkReading {
        SinkReading {
            write_seconds: self.write_seconds.counts(&WRITE_SECONDS),
            sync_seconds: self.sync_seconds.counts(&WRITE_SECONDS),
            not_durable: read(&self.not_durable),
            batch_records: self.batch_records.counts(&BATCH_RECORDS),
            errors: std::array::from_fn(|class| self.errors[class].load(Ordering::Relaxed)),
            cut_records: self.cut_records.load(Ordering::Relaxed),
            last_write_seconds: self.last_write_ns.load(Ordering::Relaxed) as f64 / 1e9,
            oldest_age_seconds,
        }
    }
}

/// Meters of callers that waited for room.
#[derive(Debug, Default)]
pub struct WaitMeters {
    /// Number of calls that waited.
    pub calls: AtomicU64,
    /// Total time of their waits, in nanoseconds.
    pub nanoseconds: AtomicU64,
}
