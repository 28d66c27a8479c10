//! Applies the rules of `install()` to a record before it is queued: redaction, escapes, sampling and limits.
//!
//! Pipeline stages: *capture* and *queue* (see ARCHITECTURE.md). Without rules, a call reads one pointer more. With
//! rules, the record is encoded into memory of the thread, and the crate `logspool-rules` decides what is queued. A
//! thread keeps the sites and loggers that the ids of its records stand for.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicPtr;
use std::sync::{Mutex, PoisonError};

use logspool::pipeline::{self, Options};
use logspool_record::format::CompiledSite;
use logspool_record::{Head, flags};
use logspool_rules::{OfferedRecord, RuleOptions, RuleState, Rules, Summary, Verdict};
use logspool_sys::clock::monotonic_ns;
use logspool_sys::published::Published;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::calls::pieces::{self, Pieces, QueueOutcome, small_int};
use crate::flushing::{self, Summaries};
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object};
use crate::plans::environment::IdValidity;

/// The rules in force; null if there are none. They are never freed, because calls of other threads may use them, and
/// a lock could not be used in a forked child.
static RULES: AtomicPtr<Rules> = AtomicPtr::new(std::ptr::null_mut());

/// The options of [`RULES`].
static OPTIONS: Mutex<Option<RuleOptions>> = Mutex::new(None);

/// The origin of a finished line, which its bytes do not show.
#[derive(Debug, Clone, Copy)]
pub struct LineOrigin<'a> {
    /// Name of the logger; empty if it is unknown.
    pub logger: &'a str,
    /// A number that identifies the place of the call.
    pub place: u64,
    /// Whether the bytes are an entry, whose texts were redacted when it was made.
    pub is_entry: bool,
}

impl LineOrigin<'_> {
    /// The origin of a record whose head names its logger.
    pub fn of_place(record: Object<'_, '_>) -> Self {
        Self { place: if need_origin() { place_of(record) } else { 0 }, ..Self::NONE }
    }

    /// The head names the logger and the place, or they are unknown.
    pub const NONE: Self = Self { logger: "", place: 0, is_entry: false };
}

/// The rules in force.
///
/// The atomic is outside the crate's `queue` module: the rules are finished before they are published, and a call that
/// runs while they change follows the old or the new ones.
#[inline(always)]
pub fn current() -> Option<&'static Rules> {
    // SAFETY: the pointer is null or that of rules that `put_into_force` leaked.
    unsafe { RULES.observe().as_ref() }
}

/// True if rules have to know the logger and the place of a finished line.
pub fn need_origin() -> bool {
    current().is_some_and(Rules::limits)
}

/// A number that identifies the place of a record's call.
#[cold]
pub fn place_of(record: Object<'_, '_>) -> u64 {
    let py = record.py();
    let mut hasher = DefaultHasher::new();
    for name in [&names().pathname, &names().lineno] {
        let value = object::attribute(record, name);
        match value.as_ref().map(|value| value.bind(py)) {
            Some(value) if small_int(value).is_some() => small_int(value).hash(&mut hasher),
            Some(value) => object::text(value).hash(&mut hasher),
            None => {}
        }
    }
    hasher.finish()
}

/// Puts the rules of these options into force, in place of the earlier ones.
///
/// # Errors
///
/// `ValueError` that names the option that cannot be used, or the error of a signal handler.
pub fn set(py: Python<'_>, options: &Options) -> PyResult<()> {
    let given = rule_options(options);
    if *locked(&OPTIONS) == Some(given.clone()) {
        return Ok(());
    }
    let rules = Rules::compile(&given).map_err(PyValueError::new_err)?;
    // The earlier rules end here, so what they left out is said now.
    push_all_summaries(py)?;
    put_into_force(rules);
    *locked(&OPTIONS) = Some(given);
    Ok(())
}

