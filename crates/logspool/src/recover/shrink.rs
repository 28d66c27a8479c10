//! Releases the memory of a dead process that contains no undelivered data.
//!
//! A dead process's files are kept while one of its log files cannot be written, or while its records are not wanted.
//! The kept files should take about as much tmpfs as the undelivered records, not the full size of the rings. There are
//! three steps, in this order:
//!
//! 1. Batches that every sink has written are removed from their lanes, as the collector of the process would have
//!    done.
//! 2. Pages of the segment without undelivered data become holes.
//! 3. Overflow files of sinks with no undelivered records, and blob files without a remaining reference, are removed.
//!
//! The remaining data can be read as before, even after a kill between two steps: the segment first notes that data is
//! no longer needed, and only then is the space released. If any part of the orphan is damaged, `run.rs` keeps all of
//! it for inspection.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::MetadataExt;

use logspool_lanes::queue::reader::PeekedRecord;
use logspool_lanes::segment::layout::{DEFINITIONS, Header, LaneHead, MANIFEST_BYTES, MANIFESTS, RINGS, lane_offset};
use logspool_lanes::segment::{PAGE, punch};
use logspool_sys::folder::Folder;

use super::claim::Claim;
use super::decoded::Decoded;
use super::image::Image;
use super::walk::{RecordVisitor, WrittenBatches};
use crate::render::blob_number;

/// Holes are made only if they release more than this number of bytes.
///
/// Chosen: it is more than the tables of a small program take. Every start examines every dead process.
const MIN_HOLE_BYTES: u64 = 64 * 1024;

/// Does the steps of the module documentation. Does nothing while other threads of this process work on the same
/// orphan.
///
/// # Errors
///
/// Returns an error if a system call fails, or `ResourceBusy` if another recoverer has begun.
pub fn shrink(folder: &Folder, claim: &Claim<'_>, decoded: &mut Decoded) -> io::Result<()> {
    let Some(segment) = claim.segment()? else { return Ok(()) };
    claim.check()?;
    let done = claim.alone(|| {
        decoded.refresh(segment)?;
        let passed = passed(decoded);
        advanced_words(&passed).into_iter().try_for_each(|(offset, word)| claim.raise(offset, word))?;
        make_holes(segment, &decoded.image, &passed)?;
        remove_files(folder, claim, decoded, &passed)
    });
    done.unwrap_or(Ok(()))
}

/// Returns the batches that no sink needs any more.
fn passed(decoded: &Decoded) -> WrittenBatches {
    let Decoded { plan, survey, progress, spilled, .. } = decoded;
    let sinks: Vec<usize> = decoded.pending().iter().map(|pending| pending.sink).collect();
    plan.written_batches(|batch| {
        let lacking = survey.lacking.get(&batch).copied().unwrap_or_default();
        // The message on dropped records follows this batch, and has a number in the stream.
        let has_message =
            |sink: usize| progress.numbering(sink).is_some_and(|numbering| numbering.message_batch == batch);
        let wants = |sink: usize| lacking & 1 << sink != 0 || has_message(sink);
        sinks.iter().any(|sink| wants(*sink) && progress.lacks(*sink, batch, spilled))
    })
}

/// Returns offsets and new values of the words that advance lanes and manifests past data that no sink needs. They are
/// in the order in which they must be stored.
fn advanced_words(passed: &WrittenBatches) -> Vec<(u64, u64)> {
    let mut notes = Vec::new();
    for (lane, position) in &passed.lanes {
        let word = |offset: usize| lane_offset(*lane as usize) + offset as u64;
        // Store `batched` first, so that it is never lower than the released position.
        notes.push((word(offset_of!(LaneHead, consumer.batched)), *position));
        notes.push((word(offset_of!(LaneHead, consumer.tail)), *position));
    }
    notes.push((offset_of!(Header, manifest_tail) as u64, passed.manifests));
    notes
}

