//! Properties that every kind of sink in the table has.

mod feeding;
mod service;
// The table is private to the crate, so its source is compiled here against the crate's public types.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;

use feeding::{Feed, timed_kind};
use logspool::sink::SinkError;
use logspool::sinks;
use logspool_record::address;
use logspool_record::definition::{Descriptor, RotationRules, SinkDefinition, SinkKind};
use service::Service;

/// A definition of each kind, for `path` or `descriptor`. The rotating ones rotate often and keep everything.
fn every_kind(path: &str, descriptor: i32) -> Vec<SinkKind> {
    let path = || path.to_owned();
    let sized =
        |rules| SinkKind::RotatingFile { path: path(), max_bytes: 500, backup_count: 1000, terminator_chars: 1, rules };
    let timed = |rules| timed_kind(&path(), "S", 0, 1, rules);
    vec![
        SinkKind::File { path: path() },
        SinkKind::Console { descriptor },
        sized(RotationRules::Early),
        sized(RotationRules::Current),
        timed(RotationRules::Early),
        timed(RotationRules::Current),
        SinkKind::WatchedFile { path: path() },
        SinkKind::Service { address: format!("unix://{}.socket", path()).parse().unwrap_or(nowhere()) },
        SinkKind::Null,
    ]
}

fn nowhere() -> address::ServiceAddress {
    "unix:///nowhere".parse().unwrap()
}

