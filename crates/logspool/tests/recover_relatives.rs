//! The records that a live process delivers for dead ones, and the files that it leaves alone.

use crate::orphan;

use logspool::recover::{self, Deliver, FileAction, FoundRelatives, Reason};
use logspool_sys::folder::{Folder, Times};
use orphan::{Scene, Task, check};

#[test]
fn child_process() {
    orphan::child_main();
}

/// A dead process whose records are all still queued.
fn dead_process() -> (Scene, std::collections::HashMap<u32, u32>) {
    let scene = Scene::new(own_test!("child_process"));
    let fifo = scene.freeze_full();
    let witness = scene.spawn(Task::Log);
    scene.await_overflow();
    let witnessed = witness.kill();
    scene.thaw(fifo);
    (scene, witnessed)
}

fn deliver(scene: &Scene, which: Deliver) -> FoundRelatives {
    let folder = Folder::open_existing(scene.queue.path()).unwrap();
    recover::deliver_relatives(&folder, which, |_| FileAction::Append, || false).unwrap()
}

fn lock_times(scene: &Scene) -> (Folder, String, Times) {
    let folder = Folder::open_existing(scene.queue.path()).unwrap();
    let lock = folder.names().unwrap().into_iter().find(|name| name.ends_with(".lock")).unwrap();
    let times = Times::of(&folder.status(&lock).unwrap());
    (folder, lock, times)
}

#[test]
fn failed_deliveries_are_retried_after_growing_pauses() {
    let (scene, witnessed) = dead_process();
    // A directory with the name of the target file.
    std::fs::create_dir(&scene.target).unwrap();

    let failed = deliver(&scene, Deliver::Due).report;
    assert!(matches!(&failed.kept[0].reasons[..], [Reason::Unwritable { .. }]), "{failed:?}");
    let not_due = deliver(&scene, Deliver::Due);
    assert_eq!((true, recover::Report::default()), (not_due.has_others, not_due.report));
    let pause = |times: Times| times.accessed - times.modified;
    assert_eq!(1_000_000_000, pause(lock_times(&scene).2));
    assert_eq!(1, deliver(&scene, Deliver::All).report.kept.len());
    assert_eq!(2_000_000_000, pause(lock_times(&scene).2));

    std::fs::remove_dir(&scene.target).unwrap();
    let (folder, lock, times) = lock_times(&scene);
    // Sets the times back by ten seconds, so that the process acts now.
    let past = |ns: i64| ns - 10_000_000_000;
    folder.set_times(&lock, Times { modified: past(times.modified), accessed: past(times.accessed) }).unwrap();
    let delivered = deliver(&scene, Deliver::Due).report;
    assert_eq!(Vec::<String>::new(), scene.names());
    let lines = check(Task::Log, &std::fs::read_to_string(&scene.target).unwrap(), &witnessed).lines;
    assert_eq!(lines, delivered.records());
}

#[test]
fn records_of_another_pid_namespace_are_left_to_its_own_next_start() {
    let (scene, _) = dead_process();
    let before = scene.names();
    for name in &before {
        if let Some((_, rest)) = name.split_once('-').filter(|_| !name.ends_with(".side")) {
            let folder = scene.queue.path();
            std::fs::rename(folder.join(name), folder.join(format!("1-{rest}"))).unwrap();
        }
    }

    let found = deliver(&scene, Deliver::All);
    assert_eq!((false, recover::Report::default()), (found.has_others, found.report));
    assert_eq!(before.len(), scene.names().len());
    assert!(scene.recover().records() > 0);
}

#[test]
fn the_segment_of_another_live_process_is_not_recovered() {
    let scene = Scene::new(own_test!("child_process"));
    let witness = scene.spawn(Task::LogAndWait);
    witness.await_report();

    let found = deliver(&scene, Deliver::All);
    assert_eq!((true, recover::Report::default()), (found.has_others, found.report));
    std::fs::write(scene.target.with_extension("go"), "").unwrap();
    witness.end();
}
