//! Defines sites, routes and formats, and opens and closes sinks, in the process's pipeline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::{MAX_SINKS, Table};
use logspool_record::Encoder;
use logspool_record::definition::{RouteDefinition, SinkDefinition, SiteDefinition};
use logspool_record::format::{Format, FormatSpec};

use super::beginning::current;
use super::door;
use super::flushing::Awaited;
use super::slot::existing;
use super::state::Pipeline;
use crate::copies;
use crate::fallback;
use crate::sink::Origin;
use crate::sinks::{self, Place, SinkPlace};
use crate::stats::DropReason;
use crate::writer::{Departure, Outlet};

/// Defines a call site. Returns `None` if the table is full. The caller then sends [`logspool_record::tag::SITE`] with
/// each record.
pub fn define_site(site: &SiteDefinition) -> Option<u32> {
    current()?.segment.define(Table::Sites, |encoder| site.encode(encoder))
}

/// The definition of a call site of this process. `None` if there is no such id.
pub fn site_definition(id: u32) -> Option<SiteDefinition> {
    SiteDefinition::decode(existing()?.segment.definition(Table::Sites, id)?)
}

/// The definition of a route of this process. `None` if there is no such id.
pub fn route_definition(id: u32) -> Option<RouteDefinition> {
    RouteDefinition::decode(existing()?.segment.definition(Table::Routes, id)?)
}

/// Defines a route. Returns `None` if the table is full, or if a target does not belong to this process's queue. The
/// caller then uses Python's own logging.
pub fn define_route(route: &RouteDefinition) -> Option<u32> {
    if route.targets.len() > logspool_record::definition::MAX_TARGETS {
        return None;
    }
    current()?.define_route(route)
}

/// Defines a format, or finds the one with the same definition. Returns `None` if `Format::compile` rejects the format,
/// or if the table is full. The caller then uses Python's own logging.
pub fn define_format(spec: &FormatSpec) -> Option<u32> {
    Format::compile(spec).ok()?;
    let pipeline = current()?;
    let mut encoder = Encoder::new();
    spec.encode(&mut encoder);
    let mut formats = pipeline.formats.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = formats.get(&encoder.bytes) {
        return Some(*id);
    }
    let id = pipeline.segment.define(Table::Formats, |encoder| spec.encode(encoder))?;
    formats.insert(encoder.bytes, id);
    Some(id)
}

/// Gives the place of a route back. No call may begin to use the route any more; calls that began before are waited for
/// before the place gets another route.
pub fn release_route(id: u32) {
    if let Some(pipeline) = existing() {
        pipeline.release_route(id);
    }
}

/// Whether places of closed sinks or released routes become free when the last records for them are written: a
/// definition that found no place may succeed after a [`super::flush`].
pub fn places_become_free() -> bool {
    let is_leaving = |outlet: &Arc<Outlet>| outlet.is_closing() || outlet.has_leaving_members();
    existing()
        .is_some_and(|pipeline| pipeline.has_retired_routes() || pipeline.outlets().iter().flatten().any(is_leaving))
}

/// Whether a closed sink still writes to the file of `definition`. A sink that is opened now has a writer of its own, so
/// the order of their lines is open.
pub fn is_leaving(definition: &SinkDefinition) -> bool {
    let place = sinks::written_place(definition);
    let outlets = existing().map(Pipeline::outlets).unwrap_or_default();
    outlets.iter().flatten().any(|outlet| outlet.is_leaving(definition, place))
}

