//! Sends records to a service by Fluent Forward; the service acknowledges each chunk that it has stored.
//!
//! Records are gathered into chunks. The bytes of a chunk are encoded once and kept until it is acknowledged. Several
//! chunks are in transit at a time. After a lost connection, all chunks without an ack are sent again, oldest first.
//! They keep their ids, so that a receiver recognises a chunk that it has already. An id is `stream/epoch/first-last`:
//! a stream is all records that one sink of one process sends, and its records are numbered from 1 within an epoch.
//! When everything is acknowledged, the sink ends its stream with a message. A recoverer continues the stream of a dead
//! process, with the numbers that its records had or would have had. It does not end the stream: the service must know
//! it as long as records of the dead process may still be in transit.
//!
//! With TLS the same bytes are sent, after the service is authenticated (`transport/tls.rs`). A build without the feature
//! `tls` has no TLS.
//!
//! Entries are compressed by gzip only if the service is on another machine. Measured on entries of 290 bytes: a sixth
//! of the bytes remains, for ten times the processor time of sending over loopback.

mod chunk;
mod connection;
mod dialer;
mod handshake;

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::declared::options_of;
use super::query;
use super::secret::Secret;
use super::{Place, SinkOptions, Traits};
use crate::option::{OptionField, OptionShape, OptionTable};
use crate::sink::{CarryOutcome, Courier, Lines, NextCarry, Pace, Sink, SinkError, Stream};
use chunk::{ClassCounts, Packing, SentChunk};
use connection::Connection;
use dialer::Dialer;
use handshake::KeyHandshake;
use logspool_record::address::ServiceAddress;
use logspool_record::definition::{Descriptor, OptionValue};
use logspool_sys::platform::random;
use logspool_sys::sleep::sleep_interruptibly;

/// Maximum size of a chunk, as a multiple of `chunk_bytes` and in bytes of its entries. A chunk exceeds both only if it
/// holds a single longer record. Specified by the public contract.
const CHUNK_MULTIPLE: usize = 4;
const MAX_CHUNK_BYTES: usize = 1024 * 1024;

/// How long a single write waits for an answer before it looks again.
const LOCKSTEP_WAIT: Duration = Duration::from_millis(50);

/// Maximum number of chunks in transit.
///
/// Chosen: 8 chunks hold fewer records than one commit of the service, so that sender and service waited for each other
/// in turn. With 24, one sender stores 1.7 times as many records, as many as over four connections
/// (`make bench-service`).
const WINDOW: usize = 24;

/// Maximum time without an answer and without accepted bytes while chunks are in transit. The connection is then
/// dropped. Specified.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Maximum time that a single write waits for its ack. After it the caller must try the write again.
const LOCKSTEP_LIMIT: Duration = Duration::from_secs(1);

crate::options! {
    /// Sends records to a logspool service, or to another receiver of Fluent Forward v1. The receiver confirms each
    /// chunk of records.
    pub struct ServiceOptions {
        /// `tcp://host:port`, `tls://host:port` or `unix:///path`; several services with one store as
        /// `tcp://a:9020,b:9020`.
        pub address: ServiceAddress,
        /// A chunk with so many bytes of entries is sent; it has at most four times as many, and at most 1 MiB, unless
        /// a single record is longer.
        pub chunk_bytes: u32 ["bytes", 1024..=1048576] = Whole(262144),
        /// Longest time that a chunk gathers records; a flush or the end of the program does not wait for it.
        pub gather_seconds: Duration [seconds 0.0..=60.0] = Seconds(0.05),
        /// Time until the sink chooses again among several addresses, 50 % more or less. It moves to a random address
        /// when all records are acknowledged, so that a new service gets its share.
        pub rebalance_seconds: Duration [seconds 0.1..=86400.0] = Seconds(600.0),
        /// Tag of the records, by which Fluent Bit and Fluentd route them.
        pub tag: ForwardTag = Text("logspool"),
        /// Key that the receiver must know too; each side proves it to the other before records are sent.
        pub shared_key: Option<Secret> = Nothing,
    }
}

