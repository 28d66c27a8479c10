//! Sends records as fast as a service takes them: the sender of the comparison, made before the clock begins.
//!
//! ```text
//! blast forward ADDRESS --records N --connections C --promise once|acks|nothing
//! blast forward ADDRESS --rate R              until standard input ends
//! blast lines ADDRESS --records N --connections C
//! blast discard                               takes what comes, and throws it away
//! ```
//!
//! A sender makes what it sends, prints `ready`, and waits for a line on standard input. Then it sends, and prints one
//! JSON object with the seconds since that line.

mod discard;
mod forward;
mod lines;
mod records;

use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::time::Instant;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Send records as fast as a service takes them")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Chunks of Fluent Forward, with the fields of logspool's own client.
    Forward(forward::Options),
    /// Lines of syslog (RFC 5424), each ended by a line feed.
    Lines(lines::Options),
    /// Takes connections until standard input ends, and throws away what they bring.
    Discard,
}

fn main() -> io::Result<()> {
    let figures = match Arguments::parse().what {
        What::Forward(options) => forward::run(&options)?,
        What::Lines(options) => lines::run(&options)?,
        What::Discard => discard::run()?,
    };
    println!("{figures}");
    Ok(())
}

/// Says that all is made, and waits for the word to begin.
fn wait_for_start() -> io::Result<Instant> {
    println!("ready");
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(Instant::now())
}

/// Where to send, and how much.
#[derive(Debug, Clone, clap::Args)]
struct Load {
    /// Where the service listens, as 127.0.0.1:PORT.
    address: SocketAddr,
    /// Records of all connections together.
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// Connections, each on a thread of its own.
    #[arg(long, default_value_t = 1)]
    connections: u64,
}

impl Load {
    /// Which connections send which records: the first number and how many.
    fn shares(&self) -> impl Iterator<Item = (u64, u64)> {
        let (records, connections) = (self.records, self.connections.max(1));
        (0..connections).map(move |at| {
            let from = records * at / connections;
            (from, records * (at + 1) / connections - from)
        })
    }
}
