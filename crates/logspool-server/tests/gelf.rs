//! GELF over UDP: messages of graypy (`corpus/make_gelf.py`), and missing or changed datagrams.

use crate::corpus_lines;

use std::net::SocketAddr;
use std::time::Instant;

use corpus_lines::cases;
use logspool_server::decoders::gelf;
use logspool_server::decoders::gelf_chunks::{ChunkLimits, GelfChunks};

const PYTHON: &str = include_str!("corpus/gelf-python.txt");

/// The datagrams of a case.
fn datagrams(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (datagram, rest) = rest.split_at(u16::from_be_bytes(*length).into());
        found.push(datagram);
        bytes = rest;
    }
    found
}

/// The messages in the datagrams, as JSON.
fn read(datagrams: &[&[u8]]) -> Vec<serde_json::Value> {
    let from: SocketAddr = "192.0.2.1:5".parse().unwrap();
    let (mut chunks, now) = (GelfChunks::new(ChunkLimits::default()), Instant::now());
    let messages = datagrams.iter().filter_map(|datagram| chunks.take(datagram, from, now).ok().flatten());
    messages
        .filter_map(|message| gelf::read(&message).ok().and_then(|record| serde_json::to_value(record).ok()))
        .collect()
}

#[test]
fn messages_of_graypy_are_read() {
    let mut in_parts = 0;
    for (name, bytes, expected) in cases(PYTHON) {
        let mut datagrams = datagrams(&bytes);
        in_parts += usize::from(datagrams.len() > 1);
        assert_eq!(vec![expected.clone()], read(&datagrams), "{name}");

        datagrams.reverse();
        assert_eq!(vec![expected], read(&datagrams), "{name}, the last part first");
    }
    assert!(in_parts >= 2);
}

#[test]
fn a_message_with_a_missing_or_truncated_part_is_not_a_message() {
    for (name, bytes, _) in cases(PYTHON) {
        let whole = datagrams(&bytes);
        for place in 0..whole.len() {
            let mut missing = whole.clone();
            missing.remove(place);
            assert!(read(&missing).is_empty(), "{name}, part {place} missing");

            // An uncompressed message has nothing that shows the cut.
            let mut cut = whole.clone();
            cut[place] = &cut[place][..cut[place].len() - 1];
            assert!(name.contains("not compressed") || read(&cut).is_empty(), "{name}, part {place} cut off");
        }
    }
}

#[test]
fn a_message_with_any_byte_changed_is_a_message_or_refused() {
    for (_, bytes, _) in cases(PYTHON).filter(|(_, bytes, _)| bytes.len() < 1000) {
        for datagram in datagrams(&bytes) {
            let mut datagram = datagram.to_vec();
            for at in 0..datagram.len() {
                let before = datagram[at];
                for changed in [0, 0xFF, before ^ 1, before ^ 0x80] {
                    datagram[at] = changed;
                    read(&[&datagram]);
                }
                datagram[at] = before;
            }
        }
    }
}