/// The bytes that arrived, oldest first. A new kind has no arm here: add one, and a line above.
fn arrived(kind: &SinkKind, reader: &mut File, service: Option<&Service>) -> Option<Vec<u8>> {
    match kind {
        SinkKind::File { path } | SinkKind::WatchedFile { path } => Some(read(path)),
        SinkKind::RotatingFile { path, .. } => {
            let backups = (1..).map(|number| format!("{path}.{number}")).take_while(|path| Path::new(path).exists());
            let mut backups: Vec<String> = backups.collect();
            backups.reverse();
            Some(backups.iter().chain([path]).flat_map(|path| read(path)).collect())
        }
        SinkKind::TimedRotatingFile { path, .. } => {
            let folder = Path::new(path).parent().unwrap();
            let mut backups: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
                .filter(|backup| backup != path)
                .collect();
            backups.sort();
            Some(backups.iter().chain([path]).flat_map(|path| read(path)).collect())
        }
        SinkKind::Console { .. } => Some(available(reader)),
        SinkKind::Service { .. } => service.map(Service::entries),
        SinkKind::Null => None,
    }
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap()
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

/// Lines of uneven length, six a second.
fn lines(count: usize) -> Vec<(i64, String)> {
    (0..count).map(|number| (number as i64 / 6, format!("{number} {}\n", "ö".repeat(number * 7 % 90)))).collect()
}

fn borrowed(lines: &[(i64, String)]) -> impl Iterator<Item = (i64, &str)> {
    lines.iter().map(|(seconds, line)| (*seconds, line.as_str()))
}

#[test]
fn everything_given_arrives_in_order_and_every_count_is_exact() {
    for index in 0..every_kind("", 0).len() {
        let folder = tempfile::tempdir().unwrap();
        let (mut reader, writer) = pipe();
        let path = folder.path().join("app.log");
        let kind = every_kind(path.to_str().unwrap(), writer.as_raw_fd()).swap_remove(index);
        let definition = SinkDefinition { kind: kind.clone(), descriptor: Descriptor::Open };
        let service = match &kind {
            SinkKind::Service { address } => Some(Service::start(&address.to_string())),
            _ => None,
        };
        let mut sink = sinks::open(&definition).unwrap();
        let (mut given, mut received, mut taken) = (String::new(), Vec::new(), 0);
        let records = lines(300);
        for part in records.chunks(70) {
            part.iter().for_each(|(_, line)| given.push_str(line));
            let mut feed = Feed::new(borrowed(part));
            while !feed.is_done() {
                taken += feed.step(sink.as_mut()).unwrap();
                let Some(bytes) = arrived(&kind, &mut reader, service.as_ref()) else { continue };
                if !matches!(kind, SinkKind::Console { .. }) {
                    received.clear();
                }
                received.extend_from_slice(&bytes);
                assert!(given.as_bytes()[..taken] == received, "{kind:?}: {taken} and {} bytes", received.len());
            }
        }
        assert_eq!(given.len(), taken, "{kind:?}");
    }
}

#[test]
fn a_reader_that_falls_behind_gets_everything_once() {
    let records = lines(6000);
    let given: String = records.iter().map(|(_, line)| line.as_str()).collect();
    for index in 0..every_kind("", 0).len() {
        let (mut reader, writer) = pipe();
        // The path refers to the pipe too, so that no sink sees a moved file or rotates.
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let kind = every_kind(&path, writer.as_raw_fd()).swap_remove(index);
        if matches!(kind, SinkKind::Null | SinkKind::Service { .. }) {
            continue;
        }
        let definition = SinkDefinition { kind: kind.clone(), descriptor: Descriptor::Duplicate(writer.as_raw_fd()) };
        let mut sink = sinks::open(&definition).unwrap();
        let (mut received, mut refusals) = (Vec::new(), 0);
        let mut feed = Feed::new(borrowed(&records));
        while !feed.is_done() {
            match feed.step(sink.as_mut()) {
                Ok(_) => {}
                Err(SinkError::Retry(error)) => {
                    assert_eq!(Some(libc::EAGAIN), error.raw_os_error(), "{kind:?}");
                    refusals += 1;
                    let mut buffer = [0; 30_000];
                    let count = reader.read(&mut buffer).unwrap();
                    received.extend_from_slice(&buffer[..count]);
                }
                Err(error) => panic!("{kind:?}: {error:?}"),
            }
        }
        received.extend_from_slice(&available(&mut reader));

        assert!(given.as_bytes() == received, "{kind:?}: {} of {} bytes", received.len(), given.len());
        assert!(refusals > 3, "{kind:?}");
        assert_eq!(0, sink.turns(), "{kind:?}");
    }
}

#[test]
fn a_device_without_room_takes_nothing_and_says_try_again() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    for kind in every_kind("/dev/full", full.as_raw_fd()) {
        if matches!(kind, SinkKind::Null | SinkKind::Service { .. }) {
            continue;
        }
        for descriptor in [Descriptor::Open, Descriptor::Duplicate(full.as_raw_fd())] {
            let mut sink = sinks::open(&SinkDefinition { kind: kind.clone(), descriptor }).unwrap();
            let mut feed = Feed::new([(0, "a line\n")]);
            for _ in 0..3 {
                let error = feed.step(sink.as_mut()).unwrap_err();
                assert!(matches!(error, SinkError::Retry(_)), "{kind:?}: {error:?}");
                assert_eq!(Some(libc::ENOSPC), error.io_error().raw_os_error(), "{kind:?}");
            }
        }
    }
}

#[test]
fn a_sink_that_could_not_be_opened_can_be_opened_later() {
    for index in 0..every_kind("", 0).len() {
        let folder = tempfile::tempdir().unwrap();
        let (mut reader, _writer) = pipe();
        let path = folder.path().join("missing/app.log");
        let kind = every_kind(path.to_str().unwrap(), -1).swap_remove(index);
        let definition = SinkDefinition { kind: kind.clone(), descriptor: Descriptor::Open };
        if kind.path().is_none() {
            let is_opened_later = matches!(kind, SinkKind::Null | SinkKind::Service { .. });
            assert_eq!(is_opened_later, sinks::open(&definition).is_ok());
            continue;
        }
        assert_eq!(std::io::ErrorKind::NotFound, sinks::open(&definition).err().unwrap().kind(), "{kind:?}");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut sink = sinks::open(&definition).unwrap();
        Feed::new([(0, "a line\n")]).rest(sink.as_mut());

        assert_eq!(Some(b"a line\n".to_vec()), arrived(&kind, &mut reader, None), "{kind:?}");
    }
}
