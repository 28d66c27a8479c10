//! Records the batches appended and the promises made, and checks deliveries against them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::sim_disk::SimDisk;
use crate::disk::DiskError;
use crate::error::SpoolError;
use crate::item::{Frame, GapReason, Item};
use crate::options::WhenFull;
use crate::spool::Spool;
use crate::view::{View, ViewedFrame};

/// A consumer that remembers its position, as a service does.
pub const SERVICE: u64 = 1;
/// A consumer that knows its position only from the checkpoint.
pub const PLAIN: u64 = 2;

/// The promises of the spool and its consumers at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Promises {
    /// Every record below this number was appended and accepted.
    pub accepted: u64,
    /// Every record below this number is durable.
    pub durable: u64,
    /// The service has received every record below this number.
    pub delivered: u64,
    /// The consumer [`PLAIN`] may have acked every record below this number.
    pub acked: u64,
    /// The ack of the consumer [`PLAIN`] for every record below this number is durable.
    pub saved: u64,
}

/// A batch passed to `append`, accepted or not.
#[derive(Debug)]
pub struct Attempt {
    pub first: u64,
    pub count: u32,
    pub payload: Vec<u8>,
}

/// All batches of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    pub attempts: Vec<Attempt>,
    /// For each first number, the index of the last accepted attempt, until a crash may have removed it.
    pub accepted: BTreeMap<u64, usize>,
    pub when_full: WhenFull,
}

/// Maximum number of records in a batch of the proof.
pub const MAX_COUNT: u64 = 4;

/// The payload of an attempt: its index, followed by bytes computed from the index.
fn payload(index: usize, bytes: usize) -> Vec<u8> {
    let mut payload = Vec::with_capacity(bytes + 8);
    let mut word = index as u64;
    while payload.len() < bytes {
        payload.extend_from_slice(&word.to_le_bytes());
        word = (word ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }
    payload.truncate(bytes);
    payload
}

impl Ledger {
    /// Records a batch before its append and returns its index.
    pub fn attempt(&mut self, first: u64, count: u32, bytes: usize) -> usize {
        let index = self.attempts.len();
        self.attempts.push(Attempt { first, count, payload: payload(index, bytes) });
        index
    }

    /// Finds the attempt that the frame was made from.
    fn identify(&self, frame: &Frame) -> Result<usize, String> {
        let index = frame.payload.first_chunk().map_or(usize::MAX, |word| u64::from_le_bytes(*word) as usize);
        let attempt = self.attempts.get(index).ok_or_else(|| format!("I3: foreign bytes at {}", frame.first))?;
        if (attempt.first, attempt.count, &attempt.payload) != (frame.first, frame.count, &frame.payload) {
            return Err(format!("I3: other bytes than appended at {}", frame.first));
        }
        Ok(index)
    }

    /// Removes the attempts that a crash removed: all attempts that are not in `present`.
    pub fn keep_only(&mut self, present: &[usize]) {
        self.accepted.retain(|_, index| present.binary_search(index).is_ok());
    }
}

/// Which batches of a ledger must be delivered.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub ledger: &'a Ledger,
    /// Every batch accepted below this number must be delivered.
    pub settled: u64,
    /// After a crash: the attempts that are still on the disk, in order. `None`: no crash.
    pub present: Option<&'a [usize]>,
}

