//! Loggers: a name, a level and sinks.

use std::sync::atomic::Ordering;

use logspool::pipeline;
use logspool_record::definition::{MAX_TARGETS, RouteDefinition, Target};
use logspool_sys::fork_safe_lock::ForkSafeLock;

use crate::handles::{HandleTable, PublicHandle};
use crate::sinks::SINKS;
use crate::status::{Failure, Status};

/// A logger.
pub struct LoggerHandle {
    /// The logger's name.
    pub name: String,
    /// Ids of the handles of its sinks. Former lists are never freed, because a reader may still use them.
    sinks: ForkSafeLock<&'static [u32]>,
    /// The part that headers read.
    pub public: &'static PublicHandle,
}

/// All loggers of the process.
pub static LOGGERS: HandleTable<LoggerHandle> = HandleTable::new();

/// Makes a logger or finds it by its name.
///
/// # Errors
///
/// Unknown sinks, or too many of them.
pub fn define(name: &str, level: u16, sinks: &[u32]) -> Result<u32, Failure> {
    let (id, logger) = find_or_add(name, level, sinks, None)?;
    logger.route()?;
    Ok(id)
}

/// Adds the logger of another copy, whose public part stays where it is.
///
/// # Errors
///
/// Unknown sinks, or too many of them.
pub fn restore(name: &str, sinks: &[u32], public: &'static PublicHandle) -> Result<u32, Failure> {
    let level = public.level.load(Ordering::Relaxed) as u16;
    find_or_add(name, level, sinks, Some(public)).map(|(id, _)| id)
}

fn find_or_add(
    name: &str,
    level: u16,
    sinks: &[u32],
    public: Option<&'static PublicHandle>,
) -> Result<(u32, &'static LoggerHandle), Failure> {
    if sinks.len() > MAX_TARGETS {
        return Err(Failure::invalid(format!("a logger has at most {MAX_TARGETS} sinks, not {}", sinks.len())));
    }
    if let Some(unknown) = sinks.iter().find(|id| SINKS.get(**id).is_none()) {
        return Err(Failure::unknown("sink", *unknown));
    }
    let make = || {
        let public = public.unwrap_or_else(|| Box::leak(Box::new(PublicHandle::new(level))));
        Ok::<_, Failure>(LoggerHandle { name: name.to_owned(), sinks: ForkSafeLock::new(&[]), public })
    };
    let found = LOGGERS.find_or_add(|logger| logger.name == name, make)?;
    let id = found.ok_or_else(|| Failure::new(Status::Failed, "there are too many loggers"))?;
    let Some(logger) = LOGGERS.get(id) else { return Err(Failure::unknown("logger", id)) };
    logger.public.level.store(u32::from(level), Ordering::Relaxed);
    // Each list of sinks takes a route of the queue, so the same list keeps its route.
    if !sinks.is_empty() && sinks != *logger.sinks.lock() {
        *logger.sinks.lock() = Box::leak(sinks.to_vec().into_boxed_slice());
        let needs = sinks.iter().filter_map(|id| SINKS.get(*id)).fold(0, |needs, sink| needs | sink.needs);
        logger.public.needs.store(needs, Ordering::Relaxed);
        logger.public.set(0, 0);
    }
    Ok((id, logger))
}

/// The id of the logger with this name. `None`: there is none.
pub fn find(name: &str) -> Option<u32> {
    LOGGERS.find(|logger| logger.name == name)
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
        loop {
            let sinks = *self.sinks.lock();
            let target = |id: &u32| {
                let sink = SINKS.get(*id).ok_or_else(|| Failure::unknown("sink", *id))?;
                sink.ids().map(|(id, format)| Target { sink: id, format, min_level: sink.min_level })
            };
            let targets = sinks.iter().map(target).collect::<Result<Vec<_>, _>>()?;
            let number = pipeline::id_epoch();
            let route = pipeline::define_route(&RouteDefinition { logger: self.name.clone(), targets });
            let now = pipeline::id_epoch();
            match route {
                Some(route) if number == now || sinks.is_empty() => {
                    self.public.set(now, route);
                    return Ok((route, now));
                }
                _ if number != now => {}
                _ => return Err(Failure::new(Status::Failed, "the queue has no room for another logger")),
            }
        }
    }
}
