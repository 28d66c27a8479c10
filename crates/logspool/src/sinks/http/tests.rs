//! The sinks over HTTP against receivers that answer as the tests say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::client::HttpClient;
use crate::option::OptionTable;
use crate::sink::{CarryOutcome, Courier, Lines, Mark, NextCarry, Pace, Sink, SinkError, Stream};
use crate::sinks::parts::tests::entry;
use crate::sinks::{ElasticsearchOptions, LokiOptions, SinkOptions, define};
use logspool_record::definition::{Descriptor, OptionValue};

/// A request as it came.
#[derive(Debug, Clone)]
struct Request {
    path: String,
    headers: Vec<String>,
    body: String,
}

/// What a receiver does with a request.
enum Reply {
    /// Sends a status, more headers and a body.
    Answer(u16, &'static str, String),
    /// Sends these bytes and closes the connection.
    Cut(&'static [u8]),
}

fn ok() -> Reply {
    Reply::Answer(200, "", "{\"errors\":false}".to_owned())
}

type Requests = Arc<Mutex<Vec<Request>>>;

/// Starts a receiver; the answer to each request is that of `reply`, which also gets the number of earlier requests.
fn receiver(reply: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let (reply, kept) = (Arc::new(reply), requests.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (reply, kept) = (reply.clone(), kept.clone());
            std::thread::spawn(move || serve(stream, &*reply, &kept));
        }
    });
    (address, requests)
}

fn serve(stream: impl Read + Write, reply: &dyn Fn(&Request, usize) -> Reply, kept: &Requests) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream) {
        let count = {
            let mut kept = kept.lock().unwrap();
            kept.push(request.clone());
            kept.len() - 1
        };
        let (bytes, is_last) = match reply(&request, count) {
            Reply::Answer(status, more, body) => {
                let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n{more}\r\n", body.len());
                ((head + &body).into_bytes(), false)
            }
            Reply::Cut(bytes) => (bytes.to_vec(), true),
        };
        if stream.get_mut().write_all(&bytes).is_err() || is_last {
            return;
        }
    }
}

fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| lines.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned));
    let length = header("content-length: ").map_or(0, |length| length.parse().unwrap());
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).ok()?;
    let mut body = String::new();
    if header("content-encoding: ").as_deref() == Some("gzip") {
        GzDecoder::new(&bytes[..]).read_to_string(&mut body).unwrap();
    } else {
        body = String::from_utf8_lossy(&bytes).into_owned();
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    Some(Request { path, headers: lines, body })
}

/// A sink with these options, which are text, or numbers in brackets.
fn sink(kind: &str, given: &[(&str, &str)]) -> Box<dyn Sink> {
    let given = given.iter().map(|(name, text)| {
        let value = match text.strip_prefix('<').and_then(|text| text.strip_suffix('>')) {
            Some(number) => OptionValue::Whole(number.parse().unwrap()),
            None => OptionValue::Text((*text).to_owned()),
        };
        ((*name).to_owned(), value)
    });
    crate::sinks::open(&define(kind, given, Descriptor::Open).unwrap()).unwrap()
}

fn take(courier: &mut dyn Courier, messages: &[String]) {
    let (mut bytes, mut marks) = (Vec::new(), Vec::new());
    for message in messages {
        bytes.extend_from_slice(&entry(&[("message", message)]));
        marks.push(Mark { end: bytes.len() as u32, level: 20, class: 2, member: 0, seconds: 0 });
    }
    courier.take(Lines { bytes: &bytes, marks: &marks, before: 0 });
}

fn messages(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("<{number}>")).collect()
}

/// Carries until this number of batches has arrived. Returns the errors, and the batches of refused records.
fn carry(courier: &mut dyn Courier, batches: usize) -> (Vec<String>, Vec<usize>) {
    let (mut errors, mut refused, mut arrived) = (Vec::new(), Vec::new(), 0);
    let deadline = Instant::now() + Duration::from_secs(60);
    while arrived < batches {
        assert!(Instant::now() < deadline, "{arrived} of {batches} arrived: {errors:?}");
        let carried = courier.carry(Pace::Hurry);
        errors.extend(carried.error.map(|error| error.to_string()));
        refused.extend(carried.refused.iter().map(|record| arrived + record.batch));
        arrived += carried.arrived;
        courier.wait(Duration::from_millis(5));
    }
    assert_eq!(batches, arrived);
    (errors, refused)
}

