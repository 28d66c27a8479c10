//! A service with TLS: it receives every record once, and no other receiver gets any.

#![cfg(feature = "tls")]

use crate::line;
use crate::service;
use crate::tls_front;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, log};
use logspool::pipeline::{self, Options};
use logspool::sinks::{ServiceOptions, SinkOptions};
use logspool::stats::SinkSnapshot;
use logspool_record::address::{ServiceAddress, TlsIdentity};
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::FormatSpec;
use rcgen::date_time_ymd;
use service::{Answer, Service};
use tls_front::{Authority, Front, config};

/// One test at a time: they share the queue of this process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sink for a service, and the route of a logger to it.
fn open(address: ServiceAddress) -> (u32, u32) {
    begin(Options::default());
    let name = address.to_text();
    let kind = ServiceOptions::at(address);
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let format = pipeline::define_format(&FormatSpec::entry(std::process::id())).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    (sink, pipeline::define_route(&RouteDefinition { logger: name, targets }).unwrap())
}

fn address(scheme: &str, place: SocketAddr, identity: TlsIdentity) -> ServiceAddress {
    let address: ServiceAddress = format!("{scheme}://{place}").parse().unwrap();
    address.with_identity(identity).unwrap()
}

fn believing(authorities: &Path) -> TlsIdentity {
    TlsIdentity {
        authorities: Some(authorities.to_str().unwrap().to_owned()),
        server_name: Some("localhost".to_owned()),
        ..TlsIdentity::default()
    }
}

fn snapshot(sink: u32) -> SinkSnapshot {
    let snapshot = pipeline::snapshot().unwrap();
    snapshot.sinks.into_iter().find(|known| known.id == sink as usize).unwrap()
}

fn numbers(service: &Service) -> Vec<usize> {
    service.messages().iter().map(|message| message.parse().unwrap()).collect()
}

fn log_many(route: u32, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(log(route, 20, &format!("{number:0>500}")), "record {number} was refused");
    }
}

/// Waits until the last error of the sink contains `expected`.
fn wait_for_error(sink: u32, expected: &str) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let error = snapshot(sink).error;
        if error.contains(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{expected:?} was expected, not {error:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn records_arrive_in_order_and_once_with_several_chunks_in_flight_and_lost_connections() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (authority, path) = (Authority::new("ours"), folder.path().join("ca.pem"));
    authority.write(&path);
    let service = Service::start("tcp://127.0.0.1:0");
    let front = Front::start(config(&authority.issue("localhost", |_| ()), None), &service.address);
    let (sink, route) = open(address("tls", front.place, believing(&path)));
    service.set(Answer::Hold);
    log_many(route, 0..8000);
    service.wait("a full window", |arrivals| arrivals.len() == 8);
    service.release();
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    for (round, answer) in
        [Answer::KeepAndCut, Answer::CutAt(100_000), Answer::Hold, Answer::CutAt(10)].into_iter().enumerate()
    {
        service.set(answer);
        let before = service.arrivals().len();
        log_many(route, 8000 + round * 1000..9000 + round * 1000);
        match answer {
            Answer::CutAt(_) => assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(300)))),
            _ => service.wait("something of it", |arrivals| arrivals.len() > before),
        }
        service.cut();
    }
    service.set(Answer::Ack);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..12_000).collect::<Vec<_>>(), numbers(&service));
    // A connection that ends while it is idle is opened again.
    service.cut();
    log_many(route, 12_000..12_001);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!(Some(12_000), numbers(&service).pop());
    assert!(pipeline::close_sink(sink, DEADLINE));
    assert!(service.arrivals()[0].id.starts_with(&service.wait_for_end()));
}

