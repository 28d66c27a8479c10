//! The first thing a life does with what the one before was writing: it reads it, writes it into a segment of its own
//! and syncs that.
//!
//! The pages of the last segment may lie in the cache alone; a sync that failed in the former life would not fail
//! again; and a segment that was to take frames over from one whose sync had failed may hold only some of them. So
//! every frame from the last segment's first number on is taken, wherever it lies; of two that overlap the one in the
//! later segment.

use std::collections::{BTreeMap, VecDeque};

use super::defect::Defect;
use super::disk::{Disk, DiskError, read_patiently};
use super::error::SpoolError;
use super::frame::{HEAD_BYTES, Head, Held};
use super::segment::{MAX_SEGMENT_BYTES, Segment};
use super::spool::Spool;

/// Bytes that one life takes over in memory. A spool's own last segment is a quarter of it at most.
const MAX_TAKEN_BYTES: u64 = 4 * MAX_SEGMENT_BYTES;

/// Where a frame lies.
struct Place {
    segment: usize,
    offset: u64,
    head: Head,
}

impl<D: Disk> Spool<D> {
    /// Takes over what the last segment of the former life holds, and was to hold.
    pub(super) fn take_over(&mut self) -> Result<(), SpoolError> {
        let Some(last) = self.segments.back() else { return Ok(()) };
        if Defect::TrustSyncOfTail.is_planted() {
            return Ok(self.disks[last.disk].sync_data(&last.file)?);
        }
        let from = last.first;
        let places = self.places(from);
        let Some(first) = places.first_key_value().map(|(first, _)| *first) else { return Ok(()) };
        // What is taken is read from memory alone, what overlaps it never.
        let (mut held, mut held_bytes, mut end) = (VecDeque::new(), 0, u64::MAX);
        for place in places.into_values() {
            // It was whole a moment ago, or there is more than any spool writes: the rest stays where it is.
            let loaded = if held_bytes < MAX_TAKEN_BYTES { self.load(&place) } else { Ok(None) };
            let Ok(Some(frame)) = loaded else {
                end = place.head.first;
                break;
            };
            held_bytes += frame.len();
            held.push_back(frame);
        }
        for segment in &mut self.segments {
            forget(segment, first, end);
        }
        self.unsynced_bytes = held_bytes;
        self.unsynced = held;
        self.takes_over_from = Some(from);
        self.rescue()
    }

    /// The frames from number `from` on that somebody still wants, by their first numbers.
    fn places(&self, from: u64) -> BTreeMap<u64, Place> {
        let mut places: BTreeMap<u64, Place> = BTreeMap::new();
        let mut order: Vec<usize> = (0..self.segments.len()).rev().collect();
        if Defect::OldCopyWins.is_planted() {
            order.reverse();
        }
        for index in order {
            let segment = &self.segments[index];
            let disk = &self.disks[segment.disk];
            for run in segment.runs.iter().filter(|run| run.end > from) {
                let mut offset = run.offset;
                while offset < run.stop {
                    let Ok(Some(head)) = read_head(disk, segment, offset) else { break };
                    let before = places.range(..head.end()).next_back();
                    if head.first >= from && before.is_none_or(|(_, place)| place.head.end() <= head.first) {
                        places.insert(head.first, Place { segment: index, offset, head });
                    }
                    offset += head.frame_bytes();
                }
            }
        }
        // Only now: what nobody wants keeps an older frame across it from being wanted.
        places.retain(|_, place| place.head.end() > self.saved_floor);
        places
    }

    fn load(&self, place: &Place) -> Result<Option<Held>, DiskError> {
        let segment = &self.segments[place.segment];
        let Head { payload_bytes, first, follows, count, codec, .. } = place.head;
        let mut payload = vec![0; payload_bytes as usize];
        read_patiently(&self.disks[segment.disk], &segment.file, &mut payload, place.offset + HEAD_BYTES as u64)?;
        let is_whole = place.head.is_payload(&payload, segment.key);
        Ok(is_whole.then(|| Held::new(first, follows, count, codec, &payload)))
    }
}

fn read_head<D: Disk>(disk: &D, segment: &Segment<D>, offset: u64) -> Result<Option<Head>, DiskError> {
    let mut bytes = [0; HEAD_BYTES];
    read_patiently(disk, &segment.file, &mut bytes, offset)?;
    Ok(Head::parse(&bytes, segment.key))
}

/// Takes the frames between two numbers out of what a segment is read for.
fn forget<D: Disk>(segment: &mut Segment<D>, first: u64, end: u64) {
    let before = segment.runs.clone();
    segment.runs.retain(|run| run.first < first || run.end > end);
    for run in &mut segment.runs {
        if run.first < first {
            run.end = run.end.min(first);
        } else {
            run.first = run.first.max(end);
        }
    }
    segment.keeps_unsynced = before != segment.runs;
    segment.has_leftovers |= segment.keeps_unsynced;
}
