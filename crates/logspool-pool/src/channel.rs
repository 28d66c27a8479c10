//! A bounded channel with counted senders, any number of receivers, and an end.
//!
//! One short lock guards the state. Threads wait on separate words, and a wake-up is sent only if a thread waits. When
//! the last sender is removed and all values are taken, the channel has ended. A taker that leaves closes the channel,
//! so that no sender waits for room for ever.

use std::collections::VecDeque;
use std::time::Duration;

use logspool_sys::futex::{WaitWord, low};
use logspool_sys::sync::{Mutex, MutexGuard, Ordering, PoisonError, TryLockError, is_weakened};

use super::jobs::QueueLimit;

/// Result of [`Channel::take`].
#[derive(Debug, PartialEq, Eq)]
pub enum TakeOutcome<T> {
    /// The oldest queued value.
    Value(T),
    /// The channel is empty now.
    Nothing,
    /// The channel is empty, and no sender is left or it was closed.
    End,
}

/// Why a value was refused. The value is returned to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRefused {
    /// The channel holds as many values as its bound allows.
    Full,
    /// The channel is closed.
    Closed,
}

/// A queue of values with counted senders.
#[derive(Debug)]
pub struct Channel<T> {
    state: Mutex<ChannelState<T>>,
    /// Maximum number of queued values; 0: no bound.
    bound: usize,
    /// The low half of the word changes when a value or the end arrives while a receiver waits.
    filled: WaitWord,
    /// The low half of the word changes when there is room again while a sender waits.
    room: WaitWord,
}

#[derive(Debug)]
struct ChannelState<T> {
    values: VecDeque<T>,
    senders: usize,
    closed: bool,
    takers_wait: usize,
    senders_wait: usize,
}

