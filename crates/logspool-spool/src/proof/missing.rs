//! Tests with files that are missing, foreign or changed under an open spool, and with folders without a checkpoint.

use std::cell::RefCell;
use std::rc::Rc;

use super::generator::Random;
use super::sim_disk::{Faults, SimDisk, Simulation};
use super::simulated_files::SimulatedFiles;
use crate::disk::Operation;
use crate::item::{GapReason, Item};
use crate::options::{Options, WhenFull};
use crate::{Batch, Spool};

const CONSUMER: u64 = 1;

fn options() -> Options {
    let segment_bytes = 2048;
    Options { segment_bytes, max_bytes: 20 * segment_bytes, when_full: WhenFull::RefuseNew, max_unsynced_bytes: 5000 }
}

type Shared = Rc<RefCell<Simulation>>;

fn open(simulation: &Shared) -> Spool<SimDisk> {
    open_with(simulation, options())
}

fn open_with(simulation: &Shared, options: Options) -> Spool<SimDisk> {
    Spool::open(vec![SimDisk::new(simulation, "only")], options).unwrap()
}

fn append(spool: &mut Spool<SimDisk>, first: u64) {
    spool.append(&Batch { first, count: 1, codec: 0, payload: &[first as u8; 160] }).unwrap();
}

/// A folder with five segments of five frames each, all durable: numbers 0 to 24.
fn five_segments() -> Shared {
    let simulation = Simulation::new(SimulatedFiles::default(), Random::new(1));
    let mut spool = open(&simulation);
    spool.add_consumer(CONSUMER).unwrap();
    spool.checkpoint().unwrap();
    (0..25).for_each(|first| append(&mut spool, first));
    spool.close().unwrap();
    simulation
}

fn segments(simulation: &Shared) -> Vec<Rc<str>> {
    let simulation = simulation.borrow();
    simulation.files.folders[0].names.keys().filter(|name| name.ends_with(".seg")).cloned().collect()
}

/// Reads everything. Returns the first numbers of the frames, and the gaps.
fn read_all(spool: &mut Spool<SimDisk>) -> (Vec<u64>, Vec<(u64, u64, GapReason)>) {
    let (mut frames, mut gaps) = (Vec::new(), Vec::new());
    while let Some(item) = spool.read(CONSUMER).unwrap() {
        match item {
            Item::Frame(frame) => {
                assert_eq!([frame.first as u8; 160][..], frame.payload);
                frames.push(frame.first);
            }
            Item::Gap { from, to, reason } => gaps.push((from, to, reason)),
        }
    }
    (frames, gaps)
}

#[test]
fn a_missing_segment_is_counted_as_a_gap() {
    let simulation = five_segments();
    let names = segments(&simulation);
    assert_eq!(5, names.len());
    simulation.borrow_mut().files.remove(0, &names[2]);
    let mut spool = open(&simulation);

    assert_eq!(5, spool.stats().lost_records);
    let (frames, gaps) = read_all(&mut spool);
    assert_eq!((20, vec![(10, 15, GapReason::Lost)]), (frames.len(), gaps));
    spool.ack(CONSUMER, 25).unwrap();
    assert_eq!(0, spool.stats().lost_records);
}

#[test]
fn a_missing_last_segment_is_noticed_too() {
    let simulation = five_segments();
    let names = segments(&simulation);
    simulation.borrow_mut().files.remove(0, &names[4]);
    let mut spool = open(&simulation);
    append(&mut spool, 25);

    let (frames, gaps) = read_all(&mut spool);
    assert_eq!((21, vec![(20, 25, GapReason::Lost)]), (frames.len(), gaps));
}

#[test]
fn a_segment_read_by_all_readers_is_not_missed() {
    let simulation = five_segments();
    let mut spool = open(&simulation);
    spool.ack(CONSUMER, 15).unwrap();
    spool.close().unwrap();
    assert!(segments(&simulation).len() < 5, "nothing was given back");
    let mut spool = open(&simulation);

    assert_eq!(0, spool.stats().lost_records);
    assert_eq!(((15..25).collect(), vec![]), read_all(&mut spool));
}

#[test]
fn without_a_checkpoint_everything_is_delivered_again() {
    let simulation = five_segments();
    let stream = open(&simulation).stream();
    simulation.borrow_mut().files.remove(0, "checkpoint");
    let mut spool = open(&simulation);
    assert_eq!(stream, spool.stream());
    assert_eq!(25, spool.next());

    assert_eq!(0, spool.add_consumer(CONSUMER).unwrap());
    assert_eq!(((0..25).collect(), vec![]), read_all(&mut spool));
}

