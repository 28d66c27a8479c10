//! Waits for room: how long a record of each level waits in a full queue, and how often its caller looks.
//!
//! Pipeline stage: *admission*. A wait ends with room, or when the patience of the record's level is used up. Time in
//! which the collector had no processor does not count, and a wait continues while the collector takes records.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_lanes::queue::producer::{ERROR, Producer, PushError, wake_collector};
use logspool_lanes::segment::layout::level_class;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::generation;
use logspool_sys::sleep::sleep_interruptibly;

use super::settings::options;
use super::state::Pipeline;
use crate::writer::NONE;

/// Why a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Refusal {
    /// The lane stayed full for as long as the record's level may wait.
    QueueFull = 0,
    /// The call interrupted another logging call of the same thread while that call held the lane.
    Reentrant = 1,
    /// No lane could be made: neither tmpfs nor heap had room.
    NoLane = 2,
    /// A large record had no room for its own file, or the limit for large records stayed exhausted while the record's
    /// level may wait.
    NoBlob = 3,
    /// The ids were defined under another [`super::id_epoch`]: by the parent of a forked child, or before the
    /// pipeline was replaced. Define them again.
    StaleIds = 4,
}

/// Outcome of [`super::make_room`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Room {
    /// Push again. If there is still no room, handle signals before the next wait.
    Retry,
    /// The record is refused and the refusal is counted. Do not try again.
    Refused(Refusal),
}

/// The kind of thread that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// Any thread.
    Thread,
    /// A thread with a running event loop. It never waits longer than 10 ms.
    EventLoop,
}

/// Counts a record that is refused outside any lane.
pub(super) fn refused(pipeline: &Pipeline, level: u16, reason: Refusal) -> Room {
    let header = pipeline.segment.header();
    let counters = header.refused.get(reason as usize).unwrap_or(&header.stale_ids);
    counters[level_class(level)].fetch_add(1, Ordering::Relaxed);
    Room::Refused(reason)
}

/// A wait for room.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoomWait {
    /// Level of the record; determines the longest wait.
    pub level: u16,
    /// Kind of thread that waits.
    pub waiter: Waiter,
    /// Reason to report if the wait ends without room.
    pub reason: Refusal,
}

/// Progress of the sinks that make large records wait.
#[derive(Debug, Clone, Copy)]
struct SinkProgress {
    /// Number of removed files of large records.
    removed: u64,
    /// Bytes accepted by the sinks that hold back the oldest batch.
    bytes: u64,
    /// Whether the collector, or each of these sinks, is processing a large record and is still within the time that a
    /// healthy one needs for it.
    is_at_large: bool,
}

impl SinkProgress {
    /// Whether the sinks have made progress since `before`.
    fn has_advanced_since(&self, before: &Self) -> bool {
        self.is_at_large || self.removed != before.removed || self.bytes.abs_diff(before.bytes) >= PROGRESS_BYTES
    }
}

/// Sinks that accept fewer bytes than this within a caller's patience count as stalled.
///
/// Chosen: the capacity of a pipe. A healthy disk accepts this many bytes in a tenth of a millisecond. A reader that
/// takes a few lines a second must not keep calls waiting.
const PROGRESS_BYTES: u64 = 64 * 1024;

