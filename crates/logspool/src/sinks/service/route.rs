//! Which address of a service is connected next, and when.
//!
//! A round tries each address once, in random order. After a failure the next address of the round is tried at once;
//! after the last one there is a pause, which doubles until a service acknowledges a chunk. A name with several answers
//! of the resolver counts as so many addresses. Names are resolved in each round.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use logspool_record::address::HostPort;

use super::random;

/// First and longest pause after a round. Specified by the public contract (`docs/how-to/send-to-a-service.md`). Half
/// of each pause is random, so that not all senders reconnect at once after their service has restarted.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The order in which the addresses of one service address are tried.
#[derive(Debug)]
pub struct Route {
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
}

impl Route {
    /// A route without a round. The first try may be made at once.
    pub fn new() -> Self {
        Self {
            hosts: Vec::new(),
            places: Vec::new(),
            host: 0,
            place: None,
            works: false,
            next_try: Instant::now(),
            pause: FIRST_PAUSE,
        }
    }

    /// The next address, and the index of its host in `list`. Begins a round if none has an address left.
    ///
    /// # Errors
    ///
    /// The resolver does not know the host. The next call goes on with the next one.
    pub fn advance(&mut self, list: &[HostPort]) -> io::Result<(usize, SocketAddr)> {
        if self.places.is_empty() {
            if self.hosts.is_empty() {
                self.hosts = shuffled(0..list.len());
            }
            self.host = self.hosts.pop().unwrap_or_default();
            self.places = shuffled(resolve(&list[self.host])?);
        }
        self.place = self.places.pop();
        self.place.map(|place| (self.host, place)).ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// The host of the last try.
    pub fn host<'a>(&self, list: &'a [HostPort]) -> Option<&'a HostPort> {
        list.get(self.host)
    }

    /// Notes that a service has acknowledged a chunk.
    pub fn note_ack(&mut self) {
        self.works = true;
        self.pause = FIRST_PAUSE;
    }

    /// Notes that the last try failed or that its connection is lost, and sets the time of the next try.
    pub fn note_failure(&mut self, list: &[HostPort]) {
        if std::mem::take(&mut self.works) {
            // All other addresses are the next round.
            self.hosts = shuffled((0..list.len()).filter(|host| *host != self.host));
            let is_name = |host: &&HostPort| host.host.parse::<IpAddr>().is_err();
            let places = list.get(self.host).filter(is_name).and_then(|host| resolve(host).ok());
            self.places = shuffled(places.into_iter().flatten().filter(|place| Some(*place) != self.place));
        }
        self.next_try = Instant::now();
        if self.hosts.is_empty() && self.places.is_empty() {
            let half = self.pause / 2;
            self.next_try += half + half * random_below(1 << 16) as u32 / (1 << 16);
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        }
    }
}

/// Returns the addresses of a host.
fn resolve(host: &HostPort) -> io::Result<impl Iterator<Item = SocketAddr> + use<>> {
    (host.host.as_str(), host.port).to_socket_addrs().map_err(|error| {
        let name = &host.host;
        let why = format!("cannot find the host {name:?}: {error} (fix: the name in the address, or the resolver)");
        io::Error::new(ErrorKind::NotFound, why)
    })
}

/// Returns the items in random order.
fn shuffled<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    for end in (1..items.len()).rev() {
        items.swap(end, random_below(end as u64 + 1) as usize);
    }
    items
}

/// Returns a random number below `end`. If the kernel gives no random numbers, it is 0.
fn random_below(end: u64) -> u64 {
    u64::from(u32::from_ne_bytes(random().unwrap_or_default())) % end
}