impl Expected<'_> {
    fn accepted(&self, range: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
        let accepted = self.ledger.accepted.range(range.start..range.end.max(range.start));
        let is_left = |index: usize| self.present.is_none_or(|present| present.binary_search(&index).is_ok());
        accepted.map(|(first, index)| (*first, *index)).filter(move |(_, index)| is_left(*index))
    }

    /// Checks one item that a consumer read.
    fn check(&self, step: &Step) -> Result<(), String> {
        match step.given {
            ReadItem::Frame { first, .. } if first >= self.settled => Ok(()),
            ReadItem::Frame { first, index } => {
                let mut replaced = self.accepted(first..(first + 1).min(self.settled));
                if replaced.any(|(_, accepted)| accepted != index) {
                    return Err(format!("I3: at {first} stands a batch that another one had replaced"));
                }
                Ok(())
            }
            ReadItem::Gap(GapReason::Dropped) => match self.ledger.when_full {
                WhenFull::DropOldest => Ok(()),
                WhenFull::RefuseNew => {
                    Err(format!("I1: {}..{} were dropped, which nobody allowed", step.from, step.to))
                }
            },
            ReadItem::Gap(reason) => self.check_gap(step.from, step.to, reason),
        }
    }

    /// Checks that a gap hides no record that must be delivered.
    fn check_gap(&self, from: u64, to: u64, reason: GapReason) -> Result<(), String> {
        let mut missing = self.accepted(from.saturating_sub(MAX_COUNT)..to.min(self.settled));
        let end = |index: usize| self.ledger.attempts[index].first + u64::from(self.ledger.attempts[index].count);
        match missing.find(|(_, index)| end(*index) > from) {
            Some((first, _)) => Err(format!("I1: {from}..{to} are gone as {reason:?}, among them {first}")),
            None => Ok(()),
        }
    }

    /// Checks the deliveries after an opening against the promises before it.
    pub fn check_promises(&self, seen: &ReadResult, promises: &Promises) -> Result<(), String> {
        let next = seen.next;
        if let Some((first, _)) = self.accepted(next..self.settled).next()
            && first >= promises.delivered.max(promises.acked)
        {
            return Err(format!("I1: {next} comes next, {first} was durable"));
        }
        if next < promises.saved {
            return Err(format!("I3: {next} comes next, numbers below {} were used", promises.saved));
        }
        let position = seen.plain_position;
        if position < promises.saved || position > promises.acked {
            return Err(format!("I2: begins at {position}, acked {}..{}", promises.saved, promises.acked));
        }
        seen.steps.iter().flatten().try_for_each(|step| self.check(step))
    }
}

/// An item that a consumer read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadItem {
    Frame { first: u64, index: usize },
    Gap(GapReason),
}

/// An item, with the consumer's cursor before and after it.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    from: u64,
    to: u64,
    given: ReadItem,
}

impl Step {
    /// Index of the attempt that the item was made from; `None` for a gap.
    pub fn index(&self) -> Option<usize> {
        match self.given {
            ReadItem::Frame { index, .. } => Some(index),
            ReadItem::Gap(_) => None,
        }
    }

    /// Whether both steps move the cursor equally, and by the same batch.
    fn is_like(&self, other: &Self) -> bool {
        (self.from, self.to, self.index()) == (other.from, other.to, other.index())
    }
}

/// Progress of one consumer, whose items are checked one by one.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The next number that the consumer expects.
    pub cursor: u64,
    /// Whether the next frame may begin below the cursor, because the last ack ended inside a batch.
    pub is_inside: bool,
}

impl Reading {
    pub fn at(cursor: u64) -> Self {
        Self { cursor, is_inside: true }
    }

    /// Checks that an item continues at the cursor and equals the appended batch.
    fn follow(&mut self, item: &Item, ledger: &Ledger) -> Result<Step, String> {
        let cursor = self.cursor;
        let (to, given) = match item {
            Item::Frame(frame) => {
                let is_next = frame.first == cursor || self.is_inside && (frame.first..frame.end()).contains(&cursor);
                if !is_next {
                    return Err(format!("I2, I3: {}..{} came at {cursor}", frame.first, frame.end()));
                }
                (frame.end(), ReadItem::Frame { first: frame.first, index: ledger.identify(frame)? })
            }
            Item::Gap { from, to, reason } => {
                if *from != cursor || to <= from {
                    return Err(format!("I3: the gap {from}..{to} came at {cursor}"));
                }
                (*to, ReadItem::Gap(*reason))
            }
        };
        self.is_inside = false;
        self.cursor = to;
        Ok(Step { from: cursor, to, given })
    }

