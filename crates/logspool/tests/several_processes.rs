//! Several processes on one log file: killed at random moments, hanging, or unaware of each other.
//!
//! `LOGSPOOL_KILLS` sets the rounds, `LOGSPOOL_SEED` repeats a run.

use crate::orphan;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use logspool::sidecar;
use orphan::exact::{check_sizes, judge, rotated, text_of};
use orphan::seam::{Deed, Order};
use orphan::{Dice, Scene, Task, Witness, await_that};

#[test]
fn child_process() {
    orphan::child_main();
}

/// A round takes several processes, so there are half as many as for one process.
fn rounds() -> u32 {
    std::env::var("LOGSPOOL_KILLS").map_or(10, |rounds| rounds.parse().unwrap())
}

const PROCESSES: u32 = 4;

fn pause(dice: &mut Dice, bound_us: u64) {
    std::thread::sleep(Duration::from_micros(dice.below(bound_us)));
}

/// Four processes; two are killed. A fifth one starts and takes over while two continue; then all are killed.
fn kill_some(task: Task, scene: &Scene, dice: &mut Dice) -> HashMap<u32, u32> {
    let mut accepted = HashMap::new();
    let mut witnesses: Vec<Witness> = (0..PROCESSES).map(|who| scene.spawn_as(task, who, None)).collect();
    witnesses.iter().for_each(Witness::await_report);
    for _ in 0..2 {
        pause(dice, 20_000);
        let at = dice.below(witnesses.len() as u64) as usize;
        accepted.extend(witnesses.swap_remove(at).kill());
    }
    witnesses.push(scene.spawn_as(task, PROCESSES, None));
    witnesses.last().unwrap().await_report();
    pause(dice, 20_000);
    for witness in witnesses {
        accepted.extend(witness.kill());
    }
    accepted
}

#[test]
fn every_line_of_several_killed_processes_is_there_once() {
    let mut dice = Dice::new();
    let mut lines = 0;
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let accepted = kill_some(Task::Log, &scene, &mut dice);
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        assert_eq!(0, report.torn_lines, "round {round}");
        lines += judge(Task::Log, &std::fs::read_to_string(&scene.target).unwrap(), &accepted, &[]);
    }
    println!("{} rounds, {} kills, {lines} lines, none twice", rounds(), rounds() * (PROCESSES + 1));
}

#[test]
fn every_line_is_there_once_in_files_that_several_killed_processes_rotate() {
    let mut dice = Dice::new();
    let (mut lines, mut rotations) = (0, 0);
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let accepted = kill_some(Task::LogRotating, &scene, &mut dice);
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        assert_eq!(0, report.torn_lines, "round {round}");
        let files = rotated(&scene.target);
        lines += judge(Task::LogRotating, &text_of(&files), &accepted, &[]);
        check_sizes(&files);
        rotations += files.len() - 1;
    }
    println!("{} rounds, {} kills, {lines} lines, {rotations} rotations", rounds(), rounds() * (PROCESSES + 1));
}

#[test]
fn an_interrupted_rotation_is_finished_by_the_next_process() {
    for time in 1..=6 {
        let scene = Scene::new(own_test!("child_process"));
        let renamed = Order { deed: Deed::Die(sidecar::steps::AppendStep::Renamed), time };
        let (mut accepted, _) = scene.spawn_as(Task::LogRotating, 0, Some(renamed)).await_end();
        let second = scene.spawn_as(Task::LogRotating, 1, None);
        second.await_report();
        await_that("the second process has rotated", || rotated(&scene.target).len() > 6);
        accepted.extend(second.kill());
        scene.recover();

        let files = rotated(&scene.target);
        judge(Task::LogRotating, &text_of(&files), &accepted, &[]);
        check_sizes(&files);
    }
}

#[test]
fn a_writer_that_hangs_during_a_write_blocks_no_caller_and_is_recovered() {
    let scene = Scene::new(own_test!("child_process"));
    let hangs = scene.spawn_as(Task::Log, 0, Some(Order { deed: Deed::Hang, time: 3 }));
    let listed = || sidecar::list(scene.queue.path()).unwrap();
    await_that("the first process is inside", || {
        listed().iter().any(|listed| listed.inside.is_some_and(|inside| inside > Duration::from_millis(50)))
    });
    assert_eq!(vec![Some(scene.target.clone())], listed().iter().map(|listed| listed.path.clone()).collect::<Vec<_>>());
    let bytes = std::fs::metadata(&scene.target).unwrap().len();
    let second = scene.spawn_as(Task::LogAndWait, 1, None);
    // Its thousand calls have returned, though no record of them can be written.
    second.await_report();
    scene.await_overflow();
    assert_eq!(bytes, std::fs::metadata(&scene.target).unwrap().len());

    let mut accepted = hangs.kill();
    std::fs::write(scene.target.with_extension("go"), "").unwrap();
    accepted.extend(second.end());
    scene.recover();
    judge(Task::Log, &std::fs::read_to_string(&scene.target).unwrap(), &accepted, &[]);
    assert_eq!(Vec::<String>::new(), scene.names());
}

#[test]
fn with_a_foreign_writer_nothing_is_lost_and_a_kill_tears_one_line_at_most() {
    let mut dice = Dice::new();
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let done = AtomicBool::new(false);
        let (accepted, foreign) = std::thread::scope(|scope| {
            let foreign = scope.spawn(|| {
                let mut file = OpenOptions::new().append(true).create(true).open(&scene.target).unwrap();
                let mut count = 0;
                while !done.load(Ordering::Relaxed) {
                    file.write_all(format!("foreign {count} end\n").as_bytes()).unwrap();
                    count += 1;
                }
                count
            });
            let halfway = Order { deed: Deed::DieHalfway, time: 1 + dice.below(20) as u32 };
            let (accepted, _) = scene.spawn_as(Task::Log, 0, Some(halfway)).await_end();
            pause(&mut dice, 2_000);
            done.store(true, Ordering::Relaxed);
            (accepted, foreign.join().unwrap())
        });
        let report = scene.recover();

        let text = std::fs::read_to_string(&scene.target).unwrap();
        let mut times: HashMap<&str, u32> = HashMap::new();
        text.lines().for_each(|line| *times.entry(line).or_default() += 1);
        let is_ours = |line: &str| {
            let words: Vec<u32> = line.split(' ').take(2).filter_map(|word| word.parse().ok()).collect();
            matches!(words[..], [thread, index] if line == orphan::text(Task::Log, thread, index))
        };
        let is_foreign = |line: &str| {
            let number = line.strip_prefix("foreign ").and_then(|rest| rest.strip_suffix(" end"));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let torn: Vec<&&str> = times.keys().filter(|line| !is_ours(line) && !is_foreign(line)).collect();
        assert!(torn.len() <= 1, "round {round}: {torn:?}");
        assert!(report.torn_lines <= 1 && scene.names().is_empty(), "round {round}: {report:?}");
        for number in 0..foreign {
            // The line may come directly after a torn one, without a newline between them.
            let line = format!("foreign {number} end");
            let there = times.contains_key(&*line) || torn.iter().any(|torn| torn.ends_with(&line));
            assert!(there, "round {round}: foreign {number} is missing");
        }
        for (thread, newest) in &accepted {
            for index in 0..=*newest {
                let there = times.get(&*orphan::text(Task::Log, *thread, index));
                assert_eq!(Some(&1), there, "round {round}: {thread} {index}");
            }
        }
    }
}