/// How often each message came with requests for which `counts` is true.
fn seen(requests: &Requests, count: usize, counts: impl Fn(&Request) -> bool) -> Vec<usize> {
    let requests = requests.lock().unwrap();
    messages(count)
        .iter()
        .map(|message| requests.iter().filter(|request| counts(request) && request.body.contains(message)).count())
        .collect()
}

#[test]
fn batches_become_few_requests_with_their_headers_over_one_connection() {
    let (address, requests) = receiver(|_, _| ok());
    let options = [("address", &*address), ("headers", "X-Scope-OrgID: a"), ("user", "ann"), ("password", "hunter2")];
    let mut sink = sink("loki", &options);
    let courier = sink.courier().unwrap();
    for part in messages(100).chunks(10) {
        take(courier, part);
    }
    assert_eq!((Vec::new(), Vec::new()), carry(courier, 10));

    assert_eq!(vec![1; 100], seen(&requests, 100, |_| true));
    let requests = requests.lock().unwrap();
    assert_eq!((1, "/loki/api/v1/push"), (requests.len(), &*requests[0].path));
    let headers = requests[0].headers.join("\n").to_lowercase();
    for expected in ["x-scope-orgid: a", "authorization: basic yw5uomh1bnrlcji=", "content-encoding: gzip"] {
        assert!(headers.contains(expected), "{headers}");
    }
}

#[test]
fn a_request_has_at_most_the_records_and_bytes_of_the_options() {
    let (address, requests) = receiver(|_, _| ok());
    let mut sink = sink("loki", &[("address", &address), ("batch_records", "<7>")]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(50));
    carry(courier, 1);

    assert_eq!(vec![1; 50], seen(&requests, 50, |_| true));
    assert_eq!(8, requests.lock().unwrap().len());
    let (address, requests) = receiver(|_, _| ok());
    let mut sink = self::sink("loki", &[("address", &address), ("batch_bytes", "<1024>")]);
    let courier = sink.courier().unwrap();
    let long: Vec<_> = messages(10).iter().map(|message| format!("{message}{}", "x".repeat(600))).collect();
    take(courier, &long);
    carry(courier, 1);

    assert_eq!(vec![1; 10], seen(&requests, 10, |_| true));
    assert_eq!(10, requests.lock().unwrap().len());
}

#[test]
fn a_record_that_may_not_wait_is_sent_alone() {
    let (address, _) = receiver(|_, _| ok());
    let mut sink = sink("loki", &[("address", &address)]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(1));
    let CarryOutcome { arrived, next, .. } = courier.carry(Pace::Gather(Duration::ZERO));

    assert!(arrived == 1 || next == NextCarry::OnAnswer, "{next:?}");
}

#[test]
fn a_receiver_that_cannot_take_records_now_gets_them_later() {
    let (address, requests) = receiver(|_, count| match count {
        0 => Reply::Answer(500, "", "no".to_owned()),
        1 => Reply::Answer(429, "Retry-After: 1\r\n", String::new()),
        2 => Reply::Cut(b""),
        3 => Reply::Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
        4 => Reply::Answer(200, "Transfer-Encoding: x\r\n", String::new()),
        _ => ok(),
    });
    let mut sink = sink("loki", &[("address", &address)]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(3));
    let begun = Instant::now();
    let (errors, refused) = carry(courier, 1);

    assert!(begun.elapsed() >= Duration::from_secs(1), "Retry-After");
    assert!(errors[0].contains("answers 500") && errors[1].contains("answers 429"), "{errors:?}");
    assert!(errors.len() >= 4 && refused.is_empty(), "{errors:?}");
    assert_eq!(vec![errors.len() + 1; 3], seen(&requests, 3, |_| true));
}

