//! The order in which the records of an image are visited. Only records that a sink may lack are visited.
//!
//! First come the batches of the manifests, each in the order in which the collector merged it. Then come the records
//! that were published but never batched, in order of their stamps. A batch whose lane space was released is skipped:
//! every sink has written the batch, or has it in an overflow file. If a manifest is damaged, the records that this
//! manifest and later ones described count as never batched. Delivering records twice is better than losing them.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::ControlFlow;

use logspool_lanes::manifest::manifest_bytes;
use logspool_lanes::queue::merge::{LaneShare, in_order};
use logspool_lanes::queue::reader::PeekedRecord;
use logspool_lanes::segment::layout::{Header, LaneRange, MANIFEST_BYTES, MANIFESTS, MAX_LANES, ManifestHead};

use super::damage::Damage;
use super::image::Image;

/// Number of the pseudo batch that contains the records that were never batched. No real batch has this number.
pub const REST: u64 = u64::MAX;

/// Receives the records that [`WalkPlan::walk`] visits.
pub trait RecordVisitor {
    /// Called before the records of batch `number`.
    fn begin(&mut self, number: u64) -> ControlFlow<()>;

    /// Called for each record.
    fn record(&mut self, peeked: PeekedRecord<'_>) -> ControlFlow<()>;

    /// Called after the last record of the batch.
    fn end(&mut self) -> ControlFlow<()>;
}

#[derive(Debug)]
struct Batch {
    number: u64,
    ranges: Vec<LaneRange>,
    /// Position after the manifest of the batch; 0 for records that were never batched.
    end: u64,
}

/// The batches that every sink has written.
#[derive(Debug, Default)]
pub struct WrittenBatches {
    /// Number of the last such batch. It may be [`REST`]; it is 0 if there is none.
    pub batch: u64,
    /// Position after the manifest of the last such batch; 0 if there is none.
    pub manifests: u64,
    /// For each lane, the position after the records of these batches.
    pub lanes: BTreeMap<u32, u64>,
}

impl WrittenBatches {
    /// Position of a lane before which all records are written by every sink.
    pub fn position(&self, lane: u32) -> u64 {
        self.lanes.get(&lane).copied().unwrap_or(0)
    }
}

/// The batches of an image, in the order in which they are visited.
#[derive(Debug)]
pub struct WalkPlan {
    batches: Vec<Batch>,
    last: u64,
    /// Amount of manifest data that could not be read.
    pub damage: Damage,
}

impl WalkPlan {
    /// Makes the plan for an image.
    pub fn of(image: &Image) -> Self {
        let mut plan = Self { batches: Vec::new(), last: 0, damage: Damage::default() };
        let mut reached = [0; MAX_LANES];
        let head = image.header(offset_of!(Header, manifest_head));
        let tail = image.header(offset_of!(Header, manifest_tail));
        if tail > head || head - tail > MANIFEST_BYTES || !tail.is_multiple_of(8) {
            plan.damage.bytes = MANIFEST_BYTES;
        } else {
            plan.damage.bytes = plan.read_manifests(image, tail, head, &mut reached);
        }
        let known = plan.batches.last().map_or(0, |batch| batch.number);
        plan.last = known.max(image.header(offset_of!(Header, batch)));
        let released = |range: &LaneRange| range.from < image.released(range.lane);
        // The lanes of a batch are released one after the other. So one released lane proves that every sink has
        // written the batch or has it in an overflow file.
        plan.batches.retain(|batch| !batch.ranges.iter().any(released));
        plan.add_rest(image, &reached);
        plan
    }

    /// Number of the newest batch that the segment mentions.
    pub fn last_batch(&self) -> u64 {
        self.last
    }

    /// Reads the manifests from position `tail` to `head`. Returns the number of bytes that are not valid manifests.
    fn read_manifests(&mut self, image: &Image, tail: u64, head: u64, reached: &mut [u64; MAX_LANES]) -> u64 {
        let mut position = tail;
        while position < head {
            let to_end = MANIFEST_BYTES - position % MANIFEST_BYTES;
            let place = MANIFESTS + position % MANIFEST_BYTES;
            if to_end < size_of::<ManifestHead>() as u64 || image.word32(place) == 0 {
                // These bytes are filler at the end of the ring.
                position += to_end;
                continue;
            }
            let bytes = u64::from(image.word32(place));
            let before = self.batches.last().map_or(0, |batch| batch.number);
            match read_manifest(image, place, to_end.min(head - position), reached) {
                Some(batch) if batch.number > before && batch.number != REST => {
                    batch.ranges.iter().for_each(|range| reached[range.lane as usize] = range.to);
                    self.batches.push(Batch { end: position + bytes, ..batch });
                }
                _ => return head - position,
            }
            position += bytes;
        }
        0
    }

