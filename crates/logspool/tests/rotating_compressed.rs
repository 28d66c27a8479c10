//! Backups that become `.gz` or `.zst`: their names, their number, their owner, and kills at any moment.
//!
//! `LOGSPOOL_KILLS` sets the rounds, `LOGSPOOL_SEED` repeats a run.

use crate::orphan;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use logspool::sink::{Lines, Mark, Sink};
use logspool::sinks;
use logspool::sinks::{Compression, RotatingFileOptions, RotationRules, SinkOptions, TimedRotatingFileOptions};
use logspool_record::definition::{Descriptor, Zone};
use orphan::exact::{check_sizes, judge, rotated, text_of};
use orphan::seam::{DEATHS_OF_COMPRESSION, Order};
use orphan::{Dice, Scene, Task, await_that};

#[test]
fn child_process() {
    orphan::child_main();
}

const BOTH: [(Task, Compression); 2] =
    [(Task::LogRotatingGzip, Compression::Gzip), (Task::LogRotatingZstd, Compression::Zstd)];

fn rounds() -> u32 {
    std::env::var("LOGSPOOL_KILLS").map_or(10, |rounds| rounds.parse().unwrap())
}

fn sized(path: &Path, how: Compression, max_bytes: u64, backup_count: u32) -> Box<dyn Sink> {
    let rules = RotationRules::Together { compress: Some(how) };
    let path = path.to_str().unwrap().to_owned();
    let kind = RotatingFileOptions { path, max_bytes, backup_count, terminator_chars: 1, rules };
    sinks::open(&kind.define(Descriptor::Open)).unwrap()
}

/// Writes a line that was logged `seconds` after the epoch.
fn write(sink: &mut dyn Sink, line: &str, seconds: i64) {
    let mark = Mark { end: line.len() as u32, level: 20, class: 0, member: 0, seconds };
    let lines = Lines { bytes: line.as_bytes(), marks: &[mark], before: 0 };
    assert_eq!(line.len(), sink.write(lines).unwrap());
}

/// File names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_done(folder: &Path) -> bool {
    let is_plain = |name: &str| name.rsplit('.').next().is_some_and(|end| end.parse::<u32>().is_ok());
    names(folder).iter().all(|name| !is_plain(name) && !name.ends_with(".part"))
}

