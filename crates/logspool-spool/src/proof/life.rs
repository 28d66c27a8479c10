//! One run of the proof: several lives of a spool on one disk, and the crash states of each life.

use std::cell::RefCell;
use std::rc::Rc;

use super::generator::Random;
use super::model::{Attempt, Expected, Ledger, MAX_COUNT, PLAIN, Promises, Reading, SERVICE, observe};
use super::sim_disk::{Faults, SimDisk, Simulation};
use super::simulated_files::SimulatedFiles;
use super::trial::{Count, Trials};
use crate::error::SpoolError;
use crate::options::{Options, WhenFull};
use crate::{Batch, Spool};

/// The parameters of a run, made from its seed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub options: Options,
    pub folders: usize,
    pub max_payload: u64,
    pub faults: Faults,
    pub lives: u64,
    pub steps: u64,
    /// Number of crash images made from each state.
    pub images: u64,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let generator = &mut Random::new(seed);
        let segment_bytes = generator.pick(&[1536, 2048, 4096, 8192]);
        let segments = generator.pick(&[4, 5, 6, 12, 40]);
        let when_full = generator.pick(&[WhenFull::RefuseNew, WhenFull::RefuseNew, WhenFull::DropOldest]);
        let max_payload = generator.pick(&[24, 120, 400, 1000]);
        let max_unsynced_bytes = generator.pick(&[600, 2000, 100_000]);
        let rate = generator.pick(&[5, 20, 100, 300]);
        let mut faults = Faults { reads_see_failed: generator.below(3) > 0, ..Faults::default() };
        match generator.below(12) {
            0..=3 => {}
            4 | 5 => faults.sync = rate,
            6 => faults.write = rate,
            7 => faults.sync_folder = rate,
            8 => faults.name = rate,
            9 => faults.capacity = segment_bytes * (1 + generator.below(segments)) + generator.below(20_000),
            10 => faults.first_is_dead = true,
            _ => {
                let share = rate / 4 + 1;
                let read = share.min(10);
                faults = Faults { write: share, sync: share, sync_folder: share, read, name: share, ..faults };
            }
        }
        Self {
            options: Options { segment_bytes, max_bytes: segment_bytes * segments, when_full, max_unsynced_bytes },
            folders: if faults.first_is_dead || generator.below(4) == 0 { 2 } else { 1 },
            max_payload: max_payload.min(segment_bytes - 1024 - 40),
            faults,
            lives: 1 + generator.below(4),
            steps: 8 + generator.below(33),
            images: 1 + generator.below(3),
        }
    }
}

/// A run that broke an invariant.
#[derive(Debug)]
pub struct Violation {
    pub seed: u64,
    pub what: String,
}

impl Violation {
    /// Text needed to reproduce the violation.
    pub fn explain(&self) -> String {
        let Self { seed, what } = self;
        format!(
            "{what}\nLOGSPOOL_SEED={seed} LOGSPOOL_CRASH_STATES=1 shows it again; the seed stands for:\n{:#?}",
            Plan::of(*seed)
        )
    }
}

/// Runs a seed and returns the number of crash states checked.
pub fn run(seed: u64) -> Result<Count, Violation> {
    Run::new(seed).live().map_err(|what| Violation { seed, what })
}

pub fn open(simulation: &Rc<RefCell<Simulation>>, plan: &Plan) -> Result<Spool<SimDisk>, SpoolError> {
    let disks = ["first", "second"].iter().take(plan.folders).map(|path| SimDisk::new(simulation, path)).collect();
    Spool::open(disks, plan.options.clone())
}

fn plain_position(spool: &Spool<SimDisk>) -> u64 {
    spool.consumers().find(|(id, _)| *id == PLAIN).map_or(0, |(_, position)| position)
}

struct Run {
    plan: Plan,
    generator: Random,
    ledger: Ledger,
    simulation: Rc<RefCell<Simulation>>,
    service: Reading,
    plain: Reading,
    /// Index of the refused batch that is appended again.
    again: Option<usize>,
    count: Count,
}

impl Run {
    fn new(seed: u64) -> Self {
        let plan = Plan::of(seed);
        let mut generator = Random::new(seed ^ 0x6c69_7665_7300_0000);
        let simulation = Simulation::new(SimulatedFiles::default(), Random::new(generator.next()));
        let ledger = Ledger { when_full: plan.options.when_full, ..Ledger::default() };
        let (service, plain) = (Reading::at(0), Reading::at(0));
        Self { plan, generator, ledger, simulation, service, plain, again: None, count: Count::default() }
    }

