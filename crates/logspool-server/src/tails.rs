//! Live tails: clients that follow new records.
//!
//! ```text
//! intake -> queue -> one thread of low priority -> a short queue for each follower -> its connection
//! ```
//!
//! Followers with the same filter form a group (`groups.rs`). Each record is compared once with each filter, and is
//! encoded once, however many clients follow. The intake only adds a batch to a short queue. A slow follower misses
//! records. If the thread is too slow, all followers miss records. Each follower is told how many records it missed.
//!
//! The counters are atomics because the intake must not wait for a lock that the thread holds.

mod groups;

use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;

use crate::batch::Batch;
use crate::origin::Origin;
use crate::query::Filter;
use crate::share::Refusal;
use groups::{FilterGroup, TailState};

/// Maximum number of batches that wait for the thread. A batch is one read of a connection (some 64 KiB) or one
/// request. The memory budget of the intake does not count these batches, so the number is small.
const WAITING: usize = 64;

/// Maximum size of the waiting batches in bytes. A single batch may be larger. Chosen: [`WAITING`] batches of the usual
/// size.
const WAITING_BYTES: usize = WAITING * 64 * 1024;

/// The followers.
#[derive(Debug, Default)]
pub struct Tails {
    shared: Arc<TailState>,
    /// Sends batches to the thread. The thread starts with the first follower, and ends when this sender is dropped.
    thread: OnceLock<SyncSender<Arc<Batch>>>,
}

/// Receives the records for one follower. Dropping it removes the follower.
#[derive(Debug)]
pub struct Tail {
    shared: Arc<TailState>,
    group: Arc<FilterGroup>,
    id: u64,
    from: Receiver<Bytes>,
    missed: Arc<groups::Backlog>,
    /// Value of `TailState::skipped` when the missed records were last reported to this follower.
    skipped: u64,
}

impl Tails {
    /// Follows new records that match a filter. There are at most `limit` followers, and each peer may hold only a
    /// share of this number.
    ///
    /// # Errors
    ///
    /// The follower is refused. The error says whether all places are in use or the peer has its share.
    pub fn follow(&self, filter: &Filter, peer: Origin, limit: usize) -> Result<Tail, Refusal> {
        // Start the thread first, so that every follower that is counted gets records.
        self.thread.get_or_init(|| {
            let (to, batches) = sync_channel(WAITING);
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("logspool-tails".to_owned());
            if let Err(error) = thread.spawn(move || groups::run(&shared, &batches)) {
                tracing::error!("live tails do not work: cannot start a thread: {error}");
            }
            to
        });
        let skipped = self.shared.skipped.load(Ordering::Relaxed);
        let (group, id, from, missed) = self.shared.groups.join(filter, peer, limit)?;
        self.shared.followers.fetch_add(1, Ordering::Relaxed);
        Ok(Tail { shared: self.shared.clone(), group, id, from, missed, skipped })
    }

