//! Rotation by size: cases that the differential test against stock logging does not reach.

use crate::feeding;
// This file uses only a part of it.
use crate::line;

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use feeding::Feed;
use line::{DEADLINE, begin, log, route_to};
use logspool::pipeline::{self, Options};
use logspool::sinks;
use logspool::sinks::{RotatingFileOptions, RotationRules, SinkOptions};
use logspool_record::definition::{Descriptor, SinkDefinition};

fn definition(path: &Path, max_bytes: u64, backup_count: u32, descriptor: Descriptor) -> SinkDefinition {
    let path = path.to_str().unwrap().to_owned();
    let rules = RotationRules::CURRENT;
    RotatingFileOptions { path, max_bytes, backup_count, terminator_chars: 1, rules }.define(descriptor)
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:09}\n")).collect()
}

fn feed(lines: &[String]) -> Feed {
    Feed::new(lines.iter().map(|line| (0, line.as_str())))
}

#[test]
fn every_record_through_the_queue_is_in_one_of_the_files() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let sink = pipeline::open_sink(&definition(&path, 10_000, 40, Descriptor::Open)).unwrap();
    let route = route_to("rotating", sink);
    for number in 0..20_000 {
        assert!(log(route, 20, &format!("{number:09}")));
    }

    assert!(pipeline::flush(None, Some(DEADLINE)));
    let mut files: Vec<_> = (1..=20).rev().map(|number| folder.path().join(format!("app.log.{number}"))).collect();
    files.push(path);
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert_eq!(numbered(20_000).concat(), text);
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() < 10_000));
}

#[test]
fn all_lines_between_two_rollovers_are_one_write() {
    let folder = tempfile::tempdir().unwrap();
    let definition = definition(&folder.path().join("app.log"), 10_001, 9, Descriptor::Open);
    let mut sink = sinks::open(&definition).unwrap();

    assert_eq!(5, feed(&numbered(5_000)).rest(sink.as_mut()));
    assert_eq!(4, sink.rotation_count());
}

#[test]
fn the_descriptor_of_the_program_stays_with_the_first_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let mut theirs = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let definition = definition(&path, 35, 2, Descriptor::Duplicate(theirs.as_raw_fd()));
    let mut sink = sinks::open(&definition).unwrap();
    feed(&numbered(5)).rest(sink.as_mut());
    std::io::Write::write_all(&mut theirs, b"late\n").unwrap();

    assert_eq!(1, sink.rotation_count());
    assert_eq!(numbered(3).concat() + "late\n", fs::read_to_string(folder.path().join("app.log.1")).unwrap());
    assert_eq!(numbered(5)[3..].concat(), fs::read_to_string(&path).unwrap());
}

#[test]
fn only_regular_files_are_rotated() {
    for rules in [RotationRules::EARLY, RotationRules::CURRENT] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let options = RotatingFileOptions { path, max_bytes: 5, backup_count: 2, terminator_chars: 1, rules };
        let mut sink = sinks::open(&options.define(Descriptor::Open)).unwrap();

        assert_eq!(1, feed(&numbered(100)).rest(sink.as_mut()));
        assert_eq!(0, sink.rotation_count());
        assert_eq!(1, fs::read_dir(folder.path()).unwrap().count());
    }
}

#[test]
fn without_backups_the_file_grows_and_is_followed_when_others_move_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let mut sink = sinks::open(&definition(&path, 25, 0, Descriptor::Open)).unwrap();
    feed(&numbered(100)).rest(sink.as_mut());
    fs::rename(&path, folder.path().join("moved")).unwrap();
    feed(&numbered(3)).rest(sink.as_mut());

    assert_eq!(numbered(100).concat(), fs::read_to_string(folder.path().join("moved")).unwrap());
    assert_eq!(numbered(3).concat(), fs::read_to_string(&path).unwrap());
    assert_eq!(1, sink.rotation_count());
}
