//! Moves records from the sources to the stores. Each store has its own queue and writer thread. All stores share one
//! budget of bytes.
//!
//! A source waits for room in the budget before it decodes data. So the amount of data that waits for a slow store is
//! limited. While the source waits, it does not read the connection, so the sender gets backpressure. The room of a
//! batch is freed when every store has settled the batch.

mod queue;
mod repeated;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::budget::{Budget, Reservation};
use crate::delivery::{Chunk, Delivery, DropReason, Outcome, UnackedCount};
use crate::fence::Fence;
use crate::metrics::{Metrics, StoreMetrics};
use crate::origin::Origin;
use crate::stores::{Store, StoreError};
use crate::tails::Tails;
use queue::{ReceiveError, Receiver, Sender, queue};
use repeated::RepeatedWarnings;

/// A transaction takes no more batches once it has this number of records. With that many, the commit costs little
/// compared with writing the rows (measured with SQLite and PostgreSQL).
const GROUP_RECORDS: usize = 10_000;

/// A transaction takes no more batches once it has this number of bytes. Chosen: it is the size of [`GROUP_RECORDS`]
/// usual records. A larger value would make new records wait longer, because they wait while the transaction is
/// written.
const GROUP_BYTES: usize = 4 << 20;

/// How long a transaction waits for more records. Chosen: halving it would make a service with little load commit twice
/// as often. If it were doubled, users would notice the delay until queries find new records.
const GROUP_TIME: Duration = Duration::from_millis(50);

/// How long a transaction waits for more records if the sender of one of its records waits for an ack.
///
/// Chosen: a commit takes 2 to 5 ms on a good disk, so most of the time remains for collecting records. With the larger
/// [`GROUP_TIME`], an ack would take ten times as long while there are other senders as without them.
const ACK_TIME: Duration = Duration::from_millis(10);

/// A transaction stops waiting if no batch arrives for this time. By then, senders that wait for acks have sent all
/// that they may send without an ack.
const GROUP_IDLE_TIME: Duration = Duration::from_millis(5);

/// Minimum time between two maintenance calls of a store.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// The first and the longest pause between two attempts to write.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How long the start of the service waits for the first check of each store. Chosen: working stores need less time. A
/// store that does not answer within this time is reported, and checked again later.
const FIRST_CHECK_TIME: Duration = Duration::from_secs(3);

