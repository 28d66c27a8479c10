//! Loom models of `published`, `crossing`, `barrier`, `fork_safe_lock` and `progress`. Each fails when the ordering it
//! guards is weakened.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::barrier;
use crate::crossing::{RunningFlag, Shutdown, WorkPause};
use crate::fork_safe_lock::ForkSafeLock;
use crate::progress::Steps;
use crate::published::{Counted, Entered, Published};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// A word, and the data that the word publishes.
struct About<W> {
    word: W,
    data: [UnsafeCell<u32>; 2],
}

// SAFETY: the models are the proof: loom reports every access to the cells that is not ordered.
unsafe impl<W: Sync> Sync for About<W> {}
// SAFETY: as for `Sync`; nothing in it is bound to a thread.
unsafe impl<W: Send> Send for About<W> {}

impl<W> About<W> {
    fn new(word: W) -> Arc<Self> {
        Arc::new(Self { word, data: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn write(&self, index: usize, value: u32) {
        // SAFETY: loom checks that no other access overlaps.
        self.data[index].with_mut(|cell| unsafe { *cell = value });
    }

    fn read(&self, index: usize) -> u32 {
        // SAFETY: loom checks that no write overlaps.
        self.data[index].with(|cell| unsafe { *cell })
    }
}

/// Runs a model and checks that at least one interleaving reached the state that the model is about.
fn model_that_reaches(model: impl Fn(&std::sync::atomic::AtomicBool) + Sync + Send + 'static) {
    let reached = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = reached.clone();
    loom::model(move || model(&seen));
    assert!(reached.load(std::sync::atomic::Ordering::Relaxed), "no interleaving reached the state of interest");
}

fn reach(reached: &std::sync::atomic::AtomicBool) {
    reached.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// One thread writes the data and then calls `show`. The other thread reads the data if `sees` returns true.
fn data_is_seen<W: Send + Sync + 'static>(
    word: fn() -> W,
    show: impl Fn(&W) + Copy + Send + Sync + 'static,
    sees: fn(&W) -> bool,
) {
    model_that_reaches(move |reached| {
        let about = About::new(word());
        let writer = {
            let about = about.clone();
            thread::spawn(move || {
                about.write(0, 7);
                show(&about.word);
            })
        };
        if sees(&about.word) {
            assert_eq!(7, about.read(0));
            reach(reached);
        }
        writer.join().unwrap();
    });
}

#[test]
fn published_data_is_visible() {
    data_is_seen(|| AtomicU64::new(0), |word| word.publish(1), |word| word.observe() == 1);
}

#[test]
fn exchanged_data_is_visible_to_both_sides() {
    model_that_reaches(|reached| {
        let about = About::new(AtomicU32::new(0));
        let other = {
            let about = about.clone();
            thread::spawn(move || {
                about.write(0, 7);
                about.word.exchange(1)
            })
        };
        about.write(1, 8);
        if about.word.exchange(2) == 1 {
            assert_eq!(7, about.read(0));
            reach(reached);
        }
        other.join().unwrap();
    });
}

#[test]
fn both_threads_see_the_first_of_two_published_values() {
    model_that_reaches(|reached| {
        let about = About::new(AtomicPtr::new(std::ptr::null_mut::<u8>()));
        let mark = |index: usize| std::ptr::without_provenance_mut(index + 1);
        let race = move |about: &About<AtomicPtr<u8>>, index: usize| {
            about.write(index, 7);
            let found = about.word.publish_over(std::ptr::null_mut(), mark(index));
            found.err().map(|other| about.read(other.addr() - 1))
        };
        let other = {
            let about = about.clone();
            thread::spawn(move || race(&about, 1))
        };
        let lost = [race(&about, 0), other.join().unwrap()];
        assert_eq!(1, lost.iter().filter(|lost| **lost == Some(7)).count());
        reach(reached);
    });
}

#[test]
fn a_count_makes_the_counted_work_visible() {
    data_is_seen(|| AtomicU64::new(0), |word| assert_eq!(1, word.advance()), |word| word.observe() == 1);
}

#[test]
fn a_number_makes_earlier_work_visible() {
    data_is_seen(
        || AtomicU64::new(0),
        |word| assert!(word.advance_both_ways() > 0),
        |word| word.advance_both_ways() == 2,
    );
}

#[test]
fn a_raised_mark_makes_the_work_below_it_visible() {
    data_is_seen(|| AtomicU64::new(3), |word| word.raise(5), |word| word.observe() >= 5);
}

#[test]
fn a_bit_makes_its_data_visible() {
    data_is_seen(|| AtomicU64::new(1), |word| word.add_bits(4), |word| word.observe() & 4 != 0);
}

/// Two threads try to enter at the same time. A thread that succeeds adds 1 to the data; a thread that fails returns
/// without waiting.
fn one_at_a_time<W: Entered + Send + Sync + 'static>(word: fn() -> W) {
    model_that_reaches(move |reached| {
        let about = About::new(word());
        let enter = |about: &About<W>| {
            let inside = about.word.try_enter();
            if inside {
                about.write(0, about.read(0) + 1);
                about.word.leave();
            }
            u32::from(inside)
        };
        let other = {
            let about = about.clone();
            thread::spawn(move || enter(&about))
        };
        let entered = enter(&about) + other.join().unwrap();
        assert_eq!(entered, about.read(0));
        if entered == 2 {
            reach(reached);
        }
    });
}

#[test]
fn only_one_thread_at_a_time_runs() {
    one_at_a_time(|| AtomicU32::new(0));
    one_at_a_time(|| AtomicBool::new(false));
}

#[test]
fn a_thread_never_misses_its_run() {
    model_that_reaches(|reached| {
        let shared = Arc::new((RunningFlag::new(), AtomicU32::new(1)));
        assert!(shared.0.try_start());
        let runner = {
            let shared = shared.clone();
            thread::spawn(move || shared.0.stop_unless(|| shared.1.load(Ordering::Relaxed) == 1))
        };
        shared.1.store(0, Ordering::Relaxed);
        let started = shared.0.try_start();
        let stayed = runner.join().unwrap();
        assert!(started != stayed, "started: {started}, stayed: {stayed}");
        if stayed {
            reach(reached);
        }
    });
}

#[test]
fn no_work_starts_during_a_pause() {
    model_that_reaches(|reached| {
        let shared = Arc::new(WorkPause::default());
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || {
                let works = shared.begin_work(5);
                if !works {
                    shared.end_work();
                }
                works
            })
        };
        shared.pause_until(10);
        let seen = shared.is_working();
        let works = worker.join().unwrap();
        assert!(seen || !works, "it works in a rest, and was not seen");
        if works {
            reach(reached);
        }
    });
}

