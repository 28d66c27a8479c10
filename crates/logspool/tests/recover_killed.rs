//! Processes killed at a random moment: recovery delivers every accepted record to the file.
//!
//! `LOGSPOOL_KILLS` sets the rounds of each kind, `LOGSPOOL_SEED` repeats a run.

use crate::orphan;

use std::time::Duration;

use orphan::exact::judge;
use orphan::{Checked, Dice, Scene, Task, await_that, check};

#[test]
fn child_process() {
    orphan::child_main();
}

fn rounds() -> u32 {
    std::env::var("LOGSPOOL_KILLS").map_or(20, |rounds| rounds.parse().unwrap())
}

/// A pipe has no sidecar: the part that it took of the unfinished batch is delivered again. A batch is 64 KiB of
/// records, of at least 40 bytes each here.
const MAX_REPEATED: u64 = 64 * 1024 / 40 + 1;

fn kill_and_recover(task: Task) {
    let mut dice = Dice::new();
    let (mut lines, mut delivered) = (0, 0);
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let witness = scene.spawn(task);
        witness.await_report();
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        let witnessed = witness.kill();
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        assert_eq!(0, report.torn_lines, "round {round}: {report:?}");
        lines += judge(task, &std::fs::read_to_string(&scene.target).unwrap(), &witnessed, &[]);
        delivered += report.records();
    }
    println!("{task:?}: {} kills, {lines} lines, {delivered} of them by recovery, none twice", rounds());
}

#[test]
fn every_accepted_line_survives_a_kill() {
    kill_and_recover(Task::Log);
}

#[test]
fn every_line_of_threads_that_share_lanes_survives_a_kill() {
    kill_and_recover(Task::LogFromMany);
}

#[test]
fn large_records_survive_a_kill() {
    kill_and_recover(Task::LogLarge);
}

#[test]
fn records_that_a_frozen_sink_did_not_accept_survive_a_kill() {
    let mut dice = Dice::new();
    let mut sum = Checked::default();
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let fifo = scene.freeze();
        let witness = scene.spawn(Task::Log);
        scene.await_overflow();
        std::thread::sleep(Duration::from_micros(dice.below(50_000)));
        let witnessed = witness.kill();
        let mut text = scene.thaw(fifo);
        // The reader of a pipe sees the torn line, because it cannot be repaired there.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        text += &std::fs::read_to_string(&scene.target).unwrap();
        let checked = check(Task::Log, &text, &witnessed);
        assert!(checked.repeated <= MAX_REPEATED, "round {round}: {checked:?}");
        sum = Checked { lines: sum.lines + checked.lines, repeated: sum.repeated + checked.repeated };
    }
    println!("frozen sink: {} kills, {} lines, {} twice", rounds(), sum.lines, sum.repeated);
}

#[test]
fn another_recoverer_continues_after_a_killed_one() {
    let mut dice = Dice::new();
    let (mut lines, mut interrupted) = (0, 0);
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let fifo = scene.freeze_full();
        let witness = scene.spawn(Task::Log);
        scene.await_overflow();
        std::thread::sleep(Duration::from_millis(30));
        let witnessed = witness.kill();
        scene.thaw(fifo);
        let recoverer = scene.spawn(Task::Recover);
        await_that("the recoverer has begun", || scene.target.exists());
        std::thread::sleep(Duration::from_micros(dice.below(10_000)));
        recoverer.kill();
        interrupted += u32::from(!scene.names().is_empty());
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        lines += judge(Task::Log, &std::fs::read_to_string(&scene.target).unwrap(), &witnessed, &[]);
    }
    println!("recoverer: {} kills, {interrupted} at work, {lines} lines, none twice", rounds());
}
