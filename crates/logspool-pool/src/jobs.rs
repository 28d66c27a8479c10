//! The jobs that wait for a worker, and the workers that wait for a job.
//!
//! One short lock guards both the jobs and the workers. So "the queue is empty" and "a worker goes to sleep" are one
//! step, and a push sees every worker that sleeps or is about to. While the lock is held, no thread sleeps. Of the
//! caller's code only the `age` of [`Jobs::oldest`] runs under the lock. If all users hold the GIL, the lock is never
//! contended, and costs two atomic operations.
//!
//! A push wakes a worker only if more workers sleep than are being woken already. So a burst of pushes wakes each
//! worker once, and a worker that finds another job after its last one does not sleep in between. That wake-up rule,
//! not the lock, makes jobs cheap. Waking a thread costs about twenty times as much as handing a job to a worker that
//! is already looking for one.

use std::collections::VecDeque;
use std::time::Duration;

use logspool_sys::futex::{WaitWord, low};
use logspool_sys::sync::{Mutex, MutexGuard, Ordering, PoisonError, TryLockError, is_weakened};

/// Whether the limit of a queue counts for a job or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// A full queue refuses it.
    Kept,
    /// It is queued, however many are there: its caller must not wait.
    Ignored,
}

/// Position in the queue of a new job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePosition {
    /// Before all other jobs.
    First,
    /// After all `First` jobs and earlier `High` jobs, before all other jobs.
    High,
    /// In order of arrival, after the urgent jobs.
    Normal,
    /// After all other jobs.
    Low,
}

/// Why a job was refused. The job is returned to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobRefused {
    /// The number of waiting jobs has reached the bound.
    Full,
    /// The queue is closed.
    Closed,
}

/// The next step of a worker.
#[derive(Debug)]
pub enum WorkerStep<T> {
    /// A job.
    Job(T),
    /// Sleep, with this ticket for [`Jobs::sleep`].
    Sleep(u32),
    /// The worker must end: no job will come, or there are too many workers. It is already removed from the count.
    Leave,
}

/// The event after which a worker asks for its next job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The worker is new.
    Start,
    /// The worker has done a job.
    Job,
    /// The worker slept.
    Sleep,
    /// The worker slept for the whole time for which an idle worker is kept.
    LongSleep,
}

/// Numbers of jobs and workers at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Number of waiting jobs.
    pub pending: usize,
    /// Maximum number of waiting jobs; 0 for no bound.
    pub bound: usize,
    /// Number of jobs that are announced and not due yet.
    pub expected: usize,
    /// Number of workers, including those that are being started.
    pub workers: usize,
    /// Number of workers that run a job or look for one.
    pub busy: usize,
    /// Jobs accepted since the start.
    pub taken: u64,
    /// Wake-ups of workers since the start.
    pub wakes: u64,
}

/// Jobs in lanes (one queue for each urgency), and the workers that run them.
#[derive(Debug)]
pub struct Jobs<T> {
    state: Mutex<JobsState<T>>,
    /// The low half of the word changes with each wake-up of workers.
    bell: WaitWord,
    /// The low half of the word changes when there is room again while a thread waits for room.
    room: WaitWord,
    /// The low half of the word changes when all jobs are done while a thread waits for that.
    rest: WaitWord,
}

#[derive(Debug)]
struct JobsState<T> {
    lanes: [VecDeque<T>; 3],
    pending: usize,
    /// Maximum number of waiting jobs; 0: no bound.
    bound: usize,
    most_workers: usize,
    workers: usize,
    asleep: usize,
    being_woken: usize,
    waiting_for_room: usize,
    waiting_for_rest: usize,
    /// Number of jobs announced for later. They are accepted even after [`Jobs::close`].
    expected: usize,
    closed: bool,
    taken: u64,
    wakes: u64,
}

