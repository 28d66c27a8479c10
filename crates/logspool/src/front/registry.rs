//! What a Rust program has configured, and what of it the current pipeline knows.
//!
//! Sinks, formats, routes and call sites have ids of one pipeline. After a fork the child has a new pipeline, so
//! everything is defined again at the first call there.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: what every call reads.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use logspool_lanes::segment::layout::MAX_ROUTES;
use logspool_record::definition::{RouteDefinition, Target};
use logspool_record::format::{Extras, Format, FormatSpec, Layout, Need};
use logspool_sys::fork_safe_lock::PerProcess;
use logspool_sys::published::Published;

use super::output::Output;
use crate::pipeline::{self, PlaceAttempt, Refusal};

/// What the program has configured. It never changes after the start.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) outputs: Vec<Output>,
    pub(super) format: FormatSpec,
    /// Prefixes of targets, each with the lowest level of its records.
    pub(super) target_levels: Vec<(String, u16)>,
    /// Names of the members of JSON outputs that append the keys of a record.
    members: Vec<String>,
}

/// Whether a JSON output appends the keys of a record.
static HAS_MEMBERS: AtomicBool = AtomicBool::new(false);
/// Whether a format shows the thread.
static SHOWS_THREAD: AtomicBool = AtomicBool::new(false);

static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// The lowest level of a record. Above every level until the program has started logging.
static MIN_LEVEL: AtomicU16 = AtomicU16::new(u16::MAX);
static DEFINED: PerProcess<Defined> = PerProcess::new();

/// What the pipeline with the number `epoch` knows.
#[derive(Debug, Default)]
struct Defined {
    epoch: u64,
    /// For each output its sink and format; `None` if it could not be opened.
    targets: Vec<Option<Target>>,
    routes: HashMap<String, TargetRoute>,
}

/// The route of a target; `None` if there is no room for it.
#[derive(Debug)]
struct TargetRoute {
    id: Option<u32>,
    /// Whether a `static` has the id, so the route stays.
    is_fixed: bool,
}

/// How a call names its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// In the text of the program; the call keeps the ids.
    Fixed,
    /// When the program runs.
    Found,
}

/// Number of targets that were closed. Kept ids of found targets are valid under one number.
static CLOSED_TARGETS: AtomicU64 = AtomicU64::new(0);

/// Number of targets that were closed so far.
#[inline]
pub(super) fn closed_targets() -> u64 {
    CLOSED_TARGETS.observe()
}

/// Gives the place of a target's route back: the target was found when the program ran, and is not used any more, as
/// that of a connection. `false`: there is no such target, or a call has its name in the text of the program.
///
/// What was logged for it is written under its name. No other thread may log to the target during this call. If it is
/// used again, it gets another place.
pub fn close_target(target: &str) -> bool {
    DEFINED.with(|defined| {
        let is_current = defined.epoch == pipeline::id_epoch();
        if !is_current || defined.routes.get(target).is_none_or(|route| route.is_fixed) {
            return false;
        }
        let closed = defined.routes.remove(target).and_then(|route| route.id);
        CLOSED_TARGETS.publish(CLOSED_TARGETS.load(Ordering::Relaxed) + 1);
        closed.into_iter().for_each(pipeline::release_route);
        true
    })
}

/// Where the records of a call site go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SiteRoute {
    /// Id in the route table.
    Id(u32),
    /// The settings leave records of this level out.
    Unwanted,
    /// There is no queue, no output could be opened, or the table of routes is full. The records are refused.
    Missing,
}

impl SiteRoute {
    /// The id. A record of this level that has none is counted.
    #[inline(always)]
    pub(super) fn id(self, level: u16) -> Option<u32> {
        match self {
            Self::Id(id) => Some(id),
            Self::Unwanted => None,
            Self::Missing => {
                pipeline::refuse(level, Refusal::NoLane);
                None
            }
        }
    }
}

