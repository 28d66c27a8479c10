//! Tests with bytes changed by the disk, files cut short, and folders with a missing file. Opening the spool succeeds,
//! and only the damaged frames are lost and counted.

use super::generator::Random;
use super::life::{Plan, open};
use super::model::PLAIN;
use super::sim_disk::{Faults, SimDisk, Simulation};
use super::simulated_files::SimulatedFiles;
use crate::frame::{HEAD_BYTES, frame_bytes};
use crate::item::{GapReason, Item};
use crate::options::{Options, WhenFull};
use crate::spool_segment::HEADER_BYTES;
use crate::{Batch, Spool};

const SEGMENT_BYTES: u64 = 64 * 1024;
/// Bytes of payload of each frame. The number is not a multiple of the alignment, so that frames have padding.
const PAYLOAD_BYTES: usize = 1021;

fn plan(segment_bytes: u64) -> Plan {
    let max_bytes = segment_bytes * 8;
    Plan {
        options: Options { segment_bytes, max_bytes, when_full: WhenFull::RefuseNew, max_unsynced_bytes: 1 << 20 },
        folders: 1,
        max_payload: 0,
        faults: Faults::default(),
        lives: 0,
        steps: 0,
        images: 0,
    }
}

fn payload(first: u64, bytes: usize) -> Vec<u8> {
    let mut generator = Random::new(first);
    (0..bytes).map(|_| generator.next() as u8).collect()
}

fn append(spool: &mut Spool<SimDisk>, bytes: usize) {
    let first = spool.next();
    spool.append(&Batch { first, count: 1, codec: 3, payload: &payload(first, bytes) }).unwrap();
}

/// A full segment and the segment after it, all durable.
struct SampleSegments {
    files: SimulatedFiles,
    /// The file that is damaged, and its name.
    inode: usize,
    /// Number of frames in the damaged file.
    frames: u64,
    /// Number of frames in both segments.
    total: u64,
}

impl SampleSegments {
    fn take(plan: &Plan, full_segments: u64) -> Self {
        let frames = (SEGMENT_BYTES - HEADER_BYTES) / frame_bytes(PAYLOAD_BYTES);
        let total = full_segments * frames + if full_segments == 0 { frames - 1 } else { 5 };
        let simulation = Simulation::new(SimulatedFiles::default(), Random::new(1));
        let mut spool = open(&simulation, plan).unwrap();
        spool.add_consumer(PLAIN).unwrap();
        spool.checkpoint().unwrap();
        for _ in 0..total {
            append(&mut spool, PAYLOAD_BYTES);
        }
        spool.close().unwrap();
        let files = simulation.borrow().files.clone();
        let names = &files.folders[0].names;
        let (_, inode) = names.iter().find(|(name, _)| name.ends_with(".seg")).expect("there is a segment");
        Self { inode: *inode, frames: if full_segments == 0 { total } else { frames }, total, files }
    }

    /// Index of the frame that contains a byte.
    fn frame_at(&self, at: u64) -> Option<u64> {
        let behind = at.checked_sub(HEADER_BYTES)?;
        let (frame, inside) = (behind / frame_bytes(PAYLOAD_BYTES), behind % frame_bytes(PAYLOAD_BYTES));
        (frame < self.frames && inside < (HEAD_BYTES + PAYLOAD_BYTES) as u64).then_some(frame)
    }

    /// Opens the spool with `bytes` as the contents of the specimen's file. Exactly the frames in `lost` must be
    /// missing.
    fn check(&self, plan: &Plan, bytes: Vec<u8>, lost: std::ops::Range<u64>) -> Result<u64, String> {
        let mut files = self.files.clone();
        files.inodes[self.inode] = SimulatedFiles::file(bytes);
        let simulation = Simulation::new(files, Random::new(1));
        let mut spool = open(&simulation, plan).map_err(|error| format!("no start: {error}"))?;
        let mut cursor = 0;
        while let Some(item) = spool.read(PLAIN).map_err(|error| error.to_string())? {
            match item {
                Item::Frame(frame) => {
                    if frame.first != cursor
                        || lost.contains(&cursor)
                        || frame.payload != payload(cursor, PAYLOAD_BYTES)
                    {
                        return Err(format!("frame {} came at {cursor}", frame.first));
                    }
                    cursor += 1;
                }
                Item::Gap { from, to, reason } => {
                    if (from, to, reason) != (lost.start, lost.end, GapReason::Lost) || from != cursor {
                        return Err(format!("a gap {from}..{to} ({reason:?}) at {cursor}, {lost:?} were hit"));
                    }
                    cursor = to;
                }
            }
        }
        let stats = spool.stats();
        if cursor != self.total || stats.lost_records != lost.end - lost.start {
            return Err(format!("ended at {cursor} of {}, {lost:?} were hit: {stats:?}", self.total));
        }
        append(&mut spool, PAYLOAD_BYTES);
        spool.sync().map_err(|error| error.to_string())?;
        Ok(stats.quarantined_frames)
    }
}

