//! Makes crashes from the states of one life, and opens the spool on the images they leave.
//!
//! Many crashes leave the same image, and an opening of it has the same result: the draws decide only the faults and
//! the new ids. So an image is opened once for each cursor that its service may have. The result is judged for each
//! crash that leaves the image, by the promises before that crash. Two images are the same if all their bytes are.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::dice::Dice;
use super::life::{Plan, open};
use super::model::{Claims, Expected, Ledger, Seen, Step, look, observe};
use super::sim_disk::{Faults, Scene, SimDisk};
use super::world::{Change, World};
use crate::options::WhenFull;

/// Seeds for the ids made by the first and by the second opening: no id occurs twice on a disk.
const FIRST_IDS: u64 = 11;
const LAST_IDS: u64 = 7;

/// Number of crash states: all, and those that differ within a life by image or promises.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    pub states: u64,
    pub different: u64,
}

/// The result of opening an image.
struct Opened {
    seen: Rc<Seen>,
    image: World,
    /// The opening's changes, and the number of them done after each of its calls.
    changes: Vec<Change>,
    calls: Vec<usize>,
    world: World,
    /// The result of another opening after it.
    again: OnceCell<Seen>,
}

/// An image and the position of its service.
struct Case<T> {
    image: World,
    delivered: u64,
    /// Promises before each crash that left the image, each with its settled number.
    promised: Vec<(Claims, u64)>,
    outcome: OnceCell<Rc<T>>,
}

/// The cases so far, by the hash of their images.
struct Cases<T>(HashMap<u64, Vec<Case<T>>>);

impl<T> Cases<T> {
    /// The known result for an image.
    fn known(&self, image: &World, delivered: u64) -> Option<&T> {
        let mut cases = self.0.get(&image.mark())?.iter();
        let case = cases.find(|case| case.delivered == delivered && case.image.is_same(image))?;
        case.outcome.get().map(|outcome| &**outcome)
    }

    fn find(&mut self, image: World, delivered: u64) -> &mut Case<T> {
        let cases = self.0.entry(image.mark()).or_default();
        let known = cases.iter().position(|case| case.delivered == delivered && case.image.is_same(&image));
        let index = known.unwrap_or_else(|| {
            cases.push(Case { image, delivered, promised: Vec::new(), outcome: OnceCell::new() });
            cases.len() - 1
        });
        &mut cases[index]
    }
}

/// The value of `cell`, made at the first call.
fn once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T, String>) -> Result<&T, String> {
    if cell.get().is_none() {
        let made = make()?;
        return Ok(cell.get_or_init(|| made));
    }
    Ok(cell.get().expect("it was looked at above"))
}

/// The crashes from the states of one life.
pub struct Trials<'a> {
    plan: &'a Plan,
    ledger: &'a Ledger,
    first: Cases<Opened>,
    second: Cases<Seen>,
    pub count: Count,
}

impl<'a> Trials<'a> {
    pub fn new(plan: &'a Plan, ledger: &'a Ledger) -> Self {
        let (first, second) = (Cases(HashMap::new()), Cases(HashMap::new()));
        Self { plan, ledger, first, second, count: Count::default() }
    }

    /// Crashes from a state, by a kill or a power cut.
    pub fn look_at(&mut self, world: &World, claims: &Claims, dice: &mut Dice) -> Result<(), String> {
        // After a failed sync, bytes that reads returned from the cache may be gone with the process.
        let forgets = self.plan.faults.sync > 0 && !self.plan.faults.reads_see_failed;
        if dice.below(5) == 0 {
            let settled = if forgets { claims.durable } else { claims.accepted };
            self.open_on(world.clone(), claims, settled, dice).map_err(|what| format!("after a kill: {what}"))
        } else {
            let image = world.crash(dice);
            self.open_on(image, claims, claims.durable, dice).map_err(|what| format!("after a power cut: {what}"))
        }
    }

