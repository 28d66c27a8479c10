//! What was appended and promised, and whether what is delivered agrees with it.

use std::collections::{BTreeMap, BTreeSet};

use super::sim_disk::SimDisk;
use crate::spool::consumer::{Frame, GapReason, Item};
use crate::spool::disk::DiskError;
use crate::spool::options::WhenFull;
use crate::spool::spool::Spool;
use crate::spool::view::{View, ViewedFrame};

/// A consumer that remembers how far it came, as a service does.
pub const SERVICE: u64 = 1;
/// A consumer that knows only what the checkpoint says.
pub const PLAIN: u64 = 2;

/// What had been promised at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claims {
    /// Everything below was appended and taken.
    pub accepted: u64,
    /// Everything below is durable.
    pub durable: u64,
    /// The service has everything below.
    pub delivered: u64,
    /// The plain consumer may have acked everything below.
    pub acked: u64,
    /// Its ack of everything below is durable.
    pub saved: u64,
}

/// A batch that was given to `append`, whether it took it or not.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub first: u64,
    pub count: u32,
    pub bytes: usize,
}

/// All batches.
#[derive(Debug, Default)]
pub struct Ledger {
    pub attempts: Vec<Attempt>,
    /// By first number, the attempt that was taken last, as long as no crash may have taken it away.
    pub accepted: BTreeMap<u64, usize>,
    pub when_full: WhenFull,
}

/// Most records of a batch here.
pub const MAX_COUNT: u64 = 4;

impl Ledger {
    /// The payload of an attempt: its index, then bytes that depend on it.
    pub fn payload(&self, index: usize) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.attempts[index].bytes + 8);
        let mut word = index as u64;
        while payload.len() < self.attempts[index].bytes {
            payload.extend_from_slice(&word.to_le_bytes());
            word = (word ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
        payload.truncate(self.attempts[index].bytes);
        payload
    }

    /// Checks that a frame is one that was appended, and the right one if that is settled.
    fn check_frame(&self, frame: &Frame, settled: u64) -> Result<usize, String> {
        let index = frame.payload.first_chunk().map_or(usize::MAX, |word| u64::from_le_bytes(*word) as usize);
        let attempt = self.attempts.get(index).ok_or_else(|| format!("I3: foreign bytes at {}", frame.first))?;
        if (attempt.first, attempt.count, attempt.bytes) != (frame.first, frame.count, frame.payload.len())
            || frame.payload != self.payload(index)
        {
            return Err(format!("I3: other bytes than appended at {}", frame.first));
        }
        if frame.first < settled && self.accepted.get(&frame.first).is_some_and(|accepted| *accepted != index) {
            return Err(format!("I3: at {} stands a batch that another one had replaced", frame.first));
        }
        Ok(index)
    }

    /// Checks that nothing is missing in a gap that must be there.
    fn check_gap(&self, from: u64, to: u64, reason: GapReason, settled: u64) -> Result<(), String> {
        if reason == GapReason::Dropped {
            return match self.when_full {
                WhenFull::DropOldest => Ok(()),
                WhenFull::RefuseNew => Err(format!("I1: {from}..{to} were dropped, which nobody allowed")),
            };
        }
        let lowest = from.saturating_sub(MAX_COUNT);
        let mut missing = self.accepted.range(lowest..to.min(settled).max(lowest));
        let is_hit = |(first, index): &(&u64, &usize)| **first + u64::from(self.attempts[**index].count) > from;
        match missing.find(is_hit) {
            Some((first, _)) => Err(format!("I1: {from}..{to} are gone as {reason:?}, among them {first}")),
            None => Ok(()),
        }
    }

    /// Forgets all that is not present: a crash took it.
    pub fn keep_only(&mut self, present: &BTreeSet<usize>) {
        self.accepted.retain(|_, index| present.contains(index));
    }
}

/// What one consumer is given, checked item by item.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The number that comes next.
    pub cursor: u64,
    /// Whether the next frame may begin below the cursor: the ack before it ended inside a batch.
    pub is_inside: bool,
}

