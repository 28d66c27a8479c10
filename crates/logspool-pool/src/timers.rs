//! Values that become due later, in the order of their time, and the one thread that waits for them.
//!
//! There are two ordered maps, one for each clock. Adding a timer, finding the earliest one and removing one by its key
//! each take logarithmic time. The caller provides the thread. The thread asks [`Timers::next`] for its next step. A
//! new timer wakes it only if it is earlier than all other timers of its clock.

use std::collections::BTreeMap;
use std::time::Duration;

use logspool_sys::futex::{WaitWord, low};
use logspool_sys::sync::{Mutex, MutexGuard, Ordering, PoisonError, TryLockError, is_weakened};

/// Time after which a thread without timers ends. Chosen: it is longer than the pauses between the timers of a program
/// that uses them. It is short enough that an unused thread does not stay around.
const IDLE: Duration = Duration::from_secs(10);

/// Longest sleep while a timer waits for the wall clock. Setting that clock wakes no thread, so the thread must check
/// it.
const WALL_SLICE: Duration = Duration::from_secs(1);

/// The clock that a time refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`.
    Steady = 0,
    /// `CLOCK_REALTIME`, which may be set.
    Wall = 1,
}

/// Readings of both clocks in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct ClockReadings {
    /// `CLOCK_MONOTONIC`.
    pub steady: u64,
    /// `CLOCK_REALTIME`.
    pub wall: u64,
}

impl ClockReadings {
    /// Reads the clocks.
    #[cfg(not(loom))]
    pub fn read() -> Self {
        Self {
            steady: logspool_sys::clock::monotonic_ns(),
            wall: u64::try_from(logspool_sys::clock::wall_ns()).unwrap_or(0),
        }
    }

    fn of(self, clock: usize) -> u64 {
        [self.steady, self.wall][clock]
    }
}

/// Identifies a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerKey {
    /// The clock to which the time `at` refers.
    pub clock: Clock,
    /// When the timer is due, in nanoseconds on `clock`.
    pub at: u64,
    /// Distinguishes timers with the same time; lower numbers are due first.
    pub number: u64,
}

/// The next step of the timer thread.
#[derive(Debug)]
pub enum TimerStep<T> {
    /// This value is due. Call [`Timers::next`] again after handling it.
    Due(T),
    /// Call [`Timers::sleep`] with this ticket and this duration.
    Sleep(u32, Duration),
    /// The thread must end, because no timer waits. It is already removed from the state.
    Leave,
}

/// Values that wait until they are due.
#[derive(Debug)]
pub struct Timers<T> {
    state: Mutex<TimersState<T>>,
    /// The low half of the word changes when the thread must check the timers again.
    bell: WaitWord,
}

#[derive(Debug)]
struct TimersState<T> {
    /// The waiting values of each clock, indexed by [`Clock`].
    waiting: [BTreeMap<(u64, u64), T>; 2],
    numbers: u64,
    has_thread: bool,
    asleep: bool,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        let state =
            TimersState { waiting: [BTreeMap::new(), BTreeMap::new()], numbers: 0, has_thread: false, asleep: false };
        Self { state: Mutex::new(state), bell: WaitWord::new(0) }
    }
}

impl<T> Timers<T> {
    fn state(&self) -> MutexGuard<'_, TimersState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new key for a timer that is due at `at`, for [`Timers::add`].
    pub fn key(&self, clock: Clock, at: u64) -> TimerKey {
        let mut state = self.state();
        state.numbers += 1;
        TimerKey { clock, at, number: state.numbers }
    }

    /// Adds a value. Returns whether the caller must start the timer thread, which is already recorded as started.
    pub fn add(&self, key: TimerKey, value: T) -> bool {
        let mut state = self.state();
        let waiting = &mut state.waiting[key.clock as usize];
        waiting.insert((key.at, key.number), value);
        let is_first = waiting.first_key_value().is_some_and(|(first, _)| first.1 == key.number);
        if !state.has_thread {
            state.has_thread = true;
            return true;
        }
        if is_first && state.asleep {
            state.asleep = false;
            drop(state);
            self.wake_thread();
        }
        false
    }