#[test]
fn an_impostor_gets_nothing_and_the_right_service_gets_everything() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (ours, other, path) = (Authority::new("ours"), Authority::new("other"), folder.path().join("ca.pem"));
    ours.write(&path);
    let good = config(&ours.issue("localhost", |_| ()), None);
    let file = format!("was not issued by {}", path.display());
    for (expected, wrong) in [
        (&*file, config(&other.issue("localhost", |_| ()), None)),
        ("has expired", config(&ours.issue("localhost", |params| params.not_after = date_time_ymd(2020, 1, 1)), None)),
        (
            "is not valid yet",
            config(&ours.issue("localhost", |params| params.not_before = date_time_ymd(4000, 1, 1)), None),
        ),
        (
            "is for logs.example, not for localhost (fix: server_name=",
            config(&ours.issue("logs.example", |_| ()), None),
        ),
        ("is that of an authority", config(&ours.itself(), None)),
        ("wants a certificate of this program", config(&ours.issue("localhost", |_| ()), Some(&ours))),
    ] {
        let service = Service::start("tcp://127.0.0.1:0");
        let front = Front::start(wrong, &service.address);
        let (sink, route) = open(address("tls", front.place, believing(&path)));
        log_many(route, 0..10);
        wait_for_error(sink, expected);

        assert_eq!((10, 0), (snapshot(sink).counts.queued[2], snapshot(sink).counts.written[2]), "{expected}");
        assert!(service.arrivals().is_empty(), "{expected}");
        front.show(Some(good.clone()));
        assert!(pipeline::flush(Some(sink), Some(DEADLINE)), "{expected}");
        assert_eq!((0..10).collect::<Vec<_>>(), numbers(&service), "{expected}");
        assert_eq!("", snapshot(sink).error, "{expected}");
        assert!(pipeline::close_sink(sink, DEADLINE));
    }
}

#[test]
fn only_clients_with_a_known_certificate_can_send_and_others_get_an_error() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let file = |name: &str| folder.path().join(name);
    let text = |name: &str| Some(file(name).to_str().unwrap().to_owned());
    ours.write(&file("ca.pem"));
    let put = |authority: &Authority| {
        let issued = authority.issue("client", |_| ());
        std::fs::write(file("client.pem"), issued.certificate).unwrap();
        std::fs::write(file("client.key"), issued.key).unwrap();
    };
    let service = Service::start("tcp://127.0.0.1:0");
    let front = Front::start(config(&ours.issue("localhost", |_| ()), Some(&ours)), &service.address);
    let identity =
        TlsIdentity { certificate: text("client.pem"), key: text("client.key"), ..believing(&file("ca.pem")) };
    let (sink, route) = open(address("tls", front.place, identity));
    log_many(route, 0..10);
    wait_for_error(sink, "client.pem: No such file");
    put(&other);
    wait_for_error(sink, "refuses the certificate of this program: UnknownCA");
    std::fs::write(file("client.key"), "no key").unwrap();
    wait_for_error(sink, "there is no private key in it");
    assert!(service.arrivals().is_empty());
    put(&ours);

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..10).collect::<Vec<_>>(), numbers(&service));
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn errors_between_tls_and_plain_peers_name_a_fix() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (ours, path) = (Authority::new("ours"), folder.path().join("ca.pem"));
    ours.write(&path);
    let service = Service::start("tcp://127.0.0.1:0");
    let front = Front::start(config(&ours.issue("localhost", |_| ()), None), &service.address);
    let (plain_sink, plain_route) = open(address("tcp", front.place, TlsIdentity::default()));
    log_many(plain_route, 0..1);
    wait_for_error(plain_sink, "the service wants TLS (fix: tls:// in the address)");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let (sink, route) = open(address("tls", place, believing(&path)));
    log_many(route, 0..1);
    drop(listener.accept().unwrap());
    wait_for_error(sink, "ended the connection in the TLS handshake");
    let (mut wire, _) = listener.accept().unwrap();
    wire.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    wait_for_error(sink, "speaks no TLS");
    drop(wire);
    let silent = listener.accept().unwrap();
    wait_for_error(sink, "no answer to the TLS handshake within 5 s");

    // Both errors are removed.
    drop((silent, listener));
    front.show(None);
    let other = Front::start_at(place, config(&ours.issue("localhost", |_| ()), None), &service.address);
    assert!(pipeline::flush(None, Some(DEADLINE)));
    assert_eq!(vec![0, 0], numbers(&service));
    assert_eq!(place, other.place);
    assert!(pipeline::close_sink(plain_sink, DEADLINE) && pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn a_connection_with_bytes_buffered_in_the_tls_session_continues() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (authority, path) = (Authority::new("ours"), folder.path().join("ca.pem"));
    authority.write(&path);
    let service = Service::start("tcp://127.0.0.1:0");
    let front = Front::start(config(&authority.issue("localhost", |_| ()), None), &service.address);
    let (sink, route) = open(address("tls", front.place, believing(&path)));
    // Records that are larger than a socket's buffer.
    let long = "x".repeat(3_000_000);
    assert!(log(route, 40, &long) && log(route, 40, &long) && log(route, 20, "after"));

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert!([&*long, &long, "after"] == *service.messages());
    assert!(pipeline::close_sink(sink, DEADLINE));
}
