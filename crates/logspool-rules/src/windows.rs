//! Time windows: of the records with one key, a window lets a number pass and counts the rest.
//!
//! The first record of a key opens its window. When a window ends in which records were left out, a summary is due: a
//! copy of the first one left out, whose message says how many. It is queued with the next record of any key, at a
//! flush, and at the end of the program.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use logspool_record::{Context, Encoder, Entry, Head, Values, flags, tag};

use crate::offered::OfferedRecord;
use crate::rewrite;

/// Maximum number of open windows.
///
/// Chosen: each takes about 100 bytes and a copy of one record; programs have a few hundred places that log. Beyond it,
/// records pass.
const MAX_WINDOWS: usize = 4096;

/// Maximum bytes of the record that a window keeps for its summary.
const MAX_KEPT_BYTES: usize = 4096;

/// Windows of one length.
#[derive(Debug)]
pub struct Windows {
    reason: Reason,
    length_ns: u64,
    most: u32,
    /// When the next summary may be due; `u64::MAX` if none is.
    next_end_ns: AtomicU64,
    open: Mutex<HashMap<u64, Window>>,
}

/// Why windows leave records out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The records repeat the first one of the window.
    Repeated,
    /// The records are more than a place may log.
    OverRate,
}

#[derive(Debug)]
struct Window {
    end_ns: u64,
    passed: u32,
    left_out: u64,
    /// The first record that was left out.
    kept: Option<Summary>,
}

/// What a window says about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowVerdict {
    /// The record passes.
    Within,
    /// The record is left out, and counted in the window.
    Beyond,
}

/// A record about records that were left out.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The head, as for the record that it stands for.
    pub head: Head,
    /// The values, encoded.
    pub values: Vec<u8>,
    /// The message of the record that was left out; empty for a line.
    message: String,
    /// The id epoch of the head.
    epoch: u64,
}

impl Windows {
    /// Windows of this length, of which each lets `most` records pass.
    pub fn new(reason: Reason, length: Duration, most: u32) -> Self {
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Self { reason, length_ns, most, next_end_ns: AtomicU64::new(u64::MAX), open: Mutex::default() }
    }

    /// Windows of the same length, none of them open.
    pub fn renewed(&self) -> Self {
        Self::new(self.reason, Duration::from_nanos(self.length_ns), self.most)
    }

    /// Counts a record in its window. `values` are those that would be queued, and `message` is its message, unless
    /// `values` contain it.
    pub fn offer(&self, key: u64, record: &OfferedRecord<'_>, values: &[u8], message: &[u8]) -> WindowVerdict {
        let now = record.now_ns;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = open.get_mut(&key).filter(|window| now < window.end_ns) {
            if window.passed < self.most {
                window.passed += 1;
                return WindowVerdict::Within;
            }
            window.left_out += 1;
            if window.kept.is_none() {
                window.kept = Some(Summary::keep(record, values, message));
                self.next_end_ns.fetch_min(window.end_ns, Relaxed);
            }
            return WindowVerdict::Beyond;
        }
        if open.len() >= MAX_WINDOWS && !open.contains_key(&key) {
            open.retain(|_, window| now < window.end_ns || window.left_out > 0);
            if open.len() >= MAX_WINDOWS {
                return WindowVerdict::Within;
            }
        }
        let end_ns = now.saturating_add(self.length_ns);
        open.insert(key, Window { end_ns, passed: 1, left_out: 0, kept: None });
        WindowVerdict::Within
    }

    /// Takes the summaries of windows that have ended by `now_ns`. Those of another id epoch are dropped: a forked child
    /// has them from its parent, which queues them itself.
    #[inline]
    pub fn due(&self, now_ns: u64, epoch: u64) -> Vec<Summary> {
        let next = self.next_end_ns.load(Relaxed);
        if next == u64::MAX || now_ns < next {
            return Vec::new();
        }
        self.take(now_ns, epoch)
    }

