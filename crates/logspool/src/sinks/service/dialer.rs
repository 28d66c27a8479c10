//! Which address of a service is connected next, and when.
//!
//! A round tries each address once, in random order. After a failure the next address of the round is tried at once;
//! after the last one there is a pause, which doubles until a service acknowledges a chunk. All answers of the resolver
//! for a name are addresses of the round. Names are resolved in each round.
//!
//! From time to time a working connection is left for a random address, so that a service that was added or restarted
//! gets its share of the senders.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::sinks::transport::stream;
use logspool_record::address::HostPort;
use logspool_sys::platform::random;

/// First and longest pause after a round. Specified by the public contract (`docs/how-to/send-to-a-service.md`). Half
/// of each pause is random, so that not all senders reconnect at once after their service has restarted.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The order in which the addresses of one service address are tried.
#[derive(Debug)]
pub struct Dialer {
    /// Indexes of the hosts that this round has not tried yet. The last one is the next.
    hosts: Vec<usize>,
    /// The addresses of `host` that this round has not tried yet. The last one is the next.
    places: Vec<SocketAddr>,
    /// Index of the host whose addresses are tried.
    host: usize,
    /// The address of the last try.
    place: Option<SocketAddr>,
    /// Whether a service has acknowledged a chunk on the connection of the last try.
    works: bool,
    /// When the next connection may be tried.
    pub next_try: Instant,
    /// The length of the pause after this round.
    pause: Duration,
    /// How long a connection is kept, on average, and until when this one is.
    keep: Duration,
    keep_until: Instant,
}

impl Dialer {
    /// Without a round. The first try may be made at once.
    pub fn new(keep: Duration) -> Self {
        let now = Instant::now();
        Self {
            hosts: Vec::new(),
            places: Vec::new(),
            host: 0,
            place: None,
            works: false,
            next_try: now,
            pause: FIRST_PAUSE,
            keep,
            keep_until: now,
        }
    }

    /// The next address, and the index of its host in `list`. Begins a round if this one has no address left.
    ///
    /// # Errors
    ///
    /// The resolver does not know the host. The next call tries the next host.
    pub fn advance(&mut self, list: &[HostPort]) -> io::Result<(usize, SocketAddr)> {
        self.works = false;
        self.set_time_to_move();
        if self.places.is_empty() {
            if self.hosts.is_empty() {
                self.hosts = shuffled(0..list.len());
            }
            self.host = self.hosts.pop().unwrap_or_default();
            self.places = shuffled(stream::resolve(&list[self.host].host, list[self.host].port)?);
        }
        self.place = self.places.pop();
        self.place.map(|place| (self.host, place)).ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// The host of the last try.
    pub fn host<'a>(&self, list: &'a [HostPort]) -> Option<&'a HostPort> {
        list.get(self.host)
    }

    /// The address of the last try.
    #[cfg(test)]
    pub fn place(&self) -> Option<SocketAddr> {
        self.place
    }

    /// Whether the round has another address of the same host.
    pub fn has_other_place(&self) -> bool {
        !self.places.is_empty()
    }

    /// Notes that a service has acknowledged a chunk. The round ends.
    pub fn note_ack(&mut self) {
        self.works = true;
        self.pause = FIRST_PAUSE;
        self.hosts.clear();
        self.places.clear();
    }

    /// Notes that the last try failed or that its connection is lost, and sets the time of the next try.
    pub fn note_failure(&mut self, list: &[HostPort]) {
        if std::mem::take(&mut self.works) {
            // All other addresses are the next round.
            self.hosts = shuffled((0..list.len()).filter(|host| *host != self.host));
            let is_name = |host: &&HostPort| host.host.parse::<IpAddr>().is_err();
            let places =
                list.get(self.host).filter(is_name).and_then(|host| stream::resolve(&host.host, host.port).ok());
            self.places = shuffled(places.into_iter().flatten().filter(|place| Some(*place) != self.place));
        }
        self.next_try = Instant::now();
        if self.hosts.is_empty() && self.places.is_empty() {
            self.next_try += self.pause / 2 + random_part(self.pause / 2);
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
    }

    /// Whether it is time to choose an address again. Only a connection that works is left.
    pub fn is_time_to_move(&self) -> bool {
        self.works && Instant::now() >= self.keep_until
    }

    /// Chooses a random address, and returns whether it is another one. [`advance`](Self::advance) then returns it.
    pub fn choose_again(&mut self, list: &[HostPort]) -> bool {
        self.set_time_to_move();
        let mut hosts = shuffled(0..list.len());
        let Some(host) = hosts.pop() else { return false };
        let places = stream::resolve(&list[host].host, list[host].port).map(shuffled).unwrap_or_default();
        let moves = places.last().is_some_and(|place| Some(*place) != self.place);
        if moves {
            (self.hosts, self.host, self.places) = (hosts, host, places);
            self.next_try = Instant::now();
        }
        moves
    }

    fn set_time_to_move(&mut self) {
        self.keep_until = Instant::now() + self.keep / 2 + random_part(self.keep);
    }
}