/// Ids of a call site in one pipeline.
#[derive(Debug, Clone, Copy)]
pub struct SiteIds {
    /// The pipeline.
    pub(super) epoch: u64,
    /// Id in the site table, or 0: the caller then makes the text.
    pub(super) site: u32,
    pub(super) route: SiteRoute,
}

/// The lowest level of a record, as its number.
#[inline(always)]
pub(super) fn min_level() -> u16 {
    MIN_LEVEL.load(Ordering::Relaxed)
}

pub(super) fn set_min_level(level: u16) {
    MIN_LEVEL.store(level, Ordering::Relaxed);
}

/// Whether a record brings its thread, because a format shows it.
#[inline(always)]
pub(super) fn shows_thread() -> bool {
    SHOWS_THREAD.load(Ordering::Relaxed)
}

/// Stores the settings. `false`: the program has started logging before.
pub(super) fn set(settings: Settings) -> bool {
    let (shows_thread, has_members) = (settings.shows_thread(), !settings.members.is_empty());
    let is_first = SETTINGS.set(settings).is_ok();
    if is_first {
        SHOWS_THREAD.store(shows_thread, Ordering::Relaxed);
        HAS_MEMBERS.store(has_members, Ordering::Relaxed);
    }
    is_first
}

impl Settings {
    pub(super) fn new(mut outputs: Vec<Output>, format: FormatSpec, target_levels: Vec<(String, u16)>) -> Self {
        for output in &mut outputs {
            output.format = Some(output.resolved_format(&format));
        }
        let mut settings = Self { outputs, format, target_levels, members: Vec::new() };
        let members = |output| match &settings.format_of(output).layout {
            Layout::Json { fields, extras: Extras::Append } => {
                // A member that shows a key of the record is no reason for another name.
                let shown = Format::compile(settings.format_of(output)).map(|format| format.needs().fields().to_vec());
                let shown = shown.unwrap_or_default();
                let hides = |(_, source): &&(String, String)| !shown.iter().any(|name| **name == **source);
                fields.iter().filter(hides).map(|(key, _)| key.clone()).collect()
            }
            _ => Vec::new(),
        };
        settings.members = settings.outputs.iter().flat_map(members).collect();
        settings
    }

    /// Whether the records of this level of a target are wanted.
    fn accepts(&self, target: &str, level: u16) -> bool {
        let is_prefix =
            |prefix: &str| target.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        // The longest prefix decides.
        let rule =
            self.target_levels.iter().filter(|(prefix, _)| is_prefix(prefix)).max_by_key(|(prefix, _)| prefix.len());
        rule.is_none_or(|(_, min_level)| level >= *min_level)
    }

    fn format_of<'a>(&'a self, output: &'a Output) -> &'a FormatSpec {
        output.format.as_ref().unwrap_or(&self.format)
    }

    fn shows_thread(&self) -> bool {
        let needs_thread = |output: &Output| {
            let format = Format::compile(self.format_of(output));
            format.is_ok_and(|format| {
                format.needs().contains(Need::ThreadId) || format.needs().contains(Need::ThreadName)
            })
        };
        self.outputs.iter().any(needs_thread)
    }
}

impl Defined {
    /// Defines the outputs in the current pipeline, unless it knows them. Returns the reasons of those that failed.
    fn refresh(&mut self, settings: &Settings) -> Vec<String> {
        if self.epoch == pipeline::id_epoch() && self.targets.len() == settings.outputs.len() {
            return Vec::new();
        }
        let mut failed = Vec::new();
        self.routes.clear();
        self.targets.clear();
        for output in &settings.outputs {
            let opened = output.define().and_then(|definition| pipeline::open_sink(&definition));
            let format = pipeline::define_format(settings.format_of(output));
            self.targets.push(match (opened, format) {
                (Ok(sink), Some(format)) => Some(Target { sink, format, min_level: output.min_level }),
                (Ok(_), None) => {
                    failed.push("the format is not valid".to_owned());
                    None
                }
                (Err(reason), _) => {
                    failed.push(reason);
                    None
                }
            });
        }
        // The first definition begins the pipeline, so its number is read last.
        self.epoch = pipeline::id_epoch();
        failed
    }

