//! Begins a pipeline with the first definition or record of a process image.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use logspool_lanes::blob::Blobs;

use super::options::{Durability, Options};
use super::queue_place;
use super::settings::{options, queue_folder};
use super::slot::{self, existing};
use super::spooler::Spooler;
use super::state::Pipeline;
use crate::collector::Collector;
use crate::copies;
use crate::durable::{PendingSync, WaitRule};
use crate::lateness::Lateness;
use crate::overflow::Budget;
use crate::writer::{SyncRule, Syncs};
use logspool_sys::barrier;
use logspool_sys::crossing::RunningFlag;

/// The default overflow budget is the free tmpfs divided by this number.
const OVERFLOW_SHARE: u64 = 4;
const MAX_OVERFLOW_BYTES: u64 = 256 * 1024 * 1024;

/// The pipeline of this process; begins one if there is none. Returns `None` if there is no memory for a pipeline, or
/// if another copy of this library has the queue of the process.
pub(super) fn current() -> Option<&'static Pipeline> {
    if let Some(pipeline) = existing() {
        return Some(pipeline);
    }
    if copies::other().is_some() {
        return None;
    }
    slot::existing_or(begin)
}

fn begin(number: u64) -> Option<Pipeline> {
    if copies::claim().is_err() {
        copies::report_once();
        return None;
    }
    // The threads of the pipeline are not started yet, so this takes no time in a program without threads of its own.
    // In others the watcher does it. The end of the process would otherwise wait for it.
    barrier::register_early();
    let options = options();
    let (mut segment, place) = queue_place::begin(options, &queue_folder())?;
    let free = segment.home().and_then(|(folder, _)| folder.free_bytes().ok()).unwrap_or(u64::MAX);
    let overflow_bytes = options.overflow_bytes.unwrap_or((free / OVERFLOW_SHARE).min(MAX_OVERFLOW_BYTES));
    segment.begin_ids();
    let segment = Arc::new(segment);
    segment.prepare_shared_lanes();
    let spooler = |folder: &PathBuf| Spooler::new(folder.clone(), options.spool_bytes, &segment);
    let spooler = options.spool_dir.as_ref().and_then(spooler);
    let syncs = syncs(options);
    let blobs = Arc::<Blobs>::default();
    let collector = Collector::new(segment.clone(), blobs.clone(), syncs.pending_sync.clone());
    Some(Pipeline {
        place,
        spooler,
        collector: Mutex::new(Some(Box::new(collector))),
        segment,
        budget: Arc::new(Budget::new(overflow_bytes)),
        blobs,
        outlets: Mutex::new(vec![None]),
        routes: Mutex::default(),
        formats: Mutex::default(),
        collector_runs: RunningFlag::new(),
        leave: AtomicBool::new(false),
        batching: Mutex::new(()),
        requested: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        saturated: AtomicBool::new(false),
        standstill: AtomicBool::new(false),
        waiting: AtomicU32::new(0),
        refusals: AtomicU64::new(0),
        refusals_told: AtomicU64::new(0),
        fallen_back: AtomicBool::new(false),
        removed: AtomicBool::new(false),
        is_past: AtomicBool::new(false),
        before: OnceLock::new(),
        lateness: Lateness::default(),
        waits: Default::default(),
        watcher: Default::default(),
        idle_writer: Default::default(),
        syncs,
        number,
        process: std::process::id(),
    })
}

/// The sync rule of the sinks and the table of waiting calls, according to the options.
fn syncs(options: &Options) -> Syncs {
    let wait = match options.durability {
        Durability::Memory | Durability::Process | Durability::Interval => WaitRule::Levels,
        Durability::Checkpoint => WaitRule::Checkpoint(options.checkpoint_every),
        Durability::Sync => WaitRule::Every,
    };
    let rule = match options.durability {
        Durability::Memory | Durability::Process => SyncRule::Asked,
        Durability::Interval | Durability::Checkpoint => SyncRule::Every(options.sync_interval),
        Durability::Sync => SyncRule::Always,
    };
    let waits = wait != WaitRule::Levels || !options.durable_levels.is_empty();
    let pending_sync = waits.then(|| Arc::new(PendingSync::new(wait, options.durable_levels.clone())));
    Syncs { rule, pending_sync }
}
