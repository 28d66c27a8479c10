//! Loggers: a name, a level and sinks.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: what changes while calls look at it.

use std::sync::atomic::{AtomicU32, Ordering};

use logspool::pipeline::{self, PlaceAttempt};
use logspool_record::definition::{MAX_TARGETS, RouteDefinition, Target};
use logspool_sys::fork_safe_lock::ForkSafeLock;

use crate::by_name::{NameIndex, Named};
use crate::handles::{HandleTable, PLACE_TIMEOUT, PublicHandle};
use crate::sinks::{self, SINKS, SinkHandle};
use crate::status::{Failure, Status};

/// A logger.
pub struct LoggerHandle {
    /// The logger's name.
    pub name: String,
    /// Ids of the handles of its sinks. Former lists are never freed, because a reader may still use them.
    sinks: ForkSafeLock<&'static [u32]>,
    /// Number of definitions that were not closed.
    pub users: AtomicU32,
    next_of_bucket: AtomicU32,
    /// The part that headers read.
    pub public: &'static PublicHandle,
}

/// The open loggers of the process.
pub static LOGGERS: HandleTable<LoggerHandle> = HandleTable::new();

static BY_NAME: NameIndex<LoggerHandle> = NameIndex::new(&LOGGERS);

/// Locked while loggers are found by name, added and closed.
static NAMES: ForkSafeLock<()> = ForkSafeLock::new(());

/// Level of a closed logger: it logs nothing.
const CLOSED_LEVEL: u32 = u32::MAX;

/// Makes a logger or finds it by its name. Each definition needs one [`close`].
///
/// # Errors
///
/// Unknown or closed sinks, or too many of them or of loggers.
pub fn define(name: &str, level: u16, sinks: &[u32]) -> Result<u32, Failure> {
    check(sinks, |sink| sink.is_open())?;
    let _names = NAMES.lock();
    let found = BY_NAME.find(name).or_else(|| {
        let make = |closed: Option<&LoggerHandle>| {
            // The address of the public part stays valid for ever, so it is used again.
            let public = closed.map_or_else(|| Box::leak(Box::new(PublicHandle::new(level))) as &_, |old| old.public);
            LoggerHandle::new(name, public)
        };
        let id = LOGGERS.add(make)?;
        let logger = LOGGERS.get(id)?;
        BY_NAME.add(id, logger);
        Some((id, logger))
    });
    let (id, logger) = found.ok_or_else(|| Failure::new(Status::Failed, "there are too many loggers"))?;
    logger.users.fetch_add(1, Ordering::Relaxed);
    logger.public.level.store(u32::from(level), Ordering::Relaxed);
    logger.set_sinks(sinks);
    logger.route().inspect_err(|_| give_back(id, logger))?;
    Ok(id)
}

/// Adds the logger of another copy under its id; its public part stays where it is.
///
/// # Errors
///
/// Unknown sinks, or the id is in use.
pub fn restore(
    id: Option<u32>,
    name: &str,
    sinks: &[u32],
    users: u32,
    public: &'static PublicHandle,
) -> Result<u32, Failure> {
    check(sinks, |_| true)?;
    let _names = NAMES.lock();
    let logger = LoggerHandle::new(name, public);
    let added = match id {
        Some(id) => LOGGERS.add_as(id, logger),
        None => LOGGERS.add(|_| logger),
    };
    let found = added.and_then(|id| Some((id, LOGGERS.get(id)?)));
    let (id, logger) = found.ok_or_else(|| Failure::new(Status::Failed, "the id of a logger is in use"))?;
    BY_NAME.add(id, logger);
    logger.users.store(users, Ordering::Relaxed);
    logger.set_sinks(sinks);
    Ok(id)
}

fn check(sinks: &[u32], is_usable: impl Fn(&SinkHandle) -> bool) -> Result<(), Failure> {
    if sinks.len() > MAX_TARGETS {
        return Err(Failure::invalid(format!("a logger has at most {MAX_TARGETS} sinks, not {}", sinks.len())));
    }
    match sinks.iter().find(|id| !SINKS.get(**id).is_some_and(&is_usable)) {
        Some(unknown) => Err(Failure::unknown("sink", *unknown)),
        None => Ok(()),
    }
}

/// The id of the logger with this name. `None`: there is none.
pub fn find(name: &str) -> Option<u32> {
    let _names = NAMES.lock();
    BY_NAME.find(name).map(|(id, _)| id)
}

/// Takes back one definition of a logger. The last one closes it: its queued records are written under its name, and its
/// place is free for another logger.
///
/// # Errors
///
/// There is no such logger.
pub fn close(logger: u32) -> Result<Status, Failure> {
    let _names = NAMES.lock();
    let handle = LOGGERS.get(logger).ok_or_else(|| Failure::unknown("logger", logger))?;
    give_back(logger, handle);
    Ok(Status::Ok)
}