/// Opens a sink. Its writer thread starts with the first record. If the sink borrows a descriptor, the thread starts
/// now.
///
/// All sinks that write to one file, pipe or terminal have one queue and one writer, so their lines keep the order of the
/// calls ([`sinks::GroupSink`]). Handlers with the same options share a sink. Each `open_sink` needs one [`close_sink`].
///
/// # Errors
///
/// Fails if the path cannot be opened, if the descriptor cannot be duplicated, or if the sink table is full.
pub fn open_sink(definition: &SinkDefinition) -> Result<u32, String> {
    let no_queue = || copies::other().map_or_else(|| "no memory for the queue".to_owned(), ToString::to_string);
    let pipeline = current().ok_or_else(no_queue)?;
    let found = sinks::written_place(definition);
    let outlets = pipeline.outlets();
    // A closing sink accepts no more users. An open sink for the same file may follow it in the list.
    if let Some(id) =
        found.and_then(|place| outlets.iter().flatten().find_map(|outlet| outlet.share(definition, place)))
    {
        return Ok(id);
    }
    let mut sink = sinks::open(definition).map_err(|error| format!("cannot open {}: {error}", definition.name))?;
    // Read the file's status before any lock is taken, since the disk may hang in this call.
    let destination = sinks::place(definition);
    let status = destination.path().and_then(|path| std::fs::metadata(path).ok());
    let place = found.or_else(|| sinks::written_place(definition));
    let group = outlets.into_iter().flatten().find(|outlet| outlet.is_for(definition, place) && outlet.add_user());
    // No batch may use an outlet while a slot of the sink table gets another sink.
    let _guard = pipeline.batching();
    let encode = |encoder: &mut Encoder| match &group {
        Some(outlet) => SinkDefinition::encode_shared(outlet.id, encoder),
        None => definition.encode(encoder),
    };
    let Some(id) = pipeline.segment.define(Table::Sinks, encode).or_else(|| pipeline.reuse_closed_sink(encode)) else {
        if let Some(outlet) = group.filter(|outlet| outlet.remove_user()) {
            pipeline.close_when_written(&outlet, outlet.id);
        }
        return Err(format!(
            "cannot open {}: a process has at most {} open sinks, and each needs some room in the queue's tmpfs",
            definition.name,
            MAX_SINKS - 1
        ));
    };
    let path = destination.path().or(definition.lasting.as_deref());
    if let (Some(shared), Some(path), Some((folder, name))) = (sink.shared(), path, pipeline.segment.home()) {
        shared.set_origin(Origin {
            folder: folder.clone(),
            name: name.to_owned(),
            uuid: pipeline.segment.header().uuid,
            sink: group.as_ref().map_or(id, |outlet| outlet.id),
            path: path.into(),
        });
    }
    if let Some(outlet) = group {
        // The outlet's own slot has the checkpoint of all its members.
        pipeline.segment.sink(Table::Sinks.slot(id)).closed.store(1, Ordering::Relaxed);
        pipeline.put_outlet(id, None);
        outlet.join(id, definition, place, sink);
        return Ok(id);
    }
    let mut outlet =
        Outlet::new(id, definition.clone(), place, sink, pipeline.segment.clone(), pipeline.budget.clone());
    outlet.set_syncs(pipeline.syncs.clone());
    outlet.set_bell(pipeline.spooler.as_ref().map(|spooler| spooler.bell.clone()));
    outlet.is_recoverable = match destination {
        Place::Address(_) => true,
        _ => status.is_some_and(|status| status.is_file()),
    };
    let outlet = Arc::new(outlet);
    pipeline.put_outlet(id, Some(outlet.clone()));
    // The writer closes its duplicate when the program closes the descriptor, even if no record ever comes.
    if outlet.is_lent && !pipeline.leave.load(Ordering::Relaxed) && outlet.claim_thread() {
        pipeline.start_writer(outlet);
    }
    Ok(id)
}

impl Pipeline {
    /// Sets the outlet in the slot of an id.
    fn put_outlet(&self, id: u32, outlet: Option<Arc<Outlet>>) {
        let mut outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Table::Sinks.slot(id);
        if outlets.len() <= slot {
            outlets.resize_with(slot + 1, || None);
        }
        outlets[slot] = outlet;
    }

    /// Gives a new sink the slot of a closed sink that has nothing left to write: of a closed member of a group, else
    /// of the sink that was closed first. Call it while no batch is being made.
    ///
    /// Records that name the old sink may still be in lanes, held there by a stalled sink. The old sink has already
    /// written these records, or dropped and counted them, so it no longer needs them. The slot's checkpoint continues
    /// where it was. The slots of all members are used again before that of their group, so no member outlives it.
    fn reuse_closed_sink(&self, encode: impl FnOnce(&mut Encoder)) -> Option<u32> {
        let outlets = self.outlets();
        let closed = |outlet: &Arc<Outlet>| Some((outlet.closed_at()?, outlet.id));
        let member = outlets.iter().flatten().find_map(|outlet| outlet.take_unused_member());
        let old = member.or_else(|| Some(outlets.iter().flatten().filter_map(closed).min()?.1))?;
        let begin_anew = || {
            let batch = self.segment.header().batch.load(Ordering::Relaxed);
            self.segment.sink(Table::Sinks.slot(old)).reset_for_next_sink(batch);
        };
        self.segment.redefine(Table::Sinks, old, begin_anew, encode)
    }