impl ServiceOptions {
    /// The options of a sink at `address`, all others at their defaults.
    ///
    /// # Panics
    ///
    /// A default is invalid. The tests create such options.
    pub fn at(address: ServiceAddress) -> Self {
        let defaults = Self::ROWS[1..].iter().map(|row| row.default_value().expect("only the address is required"));
        let values: Vec<_> = std::iter::once(address.to_value()).chain(defaults).collect();
        Self::from_values(&values).expect("defaults are valid")
    }

    /// Whether only the address matters to a recoverer.
    fn has_address_alone(&self) -> bool {
        self.shared_key.is_none() && self.tag == Self::at(self.address.clone()).tag
    }
}

/// The tag of every message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardTag(String);

impl OptionField for ForwardTag {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        let is_allowed = |c: char| !c.is_whitespace() && !c.is_control();
        if text.is_empty() || text.len() > 255 || !text.chars().all(is_allowed) {
            return Err(format!("{text:?} is no tag (fix: 1 to 255 bytes without spaces, such as app.web)"));
        }
        Ok(Self(text))
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.0.clone())
    }
}

impl SinkOptions for ServiceOptions {
    const KIND: &'static str = "service";
    const TRAITS: Traits = Traits { confirms_later: true, ..Traits::REMOTE };

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(ServiceSink::new(self.clone())?))
    }

    fn place(&self) -> Place {
        Place::Address(self.address.to_string())
    }

    fn recovery_address(&self) -> Option<String> {
        // How records are gathered does not matter to a recoverer.
        let address = self.address.to_text();
        if self.has_address_alone() {
            return Some(address);
        }
        let key = self.shared_key.iter().map(|key| ("shared_key", key.text().to_owned()));
        Some(query::encode(Self::KIND, [("address", address), ("tag", self.tag.0.clone())].into_iter().chain(key)))
    }

    fn from_recovery_address(lasting: &str) -> Option<Self> {
        lasting.parse().ok().map(Self::at).or_else(|| options_of(lasting))
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![Self::at(ServiceAddress::Unix { path: format!("{path}.socket") })]
    }
}

impl OptionField for ServiceAddress {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        String::from_value(value)?.parse().map_err(|error: logspool_record::address::AddressError| error.to_string())
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.to_text())
    }
}

/// The sender of one stream; see the module documentation.
#[derive(Debug)]
pub struct ServiceSink {
    options: ServiceOptions,
    packing: Packing,
    stream: Stream,
    /// Whether another process began the stream.
    is_resumed: bool,
    /// Number of the first record of the chunk that is being gathered.
    first: u64,
    gathered: Vec<u8>,
    gathered_records: u64,
    gathered_batches: usize,
    /// The number of records of each level class, for each batch with records in the gathered chunk.
    gathered_classes: Vec<ClassCounts>,
    /// When the gathered chunk must be closed. Meaningful only while the chunk has records.
    due: Instant,
    /// Closed chunks, oldest first, until they and all chunks before them are acknowledged. The window exceeds its
    /// limit only if a single batch makes more chunks.
    window: VecDeque<SentChunk>,
    connection: Option<Connection>,
    /// Number of chunks, from the front of the window, that were sent on this connection. The other field is the number
    /// of bytes sent of the chunk after them.
    sent: usize,
    sent_bytes: usize,
    /// When the connection last accepted bytes, or an answer last arrived.
    moved_at: Instant,
    /// Which address is connected next, and when.
    dialer: Dialer,
    /// Dropped records of the oldest batch, whose last chunk is not acknowledged yet.
    dropped: ClassCounts,
    /// Number of records that were dropped in writes, and the reason. A courier reports them as they arrive.
    dropped_in_writes: ClassCounts,
    trouble: Option<io::Error>,
}

