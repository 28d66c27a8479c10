//! Properties that every kind of sink in the table has. The tests run over the table: a new sink has no line here.

use crate::feeding;
use crate::http_receiver;
use crate::service;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixDatagram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use feeding::Feed;
use http_receiver::HttpReceiver;
use logspool::option::OptionError;
use logspool::sink::{Lines, Sink, SinkError};
use logspool::sinks::{self, Place, SinkInput, SinkRow, TABLE};
use logspool_record::definition::{Descriptor, OptionValue, SinkDefinition};
use logspool_record::msgpack;
use service::Service;

/// Every sample of every row.
fn samples(path: &str, descriptor: i32) -> Vec<(&'static SinkRow, SinkDefinition)> {
    TABLE.iter().flat_map(|row| row.samples(path, descriptor).into_iter().map(move |sample| (row, sample))).collect()
}

/// How many samples there are.
fn count() -> usize {
    samples("/nowhere", -1).len()
}

/// What stands at the other end of a sink.
enum Receiver {
    /// A file, and its backups beside it.
    File(String),
    /// The end of a pipe, and what came out of it.
    Pipe(File, Vec<u8>),
    /// A service that confirms what it got.
    Service(Service),
    /// A socket that takes datagrams, and what came.
    Socket(UnixDatagram, Vec<u8>),
    /// A receiver of requests, and their bodies.
    Http(HttpReceiver, Vec<u8>),
    /// A database, and the messages of its records.
    Database(String, Vec<u8>),
    /// Nothing.
    Nothing,
}

impl Receiver {
    /// Starts what the sample needs. Samples of other programs' addresses write to `path.socket`.
    fn start(row: &SinkRow, sample: &SinkDefinition, path: &str, pipe: File) -> Self {
        match sinks::place(sample) {
            Place::File(path) => Self::File(path),
            Place::Descriptor(_) => Self::Pipe(pipe, Vec::new()),
            Place::Nowhere => Self::Nothing,
            Place::Address(address) if address.starts_with("http://") => {
                Self::Http(HttpReceiver::start(&address), Vec::new())
            }
            Place::Address(path) if path.ends_with(".sqlite") => Self::Database(path, Vec::new()),
            Place::Address(_) if row.traits.confirms_later => {
                Self::Service(Service::start(&format!("unix://{path}.socket")))
            }
            Place::Address(_) => {
                let socket = UnixDatagram::bind(format!("{path}.socket")).unwrap();
                socket.set_nonblocking(true).unwrap();
                Self::Socket(socket, Vec::new())
            }
        }
    }

    /// Takes what can be had now.
    fn take(&mut self) {
        match self {
            Self::Pipe(pipe, came) => came.extend_from_slice(&available(pipe)),
            Self::Socket(socket, came) => {
                let mut datagram = vec![0; 1 << 17];
                while let Ok(length) = socket.recv(&mut datagram) {
                    came.extend_from_slice(&datagram[..length]);
                }
            }
            Self::Http(receiver, came) => *came = receiver.bodies(),
            Self::Database(path, came) => *came = database_messages(path),
            Self::File(_) | Self::Service(_) | Self::Nothing => {}
        }
    }

    /// What arrived, oldest first; `None` where it cannot be compared byte by byte.
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::File(path) => Some(with_backups(path)),
            Self::Pipe(_, came) => Some(came.clone()),
            Self::Service(service) => Some(service.entries()),
            Self::Socket(..) | Self::Http(..) | Self::Database(..) | Self::Nothing => None,
        }
    }
}

impl Receiver {
    /// What arrived, where each message is in it as it is, between other bytes.
    fn texts(&self) -> Option<&[u8]> {
        match self {
            Self::Socket(_, came) | Self::Http(_, came) | Self::Database(_, came) => Some(came),
            Self::File(_) | Self::Pipe(..) | Self::Service(_) | Self::Nothing => None,
        }
    }
}

/// The messages in the table of a database, in their order.
fn database_messages(path: &str) -> Vec<u8> {
    let database = rusqlite::Connection::open(path).unwrap();
    let mut statement = database.prepare("SELECT message FROM records ORDER BY id").unwrap();
    let messages = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    messages.flat_map(|message| (message.unwrap() + "\n").into_bytes()).collect()
}