    /// Offers a batch to all followers, without waiting.
    pub fn offer(&self, batch: &Arc<Batch>) {
        // Relaxed, here and below: a follower that joins at this moment is allowed to miss this batch.
        if self.is_empty() {
            return;
        }
        let bytes = batch.bytes();
        let waiting = self.shared.waiting.fetch_add(bytes, Ordering::Relaxed);
        let has_room = waiting == 0 || waiting + bytes <= WAITING_BYTES;
        let is_sent = has_room && self.thread.get().is_some_and(|to| to.try_send(batch.clone()).is_ok());
        if !is_sent {
            self.shared.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.shared.skipped.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }

    /// Number of followers.
    pub fn len(&self) -> usize {
        self.shared.followers.load(Ordering::Relaxed)
    }

    /// True if there are no followers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Tail {
    /// Waits for the next records, as server-sent events. `None`: the service ends.
    pub async fn next(&mut self) -> Option<Bytes> {
        let events = self.from.recv().await?;
        self.missed.subtract(events.len());
        Some(events)
    }

    /// Number of records missed since the last call.
    pub fn missed(&mut self) -> u64 {
        let skipped = self.shared.skipped.load(Ordering::Relaxed);
        self.missed.missed() + (skipped - std::mem::replace(&mut self.skipped, skipped))
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.shared.groups.leave(&self.group, self.id);
        self.shared.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::batch::Arrival;
    use crate::query::parse;
    use crate::record::Record;

    const LIMIT: usize = 16;

    const USER: Origin = Origin::User(0);

    fn batch(messages: &[&str]) -> Arc<Batch> {
        let mut batch = Batch::default();
        for message in messages {
            let record = Record { message: (*message).into(), ..Record::default() };
            batch.push(&record, Arrival { time_ns: 0, host: "" });
        }
        Arc::new(batch)
    }

    fn follow(tails: &Tails, text: &str) -> Tail {
        tails.follow(&parse(text, 0).unwrap().filter, USER, LIMIT).unwrap()
    }

    /// Returns the messages of the next events.
    fn messages(tail: &mut Tail) -> Vec<String> {
        let events = futures_executor::block_on(tail.next()).unwrap();
        let text = std::str::from_utf8(&events).unwrap();
        let event = |event: &str| Record::from_json(event.strip_prefix("data: ").unwrap()).unwrap().into_owned();
        text.split_terminator("\n\n").map(|text| event(text).message.into_owned()).collect()
    }

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_record_is_matched_once_per_filter_and_encoded_once() {
        let tails = Tails::default();
        // Both texts describe the same filter.
        let mut same =
            ["message~\"a.*\" level<=50", "message ~ \"a.*\"  AND level<=critical"].map(|text| follow(&tails, text));
        let mut other = follow(&tails, "message~b");
        tails.offer(&batch(&["a", "ab", "c"]));

        assert_eq!(["a", "ab"], messages(&mut same[0]).as_slice());
        assert_eq!(["ab"], messages(&mut other).as_slice());
        assert_eq!(2 * 3, tails.shared.compared.load(Ordering::Relaxed));
        tails.offer(&batch(&["a"]));
        let [first, second] = &mut same;
        let (one, two) = futures_executor::block_on(async {
            let _ = second.next().await;
            (first.next().await.unwrap(), second.next().await.unwrap())
        });
        assert_eq!(one.as_ptr(), two.as_ptr());
    }

    #[test]
    fn a_slow_follower_misses_records_and_gets_their_number() {
        let tails = Tails::default();
        let mut deaf = follow(&tails, "");
        let mut other = follow(&tails, "");
        let message = "x".repeat(1 << 10);
        let batch = batch(&[&*message; 100]);
        let mut sent = 0;
        while deaf.missed.missed() == 0 {
            tails.offer(&batch);
            sent += 100;
            assert_eq!(100, messages(&mut other).len());
        }
        tails.offer(&batch);
        assert_eq!(100, messages(&mut other).len());

        let mut came = 0;
        while let Ok(events) = deaf.from.try_recv() {
            came += events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        }
        // The 100 missed records that ended the loop were already taken by the call in its condition.
        assert_eq!((sent - 100, 100, 0), (came, deaf.missed(), other.missed()));
        assert_eq!(0, deaf.missed());
    }

    #[test]
    fn all_followers_miss_batches_that_the_thread_cannot_handle_in_time() {
        let tails = Tails::default();
        let mut tail = follow(&tails, "never");
        // While the test holds this lock, the thread finishes no batch.
        let held = tails.shared.groups.hold();
        let large = "x".repeat(1 << 20);
        let batch = batch(&[&*large]);
        for _ in 0..16 {
            tails.offer(&batch);
        }

        assert!(tails.shared.waiting.load(Ordering::Relaxed) <= WAITING_BYTES);
        assert!((11..=13).contains(&tail.missed()), "three or four wait, one is held");
        drop(held);
        until("it goes on", || tails.shared.waiting.load(Ordering::Relaxed) == 0);
        assert_eq!(0, tail.missed());
    }

    #[test]
    fn a_follower_that_left_is_forgotten_and_no_peer_takes_all_places() {
        let tails = Tails::default();
        let filter = parse("x", 0).unwrap().filter;
        let of_one: Vec<_> = std::iter::from_fn(|| tails.follow(&filter, USER, LIMIT).ok()).collect();
        assert_eq!((6, 6), (of_one.len(), tails.len()));
        let refusal = tails.follow(&filter, USER, LIMIT).unwrap_err();
        assert_eq!(Refusal::Share { held: 6, limit: LIMIT }, refusal);
        assert!(tails.follow(&filter, Origin::User(1), LIMIT).is_ok());

        drop(of_one);
        assert!(tails.is_empty() && tails.shared.groups.are_empty());
    }
}
