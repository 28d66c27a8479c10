//! The side of the spool's thread. It moves chunks from overflow files to disk, and loads them back in order before the
//! writer needs them.
//!
//! In this file, threads that log, the collector and the writers do nothing but ring the bell. All other functions may
//! block on the spool's disk.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use logspool_spool::SpoolError;
use logspool_sys::clock::monotonic_ns;

use super::entries::{QueuedChunk, Spooled};
use super::outlet::{Outlet, OutletState};
use super::sink_spool::{BacklogRead, SinkSpool};
use super::spool_state::{Bell, SpoolHome, SpoolSlot, SpoolTurn};
use crate::durable::SyncOutcome;
use crate::stats::DropReason;

/// A chunk that was in an overflow file for this long is moved to disk. While half of the overflow budget is in use,
/// all chunks in overflow files are moved at once.
///
/// Chosen: a stall that ends before this time costs no disk writes. Doubling it takes more memory from the program's
/// machine.
const SPOOL_AFTER_NS: u64 = 1_000_000_000;

/// Number of bytes of lines that are loaded before the writer needs them.
///
/// Chosen: some ten batches, so that a writer does not wait for the disk between them. Doubling it gains nothing.
const LOAD_BYTES: usize = 1024 * 1024;

/// Number of bytes of lines that one turn of the spool's thread moves to disk.
const STORE_BYTES: usize = 1024 * 1024;

/// Interval at which acks are made durable while records are loaded. Each time costs a sync.
const SAVE_NS: u64 = 1_000_000_000;

/// A spool that was empty for this long is removed.
///
/// Chosen: a sink that stalls again soon finds its segment files still there.
const EMPTY_NS: u64 = 10_000_000_000;

/// First and longest pause before the disk is tried again, in nanoseconds.
const FIRST_PAUSE_NS: u64 = 100_000_000;
const MAX_PAUSE_NS: u64 = 5_000_000_000;

impl Outlet {
    /// Whether the spool's thread has work to do for this outlet.
    pub fn wants_spool(&self, now: u64) -> bool {
        match self.overflowing_since.load(Ordering::Relaxed) {
            0 => false,
            1 => true,
            _ if self.has_durability_waiters() => true,
            since => self.bell.is_some() && (now.saturating_sub(since) > SPOOL_AFTER_NS || self.budget.is_half_used()),
        }
    }

    /// Whether there is a spool and calls wait for durability that the spool would provide.
    pub(super) fn has_durability_waiters(&self) -> bool {
        self.bell.is_some() && self.syncs.has_waiters()
    }

    /// Enables or disables a spool for the outlet. `bell` wakes the spool's thread.
    pub fn set_bell(&mut self, bell: Option<Arc<Bell>>) {
        self.bell = bell;
    }

    /// Notes that the writer has finished an entry. Wakes the spool's thread if it should load more chunks.
    pub(super) fn note_finished(&self, state: &mut OutletState, entry: &QueuedChunk) {
        let Some(bell) = &self.bell else { return };
        if let Some(end) = entry.spool_end {
            state.spool.acked = state.spool.acked.max(end);
            let entries = &state.entries;
            if entries.loaded_bytes() < LOAD_BYTES / 2 && entries.backlog().chunks > 0 {
                bell.ring();
            }
        }
    }

