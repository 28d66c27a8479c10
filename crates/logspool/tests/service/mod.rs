//! A receiver of Fluent Forward that fails as networks and services do, and stores the entries that it received.
//!
//! It judges chunks by the rule of logspool's service. A stored chunk is recognised, even as the beginning of a longer
//! one. A chunk that does not follow the last one is a mistake of the sender, because no sender here has lost records.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use logspool_record::msgpack::{Item, ReadError, Reader, push_map, push_text};

/// Treatment of a chunk that arrived completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is stored and acked.
    Ack,
    /// It is dropped, and acked with the reason `too old`.
    Drop,
    /// It is stored, and acked when [`Service::release`] is called.
    Hold,
    /// It is stored, and the connection is cut before the ack.
    KeepAndCut,
    /// It is not read: the connection is cut after this number of bytes.
    CutAt(usize),
}

/// One chunk as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the connection.
    pub connection: usize,
    /// Id of the chunk.
    pub id: String,
    /// Bytes of the whole message.
    pub bytes: usize,
    /// Whether the entries were gzipped.
    pub gzipped: bool,
}

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    stopped: bool,
    connections: Vec<Box<dyn Wire>>,
    arrivals: Vec<Arrival>,
    bytes_of: HashMap<String, Vec<u8>>,
    watermarks: HashMap<String, u64>,
    entries: Vec<Vec<u8>>,
    held: Vec<(usize, String)>,
    ended: Vec<String>,
    mistakes: Vec<String>,
}

/// See the module documentation.
pub struct Service {
    /// The address it listens at.
    pub address: String,
    state: Arc<(Mutex<State>, Condvar)>,
    listening: Option<std::thread::JoinHandle<()>>,
}

trait Wire: Read + Write + Send {
    fn twin(&self) -> Box<dyn Wire>;
    fn cut(&self);
}

