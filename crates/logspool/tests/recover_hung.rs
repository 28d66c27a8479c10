//! A file hangs while a program delivers records of a dead process to it. A program that starts with another file, or
//! only scans, is not delayed.

use crate::orphan;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use logspool::pipeline::{self, Options};
use logspool::recover::{PendingPlace, Reason};
use logspool::sidecar::steps::{self, AppendStep};
use orphan::{DEADLINE, Scene, Task, await_that, await_within, check, file_sink, freeze_full, log, route_to};

#[test]
fn child_process() {
    orphan::child_main();
}

static HAS_HUNG: AtomicBool = AtomicBool::new(false);
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Holds up the first thread that is about to append, until the test releases it.
fn hang_once(step: AppendStep, bytes: usize) -> usize {
    if step == AppendStep::Intended && bytes == 0 && !HAS_HUNG.swap(true, Ordering::Relaxed) {
        while !GOES_ON.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
    bytes
}

const LIVE: &str = "of the live one";

/// The text of a file before the line of the live program, which is its last line.
fn before_live(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.strip_suffix("\n")?.strip_suffix(LIVE).map(str::to_owned)
}

#[test]
fn a_hanging_file_delays_only_its_own_records() {
    let scene = Scene::new(own_test!("child_process"));
    let (target, second) = (&scene.target, scene.second_target());
    let (fifo, second_fifo) = (scene.freeze_full(), freeze_full(&second));
    let witness = scene.spawn(Task::LogTwice);
    scene.await_overflow();
    let witnessed = witness.kill();
    scene.thaw(fifo);
    drop(second_fifo);
    std::fs::remove_file(&second).unwrap();

    steps::watch(hang_once);
    pipeline::configure(Options { queue_dir: Some(scene.queue.path().to_owned()), ..Options::default() }).unwrap();
    assert!(log(route_to("hangs", file_sink(target)), 20, LIVE));
    await_that("recovery comes to the file that hangs", || HAS_HUNG.load(Ordering::Relaxed));
    assert!(log(route_to("well", file_sink(&second)), 20, LIVE));
    await_within(Duration::from_secs(3), "the other file is written", || before_live(&second).is_some());
    check(Task::LogTwice, &before_live(&second).unwrap(), &witnessed);
    let orphans = scene.scan();
    assert_eq!(1, orphans.len());
    let places: Vec<&PendingPlace> = orphans[0].pending.iter().map(|pending| &pending.place).collect();
    assert_eq!(vec![&PendingPlace::File(target.clone())], places);
    let report = scene.recover();
    assert_eq!(vec![Reason::InWork], report.kept[0].reasons, "what hangs is not waited for without end");
    assert_eq!(None, before_live(target));

    GOES_ON.store(true, Ordering::Relaxed);
    await_that("the file that hung is written", || before_live(target).is_some());
    check(Task::LogTwice, &before_live(target).unwrap(), &witnessed);
    // The watcher may still be at the same orphan, and the last one to leave removes the files.
    await_that("the files of the orphan are removed", || scene.scan().is_empty());
    assert_eq!(0, scene.recover().records());
    assert_eq!(0, pipeline::drain(DEADLINE));
    assert_eq!(Vec::<String>::new(), scene.names());
}