#[test]
fn the_bad_record_among_a_thousand_is_refused_alone() {
    let (address, requests) =
        receiver(
            |request, _| {
                if request.body.contains("<617>") { Reply::Answer(400, "", "bad".to_owned()) } else { ok() }
            },
        );
    let mut sink = sink("loki", &[("address", &address), ("batch_records", "<1000>")]);
    let courier = sink.courier().unwrap();
    for part in messages(1000).chunks(100) {
        take(courier, part);
    }
    let (errors, refused) = carry(courier, 10);

    assert_eq!(["the receiver answers 400: it refuses the request: bad"], *errors);
    assert_eq!([6], *refused);
    let accepted = seen(&requests, 1000, |request| !request.body.contains("<617>"));
    assert_eq!((0, 999), (accepted[617], accepted.iter().filter(|count| **count == 1).count()));
}

#[test]
fn a_write_continues_after_a_refused_record_and_counts_it() {
    let (address, requests) =
        receiver(
            |request, _| {
                if request.body.contains("<3>") { Reply::Answer(400, "", "bad".to_owned()) } else { ok() }
            },
        );
    let mut sink = sink("loki", &[("address", &address)]);
    let (mut bytes, mut marks) = (Vec::new(), Vec::new());
    for message in messages(20) {
        bytes.extend_from_slice(&entry(&[("message", &message)]));
        marks.push(Mark { end: bytes.len() as u32, level: 20, class: 2, member: 0, seconds: 0 });
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let count = loop {
        assert!(Instant::now() < deadline);
        match sink.write(Lines { bytes: &bytes, marks: &marks, before: 0 }) {
            Ok(count) => break count,
            Err(SinkError::Retry(error)) => assert_eq!(Some(libc::EAGAIN), error.raw_os_error(), "{error}"),
            Err(error) => panic!("{error:?}"),
        }
    };

    assert_eq!((bytes.len(), [0, 0, 1, 0, 0, 0], [0; 6]), (count, sink.take_refused(), sink.take_refused()));
    let accepted = seen(&requests, 20, |request| !request.body.contains("<3>"));
    assert_eq!((0, 19), (accepted[3], accepted.iter().sum::<usize>()));
}

#[test]
fn a_request_that_is_too_long_is_halved_and_a_record_that_is_too_long_is_refused() {
    let (address, requests) =
        receiver(|request, _| if request.body.len() > 2000 { Reply::Answer(413, "", String::new()) } else { ok() });
    let mut sink = sink("loki", &[("address", &address)]);
    let courier = sink.courier().unwrap();
    let mut all = messages(64);
    all[9].push_str(&"x".repeat(3000));
    take(courier, &all);
    let (errors, refused) = carry(courier, 1);

    assert_eq!(1, errors.len());
    assert!(errors[0].contains("fix: batch_bytes"), "{errors:?}");
    assert_eq!([0], *refused);
    let accepted = seen(&requests, 64, |request| request.body.len() <= 2000);
    assert_eq!((0, 63), (accepted[9], accepted.iter().filter(|count| **count == 1).count()));
}

#[test]
fn an_unusable_address_keeps_the_records_and_names_the_fix() {
    let others = [402, 406, 409, 410, 415, 426, 431, 451].map(|status| (status, "refuses every request (fix: "));
    let known = [(401, "token"), (403, "rights"), (404, "fix: address"), (302, "http://127.0.0.2/x")];
    for (status, mend) in known.into_iter().chain(others) {
        let (address, requests) = receiver(move |_, count| match count {
            0 => Reply::Answer(status, "Location: http://127.0.0.2/x\r\n", String::new()),
            _ => ok(),
        });
        let mut sink = sink("loki", &[("address", &address), ("token", "hunter2")]);
        let courier = sink.courier().unwrap();
        take(courier, &messages(2));
        let (errors, refused) = carry(courier, 1);

        assert!(errors[0].contains(mend) && !errors[0].contains("hunter2"), "{errors:?}");
        assert!(refused.is_empty());
        assert_eq!(vec![2; 2], seen(&requests, 2, |_| true));
    }
}

#[test]
fn a_login_page_with_status_200_is_not_an_acknowledgement() {
    for kind in ["loki", "otlp", "elasticsearch"] {
        let (address, requests) = receiver(|_, count| match count {
            0 => Reply::Answer(200, "Content-Type: text/html; charset=utf-8\r\n", "<html>log in".to_owned()),
            _ => ok(),
        });
        let mut sink = sink(kind, &[("address", &address)]);
        let courier = sink.courier().unwrap();
        take(courier, &messages(2));
        let (errors, refused) = carry(courier, 1);

        assert!(errors[0].contains("text/html (fix: address") && errors[0].contains("<html>log in"), "{errors:?}");
        assert!(refused.is_empty());
        assert_eq!(vec![2; 2], seen(&requests, 2, |_| true));
    }
}

#[test]
fn a_compressed_answer_is_read() {
    let (address, requests) = receiver(|_, _| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"{\"errors\":false}").unwrap();
        let body = packed.finish().unwrap();
        let head = format!("HTTP/1.1 200 x\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", body.len());
        Reply::Cut(Box::leak([head.as_bytes(), &body].concat().into_boxed_slice()))
    });
    let mut sink = sink("elasticsearch", &[("address", &address)]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(2));

    assert_eq!((Vec::new(), Vec::new()), carry(courier, 1));
    assert_eq!(vec![1; 2], seen(&requests, 2, |_| true));
}

