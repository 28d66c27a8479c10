//! Writers and recoverers that die at a chosen step of an append: the first time it is reached, the second, the third,
//! the fifth, and so on. At every step, each line is in the file once.

use crate::orphan;

use std::collections::HashMap;

use logspool::sidecar::steps::AppendStep;
use orphan::exact::judge;
use orphan::seam::{DEATHS, Deed, Order};
use orphan::{Scene, Task};

#[test]
fn child_process() {
    orphan::child_main();
}

const TIMES: [u32; 6] = [1, 2, 3, 5, 8, 13];

/// Whether a live writer reaches the step. It never repairs a torn append, and does not rotate here.
fn is_of_writers(deed: &Deed) -> bool {
    !matches!(deed, Deed::Die(AppendStep::Repaired | AppendStep::Renamed))
}

fn text(scene: &Scene) -> String {
    std::fs::read_to_string(&scene.target).unwrap_or_default()
}

fn recovered(scene: &Scene, accepted: &HashMap<u32, u32>, what: &str) -> u64 {
    let report = scene.recover();

    assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "{what}: {report:?}");
    assert_eq!(0, report.torn_lines, "{what}");
    let before = text(scene);
    let lines = judge(Task::Log, &before, accepted, &[]);
    scene.recover();
    assert_eq!(before, text(scene), "{what}: a second recovery finds nothing");
    lines
}

#[test]
fn a_writer_can_die_at_any_step() {
    let mut lines = 0;
    for deed in DEATHS.iter().filter(|deed| is_of_writers(deed)) {
        for time in TIMES {
            let order = Order { deed: *deed, time };
            let scene = Scene::new(own_test!("child_process"));
            let (accepted, ended_well) = scene.spawn_as(Task::Log, 0, Some(order)).await_end();
            assert!(!ended_well, "{order}: it was to die");
            lines += recovered(&scene, &accepted, &order.to_string());
        }
    }
    println!("{} kills of writers, {lines} lines", DEATHS.len() * TIMES.len());
}

#[test]
fn a_writer_that_takes_over_can_die_at_any_step() {
    for deed in DEATHS.iter().filter(|deed| !matches!(deed, Deed::Die(AppendStep::Renamed))) {
        for time in [1, 2, 3] {
            let order = Order { deed: *deed, time };
            let scene = Scene::new(own_test!("child_process"));
            let halfway = Order { deed: Deed::DieHalfway, time: 3 };
            let (mut accepted, _) = scene.spawn_as(Task::Log, 0, Some(halfway)).await_end();
            // Its start recovers the records of the first process, and may die while doing so.
            let second = scene.spawn_as(Task::Log, 1, Some(order));
            if let Deed::Die(AppendStep::Repaired) = deed
                && time > 1
            {
                // There is only one append to repair.
                second.await_report();
                accepted.extend(second.kill());
            } else {
                accepted.extend(second.await_end().0);
            }
            recovered(&scene, &accepted, &order.to_string());
        }
    }
}

/// An orphan with many batches that are all unwritten.
fn frozen_orphan() -> (Scene, HashMap<u32, u32>) {
    let scene = Scene::new(own_test!("child_process"));
    let fifo = scene.freeze_full();
    let witness = scene.spawn(Task::Log);
    scene.await_overflow();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let accepted = witness.kill();
    scene.thaw(fifo);
    (scene, accepted)
}

#[test]
fn a_recoverer_can_die_at_any_step() {
    let mut lines = 0;
    for deed in DEATHS.iter().filter(|deed| is_of_writers(deed)) {
        let (scene, accepted) = frozen_orphan();
        let mut deaths = 0;
        for time in TIMES {
            let order = Order { deed: *deed, time };
            deaths += u32::from(!scene.spawn_as(Task::Recover, 0, Some(order)).await_end().1);
        }
        assert!(deaths > 1, "{deed:?}: {deaths} deaths");
        // Recoverers that repair what earlier ones began.
        for order in
            [Order { deed: Deed::DieHalfway, time: 1 }, Order { deed: Deed::Die(AppendStep::Repaired), time: 1 }]
        {
            scene.spawn_as(Task::Recover, 0, Some(order)).await_end();
            scene.spawn_as(Task::Recover, 0, Some(order)).await_end();
        }
        lines += recovered(&scene, &accepted, &format!("{deed:?}"));
    }
    println!("{lines} lines");
}