impl Reading {
    pub fn at(cursor: u64) -> Self {
        Self { cursor, is_inside: true }
    }

    /// Takes an item; `settled`: everything that was accepted below must be there. Returns the attempt it is.
    pub fn take(&mut self, item: &Item, ledger: &Ledger, settled: u64) -> Result<Option<usize>, String> {
        let cursor = self.cursor;
        match item {
            Item::Frame(frame) => {
                let is_next = frame.first == cursor || self.is_inside && (frame.first..frame.end()).contains(&cursor);
                if !is_next {
                    return Err(format!("I2, I3: {}..{} came at {cursor}", frame.first, frame.end()));
                }
                self.is_inside = false;
                self.cursor = frame.end();
                ledger.check_frame(frame, settled).map(Some)
            }
            Item::Gap { from, to, reason } => {
                if *from != cursor || to <= from {
                    return Err(format!("I3: the gap {from}..{to} came at {cursor}"));
                }
                self.is_inside = false;
                self.cursor = *to;
                ledger.check_gap(*from, *to, *reason, settled).map(|()| None)
            }
        }
    }
}

/// What a whole reading by both consumers gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Attempts and gaps, in order, of each consumer.
    pub items: Vec<Vec<(u64, u64, Option<usize>)>>,
    pub next: u64,
    pub durable: u64,
}

impl Seen {
    /// All attempts that are there.
    pub fn present(&self) -> BTreeSet<usize> {
        self.items.iter().flatten().filter_map(|(.., index)| *index).collect()
    }
}

/// The attempts that a look without an opening shows, of those that end behind `from`.
pub fn look(disk: SimDisk, ledger: &Ledger, from: u64) -> Result<Vec<usize>, String> {
    let text = |error: DiskError| format!("I4: a look: {error}");
    let view = View::open(disk).map_err(text)?;
    let mut shown = Vec::new();
    view.walk(&mut [], |frame, _| shown.push(frame)).map_err(text)?;
    let mut indices = Vec::new();
    for frame in shown.into_iter().filter(|frame| frame.end() > from) {
        let ViewedFrame { first, count, codec, .. } = frame;
        let payload = view.read(&frame).map_err(text)?.ok_or_else(|| format!("I3: a look: {first} is damaged"))?;
        indices.push(ledger.check_frame(&Frame { first, count, codec, payload }, 0)?);
    }
    Ok(indices)
}

/// Reads everything there is after an opening and checks it. `settled`: what is accepted below must be there.
pub fn observe(spool: &mut Spool<SimDisk>, ledger: &Ledger, claims: &Claims, settled: u64) -> Result<Seen, String> {
    let mut seen = Seen { next: spool.next(), durable: spool.durable(), ..Seen::default() };
    let next = spool.next();
    if let Some((first, _)) = ledger.accepted.range(next..settled.max(next)).next()
        && *first >= claims.delivered.max(claims.acked)
    {
        return Err(format!("I1: {next} comes next, {first} was durable"));
    }
    if next < claims.saved {
        return Err(format!("I3: {next} comes next, numbers below {} were used", claims.saved));
    }
    for consumer in [SERVICE, PLAIN] {
        let mut position = spool.add_consumer(consumer).map_err(|error| error.to_string())?;
        if consumer == SERVICE {
            if position > claims.delivered {
                return Err(format!("I1: the service begins at {position}, it has {}", claims.delivered));
            }
            spool.ack(consumer, claims.delivered).map_err(|error| error.to_string())?;
            position = claims.delivered;
        } else if position < claims.saved || position > claims.acked {
            return Err(format!("I2: begins at {position}, acked {}..{}", claims.saved, claims.acked));
        }
        let mut reading = Reading::at(position);
        let mut items = Vec::new();
        let mut failures = 0;
        loop {
            match spool.read(consumer) {
                Ok(None) => break,
                Ok(Some(item)) => {
                    let before = reading.cursor;
                    let index = reading.take(&item, ledger, settled)?;
                    items.push((before, reading.cursor, index));
                }
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
        seen.items.push(items);
    }
    Ok(seen)
}
