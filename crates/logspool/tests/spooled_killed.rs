//! Processes killed while a spool holds records of theirs: recovery delivers them in order, and removes the spool.
//!
//! `LOGSPOOL_KILLS` sets the rounds, `LOGSPOOL_SEED` repeats a run.

use crate::orphan;

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use logspool::recover::{Reason, Report, recover_spools};
use orphan::{Checked, Dice, Scene, Task, check, check_with_cuts, walk};

#[test]
fn child_process() {
    orphan::child_main();
}

fn rounds() -> u32 {
    std::env::var("LOGSPOOL_KILLS").map_or(5, |rounds| rounds.parse().unwrap())
}

/// As for a pipe in `recover_killed.rs`: the part that it took of the unfinished batch is delivered again.
const MAX_REPEATED: u64 = 64 * 1024 / 40 + 1;

#[test]
fn records_in_a_spool_survive_a_kill() {
    let mut dice = Dice::new();
    let mut sum = Checked::default();
    let mut spooled = 0;
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let fifo = scene.freeze();
        let witness = scene.spawn(Task::LogSpooled);
        scene.await_spool();
        std::thread::sleep(Duration::from_micros(dice.below(200_000)));
        let witnessed = witness.kill();
        spooled += walk(&scene.spool_folder()).len();
        let mut text = scene.thaw(fifo);
        // The reader of a pipe sees the torn line, because it cannot be repaired there.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        assert_eq!(1, scene.scan().len(), "a look changes nothing");
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        assert_eq!(0, walk(&scene.spool_folder()).len(), "round {round}: the spool is gone");
        text += &std::fs::read_to_string(&scene.target).unwrap();
        let checked = check(Task::LogSpooled, &text, &witnessed);
        assert!(checked.repeated <= MAX_REPEATED, "round {round}: {checked:?}");
        sum = Checked { lines: sum.lines + checked.lines, repeated: sum.repeated + checked.repeated };
    }
    assert!(spooled > 0);
    println!("spool: {} kills, {} lines, {} twice", rounds(), sum.lines, sum.repeated);
}

#[test]
fn a_kill_while_a_spool_drains_loses_nothing() {
    let mut dice = Dice::new();
    let (mut lines, mut recovered) = (0, 0);
    for round in 0..rounds() {
        let scene = Scene::new(own_test!("child_process"));
        let mut fifo = scene.freeze();
        let witness = scene.spawn(Task::LogSpooled);
        scene.await_spool();
        std::thread::sleep(Duration::from_millis(50));
        // A reader that reads as fast as it can, for a random time.
        let mut text = Vec::new();
        let until = std::time::Instant::now() + Duration::from_micros(dice.below(200_000));
        let mut buffer = vec![0; 64 * 1024];
        while std::time::Instant::now() < until {
            if let Ok(count) = fifo.read(&mut buffer) {
                text.extend_from_slice(&buffer[..count]);
            }
        }
        let witnessed = witness.kill();
        let mut text = String::from_utf8(text).unwrap() + &scene.thaw(fifo);
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        let report = scene.recover();

        assert_eq!((0, Vec::<String>::new()), (report.kept.len(), scene.names()), "round {round}: {report:?}");
        // If everything had been read there is no file.
        text += &std::fs::read_to_string(&scene.target).unwrap_or_default();
        recovered += report.records();
        let checked = check(Task::LogSpooled, &text, &witnessed);
        assert!(checked.repeated <= MAX_REPEATED, "round {round}: {checked:?}");
        lines += checked.lines;
    }
    println!("draining spool: {} kills, {lines} lines, {recovered} of them by recovery", rounds());
}

#[test]
fn after_a_reboot_the_spool_is_delivered_without_its_segment() {
    deliver_without_segment(|target| target[..8].fill(b'0'));
}

#[test]
fn a_spool_whose_segment_is_gone_is_delivered_even_without_a_reboot() {
    deliver_without_segment(|_| {});
}

