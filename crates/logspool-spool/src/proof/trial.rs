//! Makes crashes from the states of one life, and opens the spool on the images that they leave.
//!
//! Many crashes leave the same image. Opening the same image has the same result, because the random draws decide only
//! the faults and the new ids. So an image is opened once for each cursor that its service may have. The result is then
//! checked for each crash that leaves the image, against the promises before that crash. Two images are the same if all
//! their bytes are the same.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::generator::Random;
use super::life::{Plan, open};
use super::model::{Expected, Ledger, Promises, ReadResult, Step, look, observe};
use super::sim_disk::{Faults, SimDisk, Simulation};
use super::simulated_files::{Change, SimulatedFiles};
use crate::options::WhenFull;

/// Seeds for the ids made by the first and by the second opening. They differ, so that no id occurs twice on a disk.
const FIRST_IDS: u64 = 11;
const LAST_IDS: u64 = 7;

/// Number of all crash states, and number of those that differ within a life by image or promises.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    pub states: u64,
    pub different: u64,
}

/// The result of opening an image for the first time.
struct Opened {
    seen: Rc<ReadResult>,
    image: SimulatedFiles,
    /// The changes that the opening made to the files, and the number of changes done after each disk call.
    changes: Vec<Change>,
    calls: Vec<usize>,
    files: SimulatedFiles,
    /// The records read after a second opening.
    again: OnceCell<ReadResult>,
}

/// An image, and the position of the service in it.
struct Case<T> {
    image: SimulatedFiles,
    delivered: u64,
    /// Promises before each crash that left the image, each with its settled number.
    promised: Vec<(Promises, u64)>,
    outcome: OnceCell<Rc<T>>,
}

/// The cases so far, keyed by the hash of their images.
struct Cases<T>(HashMap<u64, Vec<Case<T>>>);

impl<T> Cases<T> {
    /// Looks up the result for an image that was opened before.
    fn known(&self, image: &SimulatedFiles, delivered: u64) -> Option<&T> {
        let mut cases = self.0.get(&image.hash())?.iter();
        let case = cases.find(|case| case.delivered == delivered && case.image.is_same(image))?;
        case.outcome.get().map(|outcome| &**outcome)
    }

    fn find(&mut self, image: SimulatedFiles, delivered: u64) -> &mut Case<T> {
        let cases = self.0.entry(image.hash()).or_default();
        let known = cases.iter().position(|case| case.delivered == delivered && case.image.is_same(&image));
        let index = known.unwrap_or_else(|| {
            cases.push(Case { image, delivered, promised: Vec::new(), outcome: OnceCell::new() });
            cases.len() - 1
        });
        &mut cases[index]
    }
}

/// The value of `cell`; `make` computes it at the first call.
fn once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T, String>) -> Result<&T, String> {
    if cell.get().is_none() {
        let made = make()?;
        return Ok(cell.get_or_init(|| made));
    }
    Ok(cell.get().expect("it was looked at above"))
}

/// Makes the crashes from the states of one life.
pub struct Trials<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger,
    first: Cases<Opened>,
    second: Cases<ReadResult>,
    pub count: Count,
}

impl<'a> Trials<'a> {
    pub fn new(plan: &'a Plan, ledger: &'a Ledger) -> Self {
        let (first, second) = (Cases(HashMap::new()), Cases(HashMap::new()));
        Self { plan, ledger, first, second, count: Count::default() }
    }

    /// Crashes the disk from a state, by a kill or a power cut.
    pub fn look_at(
        &mut self,
        files: &SimulatedFiles,
        promises: &Promises,
        generator: &mut Random,
    ) -> Result<(), String> {
        // After a failed sync, bytes that reads returned from the cache may be lost when the process ends.
        let forgets = self.plan.faults.sync > 0 && !self.plan.faults.reads_see_failed;
        if generator.below(5) == 0 {
            let settled = if forgets { promises.durable } else { promises.accepted };
            self.open_on(files.clone(), promises, settled, generator).map_err(|what| format!("after a kill: {what}"))
        } else {
            let image = files.crash(generator);
            self.open_on(image, promises, promises.durable, generator)
                .map_err(|what| format!("after a power cut: {what}"))
        }
    }