fn await_compressed(folder: &Path) {
    // The compressing process has the lowest priority: on a machine that compiles meanwhile it gets a fiftieth of a
    // core.
    let deadline = Instant::now() + Duration::from_secs(300);
    while !is_done(folder) {
        let size = |name: &String| std::fs::metadata(folder.join(name)).map_or(0, |status| status.len());
        let sizes = || names(folder).iter().map(|name| (name.clone(), size(name))).collect::<Vec<_>>();
        assert!(Instant::now() < deadline, "a backup is not compressed: {:?}", sizes());
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The next start of a program with that file: writes one line, and compresses the backups that killed processes left.
fn open_anew(scene: &Scene, how: Compression) {
    let mut sink = sized(&scene.target, how, 1 << 40, 5_000);
    write(sink.as_mut(), "opener\n", 0);
    await_compressed(scene.files.path());
}

#[test]
fn compressed_backups_move_up_and_the_oldest_is_removed() {
    for (how, ending) in [(Compression::Gzip, "gz"), (Compression::Zstd, "zst")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let mut sink = sized(&path, how, 10, 3);
        for number in 0..6 {
            write(sink.as_mut(), &format!("{number}23456789\n"), 0);
            await_compressed(folder.path());
        }

        let expected = [String::from("app.log")].into_iter().chain((1..=3).map(|n| format!("app.log.{n}.{ending}")));
        assert_eq!(expected.collect::<Vec<_>>(), names(folder.path()));
        assert_eq!("223456789\n323456789\n423456789\n523456789\n", text_of(&rotated(&path)));
        assert!(sink.trouble().is_none());
    }
}

#[test]
fn the_plain_and_compressed_backup_of_one_time_count_as_one() {
    const DAY: i64 = 86_400;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let kind = TimedRotatingFileOptions {
        path: path.to_str().unwrap().to_owned(),
        when: "midnight".to_owned(),
        interval: 1,
        backup_count: 2,
        zone: Zone::Utc,
        at_time_seconds: None,
        rollover_at: Some(DAY),
        rules: RotationRules::Together { compress: Some(Compression::Zstd) },
    };
    let mut sink = sinks::open(&kind.define(Descriptor::Open)).unwrap();
    let stamps = |name: &str| name.contains(".1970");
    for day in 0..5 {
        write(sink.as_mut(), &format!("day {day}\n"), day * DAY);
        await_that("yesterday is compressed", || {
            let names = names(folder.path());
            names.iter().filter(|name| stamps(name)).all(|name| name.ends_with(".zst"))
        });
    }

    assert_eq!(vec!["app.log", "app.log.1970-01-03.zst", "app.log.1970-01-04.zst"], names(folder.path()));
    assert_eq!("day 4\n", std::fs::read_to_string(&path).unwrap());
    assert_eq!("day 2\n", text_of(&[folder.path().join("app.log.1970-01-03.zst")]));
    // A record of yesterday makes no second backup of that day.
    std::fs::rename(folder.path().join("app.log.1970-01-04.zst"), folder.path().join("app.log.1970-01-05.zst"))
        .unwrap();
    write(sink.as_mut(), "late\n", 5 * DAY);
    assert_eq!("day 4\nlate\n", std::fs::read_to_string(&path).unwrap());
}

#[test]
fn a_backup_keeps_its_mode_and_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let mut sink = sized(&path, Compression::Gzip, 10, 3);
    write(sink.as_mut(), "0123456789\n", 0);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = std::fs::metadata(&path).unwrap();
    write(sink.as_mut(), "0123456789\n", 0);
    await_compressed(folder.path());

    let after = std::fs::metadata(folder.path().join("app.log.1.gz")).unwrap();
    assert_eq!((before.mode(), before.uid(), before.mtime()), (after.mode(), after.uid(), after.mtime()));
}

#[test]
fn two_different_forms_of_a_backup_both_stay_and_move_up_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("app.log.1"), "plain\n").unwrap();
    std::fs::write(file("app.log.1.gz"), "of somebody else").unwrap();
    let mut sink = sized(&path, Compression::Gzip, 10, 3);
    write(sink.as_mut(), "0123456789\n", 0);
    write(sink.as_mut(), "0123456789\n", 0);
    await_that("the new backup is compressed", || file("app.log.1.gz").exists() && !file("app.log.1").exists());

    assert_eq!("plain\n", std::fs::read_to_string(file("app.log.2")).unwrap());
    assert_eq!("of somebody else", std::fs::read_to_string(file("app.log.2.gz")).unwrap());
}

#[test]
fn backups_that_cannot_be_compressed_stay_plain_and_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let mut sink = sized(&path, Compression::Gzip, 10, 3);
    write(sink.as_mut(), "0123456789\n", 0);
    let inode = std::fs::metadata(&path).unwrap().ino();
    let in_the_way = folder.path().join(format!("app.log.{inode:x}.gz.part"));
    std::fs::create_dir(&in_the_way).unwrap();
    write(sink.as_mut(), "0123456789\n", 0);
    await_that("it is said", || sink.trouble().is_some());

    assert_eq!("0123456789\n", std::fs::read_to_string(folder.path().join("app.log.1")).unwrap());
    std::fs::remove_dir(&in_the_way).unwrap();
    write(sink.as_mut(), "0123456789\n", 0);
    await_compressed(folder.path());
    assert_eq!("0123456789\n".repeat(3), text_of(&rotated(&path)));
}

#[test]
fn compressions_of_dead_processes_are_finished_or_removed_and_live_ones_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    std::fs::write(folder.path().join("app.log.1"), "plain\n").unwrap();
    let inode = std::fs::metadata(folder.path().join("app.log.1")).unwrap().ino();
    std::fs::write(folder.path().join(format!("app.log.{inode:x}.gz.part")), "half").unwrap();
    std::fs::write(folder.path().join("app.log.1234567.gz.part"), "of a backup that is gone").unwrap();
    std::fs::write(folder.path().join(format!("app.log.{inode:x}.zst.part")), "of another form").unwrap();
    write(sized(&path, Compression::Gzip, 10, 3).as_mut(), "a\n", 0);
    await_compressed(folder.path());

    assert_eq!(vec!["app.log", "app.log.1.gz"], names(folder.path()));
    assert_eq!("plain\na\n", text_of(&rotated(&path)));
}