    /// Adds the records that were never batched. `reached` holds, for each lane, the position up to which the manifests
    /// cover the lane.
    fn add_rest(&mut self, image: &Image, reached: &[u64; MAX_LANES]) {
        let mut ranges = Vec::new();
        for lane in &image.lanes {
            let noted = if (lane.released..=image.published(lane.index)).contains(&lane.batched) {
                lane.batched
            } else {
                self.damage.bytes += size_of::<u64>() as u64;
                lane.released
            };
            // The manifest is stored before the note in the lane. So the last manifest may cover more records than the
            // note.
            let from = noted.max(reached[lane.index as usize]);
            if from < lane.to {
                ranges.push(LaneRange { lane: lane.index, incarnation: lane.incarnation, from, to: lane.to });
            }
        }
        if !ranges.is_empty() {
            self.batches.push(Batch { number: REST, ranges, end: 0 });
        }
    }

    /// Returns the batches that every sink has written. `lacks` says whether a sink still lacks a batch.
    pub fn written_batches(&self, lacks: impl Fn(u64) -> bool) -> WrittenBatches {
        let mut passed = WrittenBatches::default();
        for batch in self.batches.iter().take_while(|batch| !lacks(batch.number)) {
            passed.batch = batch.number;
            passed.manifests = passed.manifests.max(batch.end);
            passed.lanes.extend(batch.ranges.iter().map(|range| (range.lane, range.to)));
        }
        passed
    }

    /// Visits the records in order, until the visitor breaks. Returns the number of bytes that are not valid records.
    pub fn walk(&self, image: &Image, visit: &mut impl RecordVisitor) -> u64 {
        let mut unread = 0;
        for batch in &self.batches {
            if visit.begin(batch.number).is_break() {
                break;
            }
            let mut shares = Vec::with_capacity(batch.ranges.len());
            for range in &batch.ranges {
                // If a lane is missing, it could not be read, and its bytes are already counted as damage.
                if let Ok(at) = image.lanes.binary_search_by_key(&range.lane, |lane| lane.index)
                    && let Some(reader) = image.lanes[at].reader(range.from, range.to)
                {
                    let lane = range.lane as usize;
                    shares.push(LaneShare { reader, lane, incarnation: range.incarnation, from: range.from });
                }
            }
            let mut flow = ControlFlow::Continue(());
            in_order(&mut shares, u64::MAX, |_, peeked| {
                flow = visit.record(peeked);
                flow
            });
            unread += shares.iter().map(|share| share.reader.unread()).sum::<u64>();
            if flow.is_break() || visit.end().is_break() {
                break;
            }
        }
        unread
    }
}

/// Reads the manifest at `place`, which takes at most `room` bytes. `reached` holds, for each lane, the position after
/// the previous manifest.
fn read_manifest(image: &Image, place: u64, room: u64, reached: &[u64; MAX_LANES]) -> Option<Batch> {
    let field = |offset: usize| place + offset as u64;
    let lanes = image.word32(field(offset_of!(ManifestHead, lanes))) as usize;
    let bytes = u64::from(image.word32(field(offset_of!(ManifestHead, bytes))));
    if lanes > MAX_LANES || bytes != manifest_bytes(lanes) || bytes > room {
        return None;
    }
    let mut ranges: Vec<LaneRange> = Vec::with_capacity(lanes);
    for index in 0..lanes {
        let at = place + manifest_bytes(index);
        let range = LaneRange {
            lane: image.word32(at + offset_of!(LaneRange, lane) as u64),
            incarnation: image.word32(at + offset_of!(LaneRange, incarnation) as u64),
            from: image.word(at + offset_of!(LaneRange, from) as u64),
            to: image.word(at + offset_of!(LaneRange, to) as u64),
        };
        let ascending = ranges.last().is_none_or(|last| last.lane < range.lane);
        let continues = reached.get(range.lane as usize).is_some_and(|reached| *reached <= range.from);
        if !ascending || !continues || range.from > range.to || range.to > image.published(range.lane) {
            return None;
        }
        ranges.push(range);
    }
    Some(Batch { number: image.word(field(offset_of!(ManifestHead, batch))), ranges, end: 0 })
}
