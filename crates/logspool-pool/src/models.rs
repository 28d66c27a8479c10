//! Loom models of the pool's parts: each fails when the ordering it guards is weakened.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::channel::{Channel, TakeOutcome};
use super::jobs::{Jobs, QueueLimit, QueuePosition, WorkerEvent, WorkerStep};
use super::timers::{self, Clock, ClockReadings, Timers};
use super::{JobState, Promise, Semaphore};

/// Runs a model with at most three preemptions. That is enough to find each weakened ordering, and takes seconds.
fn model(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

struct Guarded {
    semaphore: Semaphore,
    value: UnsafeCell<u32>,
}

// SAFETY: the models are the proof: loom reports every access to the cell that is not ordered.
unsafe impl Sync for Guarded {}
// SAFETY: nothing in the cell is bound to a thread.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new(permits: u32) -> Arc<Self> {
        Arc::new(Self { semaphore: Semaphore::new(permits).unwrap(), value: UnsafeCell::new(0) })
    }

    fn add_one_inside(&self) {
        while !self.semaphore.wait(None) {}
        // SAFETY: loom checks that no other access overlaps.
        self.value.with_mut(|cell| unsafe { *cell += 1 });
        self.semaphore.release(1).unwrap();
    }

    fn value(&self) -> u32 {
        // SAFETY: loom checks that no write overlaps.
        self.value.with(|cell| unsafe { *cell })
    }
}

#[test]
fn one_permit_excludes_others_and_makes_writes_of_the_last_holder_visible() {
    model(|| {
        let guarded = Guarded::new(1);
        let other = {
            let guarded = guarded.clone();
            thread::spawn(move || guarded.add_one_inside())
        };
        guarded.add_one_inside();
        other.join().unwrap();
        assert_eq!((2, 1, 0), (guarded.value(), guarded.semaphore.permits(), guarded.semaphore.waiting()));
    });
}

#[test]
fn waiting_threads_never_miss_a_release() {
    model(|| {
        let guarded = Guarded::new(0);
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let guarded = guarded.clone();
                thread::spawn(move || while !guarded.semaphore.wait(None) {})
            })
            .collect();
        guarded.semaphore.release(1).unwrap();
        guarded.semaphore.release(1).unwrap();
        for each in waiting {
            each.join().unwrap();
        }
        assert_eq!((0, 0), (guarded.semaphore.permits(), guarded.semaphore.waiting()));
    });
}

#[test]
fn completion_publishes_the_result_and_wakes_sleepers() {
    model(|| {
        let job = Arc::new((Promise::new(), UnsafeCell::new(0u32)));
        assert!(job.0.start());
        let worker = {
            let job = job.clone();
            thread::spawn(move || {
                // SAFETY: loom checks that no other access overlaps.
                job.1.with_mut(|cell| unsafe { *cell = 7 });
                assert!(job.0.try_finish_unwatched());
            })
        };
        while !job.0.wait(None) {}
        // SAFETY: loom checks that no write overlaps.
        assert_eq!(7, job.1.with(|cell| unsafe { *cell }));
        worker.join().unwrap();
    });
}

#[test]
fn an_observer_sees_the_completion_or_is_notified() {
    model(|| {
        let job = Arc::new((Promise::new(), UnsafeCell::new(false)));
        assert!(job.0.start());
        let worker = {
            let job = job.clone();
            thread::spawn(move || {
                if job.0.try_finish_unwatched() {
                    return false;
                }
                let locked = job.0.lock();
                assert!(job.0.finish(&locked));
                // SAFETY: loom checks that no write overlaps.
                job.1.with(|cell| unsafe { *cell })
            })
        };
        let saw = {
            let _locked = job.0.lock_and_watch();
            let saw = job.0.state() == JobState::Finished;
            if !saw {
                // SAFETY: loom checks that no other access overlaps.
                job.1.with_mut(|cell| unsafe { *cell = true });
            }
            saw
        };
        let told = worker.join().unwrap();
        assert!(saw != told, "seen: {saw}, told: {told}");
    });
}

