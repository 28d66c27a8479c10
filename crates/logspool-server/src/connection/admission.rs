//! Admits connections. Peers share the slots, and some slots are reserved for HTTP.
//!
//! A connection that has sent records is not closed because it is silent: a stdlib handler would lose a record before
//! it notices the closed connection. So a slot cannot be taken back, and fairness has to be ensured when it is given. A
//! peer that already holds many slots is refused while slots are still free for other peers. There are three pools of
//! slots:
//! - the general pool of `limits.connections` slots, for every connection;
//! - a reserve for listeners that accept only HTTP, used when the general pool refuses a connection;
//! - a reserve for listeners that accept every protocol, used in the same case. A connection holds such a slot while
//!   its first bytes arrive. If they are HTTP, it keeps the slot. Otherwise it moves to the general pool, or is closed
//!   if that pool has no slot.
//!
//! So a health check gets an answer even if senders have taken every slot of the general pool. A connection with a
//! reserved slot has little time for its request and its answer, and is then closed: see [`Slot::header_time`] and
//! [`Slot::is_reserved`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::origin::Origin;
use crate::share::{Refusal, may_take_more};

/// Maximum time for the header of a request on a connection with a reserved slot.
///
/// Chosen: a health check sends its request at once, also over a slow network. A peer that sends nothing blocks its
/// part of the reserve for this time. With half the time, a busy client could be too late.
const RESERVED_HEADER_TIME: Duration = Duration::from_secs(2);

/// Number of slots of each pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotCounts {
    /// Slots of the general pool: `limits.connections`, or fewer if the process may not open so many files.
    pub general: usize,
    /// Slots of the reserve for listeners that accept only HTTP.
    pub http: usize,
    /// Slots of the reserve for listeners that accept every protocol.
    pub first_bytes: usize,
}

/// A pool of slots that peers share.
#[derive(Debug)]
struct SlotPool {
    limit: usize,
    /// Maximum number of slots per peer; `None`: a peer may hold a share that depends on the number of free slots.
    per_peer: Option<usize>,
    open: usize,
    held: HashMap<Origin, usize>,
}

impl SlotPool {
    fn new(limit: usize, per_peer: Option<usize>) -> Self {
        Self { limit, per_peer, open: 0, held: HashMap::new() }
    }

    fn take(&mut self, origin: Origin) -> Result<(), Refusal> {
        let free = self.limit - self.open;
        if free == 0 {
            return Err(Refusal::Full { limit: self.limit });
        }
        let held = self.held.get(&origin).copied().unwrap_or_default();
        let may = match self.per_peer {
            Some(most) => held < most,
            None => may_take_more(held, free),
        };
        if !may {
            return Err(Refusal::Share { held, limit: self.limit });
        }
        self.open += 1;
        self.held.insert(origin, held + 1);
        Ok(())
    }

    fn release(&mut self, origin: Origin) {
        self.open -= 1;
        let held = self.held.get_mut(&origin).expect("an origin is known while it holds a slot");
        *held -= 1;
        if *held == 0 {
            self.held.remove(&origin);
        }
    }
}

/// The traffic that a listener accepts, or that a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficKind {
    /// Every protocol is accepted, or the protocol is not known yet.
    Any,
    /// Only HTTP is accepted or carried.
    Http,
    /// One protocol other than HTTP. It has no reserve.
    Records,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotPoolKind {
    General,
    Http,
    FirstBytes,
}

#[derive(Debug)]
struct SlotPools {
    general: SlotPool,
    http: SlotPool,
    first_bytes: SlotPool,
}

impl SlotPools {
    fn pool(&mut self, kind: SlotPoolKind) -> &mut SlotPool {
        match kind {
            SlotPoolKind::General => &mut self.general,
            SlotPoolKind::Http => &mut self.http,
            SlotPoolKind::FirstBytes => &mut self.first_bytes,
        }
    }
}

/// Admits connections.
#[derive(Debug)]
pub struct Admission(Mutex<SlotPools>);

impl Admission {
    /// Creates pools with these sizes. In the general pool a peer may hold `per_peer` slots, or with 0 a share that
    /// depends on the number of free slots.
    pub fn new(sizes: SlotCounts, per_peer: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SlotPools {
            general: SlotPool::new(sizes.general, (per_peer > 0).then_some(per_peer)),
            http: SlotPool::new(sizes.http, None),
            first_bytes: SlotPool::new(sizes.first_bytes, None),
        })))
    }

    /// Gives a slot to a connection.
    ///
    /// # Errors
    ///
    /// The general pool has no slot for this peer, and neither has the reserve for this listener, if there is one. The
    /// error is the reason of the general pool.
    pub fn admit(self: &Arc<Self>, origin: Origin, door: TrafficKind) -> Result<Slot, Refusal> {
        let mut pools = self.pools();
        let pool = pools.general.take(origin).map(|()| SlotPoolKind::General).or_else(|refusal| {
            let reserve = match door {
                TrafficKind::Http => SlotPoolKind::Http,
                TrafficKind::Any => SlotPoolKind::FirstBytes,
                TrafficKind::Records => return Err(refusal),
            };
            pools.pool(reserve).take(origin).map(|()| reserve).map_err(|_| refusal)
        })?;
        Ok(Slot { admission: self.clone(), origin, pool })
    }

    fn pools(&self) -> std::sync::MutexGuard<'_, SlotPools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a connection. Dropping it frees the slot.
#[derive(Debug)]
pub struct Slot {
    admission: Arc<Admission>,
    origin: Origin,
    pool: SlotPoolKind,
}

