//! A process that recovers the folder in which it has its own segment.

use crate::orphan;

use logspool::pipeline::{self, Options};
use logspool::recover;
use orphan::{DEADLINE, Scene, Task, file_sink, log, route_to};

#[test]
fn child_process() {
    orphan::child_main();
}

#[test]
fn a_process_does_not_recover_its_own_segment_and_keeps_its_lock() {
    if std::env::var_os("LOGSPOOL_CHILD").is_some() {
        return;
    }
    let scene = Scene::new(own_test!("child_process"));
    pipeline::configure(Options { queue_dir: Some(scene.queue.path().to_owned()), ..Options::default() }).unwrap();
    let route = route_to("own", file_sink(&scene.target));
    (0..100).for_each(|index| assert!(log(route, 20, &index.to_string())));
    assert_eq!((0, recover::Report::default()), (scene.scan().len(), scene.recover()));

    // If scan or recovery had closed the lock file, another process would see an orphan now.
    assert_eq!(0, scene.spawn(Task::Scan).end()[&0]);
    assert!(pipeline::flush(None, Some(DEADLINE)));
    assert_eq!(100, std::fs::read_to_string(&scene.target).unwrap().lines().count());
    assert_eq!(0, pipeline::drain(DEADLINE));
}
