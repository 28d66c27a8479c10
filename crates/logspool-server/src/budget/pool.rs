//! A pool: a number of bytes that origins share.
//!
//! An eighth of a pool is a reserve. Only an origin that holds few bytes may use the reserve. So if one origin takes
//! all bytes that it can get, bytes remain for the other origins, and they do not wait for that origin. Requests that
//! cannot use the reserve may have to wait. Then origins take turns: an origin with a thousand requests delays another
//! origin by a single request.
//!
//! A request that has to wait is granted when its turn comes. Later requests of the same origin never overtake it.
//! While the first request in the order of turns waits, other requests are granted only if their origin may use the
//! reserve. So free bytes accumulate until there are enough for a large request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::origin::Origin;

/// The reserve is the pool divided by this number. Only origins that hold few bytes may use it.
const RESERVE_DIVISOR: usize = 8;

/// An origin holds few bytes while it holds at most the reserve divided by this number.
///
/// Chosen: the reserve is enough for eight origins that hold this amount at the same time.
const LITTLE_DIVISOR: usize = 8;

/// Bytes that origins share; see the module documentation.
#[derive(Debug, Clone)]
pub struct MemoryPool(Arc<Mutex<PoolState>>);

#[derive(Debug)]
struct PoolState {
    bytes: usize,
    free: usize,
    /// The bytes of rooms whose records wait for a store: see [`Reservation::mark_queued`].
    queued_bytes: usize,
    held: HashMap<Origin, usize>,
    /// The waiting requests of each origin.
    waiting: HashMap<Origin, VecDeque<PendingRequest>>,
    /// The origins with waiting requests, in the order of their turns.
    turn_order: VecDeque<Origin>,
}

#[derive(Debug)]
struct PendingRequest {
    bytes: usize,
    answer: oneshot::Sender<Reservation>,
}

/// Room: bytes of a pool that an origin holds. Dropping it frees the bytes.
#[derive(Debug)]
pub struct Reservation {
    pool: MemoryPool,
    origin: Origin,
    bytes: usize,
    is_queued: bool,
}