/// Returns the items in random order.
fn shuffled<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    for end in (1..items.len()).rev() {
        items.swap(end, random_below(end as u64 + 1) as usize);
    }
    items
}

/// Returns a random part of a duration.
fn random_part(whole: Duration) -> Duration {
    whole.mul_f64(random_below(1 << 16) as f64 / f64::from(1 << 16))
}

/// Returns a random number below `end`. If the kernel gives no random numbers, it is 0.
fn random_below(end: u64) -> u64 {
    u64::from(u32::from_ne_bytes(random().unwrap_or_default())) % end
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const KEEP: Duration = Duration::from_secs(600);

    fn list(count: u8) -> Vec<HostPort> {
        (1..=count).map(|number| HostPort { host: format!("127.0.0.{number}"), port: 9020 }).collect()
    }

    #[test]
    fn a_round_tries_each_address_once_and_only_its_end_has_a_pause() {
        let list = list(5);
        let mut dialer = Dialer::new(KEEP);
        for _ in 0..3 {
            let mut tried = HashSet::new();
            for left in (0..5).rev() {
                let (host, place) = dialer.advance(&list).unwrap();
                assert_eq!(list[host].host, place.ip().to_string());
                tried.insert(place);
                dialer.note_failure(&list);

                assert_eq!(left == 0, dialer.next_try > Instant::now(), "{left}");
            }
            assert_eq!(5, tried.len());
        }
    }

    #[test]
    fn after_a_connection_that_worked_all_others_are_tried_at_once() {
        let list = list(3);
        let mut dialer = Dialer::new(KEEP);
        let (lost, _) = dialer.advance(&list).unwrap();
        dialer.note_ack();
        dialer.note_failure(&list);
        let mut tried = HashSet::from([lost]);
        for _ in 0..2 {
            assert!(dialer.next_try <= Instant::now());
            tried.insert(dialer.advance(&list).unwrap().0);
            dialer.note_failure(&list);
        }

        assert_eq!(3, tried.len());
        assert!(dialer.next_try > Instant::now());
    }

    #[test]
    fn a_host_that_is_not_found_is_named_and_the_next_one_is_tried() {
        let mut list = list(1);
        list.push(HostPort { host: "nowhere.invalid".to_owned(), port: 9020 });
        let mut dialer = Dialer::new(KEEP);
        let mut found = 0;
        for _ in 0..4 {
            match dialer.advance(&list) {
                Ok((host, _)) => found += usize::from(host == 0),
                Err(error) => assert!(error.to_string().starts_with("cannot find the host \"nowhere.invalid\"")),
            }
            dialer.note_failure(&list);
        }

        assert_eq!(2, found);
    }

    #[test]
    fn a_service_that_joins_gets_its_share_of_the_senders() {
        const SENDERS: usize = 3_000;
        let list = list(3);
        let mut at_the_new_one = 0;
        for _ in 0..SENDERS {
            let mut dialer = Dialer::new(Duration::ZERO);
            dialer.advance(&list[..2]).unwrap();
            assert!(!dialer.is_time_to_move(), "nothing was acknowledged yet");
            dialer.note_ack();
            assert!(dialer.is_time_to_move());
            let used = dialer.place;
            if dialer.choose_again(&list) {
                assert_ne!(used, Some(dialer.advance(&list).unwrap().1));
            }
            at_the_new_one += usize::from(dialer.host == 2);
        }

        // The standard deviation is 26.
        assert!((SENDERS * 25 / 100..SENDERS * 42 / 100).contains(&at_the_new_one), "{at_the_new_one}");
    }

    #[test]
    fn a_connection_is_kept_for_half_to_one_and_a_half_of_the_interval() {
        let list = list(1);
        let mut dialer = Dialer::new(KEEP);
        for _ in 0..100 {
            let before = Instant::now();
            dialer.advance(&list).unwrap();

            assert!(dialer.keep_until >= before + KEEP / 2 && dialer.keep_until <= Instant::now() + KEEP * 3 / 2);
        }
        assert!(!dialer.choose_again(&list), "there is no other address");
    }
}