/// Takes records from the sources and gives them to the stores.
#[derive(Debug)]
pub struct Intake {
    /// The sending end of each store's queue. Empty after the intake is closed.
    stores: RwLock<Vec<Sender<Arc<Delivery>>>>,
    /// Memory for received data.
    pub budget: Budget,
    streams: Mutex<HashMap<String, Fence>>,
    /// Number of records that wait for a store and whose senders do not use acks, so they will not send them again.
    unacked: Arc<AtomicU64>,
    /// Number of bytes from senders without acks that wait for room before they are decoded.
    undecoded: Arc<AtomicU64>,
    /// The live tails, which get each accepted batch.
    pub tails: Tails,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

/// The writer threads, to be joined at the end.
#[derive(Debug)]
pub struct Writers {
    threads: Vec<JoinHandle<()>>,
    is_ending: Arc<AtomicBool>,
    /// One receiver for each store. It gets a message after the first check of the store.
    checked: Vec<oneshot::Receiver<()>>,
}

impl Intake {
    /// Starts a writer for each store. At most `budget_bytes` of records wait for the stores.
    ///
    /// # Errors
    ///
    /// A thread cannot be started.
    pub fn start(
        stores: Vec<Box<dyn Store>>,
        budget_bytes: usize,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<(Arc<Self>, Writers)> {
        let is_ending = Arc::new(AtomicBool::new(false));
        let (mut senders, mut threads, mut checked) = (Vec::new(), Vec::new(), Vec::new());
        for store in stores {
            let (sender, receiver) = queue();
            let metrics = metrics.store(store.name());
            let (is_ending, maintained) = (is_ending.clone(), Instant::now());
            let (first_check, told) = oneshot::channel();
            let repeated = RepeatedWarnings::default();
            let writer =
                Writer { store, receiver, metrics, is_ending, maintained, repeated, first_check: Some(first_check) };
            checked.push(told);
            threads.push(std::thread::Builder::new().name("store".to_owned()).spawn(move || writer.run())?);
            senders.push(sender);
        }
        let intake = Self {
            stores: RwLock::new(senders),
            budget: Budget::new(budget_bytes),
            streams: Mutex::default(),
            unacked: Arc::default(),
            undecoded: Arc::default(),
            tails: Tails::default(),
            metrics,
        };
        Ok((Arc::new(intake), Writers { threads, is_ending, checked }))
    }

    /// Waits for room for a decoded batch.
    pub async fn room_for(&self, origin: Origin, batch: &Batch) -> Reservation {
        self.budget.for_records(origin, batch.bytes()).await
    }

    /// Gives a batch to every store. The receiver gets the outcome, or an error if the service ends before there is an
    /// outcome.
    pub fn submit(
        &self,
        batch: Batch,
        numbered: Option<(Chunk, Fence)>,
        mut room: Reservation,
    ) -> oneshot::Receiver<Outcome> {
        room.mark_queued();
        let (chunk, fence) = numbered.unzip();
        let (to, from) = oneshot::channel();
        self.deliver(room.origin(), batch, |batch, stores| {
            Delivery::fenced(batch, chunk, fence, to, stores, Some(room))
        });
        from
    }

    /// Changes the size of the room to the size of the batch.
    pub async fn resize(&self, mut room: Reservation, batch: &Batch) -> Reservation {
        room.shrink(batch.bytes());
        if room.fits(batch.bytes()) {
            return room;
        }
        // A single record may need more than the reserved room. Free the room before waiting for more: tasks that hold
        // room and wait for more could deadlock.
        let origin = room.origin();
        drop(room);
        self.room_for(origin, batch).await
    }

    /// Gives a batch from a sender without acks to every store. `room` is reserved for the batch. If the task is
    /// stopped while it waits for more room, the records stay counted in [`Self::unacked()`], so that they are reported
    /// as lost.
    pub async fn submit_unacked(&self, batch: Batch, room: Reservation) {
        if batch.is_empty() {
            return;
        }
        let unheard = UnackedCount::new(&self.unacked, batch.len());
        let room = self.resize(room, &batch).await;
        self.deliver_unacked(batch, unheard, room);
    }

    fn deliver_unacked(&self, batch: Batch, unheard: UnackedCount, mut room: Reservation) {
        room.mark_queued();
        self.deliver(room.origin(), batch, |batch, stores| Delivery::without_ack(batch, unheard, stores, Some(room)));
    }

    /// Gives a batch from a sender that cannot wait to every store, as [`Self::submit_unacked`] does. If there is no
    /// room now, drops the batch and returns false.
    pub fn try_submit_unacked(&self, origin: Origin, batch: Batch) -> bool {
        let Some(room) = self.budget.try_for_records(origin, batch.bytes()) else { return false };
        let unheard = UnackedCount::new(&self.unacked, batch.len());
        self.deliver_unacked(batch, unheard, room);
        true
    }

    /// Waits for room for the records that `input_bytes` may hold. The sender will not send `received_bytes` again, so
    /// they count as undecoded during the wait. If the service ends during the wait, it reports them.
    pub async fn room_to_decode(&self, origin: Origin, input_bytes: usize, received_bytes: usize) -> Reservation {
        let undecoded = UnackedCount::new(&self.undecoded, received_bytes);
        let room = self.budget.for_decoding(origin, input_bytes).await;
        undecoded.settled();
        room
    }

    /// Gives a batch to the live tails and to every store. `delivery` creates the delivery of the batch; its second
    /// argument is the number of stores.
    fn deliver(&self, origin: Origin, batch: Batch, delivery: impl FnOnce(Arc<Batch>, usize) -> Arc<Delivery>) {
        self.metrics.accepted.add(batch.len() as u64);
        let batch = Arc::new(batch);
        self.tails.offer(&batch);
        let bytes = batch.used_bytes();
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        let delivery = delivery(batch, stores.len());
        for store in stores.iter() {
            // If the writer of the store has ended, the delivery is dropped and its sender gets no outcome.
            store.send(origin, delivery.clone(), bytes);
        }
    }

    /// Number of records from senders without acks that are not in every store yet.
    pub fn unacked(&self) -> u64 {
        self.unacked.load(Ordering::Relaxed)
    }

    /// Number of received bytes from senders without acks that are not decoded yet.
    pub fn undecoded(&self) -> u64 {
        self.undecoded.load(Ordering::Relaxed)
    }

    /// True if data waits for a store or for room, or holds room for records.
    pub fn is_waiting(&self) -> bool {
        self.unacked() > 0 || self.undecoded() > 0 || self.budget.is_in_use()
    }

    /// Assigns a stream to a connection. If another connection had the stream before, that connection loses it.
    pub fn take_stream(&self, stream: &str) -> Fence {
        let fence = Fence::default();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Remove streams of closed connections before the table grows.
        if streams.len() == streams.capacity() {
            streams.retain(|_, fence| fence.is_shared());
        }
        if let Some(before) = streams.insert(stream.to_owned(), fence.clone()) {
            before.replace();
        }
        fence
    }

    /// Stops taking batches. Batches that are submitted later get no outcome. The writers end when they have written
    /// all earlier batches.
    pub fn close(&self) {
        self.stores.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Writers {
    /// Waits for the first check of each store, for three seconds at most. The results of the checks are in the
    /// metrics.
    pub async fn wait_for_first_checks(&mut self) {
        let all = futures_util::future::join_all(self.checked.drain(..));
        let _ = tokio::time::timeout(FIRST_CHECK_TIME, all).await;
    }

    /// Waits until all submitted batches are written. The caller has to close the intake first. Returns false if the
    /// deadline passes before all batches are written, or if a writer panicked.
    pub fn finish(self, deadline: Duration) -> bool {
        let until = Instant::now() + deadline;
        while self.threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.is_ending.store(true, Ordering::Relaxed);
        let all = self.threads.iter().all(JoinHandle::is_finished);
        all && self.threads.into_iter().all(|thread| thread.join().is_ok())
    }
}

struct Writer {
    store: Box<dyn Store>,
    receiver: Receiver<Arc<Delivery>>,
    metrics: Arc<StoreMetrics>,
    is_ending: Arc<AtomicBool>,
    /// Time of the last maintenance.
    maintained: Instant,
    repeated: RepeatedWarnings,
    first_check: Option<oneshot::Sender<()>>,
}

impl Writer {
    fn run(mut self) {
        self.check();
        self.metrics.note_problems(self.store.problems());
        // If the receiver was dropped, sending fails, which does not matter.
        self.first_check.take().map(|to| to.send(()));
        let mut has_written = false;
        loop {
            match self.receiver.receive(MAINTENANCE_INTERVAL) {
                Ok(first) => {
                    let group = self.group(first);
                    if !self.write(&group) {
                        break;
                    }
                    has_written = true;
                }
                Err(ReceiveError::Timeout) => {}
                Err(ReceiveError::Closed) => break,
            }
            if self.maintained.elapsed() >= MAINTENANCE_INTERVAL {
                if !std::mem::take(&mut has_written) {
                    self.check();
                }
                self.maintain();
            }
        }
        let name = self.store.name().to_owned();
        if let Err(error) = self.store.close() {
            tracing::warn!(store = name, "cannot close the store: {error}");
        }
    }

    /// Checks whether the store still works, while there is nothing to write.
    fn check(&mut self) {
        let Some(answered) = self.metrics.watch_call(|| self.store.check()) else { return };
        self.metrics.record_check(&answered);
        match answered {
            Ok(()) => self.works("check"),
            Err(error) => self.warn("check", &error, "the store cannot be used"),
        }
    }

    /// Runs the store's maintenance.
    fn maintain(&mut self) {
        self.maintained = Instant::now();
        let maintained = self.metrics.watch_call(|| self.store.maintain());
        let mut problems = self.store.problems();
        if let Err(error) = maintained {
            self.warn("maintain", &error, "cannot maintain the store");
            problems.push(error.to_string());
        }
        self.metrics.note_problems(problems);
        if let Some(gaps) = self.metrics.watch_call(|| self.store.gap_counts()) {
            self.metrics.count_gaps(gaps);
        }
    }

    /// Logs an error with its consequence `what`, unless the same warning was logged a short time ago.
    fn warn(&mut self, kind: &'static str, error: &StoreError, what: &str) {
        if !self.repeated.is_due(kind, &error.to_string(), Instant::now()) {
            return;
        }
        let store = self.store.name();
        match error {
            StoreError::Retry(why) => tracing::warn!(store, "{what}: {why}; retrying"),
            StoreError::Fatal(why) => {
                tracing::error!(store, "{what}, and needs a repair: {why}; retrying");
            }
        }
    }

    /// Logs that the store works again, if there was a warning of this kind.
    fn works(&mut self, kind: &'static str) {
        if self.repeated.clear(kind) {
            tracing::info!(store = self.store.name(), "the store can be used again");
        }
    }

    /// Collects the batches of one transaction.
    fn group(&self, first: Arc<Delivery>) -> Vec<Arc<Delivery>> {
        let until = |delivery: &Delivery| Instant::now() + if delivery.is_awaited() { ACK_TIME } else { GROUP_TIME };
        let mut end = until(&first);
        let (mut records, mut bytes) = (first.batch.len(), first.batch.used_bytes());
        let mut group = vec![first];
        while records < GROUP_RECORDS && bytes < GROUP_BYTES {
            match self.receiver.receive(end.saturating_duration_since(Instant::now()).min(GROUP_IDLE_TIME)) {
                Ok(next) => {
                    records += next.batch.len();
                    bytes += next.batch.used_bytes();
                    end = end.min(until(&next));
                    group.push(next);
                }
                Err(_) => break,
            }
        }
        group
    }

    fn settle(&self, delivery: &Delivery, outcome: Outcome) {
        let records = delivery.batch.len() as u64;
        match outcome {
            Outcome::Committed => {}
            Outcome::Dropped(DropReason::OlderEpoch) => self.metrics.count_outdated(records),
            Outcome::Refused => self.metrics.count_refused(records),
        }
        delivery.settle(outcome);
    }

    /// Writes a group, and retries until it is written. Returns false if the service ends before the group is written.
    fn write(&mut self, group: &[Arc<Delivery>]) -> bool {
        let (refused, group): (Vec<_>, Vec<_>) = group.iter().cloned().partition(|delivery| delivery.is_replaced());
        for delivery in refused {
            self.settle(&delivery, Outcome::Refused);
        }
        let mut wait = RETRY_PAUSES.0;
        loop {
            let began = Instant::now();
            match self.metrics.watch_call(|| self.store.write(&group)) {
                Ok(written) => {
                    self.metrics.count_written(&written, began.elapsed());
                    self.works("write");
                    for (delivery, outcome) in group.iter().zip(&written.outcomes) {
                        self.settle(delivery, *outcome);
                    }
                    return true;
                }
                Err(why) => {
                    self.metrics.count_failed(&why.to_string());
                    if self.is_ending.load(Ordering::Relaxed) {
                        tracing::error!(
                            store = self.store.name(),
                            "cannot write, and the service is shutting down: {why}"
                        );
                        return false;
                    }
                    // Retry fatal errors too. Senders with backpressure wait until a person repairs the store, so none
                    // of their records are lost.
                    self.warn("write", &why, "cannot write records");
                    if matches!(why, StoreError::Fatal(_)) {
                        wait = RETRY_PAUSES.1;
                    }
                    // Run maintenance here too: on a full disk, the removal of old records makes room.
                    if self.maintained.elapsed() >= MAINTENANCE_INTERVAL {
                        self.maintain();
                    }
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(RETRY_PAUSES.1);
                }
            }
        }
    }
}