impl MemoryPool {
    /// Creates a pool of `bytes`. The reserve is a part of them.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.max(1);
        let (held, waiting, turn_order) = Default::default();
        Self(Arc::new(Mutex::new(PoolState { bytes, free: bytes, queued_bytes: 0, held, waiting, turn_order })))
    }

    /// Creates a pool of `bytes` and, in addition to them, a reserve.
    pub fn with_reserve(bytes: usize) -> Self {
        Self::new(bytes + bytes.div_ceil(RESERVE_DIVISOR - 1))
    }

    /// Waits for room. A request never gets more than the pool excluding its reserve.
    pub async fn acquire(&self, origin: Origin, bytes: usize) -> Reservation {
        let answer = {
            let mut state = self.lock();
            let bytes = state.granted_bytes(bytes);
            if state.may_take_at_once(origin, bytes) {
                state.take(origin, bytes);
                return self.reservation(origin, bytes);
            }
            let (answer, room) = oneshot::channel();
            let requests = state.waiting.entry(origin).or_default();
            requests.push_back(PendingRequest { bytes, answer });
            if requests.len() == 1 {
                state.turn_order.push_back(origin);
            }
            room
        };
        answer.await.expect("a pool answers each request")
    }

    /// Takes room if it is available now. `None`: the request would have to wait.
    pub fn try_acquire(&self, origin: Origin, bytes: usize) -> Option<Reservation> {
        let mut state = self.lock();
        let bytes = state.granted_bytes(bytes);
        state.may_take_at_once(origin, bytes).then(|| {
            state.take(origin, bytes);
            self.reservation(origin, bytes)
        })
    }

    /// The bytes of the reserve.
    pub fn reserve_bytes(&self) -> usize {
        self.lock().reserve()
    }

    /// How full the pool is, from 0 to 1. It is the share of the pool, excluding the reserve, that is held by records
    /// waiting for a store. It is also 1 if these records hold more than half of the pool and a request waits for
    /// bytes.
    pub fn fill_level(&self) -> f64 {
        let state = self.lock();
        match !state.turn_order.is_empty() && 2 * state.queued_bytes > state.bytes {
            true => 1.0,
            false => (state.queued_bytes as f64 / (state.bytes - state.reserve()) as f64).min(1.0),
        }
    }

    /// True if some bytes are in use.
    pub fn is_in_use(&self) -> bool {
        let state = self.lock();
        state.free < state.bytes
    }

    /// Frees bytes, and grants waiting requests for which there are now enough bytes.
    fn release(&self, origin: Origin, bytes: usize) {
        let mut granted = Vec::new();
        {
            let mut state = self.lock();
            state.release(origin, bytes);
            while let Some((origin, request)) = state.next_grantable() {
                state.take(origin, request.bytes);
                granted.push((request.answer, self.reservation(origin, request.bytes)));
            }
        }
        for (answer, room) in granted {
            // If the receiver was dropped, the room is dropped too, which frees its bytes again.
            drop(answer.send(room));
        }
    }

    fn reservation(&self, origin: Origin, bytes: usize) -> Reservation {
        Reservation { pool: self.clone(), origin, bytes, is_queued: false }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn reserve(&self) -> usize {
        self.bytes / RESERVE_DIVISOR
    }

    /// The bytes that a request for `bytes` gets.
    fn granted_bytes(&self, bytes: usize) -> usize {
        bytes.clamp(1, self.bytes - self.reserve())
    }

    /// True if the bytes are free and the origin may use the reserve for them. An origin that holds no bytes may take
    /// the whole reserve. Any other origin may hold at most the reserve divided by [`LITTLE_DIVISOR`].
    fn may_use_reserve(&self, origin: Origin, bytes: usize) -> bool {
        let little = match self.held.get(&origin) {
            None => self.reserve(),
            Some(held) => (self.reserve() / LITTLE_DIVISOR).saturating_sub(*held),
        };
        bytes <= little && bytes <= self.free
    }

    /// True if this number of bytes is free in addition to the reserve.
    fn has_free(&self, bytes: usize) -> bool {
        bytes + self.reserve() <= self.free
    }

    fn may_take_at_once(&self, origin: Origin, bytes: usize) -> bool {
        let waits = self.waiting.contains_key(&origin);
        !waits && (self.may_use_reserve(origin, bytes) || (self.turn_order.is_empty() && self.has_free(bytes)))
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

    /// Finds the next request that can be granted, and removes it from the waiting requests.
    fn next_grantable(&mut self) -> Option<(Origin, PendingRequest)> {
        self.remove_abandoned();
        let first = |state: &Self, origin: &Origin| state.waiting[origin].front().map_or(0, |request| request.bytes);
        let place = (0..self.turn_order.len()).find(|place| {
            let origin = self.turn_order[*place];
            let bytes = first(self, &origin);
            self.may_use_reserve(origin, bytes) || (*place == 0 && self.has_free(bytes))
        })?;
        let origin = self.turn_order.remove(place)?;
        let requests = self.waiting.get_mut(&origin)?;
        let request = requests.pop_front()?;
        if requests.is_empty() {
            self.waiting.remove(&origin);
        } else {
            self.turn_order.push_back(origin);
        }
        Some((origin, request))
    }

    /// Removes the first requests of each origin if their tasks have ended.
    fn remove_abandoned(&mut self) {
        let waiting = &mut self.waiting;
        self.turn_order.retain(|origin| {
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

impl Reservation {
    /// The origin that holds the room.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Size of the room in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Marks the room as used by records that wait for a store. [`super::Budget::fill_level`] counts such rooms. After
    /// this call the size of the room must not change.
    pub fn mark_queued(&mut self) {
        if !std::mem::replace(&mut self.is_queued, true) {
            self.pool.lock().queued_bytes += self.bytes;
        }
    }

    /// Frees the bytes above this size.
    pub fn shrink(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes.max(1));
        if excess > 0 {
            self.bytes -= excess;
            self.pool.release(self.origin, excess);
        }
    }

    /// True if the room has at least this number of bytes.
    pub fn fits(&self, bytes: usize) -> bool {
        bytes <= self.bytes
    }

    /// Adds `bytes` to the room if they are free now. Returns false if the request would have to wait.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        match self.pool.try_acquire(self.origin, bytes) {
            Some(mut more) => {
                self.bytes += std::mem::take(&mut more.bytes);
                true
            }
            None => false,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_queued {
            self.pool.lock().queued_bytes -= self.bytes;
        }
        if self.bytes > 0 {
            self.pool.release(self.origin, self.bytes);
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

    /// Returns the room if it has been granted.
    fn granted(room: Pin<&mut impl Future<Output = Reservation>>) -> Option<Reservation> {
        match room.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }

    #[test]
    fn room_is_free_again_when_it_shrinks_and_when_it_is_dropped() {
        let pool = MemoryPool::new(64);
        let mut room = pool.try_acquire(HEAVY, 56).unwrap();
        assert!(room.fits(56) && !room.fits(57));
        assert!(pool.try_acquire(HEAVY, 1).is_none());

        room.shrink(10);
        assert!(room.try_grow(20));
        assert!(room.fits(30));

        drop(room);
        assert!(!pool.is_in_use() && pool.lock().held.is_empty());
    }

    #[test]
    fn a_request_beyond_a_pool_takes_all_but_the_reserve() {
        let pool = MemoryPool::new(64);
        let mut all = pool.try_acquire(HEAVY, 1000).unwrap();

        assert!(all.fits(56) && !all.fits(57));
        // Only records that wait for a store fill the pool.
        assert!(pool.fill_level() < 0.1);
        all.mark_queued();
        assert!(pool.fill_level() > 0.9);
        drop(all);
        assert!(pool.fill_level() < 0.1);
    }

    #[test]
    fn a_pool_is_full_when_a_request_waits_for_queued_bytes() {
        let pool = MemoryPool::new(64);
        let mut most = pool.try_acquire(HEAVY, 40).unwrap();
        most.mark_queued();
        assert!((0.7..0.8).contains(&pool.fill_level()));

        let mut waits = pin!(pool.acquire(HEAVY, 30));
        assert!(granted(waits.as_mut()).is_none());
        assert!((pool.fill_level() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn an_origin_that_holds_little_does_not_wait_for_one_that_holds_much() {
        let pool = MemoryPool::new(640);
        let _all = pool.try_acquire(HEAVY, 560).unwrap();
        let mut waits = pin!(pool.acquire(HEAVY, 100));
        assert!(granted(waits.as_mut()).is_none());

        let first = pool.try_acquire(OTHER, 9).unwrap();
        let second = pool.try_acquire(OTHER, 1);
        assert!(second.is_some() && pool.try_acquire(OTHER, 1).is_none());
        // An origin that holds no bytes may take all free bytes of the reserve.
        assert!(pool.try_acquire(THIRD, 71).is_none());
        assert!(pool.try_acquire(THIRD, 70).is_some());
        drop(first);
        assert!(granted(waits.as_mut()).is_none());
    }

    #[test]
    fn origins_that_wait_take_turns() {
        let pool = MemoryPool::new(80);
        let all = pool.try_acquire(THIRD, 70).unwrap();
        let mut heavy: Vec<_> = (0..3).map(|_| Box::pin(pool.acquire(HEAVY, 30))).collect();
        assert!(heavy.iter_mut().all(|room| granted(room.as_mut()).is_none()));
        let mut other = pin!(pool.acquire(OTHER, 30));
        assert!(granted(other.as_mut()).is_none());

        drop(all);
        let (one, two) = (granted(heavy[0].as_mut()), granted(other.as_mut()));
        assert!(one.is_some() && two.is_some() && granted(heavy[1].as_mut()).is_none());
        drop(two);
        assert!(granted(heavy[1].as_mut()).is_some());
    }

    #[test]
    fn a_large_request_is_not_overtaken_forever() {
        let pool = MemoryPool::new(80);
        let small: Vec<_> = (0..7).map(|_| pool.try_acquire(HEAVY, 10).unwrap()).collect();
        let mut large = pin!(pool.acquire(OTHER, 70));
        assert!(granted(large.as_mut()).is_none());
        for room in small {
            assert!(granted(large.as_mut()).is_none());
            assert!(pool.try_acquire(HEAVY, 10).is_none());
            drop(room);
        }

        assert!(granted(large.as_mut()).is_some());
    }

    #[test]
    fn a_request_whose_task_has_ended_delays_no_other() {
        let pool = MemoryPool::new(80);
        let all = pool.try_acquire(THIRD, 70).unwrap();
        {
            let mut gone = pin!(pool.acquire(HEAVY, 70));
            assert!(granted(gone.as_mut()).is_none());
        }
        let mut other = pin!(pool.acquire(OTHER, 20));
        assert!(granted(other.as_mut()).is_none());
        drop(all);

        assert!(granted(other.as_mut()).is_some());
        assert!(pool.lock().waiting.is_empty() && pool.lock().turn_order.is_empty());
    }
}
