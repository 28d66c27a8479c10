//! Rollovers that fail half-way: no record is lost or doubled, and a later rollover repairs them.

use crate::feeding;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use feeding::{Feed, timed_kind};
use logspool::sink::{Sink, SinkError};
use logspool::sinks;
use logspool::sinks::{RotatingFileOptions, RotationRules, SinkOptions};
use logspool_record::definition::{Descriptor, SinkDefinition};

fn sized(path: &Path, backup_count: u32) -> SinkDefinition {
    let options = RotatingFileOptions {
        path: path.to_str().unwrap().to_owned(),
        max_bytes: 10,
        backup_count,
        terminator_chars: 1,
        rules: RotationRules::EARLY,
    };
    options.define(Descriptor::Open)
}

fn timed(path: &Path, rules: RotationRules) -> SinkDefinition {
    timed_kind(path.to_str().unwrap(), "D", 2, 86_400, rules).define(Descriptor::Open)
}

/// A user who is subject to the permissions of files.
const NOBODY: u32 = 65_534;

/// Makes this thread use files as another user; other threads keep their user.
fn act_as(user: u32) {
    // SAFETY: setfsuid has no preconditions.
    unsafe { libc::setfsuid(user) };
}

/// Makes this thread subject to the permissions of `folder` and its owner, even if root runs the tests.
fn become_ordinary(folder: &Path) {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        chown(folder, Some(NOBODY), None).unwrap();
        act_as(NOBODY);
    }
}

fn allow_changes(folder: &Path, allowed: bool) {
    fs::set_permissions(folder, Permissions::from_mode(if allowed { 0o700 } else { 0o500 })).unwrap();
}

fn fails_to_write(feed: &mut Feed, sink: &mut dyn Sink) {
    for _ in 0..3 {
        assert!(matches!(feed.step(sink), Err(SinkError::Retry(_))));
    }
}

#[test]
fn records_wait_for_a_read_only_folder() {
    let folder = tempfile::tempdir().unwrap();
    become_ordinary(folder.path());
    let path = folder.path().join("app.log");
    let in_days = [(0, "first\n"), (86_400, "second\n"), (86_401, "3\n")];
    for (definition, backup) in [
        (sized(&path, 2), "app.log.1"),
        (timed(&path, RotationRules::EARLY), "app.log.1970-01-01"),
        (timed(&path, RotationRules::CURRENT), "app.log.1970-01-01"),
    ] {
        let mut sink = sinks::open(&definition).unwrap();
        let mut feed = Feed::new(in_days);
        feed.step(sink.as_mut()).unwrap();
        allow_changes(folder.path(), false);
        fails_to_write(&mut feed, sink.as_mut());
        assert_eq!("first\n", fs::read_to_string(&path).unwrap());
        allow_changes(folder.path(), true);
        feed.rest(sink.as_mut());

        assert_eq!("first\n", fs::read_to_string(folder.path().join(backup)).unwrap(), "{definition:?}");
        assert_eq!("second\n3\n", fs::read_to_string(&path).unwrap(), "{definition:?}");
        assert_eq!(2, fs::read_dir(folder.path()).unwrap().count(), "{definition:?}");
        fs::remove_file(&path).unwrap();
        fs::remove_file(folder.path().join(backup)).unwrap();
    }
}

#[test]
fn backups_that_have_moved_do_not_move_again_when_a_later_step_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let backup = |number: u32| folder.path().join(format!("app.log.{number}"));
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return; // Only with files of two users can a later step fail after earlier ones.
    }
    // In such a folder only the owner of a file may rename it.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    for (number, text) in [(1, "one\n"), (2, "two\n"), (3, "three\n")] {
        fs::write(backup(number), text).unwrap();
    }
    chown(backup(2), Some(NOBODY), None).unwrap();
    chown(backup(3), Some(NOBODY), None).unwrap();
    act_as(NOBODY);
    let path = folder.path().join("app.log");
    let mut sink = sinks::open(&sized(&path, 4)).unwrap();
    let mut feed = Feed::new([(0, "current\n"), (0, "next\n")]);
    // Early rules also rotate the empty file, so the file begins with a line.
    fs::write(&path, "-\n").unwrap();
    fails_to_write(&mut feed, sink.as_mut());
    assert_eq!("three\n", fs::read_to_string(backup(4)).unwrap());
    assert_eq!("two\n", fs::read_to_string(backup(3)).unwrap());
    assert!(!backup(2).exists());
    act_as(0);
    chown(backup(1), Some(NOBODY), None).unwrap();
    act_as(NOBODY);
    feed.step(sink.as_mut()).unwrap();
    act_as(0);

    for (number, text) in [(4, "three\n"), (3, "two\n"), (2, "one\n"), (1, "-\n")] {
        assert_eq!(text, fs::read_to_string(backup(number)).unwrap());
    }
    assert_eq!("current\n", fs::read_to_string(&path).unwrap());
}