/// Changes every `step`th byte of a segment, which `full_segments` other segments follow.
pub fn flip_bytes(full_segments: u64, step: u64) -> Result<u64, String> {
    let plan = plan(SEGMENT_BYTES);
    let specimen = SampleSegments::take(&plan, full_segments);
    let original = specimen.files.inodes[specimen.inode].cache.to_vec();
    let mut count = 0;
    for at in (0..SEGMENT_BYTES).step_by(step as usize) {
        let mut bytes = original.clone();
        bytes[at as usize] ^= 1 << (at % 8);
        let lost = specimen.frame_at(at).map_or(0..0, |frame| frame..frame + 1);
        // A crash may tear the end of the last segment. So damage there is not quarantined, and only the missing
        // numbers show that the frame is gone.
        let is_torn = full_segments == 0 && lost.end == specimen.frames;
        let expected = u64::from(!lost.is_empty() && !is_torn);
        let quarantined = specimen.check(&plan, bytes, lost).map_err(|what| format!("byte {at}: {what}"))?;
        if quarantined != expected {
            return Err(format!("byte {at}: {quarantined} places quarantined, not {expected}"));
        }
        count += 1;
    }
    Ok(count)
}

/// Cuts a segment at every `step`th length.
fn cut_segments(full_segments: u64, step: u64) -> Result<u64, String> {
    let plan = plan(SEGMENT_BYTES);
    let specimen = SampleSegments::take(&plan, full_segments);
    let original = specimen.files.inodes[specimen.inode].cache.to_vec();
    let mut count = 0;
    for length in (0..SEGMENT_BYTES).step_by(step as usize) {
        // If the header is cut, no frame of the file is believed.
        let whole = length.saturating_sub(HEADER_BYTES);
        let ends =
            (0..specimen.frames).map(|frame| frame * frame_bytes(PAYLOAD_BYTES) + (HEAD_BYTES + PAYLOAD_BYTES) as u64);
        let kept = ends.take_while(|end| *end <= whole).count() as u64;
        let mut bytes = original.clone();
        bytes.truncate(length as usize);
        specimen.check(&plan, bytes, kept..specimen.frames).map_err(|what| format!("length {length}: {what}"))?;
        count += 1;
    }
    Ok(count)
}

/// A folder whose checkpoint is missing begins another stream. Its spare files hold frames of the former stream at
/// exactly the offsets of new frames.
pub fn begin_anew_among_spares() -> Result<(), String> {
    let plan = plan(4096);
    let simulation = Simulation::new(SimulatedFiles::default(), Random::new(1));
    let mut spool = open(&simulation, &plan).unwrap();
    spool.add_consumer(PLAIN).unwrap();
    for _ in 0..30 {
        append(&mut spool, 200);
    }
    spool.sync().unwrap();
    spool.ack(PLAIN, 30).unwrap();
    spool.checkpoint().unwrap();
    drop(spool);
    {
        let files = &mut simulation.borrow_mut().files;
        let names: Vec<_> = files.folders[0].names.keys().cloned().collect();
        assert_eq!(2, names.iter().filter(|name| name.ends_with(".free")).count(), "{names:?}");
        for name in names.iter().filter(|name| !name.ends_with(".free")) {
            files.remove(0, name);
        }
    }
    let mut spool = open(&simulation, &plan).unwrap();
    spool.add_consumer(PLAIN).unwrap();
    append(&mut spool, 200);
    spool.sync().unwrap();
    drop(spool);
    let mut spool = open(&simulation, &plan).unwrap();
    spool.add_consumer(PLAIN).unwrap();
    let mut count = 0;
    while let Some(item) = spool.read(PLAIN).map_err(|error| error.to_string())? {
        count += 1;
        match item {
            Item::Frame(frame) if frame.first == 0 && count == 1 => {}
            item => return Err(format!("another stream's records came: {item:?}")),
        }
    }
    if count == 1 { Ok(()) } else { Err(format!("{count} items")) }
}

fn step() -> u64 {
    if std::env::var("LOGSPOOL_FAULTS").is_ok_and(|size| size == "full") { 1 } else { 64 }
}

#[test]
fn a_changed_byte_loses_only_its_frame() {
    // Adds one to the step, so that the changed bytes fall on every place inside a head in some frame.
    let step = if step() == 1 { 1 } else { step() + 1 };
    let count: u64 =
        [0, 1].iter().map(|others| flip_bytes(*others, step).unwrap_or_else(|what| panic!("{what}"))).sum();
    println!("{count} changed bytes, each frame hit is counted, 0 others lost");
}

#[test]
fn a_truncated_segment_keeps_the_frames_before_the_cut() {
    let count: u64 =
        [0, 1].iter().map(|others| cut_segments(*others, step()).unwrap_or_else(|what| panic!("{what}"))).sum();
    println!("{count} lengths, 0 records lost before the cut");
}

#[test]
fn reused_files_do_not_bring_back_a_former_stream() {
    begin_anew_among_spares().unwrap_or_else(|what| panic!("{what}"));
}
