//! A read error during recovery (no descriptor is left, a disk fails) is no damage: the file stays, and the next
//! recovery delivers it.

use crate::orphan;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use logspool::recover::{Reason, Report};
use logspool::sidecar::steps::{self, AppendStep};
use orphan::{Scene, Task, check};

#[test]
fn child_process() {
    orphan::child_main();
}

/// An orphan with a file whose name contains `kind`, and the path of that file.
fn orphan_with(kind: &str) -> (Scene, PathBuf) {
    for _ in 0..100 {
        let scene = Scene::new(own_test!("child_process"));
        let fifo = scene.freeze_full();
        let witness = scene.spawn(Task::LogLittle);
        witness.await_report();
        witness.kill();
        scene.thaw(fifo);
        if let Some(name) = scene.names().into_iter().find(|name| name.contains(kind)) {
            let path = scene.queue.path().join(name);
            return (scene, path);
        }
    }
    panic!("one of a hundred is killed in time");
}

fn aside(path: &Path) -> PathBuf {
    path.with_file_name("aside")
}

/// Replaces a file by something that cannot be read.
fn spoil(path: &Path) {
    std::fs::rename(path, aside(path)).unwrap();
    std::fs::create_dir(path).unwrap();
}

fn fix(path: &Path) {
    std::fs::remove_dir(path).unwrap();
    std::fs::rename(aside(path), path).unwrap();
}

fn assert_that_it_stays(report: &Report) {
    let [kept] = &report.kept[..] else { panic!("{report:?}") };
    let [Reason::Unwritable { error, .. }] = &kept.reasons[..] else { panic!("{report:?}") };
    assert!(error.contains("cannot be read now"), "{error}");
}

/// An orphan that was recovered while a file of `kind` could not be read, and the path of that file.
fn recovered_without(kind: &str, spoil: impl Fn(&Path)) -> (Scene, PathBuf) {
    for _ in 0..100 {
        let (scene, path) = orphan_with(kind);
        spoil(&path);
        let report = scene.recover();
        // At the kill the records of the file may already be elsewhere, or not be in it yet.
        if report.records() < 400 {
            assert_that_it_stays(&report);
            return (scene, path);
        }
    }
    panic!("one of a hundred needs the file");
}

fn assert_that_all_is_delivered_once(scene: &Scene) {
    let report = scene.recover();
    assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "{report:?}");
    let text = std::fs::read_to_string(&scene.target).unwrap();
    let checked = check(Task::LogLittle, &text, &[(0, 399)].into());
    assert_eq!((400, 0), (checked.lines, checked.repeated));
}

#[test]
fn a_large_record_that_cannot_be_read_now_is_delivered_by_the_next_recovery() {
    let (scene, blob) = recovered_without(".blob-", spoil);
    assert_that_it_stays(&scene.recover());

    fix(&blob);
    assert_that_all_is_delivered_once(&scene);
}

thread_local! {
    /// The file that is spoiled after the recovery of this thread has listed its entries.
    static SPOILED_LATER: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

fn spoil_when_entered(step: AppendStep, bytes: usize) -> usize {
    if step == AppendStep::Entered
        && let Some(path) = SPOILED_LATER.take()
    {
        spoil(&path);
    }
    bytes
}

#[test]
fn an_overflow_file_that_cannot_be_read_now_is_delivered_by_the_next_recovery() {
    steps::watch(spoil_when_entered);
    let (scene, overflow) = recovered_without(".over-", |path| SPOILED_LATER.set(Some(path.to_owned())));

    fix(&overflow);
    assert_that_all_is_delivered_once(&scene);
}