#[test]
fn only_the_items_that_a_bulk_answer_names_are_sent_again() {
    let (address, requests) = receiver(|request, count| {
        if count > 0 {
            return ok();
        }
        let items: Vec<_> = (0..request.body.lines().count() / 2)
            .map(|item| match item {
                2 | 5 => "{\"create\":{\"status\":429}}",
                3 => "{\"create\":{\"status\":400,\"error\":{\"type\":\"mapper\",\"reason\":\"no\"}}}",
                4 => "{\"create\":{\"status\":409}}",
                _ => "{\"create\":{\"status\":201}}",
            })
            .collect();
        Reply::Answer(200, "", format!("{{\"errors\":true,\"items\":[{}]}}", items.join(",")))
    });
    let mut sink = sink("elasticsearch", &[("address", &address), ("index", "logs-app")]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(3));
    take(courier, &messages(6)[3..]);
    let (errors, refused) = carry(courier, 2);

    assert_eq!((1, vec![1]), (errors.len(), refused));
    assert_eq!([1, 1, 2, 1, 1, 2], *seen(&requests, 6, |_| true));
    let requests = requests.lock().unwrap();
    assert!(requests[0].path.starts_with("/_bulk?filter_path="), "{}", requests[0].path);
    let ids = |request: &Request| -> Vec<String> {
        let heads = request.body.lines().step_by(2).map(|line| serde_json::from_str::<Value>(line).unwrap());
        heads.map(|head| head["create"]["_id"].as_str().unwrap().to_owned()).collect()
    };
    let (first, second) = (ids(&requests[0]), ids(&requests[1]));
    assert_eq!([first[2].clone(), first[5].clone()], *second);
}

#[test]
fn a_bulk_request_that_is_refused_as_a_whole_loses_no_record() {
    let (address, requests) = receiver(|_, count| match count {
        0 => Reply::Answer(400, "", "unsupported path".to_owned()),
        _ => ok(),
    });
    let mut sink = sink("elasticsearch", &[("address", &address)]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(10));
    let (errors, refused) = carry(courier, 1);

    assert_eq!(["the receiver answers 400: it refuses the request: unsupported path"], *errors);
    assert!(refused.is_empty());
    assert_eq!(vec![2; 10], seen(&requests, 10, |_| true));
}

#[test]
fn a_continued_stream_gives_the_same_ids() {
    let (address, requests) = receiver(|_, _| ok());
    let given = [("address".to_owned(), OptionValue::Text(address.clone()))];
    let definition = define("elasticsearch", given, Descriptor::Open).unwrap();
    let mut first = crate::sinks::open(&definition).unwrap();
    let courier = first.courier().unwrap();
    let stream = courier.stream().unwrap();
    take(courier, &messages(5));
    carry(courier, 1);
    let mut second = crate::sinks::open(&definition).unwrap();
    let courier = second.courier().unwrap();
    courier.resume(stream);
    courier.number_from(4);
    take(courier, &messages(5)[3..]);
    carry(courier, 1);

    let requests = requests.lock().unwrap();
    let ends: Vec<_> = requests.iter().map(|request| request.body.lines().rev().nth(1).unwrap().to_owned()).collect();
    assert_eq!(ends[0], ends[1]);
    assert_ne!(Stream { id: 0, epoch: 0 }, stream);
}