#[test]
fn one_side_of_the_barrier_sees_the_other() {
    model_that_reaches(|reached| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let frequent = {
            let words = words.clone();
            thread::spawn(move || {
                words[0].store(1, Ordering::Relaxed);
                barrier::light();
                words[1].load(Ordering::Relaxed)
            })
        };
        words[1].store(1, Ordering::Relaxed);
        barrier::heavy();
        let rare = words[0].load(Ordering::Relaxed);
        let frequent = frequent.join().unwrap();
        assert!(rare == 1 || frequent == 1, "both sides loaded the old word");
        if rare + frequent == 1 {
            reach(reached);
        }
    });
}

#[test]
fn a_lock_makes_writes_of_its_last_holder_visible() {
    model_that_reaches(|reached| {
        let about = About::new(ForkSafeLock::new(()));
        let add = |about: &About<ForkSafeLock<()>>| {
            let held = about.word.try_lock();
            if held.is_some() {
                about.write(0, about.read(0) + 1);
            }
            u32::from(held.is_some())
        };
        let other = {
            let about = about.clone();
            thread::spawn(move || add(&about))
        };
        let entered = add(&about) + other.join().unwrap();
        assert_eq!(entered, about.read(0));
        if entered == 2 {
            reach(reached);
        }
    });
}

#[test]
fn a_step_makes_its_work_visible_and_wakes_waiters() {
    model_that_reaches(|reached| {
        let about = About::new(Steps::new());
        let worker = {
            let about = about.clone();
            thread::spawn(move || {
                about.write(0, 7);
                about.word.note();
            })
        };
        if about.word.steps() == 0 {
            about.word.sleep(0, std::time::Duration::ZERO);
            reach(reached);
        }
        while about.word.steps() == 0 {
            thread::yield_now();
        }
        assert_eq!(7, about.read(0));
        worker.join().unwrap();
    });
}

#[test]
fn a_shutdown_sees_threads_that_entered_before_it() {
    model_that_reaches(|reached| {
        let end = Arc::new(Shutdown::new());
        let guest = {
            let end = end.clone();
            thread::spawn(move || {
                end.enter();
                let stays = end.ender() == 0;
                if !stays {
                    end.leave();
                }
                stays
            })
        };
        let inside = end.begin(7);
        let stays = guest.join().unwrap();
        assert!(inside == 1 || !stays, "a thread is inside, and the end does not wait for it");
        if stays {
            reach(reached);
        }
    });
}
