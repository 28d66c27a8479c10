//! A number of bytes that origins share.
//!
//! An eighth of a pool is a reserve: only an origin that holds little may use it. So an origin that takes all it can get
//! leaves some for the others, and they do not wait in line with it. Beyond the reserve requests wait, and origins take
//! turns: an origin with a thousand requests delays another one by a single request.
//!
//! A request that has to wait is granted in its turn. Later requests of the same origin never overtake it. A large
//! request at the head of the line therefore keeps the free bytes until there are enough of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::origin::Origin;

/// The part of a pool that only origins which hold little may use.
const RESERVE: usize = 8;

/// An origin holds little while it holds at most this part of the reserve.
///
/// Chosen: eight origins can hold that amount at the same time.
const LITTLE: usize = 8;

/// Bytes that origins share; see the head of this file.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Mutex<PoolState>>);

#[derive(Debug)]
struct PoolState {
    bytes: usize,
    free: usize,
    /// Bytes of rooms that wait for a store: see [`Room::keep`].
    kept: usize,
    held: HashMap<Origin, usize>,
    /// Waiting requests by origin.
    waiting: HashMap<Origin, VecDeque<Request>>,
    /// Origins with waiting requests, in the order of their turns.
    turns: VecDeque<Origin>,
}

#[derive(Debug)]
struct Request {
    bytes: usize,
    answer: oneshot::Sender<Room>,
}

/// Bytes of a pool. Dropping the room frees them.
#[derive(Debug)]
pub struct Room {
    pool: Pool,
    origin: Origin,
    bytes: usize,
    is_kept: bool,
}

