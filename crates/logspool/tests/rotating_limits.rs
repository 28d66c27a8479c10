//! Limits reached in the middle: a disk that fills up, a process without descriptors.
//!
//! Limits of the process simulate both. They apply to every thread, so each test runs in a process of its own.

use crate::feeding;

use std::fs;
use std::process::Command;

use feeding::{Feed, timed_kind};
use logspool::sink::SinkError;
use logspool::sinks;
use logspool::sinks::{RotatingFileOptions, RotationRules, SinkOptions, WatchedFileOptions};
use logspool_record::definition::Descriptor;

/// Runs the body of the test `name` in a process where no other test runs.
fn alone(name: &str, body: fn()) {
    const MARK: &str = "LOGSPOOL_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["--exact", name, "--nocapture"]).env(MARK, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Sets one limit; returns the former one.
fn limit(resource: libc::__rlimit_resource_t, value: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid rlimit. With the signal ignored, a write beyond the limit fails as on a full disk.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(0, libc::getrlimit(resource, &mut limit));
        let before = std::mem::replace(&mut limit.rlim_cur, value);
        assert_eq!(0, libc::setrlimit(resource, &limit));
        before
    }
}

#[test]
fn a_line_cut_by_a_full_disk_is_finished_in_the_file_where_it_began() {
    alone(&own_test!("a_line_cut_by_a_full_disk_is_finished_in_the_file_where_it_began"), cut_line);
}

fn cut_line() {
    let line = |letter: &str| format!("{}\n", letter.repeat(59));
    let (first, second, third) = (line("a"), line("b"), line("c"));
    for number in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let text_path = path.to_str().unwrap().to_owned();
        let rules = if number % 2 == 0 { RotationRules::EARLY } else { RotationRules::CURRENT };
        let definition = match number {
            0 | 1 => {
                RotatingFileOptions { path: text_path, max_bytes: 50, backup_count: 3, terminator_chars: 1, rules }
                    .define(Descriptor::Open)
            }
            2 | 3 => timed_kind(&text_path, "S", 0, 1, rules).define(Descriptor::Open),
            _ => WatchedFileOptions { path: text_path }.define(Descriptor::Open),
        };
        let mut sink = sinks::open(&definition).unwrap();
        Feed::new([(0, first.as_str())]).rest(sink.as_mut());
        if number == 4 {
            fs::rename(&path, folder.path().join("app.log.1")).unwrap();
        }
        let before = sink.rotation_count();
        let mut feed = Feed::new([(1, second.as_str()), (2, third.as_str())]);
        let before_limit = limit(libc::RLIMIT_FSIZE, 40);
        let cut = feed.step(sink.as_mut());
        let refused = feed.step(sink.as_mut());
        if number == 4 {
            fs::rename(&path, folder.path().join("app.log.2")).unwrap();
        }
        limit(libc::RLIMIT_FSIZE, before_limit);
        feed.rest(sink.as_mut());

        assert!(matches!(cut, Ok(40)), "{number}: {cut:?}");
        assert!(matches!(&refused, Err(SinkError::Retry(_))), "{number}: {refused:?}");
        assert_eq!(2, sink.rotation_count() - before, "{number}");
        assert_eq!(third, fs::read_to_string(&path).unwrap(), "{number}");
        let mut backups: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|backup| *backup != path)
            .map(|backup| fs::read_to_string(backup).unwrap())
            // Early rules rotated the empty file for the first line.
            .filter(|text| !text.is_empty())
            .collect();
        backups.sort();
        assert_eq!([first.clone(), second.clone()].as_slice(), backups, "{number}");
    }
}

#[test]
fn the_rest_of_a_line_goes_to_a_new_file_if_the_old_one_was_removed() {
    alone(&own_test!("the_rest_of_a_line_goes_to_a_new_file_if_the_old_one_was_removed"), cut_and_removed);
}

fn cut_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let kind = WatchedFileOptions { path: path.to_str().unwrap().to_owned() };
    let mut sink = sinks::open(&kind.define(Descriptor::Open)).unwrap();
    let mut feed = Feed::new([(1, "first, cut in the middle\n"), (2, "second\n")]);
    // Exactly the space of the removed file is missing: the file cannot grow beyond it.
    limit(libc::RLIMIT_FSIZE, 20);
    let cut = feed.step(sink.as_mut());
    let refused = feed.step(sink.as_mut());
    fs::remove_file(&path).unwrap();
    feed.rest(sink.as_mut());

    assert!(matches!(cut, Ok(20)), "{cut:?}");
    assert!(matches!(&refused, Err(SinkError::Retry(_))), "{refused:?}");
    assert_eq!("ddle\nsecond\n", fs::read_to_string(&path).unwrap());
    assert_eq!(1, sink.rotation_count());
}

#[test]
fn an_already_renamed_file_is_neither_renamed_nor_removed_when_opening_is_retried() {
    alone(&own_test!("an_already_renamed_file_is_neither_renamed_nor_removed_when_opening_is_retried"), no_descriptors);
}

fn no_descriptors() {
    for number in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let text_path = path.to_str().unwrap().to_owned();
        let rules = if number % 2 == 0 { RotationRules::EARLY } else { RotationRules::CURRENT };
        let (definition, backup) = if number < 2 {
            let options =
                RotatingFileOptions { path: text_path, max_bytes: 10, backup_count: 1, terminator_chars: 1, rules };
            (options.define(Descriptor::Open), "app.log.1")
        } else {
            let options = timed_kind(&text_path, "D", 2, 86_400, rules);
            (options.define(Descriptor::Open), "app.log.1970-01-01")
        };
        let mut sink = sinks::open(&definition).unwrap();
        let mut feed = Feed::new([(0, "first\n"), (86_400, "second\n"), (86_400, "3\n")]);
        feed.step(sink.as_mut()).unwrap();
        let before = limit(libc::RLIMIT_NOFILE, 0);
        let failed: Vec<_> = (0..4).map(|_| feed.step(sink.as_mut())).collect();
        let renamed = folder.path().join(backup).exists();
        limit(libc::RLIMIT_NOFILE, before);
        feed.rest(sink.as_mut());

        assert!(failed.iter().all(|result| matches!(result, Err(SinkError::Retry(_)))), "{number}: {failed:?}");
        assert!(renamed, "{number}");
        assert_eq!("first\n", fs::read_to_string(folder.path().join(backup)).unwrap(), "{number}");
        assert_eq!("second\n3\n", fs::read_to_string(&path).unwrap(), "{number}");
        assert_eq!(2, fs::read_dir(folder.path()).unwrap().count(), "{number}");
        assert_eq!(1, sink.rotation_count(), "{number}");
    }
}