#[test]
fn the_leftovers_of_two_killed_processes_for_one_backup_are_cleaned_up() {
    for (how, ending) in [(Compression::Gzip, "gz"), (Compression::Zstd, "zst")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.log");
        let (plain, kept) = (folder.path().join("app.log.1"), folder.path().join("kept"));
        std::fs::write(&plain, "a line\n").unwrap();
        std::fs::hard_link(&plain, &kept).unwrap();
        write(sized(&path, how, 1 << 20, 3).as_mut(), "first\n", 0);
        await_that("the backup is compressed", || !plain.exists());

        // One was killed before it removed the plain file, the other when it had begun to compress that file again.
        std::fs::hard_link(&kept, &plain).unwrap();
        let begun = format!("app.log.{:x}.{ending}.part", std::fs::metadata(&kept).unwrap().ino());
        std::fs::write(folder.path().join(&begun), "begun").unwrap();
        write(sized(&path, how, 1 << 20, 3).as_mut(), "second\n", 0);
        await_that("both are gone", || !plain.exists() && !folder.path().join(&begun).exists());

        assert_eq!(vec!["app.log".to_owned(), format!("app.log.1.{ending}"), "kept".to_owned()], names(folder.path()));
    }
}

#[test]
fn a_process_can_die_at_any_step_of_a_compression() {
    let (mut lines, mut kills) = (0, 0);
    for (task, how) in BOTH {
        for deed in DEATHS_OF_COMPRESSION {
            for time in [1, 2, 5] {
                let order = Order { deed, time };
                let scene = Scene::new(own_test!("child_process"));
                // Both processes work on the same backups.
                let other = scene.spawn_as(task, 1, None);
                let (mut accepted, ended_well) = scene.spawn_as(task, 0, Some(order)).await_end();
                assert!(!ended_well, "{order}: it was to die");
                accepted.extend(other.kill());
                kills += 2;
                let report = scene.recover();
                assert_eq!(0, report.torn_lines, "{order}");
                open_anew(&scene, how);

                let files = rotated(&scene.target);
                lines += judge(task, &text_of(&files), &accepted, &["opener"]);
                check_sizes(&files);
            }
        }
    }
    println!("{kills} kills at the steps of compressions, {lines} lines, none twice");
}

#[test]
fn every_line_is_there_once_in_compressed_files_of_several_killed_processes() {
    let mut dice = Dice::new();
    let (mut lines, mut compressed, mut kills) = (0, 0, 0);
    for round in 0..rounds() {
        let (task, how) = BOTH[round as usize % 2];
        let scene = Scene::new(own_test!("child_process"));
        let mut witnesses: Vec<_> = (0..3).map(|who| scene.spawn_as(task, who, None)).collect();
        witnesses.iter().for_each(orphan::Witness::await_report);
        await_that("a backup was compressed", || rotated(&scene.target).iter().any(|file| is_compressed(file)));
        let mut accepted = std::collections::HashMap::new();
        std::thread::sleep(Duration::from_micros(dice.below(20_000)));
        accepted.extend(witnesses.swap_remove(dice.below(3) as usize).kill());
        witnesses.push(scene.spawn_as(task, 3, None));
        witnesses.last().unwrap().await_report();
        std::thread::sleep(Duration::from_micros(dice.below(50_000)));
        witnesses.into_iter().for_each(|witness| accepted.extend(witness.kill()));
        kills += 4;
        let report = scene.recover();
        assert_eq!((0, 0), (report.kept.len(), report.torn_lines), "round {round}: {report:?}");
        // A backup with its final name is complete at any time: `text_of` reads each.
        text_of(&rotated(&scene.target));
        open_anew(&scene, how);

        let files = rotated(&scene.target);
        lines += judge(task, &text_of(&files), &accepted, &["opener"]);
        check_sizes(&files);
        compressed += files.iter().filter(|file| is_compressed(file)).count();
    }
    println!("{} rounds, {kills} kills, {lines} lines, {compressed} compressed files, none twice", rounds());
}

fn is_compressed(file: &Path) -> bool {
    matches!(file.extension().and_then(|ending| ending.to_str()), Some("gz" | "zst"))
}