/// Punches holes into all pages that contain no needed data.
fn make_holes(segment: &File, image: &Image, passed: &WrittenBatches) -> io::Result<()> {
    let status = segment.metadata()?;
    let needed = needed(image, passed);
    let bytes: u64 = needed.iter().map(|range| range.end - range.start).sum();
    if status.blocks() * 512 <= bytes + MIN_HOLE_BYTES {
        return Ok(());
    }
    // Start after the tables: their pages are allocated only for the entries that they hold.
    let mut from = MANIFESTS;
    for range in needed {
        if from < range.start {
            punch(segment, from, range.start - from);
        }
        from = range.end;
    }
    if from < status.len() {
        punch(segment, from, status.len() - from);
    }
    Ok(())
}

/// Returns the needed parts of manifests, definitions and rings, as whole pages, sorted and without overlap.
fn needed(image: &Image, passed: &WrittenBatches) -> Vec<Range<u64>> {
    let definitions = image.header(offset_of!(Header, definition_bytes)).min(RINGS - DEFINITIONS);
    let mut needed = Vec::new();
    needed.push(DEFINITIONS..DEFINITIONS + definitions);
    let tail = image.header(offset_of!(Header, manifest_tail));
    let manifests = tail.max(passed.manifests)..image.header(offset_of!(Header, manifest_head));
    push_in_ring(&mut needed, MANIFESTS, MANIFEST_BYTES, manifests);
    for lane in &image.lanes {
        let word = |offset: usize| image.word(lane_offset(lane.index as usize) + offset as u64);
        let left = lane.released.max(passed.position(lane.index))..lane.to;
        let switch = word(offset_of!(LaneHead, producer.switch));
        let (offset, bytes) = (word(offset_of!(LaneHead, first_offset)), word(offset_of!(LaneHead, first_bytes)));
        push_in_ring(&mut needed, offset, bytes, left.start..left.end.min(switch));
        let (offset, bytes) = (word(offset_of!(LaneHead, second_offset)), word(offset_of!(LaneHead, second_bytes)));
        let in_second = left.start.saturating_sub(switch)..left.end.saturating_sub(switch);
        push_in_ring(&mut needed, offset, bytes, in_second);
    }
    for range in &mut needed {
        *range = range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE);
    }
    needed.sort_by_key(|range| range.start);
    needed.dedup_by(|next, range| {
        let touches = next.start <= range.end;
        if touches {
            range.end = range.end.max(next.end);
        }
        touches
    });
    needed
}

/// Adds the file ranges that `positions` occupy in a ring of `bytes` bytes at file offset `offset`.
fn push_in_ring(needed: &mut Vec<Range<u64>>, offset: u64, bytes: u64, positions: Range<u64>) {
    if positions.start >= positions.end {
        return;
    }
    let (from, length) = (positions.start % bytes, positions.end - positions.start);
    if length >= bytes {
        return needed.push(offset..offset + bytes);
    }
    let to_end = length.min(bytes - from);
    needed.push(offset + from..offset + from + to_end);
    needed.push(offset..offset + length - to_end);
}

/// Removes overflow and blob files that no undelivered record needs.
fn remove_files(folder: &Folder, claim: &Claim<'_>, decoded: &Decoded, passed: &WrittenBatches) -> io::Result<()> {
    let leftover = &claim.leftover;
    for (sink, number) in leftover.overflow.iter().filter(|(sink, _)| decoded.progress.is_closed(*sink)) {
        folder.remove(&leftover.overflow_name(*sink, *number))?;
    }
    if leftover.blobs.is_empty() {
        return Ok(());
    }
    let mut referred = Blobs { passed: passed.batch, is_passed: false, numbers: HashSet::new() };
    decoded.plan.walk(&decoded.image, &mut referred);
    for number in leftover.blobs.iter().filter(|number| !referred.numbers.contains(number)) {
        folder.remove(&leftover.blob_name(*number))?;
    }
    Ok(())
}

/// Collects the blob numbers that the batches after `passed` refer to.
struct Blobs {
    passed: u64,
    is_passed: bool,
    numbers: HashSet<u64>,
}

impl RecordVisitor for Blobs {
    fn begin(&mut self, number: u64) -> ControlFlow<()> {
        self.is_passed = number <= self.passed;
        ControlFlow::Continue(())
    }

    fn record(&mut self, peeked: PeekedRecord<'_>) -> ControlFlow<()> {
        if !self.is_passed {
            self.numbers.extend(blob_number(&peeked));
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
