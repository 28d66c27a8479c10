//! The jobs that wait for a worker, and the workers that wait for a job.
//!
//! One short lock guards both, so "the queue is empty" and "a worker goes to sleep" are one step, and a push sees
//! every worker that sleeps or is about to. Nothing is called while the lock is held and nobody sleeps with it: with
//! a GIL around all its users it is never contended, and costs two atomic operations.
//!
//! A push wakes a worker only if more sleep than are being woken already: a burst of pushes wakes each worker once,
//! and a worker that finds more jobs when it has done one does not sleep in between. That rule, not the lock, is what
//! makes jobs cheap: waking a thread costs some twenty times as much as handing it a job that it looks for.

use std::collections::VecDeque;
use std::time::Duration;

use logspool_sys::futex::{WaitWord, low};
use logspool_sys::sync::{Mutex, MutexGuard, Ordering, PoisonError, TryLockError, is_weakened};

/// Where in the queue a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before all others.
    First,
    /// Behind what is urgent, before the rest.
    High,
    /// In order of arrival.
    Normal,
    /// When nothing else is there.
    Low,
}

/// Why a job was not taken. The job is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// As many jobs wait as may.
    Full,
    /// No more jobs are taken.
    Closed,
}

/// What a worker does next.
#[derive(Debug)]
pub enum Next<T> {
    /// A job.
    Job(T),
    /// Sleep, with this ticket for [`Jobs::sleep`].
    Sleep(u32),
    /// End: nothing more will come, or there are too many workers. It is counted off already.
    Leave,
}

/// How a worker comes to ask for its next job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// It is new.
    Start,
    /// It has done a job.
    Job,
    /// It slept.
    Sleep,
    /// It slept for as long as an idle worker is kept.
    LongSleep,
}

/// Counts of one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that wait.
    pub pending: usize,
    /// Most jobs that wait, 0 for no bound.
    pub bound: usize,
    /// Jobs that are not due yet.
    pub expected: usize,
    /// Workers there are, those included that are being started.
    pub workers: usize,
    /// Workers that do a job or look for one.
    pub busy: usize,
    /// Jobs that were ever taken.
    pub taken: u64,
    /// Wake-ups of workers so far.
    pub wakes: u64,
}

/// Jobs in lanes, and the workers that do them.
#[derive(Debug)]
pub struct Jobs<T> {
    state: Mutex<State<T>>,
    /// Low half: changes with each wake-up of workers.
    bell: WaitWord,
    /// Low half: changes when there is room again and somebody waits for it.
    room: WaitWord,
    /// Low half: changes when all is done and somebody waits for it.
    rest: WaitWord,
}

#[derive(Debug)]
struct State<T> {
    lanes: [VecDeque<T>; 3],
    pending: usize,
    /// Most jobs that wait; 0: as many as memory holds.
    bound: usize,
    most_workers: usize,
    workers: usize,
    asleep: usize,
    being_woken: usize,
    waiting_for_room: usize,
    waiting_for_rest: usize,
    /// Jobs that will come, also after the end of the others.
    expected: usize,
    closed: bool,
    taken: u64,
    wakes: u64,
}

impl<T> State<T> {
    fn push(&mut self, job: T, place: Place) {
        match place {
            Place::First => self.lanes[0].push_front(job),
            Place::High => self.lanes[0].push_back(job),
            Place::Normal => self.lanes[1].push_back(job),
            Place::Low => self.lanes[2].push_back(job),
        }
        self.pending += 1;
        self.taken += 1;
    }