#[test]
fn a_job_is_never_left_while_a_worker_sleeps() {
    model(|| {
        let jobs = Arc::new(Jobs::new(0, 1));
        assert_eq!(Ok(true), jobs.push(1, QueuePosition::Normal, QueueLimit::Kept), "the first job starts a worker");
        let worker = {
            let jobs = jobs.clone();
            thread::spawn(move || work(&jobs))
        };
        assert!(jobs.push(2, QueuePosition::Normal, QueueLimit::Kept).is_ok());
        while !jobs.wait_for_rest(std::time::Duration::ZERO) {}
        jobs.close();
        assert_eq!(3, worker.join().unwrap());
    });
}

/// Acts as a worker until [`Jobs`] tells it to end. Returns the sum of the jobs.
fn work(jobs: &Jobs<u32>) -> u32 {
    let (mut from, mut done) = (WorkerEvent::Start, 0);
    loop {
        from = match jobs.next(from) {
            WorkerStep::Job(job) => {
                done += job;
                WorkerEvent::Job
            }
            WorkerStep::Sleep(ticket) => {
                jobs.sleep(ticket, None);
                WorkerEvent::Sleep
            }
            WorkerStep::Leave => return done,
        };
    }
}

#[test]
fn a_worker_stays_for_a_job_that_is_expected_and_leaves_after_it() {
    model(|| {
        let jobs = Arc::new(Jobs::new(0, 1));
        assert_eq!(Ok(true), jobs.push(1, QueuePosition::Normal, QueueLimit::Kept));
        assert_eq!((Ok(()), Ok(())), (jobs.announce(), jobs.announce()));
        let worker = {
            let jobs = jobs.clone();
            thread::spawn(move || work(&jobs))
        };
        jobs.close();
        assert!(jobs.announce().is_err());
        // Either the worker is still there for the job, or one must be started.
        let start = jobs.push_announced(2, QueuePosition::High);
        jobs.withdraw_announced();
        assert!(!start);
        assert_eq!(3, worker.join().unwrap());
        assert!(jobs.wait_for_end(std::time::Duration::ZERO));
    });
}

#[test]
fn the_timer_thread_never_oversleeps_an_earlier_timer() {
    model(|| {
        let timers = Arc::new(Timers::default());
        assert!(timers.add(timers.key(Clock::Steady, u64::MAX), 1));
        let waiting = {
            let timers = timers.clone();
            thread::spawn(move || {
                loop {
                    match timers.next(ClockReadings { steady: 5, wall: 0 }, false) {
                        timers::TimerStep::Due(value) => return value,
                        timers::TimerStep::Sleep(ticket, time) => {
                            timers.sleep(ticket, time);
                        }
                        timers::TimerStep::Leave => unreachable!("something waits"),
                    }
                }
            })
        };
        assert!(!timers.add(timers.key(Clock::Steady, 5), 2));
        assert_eq!(2, waiting.join().unwrap());
    });
}

#[test]
fn channel_waiters_never_miss_a_value_the_end_or_free_room() {
    model(|| {
        let channel = Arc::new(Channel::new(1));
        channel.add_sender();
        let sender = {
            let channel = channel.clone();
            thread::spawn(move || {
                for value in [1, 2] {
                    while channel.put(value, QueueLimit::Kept).is_err() {
                        channel.wait_for_room(std::time::Duration::ZERO);
                    }
                }
                channel.remove_sender();
            })
        };
        let mut sum = 0;
        loop {
            match channel.take() {
                TakeOutcome::Value(value) => sum += value,
                TakeOutcome::Nothing => {
                    channel.wait_for_value(std::time::Duration::ZERO);
                }
                TakeOutcome::End => break,
            }
        }
        sender.join().unwrap();
        assert_eq!(3, sum);
    });
}
