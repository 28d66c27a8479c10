//! Loom models of the pool's parts: each fails when the ordering it guards is weakened.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::jobs::{From, Jobs, Next, Place};
use super::{Promise, Semaphore, State};

/// Runs a model with at most three switches that the threads did not ask for: enough for each weakened ordering, and
/// done in seconds.
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
// SAFETY: as above.
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
fn one_permit_excludes_and_shows_what_the_last_holder_did() {
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
fn a_release_is_never_missed_by_threads_that_wait() {
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
fn the_end_shows_the_result_and_wakes_who_sleeps() {
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
fn who_watches_sees_the_end_or_is_told() {
    model(|| {
        let job = Arc::new((Promise::new(), UnsafeCell::new(false)));
        assert!(job.0.start());
        let worker = {
            let job = job.clone();
            thread::spawn(move || {
                if job.0.try_finish_unwatched() {
                    return false;
                }
                let locked = job.0.lock(false);
                assert!(job.0.finish(&locked));
                // SAFETY: loom checks that no write overlaps.
                job.1.with(|cell| unsafe { *cell })
            })
        };
        let saw = {
            let _locked = job.0.lock(true);
            let saw = job.0.state() == State::Finished;
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
        assert_eq!(Ok(true), jobs.push(1, Place::Normal, false), "the first job starts a worker");
        let worker = {
            let jobs = jobs.clone();
            thread::spawn(move || {
                let (mut from, mut done) = (From::Start, 0);
                loop {
                    from = match jobs.next(from) {
                        Next::Job(job) => {
                            done += job;
                            From::Job
                        }
                        Next::Sleep(ticket) => {
                            jobs.sleep(ticket, None);
                            From::Sleep
                        }
                        Next::Leave => return done,
                    };
                }
            })
        };
        assert!(jobs.push(2, Place::Normal, false).is_ok());
        while !jobs.wait_for_rest(std::time::Duration::ZERO) {}
        jobs.close();
        assert_eq!(3, worker.join().unwrap());
    });
}
