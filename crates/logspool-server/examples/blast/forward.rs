//! Forward chunks over TCP: with ids and acks like logspool's client, or without both.
//!
//! Without ids only the last chunk of a connection asks for an ack. Chunks of a connection are stored in order. So the
//! clock stops at the same point either way: when all records are committed.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use rmp::encode;
use serde_json::{Value, json};

use super::records::{push_entry, put_number, put_text};
use super::{Load, wait_for_start};

/// Size of the entries at which a chunk is closed, in bytes; the same as in the client.
const CHUNK_BYTES: usize = 256 * 1024;

/// Time limit for an answer. Chosen: far longer than a pause of the store.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// The id of a last chunk, whose ack only shows that all chunks before it are committed.
const LAST: &str = "the last one";

/// How chunks are sent.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    load: Load,
    /// The delivery guarantee to request from the service.
    #[arg(long, value_enum, default_value_t = Promise::Once)]
    promise: Promise,
    /// Maximum number of chunks in flight, if they are acked; logspool's client has 24.
    #[arg(long, default_value_t = 24)]
    window: usize,
    /// Records per second, on one connection, until standard input ends. Default: as many as the service takes.
    #[arg(long)]
    rate: Option<f64>,
}

/// The delivery guarantee to request from the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Promise {
    /// Each chunk has a position in a stream and is acked: exactly once.
    Once,
    /// Each chunk is acked, but its id has no position: at least once.
    Acks,
    /// No ids and no acks, except for the last chunk: at most once.
    Nothing,
}

/// Sends the records, and returns the time it took.
pub fn run(options: &Options) -> io::Result<Value> {
    if let Some(rate) = options.rate {
        return paced(options, rate);
    }
    let chunks: Vec<Vec<Chunk>> = options
        .load
        .shares()
        .map(|(from, count)| {
            let mut stream = Stream::new(options.promise, from, count);
            std::iter::from_fn(|| stream.next()).collect()
        })
        .collect();
    let all = || chunks.iter().flatten();
    let (count, bytes): (usize, usize) = (all().count(), all().map(|chunk| chunk.bytes.len()).sum());
    let began = wait_for_start()?;
    let sent = thread::scope(|scope| {
        let threads: Vec<_> =
            chunks.into_iter().map(|chunks| scope.spawn(move || send_all(options, chunks, began))).collect();
        let sent = threads.into_iter().map(|thread| thread.join().expect("a sender does not panic"));
        sent.collect::<io::Result<Vec<_>>>()
    })?;
    let done = began.elapsed().as_secs_f64();
    let sent = sent.into_iter().fold(0.0, f64::max);
    Ok(json!({ "records": options.load.records, "chunks": count, "bytes": bytes, "sent": sent, "done": done }))
}

/// Sends all chunks and waits for their acks. Returns the time at which the last byte was sent, in seconds since
/// `began`.
fn send_all(options: &Options, chunks: Vec<Chunk>, began: Instant) -> io::Result<f64> {
    let mut connection = Connection::open(options)?;
    for chunk in chunks {
        connection.send(chunk)?;
    }
    let sent = began.elapsed().as_secs_f64();
    connection.finish().map(|()| sent)
}

/// Sends at a constant rate. Chunks are created when they are due.
fn paced(options: &Options, rate: f64) -> io::Result<Value> {
    let began = wait_for_start()?;
    let ends = Arc::new(AtomicBool::new(false));
    let told = ends.clone();
    thread::spawn(move || {
        // Only the end of the input matters.
        drop(io::stdin().lock().read_to_end(&mut Vec::new()));
        told.store(true, Ordering::Relaxed);
    });
    let mut connection = Connection::open(options)?;
    let mut stream = Stream::new(options.promise, 0, u64::MAX >> 1);
    let mut latest = Duration::ZERO;
    while !ends.load(Ordering::Relaxed) {
        let Some(chunk) = stream.next() else { break };
        let due = began + Duration::from_secs_f64(stream.made as f64 / rate);
        let now = Instant::now();
        thread::sleep(due.saturating_duration_since(now));
        latest = latest.max(now.saturating_duration_since(due));
        connection.send(chunk)?;
    }
    let sent = began.elapsed().as_secs_f64();
    connection.finish()?;
    let done = began.elapsed().as_secs_f64();
    Ok(json!({ "records": stream.made, "sent": sent, "done": done, "latest": latest.as_secs_f64() }))
}

