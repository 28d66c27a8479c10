//! Copies of data that cannot be delivered, for inspection: damaged bytes in `quarantine/`, and batches that a sink
//! refuses permanently in `dead/`. Making a copy is best effort, and each folder has a limit. Beyond the limit the data
//! is only counted.
//!
//! `quarantine/SEGMENT-OFFSET.bad` are raw bytes of a segment. `dead/CONSUMER-FIRST.frame` is one frame (`frame.rs`)
//! whose checksums are made with an id of zeros.

use super::disk::{Disk, DiskError};
use super::frame::{FrameKey, UnsyncedFrame};
use super::id::Id;
use super::item::Frame;
use super::scan::Damage;

/// Maximum number of bytes in a folder of copies.
///
/// Chosen: it is more than a person reads. A failing disk must not fill up with copies of its own damage.
const MAX_REMAINS_BYTES: u64 = 16 * 1024 * 1024;
/// Number of bytes that are copied at once.
const PIECE_BYTES: u64 = 256 * 1024;

/// A folder of copies, opened when the first copy is made.
#[derive(Debug)]
struct CopyFolder<D: Disk> {
    name: &'static str,
    folder: Option<(D, u64)>,
}

impl<D: Disk> CopyFolder<D> {
    /// Makes a file and fills it, unless the file exists or the limit is reached.
    fn add_copy(
        &mut self,
        parent: &D,
        name: &str,
        bytes: u64,
        fill: impl FnOnce(&D, &D::File) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        if self.folder.is_none() {
            let folder = parent.child(self.name)?;
            let names = folder.names()?;
            let length = |name: &String| folder.open(name).and_then(|file| folder.bytes(&file)).unwrap_or(0);
            let taken = names.iter().map(length).sum();
            self.folder = Some((folder, taken));
        }
        let (folder, taken) = self.folder.as_mut().expect("it was opened above");
        if *taken + bytes > MAX_REMAINS_BYTES || folder.open(name).is_ok() {
            return Ok(());
        }
        let file = folder.create(name)?;
        *taken += bytes;
        fill(folder, &file).and_then(|()| folder.sync_data(&file)).and_then(|()| folder.sync_folder())
    }
}

/// The folders `quarantine/` and `dead/`, and the counts of this life of the spool.
#[derive(Debug)]
pub(super) struct UndeliverableCopies<D: Disk> {
    quarantine: CopyFolder<D>,
    dead: CopyFolder<D>,
    /// Number of damaged places found.
    pub(super) quarantined_frames: u64,
    /// Number of batches that a sink refused permanently.
    pub(super) dead_frames: u64,
}

impl<D: Disk> UndeliverableCopies<D> {
    pub(super) fn new() -> Self {
        Self {
            quarantine: CopyFolder { name: "quarantine", folder: None },
            dead: CopyFolder { name: "dead", folder: None },
            quarantined_frames: 0,
            dead_frames: 0,
        }
    }

    /// Counts a damaged place and copies it.
    pub(super) fn quarantine(&mut self, disk: &D, file: &D::File, segment: u64, damage: Damage) {
        self.quarantined_frames += 1;
        let name = format!("{segment:020}-{:010}.bad", damage.offset);
        // If the copy cannot be made, the original and the counter remain.
        let _ = self.quarantine.add_copy(disk, &name, damage.bytes, |folder, copy| {
            let mut done = 0;
            while done < damage.bytes {
                let mut piece = vec![0; (damage.bytes - done).min(PIECE_BYTES) as usize];
                disk.read_at(file, &mut piece, damage.offset + done)?;
                folder.write_at(copy, &piece, done)?;
                done += piece.len() as u64;
            }
            Ok(())
        });
    }

    /// Counts a batch that a sink refuses, and stores a copy.
    pub(super) fn copy_refused(&mut self, disk: &D, consumer: u64, frame: &Frame) -> Result<(), DiskError> {
        self.dead_frames += 1;
        let mut held = UnsyncedFrame::new(frame.first, frame.first, frame.count, frame.codec, &frame.payload);
        let name = format!("{consumer:016x}-{:020}.frame", frame.first);
        let bytes = held.len();
        self.dead.add_copy(disk, &name, bytes, |folder, copy| {
            folder.write_at(copy, held.bytes_for(FrameKey::new(&Id::default())), 0)
        })
    }
}