    fn live(mut self) -> Result<Count, String> {
        let mut spool = self.open()?;
        for consumer in [SERVICE, PLAIN] {
            spool.add_consumer(consumer).map_err(|error| error.to_string())?;
        }
        spool.checkpoint().map_err(|error| format!("no checkpoint on a sound disk: {error}"))?;
        for life in 0..self.plan.lives {
            {
                let simulation = &mut *self.simulation.borrow_mut();
                simulation.faults = self.plan.faults;
                simulation.states.get_or_insert_default();
                simulation.keep();
            }
            for _ in 0..self.plan.steps {
                self.step(&mut spool)?;
            }
            self.look_at_states()?;
            if life + 1 < self.plan.lives {
                spool = self.end_life(spool)?;
            }
        }
        self.be_done(spool)?;
        Ok(self.count)
    }

    fn open(&self) -> Result<Spool<SimDisk>, String> {
        open(&self.simulation, &self.plan).map_err(|error| format!("I4: {error}"))
    }

    fn update_promises(&self, change: impl FnOnce(&mut Promises)) {
        let simulation = &mut *self.simulation.borrow_mut();
        change(&mut simulation.promises);
        simulation.keep();
    }

    fn step(&mut self, spool: &mut Spool<SimDisk>) -> Result<(), String> {
        match self.generator.below(100) {
            0..=49 => self.append(spool),
            50..=63 => {
                if let Ok(end) = spool.sync() {
                    self.update_promises(|promises| promises.durable = end);
                }
                Ok(())
            }
            64..=75 => self.deliver_to_service(spool),
            76..=87 => self.deliver_plainly(spool),
            88..=96 => {
                self.save(spool);
                Ok(())
            }
            _ => {
                spool.rewind(PLAIN).map_err(|error| error.to_string())?;
                self.plain = Reading::at(plain_position(spool));
                Ok(())
            }
        }
    }

    fn save(&self, spool: &mut Spool<SimDisk>) {
        if spool.checkpoint().is_ok() {
            self.update_promises(|promises| promises.saved = promises.saved.max(plain_position(spool)));
        }
    }

    fn append(&mut self, spool: &mut Spool<SimDisk>) -> Result<(), String> {
        let index = match self.again.take() {
            Some(index) if self.ledger.attempts[index].first >= spool.next() => index,
            _ => {
                let skipped = if self.generator.below(20) == 0 { self.generator.below(3) } else { 0 };
                let count = 1 + self.generator.below(MAX_COUNT) as u32;
                let bytes = 8 + self.generator.below(self.plan.max_payload - 7) as usize;
                self.ledger.attempt(spool.next() + skipped, count, bytes)
            }
        };
        let Attempt { first, count, payload } = &self.ledger.attempts[index];
        match spool.append(&Batch { first: *first, count: *count, codec: 0, payload }) {
            Ok(end) => {
                self.ledger.accepted.insert(*first, index);
                self.update_promises(|promises| promises.accepted = end);
            }
            Err(SpoolError::Disk(_) | SpoolError::Full { .. }) => {
                if self.generator.below(2) == 0 {
                    self.again = Some(index);
                }
            }
            Err(error) => return Err(format!("append: {error}")),
        }
        Ok(())
    }

