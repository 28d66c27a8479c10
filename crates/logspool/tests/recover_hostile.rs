//! A real orphan with changed bytes and cut files, thousands of times. Recovery never panics, never takes much memory,
//! delivers nothing twice by itself, and reports a reason for every file that it keeps.
//!
//! `LOGSPOOL_FUZZ` sets the number of rounds, `LOGSPOOL_SEED` repeats a run.

use crate::orphan;

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use logspool::recover::{self, Condition, Damage, Reason};
use logspool_lanes::segment::layout::{
    DEFINITIONS, Header, INDEXES_OFFSET, LANES_OFFSET, MANIFESTS, POINTS_OFFSET, RINGS, SINKS_OFFSET, Table,
};
use orphan::{Dice, Scene, Task, check};

#[test]
fn child_process() {
    orphan::child_main();
}

/// The files of one orphan: their bytes up to the last used one, and their lengths.
struct Specimen {
    files: BTreeMap<String, (Vec<u8>, u64)>,
    target: PathBuf,
    scene: Scene,
}

impl Specimen {
    /// An orphan with files of each kind. On a busy machine all records may be in overflow files before the kill.
    fn take() -> Self {
        let holds = |specimen: &Self, kind: &str| specimen.files.keys().any(|name| name.contains(kind));
        (0..100)
            .map(|_| Self::take_any())
            .find(|specimen| holds(specimen, ".over-") && holds(specimen, ".blob-"))
            .expect("one of a hundred is killed in time")
    }

    fn take_any() -> Self {
        let scene = Scene::new(own_test!("child_process"));
        let fifo = scene.freeze_full();
        let witness = scene.spawn(Task::LogLittle);
        witness.await_report();
        witness.kill();
        scene.thaw(fifo);
        let mut files = BTreeMap::new();
        for name in scene.names() {
            let path = scene.queue.path().join(&name);
            let mut bytes = std::fs::read(&path).unwrap();
            let length = bytes.len() as u64;
            if name.ends_with(".seg") {
                let at = offset_of!(Header, ring_end);
                bytes.truncate(u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()) as usize);
            }
            std::fs::remove_file(&path).unwrap();
            files.insert(name, (bytes, length));
        }
        Self { files, target: scene.target.clone(), scene }
    }

    fn put(&self, name: &str, bytes: &[u8], length: u64) {
        let path = self.scene.queue.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
    }

    /// Restores all files, with one of them changed.
    fn restore(&self, changed: &str, changed_bytes: &[u8], changed_length: u64) {
        for name in self.scene.names() {
            std::fs::remove_file(self.scene.queue.path().join(name)).unwrap();
        }
        let _ = std::fs::remove_file(&self.target);
        for (name, (bytes, length)) in &self.files {
            if name != changed {
                self.put(name, bytes, *length);
            }
        }
        if !changed.is_empty() {
            self.put(changed, changed_bytes, changed_length);
        }
    }

    fn recover(&self) -> recover::Report {
        self.scene.scan();
        let report = self.scene.recover();
        let failed = report.kept.iter().any(|kept| kept.reasons.contains(&Reason::Failed));
        assert!(!failed, "{report:?}");
        assert_eq!(self.scene.names().is_empty(), report.kept.is_empty(), "what stays is explained: {report:?}");
        report
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.target).unwrap_or_default()).into_owned()
    }
}

/// An offset in the segment: in most rounds one with a meaning.
fn place(dice: &mut Dice, length: usize) -> usize {
    let (start, bytes) = match dice.below(12) {
        0 => (0, size_of::<Header>() as u64),
        1 => (POINTS_OFFSET, 96),
        2 | 3 => (LANES_OFFSET, 8 * 512),
        4 => (SINKS_OFFSET, 3 * 512),
        5 => (INDEXES_OFFSET, 64),
        6 => (Table::Routes.index_offset() + 64 * dice.below(2) * (2048 * 8 / 64), 64),
        7 => (Table::Sinks.index_offset(), 64),
        8 => (MANIFESTS, 2048),
        9 => (DEFINITIONS, 512),
        _ => (RINGS, length as u64),
    };
    ((start + dice.below(bytes)) as usize) % length.max(1)
}

