//! Syslog lines over TCP, as fast as the receiver takes them.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use chrono::Utc;
use serde_json::{Value, json};

use super::records::message;
use super::{Load, wait_for_start};

/// Bytes per write call.
const WRITE_BYTES: usize = 64 * 1024;

/// How lines are sent.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    load: Load,
}

/// Sends the lines. Returns the time until all bytes were handed to the kernel.
pub fn run(options: &Options) -> io::Result<Value> {
    // All lines have the same length, so that the size of a file gives the number of lines in it.
    let time = Utc::now().format("%Y-%m-%dT%H:%M:%S%.6fZ");
    let share = |(from, count)| {
        (from..from + count)
            .map(|number| format!("<14>1 {time} web-1.example.org shop 4711 - - {}\n", message(number)))
            .collect::<String>()
    };
    let shares: Vec<String> = options.load.shares().map(share).collect();
    let bytes: usize = shares.iter().map(String::len).sum();
    let began = wait_for_start()?;
    thread::scope(|scope| {
        let send = |share: &str| -> io::Result<()> {
            let mut stream = TcpStream::connect(options.load.address)?;
            for part in share.as_bytes().chunks(WRITE_BYTES) {
                stream.write_all(part)?;
            }
            stream.shutdown(Shutdown::Write)
        };
        let threads: Vec<_> = shares.iter().map(|share| scope.spawn(move || send(share))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("a sender does not panic"));
        ended.collect::<io::Result<Vec<()>>>()
    })?;
    let sent = began.elapsed().as_secs_f64();
    Ok(json!({ "records": options.load.records, "bytes": bytes, "sent": sent }))
}