    /// Makes the sink's writer thread close the sink after all queued records are written. `id` is the id of the last
    /// member that was closed.
    fn close_when_written(&'static self, outlet: &Outlet, id: u32) {
        self.ensure_threads();
        outlet.close_when_written(self.request());
        self.retire_routes(id);
        // A flush requested earlier may have been answered before the outlet was marked as closing, so request another
        // one.
        self.request();
    }
}

/// The sinks that write to a file, one for each group.
pub fn sinks_at(place: SinkPlace) -> Vec<u32> {
    let outlets = existing().map(Pipeline::outlets).unwrap_or_default();
    outlets.iter().flatten().filter(|outlet| outlet.writes_to(place)).map(|outlet| outlet.id).collect()
}

/// Counter of how often a sink has switched to another file. It increases when the first record is in the new file.
pub fn rotation_count(sink: u32) -> Option<Arc<AtomicU64>> {
    Some(existing()?.outlet(sink)?.member_state(sink)?.rotation_count.clone())
}

/// Waits until all queued records are written to `sink`, then releases it.
///
/// Pushes of other threads that are under way count as queued before the call. Before this call, the language binding
/// must invalidate its copies of the sink's id. A push that takes its slow path from here on then sees the invalidation
/// before it retries.
///
/// Returns whether all records were written within `timeout`. Otherwise the records stay queued until the sink accepts
/// them, or until the next start if the process ends first. If the sink is a terminal or pipe, they are counted as
/// dropped. Call it without an interpreter lock.
pub fn close_sink(sink: u32, timeout: Duration) -> bool {
    let Some(pipeline) = existing() else { return true };
    let Some(outlet) = pipeline.outlet(sink) else { return true };
    let deadline = Instant::now() + outlet.lateness.remaining(timeout);
    door::settle_pushes(pipeline);
    let flush = pipeline.begin_flush(Awaited::Sink(outlet.clone()));
    let done = flush.is_none_or(|flush| flush.wait_until(Some(deadline)));
    match outlet.leave(sink, if done { 0 } else { pipeline.request() }) {
        Departure::Shared => return done,
        Departure::Member => {
            pipeline.retire_routes(sink);
            if done {
                outlet.drop_member(sink);
            }
            return done;
        }
        Departure::Last => {}
    }
    if !done && outlet.is_recoverable && pipeline.segment.survives() {
        outlet.note_close_timeout();
        pipeline.close_when_written(&outlet, sink);
        return false;
    }
    if !done {
        pipeline.fall_back_queued(&outlet);
        if !outlet.traits.is_local {
            let address = &outlet.definition.name;
            let left = outlet.counts().waiting();
            let seconds = timeout.as_secs_f64();
            fallback::report(&format!(
                "logspool: {address} did not confirm {left} records within {seconds} s; they are dropped\n"
            ));
        }
        outlet.abandon(DropReason::Deadline);
    }
    pipeline.sync_promised(std::slice::from_ref(&outlet), Some(deadline));
    outlet.ask_to_leave();
    // A writer in a stuck write keeps the descriptor until the write returns.
    if done {
        pipeline.wait(Some(deadline), || !outlet.thread_runs());
    }
    outlet.release();
    pipeline.retire_routes(sink);
    done
}

/// Closes a sink as [`close_sink`] does, but without waiting: the sink's writer closes it after all queued records are
/// written.
///
/// Language bindings use it when a handler is freed at a point where waiting is not allowed. A sink that is opened
/// meanwhile for the same file does not share this sink. [`super::flush`] waits for the remaining records.
pub fn retire_sink(sink: u32) {
    let Some(pipeline) = existing() else { return };
    let Some(outlet) = pipeline.outlet(sink) else { return };
    door::settle_pushes(pipeline);
    pipeline.ensure_threads();
    match outlet.leave(sink, pipeline.request()) {
        Departure::Shared => {}
        Departure::Member => pipeline.retire_routes(sink),
        Departure::Last => pipeline.close_when_written(&outlet, sink),
    }
}