impl Pool {
    /// Creates a pool of `bytes`, including the reserve.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.max(1);
        let (held, waiting, turns) = Default::default();
        Self(Arc::new(Mutex::new(PoolState { bytes, free: bytes, kept: 0, held, waiting, turns })))
    }

    /// Creates a pool of `bytes` plus a reserve.
    pub fn beside_reserve(bytes: usize) -> Self {
        Self::new(bytes + bytes.div_ceil(RESERVE - 1))
    }

    /// Waits for room. A request for more than the pool without its reserve gets that much.
    pub async fn room(&self, origin: Origin, bytes: usize) -> Room {
        let answer = {
            let mut state = self.lock();
            let bytes = state.most(bytes);
            if state.may_take_at_once(origin, bytes) {
                state.take(origin, bytes);
                return self.made(origin, bytes);
            }
            let (answer, room) = oneshot::channel();
            let requests = state.waiting.entry(origin).or_default();
            requests.push_back(Request { bytes, answer });
            if requests.len() == 1 {
                state.turns.push_back(origin);
            }
            room
        };
        answer.await.expect("a pool answers each request")
    }

    /// Takes room if it is available now. `None`: it would have to wait.
    pub fn try_room(&self, origin: Origin, bytes: usize) -> Option<Room> {
        let mut state = self.lock();
        let bytes = state.most(bytes);
        state.may_take_at_once(origin, bytes).then(|| {
            state.take(origin, bytes);
            self.made(origin, bytes)
        })
    }

    /// Bytes reserved for origins that hold little.
    pub fn reserve(&self) -> usize {
        self.lock().reserve()
    }

    /// Share of the bytes without the reserve that rooms keep, from 0 to 1. Also 1 if most bytes are kept and a request
    /// waits, because the free bytes are not enough for it.
    pub fn filling(&self) -> f64 {
        let state = self.lock();
        match !state.turns.is_empty() && 2 * state.kept > state.bytes {
            true => 1.0,
            false => (state.kept as f64 / (state.bytes - state.reserve()) as f64).min(1.0),
        }
    }

    /// True if some bytes are in use.
    pub fn is_in_use(&self) -> bool {
        let state = self.lock();
        state.free < state.bytes
    }

    /// Frees bytes, and grants requests that fit now.
    fn give_back(&self, origin: Origin, bytes: usize) {
        let mut granted = Vec::new();
        {
            let mut state = self.lock();
            state.release(origin, bytes);
            while let Some((origin, request)) = state.next() {
                state.take(origin, request.bytes);
                granted.push((request.answer, self.made(origin, request.bytes)));
            }
        }
        for (answer, room) in granted {
            // If the receiver is gone the room is dropped, which frees it again.
            drop(answer.send(room));
        }
    }

    fn made(&self, origin: Origin, bytes: usize) -> Room {
        Room { pool: self.clone(), origin, bytes, is_kept: false }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn reserve(&self) -> usize {
        self.bytes / RESERVE
    }

    /// The bytes that a request for `bytes` gets.
    fn most(&self, bytes: usize) -> usize {
        bytes.clamp(1, self.bytes - self.reserve())
    }

    /// True if the bytes are free and the origin holds so little that it may use the reserve. The first request of an
    /// origin may take more.
    fn may_use_reserve(&self, origin: Origin, bytes: usize) -> bool {
        let little = match self.held.get(&origin) {
            None => self.reserve(),
            Some(held) => (self.reserve() / LITTLE).saturating_sub(*held),
        };
        bytes <= little && bytes <= self.free
    }

    /// True if this number of bytes is free without the reserve.
    fn has_free(&self, bytes: usize) -> bool {
        bytes + self.reserve() <= self.free
    }

    fn may_take_at_once(&self, origin: Origin, bytes: usize) -> bool {
        let waits = self.waiting.contains_key(&origin);
        !waits && (self.may_use_reserve(origin, bytes) || (self.turns.is_empty() && self.has_free(bytes)))
    }

    fn take(&mut self, origin: Origin, bytes: usize) {
        self.free -= bytes;
        *self.held.entry(origin).or_default() += bytes;
    }

    fn release(&mut self, origin: Origin, bytes: usize) {
        self.free += bytes;
        let held = self.held.get_mut(&origin).expect("an origin is known while it holds bytes");
        *held -= bytes;
        if *held == 0 {
            self.held.remove(&origin);
        }
    }

    /// Removes the next request that can be granted from the line.
    fn next(&mut self) -> Option<(Origin, Request)> {
        self.forget_abandoned();
        let first = |state: &Self, origin: &Origin| state.waiting[origin].front().map_or(0, |request| request.bytes);
        let place = (0..self.turns.len()).find(|place| {
            let origin = self.turns[*place];
            let bytes = first(self, &origin);
            self.may_use_reserve(origin, bytes) || (*place == 0 && self.has_free(bytes))
        })?;
        let origin = self.turns.remove(place)?;
        let requests = self.waiting.get_mut(&origin)?;
        let request = requests.pop_front()?;
        if requests.is_empty() {
            self.waiting.remove(&origin);
        } else {
            self.turns.push_back(origin);
        }
        Some((origin, request))
    }

    /// Removes requests of ended tasks from the heads of the lines.
    fn forget_abandoned(&mut self) {
        let waiting = &mut self.waiting;
        self.turns.retain(|origin| {
            let Some(requests) = waiting.get_mut(origin) else { return false };
            while requests.front().is_some_and(|request| request.answer.is_closed()) {
                requests.pop_front();
            }
            if requests.is_empty() {
                waiting.remove(origin);
                return false;
            }
            true
        });
    }
}

impl Room {
    /// The origin that holds the room.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Size of the room in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Marks the room as used by records that wait for a store, which `Budget::filling` counts. Its size must not
    /// change any more.
    pub fn keep(&mut self) {
        if !std::mem::replace(&mut self.is_kept, true) {
            self.pool.lock().kept += self.bytes;
        }
    }

