//! Reads the counters of running processes from their segments, for an observer outside of these processes.
//!
//! It takes no lock, changes nothing and needs no help from the process, so it also works on a hung process. The words
//! of a segment are read one after the other while the process runs, so a counter may be a little newer than
//! another. Error texts, histograms, ages and limits are in the memory of the process and cannot be read here.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::mem::{offset_of, size_of};
use std::path::Path;

use logspool_lanes::segment::layout::{
    DROPS, Header, LEVEL_CLASSES, LaneHead, MAX_LANES, MAX_SINKS, REFUSALS, SinkHead, lane_offset, sink_offset,
};
use logspool_sys::folder::Folder;
use logspool_sys::opening::open_path;

use super::image::{Image, UnreadableSegment};
use super::leftover::{self, OwnerState};
use super::work;
use crate::stats::{PerLevel, REFUSAL_REASONS, add};

/// The queue of a running process.
#[derive(Debug)]
pub struct RunningQueue {
    /// `<pid namespace>-<pid>-<process start>-<exec>`, the beginning of the file names.
    pub name: String,
    /// Process id, in the pid namespace of the process.
    pub pid: u32,
    /// Whether the process is in the pid namespace of this process, so that its id means the same here.
    pub is_of_this_namespace: bool,
    /// Bytes of memory that the overflow files occupy.
    pub overflow_bytes: u64,
    /// The counters, or why they cannot be read.
    pub counters: Result<SegmentCounters, String>,
}

/// The counters in one segment.
#[derive(Debug)]
pub struct SegmentCounters {
    /// Creation time of the segment, in nanoseconds since the epoch.
    pub created_ns: i64,
    /// Rounds of the collector.
    pub heartbeat: u64,
    /// Number of batches.
    pub batches: u64,
    /// Records that the collector has taken out of the lanes.
    pub batched: PerLevel,
    /// Records refused, per `pipeline::Refusal`.
    pub refused: [PerLevel; REFUSAL_REASONS.len()],
    /// Records that were batched later than a record with a later stamp.
    pub late_records: u64,
    /// Number of lanes ever used.
    pub lanes: u32,
    /// Bytes of the lanes that hold records.
    pub lane_bytes: u64,
    /// Bytes of all rings.
    pub ring_bytes: u64,
    /// The sinks that had records.
    pub sinks: Vec<SegmentSink>,
}

/// The counters of one sink in a segment.
#[derive(Debug)]
pub struct SegmentSink {
    /// Name of the sink, as in statistics.
    pub name: String,
    /// Records that were batched for this sink.
    pub accepted: PerLevel,
    /// Records handed to the kernel.
    pub written: PerLevel,
    /// Records dropped, per `stats::DropReason`.
    pub dropped: [PerLevel; DROPS],
    /// Bytes handed to the kernel.
    pub bytes_written: u64,
    /// Number of failed writes.
    pub errors: u64,
    /// Whether the sink was closed.
    pub closed: bool,
}