impl ServiceSink {
    /// Creates a new stream. The first record opens the connection.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(options: ServiceOptions) -> io::Result<Self> {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
        Ok(Self::of(options, Stream { id: u128::from_ne_bytes(random()?), epoch: epoch.max(1) }))
    }

    /// Continues the stream of a dead process; [`number_from`](Self::number_from) sets the number of the next record.
    #[allow(dead_code, reason = "test programs that take this file in recover nothing")]
    pub fn resume(options: ServiceOptions, stream: Stream) -> Self {
        let mut sink = Self::of(options, stream);
        sink.is_resumed = true;
        sink
    }

    /// Sets the number of the next record. All earlier batches must have been acknowledged.
    #[allow(dead_code, reason = "as above")]
    pub fn number_from(&mut self, number: u64) {
        debug_assert!(self.window.is_empty() && self.gathered_batches == 0, "what is on its way has its numbers");
        self.first = number;
    }

    fn of(options: ServiceOptions, stream: Stream) -> Self {
        let now = Instant::now();
        Self {
            packing: if options.address.is_local() { Packing::Plain } else { Packing::Gzip },
            stream,
            is_resumed: false,
            dialer: Dialer::new(options.rebalance_seconds),
            options,
            first: 1,
            gathered: Vec::new(),
            gathered_records: 0,
            gathered_batches: 0,
            gathered_classes: Vec::new(),
            due: now,
            window: VecDeque::new(),
            connection: None,
            sent: 0,
            sent_bytes: 0,
            moved_at: now,
            dropped: Default::default(),
            dropped_in_writes: Default::default(),
            trouble: None,
        }
    }

    /// Bytes of entries with which a chunk is closed if the window has room.
    fn chunk_bytes(&self) -> usize {
        self.options.chunk_bytes as usize
    }

    /// Closes the gathered chunk if it is due and the window has room.
    fn close_if_due(&mut self, pace: Pace) {
        let is_due = pace == Pace::Hurry || self.gathered.len() >= self.chunk_bytes() || Instant::now() >= self.due;
        if self.gathered_batches > 0 && self.window.len() < WINDOW && is_due {
            self.close_chunk();
        }
    }

    fn close_chunk(&mut self) {
        if self.window.is_empty() {
            self.moved_at = Instant::now();
        }
        let id = chunk::id(self.stream, self.first, self.gathered_records);
        let (records, batches) = (self.gathered_records, self.gathered_batches);
        let classes = std::mem::take(&mut self.gathered_classes);
        let chunk = SentChunk::new(id, &self.options.tag.0, &self.gathered, records, self.packing);
        self.window.push_back(SentChunk { batches, classes, ..chunk });
        self.first += records;
        self.gathered.clear();
        (self.gathered_records, self.gathered_batches) = (0, 0);
    }

    /// Sends and receives as much as possible without blocking. On an error, too, batches may have
    /// arrived.
    fn exchange(&mut self, carried: &mut CarryOutcome) -> io::Result<()> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let key = self.options.shared_key.as_ref();
                let handshake = key.map(|key| io::Result::Ok(KeyHandshake::begin(key, random()?))).transpose()?;
                let opened = Connection::open(&self.options.address, &mut self.dialer, handshake)?;
                self.moved_at = Instant::now();
                (self.sent, self.sent_bytes) = (0, 0);
                none.insert(opened)
            }
        };
        // A connection can acknowledge only chunks that were sent on it. A chunk that was already acknowledged is
        // skipped below.
        let (sent, mut has_moved) = (self.sent, false);
        let heard = connection.receive(|id, dropped| {
            if let Some(chunk) = self.window.iter_mut().take(sent).find(|chunk| chunk.id.as_bytes() == id) {
                chunk.acked = true;
                chunk.dropped = dropped.map(|why| String::from_utf8_lossy(why).into_owned());
                has_moved = true;
            }
        });
        if has_moved {
            self.dialer.note_ack();
        }
        while self.window.front().is_some_and(|chunk| chunk.acked) {
            let chunk = self.window.pop_front();
            chunk.into_iter().for_each(|chunk| chunk.arrive(&mut self.dropped, carried));
            self.sent -= 1;
        }
        heard?;
        if !has_moved {
            connection.check_silence()?;
        }
        let is_leaving = self.dialer.is_time_to_move();
        while let Some(chunk) = self.window.get(self.sent).filter(|_| self.sent < WINDOW) {
            if is_leaving && self.sent_bytes == 0 {
                break;
            }
            if !chunk.acked {
                let count = match connection.send(&chunk.bytes[self.sent_bytes..]) {
                    Ok(count) => count,
                    Err(error) => return Err(connection.explain(error)),
                };
                has_moved |= count > 0;
                self.sent_bytes += count;
                if count == 0 {
                    break;
                }
                if self.sent_bytes < chunk.bytes.len() {
                    continue;
                }
            }
            self.sent += 1;
            self.sent_bytes = 0;
        }
        let now = Instant::now();
        if has_moved {
            self.moved_at = now;
        }
        if now - self.moved_at > ANSWER_LIMIT {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        Ok(())
    }

    /// Drops a connection that the service closed while no chunk was in transit. Services do so with idle connections.
    fn leave_closed_connection(&mut self) {
        let is_idle = (self.sent, self.sent_bytes) == (0, 0);
        // A connection in its handshake is not dropped here: `exchange` reports its failure and pauses before the next
        // try.
        if let Some(connection) = self.connection.as_mut().filter(|connection| is_idle && !connection.is_beginning())
            && connection.receive(|_, _| ()).is_err()
        {
            self.connection = None;
        }
    }

    /// Leaves the connection for another address at its time, when nothing is in transit. Until then `exchange` sends no
    /// other chunk.
    fn move_if_due(&mut self) {
        let is_idle = (self.sent, self.sent_bytes) == (0, 0);
        if is_idle && self.connection.is_some() && self.dialer.is_time_to_move() {
            let hosts = self.options.address.hosts();
            if self.dialer.choose_again(hosts) {
                self.connection = None;
            }
        }
    }

    /// Drops the connection after an error. Returns the error, with the host if the address has several. Returns `None`
    /// while the host has other addresses: names such as `localhost` often have an unused address.
    fn disconnect(&mut self, error: io::Error) -> Option<io::Error> {
        let was_established = self.connection.take().is_some_and(|connection| connection.is_established());
        let is_told = was_established || !self.dialer.has_other_place();
        let hosts = self.options.address.hosts();
        let host = self.dialer.host(hosts).filter(|_| hosts.len() > 1);
        let error = match host {
            Some(host) => io::Error::new(error.kind(), format!("{host}: {error}")),
            None => error,
        };
        self.dialer.note_failure(hosts);
        Some(error).filter(|_| is_told)
    }
}