/// How long a record below WARNING waits while the collector runs. The time in which the collector had no processor does
/// not count.
const ROOM_TIMEOUT: Duration = Duration::from_millis(50);
/// A wait of any length continues while the collector takes this many records within the record's patience, and there is
/// room after it: the queue is in order and has more to do.
///
/// Chosen: 20,000 records a second, a tenth of what a busy machine does. A sink that takes less counts as stalled.
const PROGRESS_RECORDS: u64 = 1024;
/// How long such a record waits if every sink is stuck and the overflow is full, or if the collector is known not to
/// run.
const STANDSTILL_TIMEOUT: Duration = Duration::from_millis(1);
/// How much longer a WARNING waits than a record of a lower level.
const WARNING_TIMEOUT: Duration = Duration::from_millis(10);
/// Longest wait on a thread with a running event loop.
const EVENT_LOOP_WAIT: Duration = Duration::from_millis(10);
/// How much of a wait one turn of the collector accounts for, at most. The rest is assumed to be time in which the
/// collector had no processor.
///
/// Chosen: a running collector makes a turn each millisecond or more often.
const TURN_TIME: Duration = Duration::from_micros(2500);
/// How long one caller waits for a collector that makes no turns, in a process with few threads. After that, callers
/// wait only [`STANDSTILL_TIMEOUT`] until the collector makes a turn again.
///
/// Chosen: on a busy machine a thread waits tens of milliseconds for the processor, and this must not cause refusals in
/// a healthy burst. If the collector has really stopped, only one caller waits this long.
const STARVED_TIMEOUT: Duration = Duration::from_millis(250);
/// For each further lanes or waiting calls of this number, the caller waits as long again.
///
/// Chosen: where 600 threads want two processors, the collector was seen to wait 300 ms for its next turn. Beyond the
/// number of lanes only the waiting calls show how many threads want a processor.
const STARVED_THREADS: u32 = 64;
/// A caller that slept this much longer than it wanted was stopped itself, so it looks for room once more before it
/// gives up, within [`STOPPED_LIMIT`].
///
/// Chosen: a pause is at most half a millisecond, and a busy machine adds some milliseconds.
const STOPPED: Duration = Duration::from_millis(20);
const STOPPED_LIMIT: Duration = Duration::from_secs(1);
/// First and longest pause between two looks for room, if few calls wait. Each pause is twice the previous one.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const MAX_PAUSE: Duration = Duration::from_micros(500);
/// The longest pause is at least this for each call that waits, and the first one a quarter of it.
///
/// Chosen: all waiting calls together look 20,000 times a second, which takes a tenth of a processor. A thousand calls
/// that looked twice a millisecond left no processor time for the collector, which makes the room.
const PAUSE_PER_WAITER: Duration = Duration::from_micros(50);
/// Longest uninterrupted wait. After it the caller handles signals and then continues to wait.
///
/// Chosen: it is longer than any wait of the levels that do not block, so these levels wait in a single slice.
const MAX_WAIT_SLICE: Duration = Duration::from_millis(400);
/// Numeric value of WARNING in Python's logging.
const WARNING: u16 = 30;

impl Pipeline {
    /// Total time that a record of `level` may wait. `base` is the wait of a record below WARNING.
    fn patience(&self, level: u16, waiter: Waiter, base: Duration) -> Duration {
        let blocks = match &options().blocking_levels {
            Some(levels) => levels.contains(&level),
            None => level >= ERROR,
        };
        let patience = if blocks {
            options().blocking_timeout.0.max(base)
        } else if level >= WARNING {
            base + WARNING_TIMEOUT
        } else {
            base
        };
        if waiter == Waiter::EventLoop { patience.min(EVENT_LOOP_WAIT) } else { patience }
    }

    /// How long a record below WARNING waits, given the number of turns that the collector has made during the wait and
    /// the part of the wait in which it ran.
    fn base_patience(&self, turns: u64, served: Duration) -> Duration {
        if turns > 0 {
            self.standstill.store(false, Ordering::Relaxed);
        }
        if self.saturated.load(Ordering::Relaxed) || self.standstill.load(Ordering::Relaxed) {
            STANDSTILL_TIMEOUT
        } else if served < ROOM_TIMEOUT {
            self.starved_timeout()
        } else {
            ROOM_TIMEOUT
        }
    }

    /// How long one caller waits for a collector that makes no turns.
    fn starved_timeout(&self) -> Duration {
        let lanes = self.segment.header().lanes.load(Ordering::Relaxed);
        let threads = lanes.max(self.waiting.load(Ordering::Relaxed));
        STARVED_TIMEOUT * (1 + threads / STARVED_THREADS)
    }

    /// Progress of the sinks that hold back the oldest batch.
    fn progress(&self) -> SinkProgress {
        let now = monotonic_ns();
        let outlets = self.outlets();
        let outlets = || outlets.iter().flatten();
        let oldest = outlets().map(|outlet| outlet.unspilled_batch()).min().unwrap_or(NONE);
        let last = || outlets().filter(|outlet| outlet.unspilled_batch() == oldest);
        SinkProgress {
            removed: self.blobs.removed(),
            bytes: last().map(|outlet| outlet.bytes_taken()).sum(),
            is_at_large: self.blobs.is_formatted(now)
                || oldest != NONE && last().all(|outlet| outlet.is_at_large_chunk(now)),
        }
    }