/// The chunks of one connection, in order.
struct Stream {
    promise: Promise,
    name: String,
    /// Number of its first record.
    from: u64,
    count: u64,
    chunk_records: u64,
    /// Number of records in the chunks created until now.
    made: u64,
}

impl Stream {
    fn new(promise: Promise, from: u64, count: u64) -> Self {
        let mut entry = Vec::new();
        push_entry(&mut entry, from);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:032x}", since.as_nanos() ^ (u128::from(from) << 64) ^ u128::from(std::process::id()));
        Self { promise, name, from, count, chunk_records: CHUNK_BYTES.div_ceil(entry.len()) as u64, made: 0 }
    }

    fn next(&mut self) -> Option<Chunk> {
        let records = self.chunk_records.min(self.count - self.made);
        if records == 0 {
            return None;
        }
        let mut entries = Vec::with_capacity(CHUNK_BYTES + 1024);
        (self.made..self.made + records).for_each(|number| push_entry(&mut entries, self.from + number));
        let first = self.made + 1;
        self.made += records;
        let id = match self.promise {
            Promise::Once => Some(format!("{}/1/{first}-{}", self.name, self.made)),
            Promise::Acks => Some(format!("{}:{first}", self.name)),
            Promise::Nothing => (self.made == self.count).then(|| LAST.to_owned()),
        };
        Some(Chunk::new(&entries, records, id.as_deref()))
    }
}

/// A message, and the ack that it requests.
struct Chunk {
    bytes: Vec<u8>,
    ack: Option<Vec<u8>>,
}

impl Chunk {
    fn new(entries: &[u8], records: u64, id: Option<&str>) -> Self {
        let mut bytes = Vec::with_capacity(entries.len() + 128);
        encode::write_array_len(&mut bytes, 3).expect("a Vec takes every byte");
        // No tag: without ids of our client it would be kept as a field, and the rows would differ.
        encode::write_str(&mut bytes, "").expect("a Vec takes every byte");
        encode::write_bin(&mut bytes, entries).expect("a Vec takes every byte");
        encode::write_map_len(&mut bytes, 1 + u32::from(id.is_some())).expect("a Vec takes every byte");
        if let Some(id) = id {
            put_text(&mut bytes, "chunk", id);
        }
        put_number(&mut bytes, "size", records);
        let ack = id.map(|id| {
            let mut ack = vec![0x81];
            put_text(&mut ack, "ack", id);
            ack
        });
        Self { bytes, ack }
    }
}

/// A connection with its outstanding acks.
struct Connection {
    stream: TcpStream,
    window: usize,
    /// Acks in the order of their chunks.
    awaited: VecDeque<Vec<u8>>,
}

impl Connection {
    fn open(options: &Options) -> io::Result<Self> {
        let stream = TcpStream::connect(options.load.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self { stream, window: options.window.max(1), awaited: VecDeque::new() })
    }

    /// Sends a chunk as soon as the window has room.
    fn send(&mut self, chunk: Chunk) -> io::Result<()> {
        while self.awaited.len() >= self.window {
            self.hear()?;
        }
        self.stream.write_all(&chunk.bytes)?;
        self.awaited.extend(chunk.ack);
        Ok(())
    }

    /// Waits for all acks.
    fn finish(mut self) -> io::Result<()> {
        while !self.awaited.is_empty() {
            self.hear()?;
        }
        Ok(())
    }

    /// Reads the next ack, which is for the oldest chunk.
    fn hear(&mut self) -> io::Result<()> {
        let Some(expected) = self.awaited.pop_front() else { return Ok(()) };
        let mut answer = vec![0; expected.len()];
        self.stream.read_exact(&mut answer)?;
        let is_right = answer == expected;
        is_right.then_some(()).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "an answer to another chunk"))
    }
}