impl Slot {
    /// True if the slot belongs to a reserve. Then the connection is closed after one answer, or after
    /// `limits.header_seconds`. Without the time limit, a live tail would hold the slot for ever.
    pub fn is_reserved(&self) -> bool {
        self.pool != SlotPoolKind::General
    }

    /// Time limit for the first bytes, and for the header of a request.
    pub fn header_time(&self, usual: Duration) -> Duration {
        if self.is_reserved() { usual.min(RESERVED_HEADER_TIME) } else { usual }
    }

    /// Must be called when the first bytes have shown the protocol. A connection with records may not keep a reserved
    /// slot: it gets a slot of the general pool instead.
    ///
    /// # Errors
    ///
    /// The general pool has no slot for this peer. The error is the reason.
    pub fn assign(&mut self, door: TrafficKind) -> Result<(), Refusal> {
        if !self.is_reserved() || door == TrafficKind::Http {
            return Ok(());
        }
        let mut pools = self.admission.pools();
        pools.general.take(self.origin)?;
        pools.pool(self.pool).release(self.origin);
        drop(pools);
        self.pool = SlotPoolKind::General;
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.pools().pool(self.pool).release(self.origin);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn admission(per_peer: usize) -> Arc<Admission> {
        Admission::new(SlotCounts { general: 4096, http: 64, first_bytes: 16 }, per_peer)
    }

    /// Takes slots for a peer until one is refused. Returns the slots and the refusal.
    fn take_all(admission: &Arc<Admission>, origin: Origin, door: TrafficKind) -> (Vec<Slot>, Refusal) {
        let mut slots = Vec::new();
        loop {
            match admission.admit(origin, door) {
                Ok(slot) => slots.push(slot),
                Err(refusal) => return (slots, refusal),
            }
        }
    }

    #[test]
    fn one_peer_gets_a_third_and_the_next_a_third_of_the_rest() {
        let admission = admission(0);
        let (first, refusal) = take_all(&admission, origin(1), TrafficKind::Records);
        let (second, _) = take_all(&admission, origin(2), TrafficKind::Records);
        let rest: Vec<_> = (3..=12).map(|last| take_all(&admission, origin(last), TrafficKind::Records).0).collect();

        assert_eq!((1366, 910), (first.len(), second.len()));
        assert_eq!(Refusal::Share { held: 1366, limit: 4096 }, refusal);
        // After a dozen peers have taken all the slots they can get, other peers still get slots.
        assert!(4096 - first.len() - second.len() - rest.iter().map(Vec::len).sum::<usize>() > 20);
        assert!(admission.admit(origin(13), TrafficKind::Records).is_ok());
    }

    #[test]
    fn every_slot_can_be_used_and_is_freed() {
        let admission = admission(0);
        let address = |number: u32| Origin::V4(Ipv4Addr::from_bits(number));
        let mut slots: Vec<_> =
            (0..4096).map(|number| admission.admit(address(number), TrafficKind::Any).unwrap()).collect();

        let refusal = admission.admit(origin(1), TrafficKind::Records).unwrap_err();
        assert_eq!(("too_many", Refusal::Full { limit: 4096 }), (refusal.reason(), refusal));
        slots.clear();
        assert_eq!(1366, take_all(&admission, origin(1), TrafficKind::Records).0.len());
        assert!(admission.pools().general.held.is_empty());
    }

    #[test]
    fn a_configured_number_for_a_peer_replaces_its_share() {
        let admission = admission(4096);
        let (_slots, refusal) = take_all(&admission, origin(1), TrafficKind::Records);
        assert_eq!(Refusal::Full { limit: 4096 }, refusal);

        let admission = self::admission(3);
        let (slots, refusal) = take_all(&admission, origin(1), TrafficKind::Records);
        assert_eq!((3, "too_many_of_peer"), (slots.len(), refusal.reason()));
    }

    #[test]
    fn http_has_slots_of_its_own_which_peers_share_too() {
        let admission = admission(0);
        let _senders = take_all(&admission, origin(1), TrafficKind::Records);
        let (mut requests, _) = take_all(&admission, origin(1), TrafficKind::Http);
        assert_eq!(22, requests.len());
        assert!(requests.iter().all(Slot::is_reserved));

        // Another address first gets slots of the general pool, and later its part of the reserve.
        assert!(!admission.admit(origin(2), TrafficKind::Http).unwrap().is_reserved());
        let _others = take_all(&admission, origin(2), TrafficKind::Records);
        assert!(admission.admit(origin(2), TrafficKind::Http).unwrap().is_reserved());
        requests.pop();
        assert!(admission.admit(origin(1), TrafficKind::Http).unwrap().is_reserved());
    }

    #[test]
    fn a_connection_in_the_reserve_stays_there_only_with_http() {
        let admission = admission(2);
        let mut senders = take_all(&admission, origin(1), TrafficKind::Records).0;
        let usual = Duration::from_secs(10);
        assert_eq!(usual, senders[0].header_time(usual));
        let mut asks = admission.admit(origin(1), TrafficKind::Any).unwrap();
        let mut sends = admission.admit(origin(1), TrafficKind::Any).unwrap();
        assert_eq!(RESERVED_HEADER_TIME, sends.header_time(usual));

        assert_eq!(Ok(()), asks.assign(TrafficKind::Http));
        assert_eq!("too_many_of_peer", sends.assign(TrafficKind::Records).unwrap_err().reason());
        senders.pop();
        assert_eq!(Ok(()), sends.assign(TrafficKind::Records));
        assert!(asks.is_reserved() && !sends.is_reserved());
    }
}