    fn pop(&mut self) -> Option<T> {
        if self.pending == 0 {
            return None;
        }
        self.pending -= 1;
        self.lanes.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Counts up to `wanted` sleepers as being woken; returns how many.
    fn choose_to_wake(&mut self, wanted: usize) -> usize {
        let count = wanted.min(self.asleep - self.being_woken);
        self.being_woken += count;
        self.wakes += count as u64;
        count
    }
}

impl<T> Jobs<T> {
    /// No jobs and no workers; at most `bound` jobs wait (0: no bound), for at most `most_workers` workers.
    pub fn new(bound: usize, most_workers: usize) -> Self {
        let state = State {
            lanes: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            pending: 0,
            bound,
            most_workers,
            workers: 0,
            asleep: 0,
            being_woken: 0,
            waiting_for_room: 0,
            waiting_for_rest: 0,
            expected: 0,
            closed: false,
            taken: 0,
            wakes: 0,
        };
        Self { state: Mutex::new(state), bell: WaitWord::new(0), room: WaitWord::new(0), rest: WaitWord::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a job, `beyond` the bound if asked to. Returns whether a worker has to be started for it; that one is
    /// counted already.
    ///
    /// # Errors
    ///
    /// The job and why it was refused.
    #[inline]
    pub fn push(&self, job: T, place: Place, beyond: bool) -> Result<bool, (T, Refused)> {
        let mut state = self.state();
        if state.closed {
            return Err((job, Refused::Closed));
        }
        if !beyond && state.bound != 0 && state.pending >= state.bound {
            return Err((job, Refused::Full));
        }
        state.push(job, place);
        if state.asleep > state.being_woken {
            state.choose_to_wake(1);
            drop(state);
            self.ring(1);
            return Ok(false);
        }
        Ok(Self::counts_a_new_worker(&mut state))
    }

    /// Takes jobs from the front of `jobs`, as many as the bound leaves room for. Returns how many workers have to be
    /// started for them; those are counted already.
    ///
    /// # Errors
    ///
    /// No more jobs are taken; all that were given are left.
    pub fn push_many(&self, jobs: &mut VecDeque<T>, place: Place) -> Result<usize, Refused> {
        let mut state = self.state();
        if state.closed {
            return Err(Refused::Closed);
        }
        let room = if state.bound == 0 { usize::MAX } else { state.bound.saturating_sub(state.pending) };
        let count = room.min(jobs.len());
        for job in jobs.drain(..count) {
            state.push(job, place);
        }
        let wake = state.choose_to_wake(count);
        let mut start = 0;
        while start < count - wake && Self::counts_a_new_worker(&mut state) {
            start += 1;
        }
        drop(state);
        if wake > 0 {
            self.ring(wake as u32);
        }
        Ok(start)
    }

    /// Notes that a job will come later, also if no others are taken by then.
    ///
    /// # Errors
    ///
    /// No more jobs are taken.
    pub fn expect(&self) -> Result<(), Refused> {
        let mut state = self.state();
        if state.closed {
            return Err(Refused::Closed);
        }
        state.expected += 1;
        Ok(())
    }

    /// Takes a job that was expected. Returns as [`Jobs::push`] whether a worker has to be started.
    pub fn push_expected(&self, job: T, place: Place) -> bool {
        let mut state = self.state();
        state.push(job, place);
        let wakes = state.choose_to_wake(1) > 0;
        let start = !wakes && Self::counts_a_new_worker(&mut state);
        let is_last = Self::note_arrival(&mut state);
        drop(state);
        if wakes || is_last {
            self.ring(if is_last { u32::MAX } else { 1 });
        }
        start
    }

    /// Notes that a job will not come that was expected.
    pub fn forget_expected(&self) {
        let mut state = self.state();
        let is_last = Self::note_arrival(&mut state);
        let rest = state.waiting_for_rest > 0;
        drop(state);
        if is_last {
            self.ring(u32::MAX);
        }
        if rest {
            self.tell(&self.rest, u32::MAX);
        }
    }

    /// Counts off what was expected. Returns whether the workers have nothing more to wait for; they are counted as
    /// being woken then.
    fn note_arrival(state: &mut State<T>) -> bool {
        state.expected -= 1;
        let is_last = state.expected == 0 && state.closed;
        if is_last {
            state.being_woken = state.asleep;
        }
        is_last
    }

    /// Counts a worker that will be started, if there may be one more and it has something to do.
    fn counts_a_new_worker(state: &mut State<T>) -> bool {
        let start = state.workers < state.most_workers && state.pending > 0;
        state.workers += usize::from(start);
        start
    }

    /// Says what a worker does next.
    #[inline]
    pub fn next(&self, from: From) -> Next<T> {
        let mut state = self.state();
        if matches!(from, From::Sleep | From::LongSleep) {
            state.asleep -= 1;
            // Whoever wakes takes a wake-up that is under way: it is awake, and the other one wakes in vain.
            state.being_woken = state.being_woken.saturating_sub(1);
        }
        let too_many = state.workers > state.most_workers;
        if !too_many && let Some(job) = state.pop() {
            let room = state.waiting_for_room > 0;
            drop(state);
            if room {
                self.tell(&self.room, 1);
            }
            return Next::Job(job);
        }
        let leaves = too_many || (state.closed && state.expected == 0) || from == From::LongSleep;
        if leaves {
            state.workers -= 1;
        } else {
            state.asleep += 1;
        }
        let ticket = low(self.bell.peek());
        let rest = state.waiting_for_rest > 0 && Self::rests(&state);
        drop(state);
        if rest {
            self.tell(&self.rest, u32::MAX);
        }
        if leaves { Next::Leave } else { Next::Sleep(ticket) }
    }

    fn rests(state: &State<T>) -> bool {
        state.pending == 0 && state.asleep == state.workers
    }

    /// Sleeps until a worker is woken, at most `timeout`. False: the time was over.
    pub fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        self.bell.wait(ticket, timeout);
        low(self.bell.peek()) != ticket
    }

    fn ring(&self, count: u32) {
        self.tell(&self.bell, count);
    }

    fn tell(&self, word: &WaitWord, count: u32) {
        // The lock orders what is told; the word needs no order. It has to change: a thread on its way to sleep, which
        // nobody can wake yet, then does not sleep.
        if !is_weakened("bell_changes") {
            word.word.fetch_add(1, Ordering::Relaxed);
        }
        word.wake(count);
    }

    /// Takes the oldest job out of the least urgent lane that has one.
    pub fn take_oldest(&self) -> Option<T> {
        let mut state = self.state();
        let job = state.lanes.iter_mut().rev().find_map(VecDeque::pop_front)?;
        state.pending -= 1;
        Some(job)
    }

    /// Takes all jobs out that wait, in a forked child: none where another thread of the parent was at work here.
    pub fn take_all_after_fork(&self) -> Vec<T> {
        self.state_after_fork().map_or_else(Vec::new, |mut state| {
            state.pending = 0;
            state.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect()
        })
    }

    /// As [`Jobs::is_closed`] in a forked child; false where another thread of the parent was at work here.
    pub fn is_closed_after_fork(&self) -> bool {
        self.state_after_fork().is_some_and(|state| state.closed)
    }

    /// The lock may be held by a thread that the child does not have.
    fn state_after_fork(&self) -> Option<MutexGuard<'_, State<T>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes all jobs out that wait.
    pub fn take_all(&self) -> Vec<T> {
        let mut state = self.state();
        state.pending = 0;
        let jobs = state.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect();
        let room = state.waiting_for_room > 0;
        let rest = state.waiting_for_rest > 0 && Self::rests(&state);
        drop(state);
        if room {
            self.tell(&self.room, u32::MAX);
        }
        if rest {
            self.tell(&self.rest, u32::MAX);
        }
        jobs
    }

    /// Takes no more jobs from now on; workers leave when none is left.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.being_woken = state.asleep;
        drop(state);
        self.ring(u32::MAX);
        self.tell(&self.room, u32::MAX);
        self.tell(&self.rest, u32::MAX);
    }

