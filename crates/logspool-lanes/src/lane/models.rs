//! Loom models of `cursor` and `ring`: each fails when the ordering it guards is weakened.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use logspool_record::{HEAD_BYTES, Head, flags};
use logspool_sys::barrier;
use logspool_sys::published::Entered;
use logspool_sys::sync::{AtomicU32, AtomicU64, Ordering};

use super::cursor::{ConsumerCursor, LaneState, NOT_GROWN, ProducerCursor, Window, state};
use super::head::LaneHead;
use super::ring::{ReadPosition, Ring, RingError, WritePosition};

/// A lane with two rings, each with room for one record.
struct Lane {
    producer: ProducerCursor,
    consumer: ConsumerCursor,
    window: Window,
    state: LaneState,
    first: UnsafeCell<u64>,
    second: UnsafeCell<u64>,
}

// SAFETY: the models are the proof: loom reports every access to the cells that is not ordered.
unsafe impl Sync for Lane {}
// SAFETY: as for `Sync`; nothing in the lane is bound to a thread.
unsafe impl Send for Lane {}

impl Lane {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            producer: ProducerCursor::new(),
            consumer: ConsumerCursor::new(),
            window: Window::new(),
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

/// Runs a model and checks that at least one interleaving reached the state that the model is about.
fn model_that_reaches(model: impl Fn(&std::sync::atomic::AtomicBool) + Sync + Send + 'static) {
    let reached = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = reached.clone();
    loom::model(move || model(&seen));
    assert!(reached.load(std::sync::atomic::Ordering::Relaxed), "no interleaving reached the state of interest");
}

#[test]
fn a_popped_record_is_complete() {
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
fn ring_space_is_not_reused_early() {
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
fn the_consumer_sees_a_grown_ring() {
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
fn the_next_owner_of_a_lane_continues_after_the_last_record() {
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
            // The new owner continues at `head`, so it must see the last owner's `head` and record.
            assert_eq!(8, lane.producer.head.load(Ordering::Relaxed));
            assert_eq!(1, lane.read_first());
            reached.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        leaving.join().unwrap();
    });
}

#[test]
fn no_record_is_pushed_after_the_lane_is_closed() {
    model_that_reaches(|reached| {
        let lane = Lane::new();
        let open = Arc::new(AtomicU32::new(1));
        let producer = {
            let (lane, open) = (lane.clone(), open.clone());
            thread::spawn(move || {
                if lane.window.open(|| open.load(Ordering::Relaxed) == 1) {
                    lane.write_first(7);
                    lane.producer.publish(8);
                    lane.window.close();
                }
            })
        };
        open.store(0, Ordering::Relaxed);
        barrier::heavy();
        let shut = lane.window.is_closed();
        let published = lane.producer.published();
        producer.join().unwrap();
        if shut {
            assert_eq!(published, lane.producer.published(), "a record was published behind the shut door");
            reached.fetch_or(published == 8, std::sync::atomic::Ordering::Relaxed);
        }
    });
}

/// Words of the first ring of the models below, and of the second ring that the lane grows by.
const FIRST_WORDS: usize = 8;
const SECOND_WORDS: usize = 16;

/// Words of a record with two words of values.
const WORDS: usize = 2 + HEAD_BYTES / 8;

/// A lane head and its rings, a cell for each word of eight bytes.
struct Rings {
    head: LaneHead,
    first: [UnsafeCell<u64>; FIRST_WORDS],
    second: [UnsafeCell<u64>; SECOND_WORDS],
}

// SAFETY: the models are the proof: loom reports every access to the cells that is not ordered.
unsafe impl Sync for Rings {}
// SAFETY: nothing in the rings is bound to a thread.
unsafe impl Send for Rings {}

impl Rings {
    fn new() -> Arc<Self> {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        let rings = Self {
            head: LaneHead {
                state: LaneState { word: AtomicU32::new(state::OWNED), incarnation: AtomicU32::new(1) },
                thread: AtomicU64::new(0),
                first_offset: AtomicU64::new(0),
                first_bytes: AtomicU64::new(0),
                second_offset: AtomicU64::new(0),
                second_bytes: AtomicU64::new(0),
                producer: ProducerCursor::new(),
                consumer: ConsumerCursor::new(),
                refused: std::array::from_fn(|_| zeros()),
                window: Window::new(),
            },
            first: std::array::from_fn(|_| UnsafeCell::new(0)),
            second: std::array::from_fn(|_| UnsafeCell::new(0)),
        };
        rings.head.set_first_ring(1, 8 * FIRST_WORDS as u64);
        Arc::new(rings)
    }

    fn word(&self, ring: Ring, index: u64) -> &UnsafeCell<u64> {
        match ring {
            Ring::First => &self.first[index as usize],
            Ring::Second => &self.second[index as usize],
        }
    }

    fn write(&self, ring: Ring, index: u64, value: u64) {
        // SAFETY: loom checks that no other access overlaps.
        self.word(ring, index).with_mut(|cell| unsafe { *cell = value });
    }

    fn read(&self, ring: Ring, index: u64) -> u64 {
        // SAFETY: loom checks that no write overlaps.
        self.word(ring, index).with(|cell| unsafe { *cell })
    }

    /// Pushes a record whose words are all `value`, except for the length in its head.
    fn push(&self, place: &mut WritePosition, value: u64) -> Result<(), RingError> {
        let ring = if place.start == 0 { Ring::First } else { Ring::Second };
        self.push_into(ring, place, value)
    }

    /// As [`Self::push`], into the given ring.
    fn push_into(&self, ring: Ring, place: &mut WritePosition, value: u64) -> Result<(), RingError> {
        let needed = 8 * WORDS as u64;
        let slot = place.reserve(&self.head, needed, 0, || true)?;
        if let Some((offset, bytes)) = slot.filler {
            self.write(ring, offset / 8, u64::from(flags::PAD) << 32 | bytes);
        }
        self.write(ring, slot.record / 8, needed);
        (1..WORDS as u64).for_each(|index| self.write(ring, slot.record / 8 + index, value));
        place.commit(&self.head, needed);
        Ok(())
    }

    /// Takes every published record, and frees its bytes. Returns the values of the records.
    fn drain(&self) -> Vec<u64> {
        let mut values = Vec::new();
        let Some((mut place, _)) = ReadPosition::look_up(&self.head) else { return values };
        let read = |ring, offset: u64| {
            let word = self.read(ring, offset / 8);
            Head { len: word as u32, site: 0, route: 0, level: 20, flags: (word >> 32) as u16, ticks: 0 }
        };
        while let Some((ring, offset, head)) = place.peek(read) {
            let words = (1..WORDS as u64).map(|index| self.read(ring, offset / 8 + index)).collect::<Vec<_>>();
            assert!(words.iter().all(|word| *word == words[0]), "a record of two pushes: {words:?}");
            values.push(words[0]);
            place.move_past(head);
        }
        assert_eq!(0, place.unread);
        self.head.consumer.batched.store(place.position, Ordering::Relaxed);
        self.head.consumer.release(place.position);
        values
    }
}

#[test]
fn records_of_a_ring_that_wraps_are_whole_and_in_order() {
    model_that_reaches(|reached| {
        let rings = Rings::new();
        let producer = {
            let rings = rings.clone();
            thread::spawn(move || {
                let (mut place, _) = WritePosition::look_up(&rings.head, 0);
                assert_eq!(Ok(()), rings.push(&mut place, 1));
                // The second record is written to the start of the ring, after the first record is read.
                (0..2).any(|_| rings.push(&mut place, 2).is_ok())
            })
        };
        let mut values = rings.drain();
        values.extend(rings.drain());
        let pushed = producer.join().unwrap();
        values.extend(rings.drain());
        assert_eq!(if pushed { vec![1, 2] } else { vec![1] }, values);
        reached.fetch_or(pushed, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn records_of_a_lane_that_grows_are_whole_and_in_order() {
    model_that_reaches(|reached| {
        let rings = Rings::new();
        let producer = {
            let rings = rings.clone();
            thread::spawn(move || {
                let (mut place, _) = WritePosition::look_up(&rings.head, 0);
                assert_eq!(Ok(()), rings.push(&mut place, 1));
                if rings.push(&mut place, 2) == Ok(()) {
                    return false;
                }
                place.grow(&rings.head, 2, 8 * SECOND_WORDS as u64);
                (place, _) = WritePosition::look_up(&rings.head, place.head);
                assert_eq!(Ok(()), rings.push(&mut place, 2));
                true
            })
        };
        let mut values = rings.drain();
        values.extend(rings.drain());
        let grown = producer.join().unwrap();
        values.extend(rings.drain());
        assert_eq!(vec![1, 2], values);
        reached.fetch_or(grown, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn threads_that_share_a_lane_push_one_after_the_other() {
    model_that_reaches(|reached| {
        let rings = Rings::new();
        let push = |rings: &Rings, value: u64| {
            let lock = &rings.head.producer.shared_lock;
            let entered = lock.try_enter();
            if entered {
                let head = rings.head.producer.head.load(Ordering::Relaxed);
                let (mut place, _) = WritePosition::look_up(&rings.head, head);
                let pushed = rings.push(&mut place, value);
                assert_eq!(if head == 0 { Ok(()) } else { Err(RingError::Full) }, pushed);
                lock.leave();
            }
            entered
        };
        let other = {
            let rings = rings.clone();
            thread::spawn(move || push(&rings, 2))
        };
        let entered = push(&rings, 1);
        let both = other.join().unwrap() && entered;
        assert_eq!(1, rings.drain().len());
        reached.fetch_or(both, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn threads_that_share_a_lane_see_its_growth() {
    model_that_reaches(|reached| {
        let rings = Rings::new();
        let growing = {
            let rings = rings.clone();
            thread::spawn(move || {
                let lock = &rings.head.producer.shared_lock;
                let entered = lock.try_enter();
                if entered {
                    let head = rings.head.producer.head.load(Ordering::Relaxed);
                    let place = WritePosition { head, ..WritePosition::default() };
                    place.grow(&rings.head, 2, 8 * SECOND_WORDS as u64);
                    lock.leave();
                }
                entered
            })
        };
        let lock = &rings.head.producer.shared_lock;
        let mut pushed = Vec::new();
        for value in 1..3 {
            if lock.try_enter() {
                let head = rings.head.producer.head.load(Ordering::Relaxed);
                let (mut place, offset) = WritePosition::look_up(&rings.head, head);
                // A ring of no bytes, or the first one at a position of the second, is the view of a half-made growth.
                assert_eq!(if offset == 2 { SECOND_WORDS } else { FIRST_WORDS } as u64 * 8, place.bytes);
                let ring = if offset == 2 { Ring::Second } else { Ring::First };
                if rings.push_into(ring, &mut place, value).is_ok() {
                    pushed.push(value);
                }
                lock.leave();
            }
        }
        let grown = growing.join().unwrap();
        assert_eq!(pushed, rings.drain());
        reached.fetch_or(grown && pushed.len() == 2, std::sync::atomic::Ordering::Relaxed);
    });
}