    /// Checks an item when no accepted batch may be missing.
    pub fn take(&mut self, item: &Item, ledger: &Ledger) -> Result<(), String> {
        let step = self.follow(item, ledger)?;
        Expected { ledger, settled: u64::MAX, present: None }.check(&step)
    }
}

/// The result of reading everything with both consumers.
#[derive(Debug)]
pub struct ReadResult {
    /// The items of each consumer, in order.
    pub steps: [Vec<Step>; 2],
    /// Position of the consumer [`PLAIN`] when the reading began.
    plain_position: u64,
    pub next: u64,
    pub durable: u64,
    /// All attempts in the spool, in order.
    pub present: Vec<usize>,
}

impl ReadResult {
    /// Whether another opening had the same result.
    pub fn is_like(&self, other: &Self) -> bool {
        let are_like =
            |one: &Vec<Step>, two: &Vec<Step>| one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.is_like(b));
        self.next == other.next && self.steps.iter().zip(&other.steps).all(|(one, two)| are_like(one, two))
    }
}

/// The attempts that end after `from`, as a `View` shows them without opening the spool.
pub fn look(disk: SimDisk, ledger: &Ledger, from: u64) -> Result<Vec<usize>, String> {
    let text = |error: DiskError| format!("I4: a look: {error}");
    let view = View::open(disk).map_err(text)?;
    let mut shown = Vec::new();
    view.walk(&mut [], |frame, _| shown.push(frame)).map_err(text)?;
    let mut indices = Vec::new();
    for frame in shown.into_iter().filter(|frame| frame.end() > from) {
        let ViewedFrame { first, count, codec, .. } = frame;
        let payload = view.read(&frame).map_err(text)?.ok_or_else(|| format!("I3: a look: {first} is damaged"))?;
        indices.push(ledger.identify(&Frame { first, count, codec, payload })?);
    }
    Ok(indices)
}

/// Reads everything after an opening. The service already has every record below `delivered`. Makes all checks that
/// need no other promises.
pub fn observe(spool: &mut Spool<SimDisk>, ledger: &Ledger, delivered: u64) -> Result<ReadResult, String> {
    let (next, durable) = (spool.next(), spool.durable());
    let text = |error: SpoolError| error.to_string();
    let position = spool.add_consumer(SERVICE).map_err(text)?;
    if position > delivered {
        return Err(format!("I1: the service begins at {position}, it has {delivered}"));
    }
    spool.ack(SERVICE, delivered).map_err(text)?;
    let service = read_all(spool, SERVICE, delivered, ledger)?;
    let plain_position = spool.add_consumer(PLAIN).map_err(text)?;
    let plain = read_all(spool, PLAIN, plain_position, ledger)?;
    let mut present: Vec<usize> = service.iter().chain(&plain).filter_map(Step::index).collect();
    present.sort_unstable();
    present.dedup();
    Ok(ReadResult { steps: [service, plain], plain_position, next, durable, present })
}

fn read_all(spool: &mut Spool<SimDisk>, consumer: u64, position: u64, ledger: &Ledger) -> Result<Vec<Step>, String> {
    let mut reading = Reading::at(position);
    let mut steps = Vec::new();
    let mut failures = 0;
    loop {
        match spool.read(consumer) {
            Ok(None) => break,
            Ok(Some(item)) => steps.push(reading.follow(&item, ledger)?),
            Err(error) => {
                failures += 1;
                if failures > 50 {
                    return Err(format!("liveness: cannot read at {}: {error}", reading.cursor));
                }
            }
        }
    }
    if reading.cursor != spool.next().max(position) {
        return Err(format!("I1: reading ended at {}, {} comes next", reading.cursor, spool.next()));
    }
    Ok(steps)
}