impl Courier for ServiceSink {
    fn stream(&self) -> Option<Stream> {
        Some(self.stream)
    }

    fn has_room(&self) -> bool {
        self.gathered.len() < self.chunk_bytes() && self.window.len() <= WINDOW
    }

    fn take(&mut self, lines: Lines<'_>) {
        if self.gathered_batches == 0 {
            self.due = Instant::now() + self.options.gather_seconds;
        }
        let most = (self.chunk_bytes() * CHUNK_MULTIPLE).min(MAX_CHUNK_BYTES);
        let mut from = 0;
        self.gathered_classes.push(ClassCounts::default());
        for mark in lines.marks {
            let end = mark.end as usize - lines.before;
            if self.gathered_records > 0 && self.gathered.len() + (end - from) > most {
                self.close_chunk();
                self.gathered_classes.push(ClassCounts::default());
            }
            if let Some(classes) = self.gathered_classes.last_mut() {
                classes[usize::from(mark.class)] += 1;
            }
            self.gathered.extend_from_slice(&lines.bytes[from..end]);
            self.gathered_records += 1;
            from = end;
        }
        self.gathered_batches += 1;
    }

    fn carry(&mut self, pace: Pace) -> CarryOutcome {
        let mut carried = CarryOutcome { arrived: 0, error: None, refused: Vec::new(), next: NextCarry::Idle };
        loop {
            self.close_if_due(pace);
            if self.window.is_empty() {
                if self.gathered_batches > 0 {
                    carried.next = NextCarry::AtTime(self.due);
                }
                return carried;
            }
            self.leave_closed_connection();
            self.move_if_due();
            if self.connection.is_none() && Instant::now() < self.dialer.next_try {
                carried.next = NextCarry::Unreachable(self.dialer.next_try);
                return carried;
            }
            let before = carried.arrived;
            match self.exchange(&mut carried) {
                // The acks may have made room in the window for another chunk.
                Ok(()) if carried.arrived > before => {}
                Ok(()) => {
                    carried.next = NextCarry::OnAnswer;
                    return carried;
                }
                // The next address of the list is tried at once.
                Err(error) => carried.error = self.disconnect(error).or(carried.error),
            }
        }
    }

