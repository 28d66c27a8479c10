//! Tests with a dead process whose segment the test itself fills, so that every position in it is known.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use logspool_lanes::manifest;
use logspool_lanes::queue::producer::{LaneUse, Producer};
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::{LaneRange, ManifestHead, Table};
use logspool_record::definition::Descriptor;
use logspool_record::{Encoder, Head, flags};

use super::*;
use crate::recover::leftover::Leftover;
use crate::recover::{RecoverOptions, Report, recover, scan};
use crate::sinks::{FileOptions, SinkOptions};

const NAME: &str = "1-2-3-00000000000000aa";

/// A process with two threads. The first thread logs most records.
struct Process {
    folder: tempfile::TempDir,
    segment: Segment,
    producer: Producer,
    other: Producer,
    logged: u32,
}

impl Process {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let segment = Segment::create_in(Folder::open(folder.path()).unwrap(), None).unwrap();
        segment.prepare_shared_lanes();
        let lane = || Producer::new(&segment, segment.take_lane().unwrap(), LaneUse::Own, 1);
        let (producer, other) = (lane(), lane());
        Self { folder, segment, producer, other, logged: 0 }
    }

    fn target(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open_sink(&self, name: &str) -> u32 {
        let kind = FileOptions { path: self.target(name).to_str().unwrap().to_owned() };
        let definition = kind.define(Descriptor::Open);
        self.segment.define(Table::Sinks, |encoder| definition.encode(encoder)).unwrap()
    }

    fn log(&mut self, sink: u32, records: u32) {
        for _ in 0..records {
            let mut values = Encoder::new();
            values.raw_bytes(format!("{:06} {}\n", self.logged, "x".repeat(100)).as_bytes());
            let head = Head { len: 0, site: 0, route: sink, level: 20, flags: flags::TEXT, ticks: 0 };
            let bytes = values.bytes;
            // SAFETY: the reserved place has room for `bytes.len()` bytes.
            let fill = |place: *mut u8| unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
            self.producer.push(head, bytes.len(), fill).unwrap();
            self.logged += 1;
        }
    }

    fn log_in_other(&mut self, sink: u32, records: u32) {
        std::mem::swap(&mut self.producer, &mut self.other);
        self.log(sink, records);
        std::mem::swap(&mut self.producer, &mut self.other);
    }

    /// Batches the logged records, but does not store the notes in the lanes.
    fn publish(&mut self) -> (u64, Vec<LaneRange>) {
        assert!(manifest::make_room(&self.segment));
        let header = self.segment.header();
        let batch = header.batch.load(Ordering::Relaxed) + 1;
        let head = ManifestHead { bytes: 0, lanes: 0, batch, first_seq: 1, records: 1, point: 0 };
        let ranges = [&self.producer, &self.other].map(|producer| {
            let from = self.segment.lane(producer.index).consumer.batched.load(Ordering::Relaxed);
            LaneRange { lane: producer.index as u32, incarnation: 1, from, to: producer.position() }
        });
        let ranges: Vec<LaneRange> = ranges.into_iter().filter(|range| range.from < range.to).collect();
        let end = manifest::publish(&self.segment, head, &ranges);
        header.batch.store(batch, Ordering::Relaxed);
        (end, ranges)
    }

    fn batch(&mut self) -> (u64, Vec<LaneRange>) {
        let (end, ranges) = self.publish();
        for range in &ranges {
            self.segment.lane(range.lane as usize).consumer.batched.store(range.to, Ordering::Relaxed);
        }
        (end, ranges)
    }

    /// Batches the logged records, and marks them as written for all sinks.
    fn write(&mut self) {
        let (end, ranges) = self.batch();
        for range in ranges {
            self.segment.lane(range.lane as usize).consumer.release(range.to);
        }
        manifest::release(&self.segment, end);
        self.producer.refresh();
    }

    fn grow(&mut self, bytes: u64) {
        let ring = self.segment.take_ring(bytes).unwrap();
        self.producer.grow(ring, bytes);
    }

    fn die(self) -> Dead {
        let (_, own) = self.segment.home().unwrap();
        for suffix in ["seg", "lock"] {
            let path = |name: &str| self.folder.path().join(format!("{name}.{suffix}"));
            std::fs::rename(path(own), path(NAME)).unwrap();
        }
        Dead { folder: self.folder }
    }
}