    /// Closes the spool's files. Call it when the spool's thread has ended.
    pub fn close_spool(&self) {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).open = None;
    }

    /// Does one turn of the spool's thread for this outlet.
    pub fn spool_turn(&self, home: &SpoolHome) -> SpoolTurn {
        let mut slot = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
        let now = monotonic_ns();
        if slot.open.is_none() && !self.wants_spool(now) {
            return SpoolTurn::Idle;
        }
        if std::mem::take(&mut self.lock().spool.is_over) {
            if let Some(spool) = slot.open.take() {
                spool.remove();
            }
            return SpoolTurn::Waits;
        }
        match self.spool_now(&mut slot, home, now) {
            Ok(turn) => turn,
            Err(error) => {
                slot.pause = (slot.pause * 2).clamp(FIRST_PAUSE_NS, MAX_PAUSE_NS);
                slot.try_at = now + slot.pause;
                self.lock().spool.error = error.to_string();
                SpoolTurn::Waits
            }
        }
    }

    fn spool_now(&self, slot: &mut SpoolSlot, home: &SpoolHome, now: u64) -> Result<SpoolTurn, SpoolError> {
        let may_try = now >= slot.try_at;
        if slot.open.is_none() {
            if !may_try {
                return Ok(SpoolTurn::Waits);
            }
            slot.open = Some(self.open_spool(home)?);
        }
        let spool = slot.open.as_mut().expect("just opened");
        let mut worked = self.load(spool)?;
        if may_try && self.wants_spool(now) {
            worked |= self.store(spool)?;
            slot.pause = 0;
            let mut state = self.lock();
            state.spool.bytes = spool.bytes();
            state.spool.error.clear();
        }
        let (acked, is_empty) = {
            let state = self.lock();
            (state.spool.acked, self.overflowing_since.load(Ordering::Relaxed) == 0)
        };
        spool.ack(acked)?;
        if is_empty || now.saturating_sub(slot.saved_at) > SAVE_NS {
            spool.checkpoint()?;
            slot.saved_at = now;
            self.lock().spool.bytes = spool.bytes();
        }
        if is_empty {
            // The spool works, and all its space is free.
            slot.pause = 0;
            self.lock().spool.error.clear();
        }
        if !is_empty {
            slot.used_at = now;
        } else if now.saturating_sub(slot.used_at) > EMPTY_NS {
            if let Some(spool) = slot.open.take() {
                spool.remove();
            }
            self.lock().spool.bytes = 0;
            return Ok(SpoolTurn::Idle);
        }
        Ok(if worked { SpoolTurn::Worked } else { SpoolTurn::Waits })
    }

    fn open_spool(&self, home: &SpoolHome) -> Result<SinkSpool, SpoolError> {
        let path = home.path().join(logspool_spool::pointer::sink_folder(self.id));
        let place = self.definition.lasting.clone();
        // A queue in memory has no path that other processes could check. So its spool names no segment.
        let segment = home.segment.home().filter(|(folder, _)| folder.memory_files().is_none());
        let segment = segment.map(|(folder, name)| folder.path().join(format!("{name}.seg")));
        let made = home
            .make()
            .and_then(|()| logspool_spool::pointer::make_sink_folder(&path, place.as_deref(), segment.as_deref()));
        made.map_err(|error| SpoolError::folder(&home.path(), error))?;
        SinkSpool::open(&path, home.max_bytes)
    }

    /// Moves chunks from overflow files to disk. Returns whether it moved any.
    fn store(&self, spool: &mut SinkSpool) -> Result<bool, SpoolError> {
        let mut stored = 0;
        let mut batches = Vec::new();
        while stored < STORE_BYTES {
            let next = {
                let mut state = self.lock();
                let hands = state.held_entries();
                let next = state.entries.next_to_spool(hands);
                next.map(|entry| (entry.batch, entry.bytes, entry.place.clone()))
            };
            let Some((batch, bytes, Some(place))) = next else { break };
            // tmpfs does not fail to return stored data. If it fails nevertheless, the writer finds out and counts the
            // records.
            let Ok(entry) = place.read_entry() else { break };
            let end = spool.append(&entry, place.records())?;
            let mut state = self.lock();
            let (hands, taken) = (state.held_entries(), state.taken);
            match state.entries.note_spooled(batch, end, hands, taken) {
                Spooled::Away => {}
                Spooled::AtHand => spool.pass(end),
                Spooled::Gone => {
                    spool.pass(end);
                    // All chunks before this chunk are written too.
                    state.spool.acked = state.spool.acked.max(end);
                }
            }
            state.spool.stored_at = monotonic_ns();
            self.publish_fronts(&mut state);
            stored += bytes;
            batches.push(batch);
        }
        if !batches.is_empty() && self.syncs.tracks() {
            spool.sync()?;
            self.settle(&batches, SyncOutcome::Durable);
        }
        Ok(stored > 0)
    }

    /// Loads chunks back from the spool. Returns whether it loaded any.
    fn load(&self, spool: &mut SinkSpool) -> Result<bool, SpoolError> {
        let mut worked = false;
        loop {
            {
                let state = self.lock();
                let entries = &state.entries;
                if entries.backlog().chunks == 0 || entries.loaded_bytes() >= LOAD_BYTES {
                    break;
                }
            }
            let next = spool.next()?;
            let mut state = self.lock();
            // `abandon` may have removed the backlog in the meantime.
            if state.entries.backlog().chunks == 0 {
                break;
            }
            match next {
                BacklogRead::Chunk(chunk, end) => state.entries.load(chunk, end),
                BacklogRead::Nothing => {
                    let lost = state.entries.lose_backlog();
                    self.count_dropped(DropReason::Unreadable, lost);
                }
            }
            self.publish_fronts(&mut state);
            worked = true;
        }
        if worked {
            self.changed.notify_all();
        }
        Ok(worked)
    }
}