    /// Opens the spool on a crash image. Every batch accepted below `settled` must be there.
    pub fn open_on(&mut self, image: World, claims: &Claims, settled: u64, dice: &mut Dice) -> Result<(), String> {
        let (kind, draws) = (dice.below(8), dice.next());
        self.count.states += 1;
        let (plan, ledger) = (self.plan, self.ledger);
        let case = self.first.find(image, claims.delivered);
        if !case.promised.contains(&(*claims, settled)) {
            case.promised.push((*claims, settled));
            self.count.different += 1;
        }
        let opened = if kind == 0 && !plan.faults.are_none() {
            // The faults are drawn again each time.
            Rc::new(open_first(plan, ledger, case.image.clone(), claims.delivered, plan.faults, Dice::new(draws))?)
        } else {
            let image = || case.image.clone();
            let open = || open_first(plan, ledger, image(), claims.delivered, Faults::default(), Dice::new(FIRST_IDS));
            once(&case.outcome, || open().map(Rc::new))?.clone()
        };
        let expected = Expected { ledger, settled, present: None };
        expected.judge(&opened.seen, claims)?;
        match kind {
            0..=3 => self.crash_again(&opened, claims, settled, dice),
            4 | 5 => {
                let again = || open_last(plan, ledger, opened.world.clone(), claims.delivered, Dice::new(LAST_IDS));
                let second = once(&opened.again, again)?;
                expected.judge(second, claims)?;
                if !second.is_like(&opened.seen) {
                    return Err(format!("I5: first {:?}, then {second:?}", opened.seen));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Crashes from a state inside the opening, and from the state after it, with the promises of that moment.
    fn crash_again(&mut self, opened: &Opened, claims: &Claims, settled: u64, dice: &mut Dice) -> Result<(), String> {
        let Opened { seen, image, changes, calls, world, .. } = opened;
        let ledger = self.ledger;
        if !calls.is_empty() {
            let call = calls[dice.below(calls.len() as u64) as usize];
            let mut world = image.clone();
            changes[..call].iter().for_each(|change| world.apply(change));
            let again = self.open_again(world.crash(dice), claims.delivered)?;
            // A power cut after a kill removes everything that was not durable.
            let expected = Expected { ledger, settled: settled.min(claims.durable), present: None };
            expected.judge(&again, claims).map_err(|what| format!("I6: {what}"))?;
        }
        let again = self.open_again(world.crash(dice), claims.delivered)?;
        let expected = Expected { ledger, settled: seen.durable, present: Some(&seen.present) };
        let what = "I6: durable after the first opening";
        expected.judge(&again, claims).map_err(|error| format!("{what}: {error}"))
    }

    fn open_again(&mut self, image: World, delivered: u64) -> Result<Rc<Seen>, String> {
        let (plan, ledger) = (self.plan, self.ledger);
        if let Some(opened) = self.first.known(&image, delivered) {
            return Ok(opened.seen.clone());
        }
        let case = self.second.find(image, delivered);
        let open = || open_last(plan, ledger, case.image.clone(), delivered, Dice::new(LAST_IDS)).map(Rc::new);
        once(&case.outcome, open).cloned().map_err(|error| format!("I6: {error}"))
    }
}

/// Opens an image that is to be crashed again.
fn open_first(
    plan: &Plan,
    ledger: &Ledger,
    image: World,
    delivered: u64,
    faults: Faults,
    dice: Dice,
) -> Result<Opened, String> {
    let scene = Scene::new(World { changes: Some(Vec::new()), ..image.clone() }, dice);
    // Without faults a `View` shows the records that an opening finds.
    let is_looked_at = faults.are_none() && plan.folders == 1;
    let shown = is_looked_at.then(|| look(SimDisk::new(&scene, "first"), ledger, delivered));
    {
        let scene = &mut *scene.borrow_mut();
        scene.faults = faults;
    }
    let mut spool = open(&scene, plan).map_err(|error| format!("I4: {error}"))?;
    let calls = std::mem::take(&mut scene.borrow_mut().calls);
    let seen = Rc::new(observe(&mut spool, ledger, delivered)?);
    if let Some(shown) = shown {
        agrees(plan, &shown?, &seen)?;
    }
    let mut world = std::mem::take(&mut scene.borrow_mut().world);
    let changes = world.changes.take().unwrap_or_default();
    Ok(Opened { seen, image, changes, calls, world, again: OnceCell::new() })
}

/// Opens an image for the last time.
fn open_last(plan: &Plan, ledger: &Ledger, mut image: World, delivered: u64, dice: Dice) -> Result<Seen, String> {
    image.is_last = true;
    let scene = Scene::new(image, dice);
    let mut spool = open(&scene, plan).map_err(|error| format!("I4: {error}"))?;
    observe(&mut spool, ledger, delivered)
}

/// Whether a `View` showed the records that the service read. It may also show dropped records.
fn agrees(plan: &Plan, shown: &[usize], seen: &Seen) -> Result<(), String> {
    let given: Vec<usize> = seen.steps[0].iter().filter_map(Step::index).collect();
    let is_same = match plan.options.when_full {
        WhenFull::RefuseNew => shown == given,
        WhenFull::DropOldest => shown.ends_with(&given),
    };
    if is_same { Ok(()) } else { Err(format!("I5: a look shows {shown:?}, an opening gives {given:?}")) }
}
