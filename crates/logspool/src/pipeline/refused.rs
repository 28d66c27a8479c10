//! A record that found no room, on its way to standard error.
//!
//! Rendered in the caller, which has waited for as long as its level allows: this path is taken ten times a second
//! at most.

use std::sync::Arc;

use logspool_lanes::queue::producer::ERROR;
use logspool_lanes::queue::reader::Lying;
use logspool_record::Head;
use logspool_sys::clock;

use super::options::Fallback;
use super::settings::options;
use super::slot::existing;
use super::state::Pipeline;
use crate::chunk::Chunk;
use crate::collector::Source;
use crate::fallback;
use crate::render::{Chunks, Renderer};
use crate::writer::Outlet;

/// Shows a refused record on standard error: one of ERROR or above, once, as its first handler would have shown it.
///
/// `values` is called only where the record is shown; what it returns is what `fill` of the push would have written.
pub fn show_refused(head: Head, values: impl FnOnce() -> Vec<u8>) {
    let Some(pipeline) = existing() else { return };
    if head.level < ERROR || options().fallback != Fallback::Stderr || !fallback::has_room() {
        return;
    }
    let values = values();
    let source = Source { segment: &pipeline.segment, pipeline };
    let mut first = First { pipeline, outlet: None, chunk: Chunk::default() };
    // Definitions are not replaced meanwhile.
    let guard = pipeline.batching();
    Renderer::default().take(&source, &mut first, Lying { head, values: &values }, clock::wall_ns());
    drop(guard);
    if let Some(outlet) = first.outlet {
        fallback::emit(&outlet, &first.chunk);
    }
}

/// The line of the first target that is not standard error itself.
struct First<'a> {
    pipeline: &'a Pipeline,
    outlet: Option<Arc<Outlet>>,
    chunk: Chunk,
}

impl Chunks for First<'_> {
    fn chunk(&mut self, sink: u32) -> Option<&mut Chunk> {
        if self.outlet.is_some() {
            return None;
        }
        let outlet = self.pipeline.outlet(sink)?;
        if fallback::is_standard_error(&outlet) {
            return None;
        }
        self.outlet = Some(outlet);
        Some(&mut self.chunk)
    }
}
