//! Definitions and sinks of the process's pipeline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::{MAX_SINKS, Table};
use logspool_record::definition::{RouteDefinition, SinkDefinition, SiteDefinition};
use logspool_record::format::{Format, FormatSpec};

use super::beginning::current;
use super::door;
use super::flushing::Awaited;
use super::slot::existing;
use super::state::Pipeline;
use crate::copies;
use crate::fallback;
use crate::sidecar::Origin;
use crate::sinks::{self, Place};
use crate::stats::DropReason;
use crate::writer::Outlet;

/// Defines a call site. `None`: the table is full, send [`logspool_record::tag::SITE`] with each record.
pub fn define_site(site: &SiteDefinition) -> Option<u32> {
    current()?.segment.define(Table::Sites, |encoder| site.encode(encoder))
}

/// Defines a route. `None`: the table is full, or a target is not one of this process's queue; use the stock path.
pub fn define_route(route: &RouteDefinition) -> Option<u32> {
    if route.targets.len() > logspool_record::definition::MAX_TARGETS {
        return None;
    }
    current()?.define_route(route)
}

/// Defines a format that `Format::compile` accepts. `None`: it does not, or the table is full: use the stock path.
pub fn define_format(spec: &FormatSpec) -> Option<u32> {
    Format::compile(spec).ok()?;
    current()?.segment.define(Table::Formats, |encoder| spec.encode(encoder))
}

/// Opens a sink. Its writer thread starts with its first record; that of a descriptor which is lent starts now.
///
/// Two handlers on one file, or on one descriptor, share a sink: their lines stay in the order of the calls.
/// Each `open_sink` wants one [`close_sink`].
///
/// # Errors
///
/// When the path cannot be opened or the descriptor not be duplicated; when the sink table is full.
pub fn open_sink(definition: &SinkDefinition) -> Result<u32, String> {
    let no_queue = || copies::other().map_or_else(|| "no memory for the queue".to_owned(), ToString::to_string);
    let pipeline = current().ok_or_else(no_queue)?;
    let place = sinks::shared_place(definition);
    if let Some(place) = place {
        // One that is being closed takes no more users; an open one may stand behind it.
        let shared = |outlet: &&Arc<Outlet>| {
            outlet.place == Some(place) && outlet.definition.is_alike(definition) && outlet.add_user()
        };
        if let Some(outlet) = pipeline.outlets().iter().flatten().find(shared) {
            return Ok(outlet.id);
        }
    }
    let mut sink = sinks::open(definition).map_err(|error| format!("cannot open {}: {error}", definition.name))?;
    // Asked now, and before any lock: later its disk may hang.
    let destination = sinks::place(definition);
    let status = destination.path().and_then(|path| std::fs::metadata(path).ok());
    // No batch has an outlet in its hands while a place changes its owner.
    let _guard = pipeline.batching();
    let new = pipeline.segment.define(Table::Sinks, |encoder| definition.encode(encoder));
    let id = new.or_else(|| pipeline.sink_in_place_of_a_closed_one(definition)).ok_or_else(|| {
        format!(
            "cannot open {}: a process has at most {} open sinks, and each needs some room in the queue's tmpfs",
            definition.name,
            MAX_SINKS - 1
        )
    })?;
    if let (Some(shared), Some(path), Some((folder, name))) =
        (sink.shared(), destination.path(), pipeline.segment.home())
    {
        shared.attend(Origin {
            folder: folder.clone(),
            name: name.to_owned(),
            uuid: pipeline.segment.header().uuid,
            sink: id,
            path: path.into(),
        });
    }
    let mut outlet =
        Outlet::new(id, definition.clone(), place, sink, pipeline.segment.clone(), pipeline.budget.clone());
    outlet.set_syncs(pipeline.syncs.clone());
    outlet.set_bell(pipeline.spooler.as_ref().map(|spooler| spooler.bell.clone()));
    outlet.is_recoverable = match destination {
        Place::Address(_) => true,
        _ => status.is_some_and(|status| status.is_file()),
    };
    let mut outlets = pipeline.outlets.lock().unwrap_or_else(PoisonError::into_inner);
    let slot = Table::Sinks.slot(id);
    if outlets.len() <= slot {
        outlets.resize_with(slot + 1, || None);
    }
    let outlet = Arc::new(outlet);
    outlets[slot] = Some(outlet.clone());
    drop(outlets);
    // Its writer lets go of what the program closes, also where no record ever comes.
    if outlet.is_lent && !pipeline.leave.load(Ordering::Relaxed) && outlet.claim_thread() {
        pipeline.start_writer(outlet);
    }
    Ok(id)
}

