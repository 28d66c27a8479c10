//! Maps the definitions of formats and routes to their ids. A plan that is made again gets the same ids, and does not
//! fill the core's tables.
//!
//! Pipeline stage: *capture*, its slow path (see ARCHITECTURE.md).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use logspool::pipeline;
use logspool_record::definition::RouteDefinition;
use logspool_record::format::{Format, FormatSpec, Need};
use pyo3::Python;

use crate::plans::field_texts::FieldTexts;
use crate::plans::needs::{Needs, shown_by};

#[derive(Default)]
struct Ids {
    id_epoch: u64,
    formats: HashMap<FormatSpec, Result<(u32, Needs), String>>,
    routes: HashMap<RouteDefinition, u32>,
}

static IDS: Mutex<Option<Ids>> = Mutex::new(None);

fn with_ids<T>(act: impl FnOnce(&mut Ids) -> T) -> T {
    let mut ids = IDS.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = ids.get_or_insert_default();
    let id_epoch = pipeline::id_epoch();
    if ids.id_epoch != id_epoch {
        *ids = Ids { id_epoch, ..Ids::default() };
    }
    act(ids)
}

/// The id of a format and the values that it shows, or the reason why the collector cannot render it.
pub fn format_id(py: Python<'_>, spec: FormatSpec, texts: FieldTexts) -> Result<(u32, Needs), String> {
    let (id, needs) = id_and_needs(py, spec)?;
    Ok((id, needs.with_field_texts(py, texts)))
}

fn id_and_needs(py: Python<'_>, spec: FormatSpec) -> Result<(u32, Needs), String> {
    with_ids(|ids| {
        if let Some(known) = ids.formats.get(&spec) {
            return known.clone();
        }
        let made = match Format::compile(&spec) {
            Err(unsupported) => Err(unsupported.to_string()),
            Ok(format) => match pipeline::define_format(&spec) {
                Some(id) => Ok((id, needs_of(py, &spec, &format))),
                None => return Err("the table of formats is full".to_owned()),
            },
        };
        ids.formats.insert(spec, made.clone());
        made
    })
}

fn needs_of(py: Python<'_>, spec: &FormatSpec, format: &Format) -> Needs {
    let needs = format.needs();
    Needs {
        caller: needs.contains(Need::Site),
        thread: needs.contains(Need::ThreadId),
        thread_name: needs.contains(Need::ThreadName),
        process_name: needs.contains(Need::ProcessName),
        task_name: needs.contains(Need::TaskName),
        message_items: needs.contains(Need::MessageItems) || needs.contains(Need::MessageKind),
        message_text: !needs.contains(Need::MessageItems),
        own_exceptions: needs.contains(Need::OwnExceptions),
        last_stop: needs.contains(Need::LastStop),
        marks: needs.contains(Need::Marks),
        given: None,
        fields: shown_by(py, spec, format),
    }
}

/// The id of a route; `None` if the table is full.
pub fn route_id(definition: RouteDefinition) -> Option<u32> {
    with_ids(|ids| {
        if let Some(known) = ids.routes.get(&definition) {
            return Some(*known);
        }
        let id = pipeline::define_route(&definition)?;
        ids.routes.insert(definition, id);
        Some(id)
    })
}

/// Removes the routes to a sink that was closed. The id of the sink is never used again.
pub fn forget_routes(sink: u32) {
    with_ids(|ids| ids.routes.retain(|route, _| route.targets.iter().all(|target| target.sink != sink)));
}