/// More than a thousand records take.
const SPOOLED_BYTES: usize = 200_000;

/// A spool whose process was killed, and the text that the process had written before.
fn killed_with_spool() -> (Scene, String) {
    let scene = Scene::new(own_test!("child_process"));
    let fifo = scene.freeze();
    let witness = scene.spawn(Task::LogSpooled);
    scene.await_spooled(SPOOLED_BYTES);
    witness.kill();
    let mut text = scene.thaw(fifo);
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    (scene, text)
}

/// Removes the files on tmpfs, as a restart of the machine does.
fn lose_segment(scene: &Scene) {
    for name in scene.names() {
        std::fs::remove_file(scene.queue.path().join(name)).unwrap();
    }
}

/// Checks a delivery without a segment. `start_anew` changes the id of the machine's start in the files of the spool.
fn deliver_without_segment(start_anew: fn(&mut [u8])) {
    let (scene, mut text) = killed_with_spool();
    let spools = scene.spool_folder();
    let recover = || recover_spools(&spools, None, |path| path == scene.target).unwrap();
    let before = walk(&spools);
    assert_eq!(Report::default(), recover(), "the segment may be there, it tells more");
    assert_eq!(before, walk(&spools));

    // The machine may also have started again, with another id of its start.
    lose_segment(&scene);
    let targets: Vec<_> = before.iter().filter(|path| path.ends_with("target")).collect();
    assert_eq!(1, targets.len());
    let mut target = std::fs::read(targets[0]).unwrap();
    start_anew(&mut target);
    std::fs::write(targets[0], target).unwrap();
    let process = targets[0].ancestors().nth(2).and_then(|path| path.file_name()).unwrap();
    let own = recover_spools(&spools, process.to_str(), |_| true).unwrap();
    assert_eq!(Report::default(), own, "a process's own spools are no leftovers");
    let unwanted = recover_spools(&spools, None, |_| false).unwrap();
    assert!(matches!(&unwanted.kept[0].reasons[..], [Reason::Unwanted { records: 1.., .. }]), "{unwanted:?}");
    let report = recover();

    assert_eq!((0, 1), (report.kept.len(), report.removed.len()), "{report:?}");
    assert_eq!(0, walk(&spools).len());
    text += &std::fs::read_to_string(&scene.target).unwrap();
    let checked = check(Task::LogSpooled, &text, &HashMap::new());
    assert!(report.records() > 1000 && checked.lines >= report.records(), "{report:?} {checked:?}");
    assert!(checked.repeated <= MAX_REPEATED, "{checked:?}");
    assert_eq!(Report::default(), recover());
}

#[test]
fn records_that_a_full_disk_accepted_are_not_repeated_by_the_next_try() {
    let (scene, mut text) = killed_with_spool();
    lose_segment(&scene);
    // Longer than any file of the spool, because the child has one limit for all files.
    let head = 4 << 30;
    let file = std::fs::File::create(&scene.target).unwrap();
    file.write_all_at(b"\n", head - 1).unwrap();
    let taken = u64::from(scene.spawn(Task::RecoverSpools).end()[&0]);
    let report = recover_spools(&scene.spool_folder(), None, |path| path == scene.target).unwrap();

    assert_eq!((0, 1), (report.kept.len(), report.removed.len()), "{report:?}");
    let mut written = std::fs::File::open(&scene.target).unwrap();
    written.seek(SeekFrom::Start(head)).unwrap();
    written.read_to_string(&mut text).unwrap();
    // One chunk may be cut by the kill, and one by the lack of room.
    let checked = check_with_cuts(Task::LogSpooled, &text, &HashMap::new(), 2);
    println!("{taken} records while the disk was full, {} after it, {checked:?}", report.records());
    assert!(taken > 2 * MAX_REPEATED && checked.repeated <= 2 * MAX_REPEATED, "{taken}, {checked:?}");
}