    fn wait(&self, longest: Duration) {
        match &self.connection {
            Some(connection) => connection.wait(self.sent < self.window.len().min(WINDOW), longest),
            None => sleep_interruptibly(longest),
        }
    }
}

/// Sends one chunk at a time, for callers that do not use the courier.
impl Sink for ServiceSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        if self.window.is_empty() && self.gathered_batches == 0 {
            self.take(lines);
        }
        let give_up = Instant::now() + LOCKSTEP_LIMIT;
        loop {
            let carried = self.carry(Pace::Hurry);
            let has_dropped = !carried.refused.is_empty();
            carried.refused.iter().for_each(|record| self.dropped_in_writes[usize::from(record.class)] += 1);
            if carried.arrived > 0 {
                self.trouble = carried.error.filter(|_| has_dropped);
                return Ok(lines.bytes.len());
            }
            if let (Some(error), NextCarry::Unreachable(_)) = (carried.error, carried.next) {
                return Err(SinkError::Retry(error));
            }
            if Instant::now() >= give_up {
                return Err(SinkError::Retry(io::Error::from_raw_os_error(libc::EAGAIN)));
            }
            self.wait(LOCKSTEP_WAIT);
        }
    }

    fn take_refused(&mut self) -> ClassCounts {
        std::mem::take(&mut self.dropped_in_writes)
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }

    fn courier(&mut self) -> Option<&mut dyn Courier> {
        Some(self)
    }
}

