//! Reads a spool whose owner is gone: its frames in order, without changing anything.
//!
//! A view believes the frames that an opening would believe (`recover.rs`), and ignores acks. Recovery reads how far
//! the sinks got from the process's segment in shared memory, or calls [`View::acked`].

use super::checkpoint;
use super::disk::{Disk, DiskError, read_patiently};
use super::frame::{FrameHead, HEAD_BYTES};
use super::recover::{FoundSegment, believed};
use super::spool_segment::{FileKind, FrameRun, Header, Segment, file_kind, segment_name};

/// A frame, and where it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewedFrame {
    /// Number of the frame's first record.
    pub first: u64,
    /// Number of records.
    pub count: u32,
    /// Encoding of the payload.
    pub codec: u8,
    segment: u32,
    offset: u64,
}

impl ViewedFrame {
    /// The number after the last record.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

/// A read-only view of a spool; see the module documentation.
#[derive(Debug)]
pub struct View<D: Disk> {
    disk: D,
    segments: Vec<Segment<D>>,
    /// Number of bytes between frames that are not a frame.
    damaged_bytes: u64,
    acked: u64,
}

impl<D: Disk> View<D> {
    /// Opens a view of a folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be listed, or a file cannot be read.
    pub fn open(disk: D) -> Result<Self, DiskError> {
        let mut found = Vec::new();
        for name in disk.names()? {
            let FileKind::Segment(number) = file_kind(&name) else { continue };
            let file = disk.open(&segment_name(number))?;
            let bytes = disk.bytes(&file)?;
            if let Some(header) = Header::read(&disk, &file)?.filter(|header| header.number == number) {
                found.push(FoundSegment { disk: 0, file, bytes, header });
            }
        }
        found.sort_by_key(|segment| (segment.header.epoch, segment.header.number));
        let state = checkpoint::newest(std::slice::from_ref(&disk));
        let stream = state.as_ref().map(|state| state.stream).or(found.last().map(|segment| segment.header.stream));
        found.retain(|segment| Some(segment.header.stream) == stream);
        let (segments, damages) = believed(std::slice::from_ref(&disk), found);
        let damaged_bytes = damages.iter().map(|damaged| damaged.damage.bytes).sum();
        let acked = state.and_then(|state| state.positions.values().min().copied()).unwrap_or(0);
        Ok(Self { disk, segments: segments.into(), damaged_bytes, acked })
    }

    /// Every record below this number was acked at the last checkpoint.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Number of bytes between frames that are not a frame.
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// Calls `show` for each frame with the first bytes of its payload, at most `peek.len()` of them.
    ///
    /// # Errors
    ///
    /// The disk's error.
    pub fn walk(&self, peek: &mut [u8], mut show: impl FnMut(ViewedFrame, &[u8])) -> Result<(), DiskError> {
        let segments = self.segments.iter().enumerate();
        let runs = segments.flat_map(|(index, segment)| segment.runs.iter().map(move |run| (index, segment, run)));
        let mut runs: Vec<(usize, &Segment<D>, &FrameRun)> = runs.collect();
        runs.sort_by_key(|(.., run)| run.first);
        for (index, segment, run) in runs {
            let mut offset = run.offset;
            while offset < run.stop {
                let Some(head) = segment.head(&self.disk, offset)? else { break };
                let length = peek.len().min(head.payload_bytes as usize);
                let begin = &mut peek[..length];
                read_patiently(&self.disk, &segment.file, begin, offset + HEAD_BYTES as u64)?;
                let FrameHead { first, count, codec, .. } = head;
                show(ViewedFrame { first, count, codec, segment: index as u32, offset }, begin);
                offset += head.frame_bytes();
            }
        }
        Ok(())
    }

    /// Reads the payload of a frame. `None`: the payload is damaged.
    ///
    /// # Errors
    ///
    /// The disk's error.
    pub fn read(&self, frame: &ViewedFrame) -> Result<Option<Vec<u8>>, DiskError> {
        let segment = &self.segments[frame.segment as usize];
        match segment.head(&self.disk, frame.offset)? {
            Some(head) => segment.payload(&self.disk, frame.offset, &head),
            None => Ok(None),
        }
    }
}