fn put_into_force(rules: Option<Rules>) {
    flushing::set_summaries(Summaries {
        push_due: push_due_summaries,
        push_all: push_all_summaries,
        forget: forget_summaries,
    });
    RULES.publish(rules.map_or(std::ptr::null_mut(), |rules| Box::into_raw(Box::new(rules))));
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Continues in a forked child, whose parent sums up what both have left out so far.
pub fn after_fork_in_child() {
    logspool_rules::reset_counts();
    if let Some(rules) = current().filter(|rules| rules.limits()) {
        put_into_force(Some(rules.renewed()));
    }
}

/// Checks the rules of these options.
///
/// # Errors
///
/// The text names the option that cannot be used.
pub fn check(options: &Options) -> Result<(), String> {
    Rules::compile(&rule_options(options)).map(drop)
}

fn rule_options(options: &Options) -> RuleOptions {
    RuleOptions {
        redact_keys: options.redact_keys.clone(),
        redact_patterns: options.redact_patterns.clone(),
        escape_control: options.escape_control,
        deduplicate: options.deduplicate,
        rate_limit: options.rate_limit,
        sample: options.sample.clone(),
    }
}

/// Number of sites and loggers that a thread keeps.
///
/// Chosen: a thread logs from few places. An entry takes some 200 bytes.
const KEPT: usize = 64;

/// A definition that a thread keeps, with its id.
struct Kept<T>(u32, Option<Box<T>>);

/// What the rules have to know of a route.
struct KeptRoute {
    logger: String,
    /// A hash of the ids of the sinks.
    sinks: u64,
}

impl KeptRoute {
    fn of(id: u32) -> Option<Self> {
        let route = pipeline::route_definition(id)?;
        let mut hasher = DefaultHasher::new();
        route.targets.iter().for_each(|target| target.sink.hash(&mut hasher));
        Some(Self { logger: route.logger, sinks: hasher.finish() })
    }
}

/// What a thread keeps from record to record.
struct ThreadState {
    id_epoch: u64,
    buffers: RuleState,
    values: Vec<u8>,
    sites: Vec<Kept<CompiledSite>>,
    routes: Vec<Kept<KeptRoute>>,
}

thread_local! {
    /// Taken out while a call uses it.
    static STATE: Cell<Option<Box<ThreadState>>> = const { Cell::new(None) };
}

impl ThreadState {
    fn new() -> Self {
        Self { id_epoch: 0, buffers: RuleState::default(), values: Vec::new(), sites: Vec::new(), routes: Vec::new() }
    }

    /// Forgets the definitions of another id epoch.
    fn renew(&mut self, id_epoch: u64) {
        if self.id_epoch != id_epoch {
            self.id_epoch = id_epoch;
            self.sites.clear();
            self.routes.clear();
        }
    }
}

/// The definition of `id`, which `load` reads if the thread does not keep it.
fn kept<T>(all: &mut Vec<Kept<T>>, id: u32, load: impl FnOnce() -> Option<T>) -> Option<&T> {
    if all.is_empty() {
        all.resize_with(KEPT, || Kept(0, None));
    }
    let place = &mut all[id as usize % KEPT];
    if place.0 != id || place.1.is_none() {
        *place = Kept(id, load().map(Box::new));
    }
    place.1.as_deref()
}

/// Queues one record, unless a rule leaves it out. See [`pieces::push`].
#[inline(always)]
pub fn queue(
    py: Python<'_>,
    head: Head,
    made_under: IdValidity,
    pieces: &Pieces<'_>,
    origin: LineOrigin<'_>,
) -> QueueOutcome {
    if let Some(rules) = current() {
        return queue_by_rules(py, rules, head, made_under, pieces, origin);
    }
    pieces::push(py, head, made_under, pieces)
}

#[cold]
#[inline(never)]
fn queue_by_rules(
    py: Python<'_>,
    rules: &'static Rules,
    head: Head,
    made_under: IdValidity,
    pieces: &Pieces<'_>,
    origin: LineOrigin<'_>,
) -> QueueOutcome {
    let mut state = STATE.try_with(Cell::take).ok().flatten().unwrap_or_else(|| Box::new(ThreadState::new()));
    state.renew(made_under.id_epoch);
    let now_ns = monotonic_ns();
    let epoch = made_under.id_epoch;
    let due = rules.due_summaries(now_ns, epoch);
    let ThreadState { buffers, values, sites, routes, .. } = &mut *state;
    pieces.write_to(values);
    let is_line = head.flags & flags::TEXT != 0;
    let known = if is_line { None } else { kept(routes, head.route, || KeptRoute::of(head.route)) };
    let site = if is_line || head.site == 0 {
        None
    } else {
        kept(sites, head.site, || pipeline::site_definition(head.site).map(CompiledSite::new))
    };
    let verdict = rules.apply(
        &OfferedRecord {
            head,
            logger: known.map_or(origin.logger, |route| &route.logger),
            sinks: known.map_or(head.route.into(), |route| route.sinks),
            site,
            place: origin.place,
            is_opaque: origin.is_entry,
            values,
            epoch,
            now_ns,
        },
        buffers,
    );
    let changed = (verdict == Verdict::Replace).then(|| std::mem::take(&mut buffers.values));
    // From here on signal handlers may run, which may log.
    let _ = STATE.try_with(|cell| cell.set(Some(state)));
    let raised = push_each(py, due, made_under);
    let outcome = match (verdict, changed) {
        (Verdict::LeaveOut, _) => QueueOutcome::Done,
        (_, Some(values)) => push_values(py, head, made_under, &values),
        (_, None) => pieces::push(py, head, made_under, pieces),
    };
    match raised {
        None => outcome,
        Some(error) => {
            error.restore(py);
            QueueOutcome::Raised
        }
    }
}

/// Queues the records about records that were left out, if they are due. Called before a flush.
fn push_due_summaries(py: Python<'_>) -> PyResult<()> {
    push_summaries(py, |rules, epoch| rules.due_summaries(monotonic_ns(), epoch))
}

/// Queues all records about records that were left out. Called before the last flush.
///
/// # Errors
///
/// The error that a signal handler raised while the call waited for room.
pub fn push_all_summaries(py: Python<'_>) -> PyResult<()> {
    push_summaries(py, |rules, epoch| rules.all_summaries(epoch))
}

fn push_summaries(py: Python<'_>, of: impl FnOnce(&Rules, u64) -> Vec<Summary>) -> PyResult<()> {
    let Some(rules) = current() else { return Ok(()) };
    let made_under = IdValidity::now();
    push_each(py, of(rules, made_under.id_epoch), made_under).map_or(Ok(()), Err)
}

/// Queues summaries, and returns the last error that a signal handler raised meanwhile. Each summary is queued or
/// counted as refused.
fn push_each(py: Python<'_>, summaries: Vec<Summary>, made_under: IdValidity) -> Option<PyErr> {
    let mut raised = None;
    for summary in summaries {
        if push_values(py, summary.head, made_under, &summary.values) == QueueOutcome::Raised {
            raised = Some(PyErr::fetch(py));
        }
    }
    raised
}

fn push_values(py: Python<'_>, head: Head, made_under: IdValidity, values: &[u8]) -> QueueOutcome {
    let mut pieces = Pieces::new();
    pieces.raw(values);
    pieces::push(py, head, made_under, &pieces)
}

/// Drops the summaries that [`push_all_summaries`] has not queued. Called when a sink is about to be closed: other
/// threads may have begun windows with records for it since.
pub fn forget_summaries() {
    if let Some(rules) = current() {
        drop(rules.all_summaries(pipeline::id_epoch()));
    }
}