    fn deliver_to_service(&mut self, spool: &mut Spool<SimDisk>) -> Result<(), String> {
        for _ in 0..=self.generator.below(4) {
            let Ok(Some(item)) = spool.read(SERVICE) else { break };
            // Without a crash no accepted batch may be missing, durable or not.
            self.service.take(&item, &self.ledger)?;
        }
        let cursor = self.service.cursor;
        self.update_promises(|promises| promises.delivered = cursor);
        if self.generator.below(4) > 0 {
            spool.ack(SERVICE, cursor).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn deliver_plainly(&mut self, spool: &mut Spool<SimDisk>) -> Result<(), String> {
        for _ in 0..=self.generator.below(4) {
            let Ok(Some(item)) = spool.read(PLAIN) else { break };
            self.plain.take(&item, &self.ledger)?;
        }
        // Sometimes the sink has delivered only a part of the last batch.
        let cursor = self.plain.cursor - self.generator.below(2).min(self.plain.cursor);
        if self.generator.below(4) > 0 {
            self.update_promises(|promises| promises.acked = promises.acked.max(cursor));
            spool.ack(PLAIN, cursor).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Crashes the disk from every state of this life.
    fn look_at_states(&mut self) -> Result<(), String> {
        let states = self.simulation.borrow_mut().states.take().unwrap_or_default();
        let mut trials = Trials::new(&self.plan, &self.ledger);
        for (files, promises) in &states {
            for _ in 0..self.plan.images {
                trials.look_at(files, promises, &mut self.generator)?;
            }
        }
        self.count.states += trials.count.states;
        self.count.different += trials.count.different;
        Ok(())
    }

    /// Ends a life by a power cut, a kill or a close, and begins the next one.
    fn end_life(&mut self, mut spool: Spool<SimDisk>) -> Result<Spool<SimDisk>, String> {
        match self.generator.below(4) {
            0 => {
                let simulation = &mut *self.simulation.borrow_mut();
                simulation.files = simulation.files.crash(&mut self.generator);
                // Records that were written but not durable may be lost for good.
                simulation.promises.accepted = simulation.promises.durable;
            }
            1 => {
                self.save(&mut spool);
                drop(spool);
            }
            2 => {
                // An error here was caused by the faults of the plan.
                let _ = spool.close();
            }
            _ => {
                self.simulation.borrow_mut().states = Some(Vec::new());
                return Ok(spool);
            }
        }
        self.simulation.borrow_mut().states = Some(Vec::new());
        let mut spool = self.open()?;
        let promises = self.simulation.borrow().promises;
        // A second spool on a copy of the disk shows the records that the crash removed.
        let copy = Simulation::new(self.simulation.borrow().files.clone(), Random::new(self.generator.next()));
        let mut other = open(&copy, &self.plan).map_err(|error| format!("I4: {error}"))?;
        let text = |what: String| format!("next life: {what}");
        let seen = observe(&mut other, &self.ledger, promises.delivered).map_err(text)?;
        let expected = Expected { ledger: &self.ledger, settled: promises.durable, present: None };
        expected.check_promises(&seen, &promises).map_err(text)?;
        self.ledger.keep_only(&seen.present);
        spool.ack(SERVICE, promises.delivered).map_err(|error| error.to_string())?;
        self.service = Reading::at(promises.delivered);
        let position = spool.add_consumer(PLAIN).map_err(|error| error.to_string())?;
        self.plain = Reading::at(position);
        self.again = None;
        let (durable, next) = (spool.durable(), spool.next());
        self.update_promises(|promises| {
            promises.durable = promises.durable.max(durable);
            promises.accepted = next;
        });
        Ok(spool)
    }

    /// Finishes a run. The faults stop, and everything must be delivered and every segment freed within a bound.
    fn be_done(&mut self, mut spool: Spool<SimDisk>) -> Result<(), String> {
        {
            let simulation = &mut *self.simulation.borrow_mut();
            simulation.faults = Faults::default();
            simulation.states = None;
        }
        let fail = |what: &str, error: SpoolError| format!("liveness: {what}: {error}");
        for round in 0..3 {
            spool.sync().map_err(|error| fail("sync", error))?;
            for consumer in [SERVICE, PLAIN] {
                let reading = if consumer == SERVICE { &mut self.service } else { &mut self.plain };
                // Each attempt makes at most one frame and two gaps.
                for _ in 0..=3 * self.ledger.attempts.len() + 3 {
                    match spool.read(consumer).map_err(|error| fail("read", error))? {
                        Some(item) => reading.take(&item, &self.ledger)?,
                        None => break,
                    };
                }
                if reading.cursor != spool.next() {
                    return Err(format!("liveness: {consumer} is at {} of {}", reading.cursor, spool.next()));
                }
                spool.ack(consumer, reading.cursor).map_err(|error| fail("ack", error))?;
            }
            spool.checkpoint().map_err(|error| fail("checkpoint", error))?;
            let stats = spool.stats();
            let most = self.plan.options.max_bytes;
            if stats.segments > 1 || stats.bytes > most || stats.unsynced_bytes > 0 || stats.lost_records > 0 {
                return Err(format!("liveness: not given back in round {round}: {stats:?}"));
            }
            for _ in 0..3 {
                let before = spool.next();
                self.append(&mut spool)?;
                if spool.next() == before {
                    return Err(format!("liveness: nothing is taken: {:?}", spool.stats()));
                }
            }
        }
        Ok(())
    }
}