struct Dead {
    folder: tempfile::TempDir,
}

impl Dead {
    fn recover(&self, wanted: &[&str]) -> Report {
        let wants = |path: &Path| wanted.iter().any(|name| path == self.folder.path().join(name));
        recover(self.folder.path(), wants, RecoverOptions::default()).unwrap()
    }

    fn bytes(&self) -> u64 {
        let [orphan] = &scan(self.folder.path()).unwrap()[..] else { panic!("one is there") };
        orphan.bytes()
    }

    /// Returns the numbers in the lines of a file.
    fn numbers(&self, name: &str) -> Vec<u32> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    fn holds_nothing(&self) -> bool {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        !entries.flatten().any(|entry| entry.file_name().to_str().unwrap().starts_with(NAME))
    }
}

#[test]
fn a_dead_process_keeps_memory_only_for_its_queued_records() {
    let mut process = Process::new();
    let sink = process.open_sink("a.log");
    process.log(sink, 150);
    process.write();
    process.grow(256 * 1024);
    // The loop fills the second ring of the lane more than once, across the ring's end.
    for _ in 0..30 {
        process.log(sink, 150);
        process.write();
    }
    process.log(sink, 200);
    process.batch();
    process.log(sink, 100);
    let logged = process.logged;
    let dead = process.die();
    let before = dead.bytes();
    let report = dead.recover(&[]);

    assert!(before > 350 * 1024, "{before} bytes");
    assert!(dead.bytes() < (128 + 45) * 1024, "{} bytes for 300 records of 150 bytes", dead.bytes());
    assert_eq!(dead.bytes(), report.kept[0].bytes);
    dead.recover(&["a.log"]);
    assert_eq!((logged - 300..logged).collect::<Vec<_>>(), dead.numbers("a.log"));
    assert!(dead.holds_nothing());
}

#[test]
fn records_delivered_to_one_file_take_no_memory_while_another_file_waits() {
    let mut process = Process::new();
    let (first, second) = (process.open_sink("first.log"), process.open_sink("second.log"));
    process.grow(256 * 1024);
    process.log(first, 400);
    process.batch();
    process.log(first, 400);
    process.batch();
    process.log(second, 100);
    process.batch();
    process.log(first, 100);
    // The batch is delivered, but the process dies before it records in the lane how far it has read.
    process.publish();
    process.log(second, 10);
    let dead = process.die();
    dead.recover(&[]);
    let whole = dead.bytes();
    dead.recover(&["first.log"]);
    let rest = dead.bytes();

    assert!(rest + 100 * 1024 < whole, "{whole} bytes, then {rest}");
    assert_eq!((0..800).chain(900..1000).collect::<Vec<_>>(), dead.numbers("first.log"));
    let [orphan] = &scan(dead.folder.path()).unwrap()[..] else { panic!("one is there") };
    assert_eq!((110, crate::recover::Condition::Whole), (orphan.pending[0].records, orphan.condition.clone()));
    dead.recover(&["first.log", "second.log"]);
    assert_eq!((800..900).chain(1000..1010).collect::<Vec<_>>(), dead.numbers("second.log"));
    assert_eq!(900, dead.numbers("first.log").len());
    assert!(dead.holds_nothing());
}

#[test]
fn unbatched_records_are_released_too_once_they_are_delivered() {
    let mut process = Process::new();
    let (first, second) = (process.open_sink("first.log"), process.open_sink("second.log"));
    process.grow(256 * 1024);
    process.log(second, 10);
    process.batch();
    process.log(first, 1000);
    let dead = process.die();
    dead.recover(&["second.log"]);
    let whole = dead.bytes();
    dead.recover(&["first.log"]);

    assert!(whole > 150 * 1024);
    assert_eq!((10..1010).collect::<Vec<_>>(), dead.numbers("first.log"));
    assert_eq!((0..10).collect::<Vec<_>>(), dead.numbers("second.log"));
    assert!(dead.holds_nothing());
}

