//! The side of the spool's thread: it takes chunks out of overflow files to disk, and brings them back in time for the
//! writer, in order.
//!
//! Nothing here is called by a thread that logs, by the collector or by a writer, but for the bell. Every call may
//! block on the spool's disk.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use logspool_lanes::segment::Segment;
use logspool_spool::SpoolError;
use logspool_sys::clock::monotonic_ns;

use super::entries::{Entry, Spooled};
use super::sink_spool::{Next, SinkSpool};
use super::{Outlet, Waiting};
use crate::durable::Outcome;
use crate::stats::DropReason;

/// A chunk that has lain in an overflow file for so long goes to disk; all do while half of the overflow budget is in
/// use.
///
/// Chosen: a stall that is over by then costs no disk writes; double takes more memory from the program's machine.
const SPOOL_AFTER_NS: u64 = 1_000_000_000;

/// Bytes of lines that are brought back ahead of the writer.
///
/// Chosen: some ten batches, so that a writer does not wait for the disk between them; double gains nothing.
const LOAD_BYTES: usize = 1024 * 1024;

/// Bytes of lines that are put to disk before something else is looked at.
const STORE_BYTES: usize = 1024 * 1024;

/// How often acks are made durable while records flow back: each time costs a sync.
const SAVE_NS: u64 = 1_000_000_000;

/// A spool that was empty for so long is removed.
///
/// Chosen: a sink that stalls again soon finds its segments made.
const EMPTY_NS: u64 = 10_000_000_000;

/// A spool that has taken nothing for so long, while overflow files are full, hangs on its disk.
///
/// Chosen: ten segments filled with zeros on a slow disk; a queue that is full for longer refuses records anyway.
const PATIENCE_NS: u64 = 500_000_000;

/// First and longest pause before the disk is tried again.
const FIRST_PAUSE_NS: u64 = 100_000_000;
const LONGEST_PAUSE_NS: u64 = 5_000_000_000;

/// Where the spools of a process lie, and how much each may take.
#[derive(Debug)]
pub struct SpoolHome {
    /// The folder that the user chose.
    pub folder: PathBuf,
    /// Name of the process: its folder below.
    pub name: String,
    /// Bytes of one sink's spool.
    pub max_bytes: u64,
    /// Says where the spools are, to whoever recovers.
    pub segment: Arc<Segment>,
}

impl SpoolHome {
    /// The folder of this process.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Makes the folders, and notes beside the segment where they are.
    fn make(&self) -> Result<(), std::io::Error> {
        std::fs::create_dir_all(&self.folder)?;
        drop(logspool_sys::folder::Folder::open(&self.path())?);
        match self.segment.home() {
            Some((folder, name)) => logspool_spool::pointer::write(folder, name, &self.path()),
            None => Ok(()),
        }
    }
}

/// Wakes the spool's thread.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Wakes it.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits for the bell, at most for `longest`.
    pub fn wait(&self, longest: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, longest, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// What an outlet knows of its spool; under its lock.
#[derive(Debug, Default)]
pub(super) struct SpoolState {
    /// The number behind the last chunk of the spool that was written.
    acked: u64,
    /// The sink was given up, and its spool with it.
    pub(super) is_over: bool,
    /// Bytes of files.
    pub(super) bytes: u64,
    /// Why it does not take records.
    pub(super) error: String,
    /// When the overflow files were found full, 0 while they are not, and when a chunk was last taken out of them.
    full_since: u64,
    stored_at: u64,
}

impl SpoolState {
    /// Whether the spool takes chunks out of overflow files that are full, or has not had the time to.
    pub(super) fn is_making_room(&mut self, is_full: bool, now: u64) -> bool {
        if !is_full {
            self.full_since = 0;
            return false;
        }
        if self.full_since == 0 {
            self.full_since = now;
        }
        self.error.is_empty() && now.saturating_sub(self.full_since.max(self.stored_at)) < PATIENCE_NS
    }
}

/// What the spool's thread keeps of an outlet.
#[derive(Debug, Default)]
pub(super) struct SpoolSlot {
    open: Option<SinkSpool>,
    /// When the disk may be tried again, and the pause before the try after that.
    try_at: u64,
    pause: u64,
    saved_at: u64,
    used_at: u64,
}

/// What a turn at one outlet came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpoolTurn {
    /// There is no spool, and no need of one.
    Idle,
    /// There is one, and nothing to do now.
    Waits,
    /// There may be more to do at once.
    Worked,
}

impl Outlet {
    /// Whether the spool's thread has something to look after here.
    pub fn wants_spool(&self, now: u64) -> bool {
        match self.overflowing_since.load(Ordering::Relaxed) {
            0 => false,
            1 => true,
            _ if self.hurries() => true,
            since => self.bell.is_some() && (now.saturating_sub(since) > SPOOL_AFTER_NS || self.budget.is_pressing()),
        }
    }

