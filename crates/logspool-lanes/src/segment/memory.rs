//! Tests of a segment's memory: how much it takes, and its behaviour when no more is available.

use std::os::unix::fs::PermissionsExt;

use logspool_sys::clock::CalibrationPoint;

use super::*;
use crate::manifest;
use crate::segment::layout::{LaneRange, MANIFEST_BYTES, ManifestHead};

/// A segment with a file in a folder of its own.
struct OnTmpfs {
    segment: Segment,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for OnTmpfs {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        &self.segment
    }
}

fn on_tmpfs() -> OnTmpfs {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let segment = Segment::create(folder.path(), None).unwrap();
    segment.prepare_shared_lanes();
    OnTmpfs { segment, _folder: folder }
}

fn define(segment: &Segment, table: Table, bytes: usize) -> Option<u32> {
    segment.define(table, |encoder| {
        encoder.tuple(1).str(&"x".repeat(bytes));
    })
}

/// Stores definitions until there is no more room, then checks that further ones are stored after room is made.
fn defines_until_full(table: Table, bytes: usize) -> usize {
    let segment = on_tmpfs();
    if table != Table::Formats {
        // Reserves enough space for definitions, so that the ids run out first.
        assert!(segment.ensure(layout::DEFINITIONS, 64 * 1024));
    }
    segment.set_full(true);
    let defined = std::iter::from_fn(|| define(&segment, table, bytes)).count();
    let bytes_before = segment.file_bytes();
    assert!(define(&segment, table, bytes).is_none());
    segment.set_full(false);
    let id = define(&segment, table, bytes).expect("there is room again");

    assert_eq!(defined as u32 + 1, id, "no id was used up");
    assert!(segment.file_bytes() > bytes_before);
    assert!(segment.definition(table, id).is_some() && segment.definition(table, 1).is_some());
    defined
}

#[test]
fn a_process_that_logs_little_takes_little_memory() {
    let segment = on_tmpfs();
    let index = segment.take_lane().unwrap();
    for table in [Table::Sites, Table::Routes, Table::Formats, Table::Sinks] {
        define(&segment, table, 100).unwrap();
    }
    assert!(manifest::make_room(&segment) && segment.has_room_for_point());

    assert_eq!(SHARED_LANES, index);
    assert!(segment.file_bytes() <= 112 * 1024, "{} bytes", segment.file_bytes());
    assert_eq!(2 * FIRST_RING_BYTES, segment.ring_bytes());
    segment.remove_files();
}

#[test]
fn a_table_without_memory_for_its_next_page_is_full_until_there_is_some() {
    // Id 0 is never handed out.
    assert_eq!(4096 / 8 - 1, defines_until_full(Table::Sites, 1));
    assert_eq!(4096 / 8 - 1, defines_until_full(Table::Routes, 1));
    assert_eq!(4096 / 512 - 1, defines_until_full(Table::Sinks, 1));
    assert!((5..8).contains(&defines_until_full(Table::Formats, 1000)), "two pages of definitions");
}

#[test]
fn an_id_that_was_never_assigned_is_not_looked_up() {
    let segment = on_tmpfs();
    let before = segment.file_bytes();
    for table in [Table::Sites, Table::Routes, Table::Formats, Table::Sinks] {
        assert!((0..table.capacity() as u32).all(|id| segment.definition(table, id).is_none()));
    }

    assert_eq!(before, segment.file_bytes());
}

#[test]
fn a_thread_without_memory_for_a_lane_shares_an_existing_one() {
    let segment = on_tmpfs();
    segment.set_full(true);
    assert_eq!(None, segment.take_lane());
    assert!(segment.open_shared_lane(0));
    assert!((1..SHARED_LANES).all(|index| !segment.open_shared_lane(index)));
    assert_eq!(FIRST_RING_BYTES, segment.ring_bytes());

    segment.set_full(false);
    assert!((0..SHARED_LANES).all(|index| segment.open_shared_lane(index)));
    assert_eq!(Some(SHARED_LANES), segment.take_lane(), "neither a lane nor a place was used up");
    assert_eq!(segment.header().ring_end.load(Ordering::Relaxed), layout::RINGS + segment.ring_bytes());
}

#[test]
fn lanes_beyond_the_last_allocate_no_rings() {
    let segment = Segment::in_memory(None).unwrap();
    segment.prepare_shared_lanes();
    let lanes = std::iter::from_fn(|| segment.take_lane()).count();
    let end = segment.header().ring_end.load(Ordering::Relaxed);

    assert_eq!(layout::MAX_LANES - SHARED_LANES, lanes);
    assert_eq!(None, segment.take_lane());
    assert_eq!(end, segment.header().ring_end.load(Ordering::Relaxed));
}

#[test]
fn calibration_points_wait_for_memory() {
    let segment = on_tmpfs();
    segment.set_full(true);
    let point = |ticks| CalibrationPoint { ticks, wall_ns: 0, ns_per_tick: 1.0 };
    let mut points = 1;
    while segment.has_room_for_point() {
        points += 1;
        segment.push_point(point(points));
    }
    assert_eq!(4096 / size_of::<CalibrationPoint>() as u64, points);
    segment.set_full(false);
    assert!(segment.has_room_for_point());
    segment.push_point(point(points + 1));

    assert_eq!(points + 1, segment.last_point().ticks);
}

fn publish(segment: &Segment) -> u64 {
    let head = ManifestHead { bytes: 0, lanes: 0, batch: 1, first_seq: 1, records: 1, point: 0 };
    manifest::publish(segment, head, &[LaneRange { lane: 0, incarnation: 1, from: 0, to: 8 }])
}

#[test]
fn manifests_start_from_the_beginning_whenever_all_batches_are_written() {
    let segment = on_tmpfs();
    let before = segment.file_bytes();
    for _ in 0..2000 {
        assert!(manifest::make_room(&segment));
        let end = publish(&segment);
        assert_eq!(manifest::manifest_bytes(1), end % MANIFEST_BYTES);
        manifest::release(&segment, end);
    }

    assert_eq!(before, segment.file_bytes());
}

#[test]
fn batches_without_memory_for_their_manifest_wait_for_batches_in_flight() {
    let segment = on_tmpfs();
    segment.set_full(true);
    let mut ends = Vec::new();
    while manifest::make_room(&segment) {
        ends.push(publish(&segment));
    }
    assert!(ends.len() > 10);
    for end in ends {
        manifest::release(&segment, end);
    }
    assert!(manifest::make_room(&segment), "with nothing in flight there is room");
    publish(&segment);
    segment.set_full(false);
    let mut more = 0;
    while manifest::make_room(&segment) {
        more += 1;
        publish(&segment);
    }

    assert!(more > 4000, "{more} manifests in the whole ring");
}