fn give_back(id: u32, logger: &LoggerHandle) {
    if logger.users.fetch_sub(1, Ordering::Relaxed) > 1 {
        return;
    }
    logger.public.level.store(CLOSED_LEVEL, Ordering::Relaxed);
    logger.release_route();
    BY_NAME.remove(id, logger);
    LOGGERS.close(id);
    logger.sinks().iter().for_each(|sink| sinks::give_back(*sink));
}

/// Changes the level of a logger.
///
/// # Errors
///
/// There is no such logger.
pub fn set_level(logger: u32, level: u16) -> Result<Status, Failure> {
    let logger = LOGGERS.get(logger).ok_or_else(|| Failure::unknown("logger", logger))?;
    logger.public.level.store(u32::from(level), Ordering::Relaxed);
    Ok(Status::Ok)
}

impl LoggerHandle {
    fn new(name: &str, public: &'static PublicHandle) -> Self {
        Self {
            name: name.to_owned(),
            sinks: ForkSafeLock::new(&[]),
            users: AtomicU32::new(0),
            next_of_bucket: AtomicU32::new(0),
            public,
        }
    }

    /// Gives the logger other sinks. Each list of sinks takes a route of the queue, so the same list keeps its route.
    fn set_sinks(&self, sinks: &[u32]) {
        let former = self.sinks();
        if sinks.is_empty() || sinks == former {
            return;
        }
        // First, so that no sink is closed that is in both lists.
        sinks.iter().for_each(|sink| sinks::share(*sink));
        *self.sinks.lock() = Box::leak(sinks.to_vec().into_boxed_slice());
        let needs = sinks.iter().filter_map(|id| SINKS.get(*id)).fold(0, |needs, sink| needs | sink.needs);
        self.public.needs.store(needs, Ordering::Relaxed);
        self.release_route();
        former.iter().for_each(|sink| sinks::give_back(*sink));
    }

    /// Makes the next call define another route.
    fn release_route(&self) {
        let route = self.public.id_under(pipeline::id_epoch());
        self.public.set(0, 0);
        route.into_iter().for_each(pipeline::release_route);
    }

    /// Ids of the handles of its sinks.
    pub fn sinks(&self) -> &'static [u32] {
        *self.sinks.lock()
    }

    /// Id of the route in the current pipeline, and the pipeline's number.
    ///
    /// # Errors
    ///
    /// A sink cannot be opened, or there are too many routes.
    #[inline]
    pub fn route(&self) -> Result<(u32, u64), Failure> {
        let number = pipeline::id_epoch();
        match self.public.id_under(number) {
            Some(id) => Ok((id, number)),
            None => self.define_route(),
        }
    }

    #[cold]
    fn define_route(&self) -> Result<(u32, u64), Failure> {
        pipeline::until_place(PLACE_TIMEOUT, |_| self.try_route())
    }

    fn try_route(&self) -> PlaceAttempt<Result<(u32, u64), Failure>> {
        let sinks = *self.sinks.lock();
        let target = |id: &u32| {
            let sink = SINKS.get(*id).ok_or_else(|| Failure::unknown("sink", *id))?;
            sink.ids().map(|(id, format)| Target { sink: id, format, min_level: sink.min_level })
        };
        let targets = match sinks.iter().map(target).collect::<Result<Vec<_>, _>>() {
            Ok(targets) => targets,
            Err(failure) => return PlaceAttempt::Done(Err(failure)),
        };
        let number = pipeline::id_epoch();
        let route = pipeline::define_route(&RouteDefinition { logger: self.name.clone(), targets });
        let now = pipeline::id_epoch();
        match route {
            Some(route) if number == now || sinks.is_empty() => {
                self.public.set(now, route);
                PlaceAttempt::Done(Ok((route, now)))
            }
            _ if number != now => PlaceAttempt::Again,
            _ => PlaceAttempt::NoPlace(Err(Failure::new(Status::Failed, "the queue has no room for another logger"))),
        }
    }
}

impl Named for LoggerHandle {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_of_bucket(&self) -> &AtomicU32 {
        &self.next_of_bucket
    }
}

impl Drop for LoggerHandle {
    fn drop(&mut self) {
        let sinks = *self.sinks.lock();
        if !sinks.is_empty() {
            // SAFETY: `set_sinks` has leaked the list, and the logger was closed long ago.
            drop(unsafe { Box::from_raw(std::ptr::from_ref(sinks).cast_mut()) });
        }
    }
}
