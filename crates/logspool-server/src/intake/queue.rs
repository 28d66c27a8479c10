//! The queue of a store, in which origins take turns.
//!
//! Each origin has its own queue, which keeps the order of its items. Origins take turns, and the length of a turn is
//! counted in bytes. An origin that was idle has its first turn before all others. So a sender that waits for each ack
//! waits only for the transaction that is being written. It does not wait for the queued data of a thousand connections
//! of another origin. This is the scheme of RFC 8290 (FQ-CoDel).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::origin::Origin;

/// Number of bytes that an origin may send to the store in one turn.
///
/// Chosen: it is the size of some thousand records. Halving it would give a transaction more turns. Doubling it would
/// make an origin wait longer for its turn.
const TURN_BYTES: usize = 256 * 1024;

/// Creates the two ends of a queue.
pub fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(SharedQueue::default());
    (Sender(shared.clone()), Receiver(shared))
}

/// The sending end. Dropping it closes the queue: the receiver gets the remaining items, and then
/// [`ReceiveError::Closed`].
#[derive(Debug)]
pub struct Sender<T>(Arc<SharedQueue<T>>);

/// The receiving end.
#[derive(Debug)]
pub struct Receiver<T>(Arc<SharedQueue<T>>);

/// Reason why there is no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveError {
    /// No item arrived in time.
    Timeout,
    /// The queue is closed and empty.
    Closed,
}

#[derive(Debug)]
struct SharedQueue<T> {
    state: Mutex<QueueState<T>>,
    has_come: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    queues: HashMap<Origin, OriginQueue<T>>,
    /// The origins that were idle before and are in their first turn. They have their turns before the origins in
    /// `old`.
    new: VecDeque<Origin>,
    /// The origins whose first turn is over, in the order of their turns.
    old: VecDeque<Origin>,
    is_closed: bool,
}

#[derive(Debug)]
struct OriginQueue<T> {
    items: VecDeque<(T, usize)>,
    /// The bytes that are left of the turn. Negative if the last item had more bytes than were left.
    credit: i64,
}

impl<T> Default for SharedQueue<T> {
    fn default() -> Self {
        let state = QueueState { queues: HashMap::new(), new: VecDeque::new(), old: VecDeque::new(), is_closed: false };
        Self { state: Mutex::new(state), has_come: Condvar::new() }
    }
}

impl<T> SharedQueue<T> {
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Sender<T> {
    /// Appends an item of size `bytes` to the queue of its origin. If the receiver was dropped, the item is dropped
    /// too.
    pub fn send(&self, origin: Origin, item: T, bytes: usize) {
        let mut state = self.0.lock();
        if state.is_closed {
            return;
        }
        let QueueState { queues, new, .. } = &mut *state;
        let queue = queues.entry(origin).or_insert_with(|| {
            new.push_back(origin);
            OriginQueue { items: VecDeque::new(), credit: TURN_BYTES as i64 }
        });
        queue.items.push_back((item, bytes));
        drop(state);
        self.0.has_come.notify_one();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.has_come.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Returns the next item. Waits for it at most for the time `wait`.
    ///
    /// # Errors
    ///
    /// No item arrived in time, or the queue is closed and empty.
    pub fn receive(&self, wait: Duration) -> Result<T, ReceiveError> {
        let until = Instant::now() + wait;
        let mut state = self.0.lock();
        loop {
            if let Some(item) = state.next() {
                return Ok(item);
            }
            if state.is_closed {
                return Err(ReceiveError::Closed);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ReceiveError::Timeout);
            }
            state = self.0.has_come.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let lines = std::mem::take(&mut state.queues);
        drop(state);
        // Drop the items without holding the lock: dropping an item may wake a task that sends another item.
        drop(lines);
    }
}

impl<T> QueueState<T> {
    fn next(&mut self) -> Option<T> {
        loop {
            let turns = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let origin = *turns.front()?;
            let line = self.queues.get_mut(&origin)?;
            if line.credit <= 0 {
                line.credit += TURN_BYTES as i64;
                turns.pop_front();
                self.old.push_back(origin);
                continue;
            }
            let (item, bytes) = line.items.pop_front()?;
            line.credit -= i64::try_from(bytes).unwrap_or(i64::MAX);
            if line.items.is_empty() {
                turns.pop_front();
                self.queues.remove(&origin);
            }
            return Some(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn all(receiver: &Receiver<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| receiver.receive(Duration::ZERO).ok()).collect()
    }

    #[test]
    fn a_new_origin_goes_before_origins_with_long_queues() {
        let (sender, receiver) = queue();
        for item in ["a1", "a2", "a3", "a4"] {
            sender.send(origin(1), item, TURN_BYTES);
        }
        assert_eq!(Ok("a1"), receiver.receive(Duration::ZERO));
        assert_eq!(Ok("a2"), receiver.receive(Duration::ZERO));
        sender.send(origin(2), "b1", 1);

        assert_eq!(["b1", "a3", "a4"], *all(&receiver));
        assert!(receiver.0.lock().queues.is_empty() && receiver.0.lock().old.is_empty());
    }

    #[test]
    fn origins_take_turns_by_bytes_and_each_keeps_its_order() {
        let (sender, receiver) = queue();
        for item in ["a1", "a2", "a3"] {
            sender.send(origin(1), item, 3 * TURN_BYTES);
        }
        for item in ["b1", "b2", "b3", "b4", "b5", "b6"] {
            sender.send(origin(2), item, TURN_BYTES);
        }

        assert_eq!(["a1", "b1", "b2", "b3", "a2", "b4", "b5", "b6", "a3"], *all(&receiver));
    }

    #[test]
    fn a_closed_queue_returns_its_remaining_items_and_then_ends() {
        let (sender, receiver) = queue();
        sender.send(origin(1), "a", 1);
        assert_eq!(Ok("a"), receiver.receive(Duration::ZERO));
        assert_eq!(Err(ReceiveError::Timeout), receiver.receive(Duration::ZERO));
        sender.send(origin(1), "b", 1);
        drop(sender);

        assert_eq!(Ok("b"), receiver.receive(Duration::MAX / 4));
        assert_eq!(Err(ReceiveError::Closed), receiver.receive(Duration::MAX / 4));
    }

    #[test]
    fn items_for_a_receiver_that_has_gone_are_dropped() {
        let (sender, receiver) = queue();
        let item = Arc::new(());
        sender.send(origin(1), item.clone(), 1);
        drop(receiver);
        sender.send(origin(1), item.clone(), 1);

        assert_eq!(1, Arc::strong_count(&item));
    }
}