impl Drop for ServiceSink {
    /// Ends the stream at the service if all records are acknowledged.
    fn drop(&mut self) {
        let is_done = self.window.is_empty() && self.gathered_batches == 0 && self.first > 1 && !self.is_resumed;
        if let Some(connection) = self.connection.take().filter(|_| is_done) {
            connection.finish(&chunk::end(&chunk::id(self.stream, self.first, 0), &self.options.tag.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::sink::Mark;

    fn unreachable() -> ServiceSink {
        ServiceSink::new(ServiceOptions::at("tcp://127.0.0.1:1".parse().unwrap())).unwrap()
    }

    fn taken(sink: &mut ServiceSink) {
        let marks = [Mark { end: 5, level: 20, class: 2, member: 0, seconds: 0 }];
        sink.take(Lines { bytes: b"entry", marks: &marks, before: 0 });
    }

    #[test]
    fn a_connection_without_an_answer_in_time_is_closed_and_its_chunk_kept() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
        let mut sink = ServiceSink::new(ServiceOptions::at(address)).unwrap();
        taken(&mut sink);
        assert_eq!(NextCarry::OnAnswer, sink.carry(Pace::Hurry).next);
        let id = sink.window[0].id.clone();
        sink.moved_at = Instant::now().checked_sub(ANSWER_LIMIT + Duration::from_millis(1)).unwrap();
        let carried = sink.carry(Pace::Hurry);

        assert_eq!(Some(io::ErrorKind::TimedOut), carried.error.map(|error| error.kind()));
        assert_eq!((0, NextCarry::Unreachable(sink.dialer.next_try)), (carried.arrived, carried.next));
        assert!(sink.connection.is_none() && sink.window[0].id == id);
    }

    #[test]
    fn a_sender_moves_once_all_that_it_sent_is_acknowledged() {
        use std::io::Write;
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let places = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let address = format!("tcp://{},{}", places[0], places[1]).parse().unwrap();
        let mut sink =
            ServiceSink::new(ServiceOptions { rebalance_seconds: Duration::ZERO, ..ServiceOptions::at(address) });
        let sink = sink.as_mut().unwrap();
        let send = |sink: &mut ServiceSink| {
            taken(sink);
            sink.carry(Pace::Hurry);
        };
        let acknowledge = |peer: &mut std::net::TcpStream, id: &str| {
            peer.write_all(&[&b"\x81\xa3ack"[..], &[0xd9, id.len() as u8], id.as_bytes()].concat()).unwrap();
        };
        send(sink);
        let used = places.iter().position(|place| Some(*place) == sink.dialer.place()).unwrap();
        let mut peer = listeners[used].accept().unwrap().0;
        while sink.sent == 0 {
            sink.carry(Pace::Hurry);
        }
        send(sink);
        let ids: Vec<String> = sink.window.iter().map(|chunk| chunk.id.clone()).collect();
        assert_eq!(2, sink.sent, "nothing is acknowledged, so the connection is not left");

        acknowledge(&mut peer, &ids[0]);
        while sink.window.len() > 1 {
            sink.carry(Pace::Hurry);
        }
        for _ in 0..10 {
            send(sink);
        }
        assert_eq!((1, Some(places[used])), (sink.sent, sink.dialer.place()));
        acknowledge(&mut peer, &ids[1]);
        while sink.dialer.place() == Some(places[used]) {
            sink.carry(Pace::Hurry);
            if sink.sent > 0 {
                // It has stayed by chance.
                let id = sink.window[0].id.clone();
                acknowledge(&mut peer, &id);
            }
        }
        drop(listeners[1 - used].accept().unwrap());
    }

    #[test]
    fn a_single_write_of_dropped_records_succeeds_and_counts_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
        let mut sink = ServiceSink::new(ServiceOptions::at(address)).unwrap();
        let id = chunk::id(sink.stream, 1, 1);
        let service = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut peer = listener.accept().unwrap().0;
            peer.read_exact(&mut [0; 1]).unwrap();
            let answer = [&b"\x82\xa3ack"[..], &[0xd9, id.len() as u8], id.as_bytes(), b"\xa7dropped\xa3old"].concat();
            peer.write_all(&answer).unwrap();
            peer
        });
        let marks = [Mark { end: 5, level: 20, class: 2, member: 0, seconds: 0 }];
        let written = sink.write(Lines { bytes: b"entry", marks: &marks, before: 0 });

        assert_eq!(5, written.unwrap());
        assert_eq!(([0, 0, 1, 0, 0, 0], [0; 6]), (sink.take_refused(), sink.take_refused()));
        assert!(sink.trouble().unwrap().to_string().contains("drops 1 records for ever: old"));
        drop(service.join().unwrap());
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_half_of_each_is_random() {
        let mut sink = unreachable();
        for expected in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000].map(Duration::from_millis) {
            let before = Instant::now();
            sink.disconnect(io::ErrorKind::TimedOut.into());
            let pause = sink.dialer.next_try - before;

            assert!(
                pause >= expected / 2 && sink.dialer.next_try <= Instant::now() + expected,
                "{pause:?} of {expected:?}"
            );
        }
    }

    #[test]
    fn a_batch_of_long_records_makes_many_chunks_and_arrives_with_the_last() {
        let mut sink = unreachable();
        let bytes = vec![b'x'; 60 * 400_000];
        let mark = |number: u32| Mark { end: number * 400_000, level: 20, class: 2, member: 0, seconds: 0 };
        let marks: Vec<Mark> = (1..=60).map(mark).collect();
        taken(&mut sink);
        sink.take(Lines { bytes: &bytes, marks: &marks, before: 0 });
        sink.close_chunk();

        assert!(!sink.has_room());
        assert_eq!(61, sink.first - 1);
        let batches: Vec<usize> = sink.window.iter().map(|chunk| chunk.batches).collect();
        assert_eq!([&[1; 1][..], &[0; 28], &[1; 1]].concat(), batches);
        assert!(sink.window.iter().all(|chunk| chunk.bytes.len() < 1024 * 1024));
    }

