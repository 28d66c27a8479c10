//! Defines routes and retires them. If the table is full, a new route reuses the slot of a retired route.

use std::sync::PoisonError;

use logspool_lanes::segment::layout::Table;
use logspool_record::definition::{RouteDefinition, Target};

use super::routes::RetiredRoutes;
use super::state::Pipeline;
use logspool_sys::published::Published;

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
        let lanes = self.segment.header().lanes.observe() as usize;
        let heads = (0..lanes).map(|lane| self.segment.lane(lane).producer.published()).collect();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ids) = routes.by_sink.remove(&sink) else { return };
        // A route to several sinks is retired only once: when the first of its sinks is closed.
        routes.by_sink.values_mut().for_each(|others| others.retain(|id| !ids.contains(id)));
        routes.by_sink.retain(|_, others| !others.is_empty());
        routes.retired.push_back(RetiredRoutes { ids, heads });
    }
}