impl Pipeline {
    /// An id for a sink in the place of the one that was closed first of those that have nothing left to write.
    /// Call it while no batch is made.
    ///
    /// Records that name the old one may still lie in lanes, held there by a stalled sink: all of them are written,
    /// or dropped and counted, so nobody wants them for it any more; its checkpoint goes on from where it stood.
    fn sink_in_place_of_a_closed_one(&self, definition: &SinkDefinition) -> Option<u32> {
        let closed = |outlet: &Arc<Outlet>| Some((outlet.closed_at()?, outlet.id));
        let (_, old) = self.outlets().iter().flatten().filter_map(closed).min()?;
        let begin_anew = || {
            let batch = self.segment.header().batch.load(Ordering::Relaxed);
            self.segment.sink(Table::Sinks.slot(old)).begin_anew(batch);
        };
        self.segment.redefine(Table::Sinks, old, begin_anew, |encoder| definition.encode(encoder))
    }

    /// Lets the sink's own writer close it once everything queued before is written.
    fn close_when_written(&'static self, outlet: &Outlet) {
        self.ensure_threads();
        outlet.close_when_written(self.request());
        self.retire_routes(outlet.id);
        // The first flush may be answered by now, and nobody looked at the outlet.
        self.request();
    }
}

/// Counts how often a sink has gone over to another file: it moves once the first record is in that file.
pub fn turns(sink: u32) -> Option<Arc<AtomicU64>> {
    existing()?.outlet(sink).map(|outlet| outlet.turns.clone())
}

/// Waits until everything queued before is written to `sink`, then releases it.
///
/// A push of another thread that is under way counts as one before. What a shell keeps of the sink's id must be void
/// by now: a push that takes its slow way from here on finds that out before it tries again.
///
/// Returns whether all was written within `timeout`. What was not stays in the queue for as long as the sink takes,
/// or for the next start where the process ends before; for a terminal or pipe it is counted as dropped. Call without
/// an interpreter lock.
pub fn close_sink(sink: u32, timeout: Duration) -> bool {
    let Some(pipeline) = existing() else { return true };
    let Some(outlet) = pipeline.outlet(sink) else { return true };
    let deadline = Instant::now() + outlet.lateness.share(timeout);
    door::settle_pushes(pipeline);
    let flush = pipeline.begin_flush(Awaited::Sink(outlet.clone()));
    let done = flush.is_none_or(|flush| flush.wait_until(Some(deadline)));
    if !outlet.remove_user() {
        return done;
    }
    if !done && outlet.is_recoverable && pipeline.segment.survives() {
        pipeline.close_when_written(&outlet);
        return false;
    }
    if !done {
        pipeline.fall_back_queued(&outlet);
        if !outlet.traits.is_local {
            let address = &outlet.definition.name;
            let left = outlet.counts().waiting();
            let seconds = timeout.as_secs_f64();
            fallback::tell(&format!(
                "logspool: {address} did not confirm {left} records within {seconds} s; they are given up\n"
            ));
        }
        outlet.abandon(DropReason::Deadline);
    }
    pipeline.sync_promised(std::slice::from_ref(&outlet), Some(deadline));
    outlet.ask_to_leave();
    // A writer that sits in a stuck write keeps the descriptor until it comes back.
    if done {
        pipeline.wait(Some(deadline), || !outlet.thread_runs());
    }
    outlet.release();
    pipeline.retire_routes(sink);
    done
}

/// As [`close_sink`], without waiting: the sink's writer closes it once everything queued before is written.
///
/// For shells whose handler dies where nobody may wait. A sink opened meanwhile for the same file does not know of
/// it; [`super::flush`] waits for what is left.
pub fn retire_sink(sink: u32) {
    let Some(pipeline) = existing() else { return };
    let Some(outlet) = pipeline.outlet(sink) else { return };
    door::settle_pushes(pipeline);
    if !outlet.remove_user() {
        return;
    }
    pipeline.close_when_written(&outlet);
}
