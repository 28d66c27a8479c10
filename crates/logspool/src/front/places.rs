//! The ids of places that the macros of other crates name at each call, without a `static` of ours, and the routes of
//! targets that are found when the program runs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use logspool_record::definition::{Grammar, SiteDefinition};
use logspool_sys::fork_safe_lock::PerProcess;

use super::Level;
use super::registry::{self, SiteIds, SiteRoute, TargetKind};
use crate::pipeline;

/// Maximum number of places that a thread remembers, and that the process remembers and defines. A thread that has met
/// more begins anew. Records of lines beyond the limit of the process show no location.
///
/// Chosen: large programs have some thousand logging calls. Targets that are made at run time must not take memory
/// without a limit.
const MAX_OF_THREAD: usize = 4096;
const MAX_OF_PROCESS: usize = 16 * 1024;

/// A place that another crate's macros have found. Texts are compared by value: a name may be made at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PlaceKey<'a> {
    pub(super) level: Level,
    pub(super) target: &'a str,
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) function: &'a str,
}

/// The places of one pipeline, by a hash of their key. Places with one hash are compared.
#[derive(Default)]
struct Places {
    epoch: u64,
    /// Number of targets that were closed before: a closed one may have another route now.
    closed_targets: u64,
    known: HashMap<u64, Vec<(OwnedKey, SiteIds)>, BuildHasherDefault<MixHasher>>,
    count: usize,
}

/// Mixes the bits of a hash that is the key of a map. Nobody can choose the keys: they are addresses, or hashes of
/// targets.
#[derive(Default)]
struct MixHasher(u64);

impl Hasher for MixHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        // The multiplier of Fibonacci hashing: 2^64 divided by the golden ratio.
        let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// A [`PlaceKey`] with texts of its own.
struct OwnedKey {
    target: String,
    file: String,
    key: PlaceKey<'static>,
}

impl OwnedKey {
    fn of(key: &PlaceKey<'_>) -> Self {
        let bare = PlaceKey { level: key.level, target: "", file: "", line: key.line, function: "" };
        Self { target: key.target.to_owned(), file: key.file.to_owned(), key: bare }
    }

    fn is(&self, key: &PlaceKey<'_>) -> bool {
        self.key.line == key.line && self.key.level == key.level && self.target == key.target && self.file == key.file
    }
}

thread_local! {
    static OF_THREAD: RefCell<Places> = RefCell::default();
}

static OF_PROCESS: PerProcess<ProcessPlaces> = PerProcess::new();

/// The places of the process, and their sites: those of one line with several targets have one.
#[derive(Default)]
struct ProcessPlaces {
    places: Places,
    sites: Places,
}

/// The ids of a place, which is defined at the first call of the process.
pub(super) fn find(key: &PlaceKey<'_>) -> SiteIds {
    let known = OF_THREAD.try_with(|places| places.borrow().get(key)).ok().flatten();
    known.unwrap_or_else(|| {
        let closed_targets = registry::closed_targets();
        let ids = OF_PROCESS.with(|process| process.places.get(key).unwrap_or_else(|| process.define(key)));
        let _ = OF_THREAD.try_with(|places| {
            let mut places = places.borrow_mut();
            if places.count >= MAX_OF_THREAD {
                *places = Places::default();
            }
            places.begin(ids.epoch, closed_targets);
            places.insert(key, ids);
        });
        ids
    })
}

impl Places {
    fn get(&self, key: &PlaceKey<'_>) -> Option<SiteIds> {
        if self.epoch != pipeline::id_epoch() || self.closed_targets != registry::closed_targets() {
            return None;
        }
        self.find(key)
    }

    fn find(&self, key: &PlaceKey<'_>) -> Option<SiteIds> {
        self.known.get(&hash(key))?.iter().find_map(|(known, ids)| known.is(key).then_some(*ids))
    }

    /// Forgets the places if the pipeline or a target has changed since they were kept.
    fn begin(&mut self, epoch: u64, closed_targets: u64) {
        if (self.epoch, self.closed_targets) != (epoch, closed_targets) {
            *self = Self { epoch, closed_targets, ..Self::default() };
        }
    }

    fn insert(&mut self, key: &PlaceKey<'_>, ids: SiteIds) {
        self.count += 1;
        self.known.entry(hash(key)).or_default().push((OwnedKey::of(key), ids));
    }
}

impl ProcessPlaces {
    #[cold]
    fn define(&mut self, key: &PlaceKey<'_>) -> SiteIds {
        // Read first: if a target is closed meanwhile, the place is forgotten again.
        let closed_targets = registry::closed_targets();
        let site = |epoch| if key.file.is_empty() { 0 } else { self.site(epoch, key) };
        let ids = registry::define(key.target, TargetKind::Found, key.level as u16, site);
        self.places.begin(ids.epoch, closed_targets);
        if self.places.count < MAX_OF_PROCESS {
            self.places.insert(key, ids);
        }
        ids
    }

    /// Id of the site of a place in the pipeline with the number `epoch`; 0 if there is no room for another.
    fn site(&mut self, epoch: u64, key: &PlaceKey<'_>) -> u32 {
        let key = PlaceKey { target: "", ..*key };
        self.sites.begin(epoch, 0);
        if let Some(known) = self.sites.find(&key) {
            return known.site;
        }
        if self.sites.count >= MAX_OF_PROCESS {
            return 0;
        }
        let definition = SiteDefinition {
            file: key.file.to_owned(),
            line: key.line,
            function: key.function.to_owned(),
            template: None,
            grammar: Grammar::Plain,
        };
        let site = pipeline::define_site(&definition).unwrap_or(0);
        self.sites.insert(&key, SiteIds { epoch, site, route: SiteRoute::Missing });
        site
    }
}

fn hash(key: &PlaceKey<'_>) -> u64 {
    if key.file.is_empty() {
        let mut hasher = std::hash::DefaultHasher::new();
        key.target.hash(&mut hasher);
        return hasher.finish();
    }
    // The line and the address of the file's name tell most places apart.
    (key.file.as_ptr() as u64) ^ u64::from(key.line).rotate_left(40)
}
