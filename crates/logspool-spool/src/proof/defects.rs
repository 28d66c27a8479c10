//! Tests the proof itself: every planted defect is found within a small number of crash states.

use super::{damage, exhaustive, random};
use crate::defect::{Defect, plant};

/// Maximum number of crash states within which a defect must be found.
const STATES: u64 = 100_000;

/// Plants a defect and looks for a violation. Returns the number of states that were checked, and the violation.
fn find_violation(defect: Defect) -> Option<(u64, String)> {
    plant(Some(defect));
    let found = match defect {
        // These defects show only on a disk that damages data, or in a folder whose checkpoint is missing. A crash
        // causes neither.
        Defect::CrcWithoutId => damage::begin_anew_among_spares().err().map(|what| (1, what)),
        Defect::StopAtDamage => damage::flip_bytes(1, 509).err().map(|what| (1, what)),
        _ => find_crash_violation(),
    };
    plant(None);
    found
}

fn find_crash_violation() -> Option<(u64, String)> {
    let mut states = 0;
    for seed in 1.. {
        match random::run_seed(seed) {
            Ok(count) => states += count.states,
            Err(violation) => return Some((states, violation.what)),
        }
        if states > STATES {
            break;
        }
    }
    exhaustive::first_violation().map(|what| (states, what))
}

#[test]
fn every_planted_defect_is_found() {
    let mut unnoticed = Vec::new();
    for defect in Defect::ALL {
        match find_violation(defect) {
            Some((states, what)) => println!("{defect:?}: after {states} crash states: {what}"),
            None => unnoticed.push(defect),
        }
    }

    assert_eq!(Vec::<Defect>::new(), unnoticed, "nothing notices these");
}
