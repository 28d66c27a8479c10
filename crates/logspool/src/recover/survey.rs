//! Counts the undelivered records of an orphan without rendering them.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use logspool_lanes::queue::reader::PeekedRecord;
use logspool_lanes::segment::layout::{MAX_SINKS, Table};
use logspool_record::definition::{RouteDefinition, Target};
use logspool_record::flags;

use super::damage::Damage;
use super::image::{Image, SinkSlot};
use super::progress::SinkCheckpoints;
use super::spilled::Spilled;
use super::walk::{RecordVisitor, WalkPlan};
use crate::durable::Sinks;

/// Counts of the undelivered records of one orphan.
#[derive(Debug)]
pub struct Survey {
    /// Number of undelivered records per sink. The first few may be written already, see the module documentation of
    /// `recover`.
    pub pending: BTreeMap<usize, u64>,
    /// For each batch, the sinks that must get records of it from the lanes.
    pub lacking: BTreeMap<u64, Sinks>,
    /// Number of unreadable bytes and records.
    pub damage: Damage,
}

/// Counts the undelivered records of all sinks.
pub fn count(image: &Image, plan: &WalkPlan, spilled: &Spilled, progress: &SinkCheckpoints) -> Survey {
    let survey = Survey { pending: BTreeMap::new(), lacking: BTreeMap::new(), damage: image.damage };
    let mut counter = Counter { image, spilled, progress, routes: HashMap::new(), batch: 0, survey };
    counter.survey.damage.add(plan.damage);
    counter.survey.damage.add(spilled.damage());
    let unread = plan.walk(image, &mut counter);
    let mut survey = counter.survey;
    survey.damage.bytes = survey.damage.bytes.saturating_add(unread);
    for sink in 0..MAX_SINKS {
        let waiting = spilled.of(sink).iter().filter(|entry| progress.lacks_spilled(sink, entry.batch));
        let records: u64 = waiting.map(|entry| u64::from(entry.marks)).sum();
        if records > 0 {
            *survey.pending.entry(sink).or_default() += records;
        }
    }
    survey
}

/// Damage of one record whose destination is not readable.
const ONE_RECORD: Damage = Damage { bytes: 0, records: 1 };

struct Counter<'a> {
    image: &'a Image,
    spilled: &'a Spilled,
    progress: &'a SinkCheckpoints,
    /// Targets of each route that was seen until now. The value is `None` if the definition of the route cannot be
    /// read.
    routes: HashMap<u32, Option<Vec<Target>>>,
    batch: u64,
    survey: Survey,
}

impl Counter<'_> {
    fn count(&mut self, sink: u32) {
        match self.image.place_of(sink) {
            SinkSlot::Unknown => self.survey.damage.add(ONE_RECORD),
            SinkSlot::Own(place) if self.progress.lacks(place, self.batch, self.spilled) => {
                *self.survey.pending.entry(place).or_default() += 1;
                *self.survey.lacking.entry(self.batch).or_default() |= 1 << place;
            }
            SinkSlot::Own(_) | SinkSlot::Another => {}
        }
    }
}

impl RecordVisitor for Counter<'_> {
    fn begin(&mut self, number: u64) -> ControlFlow<()> {
        self.batch = number;
        ControlFlow::Continue(())
    }

    fn record(&mut self, peeked: PeekedRecord<'_>) -> ControlFlow<()> {
        let head = peeked.head;
        if head.flags & flags::TEXT != 0 {
            self.count(head.route);
            return ControlFlow::Continue(());
        }
        let image = self.image;
        let targets = |route: RouteDefinition| route.targets;
        let targets = self
            .routes
            .entry(head.route)
            .or_insert_with(|| RouteDefinition::decode(image.definition(Table::Routes, head.route)?).map(targets));
        let Some(targets) = targets else {
            self.survey.damage.add(ONE_RECORD);
            return ControlFlow::Continue(());
        };
        let reached = targets.iter().filter(|target| head.level >= target.min_level);
        let sinks: Vec<u32> = reached.map(|target| target.sink).collect();
        sinks.into_iter().for_each(|sink| self.count(sink));
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
