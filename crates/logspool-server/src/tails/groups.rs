//! Groups of followers by filter, and the thread that compares new records with each filter.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc::{self, Sender};

use crate::batch::Batch;
use crate::origin::Origin;
use crate::query::{Filter, Matcher};
use crate::share::Refusal;
use crate::show::{Colour, Format, Output, TextStyle};
use crate::stores::AnswerRow;

/// The niceness of the thread. Long queries run at the same one.
const NICE: i32 = 15;

/// Maximum number of pieces that wait for a follower. The matching records of a batch form one piece.
const WAITING: usize = 64;

/// Maximum size of the pieces that wait for a follower, in bytes. A single piece may be larger. Chosen: a thousand
/// records fit, which a client shows within a few moments.
const WAITING_BYTES: usize = 256 * 1024;

/// State shared by the intake, the thread of the tails and the followers.
#[derive(Debug, Default)]
pub(super) struct TailState {
    pub groups: Groups,
    /// Number of followers.
    pub followers: AtomicUsize,
    /// Size of the batches that wait for the thread, in bytes.
    pub waiting: AtomicUsize,
    /// Number of records in batches that the thread did not get, so that all current followers missed them.
    pub skipped: AtomicU64,
    /// Number of comparisons of a record with a filter.
    pub compared: AtomicU64,
}

/// All groups of followers.
#[derive(Debug, Default)]
pub(super) struct Groups(Mutex<GroupsState>);

#[derive(Debug, Default)]
struct GroupsState {
    next_id: u64,
    /// The groups, by the text of their filter.
    groups: HashMap<String, Arc<FilterGroup>>,
    followers: usize,
    of_peers: HashMap<Origin, usize>,
}

/// Followers with the same filter.
#[derive(Debug)]
pub(super) struct FilterGroup {
    filter: String,
    matcher: Matcher,
    followers: Mutex<Vec<Follower>>,
}

#[derive(Debug)]
struct Follower {
    id: u64,
    peer: Origin,
    to: Sender<Bytes>,
    backlog: Arc<Backlog>,
}

/// The number of bytes that wait for a follower, and the number of records that it missed.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    bytes: AtomicUsize,
    missed: AtomicU64,
}

impl Backlog {
    /// Subtracts bytes that a follower has taken.
    pub fn subtract(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Number of records missed since the last call.
    pub fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }
}

/// What a new follower gets: its group, its id, the receiver of its events, and its backlog.
type Membership = (Arc<FilterGroup>, u64, mpsc::Receiver<Bytes>, Arc<Backlog>);

impl Groups {
    /// Adds a follower, unless the limit is reached or its peer already has its share.
    pub fn join(&self, filter: &Filter, peer: Origin, limit: usize) -> Result<Membership, Refusal> {
        let mut joined = lock(&self.0);
        let held = joined.of_peers.get(&peer).copied().unwrap_or_default();
        Refusal::check(held, limit.saturating_sub(joined.followers), limit)?;
        joined.followers += 1;
        joined.of_peers.insert(peer, held + 1);
        joined.next_id += 1;
        let id = joined.next_id;
        let written = filter.to_string();
        let group = joined.groups.entry(written.clone()).or_insert_with(|| {
            Arc::new(FilterGroup { filter: written, matcher: Matcher::new(filter), followers: Mutex::default() })
        });
        let (to, from) = mpsc::channel(WAITING);
        let backlog = Arc::<Backlog>::default();
        lock(&group.followers).push(Follower { id, peer, to, backlog: backlog.clone() });
        Ok((group.clone(), id, from, backlog))
    }

    /// Removes a follower. If it was the last one of its group, the group is removed too.
    pub fn leave(&self, group: &FilterGroup, id: u64) {
        let mut joined = lock(&self.0);
        let mut followers = lock(&group.followers);
        let Some(at) = followers.iter().position(|follower| follower.id == id) else { return };
        let peer = followers.swap_remove(at).peer;
        if followers.is_empty() {
            joined.groups.remove(&group.filter);
        }
        joined.followers -= 1;
        if let Some(held) = joined.of_peers.get_mut(&peer) {
            *held -= 1;
            if *held == 0 {
                joined.of_peers.remove(&peer);
            }
        }
    }

    /// The current groups. The list is copied, so that the lock is free for joining and leaving followers while a batch
    /// is compared.
    fn now(&self) -> Vec<Arc<FilterGroup>> {
        lock(&self.0).groups.values().cloned().collect()
    }
}

impl FilterGroup {
    /// Sends `events`, which contain `records` records, to all followers of the group. The followers share one copy of
    /// the text.
    fn send(&self, events: &Bytes, records: u64) {
        for Follower { to, backlog, .. } in &*lock(&self.followers) {
            // Relaxed: only this thread adds bytes, so the current number is not larger than the number read here.
            let waiting = backlog.bytes.load(Ordering::Relaxed);
            match to.try_reserve() {
                Ok(place) if waiting == 0 || waiting + events.len() <= WAITING_BYTES => {
                    backlog.bytes.fetch_add(events.len(), Ordering::Relaxed);
                    place.send(events.clone());
                }
                _ => _ = backlog.missed.fetch_add(records, Ordering::Relaxed),
            }
        }
    }
}

/// Compares new batches with the filters until the service ends.
pub(super) fn run(shared: &TailState, batches: &Receiver<Arc<Batch>>) {
    // On Linux, `nice` affects only the calling thread.
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!("live tails run at normal priority: {error}");
    }
    while let Ok(batch) = batches.recv() {
        compare_batch(shared, &batch);
        shared.waiting.fetch_sub(batch.bytes(), Ordering::Relaxed);
    }
}

fn compare_batch(shared: &TailState, batch: &Batch) {
    let groups = shared.groups.now();
    // The event of each row. It is encoded only when the first filter matches the row.
    let mut events: Vec<Option<String>> = vec![None; batch.len()];
    for group in groups {
        let mut text = String::new();
        let mut records = 0;
        for (row, event) in batch.rows().zip(&mut events) {
            if group.matcher.matches_row(&row) {
                text += event.get_or_insert_with(|| as_event(&AnswerRow::Record(row.record())));
                records += 1;
            }
        }
        shared.compared.fetch_add(batch.len() as u64, Ordering::Relaxed);
        if records > 0 {
            group.send(&Bytes::from(text), records);
        }
    }
}

/// Formats a row as a server-sent event. One `data:` line is enough, because the JSON has no line feed.
fn as_event(found: &AnswerRow<'_>) -> String {
    let mut output = Output::new(Vec::new(), Format::Ndjson, None, TextStyle { colour: Colour::Off, columns: 0 });
    let mut event = String::new();
    // Writing to memory cannot fail.
    if output.row(found).is_ok() {
        let line = String::from_utf8_lossy(output.writer());
        let _ = write!(event, "data: {}\n\n", line.trim_end());
    }
    event
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
impl Groups {
    /// Holds the lock of the groups, which blocks the thread at its next batch.
    pub fn hold(&self) -> impl Drop + '_ {
        struct Held<'a>(#[allow(dead_code, reason = "it is held")] MutexGuard<'a, GroupsState>);
        impl Drop for Held<'_> {
            fn drop(&mut self) {}
        }
        Held(lock(&self.0))
    }

    /// True if there are no followers.
    #[cfg(test)]
    pub fn are_empty(&self) -> bool {
        let joined = lock(&self.0);
        joined.groups.is_empty() && joined.of_peers.is_empty() && joined.followers == 0
    }
}