impl Wire for TcpStream {
    fn twin(&self) -> Box<dyn Wire> {
        Box::new(self.try_clone().unwrap())
    }
    fn cut(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Wire for UnixStream {
    fn twin(&self) -> Box<dyn Wire> {
        Box::new(self.try_clone().unwrap())
    }
    fn cut(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Service {
    /// Starts a service at `address`; `tcp://127.0.0.1:0` takes any free port.
    pub fn start(address: &str) -> Self {
        let mut service = Self { address: address.to_owned(), state: Arc::default(), listening: None };
        service.lock().answer = Some(Answer::Ack);
        service.listen();
        service
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }

    /// Listens, also after [`stop`](Self::stop): it still has the stored entries.
    pub fn listen(&mut self) {
        self.lock().stopped = false;
        let listener = match self.address.strip_prefix("unix://") {
            Some(path) => {
                let _ = std::fs::remove_file(path);
                Listener::Unix(UnixListener::bind(path).unwrap())
            }
            None => {
                let listener = TcpListener::bind(self.address.strip_prefix("tcp://").unwrap()).unwrap();
                self.address = format!("tcp://{}", listener.local_addr().unwrap());
                Listener::Tcp(listener)
            }
        };
        let state = self.state.clone();
        self.listening = Some(std::thread::spawn(move || {
            loop {
                let wire: Box<dyn Wire> = match &listener {
                    Listener::Tcp(listener) => Box::new(listener.accept().unwrap().0),
                    Listener::Unix(listener) => Box::new(listener.accept().unwrap().0),
                };
                let mut known = state.0.lock().unwrap();
                if known.stopped {
                    return;
                }
                let number = known.connections.len();
                known.connections.push(wire.twin());
                drop(known);
                let state = state.clone();
                std::thread::spawn(move || serve(&state, number, wire));
            }
        }));
    }

    /// Ends all connections and stops listening.
    pub fn stop(&mut self) {
        self.lock().stopped = true;
        // Wakes the listener, which then stops.
        match self.address.strip_prefix("unix://") {
            Some(path) => drop(UnixStream::connect(path)),
            None => drop(TcpStream::connect(self.address.strip_prefix("tcp://").unwrap())),
        }
        self.listening.take().unwrap().join().unwrap();
        self.cut();
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        self.lock().connections.iter().for_each(|wire| wire.cut());
    }

    /// Sets the treatment of chunks from now on.
    pub fn set(&self, answer: Answer) {
        self.lock().answer = Some(answer);
    }

    /// Acks the held chunks, newest first, and acks every further chunk.
    pub fn release(&self) {
        let mut state = self.lock();
        state.answer = Some(Answer::Ack);
        while let Some((connection, id)) = state.held.pop() {
            let _ = state.connections[connection].write_all(&ack(&id));
        }
    }

    /// Waits until `is_so` is true for the arrivals.
    pub fn wait(&self, what: &str, is_so: impl Fn(&[Arrival]) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut state = self.lock();
        while !is_so(&state.arrivals) {
            assert!(Instant::now() < deadline, "{what} did not come true: {:?}", state.arrivals);
            state = self.state.1.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
        }
    }

    /// Waits until a stream has ended; returns its name.
    pub fn wait_for_end(&self) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut state = self.lock();
        loop {
            if let Some(stream) = state.ended.first() {
                return stream.clone();
            }
            assert!(Instant::now() < deadline, "no stream ended");
            state = self.state.1.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
        }
    }

    /// Number of streams that arrived.
    pub fn streams(&self) -> usize {
        self.lock().watermarks.len()
    }

    /// Every chunk in the order of arrival.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.lock().arrivals.clone()
    }

    /// The stored entries, joined.
    pub fn entries(&self) -> Vec<u8> {
        self.lock().entries.concat()
    }

    /// The messages of the stored records. Fails if a sender made a mistake.
    pub fn messages(&self) -> Vec<String> {
        let state = self.lock();
        assert_eq!(Vec::<String>::new(), state.mistakes);
        let mut messages = Vec::new();
        for entries in &state.entries {
            let mut reader = Reader::new(entries);
            while !reader.rest().is_empty() {
                messages.push(message(&mut reader));
            }
        }
        messages
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.listening.is_some() {
            self.stop();
        }
    }
}

fn ack(id: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_map(&mut bytes, 1);
    push_text(&mut bytes, b"ack");
    push_text(&mut bytes, id.as_bytes());
    bytes
}

/// The message of an entry.
pub fn message(reader: &mut Reader<'_>) -> String {
    assert_eq!(Ok(Item::Array(2)), reader.item());
    assert!(matches!(reader.item(), Ok(Item::Extension(0, [_, _, _, _, _, _, _, _]))));
    let Ok(Item::Map(parts)) = reader.item() else { panic!("a record is a map") };
    let mut message = None;
    for _ in 0..parts {
        let name = reader.item().unwrap();
        if let (Item::Text(b"message"), Ok(Item::Text(text))) = (name, { *reader }.item()) {
            message = Some(String::from_utf8(text.to_vec()).unwrap());
        }
        reader.skip().unwrap();
    }
    message.expect("a record has a message")
}

fn serve(state: &(Mutex<State>, Condvar), connection: usize, mut wire: Box<dyn Wire>) {
    let mut buffer = Vec::new();
    let mut part = vec![0; 256 * 1024];
    let mut chunks = 0;
    loop {
        let count = match wire.read(&mut part) {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        buffer.extend_from_slice(&part[..count]);
        loop {
            let mut known = state.0.lock().unwrap();
            let answer = known.answer.unwrap();
            if let Answer::CutAt(bytes) = answer
                && buffer.len() >= bytes
            {
                return wire.cut();
            }
            let mut reader = Reader::new(&buffer);
            match reader.skip() {
                Err(ReadError::Incomplete) => break,
                Err(ReadError::Invalid) => return known.mistakes.push("no MessagePack".to_owned()),
                Ok(()) => {}
            }
            let len = buffer.len() - reader.rest().len();
            let message: Vec<u8> = buffer.drain(..len).collect();
            let stored = known.entries.len();
            let id = known.keep(connection, chunks, &message);
            chunks += 1;
            state.1.notify_all();
            match answer {
                Answer::Ack => drop(wire.write_all(&ack(&id))),
                Answer::Drop => {
                    known.entries.truncate(stored);
                    let mut answer = ack(&id);
                    answer[0] = 0x82;
                    push_text(&mut answer, b"dropped");
                    push_text(&mut answer, b"too old");
                    drop(wire.write_all(&answer));
                }
                Answer::Hold => known.held.push((connection, id)),
                Answer::KeepAndCut | Answer::CutAt(_) => return wire.cut(),
            }
        }
    }
}

impl State {
    /// Stores the new entries of a chunk. Returns its id.
    fn keep(&mut self, connection: usize, chunks: usize, message: &[u8]) -> String {
        let mut reader = Reader::new(message);
        assert_eq!(Ok(Item::Array(3)), reader.item());
        assert_eq!(Ok(Item::Text(b"logspool")), reader.item());
        let Ok(Item::Bytes(packed)) = reader.item() else { panic!("entries are bytes") };
        let Ok(Item::Map(options)) = reader.item() else { panic!("options are a map") };
        let (mut id, mut size, mut gzipped, mut end) = (String::new(), -1, false, false);
        for _ in 0..options {
            match (reader.item().unwrap(), reader.item().unwrap()) {
                (Item::Text(b"chunk"), Item::Text(text)) => id = String::from_utf8(text.to_vec()).unwrap(),
                (Item::Text(b"size"), Item::Int(number)) => size = number,
                (Item::Text(b"compressed"), Item::Text(b"gzip")) => gzipped = true,
                (Item::Text(b"end"), Item::Bool(true)) => end = true,
                other => panic!("an unknown option: {other:?}"),
            }
        }
        self.arrivals.push(Arrival { connection, id: id.clone(), bytes: message.len(), gzipped });
        let same = self.bytes_of.entry(id.clone()).or_insert_with(|| message.to_vec());
        // A recoverer sends a process's message about refused records without their number.
        let told = b"records dropped: ";
        if same != message && !message.windows(told.len()).any(|part| part == told) {
            self.mistakes.push(format!("{id} came with other bytes"));
        }
        let mut words = id.split(['/', '-']);
        let (stream, epoch) = (words.next().unwrap(), words.next().unwrap());
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (first, last) = (number(), number());
        if i128::from(last + 1 - first) != size || stream.len() != 32 || epoch.parse::<u64>().is_err() {
            self.mistakes.push(format!("{id} of {size} records"));
        }
        let watermark = self.watermarks.entry(stream.to_owned()).or_default();
        if end {
            if *watermark != last || size != 0 {
                self.mistakes.push(format!("{id} ends at {watermark}"));
            }
            self.ended.push(stream.to_owned());
        } else if last > *watermark {
            let known = (*watermark + 1).saturating_sub(first);
            if first > *watermark + 1 {
                self.mistakes.push(format!("{id} is number {chunks} of its connection and follows {watermark}"));
            }
            *watermark = last;
            let mut entries = packed.to_vec();
            if gzipped {
                entries.clear();
                flate2::read::GzDecoder::new(packed).read_to_end(&mut entries).unwrap();
            }
            let mut reader = Reader::new(&entries);
            (0..known).for_each(|_| reader.skip().unwrap());
            let known_bytes = entries.len() - reader.rest().len();
            self.entries.push(entries.split_off(known_bytes));
        }
        id
    }
}