    #[test]
    fn a_full_window_gathers_one_more_chunk() {
        let mut sink = unreachable();
        let record = vec![b'x'; 64 * 1024];
        let marks = [Mark { end: record.len() as u32, level: 20, class: 2, member: 0, seconds: 0 }];
        let lines = Lines { bytes: &record, marks: &marks, before: 0 };
        for _ in 0..=WINDOW {
            while sink.has_room() {
                sink.take(lines);
            }
            assert_eq!(4, sink.gathered_records);
            sink.close_if_due(Pace::Gather(Duration::MAX));
        }

        assert_eq!((4, WINDOW), (sink.gathered_records, sink.window.len()));
    }

    #[test]
    fn records_are_gathered_until_the_interval_ends_or_a_flush_waits() {
        let mut sink = unreachable();
        assert_eq!(NextCarry::Idle, sink.carry(Pace::Hurry).next);
        taken(&mut sink);
        assert_eq!(NextCarry::AtTime(sink.due), sink.carry(Pace::Gather(Duration::MAX)).next);
        taken(&mut sink);
        sink.close_if_due(Pace::Hurry);

        assert_eq!(2, sink.window[0].batches);
        assert!(sink.window[0].id.ends_with("/1-2"));
        taken(&mut sink);
        sink.due = Instant::now();
        sink.close_if_due(Pace::Gather(Duration::MAX));
        assert!(sink.window[1].id.ends_with("/3-3"));
    }

    #[test]
    fn chunks_have_the_size_the_time_and_the_tag_of_the_options() {
        let address = "tcp://127.0.0.1:1".parse().unwrap();
        let options = ServiceOptions {
            chunk_bytes: 1024,
            gather_seconds: Duration::from_secs(60),
            tag: ForwardTag("app.web".to_owned()),
            ..ServiceOptions::at(address)
        };
        let mut sink = ServiceSink::new(options).unwrap();
        let bytes = vec![b'x'; 20 * 400];
        let marks: Vec<Mark> =
            (1..=20).map(|number| Mark { end: number * 400, level: 20, class: 2, member: 0, seconds: 0 }).collect();
        taken(&mut sink);
        assert!(sink.due > Instant::now() + Duration::from_secs(30) && sink.has_room());
        sink.close_if_due(Pace::Gather(Duration::MAX));
        assert!(sink.window.is_empty());
        sink.take(Lines { bytes: &bytes, marks: &marks, before: 0 });

        assert_eq!(vec!["/1-11", "/12-21"], {
            sink.close_if_due(Pace::Gather(Duration::MAX));
            sink.window.iter().map(|chunk| &chunk.id[chunk.id.rfind('/').unwrap()..]).collect::<Vec<_>>()
        });
        assert!(sink.window.iter().all(|chunk| chunk.bytes.starts_with(b"\x93\xa7app.web\xc6")));
    }

    #[test]
    fn a_recovery_address_has_all_needed_options_and_no_key() {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let plain = ServiceOptions::at("tls://logs:1?authorities=/etc/ca.pem".parse().unwrap());
        assert_eq!(Some("tls://logs:1?authorities=/etc/ca.pem".to_owned()), plain.recovery_address());
        let gathers = ServiceOptions { chunk_bytes: 1024, gather_seconds: Duration::ZERO, ..plain.clone() };
        assert_eq!(plain.recovery_address(), gathers.recovery_address());

        let keyed = ServiceOptions { shared_key: Some(Secret::from_value(&text("a&hunter2")).unwrap()), ..plain };
        let lasting = keyed.recovery_address().unwrap();
        assert_eq!(Some(&keyed), ServiceOptions::from_recovery_address(&lasting).as_ref());
        assert!(lasting.contains("hunter2") && !format!("{keyed:?}").contains("hunter2"));
        let shown = crate::sinks::shown_place(std::path::Path::new(&lasting));
        assert!(!shown.to_str().unwrap().contains("hunter2"), "{shown:?}");
        assert_eq!(Place::Address("tls://logs:1".to_owned()), keyed.place());
    }

    #[test]
    fn an_invalid_tag_is_refused() {
        for wrong in ["", "a b", "a\n", &"x".repeat(256)] {
            assert!(ForwardTag::from_value(&OptionValue::Text(wrong.to_owned())).unwrap_err().contains("fix:"));
        }
    }
}