impl<T> Channel<T> {
    /// An empty channel without senders for at most `bound` values, 0 for no bound.
    pub fn new(bound: usize) -> Self {
        let state =
            ChannelState { values: VecDeque::new(), senders: 0, closed: false, takers_wait: 0, senders_wait: 0 };
        Self { state: Mutex::new(state), bound, filled: WaitWord::new(0), room: WaitWord::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, ChannelState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(word: &WaitWord, count: u32) {
        // The lock of the state orders the data. The word itself must change, so that a thread about to sleep does not
        // sleep.
        if !is_weakened("channel_bell_changes") {
            word.word.fetch_add(1, Ordering::Relaxed);
        }
        word.wake(count);
    }

    /// Adds a sender to the count.
    pub fn add_sender(&self) {
        self.state().senders += 1;
    }

    /// Removes a sender from the count; removing the last one ends the channel.
    pub fn remove_sender(&self) {
        let mut state = self.state();
        state.senders -= 1;
        let wakes = state.senders == 0 && state.takers_wait > 0;
        drop(state);
        if wakes {
            Self::notify(&self.filled, u32::MAX);
        }
    }

    /// As [`Channel::remove_sender`], in a forked child. Does nothing if another thread of the parent held the lock.
    pub fn remove_sender_after_fork(&self) {
        match self.state.try_lock() {
            Ok(mut state) => state.senders -= 1,
            Err(TryLockError::Poisoned(mut state)) => state.get_mut().senders -= 1,
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Queues a value.
    ///
    /// # Errors
    ///
    /// Returns the value and why it was refused.
    pub fn put(&self, value: T, limit: QueueLimit) -> Result<(), (T, ValueRefused)> {
        let mut state = self.state();
        if state.closed {
            return Err((value, ValueRefused::Closed));
        }
        if limit == QueueLimit::Kept && self.bound != 0 && state.values.len() >= self.bound {
            return Err((value, ValueRefused::Full));
        }
        state.values.push_back(value);
        let wakes = state.takers_wait > 0;
        drop(state);
        if wakes {
            Self::notify(&self.filled, 1);
        }
        Ok(())
    }

    /// Takes the oldest value.
    pub fn take(&self) -> TakeOutcome<T> {
        let mut state = self.state();
        let Some(value) = state.values.pop_front() else {
            return if state.senders == 0 || state.closed { TakeOutcome::End } else { TakeOutcome::Nothing };
        };
        let wakes = state.senders_wait > 0;
        drop(state);
        if wakes {
            Self::notify(&self.room, 1);
        }
        TakeOutcome::Value(value)
    }

    /// Closes the channel and returns the queued values.
    pub fn close(&self) -> VecDeque<T> {
        let mut state = self.state();
        state.closed = true;
        let values = std::mem::take(&mut state.values);
        drop(state);
        Self::notify(&self.room, u32::MAX);
        Self::notify(&self.filled, u32::MAX);
        values
    }

    /// Waits for a value or the end until woken, signalled or `timeout` is over. Returns whether there is one.
    pub fn wait_for_value(&self, timeout: Duration) -> bool {
        let found = |state: &ChannelState<T>| !state.values.is_empty() || state.senders == 0 || state.closed;
        self.wait(&self.filled, |state| &mut state.takers_wait, timeout, found)
    }

    /// Waits for room or a closed channel until woken, signalled or `timeout` is over. Returns whether there is one.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        let found = |state: &ChannelState<T>| state.closed || self.bound == 0 || state.values.len() < self.bound;
        self.wait(&self.room, |state| &mut state.senders_wait, timeout, found)
    }

    fn wait(
        &self,
        word: &WaitWord,
        waiting: impl Fn(&mut ChannelState<T>) -> &mut usize,
        timeout: Duration,
        found: impl Fn(&ChannelState<T>) -> bool,
    ) -> bool {
        let ticket = {
            let mut state = self.state();
            if found(&state) {
                return true;
            }
            *waiting(&mut state) += 1;
            low(word.peek())
        };
        word.wait(ticket, Some(timeout));
        let mut state = self.state();
        *waiting(&mut state) -= 1;
        found(&state)
    }

    /// Number of queued values.
    pub fn len(&self) -> usize {
        self.state().values.len()
    }

    /// Whether no value is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn values_arrive_in_order_before_the_end() {
        let channel = Channel::new(0);
        channel.add_sender();
        assert_eq!(TakeOutcome::Nothing, channel.take());
        channel.put(1, QueueLimit::Kept).unwrap();
        channel.put(2, QueueLimit::Kept).unwrap();
        channel.remove_sender();
        assert_eq!(2, channel.len());
        assert_eq!(
            (TakeOutcome::Value(1), TakeOutcome::Value(2), TakeOutcome::End),
            (channel.take(), channel.take(), channel.take())
        );
    }

    #[test]
    fn a_full_channel_refuses_values_until_there_is_room() {
        let channel = Channel::new(1);
        channel.add_sender();
        channel.put('a', QueueLimit::Kept).unwrap();
        assert_eq!(Err(('b', ValueRefused::Full)), channel.put('b', QueueLimit::Kept));
        assert!(!channel.wait_for_room(Duration::from_millis(1)));
        assert_eq!(TakeOutcome::Value('a'), channel.take());
        assert!(channel.wait_for_room(Duration::ZERO));
        channel.put('b', QueueLimit::Kept).unwrap();
        channel.put('c', QueueLimit::Ignored).unwrap();
        assert_eq!(2, channel.len(), "one of them beyond the bound");
    }

    #[test]
    fn a_closed_channel_accepts_nothing_and_returns_its_values() {
        let channel = Channel::new(1);
        channel.add_sender();
        channel.put('a', QueueLimit::Kept).unwrap();
        assert_eq!(vec!['a'], Vec::from(channel.close()));
        assert_eq!(Err(('b', ValueRefused::Closed)), channel.put('b', QueueLimit::Kept));
        assert!(channel.wait_for_room(Duration::ZERO), "nobody waits for room in it");
        assert_eq!(TakeOutcome::End, channel.take());
    }

    #[test]
    fn a_forked_child_removes_a_sender_unless_the_lock_is_held() {
        let channel = Channel::<()>::new(0);
        channel.add_sender();
        let held = channel.state();
        channel.remove_sender_after_fork();
        drop(held);
        assert_eq!(TakeOutcome::Nothing, channel.take());
        channel.remove_sender_after_fork();
        assert_eq!(TakeOutcome::End, channel.take());
    }

    #[test]
    fn threads_pass_on_every_value() {
        const EACH: u64 = 20_000;
        let channel = Channel::new(3);
        (0..3).for_each(|_| channel.add_sender());
        let sum = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for number in 0..EACH {
                        let mut value = number;
                        while let Err((back, ValueRefused::Full)) = channel.put(value, QueueLimit::Kept) {
                            value = back;
                            channel.wait_for_room(Duration::from_secs(10));
                        }
                    }
                    channel.remove_sender();
                });
            }
            let takers: Vec<_> = (0..2).map(|_| scope.spawn(|| sum_of_all(&channel))).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum::<u64>()
        });
        assert_eq!(3 * EACH * (EACH - 1) / 2, sum);
    }

    fn sum_of_all(channel: &Channel<u64>) -> u64 {
        let mut sum = 0;
        loop {
            match channel.take() {
                TakeOutcome::Value(value) => sum += value,
                TakeOutcome::Nothing => {
                    channel.wait_for_value(Duration::from_secs(10));
                }
                TakeOutcome::End => return sum,
            }
        }
    }
}
