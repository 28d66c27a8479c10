//! Each protocol of the table stores the record of its sample, however its bytes are split.
//!
//! The sample of a protocol is `tests/samples/NAME.bin`: one record with the message `a sample of NAME`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use logspool_server::address::{Endpoint, ListenAddress};
use logspool_server::config::Config;
use logspool_server::connection::protocol::Protocol;
use logspool_server::known_protocols::{self, InputState};
use logspool_server::opening::open_for_queries;
use logspool_server::query::{Query, parse};
use logspool_server::service::Service;
use logspool_server::sources::inherited::InheritedSockets;
use logspool_server::stores::{AnswerRow, RowFlow};

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/samples/{name}.bin"));
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("the protocol {name} needs a sample: {}: {error}", path.display()))
}

/// Sends pieces. Then waits for an answer if the protocol has one, and until the service closes the connection.
fn send(at: SocketAddr, protocol: &Protocol, pieces: impl Iterator<Item = Vec<u8>>) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for piece in pieces {
        stream.write_all(&piece).unwrap();
    }
    if protocol.frame_format().is_none() {
        assert_ne!(0, stream.read(&mut [0; 64]).unwrap(), "no answer");
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_sample_is_detected_and_stored_whole_in_pieces_and_as_a_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().display());
    let text = format!("listen = [\"tcp://127.0.0.1:0\", \"udp://127.0.0.1:0\"]\nhttp = \"off\"\nstore = [{store:?}]");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let service = runtime.block_on(Service::start(Config::parse(&text).unwrap(), InheritedSockets::default())).unwrap();
    let at = |wanted: fn(&ListenAddress) -> Option<SocketAddr>| service.addresses.iter().find_map(wanted).unwrap();
    let tcp = at(|listen| if let Endpoint::Tcp(at) = listen.endpoint { Some(at) } else { None });
    let udp = at(|listen| if let Endpoint::Udp(at) = listen.endpoint { Some(at) } else { None });
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();

    for protocol in known_protocols::ALL {
        let bytes = sample(protocol.name);
        let found = known_protocols::detect(&bytes, InputState::Open).unwrap().map(|found| found.protocol);
        assert_eq!(Some(*protocol), found);
        send(tcp, protocol, std::iter::once(bytes.clone()));
        send(tcp, protocol, bytes.iter().map(|byte| vec![*byte]));
        if protocol.datagrams.is_some() {
            assert_eq!(Some(*protocol), known_protocols::detect_datagram(&bytes));
            socket.send_to(&bytes, udp).unwrap();
        }
    }
    runtime.block_on(service.stop()).unwrap();

    let answers = open_for_queries(&store.parse().unwrap()).unwrap();
    let mut messages = Vec::new();
    let query =
        Query { filter: parse("", 0).unwrap().filter, stage: None, since_ns: None, until_ns: None, limit: None };
    let each = &mut |found: AnswerRow<'_>| {
        if let AnswerRow::Record(record) = found {
            messages.push(record.message.into_owned());
        }
        RowFlow::Continue
    };
    answers.run(&query, each).unwrap();
    for protocol in known_protocols::ALL {
        let message = format!("a sample of {}", protocol.name);
        let stored = messages.iter().filter(|found| **found == message).count();
        assert_eq!(2 + usize::from(protocol.datagrams.is_some()), stored, "{message} in {messages:?}");
    }
}

#[test]
fn frames_end_at_the_same_bytes_in_pieces_of_any_size_and_buffers_stay_within_the_limit() {
    const LIMIT: usize = 4096;
    for (protocol, frames) in
        known_protocols::ALL.iter().filter_map(|protocol| Some((protocol, protocol.frame_format()?)))
    {
        let stream = sample(protocol.name).repeat(3);
        let ends = |piece: usize| {
            let (mut framer, mut taken, mut found) = ((frames.framer)(LIMIT), 0, Vec::new());
            for end in (piece..stream.len()).step_by(piece).chain([stream.len()]) {
                use logspool_server::connection::framing::FrameScan;
                while let FrameScan::Frame { from, to, next } = framer.scan(&stream[taken..end]).unwrap() {
                    found.push((taken + from, taken + to));
                    taken += next;
                }
            }
            found
        };
        let whole = ends(stream.len());
        assert!(!whole.is_empty(), "{}", protocol.name);
        for piece in 1..stream.len() {
            assert_eq!(whole, ends(piece), "{} in pieces of {piece}", protocol.name);
        }
        let endless = [&sample(protocol.name)[..1], &[b'9'; LIMIT + 16]].concat();
        assert!((frames.framer)(LIMIT).scan(&endless).is_err(), "{} has no limit", protocol.name);
    }
}
