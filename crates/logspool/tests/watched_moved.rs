//! A watched file that other programs move, remove or replace.

use crate::feeding;

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use feeding::Feed;
use logspool::sink::{Sink, SinkError};
use logspool::sinks;
use logspool::sinks::{SinkOptions, WatchedFileOptions};
use logspool_record::definition::Descriptor;

fn open(path: &Path, descriptor: Descriptor) -> Box<dyn Sink> {
    let kind = WatchedFileOptions { path: path.to_str().unwrap().to_owned() };
    sinks::open(&kind.define(descriptor)).unwrap()
}

#[test]
fn a_file_that_was_moved_removed_or_replaced_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let mut sink = open(&path, Descriptor::Open);
    Feed::new([(0, "one\n"), (0, "two\n")]).rest(sink.as_mut());
    fs::rename(&path, folder.path().join("moved")).unwrap();
    Feed::new([(0, "three\n")]).rest(sink.as_mut());
    fs::remove_file(&path).unwrap();
    Feed::new([(0, "four\n")]).rest(sink.as_mut());
    fs::write(folder.path().join("new"), "theirs\n").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    Feed::new([(0, "five\n")]).rest(sink.as_mut());

    assert_eq!("one\ntwo\n", fs::read_to_string(folder.path().join("moved")).unwrap());
    assert_eq!("theirs\nfive\n", fs::read_to_string(&path).unwrap());
    assert_eq!(3, sink.rotation_count());
}

#[test]
fn the_descriptor_of_the_program_is_used_until_the_file_moves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let theirs = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let mut sink = open(&path, Descriptor::Duplicate(theirs.as_raw_fd()));
    Feed::new([(0, "one\n")]).rest(sink.as_mut());
    assert_eq!(0, sink.rotation_count());
    fs::rename(&path, folder.path().join("moved")).unwrap();
    Feed::new([(0, "two\n")]).rest(sink.as_mut());

    assert_eq!(1, sink.rotation_count());
    assert_eq!("two\n", fs::read_to_string(&path).unwrap());
}

#[test]
fn records_wait_for_a_missing_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (here, away) = (folder.path().join("logs"), folder.path().join("away"));
    fs::create_dir(&here).unwrap();
    let path = here.join("app.log");
    let mut sink = open(&path, Descriptor::Open);
    Feed::new([(0, "one\n")]).rest(sink.as_mut());
    fs::rename(&here, &away).unwrap();
    let mut feed = Feed::new([(0, "two\n")]);
    for _ in 0..3 {
        assert!(matches!(feed.step(sink.as_mut()), Err(SinkError::Retry(_))));
    }
    assert_eq!("one\n", fs::read_to_string(away.join("app.log")).unwrap());
    fs::rename(&away, &here).unwrap();
    feed.rest(sink.as_mut());

    assert_eq!("one\ntwo\n", fs::read_to_string(&path).unwrap());
    assert_eq!(0, sink.rotation_count());
}
