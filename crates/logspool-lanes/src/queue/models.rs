//! Loom models of `cursor`: each fails when the ordering it guards is weakened.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use logspool_sys::barrier;
use logspool_sys::sync::{AtomicU32, Ordering};

use super::cursor::{ConsumerCursor, LaneState, NOT_GROWN, ProducerCursor, state};

/// A lane of two one-record rings.
struct Lane {
    producer: ProducerCursor,
    consumer: ConsumerCursor,
    state: LaneState,
    first: UnsafeCell<u64>,
    second: UnsafeCell<u64>,
}

// SAFETY: the models are the proof: loom reports every access to the cells that is not ordered.
unsafe impl Sync for Lane {}
// SAFETY: as above; nothing in it is bound to a thread.
unsafe impl Send for Lane {}

impl Lane {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            producer: ProducerCursor::new(),
            consumer: ConsumerCursor::new(),
            state: LaneState { word: AtomicU32::new(state::FREE), incarnation: AtomicU32::new(0) },
            first: UnsafeCell::new(0),
            second: UnsafeCell::new(0),
        })
    }

    fn write_first(&self, value: u64) {
        // SAFETY: loom checks that no other access overlaps.
        self.first.with_mut(|cell| unsafe { *cell = value });
    }

    fn read_first(&self) -> u64 {
        // SAFETY: loom checks that no write overlaps.
        self.first.with(|cell| unsafe { *cell })
    }

    fn write_second(&self, value: u64) {
        // SAFETY: loom checks that no other access overlaps.
        self.second.with_mut(|cell| unsafe { *cell = value });
    }

    fn read_second(&self) -> u64 {
        // SAFETY: loom checks that no write overlaps.
        self.second.with(|cell| unsafe { *cell })
    }
}

/// Runs a model and checks that it reached the state it is about in at least one interleaving.
fn model_that_reaches(model: impl Fn(&std::sync::atomic::AtomicBool) + Sync + Send + 'static) {
    let reached = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = reached.clone();
    loom::model(move || model(&seen));
    assert!(reached.load(std::sync::atomic::Ordering::Relaxed), "no interleaving reached the state of interest");
}

#[test]
fn popped_is_whole() {
    model_that_reaches(|reached| {
        let lane = Lane::new();
        let producer = {
            let lane = lane.clone();
            thread::spawn(move || {
                lane.write_first(7);
                lane.producer.publish(8);
            })
        };
        if lane.producer.published() == 8 {
            assert_eq!(7, lane.read_first());
            reached.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        producer.join().unwrap();
    });
}

#[test]
fn space_is_not_reused_early() {
    model_that_reaches(|reached| {
        let lane = Lane::new();
        lane.write_first(1);
        lane.producer.publish(8);
        let consumer = {
            let lane = lane.clone();
            thread::spawn(move || {
                assert_eq!(8, lane.producer.published());
                assert_eq!(1, lane.read_first());
                lane.consumer.release(8);
            })
        };
        if lane.consumer.released() == 8 {
            lane.write_first(2);
            lane.producer.publish(16);
            reached.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        consumer.join().unwrap();
    });
}

#[test]
fn growth_is_seen() {
    model_that_reaches(|reached| {
        let lane = Lane::new();
        lane.write_first(1);
        lane.producer.publish(8);
        let producer = {
            let lane = lane.clone();
            thread::spawn(move || {
                lane.producer.grow_at(8);
                lane.write_second(2);
                lane.producer.publish(16);
            })
        };
        let head = lane.producer.published();
        if head == 16 {
            assert_eq!(8, lane.producer.switch(), "a record of the second ring was read from the first");
            assert_eq!(2, lane.read_second());
            reached.store(true, std::sync::atomic::Ordering::Relaxed);
        } else {
            let switch = lane.producer.switch();
            assert!(switch == NOT_GROWN || switch == 8);
        }
        producer.join().unwrap();
    });
}

#[test]
fn next_owner_continues() {
    model_that_reaches(|reached| {
        let lane = Lane::new();
        assert!(lane.state.try_claim());
        let leaving = {
            let lane = lane.clone();
            thread::spawn(move || {
                lane.write_first(1);
                lane.producer.publish(8);
                lane.state.hand_over();
            })
        };
        if lane.state.try_claim() {
            // The new owner reads `head` as its own and writes over the first ring's cell after the reader.
            assert_eq!(8, lane.producer.head.load(Ordering::Relaxed));
            assert_eq!(1, lane.read_first());
            reached.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        leaving.join().unwrap();
    });
}

#[test]
fn no_record_comes_behind_a_shut_door() {
    model_that_reaches(|reached| {
        let lane = Lane::new();
        let open = Arc::new(AtomicU32::new(1));
        let producer = {
            let (lane, open) = (lane.clone(), open.clone());
            thread::spawn(move || {
                if lane.producer.open_window(|| open.load(Ordering::Relaxed) == 1) {
                    lane.write_first(7);
                    lane.producer.publish(8);
                    lane.producer.close_window();
                }
            })
        };
        open.store(0, Ordering::Relaxed);
        barrier::heavy();
        let shut = lane.producer.has_no_window();
        let published = lane.producer.published();
        producer.join().unwrap();
        if shut {
            assert_eq!(published, lane.producer.published(), "a record was published behind the shut door");
            reached.fetch_or(published == 8, std::sync::atomic::Ordering::Relaxed);
        }
    });
}
