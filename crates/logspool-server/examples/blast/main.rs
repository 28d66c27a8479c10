//! Sends records as fast as a service takes them: the sender of comparisons. All data is prepared before the clock
//! starts.
//!
//! ```text
//! blast forward ADDRESS --records N --connections C --promise once|acks|nothing
//! blast forward ADDRESS --rate R              until standard input ends
//! blast lines ADDRESS --records N --connections C
//! blast discard                               reads data, and discards it
//! ```
//!
//! A sender prepares its data, prints `ready`, and waits for a line on standard input. Then it sends, and prints one
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
    /// Fluent Forward chunks, with the fields of logspool's own client.
    Forward(forward::Options),
    /// Syslog lines (RFC 5424), each ended by a line feed.
    Lines(lines::Options),
    /// Accepts connections until standard input ends, and discards their data.
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

/// Reports that all data is prepared, and waits for the start.
fn wait_for_start() -> io::Result<Instant> {
    println!("ready");
    io::stdin().lock().read_line(&mut String::new())?;
    Ok(Instant::now())
}

/// Destination and amount of the data.
#[derive(Debug, Clone, clap::Args)]
struct Load {
    /// Address of the service, as 127.0.0.1:PORT.
    address: SocketAddr,
    /// Total number of records of all connections.
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// Number of connections, each on its own thread.
    #[arg(long, default_value_t = 1)]
    connections: u64,
}

impl Load {
    /// The records of each connection: first number and count.
    fn shares(&self) -> impl Iterator<Item = (u64, u64)> {
        let (records, connections) = (self.records, self.connections.max(1));
        (0..connections).map(move |at| {
            let from = records * at / connections;
            (from, records * (at + 1) / connections - from)
        })
    }
}