    /// Whether calls wait that a spool would let go on.
    pub(super) fn hurries(&self) -> bool {
        self.bell.is_some() && self.syncs.has_waiters()
    }

    /// Lets the outlet use a spool.
    pub fn set_bell(&mut self, bell: Option<Arc<Bell>>) {
        self.bell = bell;
    }

    /// The writer is done with an entry.
    pub(super) fn note_finished(&self, waiting: &mut Waiting, entry: &Entry) {
        let Some(bell) = &self.bell else { return };
        if let Some(end) = entry.spool_end {
            waiting.spool.acked = waiting.spool.acked.max(end);
            let entries = &waiting.entries;
            if entries.loaded_bytes() < LOAD_BYTES / 2 && entries.backlog().chunks > 0 {
                bell.ring();
            }
        }
    }

    /// Lets go of the spool's files. Call it when the thread is gone.
    pub fn close_spool(&self) {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).open = None;
    }

    /// One turn of the spool's thread.
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
                slot.pause = (slot.pause * 2).clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
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
            let mut waiting = self.lock();
            waiting.spool.bytes = spool.bytes();
            waiting.spool.error.clear();
        }
        let (acked, is_empty) = {
            let waiting = self.lock();
            (waiting.spool.acked, self.overflowing_since.load(Ordering::Relaxed) == 0)
        };
        spool.ack(acked)?;
        if is_empty || now.saturating_sub(slot.saved_at) > SAVE_NS {
            spool.checkpoint()?;
            slot.saved_at = now;
            self.lock().spool.bytes = spool.bytes();
        }
        if is_empty {
            // It is open and has all its room.
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
        // A queue in memory has no path that others could look at.
        let segment = home.segment.home().filter(|(folder, _)| folder.held().is_none());
        let segment = segment.map(|(folder, name)| folder.path().join(format!("{name}.seg")));
        let made = home
            .make()
            .and_then(|()| logspool_spool::pointer::make_sink_folder(&path, place.as_deref(), segment.as_deref()));
        made.map_err(|error| SpoolError::folder(&home.path(), error))?;
        SinkSpool::open(&path, home.max_bytes)
    }

    /// Puts chunks to disk that lie in overflow files. Returns whether there were some.
    fn store(&self, spool: &mut SinkSpool) -> Result<bool, SpoolError> {
        let mut stored = 0;
        let mut batches = Vec::new();
        while stored < STORE_BYTES {
            let next = {
                let mut waiting = self.lock();
                let hands = waiting.hands();
                let next = waiting.entries.next_to_spool(hands);
                next.map(|entry| (entry.batch, entry.bytes, entry.place.clone()))
            };
            let Some((batch, bytes, Some(place))) = next else { break };
            // tmpfs does not fail to read back what it took; should it, the writer finds out and counts.
            let Ok(entry) = place.read_entry() else { break };
            let end = spool.append(&entry, place.records())?;
            let mut waiting = self.lock();
            let (hands, taken) = (waiting.hands(), waiting.taken);
            match waiting.entries.note_spooled(batch, end, hands, taken) {
                Spooled::Away => {}
                Spooled::AtHand => spool.pass(end),
                Spooled::Gone => {
                    spool.pass(end);
                    // Everything before it is written too.
                    waiting.spool.acked = waiting.spool.acked.max(end);
                }
            }
            waiting.spool.stored_at = monotonic_ns();
            self.publish_fronts(&mut waiting);
            stored += bytes;
            batches.push(batch);
        }
        if !batches.is_empty() && self.syncs.tracks() {
            spool.sync()?;
            self.settle(&batches, Outcome::Durable);
        }
        Ok(stored > 0)
    }

    /// Brings chunks back. Returns whether there were some.
    fn load(&self, spool: &mut SinkSpool) -> Result<bool, SpoolError> {
        let mut worked = false;
        loop {
            {
                let waiting = self.lock();
                let entries = &waiting.entries;
                if entries.backlog().chunks == 0 || entries.loaded_bytes() >= LOAD_BYTES {
                    break;
                }
            }
            let next = spool.next()?;
            let mut waiting = self.lock();
            // Whoever gives the sink up takes the backlog away meanwhile.
            if waiting.entries.backlog().chunks == 0 {
                break;
            }
            match next {
                Next::Chunk(chunk, end) => waiting.entries.load(chunk, end),
                Next::Nothing => {
                    let lost = waiting.entries.lose_backlog();
                    let drops = &self.head().dropped[DropReason::Unreadable as usize];
                    drops.iter().zip(lost).for_each(|(drops, lost)| {
                        drops.fetch_add(lost, Ordering::Relaxed);
                    });
                }
            }
            self.publish_fronts(&mut waiting);
            worked = true;
        }
        if worked {
            self.changed.notify_all();
        }
        Ok(worked)
    }
}

impl Waiting {
    /// So many entries are in the hands of the writer, or may be.
    fn hands(&self) -> usize {
        self.taken.max(1)
    }
}
