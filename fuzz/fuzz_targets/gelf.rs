#![no_main]
//! GELF: payloads, and datagrams that are reassembled and decompressed.
//!
//! The input is split into datagrams, each with a two-byte length before it, and is also decoded once as a whole.

mod check;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::gelf;
use logspool_server::decoders::gelf_chunks::{ChunkLimits, GelfChunks};

const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

fuzz_target!(|bytes: &[u8]| {
    let limits = ChunkLimits { messages: 4, bytes: 10_000, inflated: 1 << 20, ..ChunkLimits::default() };
    let mut chunks = GelfChunks::new(limits);
    let mut now = *BEGAN;
    let mut take = |datagram: &[u8]| {
        now += Duration::from_millis(100);
        if let Ok(Some(message)) = chunks.take(datagram, FROM, now)
            && let Ok(record) = gelf::read(&message)
        {
            check::record(&record);
        }
    };
    take(bytes);
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk() {
        let (datagram, after) = after.split_at(after.len().min(u16::from_be_bytes(*length).into()));
        take(datagram);
        rest = after;
    }
});
