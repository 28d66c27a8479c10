//! What the tests of this folder share: random numbers, the message of a template, and the size of a run.

use logspool_record::Values;
use logspool_record::definition::{Grammar, SiteDefinition};
use logspool_record::format::{CompiledSite, ParsedRecord, RecordView};

/// A random number generator (splitmix64): the same numbers in each run with the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Whether an event of a chance of one in `parts` happens.
    pub fn one_in(&mut self, parts: usize) -> bool {
        self.below(parts) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.choose(from)
    }

    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A site with a message template and no place.
pub fn site(grammar: Grammar, template: &str) -> CompiledSite {
    let template = Some(template.to_owned());
    CompiledSite::new(SiteDefinition { template, grammar, ..SiteDefinition::default() })
}

/// A record of the logger `app` at the epoch.
pub fn record<'a>(site: Option<&'a CompiledSite>, bytes: &'a [u8]) -> RecordView<'a> {
    RecordView { time_ns: 0, level: 20, logger: "app", site, values: Values::new(bytes) }
}

/// The message of a template with values, and whether it is complete.
pub fn message(grammar: Grammar, template: &str, values: &[u8]) -> (String, bool) {
    let site = site(grammar, template);
    let mut out = Vec::new();
    let complete = ParsedRecord::new(&record(Some(&site), values)).push_message(&mut out).is_ok();
    (String::from_utf8(out).expect("a message is UTF-8"), complete)
}

/// The number of cases and the seed: those of the environment, or `cases` and a fixed seed.
pub fn cases_and_seed(cases: usize) -> (usize, u64) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect(name));
    let total = number("LOGSPOOL_FORMAT_CASES").map_or(cases, |cases: u64| cases as usize);
    (total, number("LOGSPOOL_SEED").unwrap_or(20_261_126))
}
