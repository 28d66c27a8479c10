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
    /// Random identity of the segment.
    pub uuid: [u8; 16],
    /// Id of the sink.
    pub sink: u32,
    /// Path of the log file that the records are for.
    pub path: PathBuf,
}

/// A log file with a sidecar ([`SharedFile`](crate::sidecar::SharedFile)). The writer tells it the source of the
/// records, which chunk is next, and what the segment has noted.
pub trait SharedLog {
    /// Sets the source of the records. Opens nothing before the first record.
    fn set_origin(&mut self, origin: Origin);

    /// Announces that the chunk of `batch`, or its unwritten part, comes next. The first `base` bytes of the chunk are
    /// not part of the lines passed to `append`.
    fn begin(&mut self, batch: u64, base: u64);

    /// Call after the segment has noted the bytes. Clears the intent and releases the lock, unless a part of the chunk
    /// is still to be appended.
    fn finish_append(&mut self);

    /// Call after an error. Clears the intent and releases the lock, unless a part of the chunk is still to be
    /// appended.
    fn abort_append(&mut self);
}