/// A file with its backups before it: those with numbers from the highest down, those with times in their order.
fn with_backups(path: &str) -> Vec<u8> {
    let folder = Path::new(path).parent().unwrap();
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().to_str().unwrap().to_owned());
    let mut backups: Vec<String> = entries.filter(|name| name.starts_with(&format!("{path}."))).collect();
    backups.sort_by_key(|name| {
        let ending = &name[path.len() + 1..];
        (ending.parse().map_or(0, |number: i64| -number), name.clone())
    });
    backups.iter().map(String::as_str).chain([path]).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

/// A non-blocking pipe: reader, writer.
fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: pipe2 fills two descriptors, and nothing else owns them.
    unsafe {
        assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK));
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

fn available(reader: &mut File) -> Vec<u8> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        text.extend_from_slice(&buffer[..count]);
    }
    text
}

/// The message of record `number`, of uneven length. No other one begins with its number.
fn message(number: usize) -> String {
    format!("<{number}> {}", "ö".repeat(number * 7 % 90))
}

/// Records as a sink takes them, six to a second.
fn records(takes: SinkInput, count: usize) -> Vec<(i64, Vec<u8>)> {
    let record = |number: usize| match takes {
        SinkInput::Lines => format!("{}\n", message(number)).into_bytes(),
        SinkInput::Entries => entry(number),
    };
    (0..count).map(|number| (number as i64 / 6, record(number))).collect()
}

/// An entry of Fluent Forward with the least that one has.
fn entry(number: usize) -> Vec<u8> {
    let mut out = vec![0x92, 0xd7, 0x00];
    out.extend_from_slice(&(number as u32 / 6).to_be_bytes());
    out.extend_from_slice(&0_u32.to_be_bytes());
    msgpack::push_map(&mut out, 2);
    msgpack::push_text(&mut out, b"level");
    msgpack::push_int(&mut out, 20);
    msgpack::push_text(&mut out, b"message");
    msgpack::push_text(&mut out, message(number).as_bytes());
    out
}

fn borrowed(records: &[(i64, Vec<u8>)]) -> impl Iterator<Item = (i64, &[u8])> {
    records.iter().map(|(seconds, record)| (*seconds, record.as_slice()))
}