    /// Frees the bytes above this size.
    pub fn shrink(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes.max(1));
        if excess > 0 {
            self.bytes -= excess;
            self.pool.give_back(self.origin, excess);
        }
    }

    /// True if this number of bytes fits.
    pub fn holds(&self, bytes: usize) -> bool {
        bytes <= self.bytes
    }

    /// Takes more bytes if they are free now. Returns false if it would have to wait.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        match self.pool.try_room(self.origin, bytes) {
            Some(mut more) => {
                self.bytes += std::mem::take(&mut more.bytes);
                true
            }
            None => false,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.is_kept {
            self.pool.lock().kept -= self.bytes;
        }
        if self.bytes > 0 {
            self.pool.give_back(self.origin, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::net::Ipv4Addr;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    const HEAVY: Origin = Origin::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: Origin = Origin::V4(Ipv4Addr::new(192, 0, 2, 2));
    const THIRD: Origin = Origin::V4(Ipv4Addr::new(192, 0, 2, 3));

    /// The room, if it has been granted.
    fn now(room: Pin<&mut impl Future<Output = Room>>) -> Option<Room> {
        match room.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }

    #[test]
    fn room_is_free_again_when_it_shrinks_and_when_it_is_dropped() {
        let pool = Pool::new(64);
        let mut room = pool.try_room(HEAVY, 56).unwrap();
        assert!(room.holds(56) && !room.holds(57));
        assert!(pool.try_room(HEAVY, 1).is_none());

        room.shrink(10);
        assert!(room.try_grow(20));
        assert!(room.holds(30));

        drop(room);
        assert!(!pool.is_in_use() && pool.lock().held.is_empty());
    }

    #[test]
    fn a_request_beyond_a_pool_takes_all_but_the_reserve() {
        let pool = Pool::new(64);
        let mut all = pool.try_room(HEAVY, 1000).unwrap();

        assert!(all.holds(56) && !all.holds(57));
        // Only records that wait for a store fill the pool.
        assert!(pool.filling() < 0.1);
        all.keep();
        assert!(pool.filling() > 0.9);
        drop(all);
        assert!(pool.filling() < 0.1);
    }

    #[test]
    fn a_pool_is_full_when_a_request_waits_for_what_is_kept() {
        let pool = Pool::new(64);
        let mut most = pool.try_room(HEAVY, 40).unwrap();
        most.keep();
        assert!((0.7..0.8).contains(&pool.filling()));

        let mut waits = pin!(pool.room(HEAVY, 30));
        assert!(now(waits.as_mut()).is_none());
        assert!((pool.filling() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn an_origin_that_holds_little_does_not_wait_for_one_that_holds_much() {
        let pool = Pool::new(640);
        let _all = pool.try_room(HEAVY, 560).unwrap();
        let mut waits = pin!(pool.room(HEAVY, 100));
        assert!(now(waits.as_mut()).is_none());

        let first = pool.try_room(OTHER, 9).unwrap();
        let second = pool.try_room(OTHER, 1);
        assert!(second.is_some() && pool.try_room(OTHER, 1).is_none());
        // The first request of an origin may take more.
        assert!(pool.try_room(THIRD, 71).is_none());
        assert!(pool.try_room(THIRD, 70).is_some());
        drop(first);
        assert!(now(waits.as_mut()).is_none());
    }

    #[test]
    fn origins_that_wait_take_turns() {
        let pool = Pool::new(80);
        let all = pool.try_room(THIRD, 70).unwrap();
        let mut heavy: Vec<_> = (0..3).map(|_| Box::pin(pool.room(HEAVY, 30))).collect();
        assert!(heavy.iter_mut().all(|room| now(room.as_mut()).is_none()));
        let mut other = pin!(pool.room(OTHER, 30));
        assert!(now(other.as_mut()).is_none());

        drop(all);
        let (one, two) = (now(heavy[0].as_mut()), now(other.as_mut()));
        assert!(one.is_some() && two.is_some() && now(heavy[1].as_mut()).is_none());
        drop(two);
        assert!(now(heavy[1].as_mut()).is_some());
    }

    #[test]
    fn a_large_request_is_not_overtaken_for_ever() {
        let pool = Pool::new(80);
        let small: Vec<_> = (0..7).map(|_| pool.try_room(HEAVY, 10).unwrap()).collect();
        let mut large = pin!(pool.room(OTHER, 70));
        assert!(now(large.as_mut()).is_none());
        for room in small {
            assert!(now(large.as_mut()).is_none());
            assert!(pool.try_room(HEAVY, 10).is_none());
            drop(room);
        }

        assert!(now(large.as_mut()).is_some());
    }

    #[test]
    fn a_request_whose_task_has_ended_holds_up_nobody() {
        let pool = Pool::new(80);
        let all = pool.try_room(THIRD, 70).unwrap();
        {
            let mut gone = pin!(pool.room(HEAVY, 70));
            assert!(now(gone.as_mut()).is_none());
        }
        let mut other = pin!(pool.room(OTHER, 20));
        assert!(now(other.as_mut()).is_none());
        drop(all);

        assert!(now(other.as_mut()).is_some());
        assert!(pool.lock().waiting.is_empty() && pool.lock().turns.is_empty());
    }
}
