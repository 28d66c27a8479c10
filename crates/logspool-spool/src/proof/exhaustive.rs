//! Short programs, crashed after every call in every way. Each pending write is kept or dropped. For each folder, each
//! number of pending operations on names is kept.

use super::generator::Random;
use super::life::{Plan, open};
use super::model::{Ledger, PLAIN, Promises, SERVICE};
use super::sim_disk::{Faults, Simulation};
use super::simulated_files::{SimulatedFiles, Write, WriteOutcome};
use super::trial::{Count, Trials};
use crate::disk::Operation;
use crate::options::{Options, WhenFull};
use crate::spool::Batch;

/// Up to this number of pending writes, all subsets are tried. With more writes, equally many random subsets are tried.
const MAX_WRITES: usize = 10;
/// Maximum number of combinations of kept names for each state.
const MAX_NAMINGS: usize = 16;

/// Each letter is a call. `a` appends, `s` syncs, `c` stores a checkpoint, `o` opens the spool again after a kill. `d`:
/// both consumers read and ack everything; `p`: only the plain consumer does. Four letters make the next call of a kind
/// fail: `f` a sync, `w` a write, `n` a sync of a folder, `r` a rename.
const PROGRAMS: [(&str, WhenFull, usize); 12] = [
    ("aasasaa", WhenFull::RefuseNew, 1),
    ("asaaasaaasaa", WhenFull::RefuseNew, 1),
    ("aasdcaasdcaaasdcaaas", WhenFull::RefuseNew, 1),
    ("aasaafsaas", WhenFull::RefuseNew, 1),
    ("aafsasdcaas", WhenFull::RefuseNew, 2),
    ("aaswaas", WhenFull::RefuseNew, 2),
    ("aaaaasaaaaaasaaaaaas", WhenFull::DropOldest, 1),
    ("aasafnsaas", WhenFull::RefuseNew, 1),
    ("aasoaasoaas", WhenFull::RefuseNew, 1),
    ("aafoaas", WhenFull::RefuseNew, 1),
    ("aaspcfcaspc", WhenFull::RefuseNew, 1),
    ("aasraaasrdcaas", WhenFull::RefuseNew, 2),
];

fn plan(when_full: WhenFull, folders: usize) -> Plan {
    Plan {
        options: Options { segment_bytes: 1536, max_bytes: 5 * 1536, when_full, max_unsynced_bytes: 100_000 },
        folders,
        max_payload: 200,
        faults: Faults { reads_see_failed: true, ..Faults::default() },
        lives: 1,
        steps: 0,
        images: 1,
    }
}

/// Runs one program and crashes it after every call. Returns the number of crash states.
pub fn run_program(index: usize) -> Result<Count, String> {
    let (program, when_full, folders) = PROGRAMS[index];
    let plan = plan(when_full, folders);
    let simulation = Simulation::new(SimulatedFiles::default(), Random::new(index as u64));
    let mut ledger = Ledger { when_full, ..Ledger::default() };
    simulation.borrow_mut().faults = plan.faults;
    let text = |error: crate::SpoolError| error.to_string();
    let mut spool = open(&simulation, &plan).map_err(text)?;
    for consumer in [SERVICE, PLAIN] {
        spool.add_consumer(consumer).map_err(text)?;
    }
    spool.checkpoint().map_err(text)?;
    simulation.borrow_mut().states = Some(Vec::new());
    for step in program.chars() {
        let update_promises = |change: &dyn Fn(&mut Promises)| {
            let simulation = &mut *simulation.borrow_mut();
            change(&mut simulation.promises);
            simulation.keep();
        };
        match step {
            'a' => {
                let bytes = 100 + 20 * (ledger.attempts.len() % 3);
                let first = spool.next();
                let index = ledger.attempt(first, 2, bytes);
                let batch = Batch { first, count: 2, codec: 0, payload: &ledger.attempts[index].payload };
                if let Ok(end) = spool.append(&batch) {
                    ledger.accepted.insert(first, index);
                    update_promises(&|promises| promises.accepted = end);
                }
            }
            's' => {
                if let Ok(end) = spool.sync() {
                    update_promises(&|promises| promises.durable = end);
                }
            }
            'c' => {
                let acked = simulation.borrow().promises.acked;
                if spool.checkpoint().is_ok() {
                    update_promises(&|promises| promises.saved = acked);
                }
            }
            'd' | 'p' => {
                let consumers: &[u64] = if step == 'd' { &[SERVICE, PLAIN] } else { &[PLAIN] };
                for consumer in consumers {
                    while spool.read(*consumer).map_err(text)?.is_some() {}
                    let end = spool.next();
                    update_promises(&|promises| match *consumer {
                        SERVICE => promises.delivered = end,
                        _ => promises.acked = end,
                    });
                    spool.ack(*consumer, end).map_err(text)?;
                }
            }
            'o' => {
                drop(spool);
                spool = open(&simulation, &plan).map_err(text)?;
                let durable = spool.durable();
                update_promises(&|promises| promises.durable = durable);
            }
            _ => {
                let operation = match step {
                    'f' => Operation::Sync,
                    'w' => Operation::Write,
                    'n' => Operation::SyncFolder,
                    _ => Operation::Rename,
                };
                simulation.borrow_mut().fails_next = Some(operation);
            }
        }
    }
    let states = simulation.borrow_mut().states.take().unwrap_or_default();
    crash_everywhere(&plan, &ledger, &states).map_err(|what| format!("{program}: {what}"))
}

fn crash_everywhere(plan: &Plan, ledger: &Ledger, states: &[(SimulatedFiles, Promises)]) -> Result<Count, String> {
    let mut generator = Random::new(1);
    let mut trials = Trials::new(plan, ledger);
    for (files, promises) in states {
        let namings = namings(&files.pending_names());
        let writes = files.pending_writes();
        for naming in &namings {
            for subset in 0..1_u64 << writes.min(MAX_WRITES) {
                let kept = if writes > MAX_WRITES { generator.next() } else { subset };
                let fate = |_: &Write, index: usize| {
                    if kept >> (index % 64) & 1 == 1 { WriteOutcome::Kept } else { WriteOutcome::Dropped }
                };
                let image = files.crash_with(naming, fate);
                trials.open_on(image, promises, promises.durable, &mut generator)?;
            }
        }
    }
    Ok(trials.count)
}

/// Every combination of how many operations are kept, with one number for each folder.
fn namings(pending: &[u64]) -> Vec<Vec<u64>> {
    let mut namings = vec![Vec::new()];
    for count in pending {
        let longer = |naming: &Vec<u64>| (0..=*count).map(|kept| [&naming[..], &[kept]].concat()).collect::<Vec<_>>();
        namings = namings.iter().flat_map(longer).collect();
    }
    // Keeps the last combinations. They keep more operations, so they matter most.
    namings.split_off(namings.len().saturating_sub(MAX_NAMINGS))
}

#[test]
fn short_programs_keep_their_promises_in_every_crash() {
    let (mut count, mut different) = (0, 0);
    for index in 0..PROGRAMS.len() {
        let counted = run_program(index).unwrap_or_else(|what| panic!("{what}"));
        count += counted.states;
        different += counted.different;
    }
    println!("{count} crash states of {} programs, {different} of them different", PROGRAMS.len());
    assert!(count > 2_000, "only {count} states: the programs do too little");
}

/// Runs all programs until one breaks a promise.
pub fn first_violation() -> Option<String> {
    (0..PROGRAMS.len()).find_map(|index| run_program(index).err())
}