    #[cold]
    fn take(&self, now_ns: u64, epoch: u64) -> Vec<Summary> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        let mut next = u64::MAX;
        open.retain(|_, window| {
            if window.end_ns > now_ns {
                if window.left_out > 0 {
                    next = next.min(window.end_ns);
                }
                return true;
            }
            if let Some(kept) = window.kept.take().filter(|kept| kept.epoch == epoch) {
                due.push(kept.with_suffix(&self.suffix(window.left_out)));
            }
            false
        });
        self.next_end_ns.store(next, Relaxed);
        due
    }
}

impl Windows {
    fn suffix(&self, count: u64) -> String {
        match self.reason {
            Reason::Repeated => {
                let times = if count == 1 { "time" } else { "times" };
                format!(" [repeated {count} {times} in {} s]", Duration::from_nanos(self.length_ns).as_secs_f64())
            }
            Reason::OverRate => {
                format!(" [{count} more from this place left out: the rate limit is {} a second]", self.most)
            }
        }
    }
}

impl Summary {
    /// Keeps what the summary needs of a record.
    fn keep(record: &OfferedRecord<'_>, values: &[u8], message: &[u8]) -> Self {
        let (mut kept, mut text) = (Vec::new(), String::new());
        if record.head.flags & flags::TEXT != 0 {
            rewrite::push_line(rewrite::line_of(values).unwrap_or_default(), &mut kept);
        } else {
            text = push_without_message(values, message, &mut kept);
        }
        Self { head: record.head, values: kept, message: text, epoch: record.epoch }
    }

    fn with_suffix(mut self, suffix: &str) -> Self {
        if let Some(line) = rewrite::line_of(&self.values) {
            let mut line = line.to_vec();
            // Text after a JSON object would make the line no JSON.
            if !line.starts_with(b"{") {
                let end = line.len() - usize::from(line.ends_with(b"\n"));
                line.splice(end..end, suffix.bytes());
            }
            rewrite::push_line(&line, &mut self.values);
            return self;
        }
        let mut encoder = Encoder { bytes: std::mem::take(&mut self.values) };
        encoder.context_str(tag::MESSAGE, &(self.message.clone() + suffix));
        self.values = encoder.bytes;
        self
    }
}

/// Appends the values of a record without its message, exception, stack and time, and returns its message.
fn push_without_message(values: &[u8], message: &[u8], out: &mut Vec<u8>) -> String {
    let mut encoder = Encoder { bytes: std::mem::take(out) };
    let mut rest = Values::new(values);
    let mut shown = String::from_utf8_lossy(message).into_owned();
    while rest.rest().first().is_some_and(|tag| *tag >= tag::CONTEXT) {
        let before = rest.rest();
        let Some(Entry::Context(entry)) = rest.next_entry() else { break };
        let raw = &before[..before.len() - rest.rest().len()];
        match entry {
            Context::Message(text) => shown = text.to_owned(),
            Context::Exception(_) | Context::Stack(_) | Context::Time(_) | Context::AscTime(_) => {}
            // Long fields are not worth a place in memory.
            _ if encoder.bytes.len() + raw.len() > MAX_KEPT_BYTES => {}
            _ => encoder.bytes.extend_from_slice(raw),
        }
    }
    if shown.len() > MAX_KEPT_BYTES {
        let mut end = MAX_KEPT_BYTES;
        while !shown.is_char_boundary(end) {
            end -= 1;
        }
        shown.truncate(end);
        shown.push_str("...");
    }
    *out = encoder.bytes;
    shown
}

/// Identifies the place of a call, together with its destination and level.
///
/// A place may have several site ids over time, so its file and line count.
pub fn place_key(record: &OfferedRecord<'_>) -> u64 {
    let place = record.site.map(|site| (site.definition().file.as_str(), site.definition().line));
    hash((record.sinks, record.logger, record.head.level, record.head.flags & flags::TEXT, place, record.place))
}

/// Identifies a message of a place.
pub fn message_key(place: u64, message: &[u8], exception: &str) -> u64 {
    hash((place, message, exception))
}

fn hash(value: impl std::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}