    /// Waits until `obstacle` returns `None` or the record's patience ends, and adds the time to the meters.
    pub(super) fn wait_for_room(
        &self,
        producer: &mut Producer,
        wait: RoomWait,
        waited: &mut Duration,
        obstacle: impl Fn(&mut Producer) -> Option<PushError>,
    ) -> Room {
        let is_first = waited.is_zero();
        let start = Instant::now();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let room = self.wait_while(producer, wait, waited, obstacle);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waits.calls.fetch_add(u64::from(is_first), Ordering::Relaxed);
        self.waits.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        room
    }

    fn wait_while(
        &self,
        producer: &mut Producer,
        wait: RoomWait,
        waited: &mut Duration,
        obstacle: impl Fn(&mut Producer) -> Option<PushError>,
    ) -> Room {
        let header = self.segment.header();
        let start = Instant::now();
        let (mut before, mut counted_from) = (*waited, start);
        let mut progress = None;
        let mut taken = header.next_seq.load(Ordering::Relaxed);
        let mut was_saturated = false;
        let mut pause = FIRST_PAUSE.max(PAUSE_PER_WAITER / 4 * self.waiting.load(Ordering::Relaxed));
        let first_turn = header.heartbeat.load(Ordering::Relaxed);
        let (mut served, mut seen_turns, mut looked_at) = (Duration::ZERO, 0, start);
        loop {
            wake_collector(&header.sleeping);
            sleep_interruptibly(pause);
            let longest = MAX_PAUSE.max(PAUSE_PER_WAITER * self.waiting.load(Ordering::Relaxed));
            pause = (pause * 2).min(longest);
            *waited = before + counted_from.elapsed();
            if generation::current() != producer.view.generation {
                // Another thread is forking. The pause is not caused by the sinks; the push is retried after it.
                return Room::Retry;
            }
            match obstacle(producer) {
                None => return Room::Retry,
                Some(PushError::Reentrant) => {
                    let _ = refused(self, wait.level, Refusal::Reentrant);
                    return Room::Refused(Refusal::Reentrant);
                }
                Some(_) => {}
            }
            // First, as the patience may start again below: it must not begin with the collector's time in this pause.
            let turns = header.heartbeat.load(Ordering::Relaxed) - first_turn;
            let new_turns = u32::try_from(turns - seen_turns).unwrap_or(u32::MAX);
            let pause_taken = looked_at.elapsed();
            served += pause_taken.min(TURN_TIME.saturating_mul(new_turns));
            (seen_turns, looked_at) = (turns, Instant::now());
            if wait.reason == Refusal::NoBlob && wait.waiter == Waiter::Thread {
                let now = self.progress();
                let before_it = progress.get_or_insert(now);
                if now.has_advanced_since(before_it) {
                    *before_it = now;
                    // The sinks make progress, so the patience starts again. It starts at one nanosecond, since zero
                    // means that the call has not waited yet.
                    (before, counted_from) = (Duration::from_nanos(1), Instant::now());
                    (*waited, served) = (before, Duration::ZERO);
                }
            }
            was_saturated |= self.saturated.load(Ordering::Relaxed);
            if wait.reason == Refusal::QueueFull && wait.waiter == Waiter::Thread && !was_saturated {
                let now = header.next_seq.load(Ordering::Relaxed);
                if now - taken >= PROGRESS_RECORDS {
                    taken = now;
                    (before, counted_from) = (Duration::from_nanos(1), Instant::now());
                    (*waited, served) = (before, Duration::ZERO);
                }
            }
            if pause_taken >= STOPPED && wait.waiter == Waiter::Thread && *waited < STOPPED_LIMIT {
                continue;
            }
            let share = start.elapsed();
            if *waited >= self.patience(wait.level, wait.waiter, self.base_patience(turns, served)) {
                if turns == 0 && *waited >= self.starved_timeout() {
                    self.standstill.store(true, Ordering::Relaxed);
                }
                producer.count_refusal(wait.reason as usize, level_class(wait.level));
                self.refusals.fetch_add(1, Ordering::Relaxed);
                return Room::Refused(wait.reason);
            }
            if share >= MAX_WAIT_SLICE {
                return Room::Retry;
            }
        }
    }
}
