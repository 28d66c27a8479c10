//! Takes over the former life's last segment: reads its frames, writes them into a new segment and syncs the new
//! segment.
//!
//! The pages of the last segment may be in the cache alone, and a sync that failed in the former life would not fail
//! again. If the last segment was to replace another segment whose sync failed, it may hold only some of the frames of
//! that segment. So every frame from the last segment's first number on is taken over, from any segment that holds it.

use std::collections::BTreeMap;

use super::defect::Defect;
use super::disk::{Disk, DiskError};
use super::error::SpoolError;
use super::frame::{FrameHead, UnsyncedFrame};
use super::spool::Spool;
use super::spool_segment::{FrameRun, MAX_SEGMENT_BYTES, Segment};

/// Maximum number of bytes that one life takes over in memory. The last segment of a spool has at most a quarter of it.
const MAX_TAKEN_BYTES: u64 = 4 * MAX_SEGMENT_BYTES;

/// Segment and offset of a frame.
struct FramePlace {
    segment: usize,
    offset: u64,
    head: FrameHead,
}

impl<D: Disk> Spool<D> {
    /// Takes over the frames that the former life's last segment holds or was to hold.
    pub(super) fn take_over(&mut self) -> Result<(), SpoolError> {
        let Some(last) = self.segments.back() else { return Ok(()) };
        if Defect::TrustSyncOfTail.is_planted() {
            return Ok(self.disks[last.disk].sync_data(&last.file)?);
        }
        let from = last.first;
        let mut places = self.places(from);
        places.retain(|_, place| place.head.end() > self.saved_floor);
        let (mut held_bytes, mut left) = (0, Vec::new());
        for place in places.into_values() {
            // The frame stays in its segment if it has become unreadable, or if `MAX_TAKEN_BYTES` would be exceeded. No
            // spool writes that many bytes.
            match (held_bytes < MAX_TAKEN_BYTES).then(|| self.load(&place)) {
                Some(Ok(Some(frame))) => {
                    held_bytes += frame.len();
                    self.unsynced.push_back(frame);
                }
                _ => left.push(place),
            }
        }
        // The frames taken over are read from memory only. Frames on disk that overlap them are not read.
        for segment in &mut self.segments {
            drop_frames_from(segment, from);
        }
        for FramePlace { segment, offset, head } in left {
            FrameRun::of(&head, offset).add_to(&mut self.segments[segment].runs);
        }
        self.unsynced_bytes = held_bytes;
        self.takes_over_from = Some(from);
        self.rescue()
    }

    /// The frames with first numbers >= `from`, keyed by first number.
    fn places(&self, from: u64) -> BTreeMap<u64, FramePlace> {
        let mut places = BTreeMap::new();
        for (index, segment) in self.segments.iter().enumerate().rev() {
            for run in segment.runs.iter().filter(|run| run.end > from) {
                let mut offset = run.offset;
                while offset < run.stop {
                    let Ok(Some(head)) = segment.head(&self.disks[segment.disk], offset) else { break };
                    if head.first >= from {
                        places.insert(head.first, FramePlace { segment: index, offset, head });
                    }
                    offset += head.frame_bytes();
                }
            }
        }
        places
    }

    fn load(&self, place: &FramePlace) -> Result<Option<UnsyncedFrame>, DiskError> {
        let segment = &self.segments[place.segment];
        let payload = segment.payload(&self.disks[segment.disk], place.offset, &place.head)?;
        let FrameHead { first, follows, count, codec, .. } = place.head;
        Ok(payload.map(|payload| UnsyncedFrame::new(first, follows, count, codec, &payload)))
    }
}

/// Drops every frame of `segment` whose first number is >= `from`. `from` must be the first number of a frame.
fn drop_frames_from<D: Disk>(segment: &mut Segment<D>, from: u64) {
    if segment.end() > from {
        segment.runs.retain(|run| run.first < from);
        if let Some(run) = segment.runs.last_mut() {
            run.end = run.end.min(from);
        }
        segment.keeps_unsynced = true;
        segment.has_leftovers = true;
    }
}