    /// Opens the spool on a crash image. Every batch accepted below `settled` must be delivered.
    pub fn open_on(
        &mut self,
        image: SimulatedFiles,
        promises: &Promises,
        settled: u64,
        generator: &mut Random,
    ) -> Result<(), String> {
        let (kind, draws) = (generator.below(8), generator.next());
        self.count.states += 1;
        let (plan, ledger) = (self.plan, self.ledger);
        let case = self.first.find(image, promises.delivered);
        if !case.promised.contains(&(*promises, settled)) {
            case.promised.push((*promises, settled));
            self.count.different += 1;
        }
        let opened = if kind == 0 && !plan.faults.are_none() {
            // The faults are drawn again for each opening.
            Rc::new(open_first(plan, ledger, case.image.clone(), promises.delivered, plan.faults, Random::new(draws))?)
        } else {
            let image = || case.image.clone();
            let open =
                || open_first(plan, ledger, image(), promises.delivered, Faults::default(), Random::new(FIRST_IDS));
            once(&case.outcome, || open().map(Rc::new))?.clone()
        };
        let expected = Expected { ledger, settled, present: None };
        expected.check_promises(&opened.seen, promises)?;
        match kind {
            0..=3 => self.crash_again(&opened, promises, settled, generator),
            4 | 5 => {
                let again = || open_last(plan, ledger, opened.files.clone(), promises.delivered, Random::new(LAST_IDS));
                let second = once(&opened.again, again)?;
                expected.check_promises(second, promises)?;
                if !second.is_like(&opened.seen) {
                    return Err(format!("I5: first {:?}, then {second:?}", opened.seen));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Crashes from a state during the opening, and from the state after it, with the promises made up to that moment.
    fn crash_again(
        &mut self,
        opened: &Opened,
        promises: &Promises,
        settled: u64,
        generator: &mut Random,
    ) -> Result<(), String> {
        let Opened { seen, image, changes, calls, files, .. } = opened;
        let ledger = self.ledger;
        if !calls.is_empty() {
            let call = calls[generator.below(calls.len() as u64) as usize];
            let mut files = image.clone();
            changes[..call].iter().for_each(|change| files.apply(change));
            let again = self.open_again(files.crash(generator), promises.delivered)?;
            // A power cut after a kill removes everything that was not durable.
            let expected = Expected { ledger, settled: settled.min(promises.durable), present: None };
            expected.check_promises(&again, promises).map_err(|what| format!("I6: {what}"))?;
        }
        let again = self.open_again(files.crash(generator), promises.delivered)?;
        let expected = Expected { ledger, settled: seen.durable, present: Some(&seen.present) };
        let what = "I6: durable after the first opening";
        expected.check_promises(&again, promises).map_err(|error| format!("{what}: {error}"))
    }

    fn open_again(&mut self, image: SimulatedFiles, delivered: u64) -> Result<Rc<ReadResult>, String> {
        let (plan, ledger) = (self.plan, self.ledger);
        if let Some(opened) = self.first.known(&image, delivered) {
            return Ok(opened.seen.clone());
        }
        let case = self.second.find(image, delivered);
        let open = || open_last(plan, ledger, case.image.clone(), delivered, Random::new(LAST_IDS)).map(Rc::new);
        once(&case.outcome, open).cloned().map_err(|error| format!("I6: {error}"))
    }
}

/// Opens an image that will be crashed again.
fn open_first(
    plan: &Plan,
    ledger: &Ledger,
    image: SimulatedFiles,
    delivered: u64,
    faults: Faults,
    generator: Random,
) -> Result<Opened, String> {
    let simulation = Simulation::new(SimulatedFiles { changes: Some(Vec::new()), ..image.clone() }, generator);
    // Without faults a `View` shows the records that an opening finds.
    let is_looked_at = faults.are_none() && plan.folders == 1;
    let shown = is_looked_at.then(|| look(SimDisk::new(&simulation, "first"), ledger, delivered));
    {
        let simulation = &mut *simulation.borrow_mut();
        simulation.faults = faults;
    }
    let mut spool = open(&simulation, plan).map_err(|error| format!("I4: {error}"))?;
    let calls = std::mem::take(&mut simulation.borrow_mut().calls);
    let seen = Rc::new(observe(&mut spool, ledger, delivered)?);
    if let Some(shown) = shown {
        agrees(plan, &shown?, &seen)?;
    }
    let mut files = std::mem::take(&mut simulation.borrow_mut().files);
    let changes = files.changes.take().unwrap_or_default();
    Ok(Opened { seen, image, changes, calls, files, again: OnceCell::new() })
}

/// Opens an image for the last time.
fn open_last(
    plan: &Plan,
    ledger: &Ledger,
    mut image: SimulatedFiles,
    delivered: u64,
    generator: Random,
) -> Result<ReadResult, String> {
    image.is_last = true;
    let simulation = Simulation::new(image, generator);
    let mut spool = open(&simulation, plan).map_err(|error| format!("I4: {error}"))?;
    observe(&mut spool, ledger, delivered)
}

/// Whether a `View` showed the records that the service read. The view may also show dropped records.
fn agrees(plan: &Plan, shown: &[usize], seen: &ReadResult) -> Result<(), String> {
    let given: Vec<usize> = seen.steps[0].iter().filter_map(Step::index).collect();
    let is_same = match plan.options.when_full {
        WhenFull::RefuseNew => shown == given,
        WhenFull::DropOldest => shown.ends_with(&given),
    };
    if is_same { Ok(()) } else { Err(format!("I5: a look shows {shown:?}, an opening gives {given:?}")) }
}
