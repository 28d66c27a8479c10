//! The log file of a sink to which other processes may append too, as the writer sees it.

use std::path::PathBuf;

use logspool_sys::folder::Folder;

/// The source of the records that are appended.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Folder of the segment.
    pub folder: Folder,
    /// NAME of the segment.
    pub name: String,
    /// Its random identity.
    pub uuid: [u8; 16],
    /// Id of the sink.
    pub sink: u32,
    /// Path of the log file.
    pub path: PathBuf,
}

/// A log file with a sidecar ([`SharedFile`](crate::sidecar::SharedFile)): the writer says whose records come, which
/// chunk is next, and what the segment has noted.
pub trait SharedLog {
    /// Sets the source of the records. Opens nothing before the first record.
    fn set_origin(&mut self, origin: Origin);

    /// Announces the chunk of `batch`, or its rest. Its first `base` bytes are not part of the lines passed to
    /// `append`.
    fn begin(&mut self, batch: u64, base: u64);

    /// Call after the segment has noted the bytes. Clears the intent and leaves, unless a rest is still to come.
    fn finish_append(&mut self);

    /// Call after an error. Clears the intent and leaves, unless a rest is still to come.
    fn abort_append(&mut self);
}