    fn wake_thread(&self) {
        // The lock orders the state. The word itself must change, so that a thread on its way to sleep does not sleep.
        if !is_weakened("timer_bell_changes") {
            self.bell.word.fetch_add(1, Ordering::Relaxed);
        }
        self.bell.wake(1);
    }

    /// Removes a value before it is due. `None`: it was already due.
    pub fn remove(&self, key: TimerKey) -> Option<T> {
        self.state().waiting[key.clock as usize].remove(&(key.at, key.number))
    }

    /// Removes all values for which `wanted` returns true.
    pub fn remove_all(&self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        Self::take(&mut self.state(), wanted)
    }

    /// As [`Timers::remove_all`] in a forked child; removes nothing if another thread of the parent held the lock.
    pub fn remove_all_after_fork(&self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        match self.state.try_lock() {
            Ok(mut state) => Self::take(&mut state, wanted),
            Err(TryLockError::Poisoned(mut state)) => Self::take(state.get_mut(), wanted),
            Err(TryLockError::WouldBlock) => Vec::new(),
        }
    }

    fn take(state: &mut TimersState<T>, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for waiting in &mut state.waiting {
            let keys: Vec<_> = waiting.iter().filter(|(_, value)| wanted(value)).map(|(key, _)| *key).collect();
            taken.extend(keys.iter().filter_map(|key| waiting.remove(key)));
        }
        taken
    }

    /// The next step of the timer thread. `after_idling`: the thread has just slept without a timer to wait for.
    pub fn next(&self, now: ClockReadings, after_idling: bool) -> TimerStep<T> {
        let mut state = self.state();
        state.asleep = false;
        let mut sleep = None;
        for clock in [Clock::Steady as usize, Clock::Wall as usize] {
            let Some(first) = state.waiting[clock].first_entry() else { continue };
            let Some(left) = first.key().0.checked_sub(now.of(clock)).filter(|left| *left > 0) else {
                return TimerStep::Due(first.remove());
            };
            let mut left = Duration::from_nanos(left);
            if clock == Clock::Wall as usize {
                left = left.min(WALL_SLICE);
            }
            sleep = Some(sleep.map_or(left, |other: Duration| other.min(left)));
        }
        if sleep.is_none() && after_idling {
            state.has_thread = false;
            return TimerStep::Leave;
        }
        state.asleep = true;
        TimerStep::Sleep(low(self.bell.peek()), sleep.unwrap_or(IDLE))
    }

    /// Sleeps as [`Timers::next`] requested. Returns whether the time is over.
    pub fn sleep(&self, ticket: u32, time: Duration) -> bool {
        self.bell.wait(ticket, Some(time));
        low(self.bell.peek()) == ticket
    }

    /// Records that the timer thread could not be started.
    pub fn forget_thread(&self) {
        self.state().has_thread = false;
    }

    /// Number of waiting values.
    pub fn len(&self) -> usize {
        self.state().waiting.iter().map(BTreeMap::len).sum()
    }

