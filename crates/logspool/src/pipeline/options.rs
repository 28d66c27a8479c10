//! Options of the process's queue.

use std::path::PathBuf;
use std::time::Duration;

/// Options of [`super::configure`]; each has the name, unit and meaning of the one of `logspool.install`.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How safe a record is when its call returns.
    pub durability: Durability,
    /// Largest size of one lane, in bytes.
    pub queue_bytes: usize,
    /// Largest size of all lanes of the process, in bytes; `None` is the lesser of 64 MiB and 1/8 of the free tmpfs.
    pub queue_total_bytes: Option<usize>,
    /// Folder of the segment; `None` is `/dev/shm/logspool-<uid>`.
    pub queue_dir: Option<PathBuf>,
    /// How long ERROR and above may wait for room.
    pub blocking_timeout: Duration,
    /// Level numbers that wait like ERROR; `None` is ERROR and above.
    pub blocking_levels: Option<Vec<u16>>,
    /// Most bytes of the overflow files of stalled sinks; `None` is the lesser of 256 MiB and 1/4 of the free tmpfs.
    pub overflow_bytes: Option<u64>,
    /// Folder of the spools, which keep records on disk while a sink stalls for longer; `None` is no spool.
    pub spool_dir: Option<PathBuf>,
    /// Most bytes of the spool of one sink.
    pub spool_bytes: u64,
    /// Longest duration of a drain at the end of the process.
    pub shutdown_timeout: Duration,
    /// Longest time that written records stay without a sync in the modes `Interval` and `Checkpoint`.
    pub sync_interval: Duration,
    /// In the mode `Checkpoint`, a call waits when this number of accepted records is not durable.
    pub checkpoint_every: u64,
    /// How long a call waits until its record is durable.
    pub durability_timeout: Duration,
    /// Level numbers whose calls wait until their record is durable, in any mode but `Memory`.
    pub durable_levels: Vec<u16>,
    /// Where ERROR records and above are shown if no sink accepts them.
    pub fallback: Fallback,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            queue_bytes: 256 * 1024,
            queue_total_bytes: None,
            queue_dir: None,
            blocking_timeout: Duration::from_millis(100),
            blocking_levels: None,
            overflow_bytes: None,
            spool_dir: None,
            spool_bytes: 1024 * 1024 * 1024,
            shutdown_timeout: Duration::from_secs(5),
            sync_interval: Duration::from_secs(1),
            checkpoint_every: 50,
            durability_timeout: Duration::from_secs(5),
            durable_levels: Vec::new(),
            fallback: Fallback::Stderr,
        }
    }
}

/// How safe the record of a returned call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Lanes on the heap: queued records are lost with the process.
    Memory,
    /// Lanes on tmpfs: queued records survive the process.
    Process,
    /// As `Process`, and sinks are synced every `sync_interval`: a power cut loses the records after the last sync.
    Interval,
    /// As `Interval`. In addition a call waits for a sync if it would leave `checkpoint_every` accepted records of the
    /// process not durable: a power cut loses fewer than that.
    Checkpoint,
    /// As `Process`, and each call returns when its record is durable: a power cut loses nothing. Calls of several
    /// threads share a sync.
    Sync,
}

/// Where ERROR records and above are shown if no sink accepts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// Standard error, at most 10 lines a second, then a count.
    Stderr,
    /// Nowhere; they are only counted.
    None,
}

/// Least and most bytes of one lane.
///
/// Chosen: below 32 KiB a lane has no room to grow; above 16 MiB four lanes fill the default cap.
pub const QUEUE_BYTES: std::ops::RangeInclusive<usize> = 32 * 1024..=16 * 1024 * 1024;

/// Least bytes of a spool: eight segments with room for a frame of 100 KiB each.
pub const MIN_SPOOL_BYTES: u64 = 1024 * 1024;

/// Why options were rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionsError {
    /// A value is out of its range.
    Range(String),
    /// The queue of the process is in use, and this option cannot change any more.
    InUse(String),
}

impl std::fmt::Display for OptionsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Range(text) | Self::InUse(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// Checks that the options that a queue is made with are the same as in `begun`.
    pub(super) fn fits(&self, begun: &Self) -> Result<(), OptionsError> {
        let changed = [
            ("durability", self.durability != begun.durability),
            ("queue_dir", self.queue_dir != begun.queue_dir),
            ("queue_total_bytes", self.queue_total_bytes != begun.queue_total_bytes),
            ("overflow_bytes", self.overflow_bytes != begun.overflow_bytes),
            ("spool_dir", self.spool_dir != begun.spool_dir),
            ("spool_bytes", self.spool_bytes != begun.spool_bytes),
            ("sync_interval", self.sync_interval != begun.sync_interval),
            ("checkpoint_every", self.checkpoint_every != begun.checkpoint_every),
            ("durable_levels", self.durable_levels != begun.durable_levels),
        ];
        match changed.iter().find(|(_, changed)| *changed) {
            None => Ok(()),
            Some((name, _)) => Err(OptionsError::InUse(format!(
                "{name} cannot change any more: the queue of this process is in use since its first record; \
                 give it with the first install() or handler"
            ))),
        }
    }

    /// Checks every range.
    ///
    /// # Errors
    ///
    /// Names the option, the rejected value, and the allowed range.
    pub fn validate(&self) -> Result<(), OptionsError> {
        if !QUEUE_BYTES.contains(&self.queue_bytes) {
            return Err(OptionsError::Range(format!(
                "queue_bytes must be from {} to {} bytes, not {}",
                QUEUE_BYTES.start(),
                QUEUE_BYTES.end(),
                self.queue_bytes
            )));
        }
        if self.spool_bytes < MIN_SPOOL_BYTES {
            return Err(OptionsError::Range(format!(
                "spool_bytes must be at least {MIN_SPOOL_BYTES} bytes, not {}",
                self.spool_bytes
            )));
        }
        if self.spool_dir.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err(OptionsError::Range("spool_dir must be an absolute path".to_owned()));
        }
        if self.spool_dir.is_some() && self.durability == Durability::Memory {
            return Err(OptionsError::Range(
                "spool_dir needs a durability other than \"memory\": what a spool holds is found by the queue on tmpfs"
                    .to_owned(),
            ));
        }
        if self.sync_interval.is_zero() || self.checkpoint_every == 0 {
            return Err(OptionsError::Range("sync_interval and checkpoint_every must be more than 0".to_owned()));
        }
        if !self.durable_levels.is_empty() && self.durability == Durability::Memory {
            return Err(OptionsError::Range(
                "durable_levels needs a durability other than \"memory\": what a killed process had queued in memory is \
                 lost"
                    .to_owned(),
            ));
        }
        if let Some(total) = self.queue_total_bytes
            && total < self.queue_bytes
        {
            return Err(OptionsError::Range(format!(
                "queue_total_bytes must be at least queue_bytes ({} bytes), not {total}",
                self.queue_bytes
            )));
        }
        Ok(())
    }
}