#[test]
fn files_that_nothing_left_refers_to_are_removed() {
    let mut process = Process::new();
    let (first, second) = (process.open_sink("first.log"), process.open_sink("second.log"));
    process.log(first, 10);
    process.batch();
    process.log(second, 10);
    let dead = process.die();
    let make = |name: &str| std::fs::write(dead.folder.path().join(format!("{NAME}.{name}")), [0; 10_000]).unwrap();
    make("blob-7");
    make(&format!("over-{first}-0"));
    dead.recover(&["first.log"]);
    let names: Vec<String> = std::fs::read_dir(dead.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(NAME))
        .collect();

    assert_eq!(2, names.len(), "{names:?}");
    dead.recover(&["second.log"]);
    assert_eq!((10, 10), (dead.numbers("first.log").len(), dead.numbers("second.log").len()));
    assert!(dead.holds_nothing());
}

/// Recovers a process that was killed in its third batch. An earlier recoverer was killed after storing `kept` notes
/// about the batches up to `up_to`. Returns whether that recoverer had more notes to store.
fn recover_after_notes(up_to: u64, kept: usize) -> bool {
    let mut process = Process::new();
    let (first, second) = (process.open_sink("first.log"), process.open_sink("second.log"));
    process.log(first, 3);
    process.log_in_other(first, 3);
    process.batch();
    process.log(second, 3);
    process.log_in_other(second, 3);
    process.batch();
    process.log_in_other(first, 3);
    process.log(first, 3);
    // The kill comes before the notes in the lanes are stored.
    process.publish();
    let dead = process.die();
    if up_to > 1 {
        dead.recover(&["second.log"]);
    }
    let folder = Folder::open_existing(dead.folder.path()).unwrap();
    let leftover = Leftover::find(&folder, NAME).unwrap();
    let claim = Claim::take(&folder, &leftover).unwrap().unwrap();
    // Close the sink as if `first.log` had all its records.
    claim.close(first as usize).unwrap();
    let read = || Decoded::read(&folder, &leftover, claim.segment().unwrap().unwrap()).unwrap();
    let notes = advanced_words(&read().plan.written_batches(|batch| batch > up_to));
    let count = notes.len();
    notes.into_iter().take(kept).for_each(|(offset, word)| claim.raise(offset, word).unwrap());
    assert!(!read().survey.damage.is_any(), "after {kept} notes up to {up_to}");
    drop(claim);
    dead.recover(&["first.log", "second.log"]);
    assert_eq!((0, 6), (dead.numbers("first.log").len(), dead.numbers("second.log").len()));
    assert!(dead.holds_nothing());
    kept < count
}

#[test]
fn a_kill_between_any_two_progress_notes_loses_and_repeats_nothing() {
    for up_to in [1, 3] {
        assert_eq!(
            Some(5),
            (0..).find(|kept| !recover_after_notes(up_to, *kept)),
            "two of each lane, one of manifests"
        );
    }
}

#[test]
fn a_batch_that_a_message_to_a_service_follows_stays_until_the_service_has_it() {
    let mut process = Process::new();
    let (first, service) = (process.open_sink("first.log"), process.open_sink("service"));
    let head = process.segment.sink(service as usize);
    head.begin_stream(7, 1);
    head.note_arrival(0, 0);
    head.message_batch.store(2, Ordering::Relaxed);
    for sink in [first, first, service] {
        process.log(sink, 3);
        process.batch();
    }
    let dead = process.die();
    let folder = Folder::open_existing(dead.folder.path()).unwrap();
    let leftover = Leftover::find(&folder, NAME).unwrap();
    let claim = Claim::take(&folder, &leftover).unwrap().unwrap();
    claim.close(first as usize).unwrap();
    let decoded = Decoded::read(&folder, &leftover, claim.segment().unwrap().unwrap()).unwrap();

    assert_eq!(1, passed(&decoded).batch);
}