#[test]
fn no_call_waits_for_a_silent_receiver() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut sink = sink("otlp", &[("address", &address), ("timeout_seconds", "<600>")]);
    let courier = sink.courier().unwrap();
    take(courier, &messages(1));
    let CarryOutcome { arrived, error, next, .. } = courier.carry(Pace::Hurry);

    assert!(arrived == 0 && error.is_none() && next == NextCarry::OnAnswer);
    // The request is on its way, and nobody has answered it.
    let (mut stream, _) = listener.accept().unwrap();
    let request = read(&mut BufReader::new(stream.try_clone().unwrap())).unwrap();
    assert_eq!("/v1/logs", request.path);
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    carry(courier, 1);
}

#[test]
fn a_receiver_that_is_silent_for_too_long_is_an_error_that_names_the_option() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut sink = sink("loki", &[("address", &address), ("timeout_seconds", "<1>")]);
    let bytes = entry(&[("message", "m")]);
    let marks = [Mark { end: bytes.len() as u32, level: 20, class: 2, member: 0, seconds: 0 }];
    let error = loop {
        match sink.write(Lines { bytes: &bytes, marks: &marks, before: 0 }) {
            Err(SinkError::Retry(error)) if error.raw_os_error() == Some(libc::EAGAIN) => {}
            Err(SinkError::Retry(error)) => break error,
            other => panic!("{other:?}"),
        }
    };

    assert!(error.to_string().contains("timeout_seconds"), "{error}");
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let (address, _) = ("http://127.0.0.1:1", ());
    for (given, mend) in [
        (vec![("user", "ann")], "password"),
        (vec![("password", "hunter2")], "user"),
        (vec![("user", "ann"), ("password", "hunter2"), ("token", "hunter2")], "either token"),
    ] {
        let mut all = vec![("address", address)];
        all.extend(given);
        let given = all.iter().map(|(name, text)| ((*name).to_owned(), OptionValue::Text((*text).to_owned())));
        let definition = define("loki", given, Descriptor::Open).unwrap();
        let error = crate::sinks::open(&definition).err().unwrap().to_string();
        assert!(error.contains(mend) && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_tls_receiver_is_trusted_only_by_its_authority() {
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, certified.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(crate::tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let requests = Requests::default();
    let kept = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let (stream, kept) = (rustls::StreamOwned::<_, TcpStream>::new(session, stream), kept.clone());
            std::thread::spawn(move || serve(stream, &|_, _| ok(), &kept));
        }
    });

    let mut trusting = sink("loki", &[("address", &address), ("authorities", file.to_str().unwrap())]);
    take(trusting.courier().unwrap(), &messages(3));
    carry(trusting.courier().unwrap(), 1);
    assert_eq!(vec![1; 3], seen(&requests, 3, |_| true));

    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    std::fs::write(&file, other.cert.pem()).unwrap();
    let mut doubting = sink("loki", &[("address", &address), ("authorities", file.to_str().unwrap())]);
    let courier = doubting.courier().unwrap();
    take(courier, &messages(3));
    let deadline = Instant::now() + Duration::from_secs(60);
    let error = loop {
        assert!(Instant::now() < deadline);
        if let Some(error) = courier.carry(Pace::Hurry).error {
            break error.to_string();
        }
        courier.wait(Duration::from_millis(5));
    };
    assert!(error.contains("fix: the option authorities"), "{error}");
    assert_eq!(vec![1; 3], seen(&requests, 3, |_| true));
}

#[test]
fn the_recovery_address_restores_all_options() {
    let sample = ElasticsearchOptions::samples("/sample", -1).remove(0);
    assert_eq!(
        Some(&sample),
        ElasticsearchOptions::from_recovery_address(&sample.recovery_address().unwrap()).as_ref()
    );
    assert!(LokiOptions::ROWS.iter().any(|row| row.name == "headers"));
    let client = format!("{:?}", HttpClient::new(&super::settings!(sample, "/x")));
    assert!(client.contains("/x") && !client.contains("headers"), "{client}");
}