#[test]
fn a_segment_of_another_stream_is_set_aside() {
    let (simulation, other) = (five_segments(), Simulation::new(SimulatedFiles::default(), Random::new(99)));
    let mut spool = open(&other);
    append(&mut spool, 0);
    spool.close().unwrap();
    let inode = *other.borrow().files.folders[0].names.iter().find(|(name, _)| name.ends_with(".seg")).unwrap().1;
    {
        let bytes = other.borrow().files.inodes[inode].clone();
        let files = &mut simulation.borrow_mut().files;
        let place = files.create(0, "00000000000000000001.seg");
        files.inodes[place] = bytes;
    }
    let mut spool = open(&simulation);

    // Number 1 was the first segment of this stream.
    assert_eq!(1, spool.stats().quarantined_frames);
    assert_eq!(((5..25).collect(), vec![(0, 5, GapReason::Lost)]), read_all(&mut spool));
    assert!(simulation.borrow().files.folders[0].names.contains_key("00000000000000000001.aside"));
}

#[test]
fn skipped_numbers_are_distinguished_from_lost_ones() {
    let simulation = Simulation::new(SimulatedFiles::default(), Random::new(1));
    let mut spool = open(&simulation);
    spool.add_consumer(CONSUMER).unwrap();
    append(&mut spool, 0);
    append(&mut spool, 7);
    assert_eq!((vec![0, 7], vec![(1, 7, GapReason::Skipped)]), read_all(&mut spool));
    spool.close().unwrap();
    let mut spool = open(&simulation);

    assert_eq!((vec![0, 7], vec![(1, 7, GapReason::Skipped)]), read_all(&mut spool));
    assert_eq!(0, spool.stats().lost_records);
}

#[test]
fn a_frame_that_changes_under_an_open_spool_loses_only_itself() {
    let simulation = five_segments();
    let mut spool = open(&simulation);
    let names = segments(&simulation);
    let inode = simulation.borrow().files.folders[0].names[&names[1]];
    simulation.borrow_mut().files.write(inode, 1024 + 2 * 200 + 100, b"rot");

    let (frames, gaps) = read_all(&mut spool);
    assert_eq!((24, vec![(7, 8, GapReason::Lost)]), (frames.len(), gaps));
    assert_eq!((1, 1), (spool.stats().quarantined_frames, spool.stats().lost_records));
}

#[test]
fn reads_from_a_failing_disk_are_retried_and_then_abandoned() {
    let simulation = five_segments();
    let mut spool = open(&simulation);
    simulation.borrow_mut().faults = Faults { read: 1000, ..Faults::default() };
    assert!(spool.read(CONSUMER).is_err());
    assert!(spool.read(CONSUMER).is_err());
    simulation.borrow_mut().faults = Faults::default();

    assert_eq!(((0..25).collect(), vec![]), read_all(&mut spool));
    spool.rewind(CONSUMER).unwrap();
    simulation.borrow_mut().faults = Faults { read: 1000, ..Faults::default() };
    assert!((0..2).all(|_| spool.read(CONSUMER).is_err()));
    let item = spool.read(CONSUMER).unwrap();
    assert!(matches!(item, Some(Item::Gap { from: 0, reason: GapReason::Lost, .. })), "{item:?}");
}

#[test]
fn records_taken_over_in_several_segments_remain_when_others_follow() {
    let simulation = Simulation::new(SimulatedFiles::default(), Random::new(1));
    let large = Options { segment_bytes: 8192, max_bytes: 20 * 8192, ..options() };
    let mut spool = open_with(&simulation, large);
    spool.add_consumer(CONSUMER).unwrap();
    spool.checkpoint().unwrap();
    (0..20).for_each(|first| append(&mut spool, first));
    drop(spool);
    let mut spool = open(&simulation);
    assert_eq!(4, segments(&simulation).len(), "one after the other holds a part of it");
    (20..23).for_each(|first| append(&mut spool, first));
    drop(spool);

    let mut spool = open(&simulation);
    assert_eq!(((0..23).collect(), vec![]), read_all(&mut spool));
}

#[test]
fn a_failed_sync_costs_a_file_but_no_record() {
    let simulation = Simulation::new(SimulatedFiles::default(), Random::new(1));
    let mut spool = open(&simulation);
    spool.add_consumer(CONSUMER).unwrap();
    append(&mut spool, 0);
    simulation.borrow_mut().fails_next = Some(Operation::Sync);
    assert_eq!(1, spool.sync().unwrap());

    assert_eq!((1, false), (spool.stats().failed_syncs, spool.stats().is_degraded));
    let left = simulation.borrow().files.crash_with(&[0], |_, _| super::simulated_files::WriteOutcome::Dropped);
    let mut spool = open(&Simulation::new(left, Random::new(2)));
    spool.add_consumer(CONSUMER).unwrap();
    assert_eq!((vec![0], vec![]), read_all(&mut spool));
}