/// Lists the queues of running processes of this user in `folder`, this process excluded.
///
/// # Errors
///
/// Returns an error if the folder cannot be read or is accessible to others. A missing folder counts as empty.
pub fn running(folder: &Path) -> io::Result<Vec<RunningQueue>> {
    let folder = match Folder::open_existing(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut queues = Vec::new();
    for leftover in leftover::list(&folder)? {
        if !leftover.segment || work::owner(&folder, &leftover) == OwnerState::Dead {
            continue;
        }
        let file = folder.open_file(&leftover.segment_name()).map_err(|error| error.to_string());
        queues.push(RunningQueue {
            pid: leftover.pid(),
            is_of_this_namespace: leftover.is_of_this_namespace(),
            overflow_bytes: leftover.overflow_bytes,
            counters: file.and_then(|file| SegmentCounters::read(&file)),
            name: leftover.name,
        });
    }
    Ok(queues)
}

/// Reads the counters of the segment in the file `path`. A process whose queue is in memory has no other name for it
/// than its descriptor in /proc. Returns `None` if the file is no segment.
///
/// # Errors
///
/// Returns an error if the file cannot be opened, or a text why the segment cannot be read.
pub fn counters_of(path: &Path) -> io::Result<Option<SegmentCounters>> {
    use std::os::unix::fs::FileExt;
    let file = open_path(File::options().read(true), path)?;
    let mut magic = [0; 8];
    if file.read_exact_at(&mut magic, 0).is_err() || magic != logspool_lanes::segment::layout::MAGIC.to_ne_bytes() {
        return Ok(None);
    }
    SegmentCounters::read(&file).map(Some).map_err(io::Error::other)
}

impl SegmentCounters {
    fn read(file: &File) -> Result<Self, String> {
        let image = Image::copy_fixed_part(file).map_err(|error| match error {
            UnreadableSegment::Unfinished => "it has just begun".to_owned(),
            UnreadableSegment::OtherVersion(major) => {
                format!("its process has a logspool with version {major} of the queue's layout")
            }
            UnreadableSegment::Broken(why) => why,
        })?;
        let mut refused = [PerLevel::default(); REFUSAL_REASONS.len()];
        let mut add_refused = |base: u64| {
            for (reason, total) in refused.iter_mut().take(REFUSALS).enumerate() {
                add(total, per_level(&image, base + (reason * size_of::<PerLevel>()) as u64));
            }
        };
        add_refused(offset_of!(Header, refused) as u64);
        let (mut lane_bytes, mut ring_bytes) = (0_u64, 0_u64);
        for lane in (0..MAX_LANES).map(lane_offset) {
            let word = |offset: usize| image.word(lane + offset as u64);
            add_refused(lane + offset_of!(LaneHead, refused) as u64);
            // The tail was copied after the head, so it may already have passed it.
            let (head, tail) = (offset_of!(LaneHead, producer.head), offset_of!(LaneHead, consumer.tail));
            lane_bytes = lane_bytes.saturating_add(word(head).saturating_sub(word(tail)));
            for ring in [offset_of!(LaneHead, first_bytes), offset_of!(LaneHead, second_bytes)] {
                ring_bytes = ring_bytes.saturating_add(word(ring));
            }
        }
        refused[REFUSALS] = per_level(&image, offset_of!(Header, stale_ids) as u64);
        Ok(Self {
            created_ns: image.created_ns(),
            heartbeat: image.header(offset_of!(Header, heartbeat)),
            batches: image.header(offset_of!(Header, batch)),
            batched: per_level(&image, offset_of!(Header, batched) as u64),
            refused,
            late_records: image.header(offset_of!(Header, late_records)),
            lanes: image.word32(offset_of!(Header, lanes) as u64),
            lane_bytes,
            ring_bytes,
            sinks: (0..MAX_SINKS).filter_map(|place| SegmentSink::read(&image, place)).collect(),
        })
    }

    /// Number of records that a sink has accepted and neither written nor dropped.
    pub fn waiting(&self) -> u64 {
        self.sinks.iter().map(SegmentSink::waiting).sum()
    }
}

impl SegmentSink {
    fn read(image: &Image, place: usize) -> Option<Self> {
        let (_, name) = image.sink(place)?;
        let at = sink_offset(place);
        let levels = |offset: usize| per_level(image, at + offset as u64);
        let dropped = offset_of!(SinkHead, dropped);
        Some(Self {
            name,
            accepted: levels(offset_of!(SinkHead, accepted)),
            written: levels(offset_of!(SinkHead, written)),
            dropped: std::array::from_fn(|reason| levels(dropped + reason * size_of::<PerLevel>())),
            bytes_written: image.word(at + offset_of!(SinkHead, bytes_written) as u64),
            errors: image.word(at + offset_of!(SinkHead, errors) as u64),
            closed: image.checkpoint(place).closed,
        })
    }

    /// Number of records that are neither written nor dropped.
    pub fn waiting(&self) -> u64 {
        let done: u64 = self.written.iter().chain(self.dropped.iter().flatten()).sum();
        self.accepted.iter().sum::<u64>().saturating_sub(done)
    }
}

fn per_level(image: &Image, at: u64) -> PerLevel {
    let counts: [u64; LEVEL_CLASSES] = std::array::from_fn(|class| image.word(at + 8 * class as u64));
    // Numbers of a damaged segment must not overflow a sum.
    counts.map(|count| count.min(u64::MAX >> 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    use logspool_lanes::segment::layout::{MAGIC, MAJOR, RINGS};

    fn segment(change: impl Fn(&mut [u8])) -> File {
        let mut bytes = vec![0; RINGS as usize];
        bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        bytes[8..12].copy_from_slice(&MAJOR.to_ne_bytes());
        change(&mut bytes);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        file
    }

    fn store(bytes: &mut [u8], at: usize, word: u64) {
        bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    }

    #[test]
    fn counters_of_lanes_and_header_are_added_up() {
        let file = segment(|bytes| {
            let lane = |index: usize| lane_offset(index) as usize;
            store(bytes, offset_of!(Header, batched) + 8 * 2, 7);
            store(bytes, offset_of!(Header, refused) + 8 * 2, 1);
            store(bytes, offset_of!(Header, stale_ids) + 8 * 4, 5);
            for index in [0, 255] {
                store(bytes, lane(index) + offset_of!(LaneHead, refused) + 8 * 2, 2);
                store(bytes, lane(index) + offset_of!(LaneHead, producer.head), 640);
                store(bytes, lane(index) + offset_of!(LaneHead, consumer.tail), 600);
                store(bytes, lane(index) + offset_of!(LaneHead, first_bytes), 4096);
            }
        });
        let counters = SegmentCounters::read(&file).unwrap();

        assert_eq!((7, 5), (counters.batched[2], counters.refused[0][2]));
        assert_eq!(5, counters.refused[REFUSALS][4]);
        assert_eq!((80, 8192), (counters.lane_bytes, counters.ring_bytes));
        assert_eq!((0, true), (counters.waiting(), counters.sinks.is_empty()));
    }

    #[test]
    fn huge_counters_of_a_damaged_segment_cause_no_overflow() {
        let file = segment(|bytes| {
            let first = offset_of!(Header, pid);
            bytes[first..].fill(0xff);
        });
        let counters = SegmentCounters::read(&file).unwrap();

        assert!(counters.lane_bytes == 0 && counters.ring_bytes == u64::MAX);
        assert!(counters.batched.iter().sum::<u64>() > 0 && counters.refused[0].iter().sum::<u64>() > 0);
    }

    #[test]
    fn other_versions_and_other_files_are_reported_as_such() {
        let other = segment(|bytes| bytes[8..12].copy_from_slice(&9_u32.to_ne_bytes()));
        assert!(SegmentCounters::read(&other).unwrap_err().contains("version 9"));
        let text = tempfile::NamedTempFile::new().unwrap();
        assert!(counters_of(text.path()).unwrap().is_none());
    }
}