fn change(dice: &mut Dice, bytes: &mut [u8], segment: bool) {
    let at = if segment { place(dice, bytes.len()) } else { dice.below(bytes.len().max(1) as u64) as usize };
    if bytes.is_empty() {
        return;
    }
    match dice.below(4) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = dice.below(256) as u8,
        _ => {
            let word = match dice.below(8) {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << 62,
                3 => 1 << 31,
                4 => dice.below(bytes.len() as u64 + 64),
                5 => dice.below(1 << 20) & !7,
                6 => RINGS + dice.below(1 << 20),
                _ => dice.below(u64::MAX),
            };
            let start = (at & !7).min(bytes.len().saturating_sub(8));
            let part = &mut bytes[start..];
            let count = part.len().min(8);
            part[..count].copy_from_slice(&word.to_ne_bytes()[..count]);
        }
    }
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_changed_orphan_never_harms_its_recoverer() {
    let rounds: u32 = std::env::var("LOGSPOOL_FUZZ").map_or(1000, |rounds| rounds.parse().unwrap());
    let mut dice = Dice::new();
    let specimen = Specimen::take();
    specimen.restore("", &[], 0);
    let whole = specimen.recover();
    let promised = [(0, 399)].into();
    assert_eq!(0, check(Task::LogLittle, &specimen.text(), &promised).repeated);
    assert!(whole.kept.is_empty());

    let names: Vec<&String> = specimen.files.keys().filter(|name| !name.ends_with(".lock")).collect();
    let segment = *names.iter().find(|name| name.ends_with(".seg")).unwrap();
    let (mut kept, mut unnoticed, mut lines) = (0, 0, 0);
    for round in 0..rounds {
        // Two thirds of the rounds change the segment.
        let name = if dice.below(3) > 0 { segment } else { names[dice.below(names.len() as u64) as usize] };
        let (mut bytes, mut length) = specimen.files[name].clone();
        if dice.below(6) == 0 {
            length = dice.below(bytes.len() as u64 + 1);
            bytes.truncate(length as usize);
        }
        for _ in 0..=dice.below(3) {
            change(&mut dice, &mut bytes, name == segment);
        }
        specimen.restore(name, &bytes, length);
        let report = specimen.recover();
        kept += u32::from(!report.kept.is_empty());
        lines += report.records();
        // A position or checkpoint that was changed to another plausible one cannot be noticed: there are no checksums
        // here.
        unnoticed += u32::from(report.kept.is_empty() && report.records() < 400);
        let again = specimen.recover();
        assert_eq!(0, again.records(), "round {round}, {name}: delivered twice, {again:?}");
    }
    println!(
        "{rounds} rounds: {kept} kept, {unnoticed} short unnoticed, {lines} records, peak {} MiB",
        peak_memory() >> 20
    );
    assert!(peak_memory() < 512 << 20);
}

/// All offsets with `LOGSPOOL_FAULTS=full` up to 64 Ki, otherwise some three hundred of them, evenly spread.
fn some(all: Vec<usize>) -> impl Iterator<Item = usize> {
    let full = std::env::var("LOGSPOOL_FAULTS").is_ok_and(|faults| faults == "full");
    let step = (all.len() / if full { 1 << 16 } else { 300 }).max(1);
    all.into_iter().step_by(step)
}

/// Offsets in blocks that contain data: most of a segment was never used.
fn used(bytes: &[u8]) -> Vec<usize> {
    let is_used = |at: &usize| bytes[at & !63..].iter().take(64).any(|byte| *byte != 0);
    (0..bytes.len()).filter(is_used).collect()
}

/// The outcomes of recoveries of changed orphans.
#[derive(Debug, Default)]
struct Outcomes {
    tried: u32,
    /// Every line was delivered.
    whole: u32,
    /// One line is missing or changed.
    one_hit: u32,
    /// More than one line is missing; recovery kept files and reports the reason.
    explained: u32,
    /// More than one line is missing without a report: a position was changed to another plausible one.
    unnoticed: u32,
}

