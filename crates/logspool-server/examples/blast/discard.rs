//! A receiver that discards all data. The rate of a sender to it is the maximum that the sender can reach.

use std::io::{self, Read};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};

/// Size of a read in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Prints its port, reads until standard input ends, and returns the amount of data.
pub fn run() -> io::Result<Value> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let bytes = Arc::new(AtomicU64::new(0));
    let count = bytes.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = count.clone();
            thread::spawn(move || {
                let (mut stream, mut buffer) = (stream, vec![0; READ_BYTES]);
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    count.fetch_add(read as u64, Ordering::Relaxed);
                }
            });
        }
    });
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(json!({ "bytes": bytes.load(Ordering::Relaxed) }))
}