    /// The route of a target, or that of the target `""` if there is no room for another. That one is defined first.
    fn route(&mut self, target: &str, kind: TargetKind) -> Option<u32> {
        let common = self.own_route("", TargetKind::Fixed);
        let is_known = self.routes.contains_key(target) || self.routes.len() < MAX_TARGET_ROUTES;
        if is_known { self.own_route(target, kind).or(common) } else { common }
    }

    fn own_route(&mut self, target: &str, kind: TargetKind) -> Option<u32> {
        if let Some(known) = self.routes.get_mut(target) {
            known.is_fixed |= kind == TargetKind::Fixed;
            return known.id;
        }
        let targets: Vec<Target> = self.targets.iter().flatten().copied().collect();
        let id = if targets.is_empty() { None } else { define_route(target, targets) };
        self.routes.insert(target.to_owned(), TargetRoute { id, is_fixed: kind == TargetKind::Fixed });
        id
    }
}

/// Defines a route. Waits a little for the place of a closed target.
fn define_route(target: &str, targets: Vec<Target>) -> Option<u32> {
    let route = RouteDefinition { logger: target.to_owned(), targets };
    pipeline::until_place(PLACE_TIMEOUT, |_| match pipeline::define_route(&route) {
        None => PlaceAttempt::NoPlace(None),
        route => PlaceAttempt::Done(route),
    })
}

/// How long the first call of a target waits for the place of a closed one. Chosen: records are written in milliseconds;
/// without a place the record has no name.
const PLACE_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the levels of the program's targets accept a record.
#[cfg(feature = "tracing")]
pub(super) fn accepts(target: &str, level: u16) -> bool {
    SETTINGS.get().is_some_and(|settings| settings.accepts(target, level))
}

/// The text after the name of a key in a record: `_` if a JSON output has a member of that name, which would hide it.
#[inline]
pub(super) fn key_suffix(key: &str) -> &'static str {
    if HAS_MEMBERS.load(Ordering::Relaxed) && is_member(key) { "_" } else { "" }
}

#[cold]
fn is_member(key: &str) -> bool {
    SETTINGS.get().is_some_and(|settings| settings.members.iter().any(|member| member == key))
}

/// Opens all outputs now.
///
/// # Errors
///
/// The reasons of all outputs that could not be opened.
pub(super) fn open_outputs(settings: &Settings) -> Result<(), String> {
    let failed = DEFINED.with(|defined| defined.refresh(settings));
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Maximum number of targets with a route. Records of further targets go to the route of the target `""`.
///
/// Chosen: large programs have some thousand modules.
const MAX_TARGET_ROUTES: usize = MAX_ROUTES;

/// Defines the route of a call in the current pipeline, and its site, which `site` defines in the pipeline with the
/// number that it gets.
#[cold]
pub(super) fn define(target: &str, kind: TargetKind, level: u16, site: impl FnOnce(u64) -> u32) -> SiteIds {
    let unwanted = SiteIds { epoch: pipeline::id_epoch(), site: 0, route: SiteRoute::Unwanted };
    let Some(settings) = SETTINGS.get() else { return unwanted };
    if !settings.accepts(target, level) {
        return unwanted;
    }
    DEFINED.with(|defined| {
        for reason in defined.refresh(settings) {
            crate::fallback::report(&format!("an output cannot be opened after a fork: {reason}"));
        }
        let route = defined.route(target, kind).map_or(SiteRoute::Missing, SiteRoute::Id);
        SiteIds { epoch: defined.epoch, site: site(defined.epoch), route }
    })
}
