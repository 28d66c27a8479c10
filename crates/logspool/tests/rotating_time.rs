//! Rotation by time: cases that the differential test against stock logging does not reach.

use crate::feeding;

use std::fs;
use std::path::Path;

use feeding::{Feed, timed_kind};
use logspool::sinks::{RotationRules, SinkOptions};
use logspool::{sink, sinks};
use logspool_record::definition::{Descriptor, SinkDefinition};

/// 2024-03-01 00:00:00 UTC.
const MARCH: i64 = 1_709_251_200;
const DAY: i64 = 86_400;

fn definition(path: &Path, when: &str, backup_count: u32, rules: RotationRules) -> SinkDefinition {
    timed_kind(path.to_str().unwrap(), when, backup_count, MARCH, rules).define(Descriptor::Open)
}

#[test]
fn a_backlog_is_spread_over_the_files_by_the_time_of_its_records() {
    for rules in [RotationRules::EARLY, RotationRules::CURRENT] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let mut sink = sinks::open(&definition(&path, "midnight", 0, rules)).unwrap();
        let lines: Vec<(i64, String)> =
            (-50..150).map(|step| (MARCH + step * DAY / 50, format!("day {}\n", step.div_euclid(50)))).collect();
        let writes = Feed::new(lines.iter().map(|(time, line)| (*time, line.as_str()))).rest(sink.as_mut());

        assert_eq!(4, writes);
        assert_eq!(3, sink.rotation_count());
        for (name, day) in [(".2024-02-29", -1), (".2024-03-01", 0), (".2024-03-02", 1), ("", 2)] {
            let text = fs::read_to_string(folder.path().join(format!("app.log{name}"))).unwrap();
            assert_eq!(format!("day {day}\n").repeat(50), text);
        }
    }
}

#[test]
fn early_rules_overwrite_an_existing_name_and_current_rules_keep_it() {
    for (rules, backup, rest) in
        [(RotationRules::EARLY, "first\n", "second\n"), (RotationRules::CURRENT, "theirs\n", "first\nsecond\n")]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let taken = folder.path().join("app.log.2024-02-29");
        fs::write(&taken, "theirs\n").unwrap();
        let mut sink = sinks::open(&definition(&path, "D", 0, rules)).unwrap();
        Feed::new([(MARCH - 1, "first\n"), (MARCH, "second\n")]).rest(sink.as_mut());

        assert_eq!(backup, fs::read_to_string(&taken).unwrap());
        assert_eq!(rest, fs::read_to_string(&path).unwrap());
        if rules == RotationRules::CURRENT {
            fs::remove_file(&taken).unwrap();
            Feed::new([(MARCH + 1, "third\n")]).rest(sink.as_mut());
            assert_eq!("first\nsecond\n", fs::read_to_string(&taken).unwrap());
            assert_eq!("third\n", fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn a_backup_that_cannot_be_removed_is_reported_once_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    fs::create_dir(folder.path().join("app.log.2020-01-01")).unwrap();
    fs::write(folder.path().join("app.log.2020-01-02"), "old\n").unwrap();
    let mut sink = sinks::open(&definition(&path, "D", 1, RotationRules::CURRENT)).unwrap();
    let mut feed = Feed::new([(MARCH - 1, "first\n"), (MARCH, "second\n")]);
    feed.step(sink.as_mut()).unwrap();
    assert!(matches!(feed.step(sink.as_mut()), Err(sink::SinkError::Retry(_))));
    feed.rest(sink.as_mut());

    assert_eq!("second\n", fs::read_to_string(&path).unwrap());
    assert_eq!("first\n", fs::read_to_string(folder.path().join("app.log.2024-02-29")).unwrap());
    assert!(!folder.path().join("app.log.2020-01-02").exists());
}

#[test]
fn only_regular_files_are_rotated_and_others_are_checked_once_an_interval() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    let mut sink = sinks::open(&definition(&path, "H", 0, RotationRules::CURRENT)).unwrap();
    let lines = (0..7200).map(|second| (MARCH + second, "line\n"));

    assert_eq!(2, Feed::new(lines).rest(sink.as_mut()));
    assert_eq!(0, sink.rotation_count());
    assert_eq!(1, fs::read_dir(folder.path()).unwrap().count());
}
