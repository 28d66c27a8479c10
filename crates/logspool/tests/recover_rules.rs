//! Files that recovery leaves alone, steps that it takes only once, and files that it keeps.

use crate::orphan;

use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use logspool::recover::{self, Condition, PendingPlace, Reason, RecoverOptions, Retention, Undeliverable};
use orphan::{Scene, Task, await_that, check};

#[test]
fn child_process() {
    orphan::child_main();
}

/// An orphan whose target accepted nothing: all records are in overflow files and lanes.
fn frozen_orphan(task: Task) -> (Scene, HashMap<u32, u32>) {
    let scene = Scene::new(own_test!("child_process"));
    let fifo = scene.freeze_full();
    let witness = scene.spawn(task);
    scene.await_overflow();
    let witnessed = witness.kill();
    scene.thaw(fifo);
    (scene, witnessed)
}

fn recover_nothing(scene: &Scene) -> recover::Report {
    recover::recover(scene.queue.path(), |_| false, RecoverOptions::default()).unwrap()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_second_recovery_finds_nothing() {
    let (scene, witnessed) = frozen_orphan(Task::Log);
    assert!(scene.recover().records() > 0);
    let before = text(&scene.target);

    assert_eq!(recover::Report::default(), scene.recover());
    assert_eq!(before, text(&scene.target));
    assert_eq!(0, check(Task::Log, &before, &witnessed).repeated);
}

#[test]
fn two_recoverers_at_once_deliver_once() {
    for _ in 0..5 {
        let (scene, witnessed) = frozen_orphan(Task::Log);
        let other = scene.spawn(Task::Recover);
        // Two more recoveries in this process: record locks do not distinguish its threads.
        let (one, two) = std::thread::scope(|scope| {
            let one = scope.spawn(|| scene.recover());
            let two = scope.spawn(|| scene.recover());
            (one.join().unwrap(), two.join().unwrap())
        });
        let elsewhere = u64::from(other.end()[&0]);
        let checked = check(Task::Log, &text(&scene.target), &witnessed);

        assert_eq!(0, checked.repeated);
        assert_eq!(checked.lines, one.records() + two.records() + elsewhere);
        assert_eq!(Vec::<String>::new(), scene.names());
    }
}

#[test]
fn the_segment_of_a_live_process_is_left_alone() {
    let scene = Scene::new(own_test!("child_process"));
    let witness = scene.spawn(Task::LogAndWait);
    witness.await_report();
    assert_eq!((0, recover::Report::default()), (scene.scan().len(), scene.recover()));

    std::fs::write(scene.target.with_extension("go"), "").unwrap();
    let witnessed = witness.end();
    assert_eq!(1000, check(Task::Log, &text(&scene.target), &witnessed).lines);
    assert_eq!(0, check(Task::Log, &text(&scene.target), &witnessed).repeated);
}

#[test]
fn a_file_without_a_matching_handler_keeps_its_segment_and_is_listed() {
    let (scene, witnessed) = frozen_orphan(Task::Log);
    let report = recover_nothing(&scene);
    let records = match &report.kept[..] {
        [kept] => match &kept.reasons[..] {
            [Reason::Unwanted { path, records }] if *path == scene.target => *records,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let orphan = &scene.scan()[0];

    assert_eq!(PendingPlace::File(scene.target.clone()), orphan.pending[0].place);
    assert_eq!((records, Condition::Whole), (orphan.pending[0].records, orphan.condition.clone()));
    assert!(orphan.overflow_bytes > 0 && orphan.bytes() == report.kept[0].bytes);
    assert!(orphan.age.as_secs() < 60 && orphan.pid == report.kept[0].pid && orphan.retention == Retention::Stay);
    assert!(!scene.target.exists());
    assert_eq!(records, scene.recover().records());
    assert_eq!(records, check(Task::Log, &text(&scene.target), &witnessed).lines);
}

#[test]
fn a_delivered_target_is_not_delivered_again_while_another_waits() {
    let scene = Scene::new(own_test!("child_process"));
    let fifo = scene.freeze_full();
    let witness = scene.spawn(Task::LogTwice);
    scene.await_overflow();
    let witnessed = witness.kill();
    scene.thaw(fifo);
    let second = scene.second_target();
    let wants_second = |path: &Path| path == second;
    recover::recover(scene.queue.path(), wants_second, RecoverOptions::default()).unwrap();
    let after_first = text(&second);
    check(Task::LogTwice, &after_first, &witnessed);
    assert!(!scene.target.exists());

    let wants_both = |path: &Path| path == second || path == scene.target;
    let report = recover::recover(scene.queue.path(), wants_both, RecoverOptions::default()).unwrap();
    assert_eq!(after_first, text(&second));
    assert_eq!(vec![&scene.target], report.delivered.iter().map(|delivered| &delivered.path).collect::<Vec<_>>());
    assert_eq!(0, check(Task::LogTwice, &text(&scene.target), &witnessed).repeated);
    assert_eq!(Vec::<String>::new(), scene.names());
}

#[test]
fn a_target_that_cannot_be_written_keeps_its_records_until_it_can() {
    let (scene, witnessed) = frozen_orphan(Task::Log);
    std::fs::create_dir(&scene.target).unwrap();
    let report = scene.recover();
    assert!(matches!(&report.kept[0].reasons[..], [Reason::Unwritable { .. }]), "{report:?}");
    assert_eq!(0, report.records());

    std::fs::remove_dir(&scene.target).unwrap();
    scene.recover();
    assert_eq!(0, check(Task::Log, &text(&scene.target), &witnessed).repeated);
}

#[test]
fn records_for_a_console_are_dropped_only_on_request() {
    let scene = Scene::new(own_test!("child_process"));
    let witness = scene.spawn(Task::LogToConsole);
    witness.await_report();
    await_that("ten records are reported", || scene.names().len() >= 2);
    witness.kill();
    let kept = scene.recover();
    let Reason::Undeliverable { sink, records } = &kept.kept[0].reasons[0] else { panic!("{kept:?}") };
    assert!(sink.starts_with("descriptor") && *records == 10, "{kept:?}");

    let discard = RecoverOptions { undeliverable: Undeliverable::Discard };
    let report = recover::recover(scene.queue.path(), |_| true, discard).unwrap();
    assert_eq!((0, 10), (report.kept.len(), report.removed[0].discarded));
    assert_eq!(Vec::<String>::new(), scene.names());
}

#[test]
fn a_segment_of_another_major_version_stays() {
    let (scene, _) = frozen_orphan(Task::Log);
    let name = scene.names().into_iter().find(|name| name.ends_with(".seg")).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(scene.queue.path().join(name)).unwrap();
    file.write_all_at(&7_u32.to_ne_bytes(), 8).unwrap();
    let names = scene.names();

    assert_eq!(Condition::OtherVersion { major: 7 }, scene.scan()[0].condition);
    assert_eq!(vec![Reason::OtherVersion { major: 7 }], scene.recover().kept[0].reasons);
    assert_eq!(names, scene.names());
}

#[test]
fn files_without_a_segment_are_removed_only_if_they_are_empty() {
    let scene = Scene::new(own_test!("child_process"));
    let make = |name: &str| std::fs::write(scene.queue.path().join(name), "").unwrap();
    // Process ids of a foreign namespace, so that only their locks can show that they live.
    make("1-11-1-00000000000000aa.lock");
    make("1-12-1-00000000000000aa.lock");
    make("1-12-1-00000000000000aa.over-1-0");
    make("1-13-1-00000000000000aa.lock");
    make("1-13-1-00000000000000aa.blob-3");
    make("1-14-1-00000000000000aa.blob-3");
    make("1-15-1-00000000000000aa.seg");
    make("1-15-1-00000000000000aa.lock");
    make("a file of somebody else");
    let report = scene.recover();

    let removed: Vec<u32> = report.removed.iter().map(|removed| removed.pid).collect();
    let kept: Vec<(u32, &[Reason])> = report.kept.iter().map(|kept| (kept.pid, &kept.reasons[..])).collect();
    assert_eq!(3, removed.len(), "{report:?}");
    assert!([11, 12, 15].iter().all(|pid| removed.contains(pid)), "{report:?}");
    assert_eq!(2, kept.len(), "{report:?}");
    assert!(kept.contains(&(13, &[Reason::NoSegment])) && kept.contains(&(14, &[Reason::OwnerUnknown])));
    assert_eq!(4, scene.names().len());
}

#[test]
fn a_missing_folder_has_no_leftovers() {
    let missing = Path::new("/dev/shm/logspool-orphan-missing");

    assert!(recover::scan(missing).unwrap().is_empty());
    assert_eq!(recover::Report::default(), recover::recover(missing, |_| true, RecoverOptions::default()).unwrap());
}