impl<T> JobsState<T> {
    fn push(&mut self, job: T, place: QueuePosition) {
        match place {
            QueuePosition::First => self.lanes[0].push_front(job),
            QueuePosition::High => self.lanes[0].push_back(job),
            QueuePosition::Normal => self.lanes[1].push_back(job),
            QueuePosition::Low => self.lanes[2].push_back(job),
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

    /// Marks up to `wanted` sleeping workers as being woken. Returns the number of workers it marked.
    fn choose_to_wake(&mut self, wanted: usize) -> usize {
        let count = wanted.min(self.asleep - self.being_woken);
        self.being_woken += count;
        self.wakes += count as u64;
        count
    }
}

impl<T> Jobs<T> {
    /// Makes an empty queue without workers, for at most `bound` waiting jobs (0: no bound) and `most_workers` workers.
    pub fn new(bound: usize, most_workers: usize) -> Self {
        let state = JobsState {
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

    fn state(&self) -> MutexGuard<'_, JobsState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. Returns whether the caller must start a worker for the job; that worker is already counted.
    ///
    /// # Errors
    ///
    /// Returns the job and why it was refused.
    #[inline]
    pub fn push(&self, job: T, place: QueuePosition, limit: QueueLimit) -> Result<bool, (T, JobRefused)> {
        let mut state = self.state();
        if state.closed {
            return Err((job, JobRefused::Closed));
        }
        if limit == QueueLimit::Kept && state.bound != 0 && state.pending >= state.bound {
            return Err((job, JobRefused::Full));
        }
        state.push(job, place);
        if state.asleep > state.being_woken {
            state.choose_to_wake(1);
            drop(state);
            self.wake_workers(1);
            return Ok(false);
        }
        Ok(Self::count_new_worker(&mut state))
    }

    /// Adds jobs from the front of `jobs`, up to the bound. Returns how many workers the caller must start for the
    /// jobs; these workers are already counted.
    ///
    /// # Errors
    ///
    /// The queue is closed; all jobs stay in `jobs`.
    pub fn push_many(&self, jobs: &mut VecDeque<T>, place: QueuePosition) -> Result<usize, JobRefused> {
        let mut state = self.state();
        if state.closed {
            return Err(JobRefused::Closed);
        }
        let room = if state.bound == 0 { usize::MAX } else { state.bound.saturating_sub(state.pending) };
        let count = room.min(jobs.len());
        for job in jobs.drain(..count) {
            state.push(job, place);
        }
        let wake = state.choose_to_wake(count);
        let mut start = 0;
        while start < count - wake && Self::count_new_worker(&mut state) {
            start += 1;
        }
        drop(state);
        if wake > 0 {
            self.wake_workers(wake as u32);
        }
        Ok(start)
    }

    /// Announces a job for later, which the queue accepts even after it is closed.
    ///
    /// # Errors
    ///
    /// The queue is closed.
    pub fn announce(&self) -> Result<(), JobRefused> {
        let mut state = self.state();
        if state.closed {
            return Err(JobRefused::Closed);
        }
        state.expected += 1;
        Ok(())
    }

    /// Adds a job that was announced by [`Jobs::announce`]. As [`Jobs::push`], returns whether a worker must be
    /// started.
    pub fn push_announced(&self, job: T, place: QueuePosition) -> bool {
        let mut state = self.state();
        state.push(job, place);
        let wakes = state.choose_to_wake(1) > 0;
        let start = !wakes && Self::count_new_worker(&mut state);
        let is_last = Self::remove_announced(&mut state);
        drop(state);
        if wakes || is_last {
            self.wake_workers(if is_last { u32::MAX } else { 1 });
        }
        start
    }

    /// Withdraws the announcement of a job.
    pub fn withdraw_announced(&self) {
        let mut state = self.state();
        let is_last = Self::remove_announced(&mut state);
        let rest = state.waiting_for_rest > 0;
        drop(state);
        if is_last {
            self.wake_workers(u32::MAX);
        }
        if rest {
            self.notify(&self.rest, u32::MAX);
        }
    }

    /// Removes one announced job from the count. Returns whether the workers have nothing more to wait for; if so, they
    /// are counted as being woken.
    fn remove_announced(state: &mut JobsState<T>) -> bool {
        state.expected -= 1;
        let is_last = state.expected == 0 && state.closed;
        if is_last {
            state.being_woken = state.asleep;
        }
        is_last
    }

    /// Counts one more worker, if the limit allows it and a job waits. Returns whether it must be started.
    fn count_new_worker(state: &mut JobsState<T>) -> bool {
        let start = state.workers < state.most_workers && state.pending > 0;
        state.workers += usize::from(start);
        start
    }

    /// The next step of a worker.
    #[inline]
    pub fn next(&self, from: WorkerEvent) -> WorkerStep<T> {
        let mut state = self.state();
        if matches!(from, WorkerEvent::Sleep | WorkerEvent::LongSleep) {
            state.asleep -= 1;
            // A worker that wakes for any reason uses up a pending wake-up, because it is awake now. The worker for
            // which that wake-up was intended then wakes without need.
            state.being_woken = state.being_woken.saturating_sub(1);
        }
        let too_many = state.workers > state.most_workers;
        if !too_many && let Some(job) = state.pop() {
            let room = state.waiting_for_room > 0;
            drop(state);
            if room {
                self.notify(&self.room, 1);
            }
            return WorkerStep::Job(job);
        }
        let leaves = too_many || (state.closed && state.expected == 0) || from == WorkerEvent::LongSleep;
        if leaves {
            state.workers -= 1;
        } else {
            state.asleep += 1;
        }
        let ticket = low(self.bell.peek());
        let rest = state.waiting_for_rest > 0 && Self::is_idle(&state);
        drop(state);
        if rest {
            self.notify(&self.rest, u32::MAX);
        }
        if leaves { WorkerStep::Leave } else { WorkerStep::Sleep(ticket) }
    }

    fn is_idle(state: &JobsState<T>) -> bool {
        state.pending == 0 && state.asleep == state.workers
    }

    /// Lets the calling worker sleep until it is woken, for at most `timeout`. Returns false if the timeout has passed.
    pub fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool {
        self.bell.wait(ticket, timeout);
        low(self.bell.peek()) != ticket
    }

    fn wake_workers(&self, count: u32) {
        self.notify(&self.bell, count);
    }

    fn notify(&self, word: &WaitWord, count: u32) {
        // The lock orders the state, so the word needs no order. The word must change, so that a thread on its way to
        // sleep, which no wake-up can reach yet, does not sleep.
        if !is_weakened("bell_changes") {
            word.word.fetch_add(1, Ordering::Relaxed);
        }
        word.wake(count);
    }

    /// Removes and returns the oldest job of the least urgent lane that has one.
    pub fn take_oldest(&self) -> Option<T> {
        let mut state = self.state();
        let job = state.lanes.iter_mut().rev().find_map(VecDeque::pop_front)?;
        state.pending -= 1;
        Some(job)
    }

    /// Removes all waiting jobs, in a forked child. Empty if another thread of the parent held the lock.
    pub fn take_all_after_fork(&self) -> Vec<T> {
        self.state_after_fork().map_or_else(Vec::new, |mut state| {
            state.pending = 0;
            state.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect()
        })
    }

    /// As [`Jobs::is_closed`] in a forked child; false if another thread of the parent held the lock.
    pub fn is_closed_after_fork(&self) -> bool {
        self.state_after_fork().is_some_and(|state| state.closed)
    }

    /// The lock may be held by a thread that does not exist in the child.
    fn state_after_fork(&self) -> Option<MutexGuard<'_, JobsState<T>>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Removes and returns all waiting jobs.
    pub fn take_all(&self) -> Vec<T> {
        let mut state = self.state();
        state.pending = 0;
        let jobs = state.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect();
        let room = state.waiting_for_room > 0;
        let rest = state.waiting_for_rest > 0 && Self::is_idle(&state);
        drop(state);
        if room {
            self.notify(&self.room, u32::MAX);
        }
        if rest {
            self.notify(&self.rest, u32::MAX);
        }
        jobs
    }

    /// Refuses jobs from now on; workers end after the last job.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.being_woken = state.asleep;
        drop(state);
        self.wake_workers(u32::MAX);
        self.notify(&self.room, u32::MAX);
        self.notify(&self.rest, u32::MAX);
    }

    /// Sets the maximum number of workers. Returns how many workers the caller must start; they are already counted.
    pub fn resize(&self, most_workers: usize) -> usize {
        let mut state = self.state();
        state.most_workers = most_workers;
        let start = Self::count_new_workers(&mut state);
        let surplus = state.workers.saturating_sub(most_workers);
        let wake = state.choose_to_wake(surplus);
        drop(state);
        if wake > 0 {
            self.wake_workers(wake as u32);
        }
        start
    }

    /// Handles jobs that wait without any worker, because no worker could be started. Returns how many workers the
    /// caller must start; they are already counted.
    pub fn start_missing_workers(&self) -> usize {
        let mut state = self.state();
        if state.workers == 0 { Self::count_new_workers(&mut state) } else { 0 }
    }

    fn count_new_workers(state: &mut JobsState<T>) -> usize {
        let mut start = 0;
        while start < state.pending && Self::count_new_worker(state) {
            start += 1;
        }
        start
    }

    /// Removes workers that could not be started from the count.
    pub fn forget_workers(&self, count: usize) {
        let mut state = self.state();
        state.workers -= count;
        let rest = state.waiting_for_rest > 0 && Self::is_idle(&state);
        drop(state);
        if rest {
            self.notify(&self.rest, u32::MAX);
        }
    }

    /// Waits until there is room or the queue is closed, at most for `timeout`. May return false early.
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

    /// Waits until no job waits and no worker is busy, at most for `timeout`. May return false early.
    pub fn wait_for_rest(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, Self::is_idle)
    }

    /// As [`Jobs::wait_for_rest`], and also waits until every announced job has arrived or was withdrawn.
    pub fn wait_for_end(&self, timeout: Duration) -> bool {
        self.wait_until(timeout, |state| Self::is_idle(state) && state.expected == 0)
    }

    fn wait_until(&self, timeout: Duration, reached: impl Fn(&JobsState<T>) -> bool) -> bool {
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

    /// Whether the queue refuses jobs.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Numbers of jobs and workers at this moment.
    pub fn counts(&self) -> JobCounts {
        let state = self.state();
        JobCounts {
            pending: state.pending,
            bound: state.bound,
            expected: state.expected,
            workers: state.workers,
            busy: state.workers - state.asleep,
            taken: state.taken,
            wakes: state.wakes,
        }
    }

    /// The smallest `age` among the oldest job of each lane.
    pub fn oldest<A: Ord>(&self, age: impl Fn(&T) -> A) -> Option<A> {
        self.state().lanes.iter().filter_map(VecDeque::front).map(age).min()
    }
}
