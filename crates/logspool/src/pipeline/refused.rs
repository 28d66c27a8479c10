//! Shows a refused record on standard error.
//!
//! The thread of the logging call renders the record, after it has waited for room as long as the level allows. At most
//! ten records a second are shown.

use std::sync::Arc;

use logspool_lanes::queue::producer::ERROR;
use logspool_lanes::queue::reader::PeekedRecord;
use logspool_record::Head;
use logspool_sys::clock;

use super::options::Fallback;
use super::settings::options;
use super::slot::existing;
use super::state::Pipeline;
use crate::chunk::Chunk;
use crate::collector::LiveSource;
use crate::fallback;
use crate::render::{Chunks, Renderer};
use crate::writer::Outlet;

/// Shows on standard error a refused record of ERROR or above, once, in the format of its first handler.
///
/// `values` is called only if the record is shown. It returns the bytes that `fill` of the push would have written.
pub fn show_refused(head: Head, values: impl FnOnce() -> Vec<u8>) {
    let Some(pipeline) = existing() else { return };
    if head.level < ERROR || options().fallback != Fallback::Stderr || !fallback::has_room() {
        return;
    }
    let values = values();
    let source = LiveSource { segment: &pipeline.segment, blobs: &pipeline.blobs };
    let mut first = FirstTarget { pipeline, outlet: None, chunk: Chunk::default() };
    // The guard is held so that no definition is replaced meanwhile.
    let guard = pipeline.batching();
    Renderer::default().take(&source, &mut first, PeekedRecord { head, values: &values }, clock::wall_ns());
    drop(guard);
    if let Some(outlet) = first.outlet {
        fallback::emit(&outlet.traits, &outlet.definition, &first.chunk);
    }
}

/// Receives the line for the first target that is not itself standard error.
struct FirstTarget<'a> {
    pipeline: &'a Pipeline,
    outlet: Option<Arc<Outlet>>,
    chunk: Chunk,
}

impl Chunks for FirstTarget<'_> {
    fn chunk(&mut self, sink: u32) -> Option<&mut Chunk> {
        if self.outlet.is_some() {
            return None;
        }
        let outlet = self.pipeline.outlet(sink)?;
        if fallback::is_standard_error(&outlet.traits, &outlet.definition) {
            return None;
        }
        self.outlet = Some(outlet);
        Some(&mut self.chunk)
    }
}