impl Outcomes {
    fn count(&mut self, specimen: &Specimen, name: &str, bytes: &[u8], length: u64) {
        specimen.restore(name, bytes, length);
        // Must neither fail nor panic.
        let report = specimen.recover();
        let text = specimen.text();
        let there: std::collections::HashSet<&str> = text.lines().collect();
        let missing = (0..400).filter(|index| !there.contains(&*orphan::text(Task::LogLittle, 0, *index))).count();
        self.tried += 1;
        match missing {
            0 => self.whole += 1,
            1 => self.one_hit += 1,
            _ if !report.kept.is_empty() || report.torn_lines > 0 => self.explained += 1,
            _ => self.unnoticed += 1,
        }
        let again = specimen.recover();
        assert_eq!(0, again.records(), "{name}: delivered twice, {again:?}");
    }
}

#[test]
fn one_changed_byte_anywhere_loses_only_the_data_that_it_is_in() {
    let specimen = Specimen::take();
    for kind in [".seg", ".over-", ".blob-"] {
        let (name, (bytes, length)) = specimen.files.iter().find(|(name, _)| name.contains(kind)).unwrap();
        let places = used(bytes);
        let all = places.len();
        let mut outcomes = Outcomes::default();
        for at in some(places) {
            let mut changed = bytes.clone();
            changed[at] ^= 0xff;
            outcomes.count(&specimen, name, &changed, *length);
        }
        println!("{kind}: {} changed bytes of {all}: {outcomes:?}", outcomes.tried);
        // There are no checksums here: a head or a position may be hit. A byte of a line costs that line.
        let few = outcomes.tried / if kind == ".seg" { 4 } else { 20 };
        assert!(outcomes.unnoticed <= few, "{kind}: {outcomes:?}");
    }
}

#[test]
fn a_file_cut_at_any_length_never_harms_its_recoverer() {
    let specimen = Specimen::take();
    for kind in [".seg", ".over-", ".blob-"] {
        let (name, (bytes, _)) = specimen.files.iter().find(|(name, _)| name.contains(kind)).unwrap();
        let mut outcomes = Outcomes::default();
        for length in some((0..bytes.len()).collect()) {
            outcomes.count(&specimen, name, &bytes[..length], length as u64);
        }
        println!("{kind}: {} lengths of {}: {outcomes:?}", outcomes.tried, bytes.len());
        assert_eq!(0, outcomes.unnoticed, "{kind}: {outcomes:?}");
    }
}

/// Replaces the definition of format `format` of a dead process by the one of format `other`.
fn exchange_format(scene: &Scene, format: u32, other: u32) {
    let name = scene.names().into_iter().find(|name| name.ends_with(".seg")).unwrap();
    let segment = std::fs::OpenOptions::new().read(true).write(true).open(scene.queue.path().join(name)).unwrap();
    let index = |id: u32| Table::Formats.index_offset() + 8 * Table::Formats.slot(id) as u64;
    let mut word = [0; 8];
    segment.read_exact_at(&mut word, index(other)).unwrap();
    segment.write_all_at(&word, index(format)).unwrap();
}

#[test]
fn a_record_shown_thousands_of_times_takes_no_memory_and_loses_only_itself() {
    for which in [1, 2] {
        let scene = Scene::new(own_test!("child_process"));
        let fifo = scene.freeze_full();
        let witness = scene.spawn(Task::LogOversized);
        (0..3).for_each(|_| witness.await_report());
        let formats = witness.kill();
        scene.thaw(fifo);
        exchange_format(&scene, formats[&0], formats[&which]);
        assert_eq!(1, scene.spawn(Task::RecoverInLittle).end()[&0], "the short one is delivered");

        assert_eq!(1, std::fs::read_to_string(&scene.target).unwrap().lines().count());
        let [orphan] = &scene.scan()[..] else { panic!("the long one is not forgotten") };
        assert_eq!(Condition::Damaged(Damage { bytes: 0, records: 1 }), orphan.condition);
    }
}