/// Feeds a sink with 300 records and checks each count that it reports, and what arrives.
fn everything_arrives(sink: &mut dyn Sink, takes: SinkInput, receiver: &mut Receiver, what: &str) {
    let (mut given, mut taken) = (Vec::new(), 0);
    for part in records(takes, 300).chunks(70) {
        part.iter().for_each(|(_, record)| given.extend_from_slice(record));
        let mut feed = Feed::new(borrowed(part));
        while !feed.is_done() {
            match feed.step(sink) {
                Ok(count) => taken += count,
                // A reader that is slow is no mistake.
                Err(SinkError::Retry(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{what}: {error:?}"),
            }
            receiver.take();
            if let Some(received) = receiver.bytes() {
                assert!(given[..taken] == received, "{what}: {taken} taken, {} arrived", received.len());
            }
        }
    }
    assert_eq!(given.len(), taken, "{what}");
    let Some(came) = receiver.texts() else { return };
    let text = String::from_utf8_lossy(came);
    let places: Vec<usize> = (0..300)
        .map(|number| {
            let start = format!("<{number}> ");
            assert_eq!(1, text.matches(&start).count(), "{what}: {start}");
            text.find(&start).unwrap()
        })
        .collect();
    assert!(places.is_sorted(), "{what}: out of order");
}

#[test]
fn everything_given_arrives_in_order_and_every_count_is_exact() {
    for index in 0..count() {
        let folder = tempfile::tempdir().unwrap();
        let (reader, writer) = pipe();
        let path = folder.path().join("app.log").to_str().unwrap().to_owned();
        let (row, sample) = samples(&path, writer.as_raw_fd()).swap_remove(index);
        let mut receiver = Receiver::start(row, &sample, &path, reader);
        let mut sink = sinks::open(&sample).unwrap();

        everything_arrives(sink.as_mut(), row.traits.takes, &mut receiver, &format!("{sample:?}"));
    }
}

/// A sink that reports other counts than it should.
struct Mistaken {
    /// Added to what was offered.
    off_by: isize,
}

impl Sink for Mistaken {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        Ok(lines.bytes.len().saturating_add_signed(self.off_by))
    }
}

#[test]
fn a_sink_that_reports_no_bytes_or_too_many_fails() {
    let run = |off_by| {
        catch_unwind(AssertUnwindSafe(|| {
            everything_arrives(&mut Mistaken { off_by }, SinkInput::Lines, &mut Receiver::Nothing, "mistaken");
        }))
    };

    assert!(run(0).is_ok());
    assert!(run(1).is_err(), "one byte too many");
    assert!(run(isize::MIN).is_err(), "no bytes");
}

#[test]
fn a_row_says_how_its_sinks_behave_and_where_they_write() {
    for index in 0..count() {
        let folder = tempfile::tempdir().unwrap();
        let (_reader, writer) = pipe();
        let path = folder.path().join("app.log").to_str().unwrap().to_owned();
        let (row, sample) = samples(&path, writer.as_raw_fd()).swap_remove(index);
        let mut sink = sinks::open(&sample).unwrap();

        assert_eq!(row.traits.confirms_later, sink.courier().is_some(), "{sample:?}");
        assert_eq!(sample.kind, row.kind);
        assert!(
            !sample.name.is_empty()
                && row.about.ends_with(".\n")
                && row.options.iter().all(|row| row.meaning.ends_with(".\n"))
        );
        match sinks::place(&sample) {
            Place::File(path) => {
                assert!(sink.shared().is_some(), "other processes write to files as well: {sample:?}");
                assert_eq!((Some(path.clone()), None), (sample.lasting.clone(), sinks::from_recovery_address(&path)));
            }
            Place::Address(_) => {
                assert_eq!(Some(&sample), sinks::from_recovery_address(sample.lasting.as_ref().unwrap()).as_ref())
            }
            Place::Descriptor(_) | Place::Nowhere => assert_eq!(None, sample.lasting),
        }
        let given = row.options.iter().map(|row| row.name.to_owned()).zip(sample.options.clone());
        assert_eq!(Ok(&sample), sinks::define(row.kind, given, Descriptor::Open).as_ref());
    }
}

#[test]
fn names_are_distinguished_and_a_misspelt_one_is_refused_with_the_nearest() {
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let define = |kind: &str, given: &[(&str, OptionValue)]| {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        sinks::define(kind, given, Descriptor::Open).unwrap_err()
    };

    let mut kinds: Vec<&str> = TABLE.iter().map(|row| row.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(TABLE.len(), kinds.len());
    let no_sink = "there is no sink \"flie\"; the nearest one is \"file\"";
    assert_eq!(OptionError::Kind(no_sink.to_owned()), define("flie", &[]));
    let no_option = "rotating has no option \"maxbytes\"; the nearest one is \"max_bytes\"";
    assert_eq!(OptionError::Unknown(no_option.to_owned()), define("rotating", &[("maxbytes", OptionValue::Whole(1))]));
    assert_eq!(OptionError::Missing("file needs the option \"path\"".to_owned()), define("file", &[]));
    let of_type = "path must be a path, not 3";
    assert_eq!(OptionError::Type(of_type.to_owned()), define("file", &[("path", OptionValue::Whole(3))]));
    let of_range = "at_time_seconds must be 0 to 86399 seconds after midnight, not 86400";
    let given = [("path", text("/a")), ("at_time_seconds", OptionValue::Whole(86_400))];
    assert_eq!(OptionError::Value(of_range.to_owned()), define("timed", &given));
    let of_choice = "rules has no value \"togehter\"; the nearest one is \"together\"";
    let given = [("path", text("/a")), ("rules", text("togehter"))];
    assert_eq!(OptionError::Value(of_choice.to_owned()), define("rotating", &given));
}

#[test]
fn a_reader_that_falls_behind_gets_everything_once() {
    let records = records(SinkInput::Lines, 6000);
    let given: Vec<u8> = records.iter().flat_map(|(_, line)| line.clone()).collect();
    for index in 0..count() {
        let (mut reader, writer) = pipe();
        // The path refers to the pipe too, so that no sink sees a moved file or rotates.
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let (_, mut sample) = samples(&path, writer.as_raw_fd()).swap_remove(index);
        if matches!(sinks::place(&sample), Place::Nowhere | Place::Address(_)) {
            continue;
        }
        sample.descriptor = Descriptor::Duplicate(writer.as_raw_fd());
        let mut sink = sinks::open(&sample).unwrap();
        let (mut received, mut refusals) = (Vec::new(), 0);
        let mut feed = Feed::new(borrowed(&records));
        while !feed.is_done() {
            match feed.step(sink.as_mut()) {
                Ok(_) => {}
                Err(SinkError::Retry(error)) => {
                    assert_eq!(Some(libc::EAGAIN), error.raw_os_error(), "{sample:?}");
                    refusals += 1;
                    let mut buffer = [0; 30_000];
                    let count = reader.read(&mut buffer).unwrap();
                    received.extend_from_slice(&buffer[..count]);
                }
                Err(error) => panic!("{sample:?}: {error:?}"),
            }
        }
        received.extend_from_slice(&available(&mut reader));

        assert!(given == received, "{sample:?}: {} of {} bytes", received.len(), given.len());
        assert!(refusals > 3, "{sample:?}");
        assert_eq!(0, sink.rotation_count(), "{sample:?}");
    }
}

#[test]
fn a_device_without_room_accepts_nothing_and_asks_for_a_retry() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    for (_, mut sample) in samples("/dev/full", full.as_raw_fd()) {
        if matches!(sinks::place(&sample), Place::Nowhere | Place::Address(_)) {
            continue;
        }
        for descriptor in [Descriptor::Open, Descriptor::Duplicate(full.as_raw_fd())] {
            sample.descriptor = descriptor;
            let mut sink = sinks::open(&sample).unwrap();
            let mut feed = Feed::new([(0, "a line\n")]);
            for _ in 0..3 {
                let error = feed.step(sink.as_mut()).unwrap_err();
                assert!(matches!(error, SinkError::Retry(_)), "{sample:?}: {error:?}");
                assert_eq!(Some(libc::ENOSPC), error.io_error().raw_os_error(), "{sample:?}");
            }
        }
    }
}

#[test]
fn an_unreachable_destination_is_retried_and_gets_everything_once() {
    for index in 0..count() {
        let folder = tempfile::tempdir().unwrap();
        let (reader, _writer) = pipe();
        let path = folder.path().join("app.log").to_str().unwrap().to_owned();
        let (row, sample) = samples(&path, -1).swap_remove(index);
        if !matches!(sinks::place(&sample), Place::Address(_)) || row.traits.is_local {
            continue;
        }
        let mut sink = sinks::open(&sample).unwrap();
        let mut feed = Feed::new(borrowed(&records(row.traits.takes, 1)));
        assert!(matches!(feed.step(sink.as_mut()), Err(SinkError::Retry(_))), "{sample:?}");
        let mut receiver = Receiver::start(row, &sample, &path, reader);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !feed.is_done() {
            assert!(Instant::now() < deadline, "{sample:?}");
            let _ = feed.step(sink.as_mut());
        }
        receiver.take();

        let came = receiver.texts().map_or_else(|| receiver.bytes().unwrap(), <[u8]>::to_vec);
        assert_eq!(1, String::from_utf8_lossy(&came).matches("<0> ").count(), "{sample:?}");
    }
}

#[test]
fn a_sink_that_could_not_be_opened_can_be_opened_later() {
    for index in 0..count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/app.log");
        let (_, sample) = samples(path.to_str().unwrap(), -1).swap_remove(index);
        if !matches!(sinks::place(&sample), Place::File(_)) {
            let needs_program = matches!(sinks::place(&sample), Place::Descriptor(_));
            assert_eq!(needs_program, sinks::open(&sample).is_err(), "{sample:?}");
            continue;
        }
        assert_eq!(std::io::ErrorKind::NotFound, sinks::open(&sample).err().unwrap().kind(), "{sample:?}");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut sink = sinks::open(&sample).unwrap();
        Feed::new([(0, "a line\n")]).rest(sink.as_mut());

        assert_eq!(b"a line\n".to_vec(), with_backups(path.to_str().unwrap()), "{sample:?}");
    }
}