    /// Sets how many workers there may be. Returns how many have to be started; they are counted already.
    pub fn resize(&self, most_workers: usize) -> usize {
        let mut state = self.state();
        state.most_workers = most_workers;
        let start = Self::count_new_workers(&mut state);
        let surplus = state.workers.saturating_sub(most_workers);
        let wake = state.choose_to_wake(surplus);
        drop(state);
        if wake > 0 {
            self.ring(wake as u32);
        }
        start
    }

    /// Where jobs wait and no worker is there, because those could not be started: returns as [`Jobs::resize`] how many
    /// have to be started.
    pub fn revive(&self) -> usize {
        let mut state = self.state();
        if state.workers == 0 { Self::count_new_workers(&mut state) } else { 0 }
    }

    fn count_new_workers(state: &mut State<T>) -> usize {
        let mut start = 0;
        while start < state.pending && Self::counts_a_new_worker(state) {
            start += 1;
        }
        start
    }

    /// Counts workers off that could not be started.
    pub fn forget_workers(&self, count: usize) {
        let mut state = self.state();
        state.workers -= count;
        let rest = state.waiting_for_rest > 0 && Self::rests(&state);
        drop(state);
        if rest {
            self.tell(&self.rest, u32::MAX);
        }
    }

    /// Waits a moment until there is room or the queue is closed; look again then.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        let ticket = {
            let mut state = self.state();
            if state.closed || state.pending < state.bound {
                return true;
            }
            state.waiting_for_room += 1;
            low(self.room.peek())
        };
        self.room.wait(ticket, Some(timeout));
        let mut state = self.state();
        state.waiting_for_room -= 1;
        state.closed || state.pending < state.bound
    }

    /// Waits a moment until nothing waits and nobody works.
    pub fn wait_for_rest(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, Self::rests)
    }

    /// As [`Jobs::wait_for_rest`], and until nothing is expected.
    pub fn wait_for_end(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| Self::rests(state) && state.expected == 0)
    }

    fn wait_until(&self, timeout: Duration, reached: impl Fn(&State<T>) -> bool) -> bool {
        let ticket = {
            let mut state = self.state();
            if reached(&state) {
                return true;
            }
            state.waiting_for_rest += 1;
            low(self.rest.peek())
        };
        self.rest.wait(ticket, Some(timeout));
        let mut state = self.state();
        state.waiting_for_rest -= 1;
        reached(&state)
    }

    /// Whether no more jobs are taken.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Counts of this moment.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            pending: state.pending,
            bound: state.bound,
            expected: state.expected,
            workers: state.workers,
            busy: state.workers - state.asleep,
            taken: state.taken,
            wakes: state.wakes,
        }
    }

    /// The value of the oldest job by `age`, over all lanes.
    pub fn oldest<A: Ord>(&self, age: impl Fn(&T) -> A) -> Option<A> {
        self.state().lanes.iter().filter_map(VecDeque::front).map(age).min()
    }
}
