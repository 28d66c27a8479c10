//! Manifests: the list of records in each batch, published before the first byte of the batch is written to any sink.
//!
//! The manifests are in a byte ring of the segment; only the collector writes it. An entry consists of a head and its
//! lane ranges, and it never crosses the end of the ring. The space of an entry is free after every sink has passed its
//! batch.

use std::sync::atomic::Ordering;

use logspool_sys::published::Published;

use crate::segment::Segment;
use crate::segment::layout::{FIRST_MANIFEST_BYTES, LaneRange, MANIFEST_BYTES, MANIFESTS, ManifestHead};

/// Bytes of a manifest with `lanes` ranges.
pub const fn manifest_bytes(lanes: usize) -> u64 {
    (size_of::<ManifestHead>() + lanes * size_of::<LaneRange>()) as u64
}

/// Maximum number of lanes in one batch. It is the number of lanes of a segment, so a manifest always has room.
pub const MAX_BATCH_LANES: usize = crate::segment::layout::MAX_LANES;

/// Makes room for the manifest of a batch of any size. `false`: the ring is full, or there is no memory for its next
/// page.
///
/// After `false`, new batches wait until the batches in flight are written. With no batch in flight there is always
/// room.
pub fn make_room(segment: &Segment) -> bool {
    let header = segment.header();
    let mut head = header.manifest_head.load(Ordering::Relaxed);
    let used = head - header.manifest_tail.load(Ordering::Relaxed);
    if used == 0 && !head.is_multiple_of(MANIFEST_BYTES) {
        head = rewind(segment, head);
    }
    // Twice the longest entry: one for the entry, and one for the filler before it.
    let longest = manifest_bytes(MAX_BATCH_LANES);
    let place = head % MANIFEST_BYTES;
    MANIFEST_BYTES - used >= 2 * longest && segment.ensure(MANIFESTS + place, longest.min(MANIFEST_BYTES - place))
}

/// Moves the head of an empty ring to the ring's start, whose pages always have memory. Returns the new head.
fn rewind(segment: &Segment, head: u64) -> u64 {
    let header = segment.header();
    let start = head.next_multiple_of(MANIFEST_BYTES);
    // A kill between two of these stores leaves filler at most.
    fill(segment, head);
    header.manifest_head.publish(start);
    header.manifest_tail.publish(start);
    start
}

/// Turns the bytes from `position` to the end of the ring into filler.
fn fill(segment: &Segment, position: u64) {
    let place = MANIFESTS + position % MANIFEST_BYTES;
    // A page without memory reads as filler already.
    if segment.has_memory(place, 4) {
        // SAFETY: inside the manifest ring; positions are multiples of 8, so a word always fits.
        unsafe { segment.at(place).cast::<u32>().write(0) };
    }
}

/// Publishes a manifest; call [`make_room`] first. Returns the position after it, for [`release`].
pub fn publish(segment: &Segment, mut head: ManifestHead, ranges: &[LaneRange]) -> u64 {
    let header = segment.header();
    let bytes = manifest_bytes(ranges.len());
    let mut position = header.manifest_head.load(Ordering::Relaxed);
    let to_end = MANIFEST_BYTES - position % MANIFEST_BYTES;
    if bytes > to_end {
        fill(segment, position);
        position += to_end;
    }
    head.bytes = bytes as u32;
    head.lanes = ranges.len() as u32;
    let place = segment.at(MANIFESTS + position % MANIFEST_BYTES);
    // SAFETY: `bytes` fit before the end of the ring and have memory; `make_room` made sure that no manifest there is
    // in use.
    unsafe {
        place.cast::<ManifestHead>().write(head);
        let first = place.add(size_of::<ManifestHead>()).cast::<LaneRange>();
        std::ptr::copy_nonoverlapping(ranges.as_ptr(), first, ranges.len());
    }
    // A recoverer copies the file after the owner's death, so these stores must keep their order.
    header.manifest_head.publish(position + bytes);
    position + bytes
}

/// Frees the space of all manifests before `position`.
pub fn release(segment: &Segment, position: u64) {
    segment.header().manifest_tail.publish(position);
}

const _: () = {
    assert!(size_of::<ManifestHead>() == 32);
    assert!(size_of::<LaneRange>() == 24);
    assert!(4 * manifest_bytes(MAX_BATCH_LANES) <= MANIFEST_BYTES);
    assert!(manifest_bytes(MAX_BATCH_LANES) <= FIRST_MANIFEST_BYTES);
};
