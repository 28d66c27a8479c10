//! Feeds a sink as its writer does: one chunk, continued after the last write.

use logspool::sink::{Lines, Mark, Sink, SinkError};
use logspool::sinks::{RotationRules, TimedRotatingFileOptions};
use logspool_record::definition::Zone;

/// A sink that rotates by time: every `when` in UTC, first at `rollover_at`.
pub fn timed_kind(
    path: &str,
    when: &str,
    backup_count: u32,
    rollover_at: i64,
    rules: RotationRules,
) -> TimedRotatingFileOptions {
    TimedRotatingFileOptions {
        path: path.to_owned(),
        when: when.to_owned(),
        interval: 1,
        backup_count,
        zone: Zone::Utc,
        at_time_seconds: None,
        rollover_at: Some(rollover_at),
        rules,
    }
}

/// A chunk that is being written to a sink.
pub struct Feed {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    written: usize,
}

impl Feed {
    /// A chunk of records, each with its time in seconds since the epoch.
    pub fn new<'a, T: AsRef<[u8]> + ?Sized + 'a>(records: impl IntoIterator<Item = (i64, &'a T)>) -> Self {
        let mut feed = Self { bytes: Vec::new(), marks: Vec::new(), written: 0 };
        for (seconds, line) in records {
            feed.bytes.extend_from_slice(line.as_ref());
            feed.marks.push(Mark { end: feed.bytes.len() as u32, level: 20, class: 1, member: 0, seconds });
        }
        feed
    }

    /// Writes once. Returns the bytes that the sink took.
    pub fn step(&mut self, sink: &mut dyn Sink) -> Result<usize, SinkError> {
        let first = self.marks.partition_point(|mark| mark.end as usize <= self.written);
        let lines = Lines { bytes: &self.bytes[self.written..], marks: &self.marks[first..], before: self.written };
        let offered = lines.bytes.len();
        let count = sink.write(lines)?;
        assert!((1..=offered).contains(&count), "{count} of {offered}");
        self.written += count;
        Ok(count)
    }

    /// Whether the whole chunk is written.
    pub fn is_done(&self) -> bool {
        self.written == self.bytes.len()
    }

    /// Writes the rest. Returns the number of writes.
    pub fn rest(&mut self, sink: &mut dyn Sink) -> usize {
        let mut writes = 0;
        while !self.is_done() {
            self.step(sink).expect("a healthy sink takes everything");
            writes += 1;
        }
        writes
    }
}
