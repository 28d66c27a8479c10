//! Defines routes and retires them. If the table is full, a new route reuses the slot of a retired route.

use std::sync::PoisonError;

use logspool_lanes::segment::layout::{MAX_ROUTES, Table};
use logspool_record::definition::{RouteDefinition, Target};

use super::door;
use super::route_table::{RetiredRoutes, Routes};
use super::state::Pipeline;
use logspool_sys::published::Published;

/// Released routes that are retired at once, since waiting for the calls that use them makes each thread take its slow
/// path. Chosen: an eighth of the table, so places are free again long before they are needed.
const RELEASED_AT_ONCE: usize = MAX_ROUTES / 8;

impl Pipeline {
    pub(super) fn define_route(&self, route: &RouteDefinition) -> Option<u32> {
        // A forked child may pass sink ids of its parent, which have no outlet in this process.
        let is_known = |target: &Target| {
            let format = || self.segment.definition(Table::Formats, target.format);
            self.outlet(target.sink).is_some() && format().is_some()
        };
        if !route.targets.iter().all(is_known) {
            return None;
        }
        let new = self.segment.define(Table::Routes, |encoder| route.encode(encoder));
        let id = new.or_else(|| {
            self.retire_released(&mut self.routes.lock().unwrap_or_else(PoisonError::into_inner));
            // While this guard is held, no batch reads definitions. Lock order: take it before the lock on the routes.
            let _guard = self.batching();
            let old = self.reusable_route()?;
            let id = self.segment.redefine(Table::Routes, old, || (), |encoder| route.encode(encoder));
            if id.is_none() {
                self.keep_route(old);
            }
            id
        })?;
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        for target in &route.targets {
            let ids = routes.by_sink.entry(target.sink).or_default();
            if ids.last() != Some(&id) {
                ids.push(id);
            }
        }
        Some(id)
    }

    /// Takes a retired route whose slot can be reused.
    fn reusable_route(&self) -> Option<u32> {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = routes.retired.front_mut().filter(|retired| retired.are_unused(&self.segment))?;
        let id = oldest.ids.pop();
        if oldest.ids.is_empty() {
            routes.retired.pop_front();
        }
        id
    }

    fn keep_route(&self, id: u32) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.retired.push_front(RetiredRoutes { ids: vec![id], heads: Vec::new() });
    }

    /// Retires the routes to a closed sink. Call it only after every logging call that could use these routes has
    /// ended.
    pub(super) fn retire_routes(&self, sink: u32) {
        let heads = self.published_heads();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut ids) = routes.by_sink.remove(&sink) else { return };
        ids.sort_unstable();
        // A route to several sinks is retired only once: when the first of its sinks is closed.
        routes.forget(&ids);
        routes.retired.push_back(RetiredRoutes { ids, heads });
    }

    /// Notes that no call begins to use a route any more.
    pub(super) fn release_route(&self, id: u32) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.released.push(id);
        if routes.released.len() >= RELEASED_AT_ONCE {
            self.retire_released(&mut routes);
        }
    }

    /// Retires the released routes, after the calls that began to use them before.
    fn retire_released(&self, routes: &mut Routes) {
        let mut ids = std::mem::take(&mut routes.released);
        ids.sort_unstable();
        if ids.is_empty() {
            return;
        }
        door::settle_pushes(self);
        let heads = self.published_heads();
        routes.forget(&ids);
        routes.retired.push_back(RetiredRoutes { ids, heads });
    }

    /// Whether places of routes become free when the records that name them are written.
    pub(super) fn has_retired_routes(&self) -> bool {
        !self.routes.lock().unwrap_or_else(PoisonError::into_inner).retired.is_empty()
    }

    fn published_heads(&self) -> Vec<u64> {
        let lanes = self.segment.header().lanes.observe() as usize;
        (0..lanes).map(|lane| self.segment.lane(lane).producer.published()).collect()
    }
}