    /// Whether no value waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(steady: u64, wall: u64) -> ClockReadings {
        ClockReadings { steady, wall }
    }

    fn add(timers: &Timers<&'static str>, clock: Clock, moment: u64, value: &'static str) -> TimerKey {
        let key = timers.key(clock, moment);
        timers.add(key, value);
        key
    }

    fn due(timers: &Timers<&'static str>, now: ClockReadings) -> Vec<&'static str> {
        let mut found = Vec::new();
        while let TimerStep::Due(value) = timers.next(now, false) {
            found.push(value);
        }
        found
    }

    #[test]
    fn due_timers_are_ordered_by_time_and_then_by_insertion() {
        let timers = Timers::default();
        for (moment, value) in [(30, "d"), (10, "a"), (20, "b"), (20, "c")] {
            add(&timers, Clock::Steady, moment, value);
        }
        assert_eq!(Vec::<&str>::new(), due(&timers, at(9, 0)));
        assert_eq!(vec!["a", "b", "c"], due(&timers, at(20, 0)));
        assert_eq!(1, timers.len());
    }

    #[test]
    fn a_removed_timer_is_never_due() {
        let timers = Timers::default();
        let keys: Vec<_> = (0..1000).map(|moment| add(&timers, Clock::Steady, moment % 7, "x")).collect();
        for key in &keys[..999] {
            assert_eq!(Some("x"), timers.remove(*key));
            assert_eq!(None, timers.remove(*key));
        }
        assert_eq!(vec!["x"], due(&timers, at(10, 0)));
        assert_eq!(None, timers.remove(keys[999]));
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_only_wall_clock_timers() {
        let timers = Timers::default();
        add(&timers, Clock::Steady, 1000, "steady");
        add(&timers, Clock::Wall, 5_000, "wall");
        assert_eq!(Vec::<&str>::new(), due(&timers, at(500, 4_000)));
        assert_eq!(vec!["wall"], due(&timers, at(501, 5_000)), "set forward");
        add(&timers, Clock::Wall, 6_000, "later");
        assert_eq!(vec!["steady"], due(&timers, at(1000, 100)), "set back");
        assert_eq!(vec!["later"], due(&timers, at(1001, 6_001)));
    }

    #[test]
    fn a_step_of_the_wall_clock_is_seen_within_a_second() {
        let timers = Timers::default();
        let hour = 3_600_000_000_000;
        add(&timers, Clock::Wall, hour, "wall");
        assert!(matches!(timers.next(at(0, 0), false), TimerStep::Sleep(_, time) if time == WALL_SLICE));
        add(&timers, Clock::Steady, 5, "steady");
        assert!(matches!(timers.next(at(0, 0), false), TimerStep::Sleep(_, time) if time == Duration::from_nanos(5)));
    }

    #[test]
    fn the_thread_is_requested_once_and_again_after_it_ended() {
        let timers = Timers::default();
        assert!(timers.add(timers.key(Clock::Steady, 1), "a"));
        assert!(!timers.add(timers.key(Clock::Steady, 2), "b"));
        assert_eq!(vec!["a", "b"], due(&timers, at(2, 0)));
        assert!(matches!(timers.next(at(3, 0), false), TimerStep::Sleep(_, IDLE)));
        assert!(matches!(timers.next(at(3, 0), true), TimerStep::Leave));
        assert!(timers.add(timers.key(Clock::Steady, 9), "c"));
        timers.forget_thread();
        assert!(timers.add(timers.key(Clock::Steady, 10), "d"));
    }

    #[test]
    fn many_timers_are_removed_at_once() {
        let timers = Timers::default();
        for moment in 0..10 {
            let value = if moment % 2 == 0 { "even" } else { "odd" };
            add(&timers, if moment < 5 { Clock::Steady } else { Clock::Wall }, moment, value);
        }
        assert_eq!(vec!["odd"; 5], timers.remove_all(|value| *value == "odd"));
        assert_eq!(vec!["even"; 5], timers.remove_all_after_fork(|_| true));
        assert!(timers.is_empty());
    }

    #[test]
    fn each_timer_of_many_threads_is_due_once_or_removed() {
        const EACH: u64 = 3_000;
        let timers = Timers::default();
        let (due, removed) = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut sum = 0;
                loop {
                    match timers.next(ClockReadings::read(), false) {
                        TimerStep::Due(0) => return sum,
                        TimerStep::Due(value) => sum += value,
                        TimerStep::Sleep(ticket, time) => {
                            timers.sleep(ticket, time);
                        }
                        TimerStep::Leave => unreachable!("it never idles"),
                    }
                }
            });
            let adding: Vec<_> = (0..3)
                .map(|thread| {
                    let timers = &timers;
                    scope.spawn(move || {
                        let now = logspool_sys::clock::monotonic_ns();
                        let add = |value: u64| {
                            let key = timers.key(Clock::Steady, now + value * 7919 % 20_000_000);
                            timers.add(key, value);
                            key
                        };
                        let keys: Vec<_> = (1..=EACH).map(|number| add(number * 3 + thread)).collect();
                        keys.into_iter().step_by(2).filter_map(|key| timers.remove(key)).sum::<u64>()
                    })
                })
                .collect();
            let removed: u64 = adding.into_iter().map(|thread| thread.join().unwrap()).sum();
            timers.add(timers.key(Clock::Steady, logspool_sys::clock::monotonic_ns() + 30_000_000), 0);
            (waiting.join().unwrap(), removed)
        });
        let all: u64 = (0..3).flat_map(|thread| (1..=EACH).map(move |number| number * 3 + thread)).sum();
        assert_eq!(all, due + removed);
        assert!(timers.is_empty());
    }
}
